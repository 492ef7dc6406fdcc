"""Two functions that compute, each in one line: they wait for the interpreter's lock there."""

from plant import WAIT, WORDS, plant, truth


def left(thread: int) -> int:
    total = 0
    # fmt: off
    for i in WAIT(thread, 1, range(20_000)): total += i * i % 7  # noqa: E701  # left
    # fmt: on
    truth[WORDS * thread] = 0
    return total


def up(thread: int) -> int:
    def own(total: int) -> int:
        # fmt: off
        for i in WAIT(thread, 2, range(20_000)): total += i * i % 5  # noqa: E701  # up.<locals>.own
        # fmt: on
        truth[WORDS * thread] = 0
        return total

    return own(0)


def turn(thread: int, round_: int) -> int:
    return left(thread) if round_ % 2 else up(thread)


plant(turn)

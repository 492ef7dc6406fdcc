"""The keys of Redlock clients: times to live at their borders, and the options of SET."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def client(plain: Server) -> Iterator[Client]:
    with contextlib.closing(Client(plain.port)) as connected:
        connected("DEL", "a", "b", "k")
        yield connected


#: The longest time to live in ms, as docs/programs/server.md says.
LIVES_MS_MAX = 2**62 - 1


@pytest.mark.parametrize(
    ("ms", "is_valid"),
    [
        (1, True),
        (4_294_967_294_000, True),
        (4_294_967_296_000, True),
        (LIVES_MS_MAX, True),
        (LIVES_MS_MAX + 1, False),
        (2**63 - 1, False),
        (2**63, False),
        (2**64, False),
        (10**30, False),
    ],
)
def test_every_way_to_set_a_time_to_live_has_the_same_borders(
    client: Client, ms: int, is_valid: bool
) -> None:
    reacquire = (
        'if redis.call("get",KEYS[1]) == ARGV[1] then '
        'return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end'
    )
    client("SET", "k", "v")
    ways: dict[tuple[str | int, ...], object] = {
        ("SET", "a", "v", "PX", ms): "OK",
        ("PEXPIRE", "k", ms): 1,
        ("EVAL", reacquire, 1, "k", "v", ms): 1,
    }
    if ms % 1000 == 0 or not is_valid:
        ways["SET", "b", "v", "EX", -(-ms // 1000)] = "OK"
    for words, answer in ways.items():
        if is_valid and ms > 1:
            assert client(*words) == answer, words
            left = client("PTTL", words[1] if words[0] in ("SET", "PEXPIRE") else "k")
            assert 0 <= ms - left < 1000 * DEADLINE_S, words
        elif is_valid:
            assert client(*words) in (answer, 0), words
        else:
            with pytest.raises(ReplyError, match=r"invalid expire time '.*': the maximum is "):
                client(*words)
    assert client("PING") == "PONG"


@pytest.mark.parametrize("ms", [0, -1, -(2**63), -(10**30)])
def test_a_time_to_live_that_is_over_is_refused_or_ends_the_key(client: Client, ms: int) -> None:
    for option in ("PX", "EX"):
        with pytest.raises(ReplyError, match=f"invalid expire time '{ms}': SET needs 1 or more"):
            client("SET", "k", "v", option, ms)
        assert client("EXISTS", "k") == 0
    client("SET", "k", "v")
    assert client("PEXPIRE", "k", ms) == 1
    assert client("GET", "k") is None
    assert client("PEXPIRE", "k", ms) == 0


@pytest.mark.parametrize(
    "options",
    [("PX",), ("EX",), ("PX", "5", "EX", "5"), ("PX", "5", "PX", "5"), ("NX", "XX"), ("PX", "5.0")],
)
def test_options_of_set_that_make_no_sense_are_refused(
    client: Client, options: tuple[str, ...]
) -> None:
    assert client.refused("SET", "k", "v", *options) == "ERR"
    assert client("EXISTS", "k") == 0

"""Fuzzing of parsers: valid inputs that are changed at random, and random bytes.

Nothing set: the same few inputs in each run. ``CONCURVE_FUZZ_SECONDS=600``: so long, from fresh
seeds on, which are printed. ``CONCURVE_FUZZ_SEED=17``: the inputs of that seed. The Rust twin is
``instrument/fuzz``; ``docs/decisions/0038-fuzzing.md`` has the reasons.
"""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from concurve.errors import ConcurveError

#: Inputs of a target where the environment does not say otherwise, and between looks at the clock.
CASES = 50
CASES_OF_SEED = 2000

#: An input that needs more CPU time hangs.
CPU_SECONDS_MAX = 5.0

#: By how much the memory of this process may grow for one input, in KiB.
MEMORY_KIB_MAX = 256 << 10

_NUMBERS = [
    str(number).encode()
    for number in (
        0,
        1,
        -1,
        2**31,
        2**32,
        2**63,
        2**64,
        -(2**63) - 1,
        10**400,
        "1e400",
        "1e-320",
        "NaN",
        "inf",
    )
]


@st.composite
def inputs(draw: st.DrawFn, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One input in eight is random bytes; the others are changed from the corpus."""
    if draw(st.integers(0, 7)) == 7:
        return draw(st.binary(max_size=300))
    data = bytearray(draw(st.sampled_from(corpus)))
    pieces = st.one_of(st.sampled_from([*words, *_NUMBERS]), st.binary(max_size=8))
    change = st.tuples(st.integers(0, 6), st.integers(0, 1 << 16), st.integers(0, 40), pieces)
    for kind, place, length, piece in draw(st.lists(change, max_size=6)):
        at = place % (len(data) + 1)
        end = min(at + length, len(data))
        if kind == 0:
            data[at:at] = piece
        elif kind == 1:
            data[at:end] = piece
        elif kind == 2:
            del data[at:end]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            data[at:at] = data[at:end]
        elif kind == 5 and at < len(data):
            data[at] ^= 1 << length % 8
        else:
            data[at:end] = data[at:end] * 20
    return bytes(data)


def fuzz(
    parse: Callable[[bytes], object],
    corpus: Sequence[bytes],
    words: Sequence[bytes] = (b"",),
    cases: int = CASES,
) -> None:
    """Give a parser inputs: it returns or raises a :class:`ConcurveError` with a text, in time and
    without much memory."""

    def check(data: bytes) -> None:
        begin, memory = time.thread_time(), _memory_kib()
        try:
            parse(data)
        except ConcurveError as error:
            assert error.what.strip()
        assert time.thread_time() - begin < CPU_SECONDS_MAX, "it hangs"
        assert _memory_kib() - memory < MEMORY_KIB_MAX, "it takes too much memory"

    every = given(inputs(corpus, words))
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    seconds = float(os.environ.get("CONCURVE_FUZZ_SECONDS", "0"))
    chosen = os.environ.get("CONCURVE_FUZZ_SEED")
    if not seconds and chosen is None:
        same = settings(max_examples=cases, derandomize=True, suppress_health_check=quiet)
        same(every(check))()
        return
    searching = settings(
        max_examples=CASES_OF_SEED,
        derandomize=False,
        suppress_health_check=quiet,
        print_blob=False,
    )
    end = time.monotonic() + seconds
    while True:
        number = int(chosen) if chosen is not None else random.SystemRandom().randrange(1 << 32)
        print(f"again: CONCURVE_FUZZ_SEED={number}", flush=True)
        seed(number)(searching(every(check)))()
        if chosen is not None or time.monotonic() > end:
            return


def _memory_kib() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

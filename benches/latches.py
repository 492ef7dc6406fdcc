"""Latches with counters, and the shared heap of engines, beside those of other libraries."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from measuring.estimates import median, ratio_of_medians
from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import ROOT
from measuring.tools import require

Times = Mapping[str, Mapping[str, Sequence[float]]]
"""ns an operation, by what was done and by whose means, a value a round."""

LATCHES = {
    "mutex": "mutex, one thread",
    "mutex_two_threads": "mutex, two threads on it",
    "read": "read latch, one thread",
    "read_two_threads": "read latch, two threads on it",
}

MEMORY = {
    "one": "a piece allocated and freed",
    "many": "… 500 pieces at a time",
    "many_two_threads": "… by two threads",
    "freed_by_another": "… freed by another thread",
}

#: What counting may cost. That of std is printed beside it.
BOUND = Bound(high=1.01, parity=True)


def figures(quick: bool) -> Iterator[Figure]:
    """Latches, then memory."""
    rounds = 3 if quick else 31
    how = f"taken and given back, beside parking_lot's, {rounds} interleaved rounds"
    try:
        latches = example("concurve-latch", "latch_costs", rounds)
        memory = example("concurve-engines", "memory_costs", rounds)
    except MissingToolError as error:
        yield Figure(LATCHES["mutex"], how, missing=str(error))
        return
    yield Figure("mutex taken and given back", how, median(latches["mutex"]["concurve"], "ns"))
    for key, name in LATCHES.items():
        sides = latches[key]
        own, others = sides["concurve"], sides["parking_lot"]
        yield Figure(f"{name} / parking_lot", how, ratio_of_medians(own, others), BOUND)
        yield Figure("… / std", how, ratio_of_medians(own, sides["std"]))
        again = ratio_of_medians(sides["parking_lot_again"], others)
        yield Figure("… noise: parking_lot / itself", how, again)
    how = f"blocks of 24 to 4,096 bytes, beside the system's, {rounds} interleaved rounds"
    for key, name in MEMORY.items():
        own, others = memory[key]["shared"], memory[key]["system"]
        yield Figure(f"{name}: shared / system", how, ratio_of_medians(own, others))


def example(crate: str, name: str, rounds: int) -> Times:
    """What an example of a crate prints."""
    cargo = require("cargo", "rustup, or Debian's cargo")
    command = [cargo, "run", "--quiet", "--release", "-p", crate, "--example", name, "--"]
    found: Times = json.loads(subprocess.check_output([*command, str(rounds)], cwd=ROOT))
    return found

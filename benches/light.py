"""Light: what measuring adds to the wall time of a trial of `true`."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measuring.estimates import difference_of_medians
from measuring.figures import Bound, Figure, unless_missing
from measuring.running import interleaved, scratch, spec_of, wall_seconds
from measuring.showing import alone
from measuring.tools import hyperfine, require

from concurve.estimate import Estimate
from concurve.host import native
from concurve.store import Store

RUNNER_MS_MAX = 3.0
LABORATORY_MS_MAX = 15.0


def figures(quick: bool) -> Iterator[Figure]:
    """The runner alone, then the whole laboratory, hyperfine's own beside each."""
    yield from by_the_runner(rounds=3 if quick else 400)
    yield from by_the_laboratory(
        few=2 if quick else 20, many=6 if quick else 220, pairs=2 if quick else 11
    )


def by_the_runner(rounds: int) -> Iterator[Figure]:
    """`concurve-trial < spec` minus `true`, both spawned and timed alike."""
    true, runner = str(shutil.which("true")), str(native.runner())
    with tempfile.NamedTemporaryFile() as spec:
        spec.write(spec_of([true]))
        spec.flush()
        found = interleaved(
            rounds,
            {
                "trial": lambda: {"s": wall_seconds([runner], spec.name)},
                "true": lambda: {"s": wall_seconds([true])},
            },
        )
        yield Figure(
            "added by the runner to `true`",
            f"wall of `concurve-trial < spec` minus wall of `true`, difference of medians, "
            f"{rounds} interleaved rounds of posix_spawn and waitpid",
            difference_of_medians(found["trial s"], found["true s"], 1e3, "ms"),
            Bound(high=RUNNER_MS_MAX),
        )
        yield unless_missing(
            Figure(
                "… the same by hyperfine", f"hyperfine -N, {rounds} runs each, one after the other"
            ),
            lambda: cross_check(runner, true, spec.name, rounds),
        )


def cross_check(runner: str, true: str, spec: str, runs: int) -> Estimate:
    """The same difference as hyperfine sees it (medians; no interval: two batches)."""
    ours = hyperfine([runner], runs, spec)["wall"]
    return Estimate(value=1e3 * (ours - hyperfine([true], runs)["wall"]), unit="ms")


def by_the_laboratory(few: int, many: int, pairs: int) -> Iterator[Figure]:
    """Wall time of a whole run over its number of trials: start and end of the run cancel."""
    true = str(shutil.which("true"))

    def of_true() -> dict[str, float]:
        return {"s": min(wall_seconds([true]) for _ in range(5))}

    with scratch() as folder:
        ours = interleaved(
            pairs,
            {"slope": lambda: {"s": sweep_slope(folder, few, many)}, "true": of_true},
        )
    yield Figure(
        "added by the laboratory to `true`",
        f"slope of the wall time of `concurve sweep --repeats N..N -- true`, N = {few} and {many}, "
        f"minus `true`; {pairs} interleaved pairs; SQLite on the disk",
        difference_of_medians(ours["slope s"], ours["true s"], 1e3, "ms"),
        Bound(high=LABORATORY_MS_MAX),
    )

    def hyperfines() -> Estimate:
        found = interleaved(
            pairs,
            {"slope": lambda: {"s": hyperfine_slope(true, few, many)}, "true": of_true},
        )
        return difference_of_medians(found["slope s"], found["true s"], 1e3, "ms")

    yield unless_missing(
        Figure("… by hyperfine to `true`", "the same slope of `hyperfine -N --runs N true`"),
        hyperfines,
    )


def sweep_slope(folder: Path, few: int, many: int) -> float:
    """Seconds a trial, from a short and a long run; redone trials are counted as trials."""
    (short_s, short_trials), (long_s, long_trials) = sweep(folder, few), sweep(folder, many)
    return (long_s - short_s) / (long_trials - short_trials)


def sweep(folder: Path, repeats: int) -> tuple[float, int]:
    """Wall time of a sweep over `true`, and its trials."""
    concurve = str(Path(sysconfig.get_path("scripts")) / "concurve")
    db = str(folder / "bench.db")
    seconds = wall_seconds(
        [concurve, "sweep", "--repeats", f"{repeats}..{repeats}", "--db", db, "--", "true"]
    )
    store = Store(db)
    trials = store.count(store.find_run("last").id)
    store.close()
    for file in folder.iterdir():
        file.unlink()
    return seconds, trials


def hyperfine_slope(true: str, few: int, many: int) -> float:
    """Seconds a run of hyperfine's."""
    tool = require("hyperfine", "hyperfine")
    walls = [
        wall_seconds([tool, "-N", "--style", "none", "--runs", str(runs), true], os.devnull)
        for runs in (few, many)
    ]
    return (walls[1] - walls[0]) / (many - few)


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))

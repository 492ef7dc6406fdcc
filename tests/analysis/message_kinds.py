"""Each kind of sentence on a run: a run that has it, and how the sentence begins."""

from __future__ import annotations

import itertools
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from concurve.analysis.dependence import sentences as dependence_sentences
from concurve.analysis.ground import undirected_before
from concurve.analysis.run import trial_findings_of
from concurve.analysis.run.failures import FailedLoad, failure_sentences
from concurve.definition.study import Hooks, Indicator, Role, Rules, Study
from concurve.definition.study_file import parse_study
from concurve.definition.study_line import sweep_study
from concurve.errors import RunError, RunInterruptedError
from concurve.findings.run import Finding, Report, TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.plan import make_plan
from concurve.store import Store
from concurve.store.run_head import LeftOut, RunHead
from concurve.terms import Waiting
from concurve.wire.record import HookRecord, Output, PhaseRecord, ReportError
from concurve.wire.spec import Attach, TrialSpec
from tests.analysis.test_by_cpu_time import versions
from tests.analysis.test_cold import ReadingFromDisk
from tests.analysis.test_core_speed import OnACore, run_on
from tests.analysis.test_dependence import found as found_dependences
from tests.analysis.test_failed_loads import FILE, LOAD, wrk
from tests.analysis.test_hosts import Slower, measured
from tests.analysis.test_own_latencies import run_of_wrk
from tests.analysis.test_quiet import HALVES, busy, run_with, unequal
from tests.analysis.test_response_sizes import run_of_sizes
from tests.analysis.test_shapes import run_of as shaped
from tests.analysis.test_slowed import notes_at
from tests.analysis.test_steal import run_with_steal
from tests.helpers import meant
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import figures_alone, looking_run, made_run
from tests.helpers.meant import Case
from tests.report.test_counts import run_of_all_kinds

Said = TrialFindings | Sequence[Finding]

#: Each kind of message → a run that has it, and how its sentence begins.
KINDS: dict[str, tuple[Callable[[], Said], str]] = {}


def kind(name: str, begins: str) -> Callable[[Callable[[], Said]], Callable[[], Said]]:
    def known(make: Callable[[], Said]) -> Callable[[], Said]:
        assert name not in KINDS
        KINDS[name] = (make, begins)
        return make

    return known


def sentences_of(name: str) -> list[Finding]:
    """All that is said of the run of a kind; its id is RUN."""
    found = KINDS[name][0]()
    if not isinstance(found, TrialFindings):
        return list(found)
    return [
        msgspec.structs.replace(item, sentence=item.sentence.replace(found.run.id, "RUN"))
        for item in found.sentences
    ]


THREE = Rules(repeats_min=3, repeats_max=3)


def stored(
    study: Study, engine: FakeEngine | None = None,
    change: Callable[[RunHead], RunHead] = lambda head: head, step: float = 0.001,
) -> TrialFindings:  # fmt: skip
    """What a run says, however it ended. ``step``: of its clock, in seconds."""
    store = Store()
    head = change(new_head(study, "normal", 1, "concurve sweep …"))
    with suppress(RunError, RunInterruptedError):
        Runner(head, store, engine or FakeEngine(), clock=FakeClock(step)).start()
    return trial_findings_of(store, store.find_run(head.id))


class Recording(FakeEngine):
    """Its records are changed."""

    def __init__(self, change: Callable[[TrialSpec, dict[str, Any]], None]) -> None:
        super().__init__()
        self.change = change

    def run(self, spec: TrialSpec) -> bytes:
        record = json.loads(super().run(spec))
        self.change(spec, record)
        return json.dumps(record).encode()


def as_json(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


# -- answers ----------------------------------------------------------------------------------


def halved(threads: str) -> float:
    return 2.0 / int(threads)


@kind("greatest-level", "32 is the greatest level measured")
def _greatest_level() -> Said:
    return served({"8": 1.0, "16": 0.5, "32": 0.25})


def served(seconds: dict[str, float]) -> TrialFindings:
    """A server whose load takes so many seconds by its number of clients."""
    study = msgspec.structs.replace(
        small_study(THREE, clients=tuple(map(int, seconds))),
        roles=(
            Role(name="server", command=("serve",), end="serve", purpose="server"),
            Role(name="load", command=("load", "{clients}"), purpose="load"),
        ),
        target="load",
    )
    engine = FakeEngine(
        lambda spec, rng: seconds[spec.roles[1].argv[1]] * rng.lognormvariate(0, 0.005)
    )
    store = Store()
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


@kind("greatest-level-under-conditions", "4 is the greatest level measured: under each condition")
def _greatest_level_under_conditions() -> Said:
    return made_run(
        Store(), lambda load, n: int(load) / int(n), conditions=("load",), load=(1, 2),
        machine={"cpus_allowed": list(range(64))}, threads=(1, 2, 4),
    )  # fmt: skip


@kind("greatest-level-under-many-conditions", "4 is the greatest level measured: under 7 of 8")
def _greatest_level_under_many_conditions() -> Said:
    return made_run(
        Store(), lambda load, n: int(load) / (int(n) if load != "8" else 1), conditions=("load",),
        load=tuple(range(1, 9)), machine={"cpus_allowed": list(range(64))}, threads=(1, 2, 4),
    )  # fmt: skip


@kind("not-yet-decided-by-another-figure", r"With load=1 it is not yet decided \(by \w")
def _undecided_by_another_figure() -> Said:
    trials = {"1": [1.0, 1.25, 0.95], "2": [0.9, 1.2, 1.0], "4": [0.96, 0.97, 0.95]}
    each = {(load, n): iter(values) for load in "12" for n, values in trials.items()}
    return made_run(
        Store(), lambda load, n: next(each[load, n]), cv=0, rules=THREE, conditions=("load",),
        load=(1, 2), threads=(1, 2, 4), primary="cpu_seconds",
    )  # fmt: skip


@kind("gain", r"\d+ threads are")
def _gain() -> Said:
    return made_run(Store(), halved, threads=(1, 2))


@kind("gain-others-as-good", r"\d+ threads are .*not significantly better")
def _plateau() -> Said:
    return made_run(Store(), lambda n: 2.0 / min(int(n), 2), threads=(1, 2, 4, 8))


@kind("gain-of-a-named-level", r"n=\d is")
def _named() -> Said:
    return made_run(Store(), halved, n=(1, 2))


@kind("no-gain", "No number of threads is")
def _none() -> Said:
    return made_run(Store(), lambda threads: 1.0 if int(threads) < 4 else 4.0, threads=(1, 2, 4))


@kind("all-others-are-slower", "threads=1 is the fastest: 2 threads are")
def _all_slower() -> Said:
    return made_run(Store(), float, threads=(1, 2, 4))


def undecided_versions() -> Report:
    """Five trials of two versions, the new one slower by less than its noise."""
    new = iter((1.01, 1.09, 0.99, 1.03, 1.05))
    return made_run(
        Store(),
        lambda version: next(new) if version == "new" else 1.0,
        cv=0.003,
        version=("old", "new"),
    )


@kind("many-others-are-slower", "threads=1 is the fastest: the 7 others are")
def _many_slower() -> Said:
    return made_run(Store(), float, threads=(1, 2, 3, 4, 5, 6, 7, 8))


@kind("no-gain-of-words", "No setting is significantly")
def _words() -> Said:
    return made_run(Store(), lambda k: 1.0, cv=0.001, k=(1, 2))


@kind("version-undecided", "Whether version=new or version=old is faster cannot be said")
def _undecided_version() -> Said:
    return undecided_versions()


@kind("version-to-use", "Use k=a, k=b or k=c: none loses 2 % or more")
def _versions_to_use() -> Said:
    return made_run(Store(), lambda k: 1.0, cv=0.001, k=("a", "b", "c"))


@kind("version-beside-a-slower-one", "Use k=a or k=b: which of them is faster is not decided")
def _open_beside_slower() -> Said:
    seconds = iter((1.01, 1.09, 0.99, 1.03, 1.05))
    return made_run(
        Store(),
        lambda k: next(seconds) if k == "b" else 2.0 if k == "c" else 1.0,
        cv=0.003,
        k=("a", "b", "c"),
    )


#: A little faster, and not for sure by 2 % or more.
_A_LITTLE = (0.985, 0.97, 1.0, 0.98, 0.99, 0.985, 0.97, 0.99, 0.985, 0.98)


def little_faster(effect: float | None, new: float, third: Sequence[float] = _A_LITTLE) -> Report:
    """Ten trials of an old version, a new one and a third one, judged by an effect if there is
    one."""
    seconds = itertools.cycle(third)
    return made_run(
        Store(),
        lambda version: next(seconds) if version == "third" else new if version == "new" else 1.0,
        cv=0.002,
        rules=Rules(repeats_min=10, repeats_max=10),
        effect=effect,
        version=("old", "new", "third"),
    )


@kind("version-little-faster", "Whether version=third is faster than version=old by 2 % or more")
def _little_faster() -> Said:
    return little_faster(0.02, 1.2)


@kind("version-to-use-of-some-apart", "Use version=old or version=third: by how much they differ")
def _to_use_of_some_apart() -> Said:
    return little_faster(0.02, 1.2)


@kind("version-alike-by-a-given-effect", "version=third is as fast as .*, within 10 %")
def _alike_by_effect() -> Said:
    return little_faster(0.1, 1.2)


@kind("intervals-of-verdicts", "The intervals of the answer are those by which its 2 verdicts")
def _intervals_of_verdicts() -> Said:
    return little_faster(None, 1.2)


@kind("version-alike", r"k=b is as fast as k=a by wall time, within 5 %")
def _alike_version() -> Said:
    return made_run(Store(), lambda k: 1.0, k=("a", "b"))


@kind("only-other-is-slower", r"k=b is \S+ % slower than k=a by wall time")
def _slower() -> Said:
    return made_run(Store(), lambda k: 1.0 if k == "a" else 1.06, k=("a", "b"))


@kind("version-by-another-figure", r"build=new is \S+ % slower than build=old by CPU time")
def _by_cpu_time() -> Said:
    return made_run(
        Store(), lambda k: 1.0 if k == "old" else 1.04, primary="cpu_seconds",
        build=("old", "new"),
    )  # fmt: skip


@kind("version-among-others", "k=b is as fast as k=a by wall time")
def _versions() -> Said:
    seconds = {"a": 1.0, "b": 1.0, "c": 0.9}
    return made_run(Store(), lambda k: seconds[k], cv=0.002, k=("a", "b", "c"))


@kind("best-of-all-cells", r"Use cpus=\d threads=\d")
def _two_factors() -> Said:
    return made_run(
        Store(), lambda cpus, n: 2.0 / min(int(n), int(cpus)), cpus=(1, 2), threads=(1, 2)
    )


@kind("under-a-condition", "With load=1")
def _condition() -> Said:
    return made_run(
        Store(), lambda load, n: float(load) / int(n), conditions=("load",), load=(1, 2),
        threads=(1, 2),
    )  # fmt: skip


@kind("many-conditions", "Of 8 conditions")
def _many() -> Said:
    return made_run(
        Store(), lambda load, n: 1.0 / int(n) if int(load) >= 6 else float(n),
        conditions=("load",), load=tuple(range(1, 9)), threads=(1, 2),
    )  # fmt: skip


@kind("another-indicator", r".*\(by CPU time\)")
def _by() -> Said:
    return made_run(Store(), halved, threads=(1, 2), primary="cpu_seconds")


@kind("in-doubt", "No setting is recommended: the machine")
def _doubt() -> Said:
    return run_with({"1": 25, "2": 25}, slower=1.6)


@kind("cold-start", "The first trial of threads=1 was a cold start")
def _cold_start() -> Said:
    store = Store()
    study = small_study(Rules(repeats_min=6, repeats_max=6), threads=(1, 2))
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, ReadingFromDisk((312, 45), (2, 0)), clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


@kind("steal-by-the-load", "The hypervisor took CPU time only where")
def _steal_by_load() -> Said:
    return run_with_steal({"1": 0, "2": 9})


@kind("cell-in-doubt", r"\d+ of \d+ trials are in doubt .* leave threads=")
def _cell_in_doubt() -> Said:
    return run_with({"1": 22})


def _waited(is_stolen: bool = False, /, **state: Any) -> Said:
    """A run that is in doubt although it waited for a quiet machine: for other processes, or for
    what the hypervisor took."""
    rules = Rules(repeats_min=4, repeats_max=4, redo_max=0, redo_share=0.0)
    waiting = Waiting(seconds=300, **state)
    taken = 10**9
    engine = FakeEngine(
        steal_of=lambda _: taken if is_stolen else 0, foreign_of=lambda _: 0 if is_stolen else taken
    )
    store = Store()
    head = new_head(small_study(rules, threads=(1, 2)), "normal", 1, "concurve sweep …")
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    store.set_head(head.id, msgspec.structs.replace(head, waiting=waiting).row().head)
    # What to do about a server that is no role has a kind of its own.
    with patch("concurve.analysis.strangers.may_load_a_stranger", return_value=False):
        return trial_findings_of(store, store.find_run(head.id))


WAITED: dict[str, Any] = {
    "before_seconds": 20.0,
    "times": 3,
    "busy_with": {"firefox": 9.0, "cc1plus": 60.0, "init": 0.5},
}


@kind("in-doubt-after-all-waits", ".* leave (all|both) .*cells in doubt .* all it was given")
def _all_waits() -> Said:
    return _waited(**WAITED, during_seconds=280.0)


@kind("in-doubt-after-waits", ".* leave (all|both) .*cells in doubt .* does not help")
def _some_waits() -> Said:
    return _waited(True, **WAITED, during_seconds=40.0)


@kind(
    "in-doubt-after-waits-cut-short", ".* leave (all|both) .*cells in doubt .* all it had time for"
)
def _cut_waits() -> Said:
    return _waited(**WAITED, during_seconds=40.0, is_cut=True)


@kind(
    "in-doubt-without-time-to-wait", ".* leave (all|both) .*cells in doubt .* had no time to wait"
)
def _no_time() -> Said:
    return _waited(is_cut=True)


@kind(
    "in-doubt-without-a-wait",
    ".* leave (all|both) .*cells in doubt .* was quiet whenever the run looked",
)
def _no_waits() -> Said:
    return _waited()


@kind("trials-set-aside", r"\d of \d+ trials are in doubt .* with all 48 no median moves")
def _some_set_aside() -> Said:
    return run_with({"1": 8})


kind("trial-in-doubt", r"1 of \d+ trials is in doubt .* no median by much")(
    lambda: run_of_all_kinds(with_steal=False)
)
kind("some-in-doubt-set-aside", r"\d of \d+ trials are in doubt .* what is set aside")(
    run_of_all_kinds
)


@kind(
    "trials-left-out",
    r"\d+ of \d+ trials are in doubt .* With them threads=1 would be \d+ % higher",
)
def _left_out_in_doubt() -> Said:
    return run_with({"1": 12})


@kind("imprecise", r"\d of \d cells missed the precision")
def _imprecise() -> Said:
    rules = Rules(repeats_min=5, repeats_max=8, precision=0.02)
    return made_run(Store(), float, cv=0.08, rules=rules, n=(1, 2))


def _imprecise_beside(*doubted: int) -> Said:
    rules = Rules(repeats_min=5, repeats_max=8, precision=0.02, redo_max=0, redo_share=0.0)

    def taken(spec: TrialSpec) -> int:
        return 10**9 if int(spec.roles[0].argv[1]) in doubted else 0

    return made_run(Store(), float, cv=0.08, rules=rules, steal=taken, n=(1, 2, 3, 4))


kind("imprecise-beside-cells-in-doubt", "2 of the 2 cells that are not in doubt missed the")(
    lambda: _imprecise_beside(1, 2)
)
kind("imprecise-the-only-cell-not-in-doubt", "The only cell that is not in doubt missed the")(
    lambda: _imprecise_beside(1, 2, 3)
)


@kind("faster-than-the-base", "mode=b is faster than mode=a in all")
def _base() -> Said:
    return made_run(
        Store(), lambda mode, n: (1.0 if mode == "b" else 2.0) / int(n), base={"mode": "a"},
        mode=("a", "b"), threads=(1, 2, 4),
    )  # fmt: skip


@kind("cannot-be-said", "Whether mode=b or mode=a is faster cannot be said")
def _base_unknown() -> Said:
    return made_run(
        Store(), lambda mode, n: 1.0 / int(n), base={"mode": "a"}, cv=0.2, mode=("a", "b"),
        threads=(1, 2, 4),
    )  # fmt: skip


@kind("as-fast-as-the-base", "mode=b is as fast as mode=a")
def _base_alike() -> Said:
    return made_run(
        Store(), lambda mode, n: 1.0 / int(n), base={"mode": "a"}, mode=("a", "b"),
        threads=(1, 2, 4),
    )  # fmt: skip


@kind("depends", "It depends")
def _base_depends() -> Said:
    return made_run(
        Store(), lambda mode, n: 1.0 if mode == "a" else 2.0 / int(n), base={"mode": "a"},
        mode=("a", "b"), threads=(1, 2, 4),
    )  # fmt: skip


@kind("figure-of-the-only-cell", "Wall time")
def _only_cell() -> Said:
    return made_run(Store(), halved, threads=(2,))


@kind("only-level", "Which level of threads")
def _only_level() -> Said:
    return made_run(Store(), halved, threads=(2,))


@kind("figures-under-conditions", "Wall time")
def _conditions_alone() -> Said:
    return made_run(
        Store(), lambda load, n: float(load) / 1e4 / int(n), conditions=("load",), load=(1, 2),
        threads=(4,),
    )  # fmt: skip


@kind("figures-under-many-conditions", "Wall time")
def _many_conditions_alone() -> Said:
    return made_run(Store(), float, conditions=("load",), load=tuple(range(1, 9)))


@kind("figures-in-doubt", r"Wall time: .* \(in doubt\)")
def _figures_in_doubt() -> Said:
    return run_with({"1": 25, "2": 25}, conditions=("threads",))


@kind("note-on-speed-up", "Speed-up is by")
def _note() -> Said:
    return made_run(Store(), halved, threads=(1, 2))


@kind("nothing-seems-better", "Not decided: no setting seems better than the others.")
def _nothing_seems_better() -> Said:
    """The median of two is the least, and beside one of its block it is the slower one."""
    times = {1: [1.0, 1.5, 0.6], 2: [0.99, 1.6, 0.9], 4: [1.05, 1.45, 0.7]}
    each = {threads: iter(values) for threads, values in times.items()}
    return made_run(
        Store(), lambda threads: next(each[int(threads)]), cv=0, threads=(1, 2, 4), rules=THREE
    )


@kind("not-decided", "Not decided: ")
def _not_decided() -> Said:
    """Noisy trials: the smallest is neither told from the best nor shown to be as good."""
    trials = {"1": [1.0, 1.25, 0.95], "2": [0.9, 1.2, 1.0], "4": [0.96, 0.97, 0.95]}
    each = {level: iter(values) for level, values in trials.items()}
    return made_run(Store(), lambda n: next(each[n]), cv=0, rules=THREE, threads=(1, 2, 4))


def _undecided_under_conditions() -> Said:
    trials = {"1": [1.0, 1.25, 0.95], "2": [0.9, 1.2, 1.0], "4": [0.96, 0.97, 0.95]}
    each = {(load, n): iter(values) for load in "12" for n, values in trials.items()}
    return made_run(
        Store(), lambda load, n: next(each[load, n]), cv=0, rules=THREE, conditions=("load",),
        load=(1, 2), threads=(1, 2, 4),
    )  # fmt: skip


kind("not-decided-under-a-condition", r"With load=1 it is not yet decided \(about ")(
    _undecided_under_conditions
)
kind("what-would-decide", "Where nothing is decided: ")(_undecided_under_conditions)


#: Three settings of which the greater ones seem more than 5 % better than the second, and may not
#: be so.
_SEEM_BETTER = {
    "1": [2.0, 2.1, 1.9] * 2, "2": [1.0] * 6, "4": [0.83, 1.08, 0.86, 1.08, 0.88, 0.95],
    "8": [1.08, 0.83, 0.88, 0.86, 1.08, 0.95],
}  # fmt: skip


@kind("one-of-two-is-to-be-used", r"2 threads are .* Use 2 or 4; 1 is worse\. 4 is 0\.\d+× to 1")
def _one_of_two() -> Said:
    rules = Rules(repeats_min=6, repeats_max=6)
    each = {level: iter(values) for level, values in _SEEM_BETTER.items()}
    return made_run(Store(), lambda n: next(each[n]), cv=0, rules=rules, threads=(1, 2, 4))


@kind("the-greater-is-not-shown-to-be-faster", r".* Use 2: 4 is not shown to be faster \(0\.")
def _the_smaller() -> Said:
    trials = {"1": [2.0, 2.1, 1.9] * 2, "2": [1.0] * 6, "4": [0.94, 1.02, 1.0, 1.04, 0.96, 1.0]}
    rules = Rules(repeats_min=6, repeats_max=6)
    each = {level: iter(values) for level, values in trials.items()}
    return made_run(Store(), lambda n: next(each[n]), cv=0, rules=rules, threads=(1, 2, 4))


@kind("the-smaller-uses-up-the-cpus", r".* Use 2: they use up the one CPU, so more")
def _the_smaller_at_the_cpus() -> Said:
    trials = {"1": [2.0, 2.1, 1.9] * 2, "2": [1.0] * 6, "4": [0.9, 1.03, 1.0, 1.08, 0.95, 1.0]}
    rules = Rules(repeats_min=6, repeats_max=6)
    each = {level: iter(values) for level, values in trials.items()}
    return made_run(
        Store(), lambda n: next(each[n]), cv=0, rules=rules, threads=(1, 2, 4),
        machine={"cpus_allowed": [0]},
    )  # fmt: skip


@kind("one-of-several-is-to-be-used", r"2 threads .* Use 2, 4 or 8; 1 is worse\. 4 and 8 are")
def _one_of_several() -> Said:
    each = {level: iter(values) for level, values in _SEEM_BETTER.items()}
    rules = Rules(repeats_min=6, repeats_max=6)
    return made_run(Store(), lambda n: next(each[n]), cv=0, rules=rules, threads=(1, 2, 4, 8))


@kind("undisturbed-trials-say-another", "No setting is .* By the undisturbed trials alone")
def _disagreement() -> Said:
    return unequal(HALVES)


@kind("undisturbed-trials-point-elsewhere", "No setting is .* undisturbed trials, 3 or")
def _pointing() -> Said:
    return unequal({1: {0, 1, 2}, 2: {3, 4, 5, 6}, 4: {7, 8, 9}})


@kind("in-doubt-others-as-good", "No setting is recommended: .* may be as good")
def _doubt_of_several() -> Said:
    return busy((4, 2, 1), lambda block, n: True, "steal")


def _doubt_under_conditions(
    few: Sequence[float], more: Sequence[float], threads: tuple[int, ...] = (1, 2, 4)
) -> Said:
    """Trials under two loads that all were disturbed, which take turns at these times: with one
    thread, and with more."""
    each = {
        (load, str(n)): itertools.cycle(few if n == 1 else more) for load in "12" for n in threads
    }
    return made_run(
        Store(), lambda load, n: next(each[load, n]), cv=0, rules=STEADY, conditions=("load",),
        steal=lambda spec: 10**9, load=(1, 2), threads=threads,
    )  # fmt: skip


STEADY = Rules(repeats_min=6, repeats_max=6, redo_max=0, redo_share=0.0)
ALIKE = (1.0, 1.25, 0.95)


@kind("in-doubt-under-a-condition", "With load=1: .* may be as good")
def _two_of_three_in_doubt() -> Said:
    return _doubt_under_conditions((2.0, 2.1, 1.95), ALIKE)


@kind("in-doubt-under-a-condition-one-seems-best", "With load=1: .* [Tt]he figures point to")
def _one_of_two_in_doubt() -> Said:
    return _doubt_under_conditions((2.0, 2.1, 1.95), ALIKE, (1, 2))


@kind("in-doubt-under-a-condition-all-alike", "With load=1: ")
def _all_alike_in_doubt() -> Said:
    return _doubt_under_conditions(ALIKE, ALIKE)


@kind("in-doubt-under-a-condition-many-alike", "With load=1: ")
def _many_alike_in_doubt() -> Said:
    return _doubt_under_conditions(ALIKE, ALIKE, (1, 2, 3, 4, 5, 6, 7))


@kind("in-doubt-under-a-condition-many-as-good", "With load=1: ")
def _many_as_good_in_doubt() -> Said:
    return _doubt_under_conditions((2.0, 2.1, 1.95), ALIKE, (1, 2, 3, 4, 5, 6, 7))


kind("undisturbed-trials-of-many-settings", "No setting is .* and those of 3 others: too few to")(
    lambda: busy(tuple(range(1, 8)), lambda block, n: block > 1 + (n < 7), "steal", repeats=12)
)


@kind("undisturbed-trials-point-elsewhere-under-a-condition", "With load=1: .* undisturbed")
def _pointing_under_conditions() -> Said:
    """Of two threads the trials that nothing disturbed are slow."""
    slow = {"1": (1.0, 1.0), "2": (0.5, 1.5)}

    def is_disturbed(spec: TrialSpec) -> bool:
        return int(spec.trial.split("/")[2]) % 3 > 0

    rules = Rules(repeats_min=9, repeats_max=9, redo_max=0, redo_share=0.0)
    turns = {(load, n): itertools.count() for load in "12" for n in "12"}
    return made_run(
        Store(), lambda load, n: slow[n][next(turns[load, n]) % 3 == 0], rules=rules,
        conditions=("load",), steal=lambda spec: 10**9 * is_disturbed(spec),
        load=(1, 2), threads=(1, 2),
    )  # fmt: skip


@kind("one-worker-in-doubt", "Use 2 threads. threads=1 was disturbed in 22 of 24 trials;")
def _given_back() -> Said:
    return run_with({"1": 22})


@kind("one-worker-in-doubt-best", "Use threads=1. It was disturbed in 5 of 5 trials,")
def _no_better() -> Said:
    def taken(spec: TrialSpec) -> int:
        return 200_000_000 if spec.roles[0].argv[1] == "1" else 0

    return made_run(Store(), float, steal=taken, threads=(1, 2))


@kind("several-with-one-worker-in-doubt", "Use threads=2 size=1. 2 settings with one worker were")
def _several_given_back() -> Said:
    def taken(spec: TrialSpec) -> int:
        return 10**9 if spec.roles[0].argv[1] == "1" else 0

    def seconds(n: str, size: str) -> float:
        return 4.0 * float(size) / float(n)

    return made_run(Store(), seconds, steal=taken, threads=(1, 2), size=(1, 2))


def _some_in_doubt(seconds: Sequence[float], doubted: Sequence[int]) -> Said:
    """Numbers of clients from 2 on, some of which are disturbed in each trial."""
    clients = range(2, 2 + len(seconds))

    def taken(spec: TrialSpec) -> int:
        return 10**9 if int(spec.roles[0].argv[1]) in doubted else 0

    return made_run(
        Store(), lambda n: seconds[int(n) - 2], steal=taken, rules=STEADY, clients=tuple(clients)
    )


kind("best-of-those-not-in-doubt", "Of the settings not in doubt, use 4 clients: .*next best")(
    lambda: _some_in_doubt((4.0, 1.2, 1.0, 1.3), (2,))
)
kind("few-of-those-not-in-doubt", "Of the settings not in doubt, use 4 clients; 5 is")(
    lambda: _some_in_doubt((4.0, 1.2, 1.0, 1.0), (2,))
)
kind("many-in-doubt-seem-worse", r"Of the settings not in doubt, .* 7 others seem worse")(
    lambda: _some_in_doubt((4.0,) * 7 + (1.0, 1.3), range(2, 9))
)
kind("greater-in-doubt-may-be-as-good", r"Of the .* use 3 clients.* 4 is in doubt, and may be")(
    lambda: _some_in_doubt((2.0, 1.0, 1.0), (4,))
)
kind("in-doubt-seems-best", "No setting is .* Of the settings not in doubt, 3 clients are best: ")(
    lambda: _some_in_doubt((4.0, 1.2, 1.0, 1.3), (4,))
)
kind("in-doubt-seems-best-of-several", "No setting is .* Of the settings not in doubt, 3 and 5 ")(
    lambda: _some_in_doubt((4.0, 1.2, 1.0, 1.2), (4,))
)


kind("verdict-by-cpu-time", r"By CPU time version=new is .* doubt\.")(lambda: versions(1, 1.05))
kind("verdict-by-cpu-time-of-all-pairs", r"By CPU time version=new is .* too few pairs were quiet")(
    lambda: versions(1, 1.04, quiet=6)
)
kind("same-by-cpu-time", "By CPU time version=new is as fast as")(lambda: versions(3, 1.0))


@kind("many-conditions-in-doubt", r"Under \d of 8 conditions the greatest speed-up is in doubt")
def _many_in_doubt() -> Said:
    return made_run(
        Store(), lambda load, n: 1.0 / int(n), conditions=("load",), steal=lambda spec: 10**9,
        load=tuple(range(1, 9)), threads=(1, 2),
    )  # fmt: skip


@kind("many-conditions-without-a-gain", r"Under \d of 8 conditions no cell is")
def _many_without() -> Said:
    return _many()


@kind("no-useful-interval", r".*at least .*× as fast as")
def _at_least() -> Said:
    values = {"1": iter((8.0, 12.0, 40.0)), "2": iter((1.0, 1.1, 0.9))}
    return made_run(Store(), lambda n: next(values[n]), cv=0, rules=THREE, threads=(1, 2))


@kind("no-interval-that-tells", r".*\(too few trials for a useful interval\)")
def _useless() -> Said:
    values = {"1": iter((1.0, 40.0, 2.0)), "2": iter((1.0, 1.1, 0.9))}
    return made_run(Store(), lambda n: next(values[n]), cv=0, rules=THREE, threads=(1, 2))


@kind("smaller-may-be-as-good", ".* Use .* may be as good")
def _passed() -> Said:
    """Two is not told from the best, and not shown to be as good; four is."""
    cv = {"1": 0.001, "2": 0.05, "4": 0.001, "8": 0.001}
    draw = random.Random(0)
    centre = {"1": 1.0, "2": 0.54, "4": 0.5, "8": 0.5}
    return made_run(
        Store(), lambda n: centre[n] * draw.lognormvariate(0, cv[n]), cv=0, threads=(1, 2, 4, 8)
    )


@kind("one-trial", r".*\(one trial, no interval\)")
def _one_trial() -> Said:
    one = Rules(repeats_min=1, repeats_max=1)
    return made_run(Store(), halved, rules=one, steal=lambda spec: 10**9, threads=(1, 2))


@kind("nothing-measured", "Nothing was measured")
def _nothing() -> Said:
    engine = FakeEngine(kind_of=lambda spec: "program_failed")
    return stored(small_study(THREE, threads=(1, 2)), engine)


@kind("base-in-doubt", "Whether mode=b or mode=a is faster cannot be said")
def _base_in_doubt() -> Said:
    return made_run(
        Store(), lambda mode, n: 1.0, base={"mode": "a"}, steal=lambda spec: 10**9,
        mode=("a", "b"), threads=(1, 2, 4),
    )  # fmt: skip


def _of_one_other(seconds: float, cv: float = 0.01, **more: Any) -> Callable[[], Said]:
    return lambda: made_run(
        Store(), lambda mode: seconds if mode == "b" else 1.0, base={"mode": "a"}, cv=cv,
        mode=("a", "b"), **more,
    )  # fmt: skip


kind("one-other-is-faster", r"mode=b is \S+× \[")(_of_one_other(0.5))
kind("one-other-is-as-fast", "mode=b is as fast as mode=a")(_of_one_other(1.0, cv=0.001))
kind("one-other-unknown", "Whether mode=b or mode=a is faster cannot be said: ")(
    _of_one_other(1.0, cv=0.2)
)
kind("one-other-without-a-useful-interval", "Whether mode=b .*too few trials")(
    _of_one_other(0.5, cv=1.5, rules=THREE)
)
kind("one-other-in-doubt", "mode=b seems .* slower than mode=a .* in doubt: the machine was not")(
    _of_one_other(1.0, steal=lambda spec: 10**9)
)
kind(
    "one-other-seems-twice-as-fast", "mode=b seems 2.* as fast as mode=a .* in doubt: the machine"
)(_of_one_other(0.5, steal=lambda spec: 10**9))


@kind("faster-in-some", "mode=b is faster than mode=a in 1 of 3")
def _faster_in_some() -> Said:
    return made_run(
        Store(), lambda mode, n: 0.5 if (mode, n) == ("b", "4") else 1.0, base={"mode": "a"},
        cv=0.03, mode=("a", "b"), threads=(1, 2, 4),
    )  # fmt: skip


@kind("depends-on-an-assumption", "Claim: ")
def _assumption() -> Said:
    return list(dependence_sentences(found_dependences()))


@kind("depends-on-no-assumption", "Claim: .* no assumption changes it")
def _no_assumption() -> Said:
    depth = [item for item in found_dependences() if item.factor == "depth"]
    return list(dependence_sentences(depth))


# -- by what settings are compared ------------------------------------------------------------


def _case(name: str) -> Callable[[], Said]:
    case = next(case for case in meant.CASES if case.name == name)
    return lambda: meant.run_of(case, Store())


kind("fixed-time", "The program seems to run for a fixed time.* Say whether")(
    _case("fixed time, no direction")
)
kind("fixed-time-refused", "No setting is recommended: the program seems to run")(
    _case("fixed time, no direction")
)
kind(
    "fixed-time-compared-by-a-figure", "The program seems to run for a fixed time .*, so settings"
)(_case("fixed time, the latency alone"))
kind(
    "latency-by-wrk-too-low",
    "The latency by wrk contradicts Little's law in 5 of 5 cells: .* connect anew",
)(lambda: run_of_wrk(0.5))
kind(
    "latency-by-wrk-too-high",
    "The latency by wrk contradicts Little's law in 5 of 5 cells: .* it did not send",
)(lambda: run_of_wrk(1.5))
kind(
    "responses-of-different-sizes", "The responses differ in size: 1,022 bytes in the mean with n=1"
)(lambda: run_of_sizes(0.25))
kind("measuring-slows-switches", "target switched 30,000 times a second with threads=2")(
    lambda: notes_at(2000, 30_000)
)
kind("nothing-is-read", "Wall time is the same in all cells. If")(
    _case("fixed time, and nothing is read")
)
kind("unequal-work", r"The cells did different amounts of work")(
    _case("the work grows, its rate printed")
)
kind("other-numbers-of-operations", "The cells did different numbers of operations")(
    lambda: meant.run_of(
        Case(
            "operations", lambda n: 2.0, lambda n, wall, noise: f"done {n * 1000}",
            {"extracts": (r"operations=done (\d+)",), "primary": "wall_seconds"},
        ),
        Store(),
    )
)  # fmt: skip
kind("growing-work", "The work seems to grow with n")(_case("the work grows on enough CPUs"))
kind("growing-work-refused", "No setting is recommended: the work seems to grow")(
    _case("the work grows on enough CPUs")
)
kind("work-that-scales", "Each of n counts as one unit")(_case("the work grows, and that is said"))


def _unread_tool() -> Said:
    study = sweep_study(["wrk", "-d2s", "{n}"], [("n", meant.CLIENTS)], 2)
    return meant.run_study(study, Case("wrk", lambda n: 2.0), Store())


kind("unread-tool", "The tool wrk seems to run for a fixed time")(_unread_tool)
kind("unread-tool-refused", "No setting is recommended: the tool wrk")(_unread_tool)


def _score(**changes: Any) -> Callable[[], Said]:
    case = Case(
        "score", lambda n: 2.0 / n, lambda n, wall, noise: f"score {n}\n",
        {"extracts": (r"score=score (\d+)",)},
    )  # fmt: skip
    study = msgspec.structs.replace(
        meant.study_of(case), work_amount="fixed", indicators=(Indicator(name="score"),), **changes
    )
    return lambda: meant.run_study(study, case, Store())


kind("undirected", "No setting is recommended: whether higher or lower score")(_score())
kind("undirected-in-a-file", "No setting is recommended: whether higher or lower score")(
    _score(name="filed")
)


@kind("seems-in-doubt", r".* in doubt: the machine was not quiet\.$")
def _seems() -> Said:
    """A speed-up by wall time, in a run whose figure has no direction."""
    engine = FakeEngine(stdout="score 5", steal_of=lambda spec: 10**9)
    return stored(_undirected_study(), engine)


def _undirected_study() -> Study:
    study = sweep_study(["true", "{n}"], [("n", "1,2")], 2, extracts=(r"score=score (\d+)",))
    return msgspec.structs.replace(
        study, indicators=(Indicator(name="score"),), work_amount="fixed"
    )


@kind(
    "asked-for-a-fixed-time",
    "No setting is recommended by wall time: .* so it compares no settings",
)
def _asked_for_a_fixed_time() -> Said:
    store = Store()
    case = next(case for case in meant.CASES if case.name == "fixed time")
    run = store.find_run(meant.run_of(case, store).run.id)
    return trial_findings_of(store, run, "wall_seconds")


@kind("undirected-before-the-run", "no setting will be recommended")
def _undirected_before() -> Said:
    said = undirected_before(_undirected_study(), "quick", is_sweep=True)
    return [Finding(kind="note", sentence=said)]


# -- warnings ---------------------------------------------------------------------------------


@kind("load-failed", "Failed responses: .* This run says nothing")
def _all_failed() -> Said:
    return _failed(dict.fromkeys(meant.TPS, 1.0))


@kind("load-failed-in-a-setting", "Failed responses: .* This setting is not compared")
def _one_failed() -> Said:
    return _failed({8: 0.5})


@kind("load-failed-in-settings", "Failed responses: .* These settings are not compared")
def _some_failed() -> Said:
    return _failed({4: 0.5, 8: 0.5})


@kind("load-failed-a-little", r"Failed responses: .* \(0\.\d+ %\)")
def _little_failed() -> Said:
    return _failed({8: 0.002})


@kind("load-failed-that-may-be-expected", "Load.errors: .* if the study expects that")
def _may_be_expected() -> Said:
    study = parse_study(f'{FILE}{LOAD}\n[[indicators]]\nuse = ["load.errors"]\n', 2, "here")
    load = FailedLoad(0, "load.errors", 40, 100, 0.4)
    return failure_sentences(make_plan(study, "quick", 1), [load], ())


def _failed(share_of: dict[int, float]) -> Said:
    case, store = wrk(share_of), Store()
    with suppress(RunError, RunInterruptedError):
        return meant.run_of(case, store)
    return trial_findings_of(store, store.find_run("last"))


@kind("left-out", "Not measured: threads=8")
def _left_out() -> Said:
    missing = LeftOut(
        factor="threads", level=8, why="This machine grants 2 CPUs", remedy="try one with 8"
    )
    return stored(
        small_study(THREE, threads=(1, 2)),
        change=lambda head: msgspec.structs.replace(head, left_out=(missing,)),
    )


@kind("nothing-uses", "Nothing uses {procs}")
def _unused() -> Said:
    study = small_study(THREE, procs=(1, 2))
    role = msgspec.structs.replace(study.roles[0], command=("true",))
    return stored(msgspec.structs.replace(study, roles=(role,)))


class Stopping(FakeEngine):
    """Is stopped within the third trial."""

    def run(self, spec: TrialSpec) -> bytes:
        if len(self.specs) == 2:
            raise KeyboardInterrupt
        return super().run(spec)


@kind("interrupted", "This run was interrupted: ")
def _interrupted() -> Said:
    return stored(small_study(THREE, threads=(1, 2)), Stopping())


@kind("of-two-programs", r"/gone/server \(role target\) changed before .* after 2 trials: the")
def _of_two_programs() -> Said:
    store = Store()
    head = new_head(small_study(THREE, threads=(1, 2)), "normal", 1, "concurve sweep …")
    with suppress(RunInterruptedError):
        Runner(head, store, Stopping(), clock=FakeClock()).start()
    facts = {"target": {"path": "/gone/server", "sha256": "0"}}
    head = msgspec.structs.replace(head, programs=facts)
    Runner(head, store, FakeEngine(), clock=FakeClock()).resume()
    return trial_findings_of(store, store.find_run(head.id))


@kind("goes-on", "This run goes on: ")
def _goes_on() -> Said:
    store = Store()
    head = new_head(small_study(THREE, threads=(1, 2)), "normal", 1, "concurve sweep …")
    with suppress(RunError, RunInterruptedError):
        Runner(head, store, Stopping(), clock=FakeClock()).start()
    store.set_state(head.id, "running", "")
    return trial_findings_of(store, store.find_run(head.id))


@kind("failed", "This run failed: .* start a new run; concurve resume .* as it is stored")
def _run_failed() -> Said:
    return stored(small_study(THREE, threads=(1, 2)), FakeEngine(kind_of=lambda s: "not_ready"))


@kind("failed-with-an-attached-process", "This run failed: .* A new run can attach")
def _failed_attached() -> Said:
    store = Store()
    head = new_head(small_study(THREE, threads=(1, 2)), "normal", 1, "concurve sweep …")
    with suppress(RunInterruptedError):
        Runner(head, store, Stopping(), clock=FakeClock()).start()
    roles = (msgspec.structs.replace(head.study.roles[0], attach="1"),)
    study = msgspec.structs.replace(head.study, roles=roles)
    store.set_head(head.id, msgspec.structs.replace(head, study=study).row().head)
    store.set_state(head.id, "failed", "the process ended")
    return trial_findings_of(store, store.find_run(head.id))


@kind("not-measured-in-time", "Not measured within the time allowance")
def _not_in_time() -> Said:
    rules = Rules(repeats_min=3, repeats_max=3, time_allowed_seconds=1.2)
    return stored(small_study(rules, threads=(1, 2, 4)), step=0.5)


@kind("base-failed", "There is no speed-up: its base, threads=0, failed")
def _base_failed() -> Said:
    """Two settings are compared with each other, and none with the base that is asked for."""
    return without_zero(msgspec.structs.replace(_ZERO_TO_TWO, base={"threads": 0}))


_ZERO_TO_TWO = small_study(THREE, threads=(0, 1, 2))


def without_zero(study: Study, of: int = 1, more: str = "") -> Report:
    """A run of settings without threads, which fail (with the level ``more`` of another factor, if
    there is one), and with some."""

    def is_failing(argv: Sequence[str]) -> bool:
        return argv[of] == "0" and (not more or more in argv)

    engine = FakeEngine(
        lambda spec, rng: (
            (2.0 if spec.roles[0].argv[of] == "1" else 1.0) * rng.lognormvariate(0, 0.01)
        ),
        kind_of=lambda spec: "program_failed" if is_failing(spec.roles[0].argv) else "ok",
    )
    return figures_alone(stored(study, engine))


@kind("another-base", "threads=0 failed, so speed-ups are against threads=1")
def _another_base() -> Said:
    return without_zero(_ZERO_TO_TWO)


@kind(
    "another-base-in-some-settings", "threads=0 failed in 1 of 2 settings of the other factors, so"
)
def _another_base_in_some() -> Said:
    return without_zero(small_study(THREE, load=("a", "b"), threads=(0, 1, 2)), 2, "a")


@kind("skipped", "threads=2 was skipped")
@kind("nothing-can-be-compared", "Nothing can be compared: threads=2 failed")
def _skipped() -> Said:
    engine = FakeEngine(kind_of=lambda s: "timed_out" if s.roles[0].argv[1] == "2" else "ok")
    return stored(small_study(THREE, threads=(1, 2)), engine)


@kind("refused-lines", "In the first trial 2 lines of the report channel were refused")
def _refused_lines() -> Said:
    refused = [ReportError(line=line, message="no JSON", excerpt="rps 12") for line in (2, 5)]

    def change(_: TrialSpec, record: dict[str, Any]) -> None:
        record["roles"][0]["report_errors"] = as_json(refused)

    return stored(small_study(THREE, threads=(1, 2)), Recording(change))


@kind("hook-that-went-wrong", "The hook prepare printed")
def _hook() -> Said:
    printed = Output(bytes=18, head="ERR unknown option")

    def change(_: TrialSpec, record: dict[str, Any]) -> None:
        record["hooks"] = as_json([HookRecord(hook="prepare", stderr=printed)])

    return stored(small_study(THREE, threads=(1, 2)), Recording(change))


@kind("hook-that-set-no-level", "threads was probably not set")
def _hook_of_a_level() -> Said:
    printed = Output(bytes=18, head="ERR unknown option")

    def change(_: TrialSpec, record: dict[str, Any]) -> None:
        record["hooks"] = as_json([HookRecord(hook="prepare", stderr=printed)])

    study = small_study(THREE, threads=(1, 2))
    hooks = Hooks(prepare="set threads {threads}")
    roles = (Role(name="target", command=("true",)),)
    return stored(msgspec.structs.replace(study, hooks=hooks, roles=roles), Recording(change))


def _warning(
    warned: Callable[[str], Sequence[str]], more: tuple[str, ...] = (), **factors: tuple[int, ...]
) -> Said:
    """A run whose program warns, by the level of its first factor."""

    def change(spec: TrialSpec, record: dict[str, Any]) -> None:
        level = spec.roles[0].argv[1]
        record["roles"][0]["facts"] = {"warnings": list(warned(level))}
        record["roles"] += [dict(record["roles"][0], name=name, facts={}) for name in more]

    study = small_study(THREE, **(factors or {"threads": (1, 2)}))
    extra = tuple(Role(name=name, command=("true",)) for name in more)
    return stored(msgspec.structs.replace(study, roles=(*study.roles, *extra)), Recording(change))


def _warned_once() -> Said:
    def change(spec: TrialSpec, record: dict[str, Any]) -> None:
        search = {"outcome": "found", "warnings": ["a client thread used 97 % of a CPU"]}
        record["roles"][0]["facts"] = {"slo": search}

    once = Rules(repeats_min=1, repeats_max=1)
    return stored(small_study(once, threads=(1,)), Recording(change))


kind("warned-everywhere", "The program warns in all 6 trials: ")(
    lambda: _warning(lambda n: ["the clock is coarse."])
)
kind("warned-in-a-cell", r"The program warns in 3 of 6 trials \(threads=2\): ")(
    lambda: _warning(lambda n: ["the clock is coarse"] if n == "2" else [])
)
kind("warned-in-many-cells", r"The program warns in 12 of 15 trials \(4 of 5 cells\): ")(
    lambda: _warning(lambda n: ["the clock is coarse"] if n != "1" else [], threads=(1, 2, 3, 4, 5))
)
kind("warned-with-other-numbers", "The program warns in all 6 trials, for example: .*--scale 2")(
    lambda: _warning(lambda n: [f"more sessions than branches: --scale {n} has one for each"])
)
kind("a-role-warned", "Role target warns in all 6 trials: ")(
    lambda: _warning(lambda n: ["the clock is coarse"], ("server",))
)


def _warned_in_some() -> Said:
    with patch("concurve.analysis.run.reported.RECORDS_MAX", 4):
        return _warning(lambda n: ["the clock is coarse"])


kind("warned-in-those-that-were-read", "The program warns in all 4 trials that were read: ")(
    _warned_in_some
)
kind("more-kinds-of-warnings", "And 3 more kinds of warnings")(
    lambda: _warning(lambda n: [f"no {word}" for word in "abcdefgh"])
)
kind("a-long-warning", "The program warns in all 6 trials: .* …")(
    lambda: _warning(lambda n: ["and" * 1000])
)


def attached(hooks: Hooks | None = None) -> Said:
    """A run whose attached unit was restarted after four of its trials."""
    seen = 0

    def change(_: TrialSpec, record: dict[str, Any]) -> None:
        nonlocal seen
        seen += 1
        record["roles"] = [
            dict(record["roles"][0], name=name, pid=pid)
            for name, pid in (("target", 1000), ("server", 2000 + seen // 5))
        ]

    study = small_study(THREE, threads=(1, 2))
    server = Role(name="server", command=(), attach="unit:redis", attached=Attach(cgroup="/c"))
    study = msgspec.structs.replace(study, roles=(*study.roles, server), hooks=hooks or study.hooks)
    with patch("concurve.measuring.heads.with_attached", lambda study: study):
        return stored(study, Recording(change))


kind(
    "a-unit-that-was-restarted",
    r"Role server \(unit:redis\) was restarted .* 2000 in 4 trials, .* 2001, in 2 trials",
)(attached)
kind("warned-in-the-only-trial", "The program warns in its only trial: ")(_warned_once)


def unsteady(at_seconds: float, *, begins: bool) -> dict[str, object]:
    """The facts of a load whose level changed then, at the end of its beginning or later."""
    at = f"{round(1000 * at_seconds)} ms"
    text = f"from {at} on: the rate rose by 54 % after {at}"
    warned = f"steady only {text}: the figures are those of the whole measured time; --warm-up …"
    if not begins:
        text = f"no steady state: the rate fell by 18 % after {at}"
        warned = f"{text}: the figures are a mixture; look at the server at that time"
    fact = {"is_steady": begins, "at_seconds": at_seconds, "text": text}
    return {"steady_state": fact, "warnings": [warned]}


def _unsteady(later: str = "", first: str = "1") -> Said:
    """A load whose beginning differs in each trial of a level from ``first`` on; at the level
    ``later`` it never was steady."""
    number = itertools.count(1)

    def change(spec: TrialSpec, record: dict[str, Any]) -> None:
        level = spec.roles[0].argv[1]
        if level >= first:
            facts = unsteady(0.0123 * next(number), begins=level != later)
            record["roles"][0]["facts"] = facts

    return stored(small_study(THREE, threads=(1, 2)), Recording(change))


kind(
    "unsteady-beginnings",
    r"The program was not steady all the time in all 6 trials: --warm-up 74ms leaves .* out\.$",
)(_unsteady)
kind(
    "unsteady-later",
    r"The program was not steady all the time in 3 of 6 trials \(threads=2\): no level was kept",
)(lambda: _unsteady("2", "2"))
kind(
    "unsteady-in-both-ways",
    r"The program was not steady all the time in all 6 trials: --warm-up \d+ms leaves the "
    r"beginning out of 3; in 3 no level was kept \(such as: the rate fell by 18 % after ",
)(lambda: _unsteady("2"))


@kind("imprecise-without-an-interval", r"\d of \d cells missed the precision.*want of trials")
def _no_interval() -> Said:
    rules = Rules(repeats_min=3, repeats_max=8, precision=0.02, time_allowed_seconds=1.2)
    return stored(small_study(rules, threads=(1, 2)), step=0.5)


@kind("imprecise-by-the-clock", r".*The step of the clock")
def _coarse() -> Said:
    rules = Rules(repeats_min=5, repeats_max=8, precision=0.02)
    reads = iter((0.02, 0.03) * 100)
    return made_run(Store(), lambda n: next(reads), cv=0, rules=rules, n=(1, 2))


@kind("it-looks-whether-it-is-done", "The program seems to look only every 250 ms")
def _looks() -> Said:
    """Work of 0.6 s with 2 threads, and a look every 0.25 s."""
    return looking_run(0.25)


kind("cores-are-shared", "The speed of the CPUs changed: .* seems to share its cores")(
    lambda: run_on(OnACore(1.6))
)
kind("the-clock-changes", "The speed of the CPUs changed: .* the clock frequency changes")(
    lambda: run_on(OnACore(1.6, clock=1.6))
)


# -- the shape of the trials ------------------------------------------------------------------


def odd_trials(cells: int) -> Said:
    """Eight trials, of which one is odd in so many cells."""
    counts: Counter[str] = Counter()

    def seconds(n: str) -> float:
        counts[n] += 1
        return 2.0 if int(n) <= cells and counts[n] == 5 else 1.0 + counts[n] % 4 / 100

    rules = Rules(repeats_min=8, repeats_max=8)
    return made_run(Store(), seconds, cv=0, rules=rules, n=(1, 2, 3))


kind("two-levels", r"threads=4 \(‡\) has two levels: ")(
    lambda: shaped(lambda n, block: 1.15 if n == 4 and block * 7 % 25 < 12 else 1.0)
)
kind("shapes-by-chance", "Two levels or trials far off")(
    lambda: shaped(lambda n, block: 1.15 if n == 4 and block * 7 % 25 < 12 else 1.0)
)
kind("far-worse", r"threads=1 \(‡\) has 2 outliers that are worse")(
    lambda: shaped(lambda n, block: {5: 1.5, 17: 2.5}.get(block, 1.0) if n == 1 else 1.0)
)
kind("far-better", r"threads=1 \(‡\) has 2 outliers that are better")(
    lambda: shaped(lambda n, block: {5: 0.5, 17: 0.55}.get(block, 1.0) if n == 1 else 1.0)
)
kind("cells-far-worse", r"2 cells \(‡\) have outliers that are worse than their other trials: ")(
    lambda: shaped(lambda n, block: {5: 1.5, 17: 2.5}.get(block, 1.0) if n < 4 else 1.0)
)
kind("one-trial-makes-an-interval", r"Trial \d of n=1 \(\S+ s\) alone makes its interval wide: ")(
    lambda: odd_trials(1)
)
kind("trials-that-make-intervals", r"In 2 cells a trial alone makes the interval wide: ")(
    lambda: odd_trials(2)
)
kind("speed-ups-that-drift", r"The speed-ups of 2 cells \(‡\) drift from trial to trial")(
    lambda: shaped(lambda n, block: 1.15 if n > 1 and block // 12 % 2 else 1.0)
)
kind("speed-up-that-drifts", r"The speed-up of threads=4 \(‡\) drifts")(
    lambda: shaped(lambda n, block: 1.15 if n == 4 and block // 12 % 2 else 1.0)
)


@kind("speed-up-alike-by-chance", r"The speed-up of n=4 \(‡\) is alike in neighbouring trials")
def _alike_by_chance() -> Said:
    """The dependence of one of two speed-ups, at 3.7 %, is beyond 5 % and not beyond 2.5 %."""
    factors = [1.025, 1.042, 1.082, 1.021, 1.015, 0.961, 0.993, 1.066, 1.016, 0.996, 1.009, 0.943]
    each = iter(factors)
    rules = Rules(repeats_min=len(factors), repeats_max=len(factors))
    return made_run(
        Store(), lambda n: next(each) if n == "4" else 1.0, cv=0, rules=rules, n=(1, 2, 4)
    )


kind("the-machine-changed", "From block 15 on")(
    lambda: shaped(lambda n, block: (1 if block < 14 else 1.08) / n)
)
kind("drifted", "Wall time drifted in all cells alike")(
    lambda: shaped(lambda n, block: (1 - 0.15 * 2.0 ** (-block / 5)) / n)
)
kind("changed-not-alike", "Wall time changed during this run, and not in all")(
    lambda: shaped(lambda n, block: 1.08 if n > 1 and block >= 14 else 1.0)
)


@kind("ratios-not-shown-to-hold", "Wall time changed in the course of this run")
def _not_shown() -> Said:
    def hit(threads: int, block: int) -> float:
        noise = random.Random(f"{threads}/{block}").lognormvariate(0, 0.12)
        return (1 + 0.25 * math.sin(block * math.pi / 8)) * noise / threads

    return shaped(hit)


@kind("cells-with-two-levels", r"5 cells \(‡\) have two levels: .* and 2 more\.")
def _more_levels() -> Said:
    counts: Counter[str] = Counter()

    def seconds(n: str) -> float:
        counts[n] += 1
        return 1.15 if counts[n] * 7 % 25 < 12 else 1.0

    rules = Rules(repeats_min=25, repeats_max=25)
    return made_run(Store(), seconds, rules=rules, threads=(1, 2, 3, 4, 5))


# -- hosts ------------------------------------------------------------------------------------


def _over_hosts(slower: Slower, **more: Any) -> Callable[[], Said]:
    def make() -> Said:
        with tempfile.TemporaryDirectory() as folder:
            return measured(Path(folder), slower, **more)

    return make


kind("hosts-not-alike", "The hosts rack1 and rack2 are not alike")(
    _over_hosts(lambda host, n: 1.2 if host == "rack2" else 1.0)
)
kind("hosts-not-alike-for-one-setting", "The hosts rack1 and rack2 are not alike: wall time of")(
    _over_hosts(lambda host, n: 1.5 if host == "rack2" and n == 4 else 1.0)
)
kind("hosts-not-alike-so-no-setting", "No setting is recommended: the hosts are not alike")(
    _over_hosts(lambda host, n: 1.2 if host == "rack2" else 1.0)
)
kind("hosts-not-tested", "Each block ran on one of .* not tested")(
    _over_hosts(lambda host, n: 1.0, blocks=3, hosts=3)
)
kind("hosts-of-few-blocks", "Each block ran on one of .* too few to say")(
    _over_hosts(lambda host, n: 1.0, blocks=4, cv=0.6)
)
kind("hosts-alike", "Each block ran on one of .* No relevant difference")(
    _over_hosts(lambda host, n: 1.0)
)


# -- notes ------------------------------------------------------------------------------------


@kind("few-trials", "Intervals of fewer than 5 trials")
def _few() -> Said:
    return made_run(Store(), halved, rules=THREE, threads=(1, 2))


@kind("start-up", "Times are those of the phase 'measure'")
def _start_up() -> Said:
    def change(_: TrialSpec, record: dict[str, Any]) -> None:
        role = record["roles"][0]
        phase = PhaseRecord(
            name="measure", begin_ns=role["wall_ns"] // 2, wall_ns=role["wall_ns"] // 2
        )
        role["phases"] = as_json([phase])

    return stored(small_study(THREE, threads=(1, 2)), Recording(change))


@kind("note-on-speed-up-over-a-base", "Speed-up is by wall time, against mode=a")
def _note_on_base() -> Said:
    return _base()


@kind("intervals-of-all-speed-ups", r"The intervals of the answer hold for both speed-ups")
def _together() -> Said:
    return made_run(Store(), halved, threads=(1, 2, 4))

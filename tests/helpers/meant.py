"""Programs of known behaviour as a user would sweep them, and the answer that each must get.

These cases judge which figure a setting is recommended by. A case names the true wall time, the
true CPU time and the output of a program at each level, the options of ``concurve sweep``, and
either the levels of which one must be recommended, or what the refusal must name. Levels that are
equally good within the noise are all right answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Study
from concurve.definition.study_line import sweep_study
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, record_of

#: What pgbench measured at these numbers of clients in two seconds each.
TPS = {1: 39_000, 2: 44_000, 4: 60_500, 8: 64_100, 16: 59_800}
CLIENTS = "1,2,4,8,16"


class Case(NamedTuple):
    """A program, the options of its sweep, and the answer.

    ``wall`` and ``cpu`` give seconds at a level (``cpu`` of ``None``: the wall time), ``prints``
    the output from a level, the measured wall time, and a factor of noise around 1. ``wall_cv`` is
    the relative noise of the wall time, ``figure_cv`` that of what is printed. ``run``: one of
    these levels must be recommended; or nothing, and the refusal names all of ``says``.
    """

    name: str
    wall: Callable[[int], float]
    prints: Callable[[int, float, float], str] = lambda n, wall, noise: ""
    options: Mapping[str, Any] = {}
    run: tuple[int, ...] = ()
    says: tuple[str, ...] = ()
    levels: str = CLIENTS
    cpu: Callable[[int, float], float] | None = None
    wall_cv: float = 0.001
    figure_cv: float = 0.01


def _tps(n: int, _: float, noise: float) -> str:
    return f"latency average = {n / TPS[n] * 1e3 / noise:.4f} ms\ntps = {TPS[n] * noise:.1f}\n"


#: Where a small gain is reached, as a share of it.
REACHED = {1: 0.0, 2: 0.4, 4: 0.8, 8: 1.0, 16: 0.5}


def _gains(share: float) -> Callable[[int, float, float], str]:
    """A rate that eight clients raise by this share."""
    return lambda n, wall, noise: f"tps = {60_000 * (1 + share * REACHED[n]) * noise:.1f}\n"


def _gains_little(n: int) -> float:
    return 1 - 0.03 * REACHED[n]


def _amdahl(n: int) -> float:
    return 0.2 + 1.8 / n


DIRECTED = {"extracts": (r"tps=tps = ([0-9.]+):1/s:higher",)}
UNDIRECTED = {"extracts": (r"tps=tps = ([0-9.]+):1/s",)}
REMEDY = ("--extract 'tps=tps = ([0-9.]+):1/s:higher'", "--best-by tps:higher")

CASES = (
    # The program runs for a fixed time, and prints what it did in it.
    Case("fixed time", lambda n: 2.0, _tps, DIRECTED, run=(8,)),
    Case("fixed time, no direction", lambda n: 2.0, _tps, UNDIRECTED, says=REMEDY),
    Case("fixed time, no unit either", lambda n: 2.0, _tps,
         {"extracts": (r"score=tps = ([0-9.]+)",)},
         says=(r"--extract 'score=tps = ([0-9.]+)::higher'", "--best-by score:higher")),
    Case("fixed time, and nothing is read", lambda n: 2.0, _tps, run=(1,),
         says=("prints how much it did, have that read: --extract",)),
    Case("fixed time and a start that grows", lambda n: 2.0 + 0.003 * n, _tps, DIRECTED, run=(8,)),
    Case("a start that grows, no direction", lambda n: 2.0 + 0.003 * n, _tps, UNDIRECTED,
         says=REMEDY),
    Case("a start of an eighth of the time", lambda n: 2.0 + 0.016 * n, _tps, UNDIRECTED,
         says=REMEDY),
    Case("fixed time on a noisy machine", lambda n: 2.0, _tps, UNDIRECTED, says=REMEDY,
         wall_cv=0.02, figure_cv=0.05),
    Case("fixed time on a busy machine, a score", lambda n: 2.0, _tps,
         {"extracts": (r"score=tps = ([0-9.]+)",)}, says=("--best-by score:higher",),
         wall_cv=0.08),
    Case("fixed work that scales on a busy machine, a score", _amdahl,
         lambda n, wall, noise: f"score {100 * n}\n", {"extracts": (r"score=score ([0-9.]+)",)},
         levels="1,2,4,8", run=(4, 8), wall_cv=0.08),
    Case("fixed time, the latency alone", lambda n: 2.0, _tps,
         {"extracts": (r"latency=average = ([0-9.]+) ms:ms:lower",)}, run=(1,)),
    Case("fixed time, the wall time asked for", lambda n: 2.0, _tps,
         {**UNDIRECTED, "primary": "wall_seconds"}, says=REMEDY),
    Case("fixed time, operations extracted", lambda n: 2.0,
         lambda n, wall, noise: f"done {2 * TPS[n] * noise:.0f}\n",
         {"extracts": (r"operations=done (\d+)",)}, run=(8,)),
    # What it did differs by little, and the time is the same to a tenth of a percent.
    *(Case(f"fixed time, a {kind} that moves by {share:.0%}", lambda n: 2.0, _gains(share),
           {"extracts": (pattern,)}, says=(f"--best-by {kind}:higher",), figure_cv=0.003)
      for share in (0.03, 0.05, 0.08)
      for kind, pattern in (("tps", r"tps=tps = ([0-9.]+)"), ("score", r"score=tps = ([0-9.]+)"))),
    *(Case(f"fixed time, a rate that is known to move by {share:.0%}", lambda n: 2.0,
           _gains(share), {**DIRECTED, "primary": "wall_seconds"}, run=(4, 8), figure_cv=0.003)
      for share in (0.03, 0.05, 0.08)),
    # The work is fixed: wall time says it.
    *(Case(f"fixed work that scales a little, {kind}", _gains_little, prints,
           {"extracts": (r"figure=figure ([0-9.]+)" + unit,)}, run=(4, 8), figure_cv=0.003)
      for kind, unit, prints in (
          ("its rate printed", ":1/s", lambda n, wall, noise: f"figure {1e6 / wall:.0f}\n"),
          ("its rate without the start", ":1/s",
           lambda n, wall, noise: f"figure {1e6 / (wall - 0.5):.0f}\n"),
          ("a score of it", "", lambda n, wall, noise: f"figure {1e3 / wall:.2f}\n"),
          ("a noisy score", "", lambda n, wall, noise: f"figure {1e3 * noise:.2f}\n"))),
    Case("fixed work that does not scale, a noisy score", lambda n: 1.0,
         lambda n, wall, noise: f"score {100 * noise:.2f}\n",
         {"extracts": (r"score=score ([0-9.]+)",)}, run=(1,), figure_cv=0.02),
    Case("fixed work that scales", _amdahl, run=(16,)),
    Case("fixed work, its rate printed without a direction", _amdahl,
         lambda n, wall, noise: f"rate {1e6 / wall:.0f}\n",
         {"extracts": (r"rate=rate (\d+):1/s",)}, run=(16,), wall_cv=0.01),
    Case("fixed work that scales a little, its rate printed", lambda n: 1 - 0.01 * (n - 1) / 3,
         lambda n, wall, noise: f"rate {1e6 / wall:.0f}\n",
         {"extracts": (r"rate=rate (\d+):1/s",)}, run=(16,)),
    Case("fixed work that scales, its memory printed", _amdahl,
         lambda n, wall, noise: f"peak {100 + 50 * n} MB\n",
         {"extracts": (r"memory=peak (\d+) MB:MB",)}, run=(16,)),
    Case("fixed work that does not scale", lambda n: 1.0,
         lambda n, wall, noise: f"rate {1e6 / wall:.0f}\n",
         {"extracts": (r"rate=rate (\d+):1/s",)}, run=(1,), wall_cv=0.01),
    Case("fixed work that becomes slower", lambda n: 1 + 0.1 * n, run=(1,)),
    Case("fixed work, operations extracted", _amdahl,
         lambda n, wall, noise: "done 1000\n", {"extracts": (r"operations=done (\d+)",)},
         run=(16,)),
    # Each worker brings its own work.
    Case("the work grows on enough CPUs", lambda n: 1.0, levels="1,2,4",
         cpu=lambda n, wall: n * 1.0, says=("--work scales", "--work fixed"), wall_cv=0.01),
    Case("the work grows beyond the CPUs", lambda n: max(1.0, n / 2), levels="1,2,4,8",
         cpu=lambda n, wall: n * 1.0, says=("--work scales", "--work fixed"), wall_cv=0.01),
    Case("the work grows, and that is said", lambda n: max(1.0, n / 2), levels="1,2,4,8",
         cpu=lambda n, wall: n * 1.0, options={"work_amount": "scales"}, run=(2, 4, 8)),
    Case("the work is fixed although CPU time grows", lambda n: 1.0, levels="1,2,4",
         cpu=lambda n, wall: n * 1.0, options={"work_amount": "fixed"}, run=(1,)),
    Case("the work grows, its rate printed", lambda n: max(1.0, n / 2),
         lambda n, wall, noise: f"rate {n * 1e6 / wall:.0f}\n",
         {"extracts": (r"rate=rate (\d+):1/s",)}, levels="1,2,4,8", cpu=lambda n, wall: n * 1.0,
         says=(r"--extract 'rate=rate (\d+):1/s:higher'",), wall_cv=0.01),
    Case("the work grows, operations extracted", lambda n: max(1.0, n / 2),
         lambda n, wall, noise: f"done {n * 1000}\n",
         {"extracts": (r"operations=done (\d+)",)}, levels="1,2,4,8",
         cpu=lambda n, wall: n * 1.0, run=(2, 4, 8)),
)  # fmt: skip


class PlantedEngine:
    """Runs a case: its level is the last argument of the command."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case
        self.seed = seed

    def run(self, spec: TrialSpec) -> bytes:
        """The record of a trial."""
        case, level = self.case, int(spec.roles[-1].argv[-1])
        place = spec.trial.partition("/")[2]
        rng = random.Random(f"{self.seed}/{place}")
        wall = case.wall(level) * rng.lognormvariate(0, case.wall_cv)
        noise = rng.lognormvariate(0, case.figure_cv)
        record = record_of(spec, wall, stdout=case.prints(level, wall, noise))
        cpu = wall if case.cpu is None else case.cpu(level, wall) * rng.lognormvariate(0, 0.01)
        roles = tuple(
            msgspec.structs.replace(
                role, usage=msgspec.structs.replace(role.usage, cpu_ns=round(cpu * 1e9))
            )
            for role in record.roles
        )
        return msgspec.json.encode(msgspec.structs.replace(record, roles=roles))

    def check(self, spec: TrialSpec) -> list[Any]:
        """Nothing is refused."""
        return []


def study_of(case: Case) -> Study:
    """The study of the sweep that a user would run."""
    return sweep_study(["true", "{n}"], [("n", case.levels)], 2, **case.options)


def run_of(case: Case, store: Store, seed: int = 1) -> TrialFindings:
    """What a complete run of a case says."""
    return run_study(study_of(case), case, store, seed)


def run_study(study: Study, case: Case, store: Store, seed: int = 1) -> TrialFindings:
    """What a complete run of a study says, of which a case is the program."""
    again = "concurve run filed.toml" if study.name == "filed" else "concurve sweep …"
    head = new_head(study, "quick", seed, again)
    Runner(head, store, PlantedEngine(case, seed), clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))

"""The findings of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Container
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from concurve.estimate import Estimate
from concurve.findings.best import BestFinding, Withheld
from concurve.findings.cells import RATE_SHARE, CellFindings, Dot, Reject
from concurve.findings.claims import AssumedRatio, ClaimFinding, Deciding, Dependence
from concurve.findings.explanation import Explanation
from concurve.findings.published import PublishedTable
from concurve.findings.scaling import ScalingFinding
from concurve.findings.timelines import CpuTimelines, ThreadTimelines
from concurve.findings.workers import ProgramFact, WorkerShares
from concurve.terms import Factor, IndicatorInfo, Level, TestCase, Waiting

# What comes after the primary indicator, a latency, the speed-up, what was asked for and other
# latencies; others in the order of the indicators.
_WANTED = (
    "wall_seconds",
    "efficiency",
    "cpu_seconds",
    "involuntary_switches",
    "voluntary_switches",
    "migrations",
    "threads_peak",
    "rss_bytes_max",
    "rss_bytes_tree_max",
)

#: The latencies that a reader of a load looks for first, by their names; then those without a
#: percentile, which is all that some tools print.
_LATENCY = re.compile(r"(?:\b|_)latency_\w*p(50|99)$")
_MEAN_LATENCY = re.compile(r"(?:\b|_)latency_(nano|micro|milli)?seconds$")


def is_latency(name: str) -> bool:
    """Is this a latency that a reader of a load looks for?"""
    return bool(_LATENCY.search(name) or _MEAN_LATENCY.search(name))


def _is_one_value(figure: Estimate) -> bool:
    """Did all trials of a cell have this value, none in doubt?"""
    return figure.low == figure.high == figure.value and not figure.in_doubt


#: The figure of a copy of a role, ``load-1.operations``.
_COPY = re.compile(r"(.+)-\d+\.(.+)")

#: What differs by no more than this factor among cells is the same in all.
_CONSTANT = 1.05


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which run this is, and how to run it again.

    ``pilot``: the first trials of a cell; ``is_staged``: their spread may have set how many more it
    got. ``simulation``: the figures come from a clock of the program's own, so the state of the
    machine does not affect them. ``over_hosts``: on the hosts of a file or of a cluster, and not on
    this machine. ``is_sweep``: options said what to measure, and no file. ``waiting``: how it
    waited for a quiet machine, if it was asked to. ``strangers``: who disturbed its trials and may
    be the server that its command loads. ``allowed_seconds``: its time allowance.
    ``is_stolen``: most of its trials in doubt are so for CPU time that the hypervisor took.
    ``constant``: programs that took CPU time in nearly all its trials. ``autogroups``: the kernel
    shared the CPUs among sessions first, so the priority of a process counts in its own alone.
    ``resumed_after``: how many trials were stored each time it was resumed, but for none.
    """

    id: str
    study: str
    effort: str
    seed: int
    started: str
    state: Literal["running", "complete", "interrupted", "failed"]
    reason: str
    trials: int
    rejected: int
    duration_seconds: float
    again: str
    version: str
    pilot: int | None = None
    is_staged: bool = False
    simulation: bool = False
    over_hosts: bool = False
    is_sweep: bool = False
    waiting: Waiting | None = None
    strangers: tuple[str, ...] = ()
    allowed_seconds: float | None = None
    is_stolen: bool = False
    constant: tuple[str, ...] = ()
    autogroups: bool = False
    resumed_after: tuple[int, ...] = ()


class LevelChange(msgspec.Struct, frozen=True, kw_only=True):
    """From the block with the index ``block`` on, the primary figures of all cells were ``factor``
    times as high (the median over the cells)."""

    block: int
    factor: float


#: So many levels scaling models need: ``models.curve.LEVELS_MIN``, which a view does not import, as
#: that takes half a second.
LEVELS_OF_A_CURVE = 3

#: The answer and what limits a run are said for each of its conditions, up to so many.
CONDITIONS_TOLD = 6

#: The subject of a warning that a cell was skipped.
SKIPPED = "skipped"

#: The subject of the warning that cells missed the precision; it begins with how many did, up to
#: the first percent sign.
PRECISION = "precision"

#: The subject of the warning that the machine itself ran faster in some trials than in others.
CORE_SPEED_VARIES = "core speed varies"

#: The subject of a warning that a program of the trials reported.
REPORTED = "reported"
#: The same where a load says that it was busy, and so may limit the rate.
BUSY_LOAD = "reported: busy load"


#: What a busy load says of itself begins so.
_MAY_LIMIT = ": the client may limit"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One sentence of the answer. ``kind`` groups them: answer, warning, or note. Those with the
    same ``subject`` say the same of several cells: where room is short, the first stands for all.
    ``short`` says the same in about a line, for a view that has room for no more; empty where the
    sentence is short already.
    """

    kind: Literal["answer", "warning", "note"]
    sentence: str
    subject: str = ""
    short: str = ""


def is_reported(item: Finding) -> bool:
    """Is it a warning that a program of the trials reported?"""
    return item.subject in (REPORTED, BUSY_LOAD)


def where_the_server_limits(item: Finding) -> Finding:
    """The same warning where the server is shown to be the limit: a load that says that it may be
    the limit is contradicted, and its advice would not help."""
    if item.subject != BUSY_LOAD:
        return item
    said, _, _ = item.sentence.partition(_MAY_LIMIT)
    sentence = f"{said.rstrip('.')}. Where a limit is named, it is the server."
    return msgspec.structs.replace(item, sentence=sentence)


def _is_of_copy(name: str, present: Container[str]) -> bool:
    """Is it the figure of one of the copies of a role, whose figure of all is there, too?"""
    copy = _COPY.match(name)
    return copy is not None and f"{copy[1]}.{copy[2]}" in present


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What the stored figures of a run say, cell by cell. ``asked`` names the indicators that the
    study or the command line asked for by name, the primary one included; ``extracted`` those that
    are read out of the output, ``failures`` those that count failures of the load. ``throughput``
    is the rate by which the cells compare, empty where nothing compares them;
    ``is_of_fixed_time``: that is so because the program decides for how long it runs."""

    run: RunInfo
    question: str
    source: str
    factors: tuple[Factor, ...]
    primary: str
    indicators: tuple[IndicatorInfo, ...]
    asked: tuple[str, ...] = ()
    extracted: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    throughput: str = "rate_per_second"
    is_of_fixed_time: bool = False
    cells: tuple[CellFindings, ...]
    sentences: tuple[Finding, ...]
    rejects: tuple[Reject, ...]
    machine: dict[str, Any]
    roles: tuple[str, ...]
    claims: tuple[ClaimFinding, ...] = ()
    deciding: tuple[Deciding, ...] = ()
    dependences: tuple[Dependence, ...] = ()
    assumed_ratios: tuple[AssumedRatio, ...] = ()
    best: tuple[BestFinding, ...] = ()
    withheld: Withheld = Withheld()
    published: tuple[PublishedTable, ...] = ()
    test_case: TestCase | None = None
    level_change: LevelChange | None = None
    drift: float | None = None

    def names_like(self, pattern: str) -> list[str]:
        """Names of the figures that any cell has and a pattern such as ``server.*`` matches, in the
        same order as :meth:`names_in_order`."""
        present = {name for cell in self.cells for name in cell.indicators}
        names = (name for name in self.names_in_order() if name in present)
        return [name for name in names if fnmatchcase(name, pattern)]

    def indicator(self, name: str) -> IndicatorInfo:
        """The indicator's description; an unknown name describes itself."""
        found = next((item for item in self.indicators if item.name == name), None)
        return found or IndicatorInfo(name=name, label=name)

    @property
    def asked_by_name(self) -> list[str]:
        """What was asked for by name, without what every table has."""
        return [name for name in self.asked if name not in _WANTED]

    def names_in_order(self) -> list[str]:
        """Names of the indicators that any cell has or lacks, the most wanted first."""
        present: dict[str, None] = {}
        for cell in self.cells:
            present.update(dict.fromkeys(cell.indicators))
        for cell in self.cells:
            present.update(dict.fromkeys(cell.absent))
        asked = self.asked_by_name
        latencies = [name for name in present if _LATENCY.search(name)]
        latencies += [name for name in present if _MEAN_LATENCY.search(name)]
        # What the machine did while it simulated is not what was asked.
        machine = () if self.run.simulation else _WANTED
        if self.ranked != "wall_seconds" and self._is_constant("wall_seconds"):
            machine = (*machine[1:], "wall_seconds")
        others = (info.name for info in self.indicators)
        # What all copies of a load did is asked for, and what one of them did stands behind. A load
        # is judged by its tail, which comes first; who asks has an order of their own.
        latencies.sort(
            key=lambda name: (
                name not in asked,
                _is_of_copy(name, present),
                name not in asked and not name.endswith("p99"),
            )
        )
        # A load is judged by its latency as well: the speed-up follows from the first column. Who
        # asks for none by name looks for the tail and the usual one.
        first = [
            name for name in latencies if name != self.ranked and not _is_of_copy(name, present)
        ]
        first = first[: 1 if any(name in asked for name in first) else 2]
        if self.is_paced:
            # Was the rate kept that was asked for, and how long did requests take at it?
            first = [*(name for name in present if RATE_SHARE.search(name)), *first]
        wanted = (self.ranked, *first, "speedup", *asked, *latencies, *machine, *others)
        return [name for name in dict.fromkeys((*wanted, *present)) if name in present]

    def is_same(self, name: str) -> bool:
        """Is a figure one value, in each trial of all cells, of which there are several? What
        settings are ranked by, and what compares them, is not."""
        figures = [cell.indicators.get(name) for cell in self.cells]
        values = {figure.value if figure and _is_one_value(figure) else None for figure in figures}
        is_asked_about = name in (self.ranked, self.primary, "speedup", "efficiency")
        return len(values) == 1 and None not in values and len(figures) > 1 and not is_asked_about

    @property
    def is_paced(self) -> bool:
        """Was its load asked for a rate in each cell? Then a cell is as fast as it was asked to be,
        and its speed-up says little."""
        measured = [cell for cell in self.cells if cell.indicators]
        return bool(measured) and all(
            any(RATE_SHARE.search(name) for name in cell.indicators) for cell in measured
        )

    def _is_constant(self, name: str) -> bool:
        """Is it the same in all of several cells, as the wall time of a load is that lasts a fixed
        time?"""
        found = [cell.indicators[name].value for cell in self.cells if name in cell.indicators]
        return len(found) > 1 and max(found) <= _CONSTANT * min(found)

    @property
    def ranked(self) -> str:
        """The indicator by which settings are compared: the primary one, unless another one was
        asked for, or it compares nothing."""
        return self.best[0].indicator if self.best else self.primary

    @property
    def best_overall(self) -> BestFinding | None:
        """The finding over all cells of the run, if there is one: not where conditions differ."""
        return next((item for item in self.best if not item.group), None)

    @property
    def cell_to_explain(self) -> CellFindings | None:
        """The cell whose limit a reader is told: the one with the most concurrency among those like
        the recommended setting, of those that were measured if there are such, and of those whose
        load did not fail; ``None`` where there is none."""
        best = self.best_overall or self.best[-1] if self.best else None
        return self._to_explain(best)

    @property
    def limits_by(self) -> tuple[tuple[dict[str, Level], CellFindings], ...]:
        """The same for each of a few conditions that differ among the cells, with its levels; with
        none, that of the whole run, where there is one."""
        found = [(item.group, self._to_explain(item)) for item in self.conditions]
        found = found or [({}, self.cell_to_explain)]
        return tuple((group, cell) for group, cell in found if cell is not None)

    @property
    def conditions(self) -> tuple[BestFinding, ...]:
        """The best settings under each of a few conditions that differ among the cells; empty where
        there is one for the whole run, and where the conditions are many."""
        if self.best_overall or not self.best:
            return ()
        most = max(len(item.factors) for item in self.best)
        groups = tuple(item for item in self.best if len(item.factors) == most)
        return groups if 1 < len(groups) <= CONDITIONS_TOLD else ()

    def _to_explain(self, best: BestFinding | None) -> CellFindings | None:
        wanted = {**best.group, **best.named} if best else {}
        work = self.work.name if self.work else ""
        alike = [
            cell
            for cell in self.cells
            if all(cell.parameters.get(k) == level for k, level in wanted.items() if k != work)
        ]
        measured = [cell for cell in alike if cell.trials and cell.status != "skipped"]
        sound = [cell for cell in measured if not cell.load_failed]
        return max(
            sound or measured or alike,
            key=lambda cell: _amount(cell.parameters.get(work)),
            default=None,
        )

    @property
    def work(self) -> Factor | None:
        """The factor that counts as concurrency, if one does."""
        return next((factor for factor in self.factors if factor.work), None)

    @property
    def can_have_models(self) -> bool:
        """Whether the factor that counts as concurrency has levels enough for scaling models."""
        levels = self.work.levels if self.work else ()
        return len(levels) >= LEVELS_OF_A_CURVE and all(
            isinstance(level, int | float) and math.isfinite(level) for level in levels
        )


class TrialFindings(Findings, frozen=True, kw_only=True):
    """The same with the figures of each trial, ``dots``."""

    dots: tuple[Dot, ...]

    @classmethod
    def of(cls, findings: Findings, dots: tuple[Dot, ...]) -> TrialFindings:
        """What the figures of a run say, with those of each trial."""
        return cls(**_fields(findings, Findings), dots=dots)

    def has_measured(self, name: str) -> bool:
        """Has a trial this indicator? One that is derived has none."""
        return any(name in dot.values for dot in self.dots)

    def columns(self, name: str) -> dict[int, list[float]]:
        """Values of an indicator in the trials that are its figure, by cell, in their order."""
        columns: dict[int, list[float]] = {}
        for dot in self.dots:
            if dot.counts_in(name):
                columns.setdefault(dot.cell, []).append(dot.values[name])
        return columns

    def blocks(self, name: str, *, disturbed: bool = False) -> dict[int, dict[int, float]]:
        """The same by cell and block; ``disturbed``: with the trials that were set aside because
        others took CPU time."""
        blocks: dict[int, dict[int, float]] = {}
        for dot in self.dots:
            if dot.counts_in(name, disturbed=disturbed):
                blocks.setdefault(dot.cell, {})[dot.block] = dot.values[name]
        return blocks


class Report(TrialFindings, frozen=True, kw_only=True):
    """What a run says, whole: its figures, the scaling models fitted to them, and what its records
    say of where the time went, of the program, of its single workers and of the CPUs. All of it was
    read: what is empty or ``None`` here is not there.

    ``explanation`` is ``None`` where there is nothing to explain: nothing is to be faster, the time
    is a simulator's, or the trials are too many. ``shares`` is ``None`` where the study does not
    ask how even its workers are, ``timelines`` and ``threads`` where no trial was long enough for
    one.
    """

    scaling: tuple[ScalingFinding, ...]
    explanation: Explanation | None
    facts: tuple[ProgramFact, ...]
    shares: WorkerShares | None
    timelines: CpuTimelines | None
    threads: ThreadTimelines | None

    @classmethod
    def whole(
        cls,
        findings: TrialFindings,
        *,
        scaling: tuple[ScalingFinding, ...],
        explanation: Explanation | None,
        facts: tuple[ProgramFact, ...],
        shares: WorkerShares | None,
        timelines: CpuTimelines | None,
        threads: ThreadTimelines | None,
    ) -> Report:
        """The report of a run from what its figures say and what else is known of it."""
        return cls(
            **_fields(findings, TrialFindings),
            scaling=scaling,
            explanation=explanation,
            facts=facts,
            shares=shares,
            timelines=timelines,
            threads=threads,
        )

    @classmethod
    def of_figures(cls, findings: TrialFindings) -> Report:
        """The same where nothing but the figures was read: the records may say more."""
        return cls.whole(
            findings,
            scaling=(),
            explanation=None,
            facts=(),
            shares=None,
            timelines=None,
            threads=None,
        )


def _fields(findings: Findings, of: type[Findings]) -> dict[str, Any]:
    return {name: getattr(findings, name) for name in of.__struct_fields__}


def _amount(level: Level | None) -> float:
    return float(level) if isinstance(level, (int, float)) else 0.0

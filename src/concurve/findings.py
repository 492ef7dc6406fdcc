"""What a run says: the one input of every view.

The types stand here, the computation in :mod:`concurve.analysis`. Views do no arithmetic: what
they show is in these types.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from concurve.estimate import Estimate

Level = int | float | str

CellStatus = Literal["ok", "partial", "skipped", "pending"]


class TestCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a test document says of a study (document 002, §7.3): the test case's number and area,
    the ``goal`` of the design that it serves, its objective, the results expected, the conditions,
    the indicators and the steps."""

    __test__ = False  # not one of pytest's

    id: str
    objective: str
    area: str = ""
    goal: str = ""
    expected: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


class IndicatorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an indicator is: its unit, its better direction and how to call it."""

    name: str
    label: str
    unit: str = ""
    better: Literal["lower", "higher", "neither"] = "neither"
    note: str = ""


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """One trial's value of the indicators, for charts and tables of raw figures."""

    cell: int
    block: int
    attempt: int
    used: bool
    values: dict[str, float]


class Reject(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that was not used, or was used with a doubt, and why."""

    cell: int
    parameters: dict[str, Level]
    block: int
    attempt: int
    cause: str
    detail: str
    used: bool = False


class CellFindings(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of levels.

    ``including_rejects`` repeats the primary indicator over all trials that gave a figure, so
    that figures stand with and without; it is ``None`` where nothing was rejected.
    ``base`` is the index of the cell that speed-up and efficiency refer to.
    """

    index: int
    parameters: dict[str, Level]
    status: CellStatus
    indicators: dict[str, Estimate]
    absent: dict[str, str] = {}
    including_rejects: Estimate | None = None
    base: int | None = None
    trials: int = 0
    stop_reason: str = ""
    note: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of the answer. ``kind`` groups them: answer, warning, or note."""

    kind: Literal["answer", "warning", "note"]
    sentence: str


VerdictName = Literal["supported", "refuted", "undecided", "not testable here"]


class ClaimFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says of a claim of its source: ``estimate`` against ``threshold``, with the
    published figure beside it."""

    id: str
    says: str
    source: str
    kind: str
    verdict: VerdictName
    reason: str
    threshold: str = ""
    estimate: Estimate | None = None
    published: float | None = None


class BestFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Which settings cannot be told from the best by an indicator, among the cells of a group.

    ``group`` has the levels that these cells share (empty: all cells of the run), ``factors``
    those that vary among them. ``settings`` holds levels of the latter, as do ``recommended``,
    the smallest of the set, and ``leader``, the one with the best mean. ``decide`` says what it
    would take to decide, with the ``trials`` of each setting where a number helps.
    """

    indicator: str
    label: str
    group: dict[str, Level]
    factors: tuple[str, ...]
    settings: tuple[dict[str, Level], ...]
    recommended: dict[str, Level]
    leader: dict[str, Level]
    compared: int
    decide: str = ""
    trials: int | None = None


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A factor with its levels in order; ``work`` marks the one that counts as concurrency."""

    name: str
    levels: tuple[Level, ...]
    work: bool = False


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which run this is, and how to run it again.

    ``pilot``: trials of a cell whose spread has set how many more it got.
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


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a view of one run shows. ``asked`` names the indicators that the study or
    the command line asked for by name, the primary one included."""

    run: RunInfo
    question: str
    source: str
    factors: tuple[Factor, ...]
    primary: str
    indicators: tuple[IndicatorInfo, ...]
    asked: tuple[str, ...] = ()
    cells: tuple[CellFindings, ...]
    sentences: tuple[Finding, ...]
    rejects: tuple[Reject, ...]
    dots: tuple[Dot, ...]
    machine: dict[str, Any]
    roles: tuple[str, ...]
    claims: tuple[ClaimFinding, ...] = ()
    best: tuple[BestFinding, ...] = ()

    def indicator(self, name: str) -> IndicatorInfo:
        """The indicator's description; an unknown name describes itself."""
        found = next((item for item in self.indicators if item.name == name), None)
        return found or IndicatorInfo(name=name, label=name)

    def columns(self, name: str) -> dict[int, list[float]]:
        """Values of an indicator in the trials in use, by cell, in the order of the trials."""
        columns: dict[int, list[float]] = {}
        for dot in self.dots:
            if dot.used and name in dot.values:
                columns.setdefault(dot.cell, []).append(dot.values[name])
        return columns

    def blocks(self, name: str) -> dict[int, dict[int, float]]:
        """The same by cell and block."""
        blocks: dict[int, dict[int, float]] = {}
        for dot in self.dots:
            if dot.used and name in dot.values:
                blocks.setdefault(dot.cell, {})[dot.block] = dot.values[name]
        return blocks

    @property
    def best_overall(self) -> BestFinding | None:
        """The finding over all cells of the run, if there is one."""
        return next((item for item in self.best if not item.group), None)

    @property
    def work(self) -> Factor | None:
        """The factor that counts as concurrency, if one does."""
        return next((factor for factor in self.factors if factor.work), None)


Change = Literal["faster", "slower", "same", "undecided"]


class CellComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One cell against its counterpart: ``ratio`` is the new figure over the base's.

    ``note`` says why there is no ratio, or none with an interval.
    """

    parameters: dict[str, Level]
    indicator: str
    verdict: Change
    ratio: Estimate | None = None
    base: Estimate | None = None
    new: Estimate | None = None
    note: str = ""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, or two levels of a factor, cell by cell.

    ``base`` and ``new`` name the sides. ``effect`` is the share below which a difference is not
    worth the name; ``factors`` those that vary among the cells.
    """

    base: str
    new: str
    factors: tuple[str, ...]
    indicators: tuple[IndicatorInfo, ...]
    effect: float
    method: str
    cells: tuple[CellComparison, ...]
    warnings: tuple[str, ...] = ()


Step = Literal["", "faster", "slower", "changed"]


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A cell's figure in one run; ``change`` is the ratio of the level that begins here to that
    before, where the series has a change point, with ``verdict`` its meaning."""

    run: str
    started: str
    version: str
    figure: Estimate
    change: Estimate | None = None
    verdict: Step = ""


class CellHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A cell over the runs, the oldest first."""

    parameters: dict[str, Level]
    points: tuple[HistoryPoint, ...]
    note: str = ""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """An indicator over the stored runs of a study."""

    study: str
    indicator: IndicatorInfo
    factors: tuple[str, ...]
    runs: int
    cells: tuple[CellHistory, ...]
    warnings: tuple[str, ...] = ()


Cause = Literal["cpu", "lock", "coherency", "io", "client", "contamination", "none"]


class CellExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the thread time of an operation goes in one cell, and what limits it.

    ``per_operation`` divides ``total`` into ``cpu``, ``run_queue`` and ``blocked`` (in ns of the
    time of active threads); ``by_kind`` divides what is blocked, and is empty without samples.
    ``shares`` are the parts of ``total`` in the order of a bar. ``excess`` is what exceeds the
    cell with the parameters ``base``; it is empty for that cell itself. ``missing`` names the
    kinds of evidence that the records lack, and why.
    """

    parameters: dict[str, Level]
    cause: Cause
    evidence: str
    index: int = 0
    base: dict[str, Level] | None = None
    per_operation: dict[str, Estimate] = {}
    by_kind: dict[str, Estimate] = {}
    shares: dict[str, float] = {}
    excess: dict[str, Estimate] = {}
    threads: int | None = None
    trials: int = 0
    missing: dict[str, str] = {}


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What limits each cell of a run. ``factors`` are those that vary; ``operation`` says what
    counts as one; ``missing`` and ``notes`` hold for all cells."""

    run: str
    study: str
    factors: tuple[str, ...]
    work: str | None
    operation: str
    cells: tuple[CellExplanation, ...]
    missing: dict[str, str] = {}
    notes: tuple[str, ...] = ()

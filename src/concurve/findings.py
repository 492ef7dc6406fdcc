"""What a run says: the one input of every view.

The types stand here, the computation in :mod:`concurve.analysis.run`. Views do no arithmetic: what
they show is in these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from concurve.estimate import Estimate

if TYPE_CHECKING:
    from concurve.models.result import FitResult, Prediction

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

    @property
    def name(self) -> str:
        """What to call it: ``Test case 9`` where its id is a bare number."""
        return f"Test case {self.id}" if self.id[:1].isdigit() else self.id


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
    indicators: Mapping[str, Estimate]
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
    published figure beside it. ``cell`` is the one that the claim is about, if it is about one;
    ``doubt`` says why a verdict was withheld on a machine that was not quiet."""

    id: str
    says: str
    source: str
    kind: str
    verdict: VerdictName
    reason: str
    threshold: str = ""
    estimate: Estimate | None = None
    published: float | None = None
    indicator: str = ""
    cell: dict[str, Level] = {}
    doubt: str = ""


class Dependence(msgspec.Struct, frozen=True, kw_only=True):
    """How a ratio that a claim of a simulation is about hangs on one of its assumptions: at a
    ``level`` of ``factor`` the geometric mean over all ``settings`` of the others, and how many
    times that at the first level it is, which has no ``change``."""

    claim: str
    says: str
    factor: str
    level: Level
    settings: int
    ratio: Estimate
    change: Estimate | None = None


Agreement = Literal["base", "agrees", "differs", "undecided", "not comparable"]


class PublishedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A published figure beside the new one, both relative to their own base cell.

    ``printed`` and ``unit`` are the source's; ``published`` and ``ours`` are what is compared: a
    ratio, a factor or a difference, as ``compare`` says, or for ``order`` both figures as they are,
    each on its own scale. ``reason`` says why there is nothing
    of ours, or what the verdict rests on.
    """

    row: str
    column: str
    printed: str
    unit: str
    indicator: str
    parameters: dict[str, Level]
    base: dict[str, Level]
    compare: Literal["ratio", "factor", "improvement", "difference", "order", "none"]
    verdict: Agreement
    reason: str
    published: float | None = None
    ours: Estimate | None = None


class PublishedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of the source with its number there; ``rows`` and ``columns`` are its headings.
    ``figure`` is the number of the source's chart of it, if it has one."""

    number: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[PublishedComparison, ...]
    figure: str = ""
    figure_title: str = ""

    def at(self, row: str, column: str) -> PublishedComparison | None:
        """The figure at a place of the table; ``None`` where the source printed none."""
        return next((f for f in self.figures if f.row == row and f.column == column), None)

    def counts(self) -> dict[Agreement, int]:
        """How many figures have each verdict."""
        found: dict[Agreement, int] = {}
        for item in self.figures:
            found[item.verdict] = found.get(item.verdict, 0) + 1
        return found


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


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted curve at ``n`` workers: the chosen model's ``value`` up to the greatest level
    measured, ``beyond`` it the value expected over all models; with the band of a prediction."""

    n: float
    value: float
    low: float
    high: float
    beyond: bool = False


class ScalingFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Scaling models fitted to a throughput over the work factor, among the cells of a group.

    ``group`` has the levels that these cells share (empty: all cells of the run), ``indicator``
    the name of the throughput. ``fit`` is ``None`` where nothing could be fitted, for ``reason``.
    ``expected`` is a prediction at twice the greatest level. ``curves`` are those to draw, by the
    indicator that the chart is of. ``answers`` begin with the chosen model's parameters in words.
    """

    indicator: str
    label: str
    work: str
    group: dict[str, Level]
    fit: FitResult | None = None
    reason: str = ""
    expected: Prediction | None = None
    curves: dict[str, tuple[CurvePoint, ...]] = {}
    answers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A factor with its levels in order; ``work`` marks the one that counts as concurrency."""

    name: str
    levels: tuple[Level, ...]
    work: bool = False


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which run this is, and how to run it again.

    ``pilot``: trials of a cell whose spread has set how many more it got. ``simulation``: the
    figures come from a clock of the program's own, so what the machine did says nothing of them.
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
    simulation: bool = False


class ToldFact(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the measured program said of itself in ``cells`` of the ``among`` cells that
    have the levels ``where``; without ``where`` in all cells, or in some that share no level."""

    name: str
    value: str
    where: dict[str, Level] = {}
    cells: int
    among: int


class CellShares(msgspec.Struct, frozen=True, kw_only=True):
    """What each worker or client did in one trial of a cell, in the order of their reports."""

    parameters: dict[str, Level]
    shares: tuple[float, ...]


class WorkerShares(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of single workers or clients, as the program reported them: ``indicator`` in some
    cells, each by the trial whose spread is the middle one. ``remark`` says which are left out."""

    indicator: str
    label: str
    factors: tuple[str, ...]
    cells: tuple[CellShares, ...]
    remark: str = ""


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
    dependences: tuple[Dependence, ...] = ()
    best: tuple[BestFinding, ...] = ()
    scaling: tuple[ScalingFinding, ...] = ()
    published: tuple[PublishedTable, ...] = ()
    test_case: TestCase | None = None
    explanation: Explanation | None = None
    facts: tuple[ToldFact, ...] = ()
    shares: WorkerShares | None = None

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
        """The finding over all cells of the run, if there is one: not where conditions differ."""
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
    kinds of evidence that the records lack, and why. ``limit`` is what is used up where a server
    was loaded: CPUs, a kind of threads, or the load.
    """

    parameters: dict[str, Level]
    cause: Cause
    evidence: str
    index: int = 0
    limit: str = ""
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


MemberState = Literal["planned", "begun", "complete", "failed", "not run"]


class Procedure(msgspec.Struct, frozen=True, kw_only=True):
    """How a study was run: cells, the rules in force and what came of them. ``stopped`` counts
    cells by the reason for which they got no more trials."""

    cells: int
    blocks: int
    repeats_min: int
    repeats_max: int
    precision: float
    redo_max: int
    redo_share: float
    time_allowed_seconds: float
    timeout_seconds: float | None
    trials: int
    rejected: int
    duration_seconds: float
    stopped: dict[str, int]


class Deviation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that did not go as the procedure wants it; ``study`` is empty where it concerns
    all of them."""

    study: str
    kind: Literal["missing", "warning", "rejected", "not testable", "machine"]
    says: str


class StudyFindings(msgspec.Struct, frozen=True, kw_only=True):
    """A study of a campaign: what became of it, and what its run found, if it has one.

    ``verdicts`` counts its claims, ``agreements`` the published figures.
    """

    name: str
    question: str
    test_case: TestCase | None
    state: MemberState
    reason: str
    run: Findings | None = None
    procedure: Procedure | None = None
    verdicts: dict[VerdictName, int] = {}
    agreements: dict[Agreement, int] = {}


class CampaignInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which campaign this is, and how to run it again."""

    id: str
    name: str
    title: str
    question: str
    source: str
    effort: str
    seed: int
    started: str
    state: Literal["running", "complete", "interrupted", "incomplete"]
    reason: str
    again: str
    version: str


class CampaignTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What the campaign's author says in its report. Paragraphs are parted by an empty line;
    lines that begin with ``-`` are a list."""

    introduction: str = ""
    scope: str = ""
    platform: str = ""
    procedure: str = ""
    deviations: str = ""


class CampaignFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a view of a campaign shows. ``summary`` is for a reader who has a minute."""

    campaign: CampaignInfo
    texts: CampaignTexts
    glossary: dict[str, str]
    summary: tuple[Finding, ...]
    studies: tuple[StudyFindings, ...]
    deviations: tuple[Deviation, ...]
    machine: dict[str, Any]
    trials: int
    duration_seconds: float
    verdicts: dict[VerdictName, int]
    agreements: dict[Agreement, int]

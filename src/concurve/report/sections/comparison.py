"""The report of a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.comparison import OPEN_FROM, CellComparison, ClaimOnBoth, Comparison
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Cell,
    Column,
    Detail,
    Document,
    Entries,
    Missing,
    Number,
    Paragraph,
    Role,
    Section,
    Table,
    Tone,
    at_detail,
)
from concurve.terms import IndicatorInfo

TONES = {
    "faster": Tone.GOOD,
    "slower": Tone.BAD,
    "same": Tone.PLAIN,
    "undecided": Tone.WARNING,
}
_TONES_OF_CLAIMS = {"alike": Tone.PLAIN, "not alike": Tone.BAD, "undecided": Tone.WARNING}
WORDS = {"same": "no relevant difference"}
_HOW = {
    "pairs": "the centre of its blocks' ratios, by signed ranks",
    "ranks": "the shift between the trials of two runs, by rank sums",
}
# A remark names at most this many cells.
_NAMED_MAX = 3


def comparison_document(comparison: Comparison, detail: Detail = Detail.BRIEF) -> Document:
    """A table for each indicator with a row for each cell, one of the claims where the sides are of
    two machines, and a summary of the verdicts."""
    sections = [_section(comparison, info) for info in comparison.indicators]
    if comparison.claims:
        sections.append(_claims(comparison.claims))
    reading = Section("", tuple(_reading(comparison)))
    inside = f", in run {comparison.run}" if comparison.run else ""
    document = Document(
        title=f"{comparison.new} against {comparison.base}{inside}", blocks=(*sections, reading)
    )
    return at_detail(document, detail)


def _section(comparison: Comparison, info: IndicatorInfo) -> Section:
    cells = [cell for cell in comparison.cells if cell.indicator == info.name]
    title = f"{info.label or info.name}, {info.better} is better"
    return Section(title, (_table(comparison, cells, info), *_notes(cells)), anchor=info.name)


def _claims(claims: Sequence[ClaimOnBoth]) -> Section:
    counts = Counter(claim.alike for claim in claims)
    said = ", ".join(f"{number} {word}" for word, number in counts.most_common())
    table = Table(
        (
            Column("claim", [claim.id for claim in claims], Role.KEY),
            Column("base", [claim.base for claim in claims]),
            Column("new", [claim.new for claim in claims]),
            Column("on both", [claim.alike for claim in claims]),
            Column("what it says", [claim.says for claim in claims], wanted=1),
        ),
        tuple(_TONES_OF_CLAIMS[claim.alike] for claim in claims),
        title="One row a claim.",
    )
    total = Paragraph(f"{fmt.count(len(claims), 'claim')}: {said}.", Tone.STRONG)
    return Section("Claims on both machines", (table, total), anchor="claims")


def _table(comparison: Comparison, cells: Sequence[CellComparison], info: IndicatorInfo) -> Table:
    known = [figure for cell in cells for figure in (cell.base, cell.new) if figure]
    scale = fmt.scale_for([figure.value for figure in known], info.unit)
    keys = (
        Column(name, [fmt.level(cell.parameters[name]) for cell in cells], Role.KEY)
        for name in comparison.factors
    )
    base, new = ([value_of(figure, scale) for figure in side] for side in
                 ([cell.base for cell in cells], [cell.new for cell in cells]))  # fmt: skip
    return Table(
        (
            *keys,
            Column("base", Entries(base, scale.symbol), Role.NUMBER, wanted=1),
            Column("new", Entries(new, scale.symbol), Role.NUMBER, wanted=2),
            Column("ratio", [_ratio(cell.ratio) for cell in cells], Role.NUMBER),
            Column("95 % interval", [span_of(cell.ratio) for cell in cells]),
            Column("verdict", [_verdict(cell) for cell in cells]),
        ),
        tuple(TONES[cell.decided] for cell in cells),
        title="One row a cell.",
    )


def _verdict(cell: CellComparison) -> str:
    """The verdict that counts, with what it is by where that is not the figure of the table."""
    return f"{cell.decided} (CPU)" if cell.by_cpu_time else cell.verdict


def value_of(figure: Estimate | None, scale: fmt.Scale | None) -> Cell:
    """A figure of a table, without its interval."""
    if figure is None:
        return Missing()
    return Number(fmt.estimate(figure, scale).value, order=figure.value)


def _ratio(ratio: Estimate | None) -> Cell:
    """A ratio; without an interval that says anything, it has none for its digits either."""
    if ratio is not None and _is_open(ratio):
        return Number(fmt.plain(ratio.value), order=ratio.value)
    return value_of(ratio, None)


def span_of(ratio: Estimate | None) -> str:
    """The interval of a ratio, from end to end. One that leaves open everything is none."""
    if ratio is None:
        return ""
    return "none: too wide" if _is_open(ratio) else fmt.estimate(ratio).span


def _is_open(ratio: Estimate) -> bool:
    """Does the interval hold next to any ratio?"""
    if ratio.low is None or ratio.high is None:
        return False
    return ratio.high > OPEN_FROM * ratio.low


def _notes(cells: Sequence[CellComparison]) -> Iterator[Paragraph]:
    for note in dict.fromkeys(cell.note for cell in cells if cell.note):
        where = [fmt.setting(cell.parameters) for cell in cells if cell.note == note]
        yield Paragraph(f"{note}{fmt.in_brackets(where, _NAMED_MAX)}", Tone.WARNING)


def _reading(comparison: Comparison) -> Iterator[Block]:
    """The number of each verdict, and how to read the verdicts."""
    yield Paragraph(summary(comparison), Tone.STRONG)
    yield Paragraph(_rule_in_short(comparison), Tone.SOFT, detail=Detail.BRIEF)
    yield Paragraph(_rule(comparison), Tone.SOFT, detail=Detail.FULL)
    for advice in comparison.advice:
        yield Paragraph(advice, Tone.SOFT)
    for warning in comparison.warnings:
        yield Paragraph(warning, Tone.WARNING)


def summary(comparison: Comparison) -> str:
    """How many cells have each verdict: ``2 cells: 2 undecided; by CPU time 1 slower, 1 no relevant
    difference.``"""
    said = _counted([cell.verdict for cell in comparison.cells])
    told = _counted([cell.decided for cell in comparison.cells if cell.by_cpu_time])
    beside = f"; by CPU time {told}" if told else ""
    return f"{fmt.count(len(comparison.cells), 'cell')}: {said}{beside}."


def _counted(verdicts: Sequence[str]) -> str:
    counts = Counter(verdicts).most_common()
    return ", ".join(f"{number} {WORDS.get(verdict, verdict)}" for verdict, number in counts)


def _rule_in_short(comparison: Comparison) -> str:
    """The rule in a line; ``--all`` prints the whole."""
    effect = f"{words.in_percent(comparison.effect)} %"
    of = ", of trials in pairs and not of these medians" if comparison.method == "pairs" else ""
    each = "; intervals: of each cell alone" if len(comparison.cells) > 1 else ""
    if each and comparison.method == "pairs":
        each = f"{each}, wider in the answer of the run, where they hold for all together"
    return f"ratio: new over base{of}; faster, slower: by {effect} or more (--all: the rule){each}"


def _rule(comparison: Comparison) -> str:
    """The rule of the verdicts, which is the same for every comparison of its kind."""
    effect = f"{words.in_percent(comparison.effect)} %"
    return (
        f"The ratio is new over base: {_HOW[comparison.method]}. The rule, fixed beforehand: "
        f"faster or slower where the ratio is not 1 and seems off by {effect} at least "
        f"(--effect); no relevant difference where it lies within {effect}; else undecided. "
        "Verdicts are of all cells together (false discovery rate 5 %), 95 % intervals of each "
        "alone."
    )

"""The figures of a run, as charts and as a table: one row a cell, one column a factor or indicator.

Which columns a narrow view leaves out is decided by their order in the findings.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

import msgspec

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.cells import RATE_KEPT_MIN, RATE_SHARE, CellFindings
from concurve.findings.run import Findings, Report, is_latency
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Cell,
    Column,
    Entries,
    Missing,
    Number,
    Paragraph,
    Role,
    Section,
    Table,
    Text,
    Tone,
)
from concurve.terms import Level

#: The marks of a figure that rests on trials in doubt, and of one whose trials have two levels, lie
#: far off, or drift: a warning says which. And of a latency that its rate contradicts.
DOUBT, UNEVEN, WRONG = "?", "‡", "†"
_MARKS = {
    DOUBT: f"{DOUBT} in doubt",
    UNEVEN: f"{UNEVEN} uneven trials",
    WRONG: f"{WRONG} the rate contradicts it (Little's law): trust the rate",
}
#: What stands in the place of an interval that tells nothing: a mark beside the figure would look
#: like a unit (°), and there may be another one.
NO_INTERVAL = f"± {fmt.MISSING}"

#: An interval of fewer trials than this, from below the figure by this factor to above it by as
#: much, tells nothing. More trials that differ so much are what the program does.
_FEW, _TELLING = 10, 5.0

_TONES = {"ok": Tone.PLAIN, "partial": Tone.WARNING, "skipped": Tone.SOFT, "pending": Tone.SOFT}
#: How much a column is wanted in a narrow terminal, among indicators that are numbered from the
#: primary one, 0, on. Reasons are long, and warnings say them too.
_STATUS, _TRIALS, _REASONS = 1, 2, 1_000
#: How many cells and indicators the first look at a table has.
_CELLS_FIRST, _COLUMNS_FIRST = 20, 5
# A remark names at most this many cells.
_NAMED_MAX = 3
#: By so much, as a logarithm, a speed-up differs from the ratio of medians: who divides sees it.
_FAR_FROM_MEDIANS = math.log(1.02)
#: Of so many cells ``show --figures`` lists all figures.
_LISTED = 12

#: ``latency of a request, p99``: of what is said of the rate beside it.
_OF_ONE = re.compile(r"\b(latency) of an? [^,]*, ")

#: The percentile of a latency that is of requests as a whole, by its name.
_PERCENTILE = re.compile(r"(?:^|\.)latency_[a-z]+_(p\d+)$")
#: A table of at most so many rows has the latencies below it that it has no room for.
_BELOW = 6

#: What follows a figure in a sentence on how it differs.
_TELLING_VERBS = ("differs", "is")

#: Of the whole run, and of its phase ``measure``: the same where a program reports no phase.
_TWINS = {"run_seconds": "wall_seconds", "run_cpu_seconds": "cpu_seconds"}

#: What compares a cell with its base.
_RELATIVE = ("speedup", "efficiency")


def brief(
    findings: Findings,
    *,
    terse: bool = False,
    counted: bool = True,
    legend: bool = True,
    apart: bool = True,
) -> Section:
    """The table, and what became of cells that are not well. ``counted``: it says how many figures
    it leaves out; ``legend``: and how to read it; ``apart``: of that at least that the medians have
    other speed-ups, as who divides them takes the figures for wrong. What marks mean is said in any
    case."""
    said = partial(_legend, findings, terse=terse)
    if not legend:
        said = partial(_least_legend, findings, apart=apart)
    table = msgspec.structs.replace(_table(findings, []), terse=terse or not counted, legend=said)
    if not counted:
        table = msgspec.structs.replace(table, more="")
    return Section("", (table, *_remarks(findings)))


def first(findings: Findings) -> Section:
    """The most wanted columns of the first cells, and what became of cells that are not well."""
    shown = msgspec.structs.replace(findings, cells=findings.cells[:_CELLS_FIRST])
    # A base may be among the cells that are not shown.
    table = msgspec.structs.replace(_table(shown, []), legend=partial(_legend, findings))
    columns = [
        column
        for column in table.columns
        if column.role is Role.KEY or (column.wanted < _COLUMNS_FIRST and column.has_entries)
    ]
    table = msgspec.structs.replace(table, columns=tuple(columns), sortable=False)
    left = len(findings.cells) - len(shown.cells)
    cells = f"{fmt.count(left, 'more cell')}, and all" if left else "All"
    more = Paragraph(f"{cells} figures: run.frame()", Tone.SOFT)
    return Section("", (table, more, *_remarks(findings)))


def few(findings: Findings) -> Table | None:
    """The figure that compares the cells, and the speed-up: what the chart of the answer shows.
    ``None`` for more cells than one looks at."""
    if len(findings.cells) > _CELLS_FIRST:
        return None
    shown = (findings.ranked, "speedup")
    table = _table(findings, [])
    columns = [it for it in table.columns if it.role is Role.KEY or it.name in shown]
    return msgspec.structs.replace(
        table, columns=tuple(columns), legend=partial(_legend, findings), sortable=False
    )


def full(findings: Findings) -> Section:
    """The whole table."""
    trials = [Number(f"{cell.trials:,}", order=cell.trials) for cell in findings.cells]
    table = _table(findings, [Column("trials", trials, Role.NUMBER, wanted=_TRIALS)])
    twins = _twins(findings)
    columns = tuple(column for column in table.columns if column.name not in twins)
    table = msgspec.structs.replace(table, columns=columns)
    missing = Paragraph(f"{fmt.MISSING} is a figure that could not be measured.", Tone.SOFT)
    notes = (
        Paragraph(item.sentence, Tone.SOFT) for item in findings.sentences if item.kind == "note"
    )
    constant = throughout(findings)
    head = (Paragraph(f"throughout: {constant}", Tone.SOFT),) if constant else ()
    return Section(
        "Figures",
        (*head, table, missing, *notes),
        anchor="figures",
        folded=True,
        summary=fmt.count(len(findings.cells), "cell"),
        is_main=True,
    )


def every(findings: Findings, named: Collection[str] = ()) -> Section:
    """All figures by their names, also those that a narrow table has no room for and those of roles
    that are not measured; or only those that are ``named``. A row has one figure of one cell, so
    that a search finds it whole; the rows of a condition stand together."""
    cells = _by_condition(findings)
    if len(cells) > _LISTED and not named:
        text = f"of {len(cells)} cells: concurve export {findings.run.id} --format csv"
        return Section("", (Paragraph(text, Tone.SOFT, lead="all figures"),))
    twins = {} if named else _twins(findings)
    names = [name for name in named or findings.names_in_order() if name not in twins]
    constant = {} if named else _constant(findings, names)
    rows = [
        (name, cell, entry, entries.unit)
        for name in names
        if name not in constant
        for info in [findings.indicator(name)]
        for entries in [_entries(cells, name, info.unit, findings.primary)]
        for cell, entry in zip(cells, entries.cells, strict=True)
        if name in cell.indicators
    ]
    varying = [factor.name for factor in findings.factors if len(factor.levels) > 1]
    levels = (
        Column(factor, [_level(cell, factor) for _, cell, _, _ in rows], Role.KEY)
        for factor in varying
    )
    table = Table(
        (
            Column("figure", [name for name, _, _, _ in rows], Role.KEY),
            *levels,
            Column("value", [entry for _, _, entry, _ in rows], Role.NUMBER),
            Column("unit", [unit for _, _, _, unit in rows]),
            *_owners(findings, [name for name, _, _, _ in rows]),
        ),
        title="One row a figure of a cell.",
        whole=True,
        legend=lambda columns: _how_to_read(findings, names, columns),
    )
    alike = ", ".join(f"{name} {value}" for name, value in constant.items())
    same = ", ".join(f"{name} (= {other})" for name, other in twins.items())
    said = {
        "the same in all cells": alike,
        "the same by another name": f"{same}." if same else "",
        "rates": _rates(findings, names),
    }
    left = (Paragraph(text, Tone.SOFT, lead=lead) for lead, text in said.items() if text)
    title = "Figures by name" if named else "All figures"
    return Section(title, (table, *left), anchor="all-figures")


def _constant(findings: Findings, names: Sequence[str]) -> dict[str, str]:
    """Figures that are the same in each trial of all cells, with that value: a row for each cell
    says nothing."""
    found: dict[str, str] = {}
    for name in filter(findings.is_same, names):
        entries = _entries(findings.cells, name, findings.indicator(name).unit, "")
        (first, *_) = entries.cells
        assert isinstance(first, Number)
        found[name] = fmt.with_unit(first.value, entries.unit)
    return found


def _rates(findings: Findings, names: Collection[str]) -> str:
    """How the rate that is computed differs from those that the program prints, where both are
    listed; else empty."""
    own = "rate_per_second"
    printed = [
        name
        for name in findings.extracted
        if name in names and name != own and findings.indicator(name).unit == "1/s"
    ]
    if own not in names or not printed:
        return ""
    info = findings.indicator(own)
    how = f"{info.label} ({info.note})" if info.note else info.label
    return f"{own}: {how}; {words.listed(printed)}: as the program prints."


def _how_to_read(findings: Findings, names: Collection[str], columns: Sequence[Column]) -> str:
    """How to read the entries of some figures that stand in one column."""
    known = confidence(findings, names)
    parts = [f"medians, ± half the {known} interval or (low to high)"] if known else []
    return "; ".join([*parts, *_marks_in(columns)])


def _marks_in(columns: Sequence[Column]) -> list[str]:
    """What the marks of these columns mean."""
    numbers = [cell for column in columns for cell in column.cells if isinstance(cell, Number)]
    marks = {mark for cell in numbers for mark in cell.mark}
    said = [words for mark, words in _MARKS.items() if mark in marks]
    if any(cell.spread == NO_INTERVAL for cell in numbers):
        said.append(f"{NO_INTERVAL} too few trials for an interval")
    return said


def _by_condition(findings: Findings) -> list[CellFindings]:
    """The cells, those that differ in the amount of work alone beside each other; within and
    between such groups in the order of the run."""
    work = findings.work.name if findings.work else ""
    groups: dict[tuple[Level, ...], list[CellFindings]] = {}
    for cell in findings.cells:
        levels = (level for name, level in cell.parameters.items() if name != work)
        groups.setdefault(tuple(levels), []).append(cell)
    return [cell for group in groups.values() for cell in group]


def _twins(findings: Findings) -> dict[str, str]:
    """Figures that another one says already in each cell, by their names: both names are known, and
    the second is shown. What was asked for by its name is none."""
    found = {}
    for name in findings.names_in_order():
        role, dot, of_role = name.rpartition(".")
        twin = f"{role}{dot}{_TWINS.get(of_role, of_role)}"
        pairs = [(cell.indicators.get(name), cell.indicators.get(twin)) for cell in findings.cells]
        is_same = any(one for one, _ in pairs) and all(one == other for one, other in pairs)
        if twin != name and is_same and name not in (findings.ranked, *findings.asked):
            found[name] = twin
    return found


def _owners(findings: Findings, names: Sequence[str]) -> list[Column]:
    """Whose the figures are whose labels say it and whose names do not, where there are some:
    beside ``server.cpus_used`` the ``cpus_used`` of a client is one of two."""

    def owner(name: str) -> str:
        role, _, _ = findings.indicator(name).label.partition(": ")
        return role if role in findings.roles and "." not in name else ""

    owners = [owner(name) for name in names]
    return [Column("of", owners)] if any(owners) else []


def drawn(report: Report) -> Section | None:
    """The charts that the overview does not show, side by side, and how to read them."""
    from concurve.report.charts import charts, hero  # who looks at a table needs none

    first = hero(report)
    found = [chart for chart in charts(report) if first is None or chart.name != first.name]
    if not found:
        return None
    known = confidence(report)
    bars = f"Bars are {known} intervals. " if known else ""
    how = f"{bars}Each small dot is one trial; rejected trials are crosses."
    blocks: list[Block] = [*found, Paragraph(how, Tone.SOFT, of_charts=True)]
    constant = _constant(report, [name for name in report.extracted if report.is_same(name)])
    if constant:
        same = words.listed(
            [f"{report.indicator(it).label or it} {constant[it]}" for it in constant]
        )
        blocks.append(Paragraph(f"The same in all cells, and not drawn: {same}.", Tone.SOFT))
    return Section("Charts", tuple(blocks), anchor="charts")


def confidence(findings: Findings, names: Iterable[str] | None = None) -> str:
    """The confidence of the intervals of some indicators, or of all, in words: ``95 %``."""
    names = findings.names_in_order() if names is None else list(names)
    figures = (cell.indicators.get(name) for cell in findings.cells for name in names)
    known = {
        figure.confidence
        for figure in figures
        if figure and figure.low is not None and figure.high is not None
    }
    return " or ".join(f"{value:.4g} %" for value in sorted(100 * value for value in known))


def _legend(findings: Findings, columns: Sequence[Column], *, terse: bool = False) -> str:
    """How to read the intervals of some columns; empty if none has an interval. ``terse``: without
    why the brackets of the answer are wider, where marks are to be told."""
    known = confidence(findings, [column.name for column in columns])
    if not known:
        return ""
    numbers = [cell for column in columns for cell in column.cells if isinstance(cell, Number)]
    marks = _marks_in(columns)
    parts = [f"medians, ± half the {known} interval"]
    if any(cell.is_skewed for cell in numbers):
        parts = [f"medians, ± half the {known} interval or (low to high)"]
    if any(_is_step_alone(cell, column.name) for column in columns for cell in findings.cells):
        parts.append("where all trials are the same, ± is the step of their readings")
    parts += filter(None, [_apart(findings, columns)])
    wider = _wider_brackets(findings, columns)
    if wider and not (terse and marks):
        parts.append(wider)
    parts += marks
    if terse and (left_out := _latency_left_out(findings, columns)):
        parts.append(f"no room for {left_out}")
    return "; ".join(parts)


def _latency_left_out(findings: Findings, columns: Sequence[Column]) -> str:
    """The label of the first latency, if none is among these columns of a table that does not name
    what it leaves out: a load is judged by it as well. Empty if there is none."""
    if any(is_latency(column.name) for column in columns):
        return ""
    known = {name for cell in findings.cells for name in cell.indicators}
    names = (name for name in findings.names_in_order() if name in known and is_latency(name))
    first = next(names, "")
    return findings.indicator(first).label if first else ""


def _is_step_alone(cell: CellFindings, name: str) -> bool:
    """Is the interval of a figure nothing but the step of a clock, or of rounded figures?"""
    figure = cell.indicators.get(name)
    if figure is None or figure.n < 2 or figure.min is None or figure.min != figure.max:
        return False
    return cell.resolutions.get(name, 0.0) > 0


def _apart(findings: Findings, columns: Sequence[Column]) -> str:
    """That speed-ups are not the ratios of the medians of these columns; empty where they are, and
    where a reader sees none. Without their column they are those of the answer."""
    shown = {column.name for column in columns}
    answers = (item.sentence for item in findings.sentences if item.kind == "answer")
    is_in_table = "speedup" in shown
    is_seen = is_in_table or any("× as fast" in sentence for sentence in answers)
    if not is_seen or not _by_blocks(findings, shown):
        return ""
    whose = "" if is_in_table else " of the answer"
    return f"speed-ups{whose} compare neighbouring trials, not these medians"


def _least_legend(findings: Findings, columns: Sequence[Column], *, apart: bool) -> str:
    """What the marks of these columns mean, and ``apart``: that speed-ups are not the ratios of the
    medians. A mark without its meaning is not shown."""
    found = [_apart(findings, columns)] if apart else []
    return "; ".join(filter(None, [*found, *_marks_in(columns)]))


def _by_blocks(findings: Findings, shown: Collection[str]) -> bool:
    """Is a speed-up of the run, which the answer names as well, apart from the ratio of the medians
    that stand in the table, whichever of them it is of? So where the machine became slower from
    block to block."""
    apart = (list(_from_medians(cell, findings, shown)) for cell in findings.cells)
    return any(min(found) > _FAR_FROM_MEDIANS for found in apart if found)


def _from_medians(
    cell: CellFindings, findings: Findings, shown: Collection[str]
) -> Iterator[float]:
    """How far the speed-up is from the ratio of the medians of each figure shown that it may be of,
    a time or a rate, as a logarithm."""
    if cell.base is None or "speedup" not in cell.indicators:
        return
    own, base = cell.indicators, findings.cells[cell.base].indicators
    of = {findings.primary, findings.ranked, "wall_seconds", "rate_per_second"}
    for name in of & set(shown) & own.keys() & base.keys():
        values = own["speedup"].value, own[name].value, base[name].value
        if all(0 < value < math.inf for value in values):
            speedup, above, below = map(math.log, values)
            yield min(abs(speedup - above + below), abs(speedup + above - below))


def _wider_brackets(findings: Findings, columns: Sequence[Column]) -> str:
    """What the interval of an answer holds for, where it is wider than that of the same speed-up in
    the table: for the choice among several (docs/method/best-setting.md), or for all versions."""
    if "speedup" not in [column.name for column in columns]:
        return ""
    compared = [
        cell for cell in findings.cells if cell.index != cell.base and "speedup" in cell.indicators
    ]
    said = [item for item in findings.sentences if item.kind == "answer" and " [" in item.sentence]
    if len(compared) < 2:
        return ""
    if any(item.subject and " by " in item.sentence for item in said):
        return "[ ] for all levels together"
    is_chosen = any("× as fast as" in item.sentence for item in said)
    return "[ ] for the best of several" if is_chosen else ""


def throughout(findings: Findings) -> str:
    """The levels that all cells share, which the table does not have: ``sync=none``; or empty."""
    return fmt.setting({f.name: f.levels[0] for f in findings.factors if len(f.levels) == 1})


def _table(findings: Findings, last: Sequence[Column]) -> Table:
    cells = findings.cells
    varying = [factor.name for factor in findings.factors if len(factor.levels) > 1]
    keys = [Column(name, [_level(cell, name) for cell in cells], Role.KEY) for name in varying]
    status: list[Column] = []
    if any(cell.status != "ok" for cell in cells):
        wanted = _REASONS if last else _STATUS
        status = [Column("status", [_status(cell, bool(last)) for cell in cells], wanted=wanted)]
    return Table(
        (*keys, *status, *_indicators(findings), *last),
        tuple(_TONES[cell.status] for cell in cells),
        title="One row a cell: its levels, then each indicator with its interval.",
        sortable=True,
        legend=partial(_legend, findings),
        more=f"concurve export {findings.run.id} --format csv"
        if len(cells) > _LISTED
        else f"concurve show {findings.run.id} --figures",
    )


def _level(cell: CellFindings, name: str) -> str:
    return fmt.level(cell.parameters[name]) if name in cell.parameters else ""


def _status(cell: CellFindings, with_reason: bool) -> Cell:
    reason = cell.note or cell.stop_reason if with_reason and cell.status != "ok" else ""
    word = _status_word(cell)
    return (Text(word), Text(reason, Tone.SOFT)) if reason else word


def _status_word(cell: CellFindings) -> str:
    """The status as people read it: a cell whose further trials were skipped failed, unless its own
    check gave it up."""
    return "failed" if cell.has_failed else cell.status


def _indicators(findings: Findings) -> list[Column]:
    columns: list[Column] = []
    names = findings.names_in_order()
    if len(findings.cells) == 1:  # it is its own base
        names = [name for name in names if name not in _RELATIVE]
    # The first is the primary one, which stays in the narrowest terminal. What an answer is about,
    # the speed-up, stays longer than what stands before it. No answer is about that of a load that
    # is asked for a rate.
    longest = names[0] if findings.is_paced else "speedup"
    # The first one that was asked for by name beside it stays before all others.
    asked = [name for name in names[1:] if name in findings.asked_by_name][:1]
    # So does a figure of which an answer or a warning says how it differs: it is looked for.
    told = {name for name in names if _is_told(findings, name)}
    # At a rate that was not kept a latency is that of what waited, so which part was stays with it.
    missed = [name for name in names if RATE_SHARE.search(name) and _is_missed(findings, name)][:1]
    longest_first = [names[0], *missed, *asked, longest] if names else []
    worth = sorted(
        names,
        key=lambda name: (
            longest_first.index(name) if name in longest_first else len(longest_first),
            name not in told,
        ),
    )
    percentiles = _percentiles(names)
    for name in names:
        info = findings.indicator(name)
        label = info.label or name
        short = label.replace("involuntary", "invol.").replace("voluntary", "vol.")
        short = percentiles.get(name) or _OF_ONE.sub(r"\1, ", short)
        make = partial(_entries, findings.cells, name, info.unit, findings.primary)
        is_filled = any(name in cell.indicators for cell in findings.cells)
        columns.append(
            Column(
                label,
                make,
                Role.NUMBER,
                short=short,
                name=name,
                note=info.note,
                wanted=worth.index(name),
                is_filled=is_filled,
                kind="latency" if is_latency(name) else "",
                below=_BELOW if is_latency(name) else 0,
            )
        )
    return columns


def _percentiles(names: Sequence[str]) -> dict[str, str]:
    """``p99`` for the heading of a latency; none where two of them have the same percentile."""
    found = {
        name: match[1] for name in names if is_latency(name) if (match := _PERCENTILE.search(name))
    }
    several = Counter(found.values())
    return {name: percentile for name, percentile in found.items() if several[percentile] == 1}


def _is_missed(findings: Findings, share: str) -> bool:
    """Was the rate that a load was asked for not kept in a cell, by this share of it?"""
    figures = (cell.indicators.get(share) for cell in findings.cells)
    return any(figure is not None and figure.value < RATE_KEPT_MIN for figure in figures)


def _is_told(findings: Findings, name: str) -> bool:
    """Does an answer or a warning say of this figure how it differs between cells? That the
    hypervisor took CPU time says nothing of a column."""
    info = findings.indicator(name)
    said = words.figure(info.label or name).casefold()
    return any(
        f"{said} {verb} " in item.sentence.casefold()
        for item in findings.sentences
        if item.kind != "note"
        for verb in _TELLING_VERBS
    )


def _entries(cells: Sequence[CellFindings], name: str, unit: str, primary: str) -> Entries:
    """The entries of an indicator, and the unit that suits all of them."""
    found = [cell.indicators.get(name) for cell in cells]
    figures = [figure for figure in found if figure]
    unit = next((figure.unit for figure in figures if figure.unit), unit)
    scale = fmt.scale_for([figure.value for figure in figures], unit)
    entries: list[Cell] = []
    for cell, figure in zip(cells, found, strict=True):
        if figure is None:
            entries.append(Missing(cell.absent.get(name, "")))
        else:
            shown = fmt.estimate(figure, scale)
            mark = _mark(cell, figure, name, primary)
            if _is_open(figure):
                entries.append(Number(shown.value, NO_INTERVAL, order=figure.value, mark=mark))
                continue
            entries.append(
                Number(
                    shown.value,
                    shown.spread,
                    shown.span,
                    figure.value,
                    shown.is_skewed,
                    mark,
                )
            )
    # A factor like 2× speaks for itself.
    return Entries(entries, "" if scale.symbol == "×" else scale.symbol)


def _is_open(figure: Estimate) -> bool:
    """Are the trials so few, and so different, that the interval holds next to any figure?"""
    if figure.low is None or figure.high is None or figure.value <= 0 or figure.low < 0:
        return False
    if figure.n >= _FEW:
        return False
    return figure.high > _TELLING * figure.value and figure.low * _TELLING < figure.value


def _mark(cell: CellFindings, figure: Estimate, name: str, primary: str) -> str:
    is_shaped = cell.two_levels or cell.slow_tail or cell.fast_tail
    uneven = (name == primary and is_shaped) or (name == "speedup" and cell.widened)
    said = {DOUBT: figure.in_doubt, UNEVEN: uneven, WRONG: name in cell.contradicted}
    return "".join(mark for mark, is_so in said.items() if is_so)


def _remarks(findings: Findings) -> Iterator[Paragraph]:
    """What happened to cells that are not well, the same remark once."""
    settings: dict[str, list[str]] = {}
    for cell in findings.cells:
        if cell.status != "ok" and (cell.note or cell.stop_reason):
            remark = cell.note or cell.stop_reason
            if not remark.startswith(words.cause("program_failed")):  # it says that it failed
                remark = f"{_status_word(cell)}: {remark}"
            settings.setdefault(remark, []).append(fmt.setting(cell.parameters))
    for remark, where in settings.items():
        if len(where) == len(findings.cells) > 1:
            yield Paragraph(f"{remark} ({fmt.all_of(len(where), 'cell')})", Tone.WARNING)
            continue
        yield Paragraph(f"{remark}{fmt.in_brackets(where, _NAMED_MAX)}", Tone.WARNING)

"""What was rejected, and what was used with a doubt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from concurve import words
from concurve.findings.cells import CellFindings, FailureOutput, Reject, on_hosts
from concurve.findings.counts import count_trials
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Code,
    Collapsible,
    Column,
    Detail,
    List,
    Paragraph,
    Role,
    Section,
    Table,
    Tone,
)

# At most this many trials are listed; further ones are counted.
_LISTED_MAX = 200
# What stands in place of the reason of a cell whose trials are listed.
_SEE_BELOW = "see below"
# At most this many are shown unfolded.
_OPEN_MAX = 12


def section(findings: Findings) -> Section:
    """Causes and trials; in a brief report the causes."""
    return Section(
        "What was rejected",
        tuple(_blocks(findings)),
        anchor="rejected",
        folded=True,
        summary=summary(findings),
    )


def output(failure: FailureOutput) -> Section:
    """The end of what a program had written that failed."""
    where = ", ".join(filter(None, (fmt.setting(failure.parameters), failure.cause)))
    if not failure.lines:
        return Section("", (Paragraph(f"role {failure.role} wrote nothing ({where})"),))
    return Section(
        f"End of {failure.stream} of role {failure.role} ({where})",
        tuple(Code(line) for line in failure.lines),
    )


def quoted_once(findings: Findings, outputs: Sequence[FailureOutput]) -> Findings:
    """The findings without the lines of failed programs that stand in the outputs below them, and
    the reason of a run that failed without the note of the cell that it quotes."""
    if not outputs:
        return findings

    def briefly(text: str) -> str:
        for line in (line.strip() for output in outputs for line in output.lines):
            if line and text.endswith(f": {line}"):
                return f"{text.removesuffix(line)}{_SEE_BELOW}"
        return text

    def reason(text: str) -> str:
        for cell in findings.cells:
            if cell.note and text.endswith(f": {cell.note}"):
                return f"{text.removesuffix(cell.note)}{fmt.setting(cell.parameters)}"
        return briefly(text)

    run = findings.run
    return replace(
        findings,
        run=replace(run, reason=reason(run.reason)),
        cells=tuple(replace(cell, note=briefly(cell.note)) for cell in findings.cells),
        rejects=tuple(replace(it, detail=briefly(it.detail)) for it in findings.rejects),
    )


def told_below(findings: Findings) -> Findings:
    """The findings whose failed cells refer to the list of the trials, which has the reason."""
    told = {
        (fmt.setting(it.parameters), words.why(it.cause, it.detail)): words.cause(it.cause)
        for it in findings.rejects[:_LISTED_MAX]
        if it.detail and not it.detail.endswith(_SEE_BELOW)
    }

    def of(cell: CellFindings) -> CellFindings:
        cause = told.get((fmt.setting(cell.parameters), cell.note))
        return replace(cell, note=f"{cause}: {_SEE_BELOW}") if cause and cell.has_failed else cell

    return replace(findings, cells=tuple(map(of, findings.cells)))


def summary(findings: Findings, *, with_doubts: bool = True) -> str:
    """The trials rejected and in doubt, with their causes; empty if there are none."""
    return "; ".join(_counted(findings, with_doubts))


def _blocks(findings: Findings) -> Iterator[Block]:
    if not findings.rejects:
        yield Paragraph("Nothing: every trial was used.", detail=Detail.FULL)
        return
    for text in _counted(findings):
        yield Paragraph(text, detail=Detail.FULL)
        # The causes stand with their trials below.
        yield Paragraph(text.partition(": ")[0], detail=Detail.BRIEF)
    kept = "The records of rejected trials stay in the run."
    yield Paragraph(kept, Tone.SOFT, detail=Detail.FULL)
    both = _with_and_without(findings)
    if both.length:
        yield both
    quiet = _quiet_and_all(findings)
    if quiet.length:
        yield quiet
    trials: list[Block] = [_trials(findings.rejects[:_LISTED_MAX])]
    yield List(tuple(_each(findings)), detail=Detail.BRIEF)
    more = len(findings.rejects) - _LISTED_MAX
    if more > 0:
        trials.append(Paragraph(f"and {more:,} more", Tone.SOFT))
    is_open = len(findings.rejects) <= _OPEN_MAX
    yield Collapsible("Each trial and its cause", tuple(trials), is_open, detail=Detail.FULL)


def _counted(findings: Findings, with_doubts: bool = True) -> Iterator[str]:
    """``5 of 35 trials rejected, 24 used, 6 set aside: error (3), other processes used the CPUs
    (2)``: those in doubt are used, or set aside. Then those, in the same way."""
    redone = [item for item in findings.rejects if not item.used]
    doubted = [item for item in findings.rejects if item.used and with_doubts]
    counts = count_trials(findings.run.trials, findings.rejects, findings.cells)
    used = f"{counts.used:,}" if counts.used else "none"
    aside = f", {counts.set_aside:,} set aside" if counts.set_aside else ""
    rejected = (
        f"{words.count_of(counts.rejected, counts.made, 'trial')} rejected, {used} used{aside}"
    )
    for items, counted in (
        (redone, rejected),
        (doubted, f"{fmt.count(counts.doubted, 'trial')} in doubt{counts.aside}"),
    ):
        if counter := Counter(item.cause for item in items):
            of_cause = {cause: [it for it in items if it.cause == cause] for cause in counter}
            causes = ", ".join(
                f"{words.cause(cause)}{on_hosts(of_cause[cause])} ({number})"
                for cause, number in counter.most_common()
            )
            yield f"{counted}: {causes}"


def _each(findings: Findings) -> Iterator[Paragraph]:
    """``trial 1 of n=1; trials 3, 7-11 of n=2: was not ready: …``: the trials that were not used,
    then ``in use: trial 3 of n=2: …`` those in doubt; those of one reason together. Figures of a
    disturbance differ in each trial: of each cell the first one's are shown."""
    for lead, is_used in (("", False), ("in use: ", True)):
        items = [item for item in findings.rejects if item.used is is_used]
        alike: dict[tuple[str, ...], list[Reject]] = {}
        for item in items[:_LISTED_MAX]:
            own = fmt.setting(item.parameters) if item.cause in words.DISTURBANCES else item.detail
            alike.setdefault((item.cause, own), []).append(item)
        for these in alike.values():
            first, details = these[0], {item.detail for item in these}
            detail = first.detail if len(details) == 1 else f"the first: {first.detail}"
            yield Paragraph(words.why(first.cause, detail), lead=lead + _which(these))
        if len(items) > _LISTED_MAX:
            yield Paragraph(f"{lead}and {len(items) - _LISTED_MAX:,} more", Tone.SOFT)


def _which(rejects: Sequence[Reject]) -> str:
    """``trials 3, 7-11 of threads=2``, with ``(8 attempts)`` where some were made again."""
    cells: dict[str, list[Reject]] = {}
    for item in rejects:
        cells.setdefault(fmt.setting(item.parameters), []).append(item)
    named = []
    for setting, own in cells.items():
        numbers = sorted({item.block + 1 for item in own})
        attempts = f" ({len(own)} attempts)" if len(own) > len(numbers) else ""
        what = words.verb(len(numbers), "trial", "trials")
        of = f" of {setting}" if setting else ""
        named.append(f"{what} {_numbered(numbers)}{of}{attempts}")
    return "; ".join(named)


def _numbered(numbers: Sequence[int]) -> str:
    """Ascending numbers, three or more in a row as the first and the last: ``3, 7-11``."""
    rows: list[list[int]] = []
    for number in numbers:
        if rows and rows[-1][-1] == number - 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    parts = [f"{row[0]}-{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows]
    return ", ".join(parts)


def _with_and_without(findings: Findings) -> Table:
    """The primary figure of the cells that have rejects, without and with them."""
    names, without, with_them = [], [], []
    for cell in findings.cells:
        figure = cell.indicators.get(findings.primary)
        if cell.including_rejects is not None and figure is not None:
            scale = fmt.scale_for([figure.value], figure.unit)
            names.append(fmt.setting(cell.parameters))
            without.append(fmt.estimate(figure, scale).text)
            with_them.append(fmt.estimate(cell.including_rejects, scale).text)
    columns = (
        Column("cell", names, Role.KEY),
        Column("without rejects", without),
        Column("with them", with_them),
    )
    return Table(columns, detail=Detail.FULL)


def _quiet_and_all(findings: Findings) -> Table:
    """The primary figure of the cells of which trials are set aside, without them and with all."""
    cells = [cell for cell in findings.cells if cell.including_doubtful is not None]
    figures = [(cell.indicators.get(findings.primary), cell.including_doubtful) for cell in cells]
    texts = [
        [
            fmt.estimate(figure, fmt.scale_for([figure.value], figure.unit)).text if figure else ""
            for figure in pair
        ]
        for pair in figures
    ]
    aside = [f"{cell.set_aside:,} of {cell.trials:,}" for cell in cells]
    return Table(
        (
            Column("cell", [fmt.setting(cell.parameters) for cell in cells], Role.KEY),
            Column("figure", [pair[0] for pair in texts]),
            Column("all in use", [pair[1] for pair in texts]),
            Column("set aside", aside),
        )
    )


def _trials(rejects: tuple[Reject, ...]) -> Table:
    return Table(
        (
            Column("cell", [fmt.setting(item.parameters) for item in rejects], Role.KEY),
            Column("block", [str(item.block + 1) for item in rejects]),
            Column("attempt", [str(item.attempt + 1) for item in rejects]),
            Column("cause", [item.cause for item in rejects]),
            Column("detail", [item.detail for item in rejects]),
            Column("used", ["yes" if item.used else "no" for item in rejects]),
        )
    )

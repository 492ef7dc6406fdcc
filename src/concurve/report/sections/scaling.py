"""Scaling models fitted to a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from concurve.findings.explanation import CPUS, CellExplanation
from concurve.findings.run import Report
from concurve.findings.scaling import ScalingFinding
from concurve.report import format as fmt
from concurve.report.document import (
    Cell,
    Column,
    Detail,
    Document,
    List,
    Missing,
    Paragraph,
    Role,
    Section,
    Table,
    Tone,
    at_detail,
)

#: A full report describes at most this many groups in sentences; its table has all of them.
GROUPS_IN_SENTENCES = 8
_NO_CAUSE = (
    "The parameters of a model describe the shape of a curve: contention and coherency are their "
    "names, no causes. The causes are named under “Where the time goes”."
)


#: Causes that hold a throughput where it is, whatever the shape of the curve before.
_CEILINGS = {
    "cpu": "the CPUs",
    "stage": "one stage for which the others wait",
    "memory": "perhaps the bandwidth of memory",
    "quota": "a quota of CPU time",
    "client": "the load generator",
}
#: Limits of a cell that these name already.
_NAMED_ALREADY = ("", CPUS, "load")


def section(report: Report) -> Section | None:
    """The models in a full report. They describe curves; where the report names causes, it says so
    here."""
    found = brief(report.scaling, report.explanation.cells if report.explanation else ())
    if found is None or report.explanation is None:
        return found
    return msgspec.structs.replace(found, blocks=(*found.blocks, Paragraph(_NO_CAUSE, Tone.SOFT)))


def brief(found: Sequence[ScalingFinding], cells: Sequence[CellExplanation] = ()) -> Section | None:
    """The models in sentences, and as a table where there are several groups of cells. ``cells``
    say what limits them, of which a prediction knows nothing."""
    if not found:
        return None
    sentences = List(tuple(_sentences(found[:GROUPS_IN_SENTENCES], cells)))
    more = List(tuple(_sentences(found[GROUPS_IN_SENTENCES:], cells)), detail=Detail.BRIEF)
    blocks = [sentences, *([more] if more.items else [])]
    table = [_table(found)] if len(found) > 1 else []
    how = Paragraph(_subject(found), Tone.SOFT, detail=Detail.FULL)
    return Section("Scaling models", (*blocks, *table, how), anchor="models", folded=True)


def scaling_document(found: ScalingFinding, detail: Detail = Detail.BRIEF) -> Document:
    """The models of a single group, as a separate document."""
    group = f" with {fmt.setting(found.group)}" if found.group else ""
    section = brief((found,))
    blocks = section.blocks if section else ()
    document = Document(title=f"{found.label} against {found.work}{group}", blocks=blocks)
    return at_detail(document, detail)


def _sentences(
    found: Sequence[ScalingFinding], cells: Sequence[CellExplanation]
) -> Iterator[Paragraph]:
    for item in found:
        group = fmt.setting(item.group)
        if item.answers:
            yield Paragraph(" ".join((*item.answers, *_not_known(item, cells))), lead=group)
        elif item.fit is None:
            yield Paragraph(f"No model fitted: {item.reason}.", Tone.WARNING, lead=group)
        for sentence in item.warnings:
            yield Paragraph(sentence, Tone.WARNING)


def _not_known(item: ScalingFinding, cells: Sequence[CellExplanation]) -> Iterator[str]:
    """That a prediction does not know what limits the greatest level, where that is a ceiling."""
    if item.fit is None or item.expected is None:
        return
    top = max(item.fit.levels)
    wanted = {**item.group, item.work: top}.items()
    for cell in cells:
        if (
            cell.cause not in _CEILINGS
            or cell.loses_nothing
            or not wanted <= cell.parameters.items()
        ):
            continue
        is_new = cell.limit not in _NAMED_ALREADY
        what = "one busy thread" if cell.cause == "cpu" and is_new else _CEILINGS[cell.cause]
        named = f"{what} ({cell.limit})" if is_new else what
        yield (
            f"No model knows what limits {item.work}={top:g}: {named}. Where it limits more as "
            "well, throughput stays below the prediction."
        )


def _table(found: Sequence[ScalingFinding]) -> Table:
    return Table(
        (
            Column("cells", [fmt.setting(item.group) for item in found], Role.KEY),
            Column("model (weight)", [_model(item) for item in found]),
            Column("parameters", [item.parameters for item in found]),
            Column("peak N", [_peak(item) for item in found]),
            Column(_expected_heading(found), [_expected(item) for item in found]),
        ),
        title="One row a group of cells.",
        detail=Detail.FULL,
    )


def _model(item: ScalingFinding) -> Cell:
    if item.fit is None:
        return Missing(item.reason)
    best = item.fit.best
    return f"{best.title} ({100 * best.weight:.0f} %), {best.formula}"


def _peak(item: ScalingFinding) -> str:
    if item.fit is None:
        return ""
    peak = item.fit.stated.peak
    if peak is None or not peak.established:
        return "not established"
    shown = fmt.estimate(peak.n)
    return f"{shown.value} ({shown.span})"


def _expected(item: ScalingFinding) -> Cell:
    if item.expected is None:
        return "" if item.fit is None else Missing()
    shown = fmt.estimate(item.expected.throughput)
    return f"{fmt.with_unit(shown.value, shown.unit)} ({shown.span})"


def _expected_heading(found: Sequence[ScalingFinding]) -> str:
    """The heading of the column of predictions; the greatest level may differ between groups."""
    places = {(item.work, item.expected.n) for item in found if item.expected}
    if len(places) != 1:
        return "expected at twice the greatest level"
    work, n = places.pop()
    return f"expected at {work}={n:g}"


def _subject(found: Sequence[ScalingFinding]) -> str:
    """What was fitted, and how to read the intervals."""
    first = found[0]
    models, read = "Scaling models", ""
    fits = [item.fit for item in found if item.fit]
    if fits:
        # Each group is offered the same models; one left out of a fit is named there.
        models = f"{len(fits[0].models) + len(fits[0].left_out)} scaling models"
    if any(fit.misfit is None for fit in fits):
        read = (
            f" Intervals are {100 * fits[0].confidence:g} % profile-likelihood intervals, over "
            "every model that the measurements do not contradict."
        )
    return f"{models} of {first.label} ({first.indicator}) against {first.work}.{read}"

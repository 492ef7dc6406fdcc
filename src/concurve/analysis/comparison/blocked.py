"""Where threads were blocked, in the cells that two runs have: the differences, or why there are
none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import msgspec

from concurve.analysis.comparison.sides import apart, without
from concurve.findings.explanation import BLOCKED_MIN, CellExplanation, Explanation
from concurve.findings.run import Report
from concurve.findings.several import BlockedDifference
from concurve.findings.stacks import difference_ns, without_lines
from concurve.terms import CellKey, cell_key


def blocked_differences(
    base: Sequence[Report], news: Sequence[Sequence[Report]]
) -> tuple[list[BlockedDifference], list[str]]:
    """The cells of all sides that were blocked at known places, the greatest difference first, and
    a sentence for each side that has none. Stacks are those of the first run of a side."""
    found: list[BlockedDifference] = []
    reasons: list[str] = []
    for new in news:
        names = apart(base, new)
        why = _not_comparable(base[0], new[0])
        pairs = [] if why else list(_pairs(base[0], new[0], names))
        drawn = [pair for pair in pairs if _is_drawn(pair.of_new) or _is_drawn(pair.of_base)]
        found += drawn
        if not drawn:
            reasons.append(why or _nothing(pairs, base[0].run.id, new[0].run.id))
    found.sort(key=lambda pair: -pair.difference_ns)
    return found, list(dict.fromkeys(reasons))


def _not_comparable(base: Report, new: Report) -> str:
    """Why the blocked time of two runs is not compared, or empty."""
    for run in (base, new):
        if why := _not_sampled(run):
            return why
    one, other = (run.explanation for run in (base, new))
    if one is not None and other is not None and one.operation != other.operation:
        return (
            f"An operation is not the same in {new.run.id} ({other.operation}) and in "
            f"{base.run.id} ({one.operation})."
        )
    return ""


def _not_sampled(run: Report) -> str:
    """Why the places of its waits are not known, or empty."""
    explanation = run.explanation
    if explanation is None:
        return f"The report of {run.run.id} does not say where its thread time goes."
    # A cell without samples has no kinds of waiting; one that was not blocked has them, all 0.
    if any(cell.by_kind for cell in explanation.cells):
        return ""
    why = explanation.missing.get("waits", "")
    return f"{run.run.id} has no samples of what its threads waited for{f': {why}' if why else ''}."


def _pairs(base: Report, new: Report, names: Collection[str]) -> Iterator[BlockedDifference]:
    """The cells of both that have samples, with their stacks by functions; the factors of these
    names tell the runs apart, and name no cell."""
    of_base = _sampled(base.explanation, names)
    of_new = _sampled(new.explanation, names)
    common = [key for key in of_new if key in of_base]
    varying = _varying(common)
    for key in common:
        one, other = of_base[key], of_new[key]
        yield BlockedDifference(
            new=new.run.id,
            base=base.run.id,
            parameters={n: level for n, level in other.parameters.items() if n in varying},
            of_new=other,
            of_base=one,
            difference_ns=difference_ns(other.stacks, one.stacks),
        )


def _sampled(
    explanation: Explanation | None, names: Collection[str]
) -> dict[CellKey, CellExplanation]:
    cells = explanation.cells if explanation is not None else ()
    return {
        cell_key(without(cell.parameters, names)): msgspec.structs.replace(
            cell, stacks=without_lines(cell.stacks)
        )
        for cell in cells
        if cell.by_kind
    }


def _varying(cells: Sequence[CellKey]) -> set[str]:
    """The factors in which the cells differ."""
    levels = Counter(name for name, _ in frozenset[tuple[str, str]]().union(*cells))
    return {name for name, number in levels.items() if number > 1}


def _is_drawn(cell: CellExplanation) -> bool:
    return cell.is_blocked and cell.has_places


def _nothing(pairs: Sequence[BlockedDifference], base: str, new: str) -> str:
    """Why no cell of two runs with samples has a difference."""
    cells = [cell for pair in pairs for cell in (pair.of_new, pair.of_base)]
    if not cells:
        return f"No cell has samples in both {new} and {base}."
    if any(cell.is_blocked for cell in cells):
        return f"No place is known at which threads of {new} or {base} waited."
    return (
        f"The threads of {new} and {base} were blocked for less than {100 * BLOCKED_MIN:g} % of "
        "their time."
    )

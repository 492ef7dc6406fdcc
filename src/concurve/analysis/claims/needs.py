"""Claims that can be decided only where some cells differ.

Where they are shown to be alike, no verdict on the claim says anything: what it compares makes no
difference there, whichever way it would go. Such a claim cannot be decided. Where it is not known
whether they differ, the claim is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from concurve import words
from concurve.analysis.claims.answer import Answer, bounded, setting_in_words
from concurve.analysis.claims.variation import NO_VARIATION, Variation, variation
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell, Needs
from concurve.words import listed


class _Cells(NamedTuple):
    """The cells that were run, and those that were not."""

    there: Sequence[Cell]
    missing: Sequence[Cell]


def where_they_differ(
    ask: Callable[[float], Answer],
    needs: Needs,
    indicator: str,
    samples: Samples,
    confidence: float,
) -> Answer:
    """The answer of a claim's test, ``ask``, as far as the cells that it needs to differ do so.

    Two errors are possible: the test's own, and that cells which differ are taken for alike. They
    share what ``confidence`` leaves. The first gets half of it; the second is that of one bound of
    an interval (as in two one-sided tests: Schuirmann 1987), which is the other half.

    Raises:
        MissingError: fewer than two of the cells were run, or a cell of the claim was not.
    """
    own = ask(1 - (1 - confidence) / 2)
    cells = _measured(needs, indicator, samples)
    found = variation(cells.there, indicator, samples, confidence)
    own = own._replace(
        threshold=f"{own.threshold}, where cells differ by more than {needs.differ_by * 100:g} %"
    )
    if found is None:
        return own._replace(verdict="undecided", reason=NO_VARIATION, trials=None)
    own = own._replace(differ=found.share)
    return _held(own, needs, found, cells)


def _held(own: Answer, needs: Needs, found: Variation, cells: _Cells) -> Answer:
    """The answer, as far as the cells differ as ``found``."""
    alike = bounded(found.ratio, None, 1 + needs.differ_by, found.spread, found.resolution)
    if alike.verdict == "refuted":
        return own
    most = found.share.high
    assert most is not None
    greatest, least = (_named(cells.there[index], cells.there)
                       for index in (found.greatest, found.least))  # fmt: skip
    above, at_most = words.in_percent(found.share.value), words.in_percent(most)
    seen = (
        f"{greatest}, the greatest, is {above} % above {least}, the least "
        f"(at most {at_most} %), and the claim needs more than {needs.differ_by * 100:g} %"
    )
    if alike.verdict == "undecided":
        reason = f"it is open whether its cells differ: {seen}"
        return own._replace(verdict="undecided", reason=reason, trials=alike.trials)
    if cells.missing:
        names = listed([_named(cell, [*cells.there, *cells.missing]) for cell in cells.missing])
        return own._replace(verdict="undecided", reason=f"{seen}; {names} was not run", trials=None)
    return own._replace(
        verdict="cannot be decided",
        reason=f"what it compares makes no difference here: {seen}",
        trials=None,
    )


def _measured(needs: Needs, indicator: str, samples: Samples) -> _Cells:
    there: list[Cell] = []
    missing: list[Cell] = []
    for cell in needs.cells:
        try:
            samples.by_block(cell, indicator)
        except MissingError:
            missing.append(cell)
        else:
            there.append(cell)
    if len(there) < 2:
        names = listed([_named(cell, needs.cells) for cell in missing])
        raise MissingError(f"of the cells that must differ, {names} have no {indicator}")
    return _Cells(there, missing)


def _named(cell: Cell, among: Sequence[Cell]) -> str:
    """The levels in which it differs from the others."""
    own = {
        name: level
        for name, level in cell.items()
        if any(other.get(name) != level for other in among)
    }
    return setting_in_words(own or cell)

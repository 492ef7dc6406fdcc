"""Verdicts that rest on a machine that was not quiet. Pure.

Trials that could not be redone are used with a doubt. A verdict that rests on them stands only if
the quiet trials alone give the same verdict; otherwise it is undecided, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from concurve.analysis.agreement import published_tables
from concurve.analysis.claims import judge_claims
from concurve.analysis.samples import Samples
from concurve.definition.claim_kinds import KINDS
from concurve.definition.study import Study
from concurve.findings.claims import ClaimFinding
from concurve.findings.published import PublishedComparison, PublishedTable
from concurve.terms import Level


def claims_in_doubt(
    study: Study,
    samples: Samples,
    quiet: Samples | None,
    block_seconds: float | None = None,
    had: int = 0,
) -> tuple[ClaimFinding, ...]:
    """The claims judged by all trials in use. ``quiet`` are the samples without the trials in doubt
    (``None`` if there are none): a verdict that they do not give is withheld. ``block_seconds``
    and ``had`` as in :func:`~concurve.analysis.claims.judge_claims`."""
    found = judge_claims(study, samples, block_seconds, had)
    if quiet is None:
        return found
    return tuple(_claim(*pair) for pair in zip(found, judge_claims(study, quiet), strict=True))


def published_in_doubt(
    study: Study, samples: Samples, quiet: Samples | None, first: Mapping[str, Level]
) -> tuple[PublishedTable, ...]:
    """The published figures likewise; ``first`` as in
    :func:`~concurve.analysis.agreement.published_tables`."""
    tables = published_tables(study, samples, first)
    if quiet is None:
        return tables
    others = published_tables(study, quiet, first)
    return tuple(_table(*pair) for pair in zip(tables, others, strict=True))


def _table(found: PublishedTable, alone: PublishedTable) -> PublishedTable:
    figures = (_figure(*pair) for pair in zip(found.figures, alone.figures, strict=True))
    return msgspec.structs.replace(found, figures=tuple(figures))


def withheld_claims(found: tuple[ClaimFinding, ...], why: str, by: str) -> tuple[ClaimFinding, ...]:
    """The claims without the verdicts that a doubt of the whole run leaves open; ``by`` says by
    what they had these."""
    return tuple(
        msgspec.structs.replace(
            it,
            verdict="undecided",
            reason=f"{why}; {it.verdict} {by}",
            doubt=why,
            trials=None,
        )
        if _is_judged(it)
        else it
        for it in found
    )


def withheld_published(found: tuple[PublishedTable, ...], why: str) -> tuple[PublishedTable, ...]:
    """The published figures likewise."""
    return tuple(
        msgspec.structs.replace(
            table,
            figures=tuple(
                msgspec.structs.replace(it, verdict="undecided", reason=why)
                if _is_compared(it)
                else it
                for it in table.figures
            ),
        )
        for table in found
    )


def _is_judged(found: ClaimFinding) -> bool:
    """Does its verdict rest on figures that vary?"""
    verdicts = ("supported", "refuted", "cannot be decided")
    return found.verdict in verdicts and not KINDS[found.kind].exact


def _is_compared(found: PublishedComparison) -> bool:
    return found.verdict in ("agrees", "differs") and not _is_exact(found)


def _claim(found: ClaimFinding, alone: ClaimFinding) -> ClaimFinding:
    if not _is_judged(found) or found.verdict == alone.verdict:
        return found
    doubt = _doubt(found.verdict, alone.verdict == "not testable here")
    return msgspec.structs.replace(found, verdict="undecided", reason=doubt, doubt=doubt)


def _figure(found: PublishedComparison, alone: PublishedComparison) -> PublishedComparison:
    if not _is_compared(found) or found.verdict == alone.verdict:
        return found
    doubt = _doubt(found.verdict, alone.verdict == "not comparable")
    return msgspec.structs.replace(found, verdict="undecided", reason=doubt)


def _is_exact(found: PublishedComparison) -> bool:
    """Are these readings that are equal in every trial, such as counts and priorities?"""
    ours = found.ours
    if found.compare == "order" or ours is None:
        return True
    return ours.low is not None and ours.low == ours.high


def _doubt(verdict: str, none_left: bool) -> str:
    why = "a cell has no other trials" if none_left else "not by its quiet trials alone"
    return f"the machine was not quiet: {verdict} by all trials, but {why}"

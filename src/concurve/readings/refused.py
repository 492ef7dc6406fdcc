"""What a trial's programs wrote to the report channel in vain. Pure."""

from __future__ import annotations

from concurve.definition.units import format_count
from concurve.wire.record import TrialRecord

#: So much of a refused line is shown.
_EXCERPT_CHARS = 60


def refused_lines(record: TrialRecord) -> str:
    """A sentence without its full stop on the lines of the report channel that were refused; empty
    if none was."""
    refused = [(role.name, error) for role in record.roles for error in role.report_errors]
    if not refused:
        return ""
    name, first = refused[0]
    were, they = ("was", "it reports") if len(refused) == 1 else ("were", "they report")
    excerpt = (
        first.excerpt
        if len(first.excerpt) <= _EXCERPT_CHARS
        else (first.excerpt[: _EXCERPT_CHARS - 1] + "…")
    )
    return (
        f"{format_count(len(refused), 'line')} of the report channel {were} refused, so what "
        f"{they} is missing; the first, line {first.line} of {name}: {first.message}: {excerpt!r}"
    )

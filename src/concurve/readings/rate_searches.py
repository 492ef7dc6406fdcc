"""Why a search for the rate that keeps an objective (``concurve-load --slo``) gave none. Pure."""

from __future__ import annotations

from concurve.readings.copies import is_of
from concurve.wire.record import TrialRecord

#: How the indicators begin that are the answer of a search.
PREFIX = "slo_rate_"

#: The fact with all that a search found, and its key of the answer as a sentence.
_FACT, _VERDICT = "slo", "verdict"


def why_no_rate(record: TrialRecord, indicator: str, target: str) -> str | None:
    """What the search said that did not report this indicator, which is one of the role ``target``
    if it names no other; ``None`` if no search is meant."""
    wanted, _, name = indicator.rpartition(".")
    if not name.startswith(PREFIX):
        return None
    for role in record.roles:
        found = role.facts.get(_FACT)
        if is_of(role.name, wanted or target) and isinstance(found, dict):
            return str(found.get(_VERDICT, "")) or None
    return None

"""What would decide the undecided claims of a run."""

from __future__ import annotations

import pytest

from concurve.analysis.claims.deciding import deciding
from concurve.findings.claims import ClaimFinding, Deciding, VerdictName


def claims(*needed: int | None, verdict: VerdictName = "undecided") -> list[ClaimFinding]:
    """Claims that so many trials of each cell would decide."""
    return [
        ClaimFinding(id=str(place), says="", source="", kind="ratio", verdict=verdict, reason="",
                     trials=trials)
        for place, trials in enumerate(needed)
    ]  # fmt: skip


def test_half_of_the_claims_and_all_of_them() -> None:
    found = deciding(claims(12, 9, 40, 300, None), 2.0)
    assert found == (
        Deciding(trials=12, claims=2, seconds=24.0),
        Deciding(trials=300, claims=4, seconds=600.0),
    )


@pytest.mark.parametrize(
    ("needed", "counts"), [((7,), [1]), ((7, 7, 7), [3]), ((7, 8), [1, 2]), ((7, 7, 8), [2, 3])]
)
def test_one_number_where_half_of_them_take_as_many(
    needed: tuple[int, ...], counts: list[int]
) -> None:
    found = deciding(claims(*needed), None)
    assert [item.claims for item in found] == counts
    assert [item.seconds for item in found] == [None] * len(counts)


def test_what_is_decided_or_not_known_counts_for_nothing() -> None:
    assert deciding([], 1.0) == ()
    assert deciding(claims(None, None), 1.0) == ()
    assert deciding(claims(8, verdict="supported"), 1.0) == ()

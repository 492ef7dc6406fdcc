"""What would decide the undecided claims of a run."""

from __future__ import annotations

from collections.abc import Sequence

from concurve.findings.claims import ClaimFinding, Deciding


def deciding(claims: Sequence[ClaimFinding], block_seconds: float | None) -> tuple[Deciding, ...]:
    """How many trials of each cell would decide half of the undecided claims, and how many all of
    them, of those of which it is known; once where both are alike, and none without such claims.

    ``block_seconds`` is the time of one trial of every cell.
    """
    needed = sorted(
        claim.trials
        for claim in claims
        if claim.verdict == "undecided" and claim.trials is not None
    )
    if not needed:
        return ()
    half, most = needed[(len(needed) - 1) // 2], needed[-1]
    return tuple(
        Deciding(
            trials=trials,
            claims=sum(number <= trials for number in needed),
            seconds=None if block_seconds is None else trials * block_seconds,
        )
        for trials in dict.fromkeys((half, most))
    )

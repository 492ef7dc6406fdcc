"""What a report says beside the verdicts on claims."""

from __future__ import annotations

import msgspec

from concurve.findings.claims import ClaimFinding, Deciding
from concurve.findings.run import Report
from concurve.report.markdown import to_markdown
from concurve.report.sections.run import run_document
from tests.report import samples


def with_claims(*needed: int | None, deciding: tuple[Deciding, ...]) -> Report:
    """A report with undecided claims that so many trials would decide."""
    claims = tuple(
        ClaimFinding(id=str(place), says="So.", source="§1", kind="ratio", verdict="undecided",
                     reason="the interval contains the bound", trials=trials)
        for place, trials in enumerate(needed)
    )  # fmt: skip
    return msgspec.structs.replace(samples.judged(), claims=claims, deciding=deciding)


def test_what_would_decide_is_said_in_trials_and_time() -> None:
    half, all_ = Deciding(trials=9, claims=2, seconds=300.0), Deciding(trials=40, claims=3)
    text = to_markdown(run_document(with_claims(8, 9, 40, None, deciding=(half, all_))))
    assert (
        "Of 4 undecided claims, 9 trials of each cell would decide 2 (about 5 min), 40 trials of "
        "each cell would decide 3; for 1 no number can be computed. That has a power of 80 %, if "
        "the truth is as measured: --repeats 40 in a new run."
    ) in text.replace("\\", "").replace("\n", " ")


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert "would decide" not in to_markdown(run_document(with_claims(None, deciding=())))

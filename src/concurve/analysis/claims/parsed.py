"""The claims of a study as tests on the levels of a run."""

from __future__ import annotations

from concurve.analysis.samples import Samples
from concurve.definition.claim_kinds import ClaimTest, parse_test, with_levels_meant
from concurve.definition.study import Claim, Study


def tests_of(study: Study, samples: Samples) -> list[tuple[Claim, ClaimTest]]:
    """Each claim with its test, whose levels are those of the run that they mean: what looks for a
    cell, or compares levels, finds them as they are."""
    factors = {factor.name: samples.levels(factor.name) for factor in study.factors}
    return [
        (claim, with_levels_meant(parse_test(claim, "study"), factors)) for claim in study.claims
    ]

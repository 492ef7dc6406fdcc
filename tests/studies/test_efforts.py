"""What an effort takes: each document within an hour at normal, and nothing missing that its claims
are about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from concurve.definition import catalogue
from concurve.definition.campaign import Campaign
from concurve.definition.catalogue import find
from concurve.definition.claim_kinds import ClaimTest, Needs, parse_test
from concurve.definition.study import Study
from concurve.terms import Level

CPUS = 2
HOUR = 3600.0


def documents() -> dict[str, list[Study]]:
    """The packaged studies by what is run at once: a campaign, or a study alone."""
    found: dict[str, list[Study]] = {}
    for name, _ in (*catalogue.entries(), *catalogue.campaigns()):
        known = find(name, CPUS)
        members = [m.study for m in known.studies] if isinstance(known, Campaign) else [known]
        found[name] = [study for study in members if isinstance(study, Study)]
    return found


DOCUMENTS = documents()
STUDIES = [
    pytest.param(study, id=study.name) for studies in DOCUMENTS.values() for study in studies
]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_takes_an_hour_at_normal_effort(name: str) -> None:
    """As its dry run says: the allowances of its studies."""
    allowed = [study.efforts["normal"].rules.time_allowed_seconds for study in DOCUMENTS[name]]
    assert sum(allowed) <= HOUR


def named(test: ClaimTest) -> Iterator[tuple[str, Level]]:
    """Every level that a claim names."""
    for field in test.__struct_fields__:
        value = getattr(test, field)
        if field in ("of", "over", "than_of", "than_over", "where") and value:
            yield from value.items()
        elif field == "cells":
            yield from (item for cell in value for item in cell.items())
        elif isinstance(value, Needs):
            yield from (item for cell in value.cells for item in cell.items())
        elif field == "table":
            yield from ((test.factor, level) for level in value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("study", STUDIES)
def test_normal_effort_runs_the_levels_that_its_claims_are_about(study: Study) -> None:
    run = {factor.name: set(map(str, factor.levels)) for factor in study.factors_at("normal")}
    lacking = {
        (claim.id, factor, level)
        for claim in study.claims
        for factor, level in named(parse_test(claim, claim.id))
        if str(level) not in run[factor]
    }
    assert lacking == set()


@pytest.mark.parametrize("study", STUDIES)
def test_efforts_grow(study: Study) -> None:
    """Each effort has the levels of the one below it, no fewer trials and no less time."""
    for lower, higher in (("quick", "normal"), ("normal", "rigorous")):
        first, second = study.efforts[lower].rules, study.efforts[higher].rules
        assert second.repeats_max >= first.repeats_max
        assert second.time_allowed_seconds >= first.time_allowed_seconds or lower == "quick"
        levels = {factor.name: set(factor.levels) for factor in study.factors_at(higher)}
        for factor in study.factors_at(lower):
            assert set(factor.levels) <= levels[factor.name], (lower, factor.name)

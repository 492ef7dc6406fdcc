"""What an effort takes: each document as long as its page says, within an hour at normal, and
nothing missing that its claims are about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.definition import catalogue
from concurve.definition.campaign import Campaign, at_effort
from concurve.definition.catalogue import find
from concurve.definition.claim_kinds import ClaimTest, Needs, parse_test
from concurve.definition.study import Study
from concurve.terms import Level

CPUS = 2
HOUR = 3600.0
PAGES = Path(__file__).parents[2] / "docs" / "studies"

#: What the quick run of a document may take at most, in minutes.
QUICK = {
    "enqueue-io-threads": 3,
    "kernel-mode": 3,
    "java-threads": 15,
    "thread-scaling": 3,
    "io-schedulers": 5,
    "tpcb-multicore": 3,
}


def documents(effort: str | None = None) -> dict[str, list[Study]]:
    """The packaged studies by what is run at once, a campaign or a study alone: those of an effort,
    or all."""
    found: dict[str, list[Study]] = {}
    for name, _ in (*catalogue.entries(), *catalogue.campaigns()):
        known = find(name, CPUS)
        if isinstance(known, Campaign) and effort is not None:
            known = at_effort(known, effort)
        members = [m.study for m in known.studies] if isinstance(known, Campaign) else [known]
        found[name] = [study for study in members if isinstance(study, Study)]
    return found


DOCUMENTS = documents()
STUDIES = [
    pytest.param(study, id=study.name) for studies in DOCUMENTS.values() for study in studies
]


@pytest.mark.parametrize("effort", ["quick", "normal"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_takes_as_long_as_its_page_says(name: str, effort: str) -> None:
    """As its dry run says: the allowances of its studies."""
    studies = documents(effort)[name]
    allowed = sum(study.efforts[effort].rules.time_allowed_seconds for study in studies)
    assert allowed <= (HOUR if effort == "normal" else QUICK[name] * 60)
    assert allowed <= said_by_its_page(name, effort)


def said_by_its_page(name: str, effort: str) -> float:
    """How many seconds the page of a document says that its run takes at most: at normal effort the
    command needs no option."""
    options = "" if effort == "normal" else f" --effort {effort}"
    command = re.escape(f"concurve run {name}{options}")
    lines = re.findall(f"^{command} +# (.*)$", (PAGES / f"{name}.md").read_text(), re.MULTILINE)
    (said,) = re.findall(r"(an hour|[0-9]+ minutes) at most", " ".join(lines))
    return HOUR if said == "an hour" else 60.0 * int(said.split()[0])


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

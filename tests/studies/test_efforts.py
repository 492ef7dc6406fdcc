"""What an effort takes: each document as long as its page says, within an hour at normal, nothing
missing that its claims are about, and next to nothing that serves none of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest

from concurve.definition import catalogue
from concurve.definition.campaign import Answer, Campaign, at_effort
from concurve.definition.claim_kinds import (
    ClaimTest,
    Mapping_,
    Needs,
    Overlap,
    Same,
    Untestable,
    at_levels,
    parse_test,
)
from concurve.definition.study import Claim, Study
from concurve.planning.plan import make_plan, trial_spec
from concurve.terms import Level
from tests.helpers.packaged import find

CPUS = 2
MANY_CPUS = tuple(range(16))
HOUR = 3600.0
PAGES = Path(__file__).parents[2] / "docs" / "studies"

#: What the quick run of a name may take at most, in minutes.
QUICK = {
    "enqueue-io-threads": 3,
    "kernel-mode": 3,
    "java-threads": 15,
    "thread-scaling": 3,
    "io-schedulers": 5,
    "tpcb-multicore": 3,
}

#: What is run of each document, by its number.
DOCUMENTS = {
    "000": ["enqueue-io-threads"],
    "001": ["kernel-mode"],
    "002": ["java-threads", "thread-scaling"],
    "003": ["io-schedulers"],
    "004": ["tpcb-multicore"],
}

#: Claims that are asked at effort rigorous alone, by study, and why.
RIGOROUS: dict[str, dict[str, str]] = {
    "enqueue-io-threads": {
        **dict.fromkeys(["six-degrade", "seven-degrade"], "8 over 5 asks the same"),
        **dict.fromkeys(["locks-held-100", "lock-memory-100"], "of the source's second load"),
    },
    "kernel-mode-statements": {"striped-helps": "ours, and beyond the trials of an hour"},
    "tpcb-multicore-relational": {"new-better-processes": "ours"},
    **{
        f"tpcb-multicore-{name}": dict.fromkeys(
            ["more-files", "atomic-better", "atomic-read-alike", "atomic-update-alike"],
            "asked of the embedded engine",
        )
        for name in ("service", "postgresql", "mariadb", "sqlite")
    },
}

#: Cells at normal that no claim, published figure or answer uses, by study: how many, and why.
UNUSED = {
    "java-threads-tc02": (8, "virtual threads and a limit beside what is claimed: seconds"),
    "java-threads-tc04": (18, "priorities of a user without privilege: half a minute"),
    "java-threads-tc06": (6, "the middle and the highest priority in the real-time class"),
    "java-threads-tc10": (6, "threads that busy-wait, where none is left to see"),
    "io-schedulers-tunables": (11, "the source says nothing of tunables that kernels have today"),
}


@cache
def run_at(effort: str | None = None) -> dict[str, list[Study]]:
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


def answers() -> dict[str, list[Answer]]:
    """The answers of campaigns, by the names of their studies."""
    found: dict[str, list[Answer]] = {}
    for name, _ in catalogue.campaigns():
        campaign = find(name, CPUS)
        assert isinstance(campaign, Campaign)
        names = {member.name: member.study.name for member in campaign.studies}
        for answer in campaign.answer:
            found.setdefault(names[answer.study], []).append(answer)
    return found


NAMES = run_at()
ANSWERS = answers()
STUDIES = [pytest.param(study, id=study.name) for studies in NAMES.values() for study in studies]


def allowed(name: str, effort: str) -> float:
    """What a run may take, as its dry run says: the allowances of its studies."""
    return sum(study.efforts[effort].rules.time_allowed_seconds for study in run_at(effort)[name])


@pytest.mark.parametrize("effort", ["quick", "normal"])
@pytest.mark.parametrize("name", NAMES)
def test_a_run_takes_as_long_as_its_page_says(name: str, effort: str) -> None:
    assert allowed(name, effort) <= said_by_its_page(name, effort)
    if effort == "quick":
        assert allowed(name, effort) <= QUICK[name] * 60


def test_a_document_takes_an_hour_at_normal() -> None:
    """Whatever is run of it: a document of two campaigns has one hour."""
    assert sorted(itertools.chain(*DOCUMENTS.values())) == sorted(NAMES)
    for number, names in DOCUMENTS.items():
        assert sum(allowed(name, "normal") for name in names) <= HOUR, number


def said_by_its_page(name: str, effort: str) -> float:
    """How many seconds the page of a document says that its run takes at most: at normal effort the
    command needs no option."""
    options = "" if effort == "normal" else f" --effort {effort}"
    command = re.escape(f"concurve run {name}{options}")
    lines = re.findall(f"^{command} +# (.*)$", (PAGES / f"{name}.md").read_text(), re.MULTILINE)
    (said,) = re.findall(r"(an hour|[0-9]+ minutes) at most", " ".join(lines))
    return HOUR if said == "an hour" else 60.0 * int(said.split()[0])


# -- what a claim is about ----------------------------------------------------------------------


def levels_at(study: Study, effort: str) -> dict[str, tuple[Level, ...]]:
    return {factor.name: factor.levels for factor in study.factors_at(effort)}


def settings(test: ClaimTest, levels: Mapping[str, Sequence[Level]]) -> Iterator[dict[str, Level]]:
    """The levels of ``each`` at which a claim is judged where these levels are run."""
    named = test.each if isinstance(test.each, Mapping) else dict.fromkeys(test.each, ())
    columns = [own or levels[factor] for factor, own in named.items()]
    for combination in itertools.product(*columns):
        yield dict(zip(named, combination, strict=True))


def patterns(test: ClaimTest) -> Iterator[dict[str, Level]]:
    """What the cells that a claim reads have in common; ``each`` is gone."""
    for field in test.__struct_fields__:
        value = getattr(test, field)
        if field in ("of", "over", "than_of", "than_over", "where") and value is not None:
            yield from narrowed(test, value)
        elif field == "cells":
            yield from value
        elif isinstance(value, Needs):
            yield from value.cells


def narrowed(test: ClaimTest, cell: dict[str, Level]) -> Iterator[dict[str, Level]]:
    """A cell at those levels of the claim's factor that it names."""
    if isinstance(test, Mapping_):
        yield from ({**cell, test.factor: level} for level in test.table)
    elif isinstance(test, Same | Overlap) and test.among:
        yield from ({**cell, test.factor: level} for level in test.among)
    else:
        yield cell


def named(test: ClaimTest) -> set[tuple[str, str]]:
    """Every level that a claim names, of ``each`` and ``among`` too."""
    found = {(factor, str(level)) for cell in patterns(test) for factor, level in cell.items()}
    if isinstance(test.each, Mapping):
        found |= {(factor, str(level)) for factor, own in test.each.items() for level in own}
    among = getattr(test, "among", ())
    return found | {(getattr(test, "factor", ""), str(level)) for level in among}


def claims_of(study: Study) -> Iterator[tuple[Claim, ClaimTest]]:
    """The claims of a study that a run can test."""
    for claim in study.claims:
        test = parse_test(claim, claim.id)
        if not isinstance(test, Untestable):
            yield claim, test


def lacking_at_normal(study: Study) -> set[str]:
    """The claims that name a level which normal does not run."""
    run = {
        (factor, str(level))
        for factor, levels in levels_at(study, "normal").items()
        for level in levels
    }
    return {claim.id for claim, test in claims_of(study) if named(test) - run}


@pytest.mark.parametrize("study", STUDIES)
def test_normal_effort_runs_the_levels_that_its_claims_are_about(study: Study) -> None:
    """But for those that are left to rigorous, each with the reason."""
    assert lacking_at_normal(study) == RIGOROUS.get(study.name, {}).keys()


@pytest.mark.parametrize("study", STUDIES)
def test_rigorous_effort_asks_every_claim(study: Study) -> None:
    every = {
        (factor, str(level))
        for factor, levels in levels_at(study, "rigorous").items()
        for level in levels
    }
    assert {claim.id for claim, test in claims_of(study) if named(test) - every} == set()


def matches(pattern: Mapping[str, Level], cell: Mapping[str, Level]) -> bool:
    return all(str(cell[factor]) == str(level) for factor, level in pattern.items())


def unused_at_normal(study: Study, answered: Sequence[Answer]) -> list[dict[str, Level]]:
    """The cells at normal that serve nothing: no claim reads them, no published figure is held
    against them, and no answer compares them with a cell that does serve.

    An answer compares the levels of its factor in each setting of the others. A setting in which no
    claim and no figure is, only makes it longer; where there are neither, all settings answer.
    """
    levels = levels_at(study, "normal")
    firsts = {factor: own[0] for factor, own in levels.items()}
    needed: list[Mapping[str, Level]] = []
    for _, test in claims_of(study):
        for setting in settings(test, levels):
            needed += patterns(at_levels(test, setting))
    for figure in study.published:
        if figure.indicator and figure.parameters:
            needed.append({**firsts, **figure.parameters})
            if figure.base:
                needed.append({**firsts, **figure.base_parameters})
    cells = [cell.parameters for cell in make_plan(study, "normal", 1).cells]
    used = [cell for cell in cells if any(matches(pattern, cell) for pattern in needed)]
    for answer in answered:
        if not answer.factor:
            continue
        beside = [{**cell, answer.factor: ""} for cell in used]
        used += [
            cell
            for cell in cells
            if matches(answer.where, cell) and (not needed or {**cell, answer.factor: ""} in beside)
        ]
    return [cell for cell in cells if cell not in used]


@pytest.mark.parametrize("study", STUDIES)
def test_normal_effort_runs_next_to_nothing_that_serves_no_claim(study: Study) -> None:
    """A grid is a product, so a few cells may be left over; each such study says how many. Those of
    a simulation take milliseconds."""
    if study.simulation:
        return
    unused = unused_at_normal(study, ANSWERS.get(study.name, ()))
    assert len(unused) == UNUSED.get(study.name, (0, ""))[0], unused


def test_a_level_that_no_claim_names_is_found() -> None:
    """As tpcb-multicore had them: counts of sessions, and files, that only made its run longer."""
    (study,) = (study for study in NAMES["tpcb-multicore"] if study.name.endswith("sqlite"))
    assert unused_at_normal(study, ANSWERS[study.name]) == []
    own = study.efforts["normal"]
    longer = {**own.factors, "files": (16, 4), "sessions": (8, 32, 64, 96)}
    study = with_factors(study, longer)
    unused = unused_at_normal(study, ANSWERS[study.name])
    assert {cell["files"] for cell in unused} == {4}, "64 sessions have a published figure"
    assert len(unused) == 8


def with_factors(study: Study, factors: dict[str, tuple[Level, ...]]) -> Study:
    """The study with these levels at effort normal."""
    normal = msgspec.structs.replace(study.efforts["normal"], factors=factors)
    return msgspec.structs.replace(study, efforts={**study.efforts, "normal": normal})


def test_levels_of_each_and_among_are_named() -> None:
    (study,) = NAMES["enqueue-io-threads"]
    tests = {claim.id: test for claim, test in claims_of(study)}
    assert ("cpus", "4") in named(tests["efficient-on-several-cpus"]), "of each"
    assert ("io-threads", "3") in named(tests["best-3-or-4"]), "of among"


@pytest.mark.parametrize("effort", ["quick", "normal", "rigorous"])
@pytest.mark.parametrize("study", STUDIES)
def test_each_cell_of_an_effort_can_be_started(study: Study, effort: str) -> None:
    """Levels of several factors may each be right, and together be refused."""
    plan = make_plan(study, effort, 1)
    for cell in plan.cells:
        trial_spec(plan, cell, "t", MANY_CPUS, lambda name, *_: [name], 4711)


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

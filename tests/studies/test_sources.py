"""Each source on itself: the figures that it printed, put through the claims of its study.

On its own figures each claim of a source is supported. What is not stands in one of two lists:
where the source contradicts itself, with the page and both figures, or where it prints no figure
that the claim could be judged by. Every kind of claim needs a feeder, so none is passed over.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from concurve.analysis.claims import judge_claims
from concurve.analysis.claims.answer import bounded
from concurve.analysis.samples import MissingError, Samples
from concurve.definition import catalogue
from concurve.definition.campaign import Campaign
from concurve.definition.claim_kinds import KINDS, BestRatio, Mapping_, at_levels, parse_test
from concurve.definition.measured import better_of
from concurve.definition.published import PublishedFigure
from concurve.definition.study import Claim, Study
from concurve.estimate import Estimate
from concurve.findings.claims import ClaimFinding
from concurve.stats.blocks import Blocks
from concurve.terms import Level
from tests.helpers.packaged import find

DOCS = Path(__file__).parents[2] / "docs" / "studies"

#: Where a source contradicts itself, by study and claim: the place, and both figures.
CONTRADICTIONS = {
    ("thread-scaling", "cpu-time-constant"):
        "document 002, p. 47: §10.8.3 says 2.7 %; table 26 (p. 46) has 1:09 to 1:12, so 4.3 %",
    ("java-threads/tc08", "tc08-3"):
        "document 002, p. 47: §10.8.3 says 2.7 %; table 26 (p. 46) has 1:09 to 1:12, so 4.3 %",
    ("java-threads/tc08", "tc08-5b"):
        "document 002, p. 47: §10.8.3 sees no rise worth mentioning; table 26 (p. 46) has 1:09 "
        "with 2 threads and 1:12 with 512, so 4.3 %",
    ("java-threads/tc10", "tc10-2-forkjoin"):
        "document 002, p. 58: §10.10.2 says 1 %; table 33 (p. 57) has 1:10 to 1:15, which is 7.1 %",
    ("java-threads/tc10", "tc10-2-parallel-stream"):
        "document 002, p. 58: §10.10.2 says 1 %; table 33 (p. 57) has 1:10 to 1:15, which is 7.1 %",
    ("kernel-mode/modes", "best-client-gains-35"):
        "document 001, l. 81 says 35 %; by its counts, 300 loops (l. 75) against 240 in the mean "
        "(l. 69), it is 25 %",
}  # fmt: skip

_PSQL = "figures 1 and 2 are charts without numbers; figures 3 and 4 print improvements only"
_OF_ONE_ENGINE = "a statement of the text, without a figure"

#: What the source says without a figure that it could be judged by, by study: the claims and why.
NO_FIGURE: dict[str, dict[str, str]] = {
    "enqueue-io-threads": dict.fromkeys(
        ["best-3-or-4", "five-no-better", "eight-no-better", "six-degrade", "seven-degrade",
         "eight-degrade", "more-cpus-help-1", "more-cpus-help-2", "four-cpus-help-1",
         "four-cpus-help-2", "more-cpus-no-better", "four-cpus-no-better", "sequential-part-limits",
         "efficient-on-several-cpus", "best-time-alike", "best-time-alike-4"],
        "figure 1 is a chart without numbers",
    ),
    "kernel-mode/modes": {
        **dict.fromkeys(
            ["processes-contend-more", "response-times-steadier", "response-times-alike"],
            "charts without numbers, and the text gives none",
        ),
        "threads-use-more":
            "100 % and 90 % are of its own meter, as threads-busier has them; the CPU load is a "
            "chart without numbers",
    },
    "kernel-mode/engines": dict.fromkeys(
        ["more-engines-help", "still-more-engines-help", "balance-turns"],
        "a question that the source leaves open; the hypotheses are ours",
    ),
    "kernel-mode/statements": dict.fromkeys(
        ["statement-cache-contends-more", "procedure-cache-contends-more", "striped-helps",
         "cache-pays"],
        "charts without numbers; the last two are ours",
    ),
    "kernel-mode/mariadb": dict.fromkeys(["pool-uses-more", "pool-even"], "ours"),
    "kernel-mode/postgresql": {"processes-uneven": "not in the source"},
    "io-schedulers/overview": dict.fromkeys(
        ["order-of-requests", "deadline-favours-reads", "as-becomes-deadline", "one-head",
         "cfq-classes", "cfq-nice"],
        "a sentence of the overview, without a figure",
    ),
    "io-schedulers/assumptions": dict.fromkeys(
        ["order", "as-slower", "deadline-slower"],
        "the load times are held against the claims of io-schedulers/simulated",
    ),
    "io-schedulers/load": {"heirs": "heirs of what the source measured"},
    "io-schedulers/postgresql": {"heirs": "heirs of what the source measured"},
    "io-schedulers/mixed": {"favours-reads": "a sentence of the overview, without a figure"},
    "java-threads/tc04": {"tc04-8": "a remark; table 15 has no row of another user"},
    "java-threads/tc06": dict.fromkeys(
        ["tc06-5", "tc06-6"], "tables 18 to 20 have no other class beside another priority"
    ),
    "java-threads/tc07": {
        "tc07-1": "table 21 has no CPU time, and figure 14 is a picture",
        "tc07-1b": "figure 14 is a picture",
        "tc07-2": "figure 15 is a picture",
        "tc07-4b": "a set-up of ours",
        "tc07-7": "table 22 has the affinity as a set-up, and no reading of it",
    },
    "java-threads/tc10": {
        "tc10-3-forkjoin": "JOMP's threads always wait busily: there is no run without",
        "tc10-3-parallel-stream": "JOMP's threads always wait busily: there is no run without",
    },
    "java-threads/tc08-priorities": {"tc08-6": "tables 25 and 26 have no other priority"},
    **{
        f"tpcb-multicore/{name}": {
            **dict.fromkeys(
                ["old-declines", "old-declines-early", "new-keeps", "new-stable",
                 "old-slower-on-many", "old-costs-more", "new-uses-cpus"],
                _PSQL,
            ),
        }
        for name in ("embedded", "service", "postgresql", "mariadb", "sqlite")
    },
}  # fmt: skip
_ATOMIC = dict.fromkeys(
    ["atomic-better", "atomic-read-alike", "atomic-update-alike"],
    "the results of single operations are sent on request",
)
for name in ("service", "postgresql", "mariadb", "sqlite"):
    NO_FIGURE[f"tpcb-multicore/{name}"] |= {**_ATOMIC, "more-files": _PSQL}
NO_FIGURE["tpcb-multicore/embedded"] |= dict.fromkeys(["waiting-in-line", "caches"], _OF_ONE_ENGINE)
NO_FIGURE["tpcb-multicore/files"] = {
    "more-files": _PSQL,
    **dict.fromkeys(["independent-files", "own-data"], _OF_ONE_ENGINE),
}
NO_FIGURE["tpcb-multicore/operations"] = _ATOMIC
NO_FIGURE["tpcb-multicore/readers"] = {"readers-in-parallel": _OF_ONE_ENGINE}

NO_FIGURE["tpcb-multicore/checkpoints"] = {"background-work": _OF_ONE_ENGINE}
NO_FIGURE["tpcb-multicore/relational"] = {
    **dict.fromkeys(
        ["old-declines", "old-declines-early", "new-keeps", "new-stable", "old-slower-on-many",
         "old-costs-more", "new-uses-cpus"],
        _PSQL,
    ),
    "new-better-processes": "not in the source",
}  # fmt: skip

#: So many equal values stand for a printed figure: its interval then has no width at any
#: confidence.
BLOCKS = 60
#: Draws of what the source leaves open. A claim that depends on them has no figure.
DRAWS = 3


def studies() -> dict[str, Study]:
    """Every packaged study, by its name or as ``CAMPAIGN/STUDY``."""
    found = {}
    for name, _ in catalogue.entries():
        study = find(name, 8)
        assert isinstance(study, Study)
        found[name] = study
    for name, _ in catalogue.campaigns():
        campaign = find(name, 8)
        assert isinstance(campaign, Campaign)
        found |= {f"{name}/{member.name}": member.study for member in campaign.studies}
    return found


STUDIES = studies()
CLAIMS = [
    pytest.param(key, claim, id=f"{key}:{claim.id}")
    for key, study in STUDIES.items()
    for claim in study.claims
]


# -- what a source printed --------------------------------------------------------------------


#: Units of a source, in those of the claims.
SCALES = {"ms": 1e-3, "MB": 1e6}


class Printed(NamedTuple):
    """A figure of a source in a cell of the study."""

    table: str
    indicator: str
    cell: Mapping[str, Level]
    value: float


def whole(study: Study, cell: Mapping[str, Level]) -> dict[str, Level]:
    """The cell with the first level of each factor that it does not name."""
    return {**{factor.name: factor.levels[0] for factor in study.factors}, **cell}


def in_cells(study: Study) -> Iterator[Printed]:
    """The figures that the source printed for a cell; not those that are ratios of others."""
    for figure in study.published:
        if not figure.indicator or not figure.parameters:
            continue
        if figure.compare not in ("factor", "improvement"):
            scale = SCALES.get(figure.unit, 1.0)
            cell = whole(study, figure.parameters)
            yield Printed(figure.table, figure.indicator, cell, figure.value * scale)


def improvements(study: Study, column: str, draw: int) -> Iterator[Printed]:
    """Improvements of one column, over a figure of the old design that is drawn by chance: the
    source does not print it."""
    for figure in study.published:
        if figure.compare == "improvement" and figure.row == column:
            base = whole(study, figure.base_parameters)
            old = random.Random(f"{draw} {sorted(base.items(), key=str)}").uniform(1, 1000)
            own = whole(study, figure.parameters)
            yield Printed(figure.table, figure.indicator, base, old)
            yield Printed(figure.table, figure.indicator, own, old * (1 + figure.value / 100))


def of_other_cells(key: str, study: Study) -> Iterator[Printed]:
    """What the source measured once and says of several cells, or in another test case."""
    if key == "enqueue-io-threads":
        # What was created was held: it fills the lock table.
        for one in in_cells(study):
            if one.indicator == "lock_granted":
                yield one._replace(indicator="lock_locks_peak")
    if key == "java-threads/tc02":
        # One process, PID 2572, in all rows of table 13: its threads were made while it ran.
        for one in in_cells(study):
            yield one._replace(cell={**one.cell, "form": "platform-at-run-time"})
    if key in ("java-threads/tc09", "java-threads/tc10"):
        for one in in_cells(STUDIES["java-threads/tc08"]):
            cell = {name: one.cell[name] for name in ("cpus", "threads")}
            if key == "java-threads/tc09":
                yield one._replace(cell=whole(study, {**cell, "sync": "none"}))
            elif cell.pop("cpus") == 2:
                yield one._replace(cell=whole(study, {**cell, "kind": "platform"}))
    if key == "java-threads/tc10":
        # Both libraries stand for JOMP.
        for one in in_cells(study):
            yield one._replace(cell={**one.cell, "kind": "parallel-stream"})
    if key == "kernel-mode/modes":
        yield from of_the_text_of_001(study)


def of_the_text_of_001(study: Study) -> Iterator[Printed]:
    """Loops of single clients."""

    def said(row: str, column: str) -> float:
        (value,) = (f.value for f in study.published if (f.row, f.column) == (row, column))
        return value

    mean = {f.parameters["mode"]: f.value for f in study.published if f.unit == "loops"
            and f.parameters}  # fmt: skip
    least, most = said("process mode", "least"), said("process mode", "most")
    of_loops = "load.session_operations"
    figures = {
        ("threads", f"{of_loops}_range_over_mean"): said("threaded mode", "range")
        / mean["threads"],
        ("processes", f"{of_loops}_range_over_mean"): (most - least) / mean["processes"],
        ("processes", f"{of_loops}_min"): least,
        ("processes", f"{of_loops}_max"): most,
        ("threads", f"{of_loops}_mean"): mean["threads"],
    }
    place = next(f.parameters for f in study.published if f.parameters)
    for (mode, indicator), value in figures.items():
        yield Printed("of the text", indicator, whole(study, {**place, "mode": mode}), value)


#: Indicators that are the difference or the quotient of two that the source printed.
DERIVED: dict[str, tuple[str, str, Callable[[float, float], float]]] = {
    "worker_threads_total": ("kernel_threads", "service_threads", lambda a, b: a - b),
    "worker_kernel_threads": ("kernel_threads", "service_threads", lambda a, b: a - b),
    "cpus_used": ("cpu_seconds", "wall_seconds", lambda a, b: a / b),
    "cpu_seconds_per_operation": ("busy_threads_mean", "rate_per_second", lambda a, b: a / b),
}


def figures_of(key: str, column: str = "", draw: int = 0) -> list[Printed]:
    """Everything that the source printed for the cells of a study."""
    study = STUDIES[key]
    return [
        *in_cells(study),
        *of_other_cells(key, study),
        *improvements(study, column, draw),
    ]


def columns_of(study: Study) -> list[str]:
    """The columns in which a source prints its improvements, each for all cells; one without a
    name where there are none."""
    rows = dict.fromkeys(f.row for f in study.published if f.compare == "improvement")
    return list(rows) or [""]


def tables_of(claim: Claim) -> set[str]:
    """The tables that a claim names as its source; none stands for all."""
    named = re.findall(r"tables? ((?:\d+|,| |and|to)+)", claim.source)
    return {number for text in named for number in re.findall(r"\d+", text)}


def samples_of(study: Study, figures: Sequence[Printed]) -> Samples:
    """Samples of a run whose every trial gave what the source printed."""

    def printed(cell: Mapping[str, Level], indicator: str) -> float:
        found = {
            one.value
            for one in figures
            if one.indicator == indicator and cell.items() <= one.cell.items()
        }
        assert len(found) < 2, f"{study.name}: {indicator} at {cell}: {sorted(found)}"
        if found:
            return found.pop()
        if indicator not in DERIVED:
            raise MissingError(f"no {indicator} is printed", str(cell))
        first, second, combined = DERIVED[indicator]
        return combined(printed(cell, first), printed(cell, second))

    def by_block(cell: Mapping[str, Level], indicator: str) -> Blocks:
        return dict.fromkeys(range(BLOCKS), printed(cell, indicator))

    def levels(factor: str) -> Sequence[Level]:
        (own,) = (one.levels for one in study.factors if one.name == factor)
        return [level for level in own if any(f.cell[factor] == level for f in figures)]

    return Samples(by_block, levels, lambda indicator: better_of(study, indicator))


# -- a feeder for each kind of claim ----------------------------------------------------------

#: A study, a claim and what the source printed → the verdicts on the claim.
Feeder = Callable[[Study, Claim, Sequence[Printed]], Sequence[ClaimFinding]]


def judged(study: Study, claim: Claim, figures: Sequence[Printed]) -> Sequence[ClaimFinding]:
    """By the verdict that a run of these figures would get."""
    alone = msgspec.structs.replace(study, claims=(claim,))
    return judge_claims(alone, samples_of(study, figures))


def on_its_own_scale(
    study: Study, claim: Claim, figures: Sequence[Printed]
) -> Sequence[ClaimFinding]:
    """A table of one level is on the scale of Linux; the source's own reading is published."""
    test = parse_test(claim, claim.id)
    assert isinstance(test, Mapping_)
    if test.published is not None:
        (level,) = test.table
        own = {**claim.test, "table": {level: test.published}}
        claim = msgspec.structs.replace(claim, test=own)
    return judged(study, claim, figures)


def best_of_its_own(
    study: Study, claim: Claim, figures: Sequence[Printed]
) -> Sequence[ClaimFinding]:
    """A best figure of the source over that which the claim holds a run against."""
    test = parse_test(claim, claim.id)
    assert isinstance(test, BestRatio)
    if test.over_value is None:
        return judged(study, claim, figures)
    printed = [
        one.value
        for one in figures
        if one.indicator == test.indicator and test.of.items() <= one.cell.items()
    ]
    if not printed:
        return []
    ratio = min(printed) / test.over_value
    exact = Estimate(value=ratio, low=ratio, high=ratio)
    answer = bounded(exact, test.at_least, test.at_most)
    return [
        ClaimFinding(id=claim.id, says=claim.says, source=claim.source, kind=claim.kind,
                     verdict=answer.verdict, reason=answer.reason, estimate=exact)
    ]  # fmt: skip


def nothing(study: Study, claim: Claim, figures: Sequence[Printed]) -> Sequence[ClaimFinding]:
    """Sources print means and no spreads, and nothing for what no machine can test."""
    return []


FEEDERS: dict[str, Feeder] = {
    "speedup": judged,
    "ratio": judged,
    "ratio_of_indicators": judged,
    "constant_within": judged,
    "steadier": judged,
    "figure": judged,
    "best_setting": judged,
    "best_ratio": best_of_its_own,
    "mapping": on_its_own_scale,
    "spread": nothing,
    "order": judged,
    "ratio_of_ratios": judged,
    "step": judged,
    "ratio_of_steps": judged,
    "same": judged,
    "linear": judged,
    "distinct": judged,
    "overlap": judged,
    "untestable": nothing,
}


def test_every_kind_of_claim_has_a_feeder() -> None:
    assert FEEDERS.keys() == KINDS.keys()


# -- the verdicts -----------------------------------------------------------------------------


def fed(key: str, claim: Claim) -> list[ClaimFinding]:
    """The verdicts on a claim by the source's own figures. None where it prints nothing to judge it
    by, or where the verdict depends on what it leaves open."""
    study, named = STUDIES[key], tables_of(claim)
    answers: list[ClaimFinding] = []
    for column in columns_of(study):
        drawn = []
        for draw in range(DRAWS):
            figures = figures_of(key, column, draw)
            if named:
                figures = [one for one in figures if one.table in named]
            found = FEEDERS[claim.kind](study, claim, figures)
            drawn.append([one for one in found if one.verdict != "not testable here"])
        if len({_shown(found) for found in drawn}) == 1:
            answers += drawn[0]
    return answers


def _shown(found: Sequence[ClaimFinding]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (one.verdict, "" if one.estimate is None else f"{one.estimate.value:.9g}") for one in found
    )


def outcome(found: Sequence[ClaimFinding]) -> str:
    """What a source's figures say of a claim of it, in one word."""
    if not found:
        return "no figure"
    verdicts = {one.verdict for one in found}
    return "supported" if verdicts == {"supported"} else "contradicted"


def expected(key: str, claim: Claim) -> str:
    if claim.kind == "untestable" or claim.id in NO_FIGURE.get(key, {}):
        return "no figure"
    return "contradicted" if (key, claim.id) in CONTRADICTIONS else "supported"


@pytest.mark.parametrize(("key", "claim"), CLAIMS)
def test_a_source_supports_its_own_claims_or_stands_in_a_list(key: str, claim: Claim) -> None:
    found = fed(key, claim)
    seen = [f"{one.id}: {one.verdict}: {one.reason}" for one in found]
    assert outcome(found) == expected(key, claim), seen


def test_the_lists_name_claims_that_are_there() -> None:
    known = {(key, claim.id) for key, study in STUDIES.items() for claim in study.claims}
    assert CONTRADICTIONS.keys() <= known
    assert {(key, name) for key, names in NO_FIGURE.items() for name in names} <= known


def test_what_is_published_of_a_claim_is_the_figure_that_its_verdict_rests_on() -> None:
    """One statistic: computed from the source's tables in the same way as from a run's trials."""
    held = 0
    for key, study in STUDIES.items():
        for claim in study.claims:
            published = parse_test(claim, claim.id).published
            ours = [one.estimate.value for one in fed(key, claim) if one.estimate is not None]
            if published is None or not ours:
                continue
            held += 1
            places = len(f"{published}".rstrip("0").partition(".")[2])
            nearest = min(abs(value - published) for value in ours)
            assert nearest <= 0.5 * 10**-places + 1e-9, (key, claim.id, published, ours)
    assert held > 60


@pytest.mark.parametrize("claim", sorted(CONTRADICTIONS), ids=":".join)
def test_a_contradiction_of_a_source_is_told_to_readers(claim: tuple[str, str]) -> None:
    page = (DOCS / f"{claim[0].partition('/')[0]}.md").read_text(encoding="utf-8")
    assert claim[1] in page, "the page says where its source disagrees with itself"


@pytest.mark.parametrize(
    ("key", "id_", "indicator", "spoiled"),
    [
        ("java-threads/tc01", "tc01-2", "wall_seconds", {"cpus": 2, "threads": 2}),
        ("java-threads/tc08", "tc08-1a", "wall_seconds", {"cpus": 1, "threads": 8}),
        ("java-threads/tc02", "tc02-1", "kernel_threads", {"java-threads": 16}),
        ("java-threads/tc03", "tc03-1", "worker_priority_max", {"priority": 10}),
        ("java-threads/tc04", "tc04-4", "worker_priority_max", {"class": "normal", "priority": 5}),
        ("java-threads/tc04", "tc04-7", "worker_priority_max", {"class": "normal", "priority": 5}),
        ("io-schedulers/simulated", "order", "simulated_seconds", {"scheduler": "as"}),
        ("kernel-mode/modes", "threads-within-10", "load.session_operations_range_over_mean",
         {"mode": "threads"}),
        ("tpcb-multicore/embedded", "gain-grows", "rate_per_second",
         {"latching": "global", "sessions": 96}),
        ("enqueue-io-threads", "best-time-published", "seconds_per_operation", {}),
    ],
)  # fmt: skip
def test_another_figure_of_the_source_refutes(
    key: str, id_: str, indicator: str, spoiled: dict[str, Level]
) -> None:
    """The feeders do judge: one figure of the source five times as great turns the verdict."""
    study = STUDIES[key]
    (claim,) = (claim for claim in study.claims if claim.id == id_)
    figures = [
        one._replace(value=5 * one.value)
        if one.indicator == indicator and spoiled.items() <= one.cell.items()
        else one
        for one in figures_of(key, columns_of(study)[0])
    ]
    named = tables_of(claim)
    figures = [one for one in figures if not named or one.table in named]
    found = FEEDERS[claim.kind](study, claim, figures)
    assert "refuted" in {one.verdict for one in found}


def test_figures_of_one_cell_that_differ_are_not_mixed() -> None:
    """Tables 11 and 25 of document 002 measured the same cell apart."""
    study = STUDIES["thread-scaling"]
    samples = samples_of(study, figures_of("thread-scaling"))
    with pytest.raises(AssertionError, match="wall_seconds"):
        samples.values({"cpus": 1, "threads": 1, "sync": "none"}, "wall_seconds")


def test_a_claim_at_a_level_keeps_its_cells() -> None:
    """``each`` narrows what is fed, as it narrows what a run is judged by."""
    (claim,) = (c for c in STUDIES["java-threads/tc08"].claims if c.id == "tc08-1a")
    test = at_levels(parse_test(claim, claim.id), {"kernel": "jvm"})
    assert getattr(test, "where", {})["kernel"] == "jvm"


def figures_without_a_cell() -> list[PublishedFigure]:
    """Those whose cell lacks a level of the study."""
    return [
        figure
        for study in STUDIES.values()
        for figure in study.published
        for name, level in figure.parameters.items()
        if level not in next(f.levels for f in study.factors if f.name == name)
    ]


def test_every_printed_figure_has_a_cell_that_a_study_runs() -> None:
    assert figures_without_a_cell() == []

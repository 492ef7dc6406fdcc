"""On which of its assumptions the answer of a simulation hangs."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.analysis.dependence import assumed_ratios, dependences, sentences
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.study import Claim
from concurve.findings.claims import AssumedRatio, ClaimFinding, Dependence, VerdictName
from concurve.report.document import Chart, Paragraph, Table
from concurve.report.html import to_html
from concurve.report.json.export import to_json
from concurve.report.markdown import to_markdown
from concurve.report.sections import assumed as over_assumption
from concurve.report.sections import dependence as shown
from concurve.report.sections.run import Topic, brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.terms import Level
from tests.helpers.fakes import small_study
from tests.report.samples import single_cell as sample

pytestmark = pytest.mark.usefixtures("empty_charts")

FACTORS: dict[str, tuple[Level, ...]] = {
    "scheduler": ("cfq", "as"),
    "cache": (0, 8192),
    "depth": (1, 4, 16),
    "layout": ("linear",),
}
BLOCKS = 12

#: The truth: as takes 10 % longer than cfq, and with a cache 5 % more than that.
RATIO, CACHE = 1.10, 1.05


def seconds(parameters: Mapping[str, Level], block: int) -> float:
    """Draws of a block, which its cells share, differ by far more than all that is looked for."""
    draw = random.Random(block).lognormvariate(0, 1)
    noise = random.Random(f"{sorted(parameters.items())} {block}").lognormvariate(0, 0.004)
    is_as, has_cache = parameters["scheduler"] == "as", parameters["cache"] == 8192
    ratio = RATIO * (CACHE if has_cache else 1) if is_as else 1
    return draw * noise * ratio / (2 if parameters["depth"] == 16 else 1)


def found(simulation: bool = True, lacks: Level = "", **test: object) -> tuple[Dependence, ...]:
    claim = Claim(
        id="slower",
        says="as takes longer.",
        kind="ratio",
        test={
            "indicator": "simulated_seconds",
            "of": {"scheduler": "as"},
            "over": {"scheduler": "cfq"},
            "each": ["cache", "depth", "layout"],
            "at_least": 1.0,
            **test,
        },
    )
    study = msgspec.structs.replace(
        small_study(None, **FACTORS), claims=(claim,), simulation=simulation
    )

    def blocks(parameters: Mapping[str, Level], indicator: str) -> Mapping[int, float]:
        assert indicator == "simulated_seconds"
        if parameters["depth"] == lacks:
            raise MissingError("it was not run")
        return {block: seconds(parameters, block) for block in range(BLOCKS)}

    samples = Samples(blocks, lambda name: FACTORS[name], lambda _: "lower")
    return dependences(study, samples)


def test_each_assumption_has_its_ratios_and_what_it_changes() -> None:
    rows = {(item.factor, item.level): item for item in found()}
    assert list(rows) == [("cache", 0), ("cache", 8192), ("depth", 1), ("depth", 4), ("depth", 16)]
    truth: dict[tuple[str, Level], float] = {("cache", 0): RATIO, ("cache", 8192): RATIO * CACHE}
    for key, item in rows.items():
        expected = truth.get(key, RATIO * CACHE**0.5)
        low, high = item.ratio.low, item.ratio.high
        assert low is not None and high is not None
        assert low - 0.003 < expected < high + 0.003
        assert high - low < 0.02, "the draws of a block drop out"
        assert item.settings == (3 if item.factor == "cache" else 2)
    change = rows["cache", 8192].change
    assert change is not None
    assert change.low is not None
    assert change.high is not None
    assert 1.03 < change.low < CACHE < change.high < 1.07
    assert rows["cache", 0].change is rows["depth", 1].change is None


def test_the_sentence_names_what_changes_it_most() -> None:
    (said,) = sentences(found())
    assert said.kind == "answer"
    assert said.sentence.startswith("Claim: as takes longer. Here the ratio is 1.1 to 1.1")
    assert "it depends most on cache: at 8192 it is 1.05 times as large as at 0." in said.sentence
    (said,) = sentences([item for item in found() if item.factor == "depth"])
    assert said.sentence.endswith("no assumption changes it significantly.")
    assert list(sentences(())) == []


def test_nothing_is_said_without_blocks_that_share_their_draws_or_without_a_cell() -> None:
    assert found(simulation=False) == ()
    assert found(lacks=16) == ()
    assert found(each=["layout"]) == ()


def test_every_view_shows_the_same_rows() -> None:
    findings = msgspec.structs.replace(sample(), dependences=found())
    section = shown.section(findings)
    assert section is not None
    claim, table, _, corrected = section.blocks
    assert isinstance(corrected, Paragraph)
    assert "corrected for 3 comparisons (Holm)" in corrected.text
    assert isinstance(claim, Paragraph) and claim.text == "as takes longer."
    assert isinstance(table, Table)
    rows = [[str(cell) for cell in row] for _, row in table.rows()]
    assert [row[0] for row in rows] == ["cache", "", "depth", "", ""]
    assert [bool(row[3]) for row in rows] == [False, True, False, True, True]
    terminal = list(lines(brief_run_document(findings, topics=[Topic.CLAIMS]), 60))
    assert max(len(line.plain) for line in terminal) <= 60
    full = run_document(findings)
    for text in (to_markdown(full), to_html(full), "\n".join(line.plain for line in terminal)):
        assert rows[1][2] in text
        assert rows[1][3] in text
    exported = json.loads(to_json(findings))
    schema = Path(__file__).parents[2] / "schema" / "export.schema.json"
    jsonschema.validate(exported, json.loads(schema.read_text(encoding="utf-8")))
    assert [item["level"] for item in exported["dependences"]] == [0, 8192, 1, 4, 16]
    assert "dependences" not in json.loads(to_json(sample()))
    assert shown.section(sample()) is None


# -- ratios over an assumption ----------------------------------------------------------------

THREE: dict[str, tuple[Level, ...]] = {**FACTORS, "scheduler": ("cfq", "as", "noop")}


def claimed(differ_by: float | None) -> Claim:
    """as takes longer than cfq, which needs that noop and cfq lie so far apart."""
    cells = [{"scheduler": "noop"}, {"scheduler": "cfq"}]
    needs = {} if differ_by is None else {"needs": {"cells": cells, "differ_by": differ_by}}
    return Claim(
        id=f"slower-{differ_by}",
        says="as takes longer.",
        kind="ratio",
        test={
            "indicator": "simulated_seconds",
            "of": {"scheduler": "as"},
            "over": {"scheduler": "cfq"},
            "each": ["depth", "cache", "layout"],
            "at_least": 1.0,
            "published": 1.028,
            **needs,
        },
    )


def ratios(
    simulation: bool = True, lacks: Level = "", needed: tuple[float | None, ...] = (0.02,)
) -> tuple[AssumedRatio, ...]:
    """noop takes as long as cfq; the claims are about as alone."""
    study = msgspec.structs.replace(
        small_study(None, **THREE), claims=tuple(map(claimed, needed)), simulation=simulation
    )

    def blocks(parameters: Mapping[str, Level], indicator: str) -> Mapping[int, float]:
        if parameters["scheduler"] == lacks:
            raise MissingError("it was not run")
        return {block: seconds(parameters, block) for block in range(BLOCKS)}

    samples = Samples(blocks, lambda name: THREE[name], lambda _: "lower")
    return assumed_ratios(study, samples)


def test_every_level_has_its_ratio_to_the_base_and_the_assumption_that_counts_is_first() -> None:
    found = ratios()
    assert [item.assumption for item in found][:4] == ["cache"] * 4, "depth is the first of `each`"
    rows = {(item.level, item.assumption, item.at): item for item in found}
    assert len(rows) == len(found) == 2 * (2 + 3)
    truth = {("as", 0): RATIO, ("as", 8192): RATIO * CACHE, ("noop", 0): 1.0, ("noop", 8192): 1.0}
    for (level, at), expected in truth.items():
        item = rows[level, "cache", at]
        assert item.base == "cfq" and item.settings == 3 and item.alike_within == 0.02
        assert item.published == (1.028 if level == "as" else None)
        assert item.ratio.low is not None and item.ratio.high is not None
        assert item.ratio.low - 0.003 < expected < item.ratio.high + 0.003
    assert ratios(simulation=False) == ()
    assert {item.level for item in ratios(lacks="noop")} == {"as"}


def test_ratios_that_decide_no_claim_are_those_of_any_claim_that_needs_a_difference() -> None:
    for needed, within in (((None,), None), ((None, 0.02), 0.02), ((0.05, 0.02), 0.02)):
        assert {item.alike_within for item in ratios(needed=needed)} == {within}


def test_a_claim_may_name_a_level_otherwise_than_the_run() -> None:
    """A number as a text, or 4.0 for 4: it is the base that is no level of its own comparison, and
    the level with the published figure."""
    claim = Claim(
        id="deeper", says="4 takes as long as 1.", kind="ratio",
        test={"indicator": "simulated_seconds", "of": {"depth": 4.0}, "over": {"depth": "1"},
              "each": {"cache": ["0", 8192.0]}, "at_least": 0.9, "published": 1.0},
    )  # fmt: skip
    study = msgspec.structs.replace(small_study(None, **FACTORS), claims=(claim,), simulation=True)

    def blocks(parameters: Mapping[str, Level], indicator: str) -> Mapping[int, float]:
        setting = {"scheduler": "cfq", **parameters}
        return {block: seconds(setting, block) for block in range(BLOCKS)}

    samples = Samples(blocks, lambda name: FACTORS[name], lambda _: "lower")
    found = assumed_ratios(study, samples)
    assert {item.level: item.published for item in found} == {4: 1.0, 16: None}
    assert {repr(item.base) for item in found} == {"1"}
    assert {repr(item.at) for item in found} == {"0", "8192"}
    rows = dependences(study, samples)
    assert [repr(item.level) for item in rows] == ["0", "8192"]


def judged(verdict: VerdictName, cache: Level) -> ClaimFinding:
    return ClaimFinding(
        id=f"slower-{cache}", says="as takes longer.", source="", kind="ratio", verdict=verdict,
        reason="", claim="slower", setting={"cache": cache},
    )  # fmt: skip


def test_one_picture_and_its_table_have_ratios_and_verdicts_over_the_assumption() -> None:
    findings = msgspec.structs.replace(
        sample(),
        assumed_ratios=ratios(),
        claims=(judged("cannot be decided", 0), judged("supported", 8192)),
    )
    section = over_assumption.section(findings)
    assert section is not None
    assert section.title == "Verdicts as a function of cache"
    chart, table = section.blocks
    assert isinstance(chart, Chart) and isinstance(table, Table)
    assert [column.title for column in table.columns] == [
        "cache", "as / cfq", "noop / cfq", "claim slower",
    ]  # fmt: skip
    verdicts = [cell[0].text for cell in table.columns[3].cells if isinstance(cell, tuple)]
    assert verdicts == ["cannot be decided", "supported"]
    drawn = json.dumps(chart.spec.to_dict())
    assert "source, as: 1.028" in drawn
    assert all(f"{level}, cache={at}: " in chart.alternative
               for level in ("as", "noop") for at in (0, 8192))  # fmt: skip
    assert "as, cache" in to_html(run_document(findings))
    terminal = "\n".join(
        line.plain for line in lines(brief_run_document(findings, topics=[Topic.CLAIMS]), 80)
    )
    assert "cannot be decided" in terminal
    exported = json.loads(to_json(findings))
    schema = Path(__file__).parents[2] / "schema" / "export.schema.json"
    jsonschema.validate(exported, json.loads(schema.read_text(encoding="utf-8")))
    assert exported["assumed_ratios"][0]["published"] == 1.028
    assert exported["claims"][0]["setting"] == {"cache": 0}
    assert over_assumption.section(sample()) is None

"""What a campaign's report has of its runs: models, what limits them, facts of the program."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from click.testing import CliRunner

from concurve.analysis.campaign import campaign_findings
from concurve.analysis.campaign.answers import answers
from concurve.analysis.run import trial_findings_of
from concurve.assemble import campaign_of
from concurve.cli import app
from concurve.definition.campaign import Answer
from concurve.definition.campaign_file import load_campaign
from concurve.errors import ConcurveError
from concurve.exports import export_campaign, render_campaign
from concurve.findings.campaign import CampaignReport
from concurve.findings.explanation import CellExplanation, Limit
from concurve.findings.published import PublishedTable
from concurve.findings.run import Report, TrialFindings
from concurve.findings.scaling import ScalingFinding
from concurve.measuring.campaign_laboratory import CampaignRunner
from concurve.measuring.heads import new_campaign_head
from concurve.report.document import Caption, Overview, walk
from concurve.report.sections.campaign import brief_campaign_document, campaign_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.store.campaign_head import decode_campaign
from concurve.store.rows import CampaignRow
from concurve.terms import Goal, Measure, Reference
from concurve.wire.spec import TrialSpec
from tests.helpers.campaigns import write_campaign
from tests.helpers.explaining import WALL, record, role, thread
from tests.helpers.fakes import FakeClock, FakeEngine
from tests.helpers.made import figures_alone

SCHEMA = Path(__file__).parents[2] / "schema"


class _Threads(FakeEngine):
    """Threads share one lock in the cells of one CPU, where a second one would be of use, and two
    CPUs without any."""

    def run(self, spec: TrialSpec) -> bytes:
        cpus, threads = map(int, spec.roles[0].argv[1:3])
        noise = random.Random(spec.trial.partition("/")[2]).gauss(1, 0.002)
        if cpus == 1:
            held = thread(1 / threads, futex=1 - 1 / threads, switches=5000)
            made = role([held] * threads, 1e6, words=[(90, threads)], cpus=(0, 1), wall=10 * WALL,
                        noise=noise)  # fmt: skip
        else:
            cpu = min(1.0, 2 / threads)
            made = role([thread(cpu, 1 - cpu)] * threads, 1e6, noise=noise,
                        wall=round(10 * WALL / min(threads, 2)))  # fmt: skip
        said = {"collector": "Serial" if cpus == 1 else "G1", "cpus": cpus, "version": "17"}
        if (cpus, threads) == (2, 4):
            said["threads_limited_by"] = "pids.max = 300"
        made = msgspec.structs.replace(made, facts=said)
        return msgspec.json.encode(msgspec.structs.replace(record(made), trial=spec.trial))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A campaign of two studies; the second one asks for no speed."""
    folder = tmp_path_factory.mktemp("campaign")
    path = write_campaign(folder / "campaign")
    for name in ("tc01", "tc02"):
        file = path.parent / name / "study.toml"
        text = file.read_text().replace("threads = [1, 2]", "threads = [1, 2, 4]")
        if name == "tc02":
            text = text.replace(
                'name = "wall_seconds"\nbetter = "lower"\nunit = "s"', 'name = "threads_peak"'
            )
        file.write_text(text)
    head = new_campaign_head(load_campaign(path, 2), "quick", 1, "concurve run …", "0.1.0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCURVE_LOCK", str(folder / "lock"))
        store = Store(str(folder / "s.db"))
        CampaignRunner(head, store, _Threads(), lambda _: None, clock=FakeClock(0.001)).start()
    return store


@pytest.fixture(scope="module")
def row(stored: Store) -> CampaignRow:
    found = stored.find_campaign("small-campaign")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def plain(stored: Store, row: CampaignRow) -> CampaignReport:
    return campaign_findings(stored, row, lambda run: figures_alone(trial_findings_of(stored, run)))


@pytest.fixture(scope="module")
def findings(stored: Store, row: CampaignRow) -> CampaignReport:
    return campaign_of(stored, row)


def runs(findings: CampaignReport) -> list[Report]:
    return [study.run for study in findings.studies if study.run is not None]


def test_each_run_has_its_models_and_what_limits_it(findings: CampaignReport) -> None:
    first, second = runs(findings)
    assert [item.group for item in first.scaling] == [{"cpus": 1}, {"cpus": 2}]
    assert first.explanation is not None
    assert [cell.cause for cell in first.explanation.cells] == [
        "none", "lock", "lock", "none", "none", "cpu"
    ]  # fmt: skip
    assert second.explanation is None, "where nothing is to be faster, nothing limits"


def test_the_summary_tells_the_causes_once(findings: CampaignReport) -> None:
    says = (
        "What limits test case 1: lock in 2 of 6 cells, cpu in 2; in the other 2 nothing is found."
    )
    sentences = [item.sentence for item in findings.summary]
    assert sentences.count(says) == 1
    assert not any("What limits test case 2" in sentence for sentence in sentences)


def test_the_models_curves_are_in_the_campaigns_charts(
    plain: CampaignReport, findings: CampaignReport
) -> None:
    def curves(findings: CampaignReport) -> int:
        specs = [
            json.dumps(c.spec.to_dict(validate=False)) for c in campaign_document(findings).charts()
        ]
        return sum('"kind": "curve"' in spec for spec in specs)

    assert curves(plain) == 0
    assert curves(findings) > 0


def test_markdown_says_why(findings: CampaignReport) -> None:
    text = render_campaign(findings, "markdown").decode()
    results = text[text.index("## 8. Results") : text.index("## 9.")]
    assert re.search(r"\*\*Table N\d+\*\* Test case 1: scaling models", results)
    assert "Test case 2: what limits it" not in results
    assert "| cpus | threads=1 | threads=2 | threads=4 | at the last |" in results
    assert re.search(r"\| 1 \| none \| lock \| lock \| With cpus=1 threads=4 the speed-up", results)
    assert re.search(
        r"\*\*supported\*\* \| Two threads on two CPUs halve .* \| cpu: With cpus=2 threads=2 .*"
        r"nothing is lost\..* \|",
        results,
    )
    assert re.search(r"\*\*refuted\*\* \| Two threads on one CPU .* \| lock: With cpus=1", results)
    assert "| threads limited by | pids.max = 300 | cpus=2 threads=4 |" in results
    assert "| collector | G1 | cpus=2 |" in results
    assert "| version | 17 | all cells |" in results
    reported = results.split("facts that the program reported")[1]
    assert "| cpus | 2" not in reported, "a level is no news"


@pytest.mark.usefixtures("empty_charts")
def test_html_says_why_and_every_link_has_its_place(findings: CampaignReport) -> None:
    page = render_campaign(findings, "html").decode()
    assert re.search(r"<th[^>]*>what limits it</th>", page)
    assert "<td>lock: With cpus=1 threads=2 the speed-up over" in page
    assert "pids.max = 300" in page
    anchors = re.findall(r'\bid="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert {link for link in re.findall(r'href="#([^"]+)"', page)} <= set(anchors)
    assert re.search(r"Test case 1: Where the thread time of an operation goes", page)


def test_json_has_both_as_their_schemas_say(stored: Store, row: CampaignRow) -> None:
    export = json.loads(export_campaign(stored, row, "json"))
    schemas = {
        name: json.loads((SCHEMA / f"{name}.schema.json").read_text())
        for name in ("campaign", "export", "explain")
    }
    jsonschema.validate(export, schemas["campaign"])
    first, second = (study["run"] for study in export["studies"])
    jsonschema.validate(first, schemas["export"])
    jsonschema.validate(first["explanation"], schemas["explain"])
    assert [item["parameters"] for item in first["models"]] == [{"cpus": 1}, {"cpus": 2}]
    assert "explanation" not in second
    limited = next(fact for fact in first["facts"] if fact["name"] == "threads_limited_by")
    assert (limited["where"], limited["cells"], limited["among"]) == (
        {"cpus": 2, "threads": 4}, 1, 1
    )  # fmt: skip
    assert [claim["cell"] for claim in first["claims"]] == [
        {"cpus": 2, "threads": 2}, {"cpus": 1, "threads": 2}
    ]  # fmt: skip


def test_the_models_of_a_campaign_know_the_cpus_of_its_runs(
    stored: Store, plain: CampaignReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them they would predict beyond CPUs that are used up."""
    asked: list[object] = []

    def spying(findings: TrialFindings, granted: object = None) -> tuple[ScalingFinding, ...]:
        asked.append(granted)
        return ()

    monkeypatch.setattr("concurve.analysis.scaling.scaling_of", spying)
    campaign, db = plain.campaign.id, f"--db={stored.url}"
    assert CliRunner().invoke(app, ["show", campaign, "--json", "--models", db]).exit_code == 0
    assert asked and all(asked)


def test_show_has_models_of_a_campaign_in_json_only(stored: Store, plain: CampaignReport) -> None:
    campaign, db = plain.campaign.id, f"--db={stored.url}"
    shown = CliRunner().invoke(app, ["show", campaign, "--json", "--models", db])
    assert len(json.loads(shown.stdout)["studies"][0]["run"]["models"]) == 2
    for option in ("--models", "--best-by=cpu_seconds"):
        refused = CliRunner().invoke(app, ["show", campaign, option, db])
        assert isinstance(refused.exception, ConcurveError)
        assert "is for runs" in refused.exception.what


def test_a_source_s_own_numbers_do_not_shift_the_new_ones(findings: CampaignReport) -> None:
    def numbers(findings: CampaignReport) -> list[str]:
        blocks = walk(campaign_document(findings).blocks)
        return [block.label for block in blocks if isinstance(block, Caption) and block.label]

    first, second = findings.studies
    assert first.run is not None
    named = PublishedTable(number="Ninth", title="Times", rows=(), columns=(), figures=())
    run = msgspec.structs.replace(first.run, published=(named,))
    studies = (msgspec.structs.replace(first, run=run), second)
    new = [label for label in numbers(findings) if label.startswith("Table N")]
    assert new == [f"Table N{number + 1}" for number in range(len(new))]
    with_named = numbers(msgspec.structs.replace(findings, studies=studies))
    assert "Table Ninth" in with_named
    assert [label for label in with_named if label in new] == new


def test_a_document_has_its_runs_goals_indicators_and_references(findings: CampaignReport) -> None:
    texts = msgspec.structs.replace(
        findings.texts,
        goals=(Goal(id="T1", says="How far it scales.", priority="must"),
               Goal(id="T9", says="What nobody asks.", priority="can")),
        measures=(Measure(name="time", meaning="Of all.", source="a stopwatch", here="a clock"),
                  Measure(name="run time", meaning="All of it.", left_out="It holds more.")),
        references=(Reference(id="SDD", says="The design"),),
    )  # fmt: skip
    markdown = render_campaign(msgspec.structs.replace(findings, texts=texts), "markdown").decode()
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in markdown.splitlines() if line.startswith("|")]  # fmt: skip
    assert next(row for row in rows if row[0] == "T1")[2:4] == ["must", "tc01"]
    assert "supported" in next(row for row in rows if row[0] == "T1")[4]
    assert next(row for row in rows if row[0] == "T9")[2] == "can"
    assert ["time", "Of all.", "a stopwatch", "a clock"] in rows
    assert "Not used: run time." in markdown and "It holds more." in markdown
    assert "SDD" in markdown and "The design" in markdown
    for study in findings.studies:
        assert study.run is not None
        assert any(row[:2] == [study.name, study.run.run.id] for row in rows)
    assert findings.campaign.id in markdown[markdown.index("About this document") :]


def test_a_campaign_answers_its_question_first(findings: CampaignReport) -> None:
    """It does not name what answers it: so by those of its studies, each named, in every view."""
    run = findings.studies[0].run
    assert run is not None
    first = next(item.sentence for item in run.sentences if item.kind == "answer")
    said = findings.answers[0].sentence
    assert said == f"Test case 1: {first}"
    assert "[[answer]]" in findings.answers[-1].sentence
    (overview, *_) = (
        block for block in walk(campaign_document(findings).blocks) if isinstance(block, Overview)
    )
    assert overview.answers[0].text == said
    assert overview.chart is not None
    text = " ".join(line.plain.strip() for line in lines(brief_campaign_document(findings), 200))
    assert text.index(said) < text.index("studies are done")


def test_a_campaign_without_an_answer_says_so(findings: CampaignReport, row: CampaignRow) -> None:
    silent = [msgspec.structs.replace(study, run=None) for study in findings.studies]
    found = answers(decode_campaign(row).campaign, silent)
    (said,) = found.said
    assert found.study == ""
    assert said.kind == "warning"
    assert said.sentence.startswith("The question cannot be answered")


def test_the_entries_of_a_campaign_answer_it(findings: CampaignReport, row: CampaignRow) -> None:
    """In every view, with the chart of the study that the first of them names."""
    asked = (
        Answer(study="tc01", factor="threads", by="wall_seconds", where={"cpus": 2},
               names={"4": "four threads"}, claims=("halves",)),
        Answer(study="tc02"),
    )  # fmt: skip
    campaign = msgspec.structs.replace(decode_campaign(row).campaign, answer=asked)
    found = answers(campaign, findings.studies)
    assert found.study == "tc01"
    first, claim = (item.sentence for item in found.said[:2])
    assert first.startswith("With cpus=2: ")
    assert claim.startswith("Two threads on two CPUs halve the time: ")
    answered = msgspec.structs.replace(findings, answers=found.said, answered_by=found.study)
    (overview, *_) = (
        block for block in walk(campaign_document(answered).blocks) if isinstance(block, Overview)
    )
    assert overview.answers[0].text == first
    assert overview.chart is not None
    for text in (
        " ".join(line.plain.strip() for line in lines(brief_campaign_document(answered), 200)),
        render_campaign(answered, "markdown").decode(),
        json.dumps(json.loads(render_campaign(answered, "json"))["answers"], ensure_ascii=False),
    ):
        assert first.split("[")[0] in text.replace("\\", "")


def test_a_terminal_names_what_limits_the_study_that_answers(findings: CampaignReport) -> None:
    evidence = "With threads=2 an operation takes 1.7 × the thread time: 40 % of it waiting."
    limit = CellExplanation(parameters={}, cause="lock", evidence=evidence, trials=5)
    text = [
        line.plain for line in lines(brief_campaign_document(findings, [Limit({}, limit)]), 200)
    ]
    begin = f"What limits {findings.answered_by}: locks. With threads=2 an operation takes 1.7 ×"
    assert any(line.startswith(begin) for line in text)

"""Campaigns: what is run, resumed and reported, with engines whose times are known."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.analysis.campaign import campaign_findings
from concurve.analysis.campaign.summary import summary
from concurve.analysis.run import trial_findings_of
from concurve.definition.campaign_file import load_campaign
from concurve.engine import Problem
from concurve.errors import BusyError, RunInterruptedError, StoreError
from concurve.exports import render_campaign
from concurve.findings.campaign import CampaignReport
from concurve.host.lock import measurement_lock
from concurve.measuring.campaign_laboratory import CampaignRunner
from concurve.measuring.heads import new_campaign_head
from concurve.measuring.site import ThisMachine
from concurve.report import terminal
from concurve.report.sections.campaign import brief_campaign_document
from concurve.store import Store
from concurve.store.campaign_head import CampaignHead, decode_campaign
from concurve.store.database import STORE_FORMAT
from concurve.store.rows import CampaignRow, MemberRow
from concurve.store.run_head import decode_head
from concurve.wire.spec import TrialSpec
from tests.helpers.agents import inventory_of
from tests.helpers.campaigns import write_campaign
from tests.helpers.fakes import FakeClock, FakeEngine
from tests.helpers.made import figures_alone
from tests.helpers.postgres import Server

SCHEMA = Path(__file__).parents[2] / "schema"


def seconds(spec: TrialSpec) -> float:
    """Two CPUs and two threads halve the time; otherwise threads change nothing."""
    cpus, threads = map(int, spec.roles[0].argv[1:3])
    return 10.0 / min(cpus, threads)


def engine(**more: object) -> FakeEngine:
    return FakeEngine(lambda spec, rng: seconds(spec) * rng.gauss(1, 0.002), **more)  # type: ignore[arg-type]


class MissingProgram(FakeEngine):
    """Has no program of the name ``no-such-program``."""

    def check(self, spec: TrialSpec) -> list[Problem]:
        missing = "no-such-program" in spec.roles[0].argv[0]
        return [Problem("target", "exec_failed", "not found")] if missing else []


class StoppedAt(FakeEngine):
    """The user interrupts at the given trial."""

    def __init__(self, at: int) -> None:
        super().__init__(lambda spec, rng: seconds(spec) * rng.gauss(1, 0.002))
        self.at = at

    def run(self, spec: TrialSpec) -> bytes:
        if len(self.specs) + 1 == self.at:
            raise KeyboardInterrupt
        return super().run(spec)


def head_of(folder: Path, commands: tuple[str, str] = ("true", "true")) -> CampaignHead:
    campaign = load_campaign(write_campaign(folder / "campaign", commands), 2)
    again = "concurve run small --seed 1 --only tc01,tc02 --effort quick"
    return new_campaign_head(campaign, "quick", 1, again, "0.1.0")


def runner(
    head: CampaignHead,
    store: Store,
    using: FakeEngine,
    tell: Callable[[str], None] = lambda text: None,
) -> CampaignRunner:
    return CampaignRunner(head, store, using, tell, clock=FakeClock(0.001))


def ran(folder: Path) -> tuple[Store, CampaignReport]:
    """A campaign whose second study cannot run here."""
    store, head = Store(), head_of(folder, ("true", "no-such-program"))
    using = MissingProgram(lambda spec, rng: seconds(spec) * rng.gauss(1, 0.002))
    runner(head, store, using).start()
    row = store.find_campaign(head.id)
    assert row is not None
    return store, campaign_findings(
        store, row, lambda run: figures_alone(trial_findings_of(store, run))
    )


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> CampaignReport:
    """Findings of such a campaign, for the tests of the views."""
    folder = tmp_path_factory.mktemp("campaign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCURVE_DB", str(folder / "s.db"))
        patch.setenv("CONCURVE_LOCK", str(folder / "lock"))
        return ran(folder)[1]


def test_each_study_is_a_run_of_its_own_tied_by_the_campaign(tmp_path: Path) -> None:
    store, head, said = Store(), head_of(tmp_path), list[str]()
    rows = runner(head, store, engine(), said.append).start()
    assert [(row.name, row.state) for row in rows] == [("tc01", "complete"), ("tc02", "complete")]
    assert [store.find_run(row.run).study for row in rows] == ["small-tc01", "small-tc02"]
    assert len(store.runs()) == 2
    assert said == [
        "study 1 of 2, tc01: Find how far tc01 scales.",
        "study 2 of 2, tc02: Find how far tc02 scales.",
    ]
    for name in (head.id, head.id[:12], "small-campaign"):
        found = store.find_campaign(name)
        assert found is not None and found.state == "complete", name
    assert store.find_campaign("tc01") is None
    campaign = store.campaign_of(rows[1].run)
    assert campaign is not None and campaign.id == head.id
    assert store.campaign_of("nothing") is None


def test_a_study_alone_has_a_command_of_its_own(tmp_path: Path) -> None:
    again = head_of(tmp_path).again_alone("tc02")
    assert again == "concurve run small --seed 1 --effort quick --only tc02"


def test_the_studies_of_a_campaign_run_on_its_hosts_also_when_resumed(tmp_path: Path) -> None:
    inventory = inventory_of({"a": "10.0.0.1", "b": "10.0.0.2"})
    head = msgspec.structs.replace(head_of(tmp_path), hosts=inventory)
    store, stopped = Store(str(tmp_path / "c.db")), StoppedAt(26)
    with pytest.raises(RunInterruptedError):
        CampaignRunner(head, store, stopped, clock=FakeClock(0.001), site=ThisMachine()).start()
    using = engine()
    again = decode_campaign(store.campaigns()[0])
    assert again.hosts == inventory
    CampaignRunner(again, store, using, clock=FakeClock(0.001), site=ThisMachine()).resume()
    runs = [decode_head(row) for row in store.runs()]
    assert [run.hosts for run in runs] == [inventory] * 2
    assert {role.host for spec in using.specs for role in spec.roles} == {"a"}


def test_a_study_that_cannot_run_here_does_not_stop_the_others(tmp_path: Path) -> None:
    store, head, said = Store(), head_of(tmp_path, ("no-such-program", "true")), list[str]()
    rows = runner(head, store, MissingProgram(), said.append).start()
    assert [row.state for row in rows] == ["not run", "complete"]
    assert "not found" in rows[0].reason and rows[0].run == ""
    assert any(text.startswith("tc01 was not run: ") for text in said)
    found = store.find_campaign(head.id)
    assert found is not None and found.state == "incomplete"
    assert found.reason == "1 of 2 studies is missing: tc01"


def test_a_study_that_fails_keeps_its_run(tmp_path: Path) -> None:
    store, head = Store(), head_of(tmp_path)
    failing = engine(kind_of=lambda spec: "program_failed" if "/tc" in spec.trial else "ok")
    failing.kind_of = lambda spec: "program_failed" if len(failing.specs) <= 8 else "ok"
    rows = runner(head, store, failing).start()
    assert [row.state for row in rows] == ["failed", "complete"]
    assert "every cell failed" in rows[0].reason
    assert store.find_run(rows[0].run).state == "failed"


def test_an_interrupted_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    store, head = Store(), head_of(tmp_path)
    with pytest.raises(RunInterruptedError) as stopped:
        runner(head, store, StoppedAt(26)).start()
    assert f"concurve resume {head.id}" in stopped.value.remedy
    assert "after 1 of 2 studies" in stopped.value.what
    first, second = store.members(head.id)
    assert (first.state, second.state) == ("complete", "begun")
    count = store.count(second.run)
    assert 0 < count < 20
    using = engine()
    rows = runner(head, store, using).resume()
    assert [row.state for row in rows] == ["complete", "complete"]
    assert rows[1].run == second.run
    assert len(using.specs) == 20 - count, "what was stored is not run again"
    found = store.find_campaign(head.id)
    assert found is not None and found.state == "complete"


def test_resuming_tries_again_what_could_not_run(tmp_path: Path) -> None:
    store, head = Store(), head_of(tmp_path, ("no-such-program", "true"))
    runner(head, store, MissingProgram()).start()
    using = engine()
    rows = runner(head, store, using).resume()
    assert [row.state for row in rows] == ["complete", "complete"]
    assert len(using.specs) == 20


def test_another_measurement_stops_the_campaign_and_says_how_to_go_on(tmp_path: Path) -> None:
    store, head = Store(), head_of(tmp_path)
    with measurement_lock("something else"), pytest.raises(BusyError) as busy:
        runner(head, store, engine()).start()
    assert f"concurve resume {head.id}" in busy.value.remedy
    assert [row.state for row in store.members(head.id)] == ["begun", "planned"]
    assert all(row.state == "complete" for row in runner(head, store, engine()).resume())


def test_what_another_process_measures_is_not_taken_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, head = Store(), head_of(tmp_path)
    with pytest.raises(RunInterruptedError):
        runner(head, store, StoppedAt(26)).start()
    store.set_campaign_state(head.id, "running", "")
    monkeypatch.setattr("concurve.measuring.campaign_laboratory.process_of", lambda holder: 4711)
    with pytest.raises(BusyError, match="is being measured by process 4711"):
        runner(head, store, engine()).resume()
    found = store.find_campaign(head.id)
    assert found is not None and found.state == "running"


def test_an_allowance_that_is_used_up_ends_no_study(tmp_path: Path) -> None:
    store, head = Store(), head_of(tmp_path)
    with pytest.raises(RunInterruptedError):
        runner(head, store, StoppedAt(26)).start()
    begun = store.members(head.id)[1]
    rows = runner(head, store, engine()).resume(1e-6)
    assert (rows[1].state, rows[1].run) == ("not run", begun.run)
    assert "is for the whole run" in rows[1].reason
    assert all(row.state == "complete" for row in runner(head, store, engine()).resume(1e6))


def test_a_store_that_lost_studies_of_a_campaign_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    store, head = Store(str(file)), head_of(tmp_path)
    runner(head, store, engine()).start()
    store.close()
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM concurve_campaign_studies WHERE position = 0")
    store = Store(str(file))
    row = store.find_campaign(head.id)
    assert row is not None
    with pytest.raises(StoreError, match="has 2 studies, and the store knows of 1"):
        campaign_findings(store, row, lambda run: trial_findings_of(store, run))
    with pytest.raises(StoreError, match="has 2 studies"):
        runner(head, store, engine()).resume()


def test_a_machine_that_was_not_quiet_is_told_in_the_summary(tmp_path: Path) -> None:
    store, head = Store(), head_of(tmp_path)
    runner(head, store, engine(steal_of=lambda spec: 10**9)).start()
    row = store.find_campaign(head.id)
    assert row is not None
    said = campaign_findings(store, row, lambda run: trial_findings_of(store, run)).summary[-1]
    assert said.kind == "warning"
    assert said.sentence.startswith("The machine was not quiet: 40 of ")


# -- the store --------------------------------------------------------------------------------


def old_store(path: Path) -> None:
    """A store of format 1, as the first version made it."""
    Store(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE concurve_campaign_studies")
    connection.execute("DROP TABLE concurve_campaigns")
    connection.execute("UPDATE concurve_meta SET value = '1'")
    connection.commit()
    connection.close()


def test_an_old_store_is_brought_up_to_date_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old_store(path)
    store = Store(str(path))
    keeps_campaigns(store)
    store.close()
    connection = sqlite3.connect(path)
    value = connection.execute("SELECT value FROM concurve_meta WHERE key = 'format'").fetchone()
    connection.close()
    assert value == (str(STORE_FORMAT),)


def test_an_old_store_that_cannot_be_changed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    old_store(path)
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TRIGGER fixed BEFORE UPDATE ON concurve_meta BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    connection.commit()
    connection.close()
    store = Store(str(path))
    assert store.runs() == []
    assert store.campaigns() == []
    assert store.campaign_of("x") is None and store.find_campaign("x") is None


def test_campaigns_in_postgresql_old_and_new(postgres: Server) -> None:
    import psycopg

    url = postgres.database("campaigns")
    Store(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE concurve_campaign_studies")
        connection.execute("DROP TABLE concurve_campaigns")
        connection.execute("UPDATE concurve_meta SET value = '1'")
    keeps_campaigns(Store(url))


def keeps_campaigns(store: Store) -> None:
    """Write and read campaigns."""
    for number in (1, 2):
        row = CampaignRow(f"c2026112{number}-1", "name", f"2026-11-2{number}", "running", "", b"{}")
        store.add_campaign(row, [MemberRow(0, "a"), MemberRow(1, "b")])
    store.set_member(row.id, MemberRow(1, "b", "run-1", "complete", ""))
    store.set_campaign_state(row.id, "complete", "all studies done")
    assert [(m.name, m.state) for m in store.members(row.id)] == [
        ("a", "planned"), ("b", "complete")
    ]  # fmt: skip
    assert [m.state for m in store.members("c20261121-1")] == ["planned", "planned"]
    newest, campaign = store.find_campaign("name"), store.campaign_of("run-1")
    assert newest is not None and (newest.id, newest.state) == (row.id, "complete")
    assert campaign is not None and campaign.id == row.id
    with pytest.raises(StoreError, match="2 campaigns begin with 'c202611'"):
        store.find_campaign("c202611")
    assert store.find_campaign("c") is None and store.find_campaign("") is None
    later = CampaignRow("c30001231-1", "later", "3000-12-31", "running", "", b"{}")
    store.add_campaign(later, [MemberRow(0, "a")])
    found = store.find_campaign("c3000")
    assert found is not None and found.id == later.id


# -- published figures --------------------------------------------------------------------------


def test_published_figures_stand_beside_ours_as_ratios(findings: CampaignReport) -> None:
    run = findings.studies[0].run
    assert run is not None
    degree, cpu = run.published
    assert (degree.number, degree.title, degree.figure) == ("11", "Degree of scaling", "5")
    verdicts = {(f.row, f.column): f.verdict for f in degree.figures}
    assert verdicts == {
        ("Time 1 CPU", "1 thread"): "base",
        ("Time 1 CPU", "2 threads"): "agrees",
        ("Time 2 CPUs", "1 thread"): "agrees",
        ("Time 2 CPUs", "2 threads"): "agrees",
        ("Factor", "2 threads"): "agrees",
    }
    halved, factor = degree.at("Time 2 CPUs", "2 threads"), degree.at("Factor", "2 threads")
    assert halved is not None and halved.ours is not None and factor is not None
    assert halved.published == pytest.approx(35.72 / 69.41)
    assert halved.ours.value == pytest.approx(0.5, rel=0.01)
    assert halved.ours.low is not None and halved.ours.low < halved.ours.value
    assert factor.ours is not None and factor.ours.value == pytest.approx(2.0, rel=0.01)
    process = cpu.at("Process", "1 thread")
    assert process is not None and process.verdict == "not comparable"
    assert process.reason == "nothing is measured for it here"


# -- what is said -------------------------------------------------------------------------------


def test_the_summary_counts_verdicts_and_names_what_is_refuted(findings: CampaignReport) -> None:
    said = [item.sentence for item in findings.summary]
    assert said[0].startswith("1 of 2 studies is done: 20 trials in ")
    assert said[1] == (
        "Of the 2 claims of the source 1 is supported, 1 refuted, 0 undecided and "
        "0 not testable here."
    )
    assert said[2] == "Refuted, test case 1: Two threads on one CPU take twice as long."
    assert said[3].startswith("Of 4 published figures that can be held against ours")
    assert "4 agree, 0 differ" in said[3]
    assert said[4].startswith("tc02 was not run: ")
    assert findings.summary[4].kind == "warning"


def test_the_summary_names_cells_that_errors_took_out(
    tmp_path: Path, findings: CampaignReport
) -> None:
    study = findings.studies[0]
    assert study.run is not None
    cells = study.run.cells
    lost = msgspec.structs.replace(cells[0], status="skipped", note="exit code 1 twice")
    run = msgspec.structs.replace(study.run, cells=(lost, *cells[1:]))
    troubled = msgspec.structs.replace(study, run=run)
    said = [
        item.sentence for item in summary(head_of(tmp_path), [troubled, *findings.studies[1:]], {})
    ]
    assert (
        "Test case 1: 1 of 4 cells was skipped after errors; the first: exit code 1 twice." in said
    )


def test_deviations_name_what_did_not_run(findings: CampaignReport) -> None:
    missing = [item for item in findings.deviations if item.kind == "missing"]
    assert [item.study for item in missing] == ["tc02"]
    assert "no-such-program" in missing[0].says or "not found" in missing[0].says


def test_the_procedure_is_that_which_was_run(findings: CampaignReport) -> None:
    how = findings.studies[0].procedure
    assert how is not None and findings.studies[1].procedure is None
    assert (how.cells, how.blocks, how.repeats_min, how.repeats_max) == (4, 5, 5, 5)
    assert (how.precision, how.redo_max, how.trials) == (0.05, 2, 20)


def test_markdown_is_a_test_document(findings: CampaignReport) -> None:
    text = render_campaign(findings, "markdown").decode()
    sections = [line for line in text.splitlines() if line.startswith("## ")]
    assert sections == [
        "## 1. The answer",
        "## 2. Management summary",
        "## 3. About this document",
        "## 4. Introduction and scope",
        "## 5. Test platform",
        "## 6. Procedure",
        "## 7. Test cases",
        "## 8. Results",
        "## 9. Deviations",
        "## 10. Glossary",
        "## 11. Tables",
        "## 12. Run it again",
    ]
    results = text[text.index("## 8. Results") : text.index("## 9. Deviations")]
    assert results.index("**Table 11** Degree of scaling") < results.index("**Table 12** CPU time")
    assert re.search(
        r"\| Time 2 CPUs \| 2 threads \| 35.72 s \| 0.515 \| 0.(49|50)\d* \([^)]+\) \| agrees \|",
        results,
    )
    assert "**supported**" in results and "**refuted**" in results
    assert "**Not run.**" in results
    assert "Why this \\| is asked." in text
    assert "- **CAS**: compare and swap" in text
    index = text[text.index("## 11. Tables") : text.index("## 12.")]
    assert "- Table 11 Degree of scaling" in index
    assert re.search(r"- Table N\d Test case 1: claims of the source", index)


def test_html_is_a_test_document_whose_index_leads_to_each_table(findings: CampaignReport) -> None:
    from html.parser import HTMLParser

    page = render_campaign(findings, "html").decode()
    ids, links, headings, outside = list[str](), list[str](), list[str](), list[str]()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found = dict(attrs)
            if found.get("id"):
                ids.append(found["id"] or "")
            if tag == "a":
                links.append(found.get("href") or "")
            if tag == "h2":
                headings.append(found.get("id") or "")
            outside.extend(
                value for key, value in attrs if key == "src" or (value or "").startswith("http")
                if value and not value.startswith("http://www.w3.org/")
            )  # fmt: skip

    Reader().feed(page)
    assert headings == [
        "answer", "summary", "about", "introduction", "platform", "procedure", "cases", "results",
        "deviations", "glossary", "index", "again",
    ]  # fmt: skip
    assert len(ids) == len(set(ids)), "every anchor once"
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert "#table-11" in links and "#figure-5" in links
    assert outside == []
    assert "another &lt;b&gt;thing&lt;/b&gt;" in page
    assert page.count("<svg") >= 5, "the chart of table 11, and those of the run"


def test_json_is_as_its_schema_says(findings: CampaignReport) -> None:
    export = json.loads(render_campaign(findings, "json"))
    schema = json.loads((SCHEMA / "campaign.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(export, schema)
    run_schema = json.loads((SCHEMA / "export.schema.json").read_text())
    jsonschema.validate(export["studies"][0]["run"], run_schema)
    published = export["studies"][0]["run"]["published"]
    assert published[3]["table"] == "11"
    assert published[3]["parameters"] == {"cpus": 2, "threads": 2}
    assert published[3]["verdict"] == "agrees"


@pytest.mark.parametrize("width", [30, 60, 100])
def test_the_terminal_is_never_too_narrow(findings: CampaignReport, width: int) -> None:
    lines = list(terminal.lines(brief_campaign_document(findings), width))
    assert all(len(line.plain) <= width for line in lines)
    text = " ".join(line.plain.strip() for line in lines)
    assert "tc02 not run" in text and "claims: 1 supported, 1 refuted" in text

"""Every record of a run is read once for its reports, whatever these are written as."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve import exports
from concurve.analysis.campaign.summary import causes
from concurve.analysis.run import stored_run, trial_findings_of
from concurve.assemble import report_of
from concurve.brief import figures_of
from concurve.definition.study import Indicator, Role, Rules
from concurve.estimate import Estimate
from concurve.explain import explain_run, explained_limits
from concurve.findings.explanation import (
    LITTLE_LOST,
    NO_LOSS,
    Cause,
    CellExplanation,
    Explanation,
    Limit,
    RunnerUp,
)
from concurve.findings.limits import limits_told, recommended_below, told
from concurve.findings.run import Report
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.document import List, Paragraph, Section, walk
from concurve.report.json.explanation import to_json as explanation_json
from concurve.report.losses import greater_part
from concurve.report.sections.figures import every
from concurve.report.sections.limits import certainty, explanation_document, named_cause
from concurve.report.sections.overview import ROOMS, answers, limit_line, warnings, with_limits
from concurve.report.sections.run import Topic, brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.store.rows import RecordRow, TrialKey
from concurve.terms import Level
from concurve.wire import decode_record
from concurve.wire.record import Outcome, Output
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import TrialSpec
from tests.helpers.explaining import line_of, record, role, thread
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import made_run

TRIALS = Rules(repeats_min=4, repeats_max=4)


class Engine(FakeEngine):
    """Threads wait for one another; each reports its own work, and all of them a fact."""

    def run(self, spec: TrialSpec) -> bytes:
        n = int(spec.roles[0].argv[1])
        shares = tuple(IndicatorLine("work", 100.0 + i, worker=f"w{i}") for i in range(n))
        made = role([thread(1 / n, futex=1 - 1 / n)] * n)
        indicators = (*made.indicators, *shares)
        made = msgspec.structs.replace(made, indicators=indicators, facts={"jit": "on"})
        return msgspec.json.encode(msgspec.structs.replace(record(made), trial=spec.trial))


class CountingStore(Store):
    """A store that counts which records were read."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.read: Counter[TrialKey] = Counter()

    def records(self, run: str, cell: int | None = None) -> Iterator[RecordRow]:
        for row in super().records(run, cell):
            self.read[row.key] += 1
            yield row


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    store = CountingStore(str(tmp_path / "s.db"))
    asked = (Indicator(name="wall_seconds", better="lower", unit="s"), Indicator(name="work_cv"))
    study = msgspec.structs.replace(small_study(TRIALS, threads=(1, 2, 4)), indicators=asked)
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, Engine(), clock=FakeClock(0.001)).start()
    store.read.clear()
    return store


def test_a_report_reads_each_record_once(store: CountingStore) -> None:
    report = report_of(store, store.find_run("last"))
    assert report.explanation is not None
    assert [fact.name for fact in report.facts] == ["jit"]
    assert report.shares is not None and report.shares.cells[0].shares == (100, 101, 102, 103)
    assert report.scaling and report.scaling[0].fit is not None
    assert len(store.read) == 12 and set(store.read.values()) == {1}


@pytest.mark.usefixtures("empty_charts")
def test_all_its_files_do_with_one_reading(store: CountingStore, tmp_path: Path) -> None:
    files: dict[exports.Format, Path] = {
        "json": tmp_path / "r.json", "csv": tmp_path / "r.csv",
        "markdown": tmp_path / "r.md", "html": tmp_path / "r.html",
    }  # fmt: skip
    exports.write_run(store, "last", files)
    assert set(store.read.values()) == {1}
    exported = json.loads(files["json"].read_bytes())
    assert [len(cell["trials"]) for cell in exported["cells"]] == [4, 4, 4]
    assert "explanation" in exported and "What limits it" in files["html"].read_text()


def test_an_explanation_reads_each_record_once(store: CountingStore) -> None:
    assert len(explain_run(store, store.find_run("last")).cells) == 3
    assert set(store.read.values()) == {1}


def test_views_of_figures_alone_read_one_record(store: CountingStore, tmp_path: Path) -> None:
    exports.write_run(store, "last", {"csv": tmp_path / "r.csv"})
    assert store.read.total() == 1, "the first, for what is absent and why"


def test_a_terminal_names_the_limit_from_the_records_of_two_cells(store: CountingStore) -> None:
    """The one that a reader is told of, and its base; as the page says it."""
    report = report_of(store, store.find_run("last"))
    assert report.explanation is not None
    run = stored_run(store, store.find_run("last"))
    store.read.clear()
    (found,) = explained_limits(store, run, report)
    limit = found.cell
    assert not found.under and limit == report.explanation.cells[-1]
    assert {key.cell for key in store.read} == {0, 2}
    assert figures_of(store, run.row, brief=True).limits == (found,)
    (beside,) = (
        block for block in walk(run_document(report).blocks)
        if isinstance(block, Section) and block.title == "What limits it"
    )  # fmt: skip
    (page,) = beside.blocks
    assert isinstance(page, Paragraph)
    line = line_of(limit)
    assert line.lead == "What limits it"
    cause = f"{page.lead[0].lower()}{page.lead[1:]} "
    assert line.text.startswith(cause)
    sure = certainty(limit)
    assert limit.reason and line.text == f"{cause}{limit.reason}.{sure}"
    assert page.text == f"{limit.evidence}{sure}"


@pytest.mark.usefixtures("empty_charts")
def test_what_limits_it_is_told_for_each_condition(tmp_path: Path) -> None:
    store = CountingStore(str(tmp_path / "by-condition.db"))
    study = small_study(TRIALS, threads=(1, 2), sync=("none", "lock"))
    study = msgspec.structs.replace(study, conditions=("sync",))

    class Locked(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            n, sync = int(spec.roles[0].argv[1]), spec.roles[0].argv[2]
            waits = 1 - 1 / n if sync == "lock" else 0.0
            made = role([thread(1 - waits, futex=waits)] * n)
            return msgspec.json.encode(msgspec.structs.replace(record(made), trial=spec.trial))

    Runner(new_head(study, "normal", 1, "concurve run …"), store, Locked(),
           clock=FakeClock(0.001)).start()  # fmt: skip
    found = figures_of(store, store.find_run("last"), brief=True)
    assert [limit.under for limit in found.limits] == [{"sync": "none"}, {"sync": "lock"}]
    document = brief_run_document(found.findings, limits=found.limits)
    shown = "\n".join(line.plain for line in lines(document, 200))
    assert "What limits sync=none: " in shown and "What limits sync=lock: " in shown
    (beside,) = (
        block for block in walk(run_document(report_of(store, store.find_run("last"))).blocks)
        if isinstance(block, Section) and block.title == "What limits it"
    )  # fmt: skip
    leads = [item.lead for item in beside.blocks if isinstance(item, Paragraph)]
    assert [lead.partition(":")[0] for lead in leads] == ["sync=none", "sync=lock"]


BUSY = "a client thread used 88 % of a CPU: the client may limit the rate; more --threads"


@pytest.mark.parametrize(
    ("cause", "limit", "is_server"),
    [
        ("cpu", "redis-server", True),
        ("lock", "", True),
        ("cpu", "CPUs", False),
        ("client", "load", False),
        ("none", "", False),
        ("in doubt", "", False),
    ],
)
def test_a_busy_load_is_no_limit_where_the_server_is_shown_to_be(
    cause: Cause, limit: str, is_server: bool
) -> None:
    store = Store()

    class Warns(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            record = json.loads(super().run(spec))
            record["roles"][0]["facts"] = {"warnings": [BUSY, "the clock is coarse"]}
            return json.dumps(record).encode()

    head = new_head(small_study(TRIALS, threads=(1, 2, 4)), "normal", 1, "concurve sweep …")
    Runner(head, store, Warns(), clock=FakeClock(0.001)).start()
    findings = figures_of(store, store.find_run("last")).findings
    cell = CellExplanation(parameters={}, cause=cause, evidence="", limit=limit)

    def shown_with(*limits: Limit) -> list[str]:
        (shown,) = warnings(findings, ROOMS[0], limits)
        assert isinstance(shown, List)
        return [item.text for item in shown.items if isinstance(item, Paragraph)]

    begun = "The program warns in all 12 trials: "
    assert shown_with()[:2] == [f"{begun}{BUSY}.", f"{begun}the clock is coarse."]
    if is_server:
        assert shown_with(Limit({}, cell))[:2] == [
            f"{begun}the clock is coarse.",
            f"{begun}a client thread used 88 % of a CPU. Where a limit is named, it is the server.",
        ]
        other = msgspec.structs.replace(cell, cause="client", limit="load")
        assert shown_with(Limit({}, cell), Limit({}, other)) == shown_with()
    else:
        assert shown_with(Limit({}, cell)) == shown_with()


def test_a_warning_whose_times_have_other_units_is_one_warning() -> None:
    store = Store()
    times = itertools.cycle(("950 µs", "1.20 ms", ">1.2 s"))

    class Warns(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            record = json.loads(super().run(spec))
            record["roles"][0]["facts"] = {"warnings": [f"p99 is {next(times)} from sending"]}
            return json.dumps(record).encode()

    head = new_head(small_study(TRIALS, threads=(1, 2, 4)), "normal", 1, "concurve sweep …")
    Runner(head, store, Warns(), clock=FakeClock(0.001)).start()
    findings = figures_of(store, store.find_run("last")).findings
    told = [it.sentence for it in findings.sentences if "from sending" in it.sentence]
    assert len(told) == 1
    assert told[0].startswith("The program warns in all 12 trials, for example: p99 is ")


def test_a_warning_of_the_program_is_told_once_in_every_view(tmp_path: Path) -> None:
    """It may be the very cause that the reader looks for."""
    store, warned = Store(), "more sessions than branches: they wait for each other"

    class Warns(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            record = json.loads(super().run(spec))
            record["roles"][0]["facts"] = {"warnings": [warned]}
            return json.dumps(record).encode()

    head = new_head(small_study(TRIALS, threads=(1, 2, 4)), "normal", 1, "concurve sweep …")
    Runner(head, store, Warns(), clock=FakeClock(0.001)).start()
    row = store.find_run("last")
    told = f"The program warns in all 12 trials: {warned}."
    found = figures_of(store, row, brief=True)
    for room in ROOMS:
        (shown,) = warnings(found.findings, room)
        assert isinstance(shown, List)
        assert sum(item.text == told for item in shown.items if isinstance(item, Paragraph)) == 1
    explanation = explain_run(store, row)
    assert explanation.warnings == (told,)
    text = "\n".join(line.plain for line in lines(explanation_document(explanation), 200))
    assert text.count(told) == 1
    assert json.loads(explanation_json(explanation))["warnings"] == [told]
    exports.write_run(store, "last", {"json": tmp_path / "r.json", "markdown": tmp_path / "r.md"})
    exported = json.loads((tmp_path / "r.json").read_bytes())
    assert [item["sentence"] for item in exported["findings"] if warned in item["sentence"]] == [
        told
    ]
    page = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert page.index(told) < page.index("Where the time goes")


def test_a_damaged_record_leaves_the_figures_to_be_shown(store: CountingStore) -> None:
    (run,) = store.runs()
    with store._writing() as connection:
        connection.run(
            "UPDATE concurve_records SET record = :no WHERE trial = (SELECT max(id) FROM "
            "concurve_trials WHERE run = :run AND cell = 2)",
            no=b"no record", run=run.id,
        )  # fmt: skip
    found = figures_of(store, run, brief=True)
    assert found.limits == ()
    assert len(found.findings.cells) == 3


def test_no_cause_is_named_on_a_busy_machine() -> None:
    doubt = "the machine was not quiet during 3 of 5 trials of n=2"
    unsure = CellExplanation(
        parameters={"n": 2}, cause="in doubt", evidence="…", doubt=doubt, trials=5,
    )  # fmt: skip
    short = f"no cause is named: {doubt}."
    assert line_of(unsure).text == short
    pointed = msgspec.structs.replace(unsure, seeming=("lock", ""))
    assert line_of(pointed).text == f"{short} The figures in doubt point to locks."
    few = msgspec.structs.replace(pointed, few="2 of n=2; 3 are enough")
    assert line_of(few).text == short


def test_a_resource_that_the_cause_names_is_not_named_again() -> None:
    cases: tuple[tuple[Cause, str, str], ...] = (
        ("cpu", "CPUs", "the CPUs. "),
        ("cpu", "io", "one busy thread (io). "),
        ("client", "load", "the load generator. "),
        ("stage", "flush", "one stage for which the others wait (flush). "),
    )
    for cause, limit, begins in cases:
        text = line_of(explained(cause, "all of them busy", limit=limit)).text
        assert text.startswith(begins), text


def explained(cause: Cause, words: str, **more: Any) -> CellExplanation:
    evidence = f"With n=2 an operation takes 1.7 × the thread time of n=1: {words}."
    found = CellExplanation(parameters={"n": 2}, cause=cause, evidence=evidence, trials=5)
    return msgspec.structs.replace(found, **more)


def test_a_loss_without_a_cause_is_not_taken_for_no_loss() -> None:
    base = {"n": 1}
    no_loss = f"{NO_LOSS}. The quiet trials alone say the same; so it is"
    told = [
        (explained("none", "on the CPU"), "none"),  # the base itself: nothing to explain
        (explained("none", no_loss, base=base), "none"),
        (explained("none", "nothing can be said", base=base, trials=0), "none"),
        (explained("none", "5 % of it waiting", base=base), "not found"),
        (explained("cpu", "all of them busy", base=base, limit="CPUs"), "cpu: CPUs"),
    ]
    for cell, cause in told:
        assert named_cause(cell) == cause
        is_short = line_of(cell).text.startswith("not found. ") and NO_LOSS not in cell.evidence
        assert not cell.base or is_short == (cause == "not found")


def test_who_loses_nothing_is_limited_by_nothing_yet() -> None:
    """Where its time goes is no limit: threads that wait for answers are twice as fast by two."""
    gained: dict[str, Any] = {"base": {"n": 1}, "speedup": 1.99, "speedup_possible": 2.0}
    reason = "With n=2 an operation spends 51 % of its thread time waiting for the network"
    waiting = explained("io", "51 % of it waiting for the network", reason=reason, **gained)
    assert line_of(waiting).text == f"nothing yet. Hardly any speed-up is lost. {reason}."
    computing = explained("none", "98 % of it on a CPU", **gained)
    assert line_of(computing).text == "nothing yet. Hardly any speed-up is lost."
    assert named_cause(computing) == "none"
    little = msgspec.structs.replace(
        computing,
        speedup=1.86,
        evidence=f"With n=2 the speed-up over n=1 is 1.86 of 2. It computes; {LITTLE_LOST}.",
    )
    assert line_of(little).text == "little. With n=2 the speed-up over n=1 is 1.86 of 2."
    assert named_cause(little) == "none"
    lost = msgspec.structs.replace(waiting, speedup=1.8)
    assert line_of(lost).text.startswith("input and output.")
    full = msgspec.structs.replace(waiting, cause="cpu")
    assert line_of(full).text.startswith("the CPUs.")


def test_a_level_that_fails_is_told_once_and_another_is_explained() -> None:
    store = Store()
    head = new_head(small_study(TRIALS, threads=(1, 2, 4)), "normal", 1, "concurve sweep …")
    fails = FakeEngine(
        kind_of=lambda spec: "program_failed" if spec.roles[0].argv[1] == "4" else "ok"
    )
    Runner(head, store, fails, clock=FakeClock(0.001)).start()
    found = figures_of(store, store.find_run("last"), brief=True)
    assert found.findings.cell_to_explain == found.findings.cells[1]
    document = brief_run_document(found.findings, limits=found.limits)
    shown = "\n".join(line.plain for line in lines(document, 200))
    assert shown.count("fake program_failed") == 1, shown
    assert "(threads=4)" in shown and "it cannot be said: it was skipped" not in shown
    assert "2 of 10 trials rejected, 8 used: the program failed (2)" in shown
    (warning,) = (item for item in found.findings.sentences if "was skipped" in item.sentence)
    assert warning.subject == "skipped"


class Failing(FakeEngine):
    """One of its levels says on two lines why it fails, one fails in silence, and one before its
    program is started."""

    def run(self, spec: TrialSpec) -> bytes:
        record = decode_record(super().run(spec))
        level = spec.roles[0].argv[1]
        if level == "1":
            return msgspec.json.encode(record)
        said = "no config\nof 2" if level == "2" else ""
        stderr = Output(bytes=len(said), head=said)
        pid = None if level == "8" else 1000
        roles = (msgspec.structs.replace(record.roles[0], stderr=stderr, pid=pid),)
        outcome = Outcome(kind="program_failed", role="target", message=f"exited with {level}")
        failed = msgspec.structs.replace(record, roles=roles, outcome=outcome)
        return msgspec.json.encode(failed)


def test_who_asks_for_what_was_rejected_sees_each_trial_and_its_output_once() -> None:
    store = Store()
    head = new_head(small_study(TRIALS, threads=(1, 2, 8, 4)), "normal", 1, "concurve sweep …")
    Runner(head, store, Failing(), clock=FakeClock(0.001)).start()

    def shown(*topics: Topic) -> str:
        rejected = Topic.REJECTED in topics
        found = figures_of(store, store.find_run("last"), brief=True, rejected=rejected)
        document = brief_run_document(found.findings, topics=topics, outputs=found.outputs)
        return "\n".join(line.plain for line in lines(document, 200))

    asked = shown(Topic.REJECTED)
    trials = "trial 1 of threads={0} (2 attempts): the program failed: exited with {0}"
    assert trials.format(2) in asked and trials.format(4) in asked
    assert "no config\nof 2" in asked
    assert "role target wrote nothing (threads=4, the program failed)" in asked
    assert "threads=8, the program failed" not in asked, "it was never started"
    assert asked.count("6 of 10 trials rejected, 4 used") == 1
    assert asked.count("exited with 4") == 1, "the cause stands with its trials alone"
    assert "the program failed: see below" in asked
    brief = shown()
    assert brief.count("6 of 10 trials rejected, 4 used: ") == 1
    assert "(2 attempts)" not in brief and "wrote nothing" not in brief


NONE = [Topic.CLAIMS, Topic.PUBLISHED, Topic.MODELS, Topic.REJECTED]


@pytest.mark.parametrize("topic", NONE)
def test_who_asks_for_what_a_run_has_nothing_of_is_told(store: CountingStore, topic: Topic) -> None:
    found = figures_of(store, store.find_run("last"), brief=True).findings

    def shown(*topics: Topic) -> list[str]:
        return [line.plain for line in lines(brief_run_document(found, topics=topics), 200)]

    assert shown(topic)[-1].startswith(f"--{topic.value}: ")
    assert not any(text.startswith(f"--{topic.value}: ") for text in shown(*Topic))


def test_the_figures_that_documents_promise_of_a_server_are_shown() -> None:
    """By a line that a search finds whole: the name, the setting, the figure."""
    store, study = Store(), small_study(TRIALS, threads=(1, 2))
    command = ("serve", "{threads}")
    server = Role(name="server", command=command, end="serve", purpose="server")
    study = msgspec.structs.replace(study, roles=(server, *study.roles), target="target")
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, FakeEngine(), clock=FakeClock(0.001)).start()
    found = figures_of(store, store.find_run("last"), brief=True).findings

    def shown(*topics: Topic) -> list[list[str]]:
        document = brief_run_document(found, topics=topics)
        return [line.plain.split() for line in lines(document, 80)]

    folder = Path(__file__).parents[2] / "docs"
    pages = [(folder / name).read_text(encoding="utf-8") for name in ("jobs.md", "own-systems.md")]
    promised = {name for page in pages for name in re.findall(r"`(server\.[a-z]+_[a-z]+)`", page)}
    assert {"server.threads_peak", "server.cpus_used"} <= promised
    for topics in ((Topic.FIGURES,), tuple(Topic)):
        rows = shown(*topics)
        for name in promised:
            if found.is_same(name):  # a line has those that are one value
                assert any(name in row for row in rows), name
                continue
            own = [row[1] for row in rows if row[:1] == [name]]
            assert own == ["1", "2"], f"{name}: one row a setting"
        of_both = {row[0]: row[-1] for row in rows if row[:1] and row[0].endswith("cpus_used")}
        assert of_both["cpus_used"] == "target", "the name does not say whose it is"
        assert of_both["server.cpus_used"] != "target"
    assert not any(row[:1] == ["server.threads_peak"] for row in shown())


def test_figures_of_very_many_cells_are_exported(store: CountingStore) -> None:
    found = figures_of(store, store.find_run("last"), brief=True).findings
    many = msgspec.structs.replace(found, cells=found.cells[:1] * 13)
    (only,) = every(many).blocks
    assert isinstance(only, Paragraph) and "13 cells: concurve export" in only.text


def test_a_line_says_how_sure_a_cause_is() -> None:
    short = "locks. With n=2 an operation takes 1.7 × the thread time of n=1."
    assert line_of(explained("lock", "40 % of it waiting")).text == short
    share = Estimate(value=0.8, low=0.7, high=0.9)
    second = RunnerUp(cause="cpu", share=Estimate(value=0.1, low=0.05, high=0.15))
    sure = line_of(explained("lock", "40 % of it waiting", share=share, runner_up=second))
    of_all = "That is 80 % [70 %, 90 %] of"
    next_one = "next: waiting for a CPU, 10 %."
    assert sure.text == f"{short} {of_all} the extra time per operation; {next_one}"
    divided = msgspec.structs.replace(
        explained("lock", "40 % of it waiting", share=share, runner_up=second),
        speedup=1.6,
        speedup_possible=4.0,
        speedup_lost={"waiting": 2.4},
    )
    assert line_of(divided).text == f"{short} {of_all} the lost speed-up (2.40 of 4); {next_one}"
    little = Estimate(value=0.02, low=0.0, high=0.1)
    said = line_of(explained("lock", "40 % of it waiting", share=little, runner_up=second))
    assert said.text == short


def test_a_client_that_has_time_left_is_not_said_to_limit() -> None:
    """The text says that it has CPU time left, or that a lock inside may be why."""
    second = RunnerUp(cause="lock", is_indistinct=True)
    line = line_of(explained("client", "40 % of it waiting for the client", runner_up=second))
    assert line.text.startswith("too few requests at once, or locks inside the server. With n=2")
    alone = line_of(explained("client", "40 % of it waiting for the client"))
    assert alone.text.startswith("the load generator. With n=2")


def test_a_line_says_that_no_limit_was_found() -> None:
    alone = line_of(explained("none", "on the CPU; nothing is lost"))
    compared = "not found. With n=2 an operation takes 1.7 × the thread time of n=1"
    assert alone.text == f"{compared}, so this comparison shows no loss."
    stops = line_of(explained("none", "on the CPU; nothing is lost"), stops={"n": 1})
    assert stops.text == f"{alone.text} What stops the growth from n=1 on is not explained."
    parts = "No single cause: serial work is 30 % of the lost speed-up, waiting for a CPU 20 %."
    lost = line_of(explained("none", "5 % of it waiting", base={"n": 1}, parts=parts))
    assert lost.text == f"{compared}. {parts}"
    above = line_of(explained("cpu", "it is", limit="CPUs", ideal="It is more than ideal."))
    assert above.text.endswith(" It is more than ideal.")
    used = "no resource is used up: the server used 0.65 CPUs and its load 0.70, of 2"
    told = line_of(explained("none", f"on the CPU; {used}; there is no loss", used=used))
    assert told.text == f"{compared}. No resource is used up{used[22:]}."
    empty = explained("none", "", trials=0, evidence="Nothing can be said of this cell: no trial.")
    assert line_of(empty).text == "it cannot be said: no trial."


def test_growth_stops_at_a_recommended_setting_below_the_explained_one() -> None:
    """As of a server that serves 64 clients no faster than 8: comparing 64 with 1 tells nothing of
    that."""
    store = Store()
    head = new_head(small_study(TRIALS, threads=(1, 2, 4)), "normal", 1, "concurve sweep …")
    Runner(head, store, FakeEngine(), clock=FakeClock(0.001)).start()
    found = figures_of(store, store.find_run("last"), brief=True).findings
    assert found.best[0].recommended == {"threads": 1}, "or this tests nothing"
    for level, below in ((4, {"threads": 1}), (1, {})):
        cell = explained("none", "", parameters={"threads": level})
        assert recommended_below(found, Limit({}, cell)) == below
    assert recommended_below(found, Limit({"mode": "a"}, cell)) == {}, "of another group"


def test_who_gets_all_that_so_many_workers_can_give_is_limited_by_nothing_yet() -> None:
    """The thread time of a server tells no speed-up, but the figures do."""
    for power, is_full in ((1.0, True), (0.5, False)):
        found = made_run(Store(), lambda n, p=power: 1 / int(n) ** p, cv=0.01, n=(1, 4))
        cell = explained("none", "on the CPU", parameters={"n": 4}, base={"n": 1}, index=1)
        limit = told(found, Limit({}, cell), [cell])
        assert limit.is_full == is_full
        line = line_of(cell, is_full=limit.is_full)
        assert line.text.startswith("nothing yet. " if is_full else "not found. ")
        lock = told(found, Limit({}, msgspec.structs.replace(cell, cause="lock")), [cell])
        assert not lock.is_full, "a cause that was found is told"


def test_of_a_setting_that_is_compared_with_nothing_no_limit_is_told_where_none_is_used_up() -> (
    None
):
    """As of the old version, where the new one is slower: that no limit is found is no news."""
    found = made_run(Store(), lambda side: 1.0, side=("a", "b"))
    for used, is_told in (("", False), ("no resource is used up: the server used 0.2 CPUs", True)):
        base = explained("none", "100 % of it on a CPU", parameters={"side": "a"}, used=used)
        document = brief_run_document(found, limits=[Limit({}, base)])
        said = " ".join(line.plain for line in lines(document, 200))
        assert ("What limits it" in said) == is_told


def test_a_line_says_that_very_many_records_were_not_read(store: CountingStore) -> None:
    found = figures_of(store, store.find_run("last"), brief=True).findings
    many = msgspec.structs.replace(found, run=msgspec.structs.replace(found.run, trials=5_001))
    said = [line.plain for line in lines(brief_run_document(many), 200)]
    (line,) = (text for text in said if text.startswith("What limits it: "))
    assert line.endswith(
        "not looked for in 5,001 trials, nor what their programs warned of; concurve explain "
        f"{found.run.id} does so."
    )
    shown = [line.plain for line in lines(brief_run_document(found), 200)]
    assert not any("What limits it" in text for text in shown), "no limit was given"


def test_a_single_cell_is_compared_with_nothing() -> None:
    """It is its own base: a speed-up of 1 tells nothing."""
    store = Store()
    head = new_head(small_study(TRIALS, threads=(1,)), "normal", 1, "concurve sweep …")
    Runner(head, store, FakeEngine(), clock=FakeClock(0.001)).start()
    found = figures_of(store, store.find_run("last"), brief=True).findings
    assert "speedup" in found.names_in_order()
    shown = "\n".join(line.plain for line in lines(brief_run_document(found), 200))
    assert "wall time" in shown and "speed-up" not in shown and "efficiency" not in shown


@pytest.mark.parametrize("name", ["stage", "one", "for", "wait"])
def test_a_thread_whose_name_is_a_word_of_the_cause_is_named(name: str) -> None:
    line = line_of(explained("stage", "they wait", limit=name))
    assert f"one stage for which the others wait ({name})." in line.text
    cpus = line_of(explained("cpu", "all are busy", limit="CPUs"))
    load = line_of(explained("client", "it is busy", limit="load"))
    assert "(CPUs)" not in cpus.text and "(load)" not in load.text


class Warns(FakeEngine):
    """Each trial warns of the same."""

    def run(self, spec: TrialSpec) -> bytes:
        record = json.loads(super().run(spec))
        record["roles"][0]["facts"] = {"warnings": ["the clock is coarse"], "jit": "on"}
        return json.dumps(record).encode()


def test_records_are_read_for_warnings_only_where_these_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CountingStore(str(tmp_path / "s.db"))
    head = new_head(small_study(TRIALS, threads=(1, 2)), "normal", 1, "concurve sweep …")
    Runner(head, store, Warns(), clock=FakeClock(0.001)).start()
    row = store.find_run("last")

    def read_for(warned: bool) -> int:
        store.read.clear()
        found = trial_findings_of(store, row, with_warned=warned)
        told = ["coarse" in item.sentence for item in found.sentences]
        assert any(told) == warned
        return store.read.total()

    assert (read_for(False), read_for(True)) == (1, 9)
    facts = report_of(store, row).facts
    assert [fact.name for fact in facts] == ["jit"], "a warning is told once"
    monkeypatch.setattr("concurve.analysis.run.findings.REPORT_TRIALS", 7)
    assert read_for_none(store) == 1


def read_for_none(store: CountingStore) -> int:
    """The records that are read of a run of very many trials."""
    store.read.clear()
    found = trial_findings_of(store, store.find_run("last"))
    assert not any("coarse" in item.sentence for item in found.sentences)
    return store.read.total()


def recommending_two() -> Report:
    """A run of 1, 2 and 4 threads that recommends 2."""
    made = made_run(Store(), lambda n: 0.4 + 1.0 / min(float(n), 2.0), threads=(1, 2, 4), cv=0.001)
    best = made.best_overall
    assert best is not None and best.recommended == {"threads": 2}
    return made


def of_threads(n: int, cause: Cause, limit: str = "", **more: Any) -> CellExplanation:
    """The explanation of a cell of that run."""
    made = explained(cause, "so it is", limit=limit, reason=f"With threads={n} it is so")
    base: dict[str, Level] | None = None if n == 1 else {"threads": 1}
    index = {1: 0, 2: 1, 4: 2}[n]
    made = msgspec.structs.replace(made, parameters={"threads": n}, index=index, base=base)
    return msgspec.structs.replace(made, **more)


def explanation_of(made: Report, cells: Sequence[CellExplanation]) -> Explanation:
    return Explanation(
        run=made.run.id, study=made.run.study, factors=("threads",), work="threads",
        operation="a whole run", cells=tuple(cells),
    )  # fmt: skip


def said_of(made: Report, *cells: CellExplanation) -> str:
    """The line on what limits the run, where the last of the cells is the greatest."""
    (limit,) = limits_told(made, explanation_of(made, cells))
    return limit_line(limit).text


AT_TWO: dict[str, Any] = {"speedup": 1.76, "speedup_possible": 2.0, "ceiling": 2}
CEILING = "the 2 CPUs. They allow at most 2× the speed of threads=1; threads=2 loses "


def test_the_setting_to_use_is_explained_before_the_greatest() -> None:
    """Who is told to use 2 asks what limits 2."""
    made = recommending_two()
    smaller, greatest = of_threads(2, "serial"), of_threads(4, "cpu", "CPUs")
    serial = "serial work, which one thread does alone. With threads=2 it is so."
    assert said_of(made, smaller, greatest) == f"{serial} With threads=4: the CPUs."
    share, second = Estimate(value=0.5, low=0.4, high=0.6), RunnerUp("serial")
    locked = of_threads(4, "lock", share=share, place="It is m.", runner_up=second)
    of_all = "more thread time than with threads=1; 50 % [40 %, 60 %] of that is waiting for locks"
    assert said_of(made, smaller, locked) == (
        f"{serial} With threads=4: locks. An operation takes {of_all}. It is m."
    )
    assert said_of(made, smaller, of_threads(4, "serial")) == serial, "said once"
    used_up = of_threads(2, "cpu", "CPUs")
    assert said_of(made, used_up, greatest) == "the CPUs. With threads=2 it is so."


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (("none", {"parts": "No single cause."}), "not found. With n=2 an operation takes 1.7 × "
         "the thread time of n=1. No single cause."),
        (("in doubt", {"doubt": "so it was"}), "no cause is named: so it was."),
        (("serial", {"few": "2"}), "it cannot be said: too few trials are in (2)."),
        (("contamination", {}), "other processes on the machine. With threads=2 it is so."),
    ],
)  # fmt: skip
def test_the_limit_of_the_greatest_does_not_stand_for_that_of_the_setting_to_use(
    own: tuple[Cause, dict[str, Any]], said: str
) -> None:
    """Who is told to use 2 reads first that the limit of 2 is not known."""
    made, greatest = recommending_two(), of_threads(4, "lock")
    cause, more = own
    cell = of_threads(2, cause, **more)
    assert said_of(made, cell, greatest) == f"{said} With threads=4: locks."
    limits = limits_told(made, explanation_of(made, (cell, greatest)))
    for room in (ROOMS[0], ROOMS[-1]):
        assert "With threads=4: locks." in str(answers(made, limits, room))
    assert "With threads=4: locks." in str(with_limits(made, limits))


def test_of_a_base_of_which_nothing_is_known_the_greatest_is_told() -> None:
    made = made_run(Store(), float, threads=(1, 4), cv=0.001)
    greatest = of_threads(4, "lock", index=1)
    for base in (of_threads(1, "none"), of_threads(1, "cpu", "main", few="2")):
        assert said_of(made, base, greatest).startswith("locks. With threads=4")


def test_where_hardly_anything_is_lost_the_greatest_follows() -> None:
    made, greatest = recommending_two(), of_threads(4, "lock")
    nothing = of_threads(2, "none", speedup=1.98, speedup_possible=2.0)
    assert said_of(made, nothing, greatest) == (
        "nothing yet. Hardly any speed-up is lost. With threads=4: locks."
    )


def test_what_keeps_more_from_helping_follows_what_a_base_uses_up() -> None:
    """Who reads that one thread is busy would give the server more, which the run has tried: the
    line says so, after the limit of the setting to use."""
    made = made_run(Store(), float, threads=(1, 4), cv=0.001)
    best = made.best_overall
    assert best is not None and best.recommended == {"threads": 1}
    greatest = msgspec.structs.replace(of_threads(4, "lock", place="It is m."), index=1)
    busy = of_threads(1, "cpu", "main")
    after = "More does not help: with threads=4 the limit is locks. It is m."
    first = "one busy thread (main). With threads=1 it is so."
    assert said_of(made, busy, greatest) == f"{first} {after}"
    limits = limits_told(made, explanation_of(made, (busy, greatest)))
    short = answers(made, limits, ROOMS[-1])
    assert short is not None and f"one busy thread (main), with threads=1. {after}" in str(short)
    (page,) = (it for it in walk(with_limits(made, limits).blocks)
               if isinstance(it, Paragraph) and it.lead == "One busy thread (main).")  # fmt: skip
    assert page.text.endswith(after)
    told = of_threads(1, "cpu", "GOMAXPROCS")
    assert said_of(made, told, greatest) == f"GOMAXPROCS. With threads=1 it is so. {after}"
    other = of_threads(1, "cpu", "CPUs")
    assert said_of(made, other, greatest) == f"the CPUs. With threads=1 it is so. {after}"


SPUN = "Threads spin while they wait for others: 67 % of the CPU time, in loop (server)."
COSTS = "With threads=4 an operation takes"


@pytest.mark.parametrize(
    ("before", "low", "spun", "said"),
    [
        (100.0, 20.0, "", f" {COSTS} 30 % more CPU time."),
        (5.0, 20.0, "", f" {COSTS} 26.0 × the CPU time."),
        (5.0, 20.0, SPUN, f" {COSTS} 26.0 × the CPU time. {SPUN}"),
        (100.0, -1.0, "", ""),
    ],
)
def test_the_price_of_levels_that_gain_nothing_is_told_where_it_is_sure(
    before: float, low: float, spun: str, said: str
) -> None:
    made = made_run(Store(), float, threads=(1, 4), cv=0.001)
    taken = {"cpu": Estimate(value=130.0)}
    more = {"cpu": Estimate(value=130.0 - before, low=low, high=140.0 - before)}
    locked = of_threads(4, "lock", index=1, per_operation=taken, excess=more, spun=spun)
    text = said_of(made, of_threads(1, "cpu", "GOMAXPROCS"), locked)
    assert text.endswith(f"More does not help: with threads=4 the limit is locks.{said}")


def test_a_line_tells_of_spinning_that_most_of_the_cost_goes_to() -> None:
    """What a setting costs more is no work, and who reads the short answer is told so, once."""
    crowded = explained("cpu", "it is", limit="CPUs", reason="With n=2 they are", spun=SPUN)
    assert line_of(crowded).text == f"the CPUs. With n=2 they are. {SPUN}"
    reason = f"With n=2 an operation takes 2.0 × the CPU time: t{SPUN[1:-1]}"
    told = msgspec.structs.replace(crowded, reason=reason)
    assert line_of(told).text.count("hreads spin") == 1


def test_the_ceiling_of_the_cpus_is_told_first_and_then_what_the_rest_is_lost_to() -> None:
    """Two workers that are 1.76 times as fast on two CPUs: one asks first for CPUs."""
    made = recommending_two()
    share = Estimate(value=0.5, low=0.4, high=0.6)
    serial = of_threads(2, "serial", share=share, **AT_TWO)
    crowded = of_threads(4, "cpu", ceiling=2, speedup=1.7, speedup_possible=2.0)
    shared = " With threads=4 the same CPUs are shared."
    of_loss = " Of the loss, 50 % [40 %, 60 %] is serial work."
    for more in (crowded, of_threads(4, "serial", ceiling=2)):
        assert said_of(made, serial, more) == f"{CEILING}0.24 of that.{of_loss}{shared}"
    near = msgspec.structs.replace(serial, speedup=1.95)
    assert said_of(made, near, crowded) == f"{CEILING}hardly any of that.{shared}"
    unnamed = of_threads(2, "none", **AT_TWO)
    assert said_of(made, unnamed, crowded) == f"{CEILING}0.24 of that.{shared}"
    far = msgspec.structs.replace(serial, speedup=1.6)
    assert said_of(made, far, crowded).startswith("serial work, which one thread does alone.")
    withheld: tuple[Cause, ...] = ("in doubt", "contamination", "quota")
    for cause in withheld:
        other = msgspec.structs.replace(serial, cause=cause)
        assert not other.is_at_ceiling, "it is not the CPUs that are known to limit"
    explanation = explanation_of(made, (of_threads(1, "none"), serial, crowded))
    (told,) = (
        block for block in walk(with_limits(made, limits_told(made, explanation)).blocks)
        if isinstance(block, Paragraph) and block.lead == "The 2 CPUs."
    )  # fmt: skip
    assert told.text.startswith(f"{CEILING[12:]}0.24 of that. With n=2") and shared in told.text


def test_all_views_name_the_cpus_where_they_are_the_ceiling() -> None:
    """The answer says the 2 CPUs; the table of explain, its sentences and JSON say no other."""
    share = Estimate(value=0.5, low=0.4, high=0.6)
    serial = of_threads(2, "serial", share=share, **AT_TWO)
    near = of_threads(2, "serial", **{**AT_TWO, "speedup": 1.98})
    unnamed = of_threads(2, "none", **AT_TWO)
    below = of_threads(2, "serial", **{**AT_TWO, "speedup": 1.2})
    cells = (serial, near, unnamed, below)
    told = ["cpu, then serial", "cpu", "cpu", "serial"]
    assert [named_cause(cell) for cell in cells] == told
    explanation = explanation_of(recommending_two(), cells)
    text = [line.plain for line in lines(explanation_document(explanation), 200)]
    leads = [line.partition(": ")[0] for line in text if ": so it is" in line]
    assert leads == told
    exported = json.loads(explanation_json(explanation))["cells"]
    assert [cell.get("ceiling_cpus") for cell in exported] == [2, 2, 2, None]
    assert causes(explanation) == "cpu in 3 of 4 cells, serial in 1."


def test_what_seems_to_be_lost_below_the_ceiling_is_told_where_no_part_is_sure() -> None:
    lost = {"serial": 0.12, "queue": 0.05, "cpu": 0.07}
    cell = of_threads(2, "none", **AT_TWO)
    unsure = msgspec.structs.replace(cell, speedup_lost=lost)
    begun = f"{CEILING}0.24 of that."
    assert line_of(unsure).text == (
        f"{begun} No part of that is sure; the greatest seems to be serial work (0.12)."
    )
    named = msgspec.structs.replace(unsure, cause="coherency", share=Estimate(value=0.1))
    assert (
        line_of(named).text == f"{begun} The greatest part of that seems to be serial work (0.12)."
    )
    parts = "Serial work is 50 % of the lost speed-up, and its cause is not known."
    assert line_of(msgspec.structs.replace(unsure, parts=parts)).text == f"{begun} {parts}"
    assert line_of(cell).text == begun, "no part is known"
    waits = msgspec.structs.replace(unsure, cause="cpu", share=Estimate(value=0.6))
    assert line_of(waits).text == f"{begun} Of the loss, 60 % is waiting for a CPU."
    threads = msgspec.structs.replace(waits, speedup_lost={})
    assert line_of(threads).text == begun, "the share is of thread time, and not of the loss"


def test_a_part_that_seems_greater_than_that_of_the_cause_is_named() -> None:
    share = Estimate(value=0.27, low=0.24, high=0.31)
    cell = CellExplanation(
        parameters={"n": 2},
        cause="serial",
        evidence="",
        share=share,
        speedup=1.66,
        speedup_possible=2.0,
        speedup_lost={"serial": 0.09, "queue": 0.08, "cpu": 0.14},
    )
    assert greater_part(cell) == "More CPU time may take more of it (0.14), but not for sure."
    assert certainty(cell).endswith(f". {greater_part(cell)}")
    less = msgspec.structs.replace(cell, speedup_lost={"serial": 0.09, "cpu": 0.08})
    own = msgspec.structs.replace(cell, cause="coherency")
    assert greater_part(less) == greater_part(own) == ""


def test_how_much_more_an_operation_takes_is_told_before_its_share() -> None:
    """One reading: the share is of what the sentence begins with."""
    share = Estimate(value=0.94, low=0.64, high=1.0)
    cell = of_threads(4, "cpu", "CPUs", share=share, base={"threads": 1})

    def taking(total: float) -> CellExplanation:
        own, more = Estimate(value=total), Estimate(value=total - 100.0)
        return msgspec.structs.replace(cell, per_operation={"total": own}, excess={"total": more})

    of_all = "94 % [64 %, 100 %]"
    assert certainty(taking(123.0)) == (
        f" An operation takes 23 % more thread time than with threads=1; {of_all} of that is "
        "waiting for a CPU."
    )
    assert certainty(taking(230.0)) == (
        " An operation takes 2.3 × the thread time of threads=1; "
        f"{of_all} of the extra is waiting for a CPU."
    )
    after = f" {of_all} of the extra thread time is waiting for a CPU."
    assert certainty(taking(230.0), is_compared=True) == after, "the evidence has the ratio"
    thread = msgspec.structs.replace(taking(123.0), limit="main")
    assert certainty(thread).endswith(f"; {of_all} of that is blocked time.")
    wide = msgspec.structs.replace(taking(123.0), share=Estimate(value=0.5, low=0.0, high=1.0))
    assert certainty(wide).endswith(
        "; these trials do not say how much of that is waiting for a CPU."
    )
    second = RunnerUp("serial", Estimate(value=0.97))
    other = msgspec.structs.replace(taking(123.0), limit="", runner_up=second)
    assert certainty(other).endswith(
        f"; 97 % of that is serial work, and {of_all} waiting for a CPU."
    )

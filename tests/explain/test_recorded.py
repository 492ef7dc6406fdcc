"""Where threads of a JVM wait, by an experiment that records it: which trials are made, what is
said of them, and where it is shown."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.cli import main
from concurve.definition.study_line import parse_base
from concurve.errors import HostError, RunError, RunInterruptedError
from concurve.estimate import Estimate
from concurve.explain.confirmation import confirm_run
from concurve.explain.experiments import (
    AS_IS,
    HELD,
    ONE_CPU,
    RECORDED,
    Experiments,
    Recorder,
    cell_to_confirm,
    experiments,
    is_to_be_recorded,
    reach_of,
)
from concurve.explain.explanation import explain_run, with_experiments
from concurve.explain.recorded import recorded
from concurve.exports import export_run
from concurve.findings.confirmation import Confirmation, RecordedPlace, Tried
from concurve.findings.explanation import CellExplanation, WaitSite
from concurve.measuring import flight_recorder
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.plan import make_plan, trial_spec
from concurve.report.json.explanation import to_json
from concurve.report.sections.confirmation import confirmation_document
from concurve.report.sections.limits import explanation_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.store.run_head import RunHead, decode_head
from concurve.wire.record import RecordedOwner, RecordedSite, RecordedWaits, TrialRecord
from concurve.wire.spec import TrialSpec
from tests.explain.test_experiments import FIVE, SCHEMA, Answer, _Engine, programs, store
from tests.helpers.agents import inventory_of
from tests.helpers.explaining import record, role, thread
from tests.helpers.fakes import FakeClock, small_study

__all__ = ["programs", "store"]

SENTENCE = (
    "the threads wait for the lock (monitor of Table) in Table.add, Table.java:17: 92 % of the "
    "time of 1,240 waits, 1.96 s in all in 5 trials"
)


def add(**more: object) -> RecordedSite:
    given: dict[str, object] = {
        "kind": "monitor", "primitive": "mutex", "function": "acme.Table.add", "events": 240,
        "blocked_ns": 360_000_000, "line": 17, "lock": "acme.Table",
        "owners": (RecordedOwner("worker-2", 200), RecordedOwner("worker-1", 40)),
    }  # fmt: skip
    return RecordedSite(**(given | more))  # type: ignore[arg-type]


def waits(*sites: RecordedSite, **more: object) -> RecordedWaits:
    sites = sites or (
        add(),
        add(function="acme.Log$Line.put", line=8, kind="park", blocked_ns=32_000_000, events=8,
            lock="java.util.concurrent.locks.ReentrantLock$NonfairSync", owners=()),
        add(function="acme.Main.main", line=3, kind="wait", primitive="condition", events=1,
            blocked_ns=900_000_000, lock="java.lang.Thread", owners=()),
    )  # fmt: skip
    locks = [site for site in sites if site.primitive == "mutex"]
    made = RecordedWaits(
        threshold_ns=10_000,
        lock_events=sum(site.events for site in locks),
        lock_blocked_ns=sum(site.blocked_ns for site in locks),
        listed=sites,
    )
    return msgspec.structs.replace(made, **more)


def is_recorded(spec: TrialSpec) -> bool:
    return "JAVA_TOOL_OPTIONS" in " ".join(spec.roles[-1].argv)


def java(spec: TrialSpec, wall: float = 1.0) -> TrialRecord:
    """Threads of a JVM that wait for a lock; with the recorder an operation takes 1.2 times as
    long."""
    threads = int(spec.roles[-1].argv[-1])
    own = thread(0.0, name="VM Thread", tid=90)
    if threads == 1:
        return record(role([thread(0.99), own]))
    wall_ns = round(1e9 * wall * (1.2 if is_recorded(spec) else 1.0))
    waiting = [thread(1 / threads, futex=1 - 1 / threads, switches=9000)] * threads
    return record(role([*waiting, own], 1000, words=[(100, threads)], wall=wall_ns))


@pytest.fixture(autouse=True)
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[RecordedWaits | HostError | RunError]:
    """What is read after each trial with a recorder: the last one of these."""
    given: list[RecordedWaits | HostError | RunError] = [waits()]

    def read(folder: Path, argv: Sequence[str]) -> RecordedWaits:
        assert folder.parent.is_dir() and argv[-1] == "2"
        if isinstance(given[-1], RecordedWaits):
            return given[-1]
        raise given[-1]

    monkeypatch.setattr(flight_recorder, "_read", read)
    monkeypatch.setattr(flight_recorder, "find_jfr", lambda argv: Path("/opt/jdk/bin/jfr"))
    return given


def measured(store: Store, answer: Answer = java) -> RunHead:
    head = new_head(small_study(FIVE, threads=(1, 2)), "normal", 1, "concurve sweep …")
    Runner(head, store, _Engine(answer), clock=FakeClock(0.001)).start()
    return head


def explained(store: Store, head: RunHead) -> CellExplanation:
    return cell_to_confirm(explain_run(store, store.find_run(head.id)), {})


def planned(store: Store, head: RunHead, recorder: Recorder | None = None) -> Experiments:
    cell = explained(store, head)
    given = recorder or Recorder(flight_recorder.beginning())
    # There is time for five of each.
    return experiments(head, cell, reach_of(cell, str), "/opt/p", (0, 1), 10.0, 260.0, given)


def tried(store: Store, made: Experiments, answer: Answer = java) -> Confirmation:
    new = new_head(made.study, "normal", 2, "concurve explain --confirm")
    new = msgspec.structs.replace(new, confirms=made.confirms)
    Runner(new, store, _Engine(answer), clock=FakeClock(0.001)).start()
    return confirm_run(store, store.find_run(new.id))


def specs(made: Experiments, folder: str = "/tmp/f") -> dict[str, TrialSpec]:
    plan = make_plan(made.study, "normal", 1)
    find = lambda name, *_: (f"/opt/{name}",)  # noqa: E731
    return {
        str(cell.parameters["experiment"]): trial_spec(plan, cell, "t", (0, 1), find, folder=folder)
        for cell in plan.cells
    }


# -- which trials -----------------------------------------------------------------------------


def test_the_recorder_is_one_experiment_more(store: Store) -> None:
    found = specs(planned(store, measured(store)))
    assert list(found) == [AS_IS, ONE_CPU, RECORDED]
    assert found[AS_IS].roles[-1].argv == ("true", "2")
    argv = found[RECORDED].roles[-1].argv
    assert argv[:2] == ("sh", "-c") and argv[-2:] == ("true", "2")
    options, folder = argv[3:5]
    assert folder == "/tmp/f/flight-recordings"
    assert f"filename={folder},dumponexit=true" in options and f"repository={folder}," in options
    assert "waits.jfc" in options
    assert [spec.roles[-1].env for spec in found.values()] == [{}, {}, {}]


def test_only_a_jvm_that_waits_is_recorded(store: Store) -> None:
    cell = explained(store, measured(store))
    assert cell.is_jvm and is_to_be_recorded(cell)
    assert not is_to_be_recorded(msgspec.structs.replace(cell, is_jvm=False))
    for cause, futex, said in (("cpu", 0.2, False), ("coherency", 0.2, False), ("none", 0.6, True),
                               ("stage", 0.5, True), ("lock", 0.0, True)):  # fmt: skip
        other = msgspec.structs.replace(
            cell, cause=cause, shares={"cpu": 1 - futex, "futex": futex}
        )
        assert is_to_be_recorded(other) is said, cause


def test_a_wait_without_a_cause_is_recorded_alone(store: Store) -> None:
    head = measured(store)
    found = explain_run(store, store.find_run(head.id))
    cells = tuple(msgspec.structs.replace(cell, cause="none") for cell in found.cells)
    cell = cell_to_confirm(msgspec.structs.replace(found, cells=cells), {})
    assert cell.parameters == {"threads": 2}
    recorder = Recorder(flight_recorder.beginning())
    made = experiments(head, cell, reach_of(cell, str), "/opt/p", (0, 1), 10.0, 1000.0, recorder)
    assert list(specs(made)) == [AS_IS, RECORDED]
    said = tried(store, made)
    assert said.result == "out of reach" and said.recorded is not None and said.recorded.place
    with pytest.raises(RunError, match="no jfr here"):
        experiments(
            head, cell, reach_of(cell, str), "/opt/p", (0, 1), 10.0, 1000.0,
            Recorder(why_not="no jfr here"),
        )  # fmt: skip


def test_paths_that_no_option_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/tmp/a,b", "/tmp/it's", "/tmp/{x}"):
        monkeypatch.setattr("tempfile.gettempdir", lambda path=path: path)
        with pytest.raises(HostError, match="TMPDIR=FOLDER"):
            flight_recorder.beginning()


# -- what they say ----------------------------------------------------------------------------


def test_the_line_is_named_with_its_cost(store: Store) -> None:
    found = tried(store, planned(store, measured(store)))
    said = found.recorded
    assert said is not None and said.place == SENTENCE
    assert said.cost is not None and said.cost.value == pytest.approx(1.2)
    assert said.cost.low == pytest.approx(1.2) == said.cost.high
    first, second, third = said.sites
    assert (first.name, first.at, first.waits_for) == ("Table.add", "Table.java:17",
                                                       "monitor of Table")  # fmt: skip
    assert (second.name, second.at, second.waits_for) == ("Log$Line.put", "Log.java:8",
                                                          "ReentrantLock")  # fmt: skip
    assert third.share is None and first.events == 1200
    assert first.share == pytest.approx(360 / 392)
    # What the experiments say of the cause does not depend on it.
    assert found.result == "out of reach" and found.blocks == 5


def test_a_lock_in_reach_is_held_longer_and_recorded(store: Store) -> None:
    head = measured(store)
    cell = explained(store, head)
    site = WaitSite(name="f", primitive="mutex", module="/opt/app", readings=50, share=1.0,
                    threads=2, operation="pthread_mutex_lock", offsets=("0x1",))  # fmt: skip
    cell = msgspec.structs.replace(cell, sites=(site,))
    made = experiments(
        head, cell, reach_of(cell, lambda path: ""), "/opt/p", (0, 1), 10.0, 1000.0,
        Recorder(flight_recorder.beginning()),
    )  # fmt: skip
    assert list(specs(made)) == [AS_IS, *HELD, RECORDED]


def test_a_recording_that_cannot_be_read_is_absent_with_its_reason(
    store: Store, recordings: list[RecordedWaits | HostError | RunError]
) -> None:
    recordings.append(RunError("its JVM wrote no recording", "another JVM"))
    found = tried(store, planned(store, measured(store)))
    assert found.recorded is not None
    assert found.recorded.missing == "its JVM wrote no recording; another JVM"
    text = plain(confirmation_document(found))
    assert "not recorded: Its JVM wrote no recording; another JVM." in text
    assert found.result == "out of reach" and found.blocks == 5


def test_a_run_that_was_stopped_goes_on_and_keeps_what_it_recorded(store: Store) -> None:
    made = planned(store, measured(store))
    new = msgspec.structs.replace(
        new_head(made.study, "normal", 2, "concurve explain --confirm"), confirms=made.confirms
    )
    given = iter(range(100))

    def stopped(spec: TrialSpec) -> TrialRecord:
        if next(given) == 7:
            raise KeyboardInterrupt
        return java(spec)

    with pytest.raises(RunInterruptedError):
        Runner(new, store, _Engine(stopped), clock=FakeClock(0.001)).start()
    Runner(new, store, _Engine(java), clock=FakeClock(0.001)).resume()
    found = confirm_run(store, store.find_run(new.id)).recorded
    assert found is not None and found.place == SENTENCE


def test_trials_that_fail_with_the_recorder_alone_are_told(store: Store) -> None:
    def refuses(spec: TrialSpec) -> TrialRecord:
        made = java(spec)
        if not is_recorded(spec):
            return made
        failed = msgspec.structs.replace(
            made.outcome, kind="program_failed", role="target", message="exit code 1"
        )
        return msgspec.structs.replace(made, outcome=failed)

    found = tried(store, planned(store, measured(store)), refuses)
    assert found.recorded is not None and "exit code 1" in found.recorded.missing
    assert found.blocks == 5


def test_without_a_tool_the_rest_is_tried_and_the_remedy_told(store: Store) -> None:
    made = planned(store, measured(store), Recorder(why_not="no jfr; apt-get install it"))
    assert list(specs(made)) == [AS_IS, ONE_CPU]
    found = tried(store, made)
    assert found.recorded is not None and found.recorded.missing == "no jfr; apt-get install it"


@pytest.mark.parametrize(
    ("sites", "said"),
    [
        ((), "its flight recorder saw no wait for a lock of 10 µs or more in 1 trial"),
        (
            (add(events=9),),
            "its flight recorder saw 9 waits for a lock of 10 µs or more in 1 trial",
        ),
        (
            (add(), add(function="acme.Table.drop", line=40, lock="[Lacme.Row;")),
            "the threads wait for the lock (monitor of Table) in Table.add, Table.java:17: 50 % of "
            "the time of 480 waits, 720 ms in all in 1 trial; for monitor of array of Row in "
            "Table.drop, Table.java:40: 50 %",
        ),
        (
            (add(line=None),),
            "the threads wait for the lock (monitor of Table) in Table.add: 100 % of the time of "
            "240 waits, 360 ms in all in 1 trial",
        ),
    ],
)  # fmt: skip
def test_sentences(sites: tuple[RecordedSite, ...], said: str) -> None:
    made = waits(*sites) if sites else RecordedWaits(threshold_ns=10_000)
    assert recorded([made], None).place == said


def test_many_places_are_not_named() -> None:
    sites = [add(function=f"acme.T.m{number}") for number in range(16)]
    assert recorded([waits(*sites)], None).place.startswith("the threads wait for locks in many")


def test_locks_have_words() -> None:
    def words(lock: str | None, kind: str = "park") -> str:
        return RecordedPlace(
            name="", function="", kind=kind, primitive="", events=0, blocked_ns=0, lock=lock
        ).waits_for

    assert words("java.util.concurrent.locks.ReentrantReadWriteLock$FairSync") == (
        "ReentrantReadWriteLock"
    )
    assert words("acme.Own$Sync") == "Own" and words(None) == "an object without a name"
    assert words("[I", "monitor") == "monitor of array of I"


# -- where it is shown ------------------------------------------------------------------------


def plain(document) -> str:  # type: ignore[no-untyped-def]
    return " ".join(" ".join(line.plain for line in lines(document, 160)).split())


def test_the_terminal_the_report_and_json_show_it(store: Store) -> None:
    head = measured(store)
    alone = tried(store, planned(store, head))
    found = explain_run(store, store.find_run(head.id))
    assert [it.recorded for it in found.confirmations] == [alone.recorded]
    for document in (explanation_document(found), confirmation_document(alone)):
        text = plain(document)
        assert f"recorded: T{SENTENCE[1:]}." in text
        assert "an operation took 1.20 [1.20, 1.20] times as long" in text
        assert "Thread (condition, no lock)" in text
    markdown = export_run(store, store.find_run(head.id), "markdown").decode().replace("\\", "")
    assert SENTENCE[1:] in " ".join(markdown.split()) and "Log$Line.put" in markdown
    exported = json.loads(to_json(found))
    jsonschema.validate(exported, SCHEMA)
    said = exported["confirmations"][0]["recorded"]
    assert said["waits"] == 1240 and said["place"] == SENTENCE
    assert said["sites"][0]["owners"][0] == {"name": "worker-2", "waits": 1000}
    assert said["sites"][0]["file"] == "Table.java" and "share" not in said["sites"][2]


def test_plain_explain_says_which_command_names_the_lines(store: Store) -> None:
    head = measured(store)
    hint = f"concurve explain {head.id} --confirm --at threads=2 records"
    assert hint in plain(explanation_document(explain_run(store, store.find_run(head.id))))
    markdown = export_run(store, store.find_run(head.id), "markdown").decode()
    assert "--at threads=2 records" in " ".join(markdown.replace("\\", "").split())
    tried(store, planned(store, head))
    assert hint not in plain(explanation_document(explain_run(store, store.find_run(head.id))))


def test_a_run_that_cannot_be_tried_out_has_no_hint(store: Store) -> None:
    """A process that runs already is not touched, and experiments run on this machine."""
    head = measured(store)
    (role,) = head.study.roles
    attached = msgspec.structs.replace(role, command=(), attach="4711")
    study = msgspec.structs.replace(head.study, roles=(attached,))
    elsewhere = inventory_of({"rack1": "10.0.0.1"})
    row = store.find_run(head.id)
    found = explain_run(store, row)
    for other in (head, msgspec.structs.replace(head, study=study),
                  msgspec.structs.replace(head, hosts=elsewhere)):  # fmt: skip
        plainly = msgspec.structs.replace(found, notes=())
        told = with_experiments(store, row._replace(head=msgspec.json.encode(other)), plainly)
        assert bool(told.notes) is (other is head)


def test_a_program_that_is_no_jvm_has_no_hint(store: Store) -> None:
    def native(spec: TrialSpec) -> TrialRecord:
        made = java(spec)
        threads = made.roles[0].threads
        listed = tuple(it for it in threads.listed if it.name != "VM Thread")
        threads = msgspec.structs.replace(threads, listed=listed)
        return msgspec.structs.replace(
            made, roles=(msgspec.structs.replace(made.roles[0], threads=threads),)
        )

    head = measured(store, native)
    found = explain_run(store, store.find_run(head.id))
    assert found.cells[-1].cause == "lock"
    assert "--confirm" not in plain(explanation_document(found))


def test_heads_of_older_experiments_load(store: Store) -> None:
    made = planned(store, measured(store))
    row = msgspec.structs.replace(
        new_head(made.study, "normal", 2, "…"), confirms=made.confirms
    ).row()
    old = json.loads(row.head)
    del old["confirms"]["unrecorded"]
    again = decode_head(row._replace(head=json.dumps(old).encode()))
    assert again.confirms is not None and again.confirms.unrecorded == ""


def test_a_dry_run_shows_the_recorder(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = measured(store)
    db = str(tmp_path / "concurve.db")
    line = ["concurve", "explain", head.id, "--confirm", "--dry-run", "--seed", "1", "--db", db]
    # The runner here is a stub, which checks nothing.
    monkeypatch.setattr("concurve.cli.planning.check_plan", lambda *_: None)
    monkeypatch.setattr("sys.argv", line)
    with contextlib.suppress(SystemExit):
        main()
    said = capsys.readouterr()
    assert "experiment=flight-recorder" in said.out and "StartFlightRecording" in said.out

    def none(argv: Sequence[str]) -> Path:
        raise HostError("no jfr here", "apt-get install one")

    monkeypatch.setattr(flight_recorder, "find_jfr", none)
    with contextlib.suppress(SystemExit):
        main()
    said = capsys.readouterr()
    assert "flight-recorder" not in said.out
    assert "no line of Java will be named: no jfr here; apt-get install one" in said.err


def test_the_command_of_the_hint_names_a_level_with_a_comma(store: Store) -> None:
    head = measured(store)
    row = store.find_run(head.id)
    found = explain_run(store, row)
    cell = msgspec.structs.replace(found.cells[-1], parameters={"tool": "awk -F, x", "n": 2})
    told = with_experiments(
        store, row, msgspec.structs.replace(found, cells=(cell,), factors=("tool", "n"), notes=())
    )
    (hint,) = told.notes
    words = shlex.split(hint)
    at = words[words.index("--at") + 1]
    assert parse_base(at, {"tool": ("awk -F, x",), "n": (2,)}) == cell.parameters


def test_an_interval_is_shown_as_it_is() -> None:
    """One that is skewed has no ±, and one without an end is none."""
    skewed = Estimate(value=1.2, low=1.1, high=4.0, n=5)
    endless = Estimate(value=1.2, low=1.1, high=math.inf, n=2)
    found = Confirmation(
        run="r2", of="r1", study="s", parameters={}, cause="lock", result="open", evidence="so",
        tried=(Tried(level="held", says="it", against="as is", wall=skewed, cpu=endless),),
    )  # fmt: skip
    text = plain(confirmation_document(found))
    assert "(1.1 to 4.0)" in text and "±" not in text
    assert "None" not in text and "inf" not in text

"""What does not end by itself: trials and hooks have limits, and whoever waits is told."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.definition.study import Hooks, Rules, Study
from concurve.errors import RunError
from concurve.measuring import hooks
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner, Silence
from concurve.measuring.patience import Patience
from concurve.report.progress import Progress
from concurve.store import Store
from concurve.wire.record import ReportError
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, record_of, small_study
from tests.helpers.real import wait_until

TWO = Rules(repeats_min=2, repeats_max=2)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


class Notes(Silence):
    """Progress that keeps the remarks."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, *text: Any) -> None:
        self.said += text


def runner_of(
    store: Store, engine: FakeEngine, study: Study | None = None, notes: Notes | None = None
) -> Runner:
    head = new_head(study or small_study(TWO, threads=(1, 2)), "normal", 5, "concurve sweep …")
    return Runner(head, store, engine, notes, clock=FakeClock())


@pytest.mark.parametrize(
    ("rules", "seconds"),
    [
        ({"time_allowed_seconds": 1.0}, 1),
        ({"time_allowed_seconds": 100.0}, 100),
        ({"time_allowed_seconds": 100.0, "timeout_seconds": 5.0}, 5),
        ({"time_allowed_seconds": 100.0, "timeout_seconds": 900.0}, 100),
        ({}, 3600),
    ],
)
def test_the_first_trial_has_a_limit(store: Store, rules: dict[str, float], seconds: int) -> None:
    engine = FakeEngine()
    study = small_study(msgspec.structs.replace(TWO, **rules), threads=(1, 2))
    runner_of(store, engine, study).start()
    assert engine.specs[0].time_limit_ns == seconds * 10**9


def test_a_first_trial_that_hangs_ends_the_run_with_its_reason(store: Store) -> None:
    rules = msgspec.structs.replace(TWO, time_allowed_seconds=0.4)
    engine = FakeEngine(lambda spec, rng: 60.0, lambda spec: "timed_out", stdout="no answer yet\n")
    runner = runner_of(store, engine, small_study(rules, threads=(1, 2)))
    out = io.StringIO()
    runner.progress = Progress(out, live=False)
    with pytest.raises(RunError, match=r"threads=\d: the first trial did not end.*400 ms") as said:
        runner.start()
    assert ": cut short, time allowance: stopped with the run" in out.getvalue()
    assert said.value.what.endswith("; the program last printed 'no answer yet'")
    assert said.value.remedy.startswith("a shorter trial")
    assert f"concurve resume {runner.head.id} --max-time" in said.value.remedy
    row = store.find_run("last")
    assert row.state == "failed"
    assert len(engine.specs) == 1
    assert findings_of(store, row).run.trials == 1


class Unending(FakeEngine):
    """Its client ends, and its server is killed at the time limit."""

    def run(self, spec: TrialSpec) -> bytes:
        record = record_of(spec, 60.0, "timed_out")
        roles = tuple(
            msgspec.structs.replace(role, ended_by="killed" if role.name == "server" else "itself")
            for role in record.roles
        )
        return msgspec.json.encode(msgspec.structs.replace(record, roles=roles))


@pytest.mark.parametrize("rules", [{"timeout_seconds": 3.0}, {"time_allowed_seconds": 0.4}])
def test_a_server_without_an_end_is_what_a_trial_waited_for(
    store: Store, rules: dict[str, float]
) -> None:
    """More time helps neither at the limit of a trial nor at that of the run."""
    study = small_study(msgspec.structs.replace(TWO, **rules), threads=(1, 2))
    (client,) = study.roles
    server = msgspec.structs.replace(client, name="server", command=("sleep", "inf"))
    study = msgspec.structs.replace(study, roles=(server, client))
    with pytest.raises(RunError) as said:
        runner_of(store, Unending(), study).start()
    assert (
        'role target had ended, and role server still ran, without end = "serve"' in said.value.what
    )
    assert said.value.remedy.startswith('if the role that still ran is a server: end = "serve"')


@pytest.mark.parametrize("name", ["setup", "prepare", "conclude", "cleanup", "check"])
def test_a_hook_that_hangs_is_stopped_with_all_its_processes(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(hooks, "HOOK_SECONDS_MIN", 0.3)
    rules = msgspec.structs.replace(TWO, time_allowed_seconds=0.3)
    text = f"(while true; do sleep 1; : {tmp_path}; done) & sleep 600; : again"
    study = msgspec.structs.replace(small_study(rules, threads=(1, 2)), hooks=Hooks(**{name: text}))
    runner = runner_of(store, FakeEngine(), study)
    with pytest.raises(RunError, match=f"the hook {name} did not end within 300 ms"):
        runner.start()
    assert store.find_run("last").state == "failed"
    wait_until(lambda: not alive_with(str(tmp_path)), "the end of what it has started")


@pytest.mark.parametrize("target", ["1", "2"])
def test_a_hook_that_prints_without_an_end_is_stopped(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(hooks, "OUTPUT_BYTES_MAX", 1 << 20)
    text = f"while true; do head -c 1000000 /dev/zero >&{target}; sleep 0.02; : {tmp_path}; done"
    study = msgspec.structs.replace(small_study(TWO, threads=(1,)), hooks=Hooks(setup=text))
    with pytest.raises(RunError, match="the hook setup printed more than 1 MiB") as raised:
        runner_of(store, FakeEngine(), study).start()
    assert "file of its own" in raised.value.remedy
    wait_until(lambda: not alive_with(str(tmp_path)), "the end of what it has started")


def alive_with(text: str) -> list[str]:
    """The command lines of living processes that contain this text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            found += [line] if text in line else []
    return found


def test_a_server_that_a_hook_leaves_behind_is_not_waited_for(store: Store, tmp_path: Path) -> None:
    """It inherits the output of the shell, which is no pipe that would be read to its end."""
    ended = tmp_path / "ended"
    study = msgspec.structs.replace(
        small_study(TWO, threads=(1,)),
        hooks=Hooks(
            setup=f"(while [ -d {tmp_path} -a ! -e {tmp_path}/go ]; do sleep 0.05; done; "
            f"touch {ended}) &"
        ),
    )
    runner_of(store, FakeEngine(), study).start()
    assert not ended.exists()
    (tmp_path / "go").touch()
    while not ended.exists():
        time.sleep(0.01)


def test_what_a_failing_hook_said_is_told(store: Store) -> None:
    study = msgspec.structs.replace(
        small_study(TWO, threads=(1,)), hooks=Hooks(prepare="echo no such disk >&2; exit 3")
    )
    with pytest.raises(RunError, match="the hook prepare failed with 3: no such disk"):
        runner_of(store, FakeEngine(), study).start()


def test_what_takes_long_is_announced_with_its_limit_while_it_runs() -> None:
    told: list[str] = []
    is_told = threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        is_told.set()

    patience = Patience(tell, seconds=0.05)
    with patience.watch("n=1: this trial", 7200, "--max-time"):
        assert is_told.wait(60), "while it runs"
    assert told == [
        "n=1: this trial has run for 50 ms; it is stopped after 2 h 00 min "
        "(--max-time changes that, Ctrl-C ends the run)"
    ]


def test_what_ends_soon_is_not_announced() -> None:
    told: list[str] = []
    before = set(threading.enumerate())  # other tests may have left some that are about to end
    patience = Patience(told.append, seconds=600)
    with patience.watch("n=1: this trial", 7200, "--max-time"):
        pass
    with Patience(told.append, seconds=0.02).watch("n=1: this trial", 0.01, "--timeout"):
        time.sleep(0.1)
    assert told == []
    assert set(threading.enumerate()) <= before


class Refusing(FakeEngine):
    """Its programs report lines that nobody understands."""

    def run(self, spec: TrialSpec) -> bytes:
        record = record_of(spec, 1.0)
        refused = tuple(
            ReportError(line=line, message="no JSON", excerpt="rps=\x1b[31m12") for line in (2, 5)
        )
        roles = (msgspec.structs.replace(record.roles[0], report_errors=refused),)
        return msgspec.json.encode(msgspec.structs.replace(record, roles=roles))


def test_refused_lines_of_the_report_channel_are_told(store: Store) -> None:
    notes = Notes()
    runner_of(store, Refusing(), notes=notes).start()
    # Others are about the machine, as of a volume that another test has left for a moment.
    (note,) = [text for text in notes.said if "refused" in text]
    assert "2 lines of the report channel were refused" in note
    assert "line 2 of target: no JSON" in note
    said = findings_of(store, store.find_run("last")).sentences
    (warning,) = [item.sentence for item in said if "refused" in item.sentence]
    assert "line 2 of target: no JSON" in warning
    assert "\x1b" not in note + warning


def test_any_other_end_of_a_run_leaves_none_that_is_running(store: Store) -> None:
    class Broken(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        runner_of(store, Broken()).start()
    row = store.find_run("last")
    assert row.state == "interrupted"
    assert "Input/output error" in row.reason


@pytest.mark.parametrize(("allowed", "is_told"), [(2.0, True), (5.0, False), (100.0, False)])
def test_trials_too_long_for_the_least_of_them_are_told_once_and_early(
    store: Store, allowed: float, is_told: bool
) -> None:
    """Ten trials of half a second."""
    rules = Rules(repeats_min=5, repeats_max=9, time_allowed_seconds=allowed)
    notes = Notes()
    runner_of(store, FakeEngine(), small_study(rules, threads=(1, 2)), notes).start()
    said = [text for text in notes.said if "(--max-time)" in text]
    assert len(said) == is_told
    if said:
        assert said[0].startswith(
            "note: a trial takes about 500 ms, so about 4 trials fit into 2.0 s (--max-time); "
            "at least 10 are needed"
        )
        assert "Give --max-time 9s, or shorten the trial" in said[0]

"""Is a program noticed that has changed since its run began?"""

from __future__ import annotations

import contextlib
import datetime
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.assemble import report_of
from concurve.definition.study import Role, Rules
from concurve.errors import RunInterruptedError
from concurve.host.machine import describe_file
from concurve.measuring.changed_programs import changed_programs, changed_study_file
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner, Silence
from concurve.report.document import Document
from concurve.report.json.export import to_json
from concurve.report.sections.run import brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.store.run_head import RunHead, decode_head
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study


def head_of(programs: dict[str, Any]) -> RunHead:
    head = new_head(small_study(), "quick", 1, "concurve sweep again")
    return msgspec.structs.replace(head, programs=programs)


def told(head: RunHead) -> list[str]:
    return [program.says(head.again) for program in changed_programs(head)]


def renderer(folder: Path, content: str = "one") -> Path:
    path = folder / "renderer"
    path.write_text(content, encoding="utf-8")
    return path


def test_a_program_that_is_the_same_is_not_named(tmp_path: Path) -> None:
    path = renderer(tmp_path)
    facts = {"command": "renderer", **describe_file(path)}
    path.touch()
    assert list(changed_programs(head_of({"target": facts}))) == []


def test_a_program_that_was_built_again_is_named(tmp_path: Path) -> None:
    facts = describe_file(renderer(tmp_path))
    renderer(tmp_path, "two")
    (said,) = told(head_of({"target": facts}))
    assert f"{tmp_path}/renderer (role target) has changed since the run began" in said
    assert said.endswith(": concurve sweep again")


def test_a_program_that_is_gone_is_named(tmp_path: Path) -> None:
    path = renderer(tmp_path)
    facts = describe_file(path)
    path.unlink()
    (said,) = told(head_of({"target": facts}))
    assert "(role target) is gone since the run began" in said


def test_the_java_of_a_packaged_program_counts_too(tmp_path: Path) -> None:
    jar = describe_file(renderer(tmp_path))
    java = describe_file(renderer(tmp_path, "java"))
    (said,) = told(head_of({"target": {**jar, "java": java}}))
    assert "has changed" in said
    assert list(changed_programs(head_of({"target": {**java, "java": java}}))) == []


def test_what_was_not_readable_or_runs_already_is_not_judged() -> None:
    programs = {
        "target": {"command": "renderer", "absent": "not found on PATH"},
        "server": {"attached": "process 4711", "path": "/gone", "sha256": "0"},
        "other": {"path": "/gone", "absent": "content not readable: denied"},
    }
    assert list(changed_programs(head_of(programs))) == []


@pytest.mark.parametrize(
    ("again", "is_told"),
    [
        ("concurve run --seed 1 'my study.toml' --effort quick", True),
        ("concurve run --hosts 'my study.toml' thread-scaling", False),
        ("concurve sweep -- cat 'my study.toml'", False),
        ("concurve run thread-scaling", False),
        ("concurve run gone.toml", False),
    ],
)
def test_a_study_file_that_was_written_since_is_not_what_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str, is_told: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my study.toml"
    file.touch()
    head = msgspec.structs.replace(head_of({}), again=again)
    begun = datetime.datetime.fromisoformat(head.started).timestamp()
    os.utime(file, (begun + 60, begun + 60))
    assert changed_study_file(head).startswith("my study.toml was written after") is is_told
    os.utime(file, (begun - 60, begun - 60))
    assert changed_study_file(head) == ""


class Notes(Silence):
    """Keeps the remarks."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def test_a_run_that_is_resumed_says_it(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    facts = describe_file(renderer(tmp_path))
    first, second = Notes(), Notes()
    Runner(head_of({"target": facts}), store, FakeEngine(), first, FakeClock()).start()
    renderer(tmp_path, "two")
    head = decode_head(store.find_run("last"))
    store.set_state(head.id, "interrupted", "killed after its last trial")
    Runner(head, store, FakeEngine(), second, FakeClock()).resume()
    assert not any("has changed" in said for said in first.said)
    assert [said for said in second.said if "has changed since the run began" in said]


class Stopping(FakeEngine):
    """Is stopped within one of its trials."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def run(self, spec: TrialSpec) -> bytes:
        if len(self.specs) == self._after:
            raise KeyboardInterrupt
        return super().run(spec)


def go_on(store: Store, after: int = 1000) -> None:
    """Resume the last run, and stop it after so many trials if it has more."""
    head = decode_head(store.find_run("last"))
    with contextlib.suppress(RunInterruptedError):
        Runner(head, store, Stopping(after), clock=FakeClock()).resume()


def begun(store: Store, facts: dict[str, Any], after: int) -> None:
    head = new_head(small_study(Rules(repeats_min=5, repeats_max=5)), "quick", 1, "concurve sweep")
    head = msgspec.structs.replace(head, programs=facts)
    with contextlib.suppress(RunInterruptedError):
        Runner(head, store, Stopping(after), clock=FakeClock()).start()


def warnings(store: Store) -> list[str]:
    """What the report of the run warns of a program."""
    report = report_of(store, store.find_run("last"))
    return [
        item.sentence
        for item in report.sentences
        if item.kind == "warning" and "different programs" in item.sentence
    ]


def shown(document: Document) -> str:
    return " ".join(line.plain for line in lines(document, 10_000))


def test_every_later_report_warns_of_the_program_and_of_the_trials_before(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    begun(store, {"server": describe_file(renderer(tmp_path))}, after=2)
    renderer(tmp_path, "two")
    go_on(store, after=2)
    go_on(store)
    (said,) = warnings(store)
    begins = f"{tmp_path}/renderer (role server) changed before the run was resumed after 2 trials"
    assert said.startswith(begins)
    report = report_of(store, store.find_run("last"))
    exported = msgspec.json.decode(to_json(report))
    assert said in [item["sentence"] for item in exported["findings"]]
    assert exported["run"]["resumed_after"] == [2, 4]
    for document in (run_document(report), brief_run_document(report)):
        assert "renderer (role server) changed before" in shown(document)
    assert "resumed after 2 and 4 trials" in shown(run_document(report))


def test_of_many_resumptions_their_number_is_shown(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    begun(store, {}, after=1)
    for after in (1, 1, 1, 1000):
        go_on(store, after)
    report = report_of(store, store.find_run("last"))
    assert "resumed 4 times" in shown(run_document(report))


@pytest.mark.parametrize(("before", "after"), [(0, 1000), (2, 0)])
def test_trials_of_one_program_alone_are_no_reason_to_warn(
    tmp_path: Path, before: int, after: int
) -> None:
    """Those that ended all before the change, or began all after it."""
    store = Store(str(tmp_path / "s.db"))
    begun(store, {"server": describe_file(renderer(tmp_path))}, after=before)
    renderer(tmp_path, "two")
    go_on(store, after)
    assert warnings(store) == []


def test_a_stop_before_the_next_trial_counts_once(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    begun(store, {}, after=2)
    go_on(store, after=0)
    go_on(store)
    assert [item.trials for item in decode_head(store.find_run("last")).resumed] == [2]


@pytest.mark.parametrize(
    ("command", "described"),
    [
        (("true",), "true"),
        (("/usr/bin/env", "A={threads}", "sleep", "0"), "sleep"),
        (("taskset", "-c", "0", "nice", "sleep", "0"), "sleep"),
        (("env", "PATH=/elsewhere", "sleep", "0"), "env"),
        (("docker", "exec", "db", "sleep"), "docker"),
        (("sh", "-c", "sleep 0; true"), "sh"),
        (("env", "{program}", "0"), None),
        (("{program}",), None),
    ],
)
def test_the_program_that_a_starter_starts_is_the_one_that_is_known(
    command: tuple[str, ...], described: str | None
) -> None:
    """An env of the system is the same before and after a server was built anew."""
    study = small_study(Rules(repeats_min=3, repeats_max=3), threads=(1, 2), program=("a", "b"))
    study = msgspec.structs.replace(study, roles=(Role(name="target", command=command),))
    found = new_head(study, "normal", 1, "concurve sweep").programs.get("target")
    assert (found and found["command"]) == described

"""The flight recorder of a real JVM: its waits stand at the right line, and failures are told.

The cell is made up, since a busy machine may name another cause.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.definition.study import Rules
from concurve.definition.study_check import with_rules
from concurve.engine.local import LocalEngine
from concurve.errors import HostError
from concurve.explain.confirmation import confirm_run
from concurve.explain.experiments import RECORDED, Recorder, experiments, reach_of
from concurve.findings.explanation import CellExplanation
from concurve.host import native
from concurve.host.java import find_jfr
from concurve.host.machine import allowed_cpus
from concurve.host.temporary import temporary_folder
from concurve.measuring import flight_recorder
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire import decode_record
from concurve.wire.record import RoleRecord
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.fakes import small_study

pytestmark = pytest.mark.real

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "trial-record.schema.json").read_text(encoding="utf-8")
)
SOURCE = Path(__file__).parent / "java" / "Locks.java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("java", "javac"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here")
    try:
        find_jfr()
        native.binary("concurve-trial")
    except HostError as error:
        pytest.skip(error.what)
    folder = tmp_path_factory.mktemp("classes")
    subprocess.run(["javac", "-d", str(folder), str(SOURCE)], check=True)
    return folder


def line_of(mark: str) -> int:
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"// {mark}"))


def recorded(
    classes: Path, *arguments: str, jvm: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> tuple[RoleRecord, list[str]]:
    """The record of one trial, and the files that its recording left."""
    command = ("java", *jvm, "-cp", str(classes), "Locks", *arguments)
    with temporary_folder() as folder:
        beginning = [
            word.replace("{trial_folder}", str(folder)) for word in flight_recorder.beginning()
        ]
        role = RoleSpec(name="target", argv=(*beginning, *command), env=env or {})
        spec = TrialSpec(trial="t", roles=(role,))
        raw = flight_recorder.with_recordings(LocalEngine().run(spec), spec, str(folder))
        jsonschema.validate(json.loads(raw), SCHEMA)
        left = [str(path.relative_to(folder)) for path in folder.rglob("*.jfr")]
    return decode_record(raw).roles[0], left


def test_experiments_name_the_line_of_each_lock(tmp_path: Path, classes: Path) -> None:
    store = Store(str(tmp_path / "concurve.db"))
    study = small_study(Rules(repeats_min=3, repeats_max=3), threads=(1, 4))
    command = ("java", "-cp", str(classes), "Locks", "{threads}", "60")
    role = msgspec.structs.replace(study.roles[0], command=command)
    study = msgspec.structs.replace(study, roles=(role,), work_amount="fixed")
    head = new_head(study, "normal", 1, "concurve sweep …")
    cell = CellExplanation(
        parameters={"threads": 4}, cause="lock", evidence="", index=1, is_jvm=True
    )
    recorder = Recorder(flight_recorder.beginning(command))
    # One CPU is left to it: what one CPU does is tried elsewhere.
    made = experiments(
        head, cell, reach_of(cell, str), "perturb", allowed_cpus()[:1], 300.0, 3000.0, recorder
    )
    # What is judged here is so in a disturbed trial, too: none is made again.
    study = with_rules(made.study, {"redo_max": 0})
    new = msgspec.structs.replace(
        new_head(study, "normal", 1, "concurve explain --confirm"), confirms=made.confirms
    )
    Runner(new, store, LocalEngine()).start()
    confirmed = confirm_run(store, store.find_run(new.id))
    found = confirmed.recorded
    assert found is not None and not found.missing
    assert found.trials == 3 and found.cost is not None and found.cost.value > 0
    assert [item.level for item in confirmed.tried] == [RECORDED]
    right = {
        ("Locks$Counter.add", line_of("monitor"), "Locks$Counter"): 0,
        (
            "Locks.append",
            line_of("lock"),
            "java.util.concurrent.locks.ReentrantLock$NonfairSync",
        ): 0,
    }
    for site in found.sites:
        place = (site.function, site.line or 0, site.lock or "")
        if place in right:
            right[place] += site.events
    # Four threads meet at two locks that are held for a millisecond each time: nearly all wait.
    assert all(events > 100 for events in right.values())
    assert sum(right.values()) >= 0.99 * found.events
    assert {site.file for site in found.sites} == {"Locks.java"}
    monitor = next(site for site in found.sites if site.kind == "monitor")
    assert all(name.startswith("worker-") for name, _ in monitor.owners) and monitor.owners
    assert "Locks.java:" in found.place


def test_what_the_environment_asks_of_the_jvm_stays(classes: Path) -> None:
    role, _ = recorded(classes, "2", "5", env={"JAVA_TOOL_OPTIONS": "-Dconcurve.mark=stays"})
    assert role.recorded is not None and role.recorded.recordings == 1
    said = role.stderr.text()
    assert "-Dconcurve.mark=stays '-XX:StartFlightRecording" in said
    # Standard output belongs to the program.
    assert role.stdout.text() == ""


def test_a_program_that_halts_has_no_recording(classes: Path) -> None:
    role, _ = recorded(classes, "2", "5", "halt")
    assert role.recorded is None and "Runtime.halt" in role.absent["recorded"]


def test_a_jvm_with_the_recorder_switched_off_has_no_recording(classes: Path) -> None:
    role, left = recorded(classes, "2", "5", jvm=("-XX:-FlightRecorder",))
    assert role.recorded is None and "-XX:-FlightRecorder" in role.absent["recorded"]
    assert not left


def test_a_recording_that_is_cut_is_refused(classes: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.jfr"
    line = ["java", f"-XX:StartFlightRecording=filename={file}", "-cp", str(classes), "Locks"]
    subprocess.run([*line, "1", "1"], check=True, capture_output=True)
    folder = tmp_path / "flight-recordings"
    folder.mkdir()
    for name, content, why in (
        ("cut.jfr", file.read_bytes()[:3000], "cut.jfr"),
        ("empty.jfr", b"", "empty"),
        ("other.jfr", b"no recording at all, but some text", "other.jfr"),
    ):
        (folder / name).write_bytes(content)
        beginning = flight_recorder.beginning()
        spec = TrialSpec(trial="t", roles=(RoleSpec(name="target", argv=(*beginning, "java")),))
        raw = b'{"format":1,"trial":"t","outcome":{"kind":"ok"},"roles":[{"name":"target"}]}'
        role = decode_record(flight_recorder.with_recordings(raw, spec, str(tmp_path))).roles[0]
        assert role.recorded is None and "cannot be read" in role.absent["recorded"]
        assert why in role.absent["recorded"] and str(tmp_path) not in role.absent["recorded"]
        (folder / name).unlink()


def test_a_jfr_that_is_none_is_told(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flight-recordings").mkdir()
    (tmp_path / "flight-recordings" / "a.jfr").write_bytes(b"x")
    raw = b'{"format":1,"trial":"t","outcome":{"kind":"ok"},"roles":[{"name":"target"}]}'
    spec = TrialSpec(
        trial="t", roles=(RoleSpec(name="target", argv=(*flight_recorder.beginning(), "java")),)
    )
    tool = tmp_path / "jfr"
    for script, why in (
        ("#!/bin/sh\nexit 3\n", "jfr print exits with 3"),
        ("#!/bin/sh\necho none; exit 0\n", "no recording as jfr print --json writes it"),
        ("#!/no/such/shell\n", "cannot be started"),
    ):
        tool.write_text(script)
        tool.chmod(0o755)
        monkeypatch.setattr(flight_recorder, "find_jfr", lambda argv: tool)
        role = decode_record(flight_recorder.with_recordings(raw, spec, str(tmp_path))).roles[0]
        assert why in role.absent["recorded"]

"""What killed runs leave of their volumes: it is found again by any name, shown, undone, and waited
for only by runs that need a volume."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from concurve.attendants import volumes
from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks, journal, steps
from concurve.attendants.volumes.journal import repair
from concurve.attendants.volumes.options import parse
from concurve.cli import app
from concurve.definition.study import Role, Rules
from concurve.errors import HostError
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner, Silence, uses_volume
from concurve.planning.plan import make_plan
from concurve.store import Store
from tests.attendants.volumes.test_volumes import (  # noqa: F401
    PATIENCE,
    SMALL,
    abandoned,
    assert_nothing_is_left,
    attend,
    journal_files,
    journals,
    mounted,
    needs_loops,
)
from tests.helpers.damages import damages
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.needs import needs_root

# Fixtures of the other file, by their names.
# ruff: noqa: F811


def test_paths_are_those_that_the_kernel_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("new")
    for given, found in [
        ("link", "real"), ("link/sub", "real/sub"), ("dangling", "new"), ("real/../link", "real"),
    ]:  # fmt: skip
        options = parse(["none", "--mount", str(tmp_path / given), "--on", str(tmp_path / given)])
        assert options.mount == options.on == tmp_path / found


def test_links_in_a_circle_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(SystemExit) as refused:
        parse(["none", "--mount", str(tmp_path / "a")])
    assert refused.value.code == 2
    assert f"--mount {tmp_path / 'a'}" in capsys.readouterr().err


@needs_loops
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_volume_behind_links_leaves_nothing(
    number: signal.Signals, attend: Any, tmp_path: Path, journals: Path
) -> None:
    for name in ("real", "place"):
        (tmp_path / name).mkdir()
    (tmp_path / "mount-link").symlink_to(tmp_path / "real" / "mount")
    (tmp_path / "on-link").symlink_to(tmp_path / "place")
    attended = attend("none", "--on", str(tmp_path / "on-link"), *SMALL, mount="mount-link")
    attended.wait_until_ready()
    (tmp_path / "mount-link" / "file").write_text("data")
    assert mounted(tmp_path / "real" / "mount")
    attended.end(number)
    repair()
    assert not mounted(tmp_path / "real" / "mount")
    assert not (tmp_path / "real" / "mount").exists()
    assert_nothing_is_left(tmp_path / "place", journals)


@needs_loops
@pytest.mark.parametrize("is_journal_lost", [False, True])
def test_a_volume_whose_mount_no_journal_mentions_is_undone(
    is_journal_lost: bool, attend: Any, tmp_path: Path, journals: Path
) -> None:
    """As a version did that wrote down the mount by another name."""
    attended = attend("none", "--on", str(tmp_path), *SMALL)
    attended.wait_until_ready()
    (path,) = journal_files(journals)
    attended.end(signal.SIGKILL)
    if is_journal_lost:
        path.unlink()
    else:
        lines = [line for line in path.read_text().splitlines() if '"unmount"' not in line]
        path.write_text("\n".join(lines) + "\n")
    assert any(str(tmp_path) in step.says for item in volumes.left() for step in item.steps)
    said: list[str] = []
    volumes.repair_all(said.append)
    assert not mounted(attended.mount)
    assert list(tmp_path.glob("concurve-volume-*")) == []
    assert blocks.loops_over(attended.device.node) == []
    assert [item for item in volumes.left() if str(tmp_path) in str(item)] == []


@needs_loops
def test_what_is_waited_for_is_said(
    attend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attended = attend("none", "--on", str(tmp_path), *SMALL)
    attended.wait_until_ready()
    user = subprocess.Popen(["sleep", "600"], cwd=attended.mount)
    try:
        attended.end(signal.SIGKILL)
        monkeypatch.setattr(steps, "_TELL_SECONDS", 0.05)
        monkeypatch.setattr(steps, "_PATIENCE_SECONDS", 0.5)
        said: list[str] = []
        with pytest.raises(AttendantError, match=f"process {user.pid} .sleep."):
            repair(said.append)
        assert any(f"waiting to unmount {attended.mount}" in line for line in said)
        assert any(f"process {user.pid} (sleep)" in line for line in said)
    finally:
        user.kill()
        user.wait()
    monkeypatch.setattr(steps, "_PATIENCE_SECONDS", PATIENCE)
    assert repair() == 1
    assert not mounted(attended.mount)


@pytest.fixture
def busy(journals: Path, tmp_path: Path) -> Iterator[Path]:
    """A journal of a killed process whose tool still runs: whoever repairs waits for it."""
    setting = tmp_path / "setting"
    setting.write_text("changed")
    path = abandoned(
        journals, json.dumps({"type": "write", "path": str(setting), "text": "before"}) + "\n"
    )
    tool = os.open(path.with_suffix(".tools"), os.O_CREAT | os.O_RDWR)
    fcntl.flock(tool, fcntl.LOCK_EX)
    yield path
    os.close(tool)


class Noting(Silence):
    """Progress that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@needs_root
def test_a_run_without_a_volume_waits_for_none(busy: Path, tmp_path: Path) -> None:
    store, progress = Store(str(tmp_path / "s.db")), Noting()
    rules = Rules(repeats_min=1, repeats_max=1)
    head = new_head(small_study(rules, threads=(1, 2)), "normal", 5, "concurve sweep …")
    began = time.monotonic()
    Runner(head, store, FakeEngine(), progress, clock=FakeClock()).start()
    assert time.monotonic() - began < journal._TOOLS_SECONDS / 2
    assert busy.exists()
    (said,) = progress.notes
    assert "has left a volume: concurve machine repair --dry-run shows it" in said


@needs_root
def test_a_damaged_journal_is_told_and_keeps_no_other_run_from_running(
    journals: Path, tmp_path: Path
) -> None:
    path = abandoned(journals, "{}\n")
    with pytest.raises(AttendantError, match="line 1: it is damaged"):
        repair()
    assert [item.path for item in volumes.left()] == [path]
    shown = CliRunner().invoke(app, ["machine", "repair", "--dry-run"])
    assert f"the journal {path}, line 1: it is damaged" in shown.output
    refused = CliRunner().invoke(app, ["machine", "repair"]).exception
    assert isinstance(refused, HostError) and "then delete the file" in refused.remedy
    path.unlink()


def lines_of(tmp_path: Path) -> bytes:
    """A journal as it is written."""
    path = tmp_path / "written.journal"
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
    written = journal.Journal(path, file)
    for step in (
        steps.Remove(str(tmp_path / "a")),
        steps.Write(str(tmp_path / "setting"), "before"),
        steps.RemoveEmpty(str(tmp_path / "b")),
    ):
        written.intend(step)
    os.close(file)
    text = path.read_bytes()
    path.unlink()
    return text


@needs_root
def test_no_damage_of_a_journal_undoes_anything_else_or_ends_in_a_traceback(
    journals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lines_of(tmp_path)
    done: list[str] = []
    for kind in (steps.Write, steps.Unmount, steps.Detach, steps.Remove, steps.RemoveEmpty):
        monkeypatch.setattr(kind, "do", lambda step, tell=None: done.append(step.says))
    path = abandoned(journals, "")
    path.write_bytes(whole)
    meant = {step.says for item in volumes.left() for step in item.steps}
    assert len(meant) == 3
    refused = 0
    for damaged in damages(whole, 17, 400):
        path.write_bytes(damaged)
        for words in (["machine", "repair", "--dry-run"], ["machine", "repair"]):
            result = CliRunner().invoke(app, words)
            if result.exception is not None:
                assert isinstance(result.exception, HostError), result.exception
                assert str(path) in result.exception.what and "delete" in result.exception.remedy
                refused += 1
        assert set(done) <= meant
    path.unlink(missing_ok=True)
    assert refused > 200


def test_what_a_journal_of_an_older_version_says_is_read(tmp_path: Path) -> None:
    step = steps.Write(str(tmp_path / "setting"), "before")
    path = tmp_path / "old.journal"
    path.write_bytes(msgspec.json.encode(step) + b"\n")
    assert list(journal._left(path).values()) == [step]


def test_which_studies_have_volumes() -> None:
    study = small_study(kind=("none", "bfq"))

    def has_volume(program: str | None) -> bool:
        role = Role(name="volume", program=program, command=(), end="serve")
        changed = msgspec.structs.replace(study, roles=(role, *study.roles))
        return uses_volume(make_plan(changed, "normal", 1))

    assert has_volume("volume-{kind}") and has_volume("volume-none-xfs")
    assert not has_volume("server") and not has_volume("{kind}")
    assert not uses_volume(make_plan(study, "normal", 1))


@needs_root
def test_machine_repair_shows_what_is_left_and_undoes_it(journals: Path, tmp_path: Path) -> None:
    setting = tmp_path / "setting"
    setting.write_text("changed")
    path = abandoned(
        journals, json.dumps({"type": "write", "path": str(setting), "text": "before"}) + "\n"
    )
    shown = CliRunner().invoke(app, ["machine", "repair", "--dry-run"])
    assert shown.exit_code == 0
    assert f"set {setting} to 'before'" in shown.output and str(path) in shown.output
    assert setting.read_text() == "changed"
    done = CliRunner().invoke(app, ["machine", "repair"])
    assert done.exit_code == 0 and done.output.endswith("undone\n")
    assert setting.read_text() == "before"
    assert CliRunner().invoke(app, ["machine", "repair"]).output == "nothing is left\n"


def test_machine_repair_is_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = CliRunner().invoke(app, ["machine", "repair"])
    assert "only root sees" in str(done.exception)

"""A run that is resumed in another folder, or where something is no longer as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.definition.study import Hooks, Rules
from concurve.errors import HostError, RunError, RunInterruptedError
from concurve.host.lock import lock_path
from concurve.measuring.folder import inside
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.sections import figures
from concurve.store import Store
from concurve.store.run_head import RunHead, decode_head
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

THREE = Rules(repeats_min=3, repeats_max=3)


class Folders(FakeEngine):
    """Stops at a trial, if at all, and keeps the folder in which each trial ran."""

    def __init__(self, stop_at: int = 0, kind_of: Callable[[TrialSpec], str] | None = None) -> None:
        super().__init__(kind_of=kind_of or (lambda spec: "ok"))
        self.stop_at = stop_at
        self.folders: list[str] = []

    def run(self, spec: TrialSpec) -> bytes:
        self.folders.append(str(Path.cwd()))
        if len(self.folders) == self.stop_at:
            raise KeyboardInterrupt
        return super().run(spec)


def stopped(store: Store, at: int = 5, hooks: Hooks | None = None) -> RunHead:
    """A run of two cells that was stopped at a trial."""
    study = small_study(THREE, threads=(1, 2))
    study = msgspec.structs.replace(study, hooks=hooks or Hooks())
    head = new_head(study, "normal", 5, "concurve sweep …")
    with pytest.raises(RunInterruptedError):
        Runner(head, store, Folders(at), clock=FakeClock()).start()
    return head


def resume(store: Store, engine: FakeEngine) -> None:
    Runner(decode_head(store.find_run("last")), store, engine, clock=FakeClock()).resume()


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_run_goes_on_in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = folder(tmp_path / "own"), folder(tmp_path / "other")
    (own / "here").touch()
    monkeypatch.chdir(own)
    store = Store("../s.db")
    stopped(store, hooks=Hooks(prepare="test -e here"))
    store.close()
    monkeypatch.chdir(other)
    engine = Folders()
    store = Store("../s.db")
    resume(store, engine)
    assert set(engine.folders) == {str(own)}
    assert Path.cwd() == other, "who resumes stays where he is"
    assert store.runs()[-1].state == "complete"


def test_a_folder_that_is_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, store = folder(tmp_path / "own"), Store(str(tmp_path / "s.db"))
    monkeypatch.chdir(own)
    stopped(store)
    monkeypatch.chdir(tmp_path)
    own.rmdir()
    engine = Folders()
    with pytest.raises(HostError, match=f"began in the folder {own}, which cannot be") as refused:
        resume(store, engine)
    assert f"mkdir -p {own}" in refused.value.remedy
    assert not engine.folders
    assert Path.cwd() == tmp_path
    own.mkdir()
    resume(store, engine)


def test_a_run_of_an_older_version_goes_on_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with inside(None, "run"):
        assert Path.cwd() == tmp_path


def test_the_lock_is_the_same_one_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own := tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONCURVE_LOCK", "lock")
    with inside(str(own), "run"):
        assert lock_path() == tmp_path / "lock"
        assert Path.cwd() == own
    assert lock_path() == Path("lock")


@pytest.mark.parametrize("kind", ["program_failed", "not_ready"])
def test_failures_after_a_resume_spoil_nothing(tmp_path: Path, kind: str) -> None:
    store = Store(str(tmp_path / "s.db"))
    head = stopped(store)
    with pytest.raises(RunError, match=r"threads=\d has been measured, and fails since") as found:
        resume(store, Folders(kind_of=lambda spec: kind))
    assert f"concurve resume {head.id}" in found.value.remedy
    assert store.count(head.id) == 4
    said = findings_of(store, store.find_run("last"))
    assert all(cell.trials == 2 for cell in said.cells)
    resume(store, Folders())
    assert store.runs()[-1].state == "complete"
    assert store.count(head.id) == 6


def test_a_program_that_fails_by_chance_goes_on(tmp_path: Path) -> None:
    """A success since shows that nothing has changed: later failures are the program's own."""
    store, count = Store(str(tmp_path / "s.db")), iter(range(100))
    head = stopped(store)
    resume(store, Folders(kind_of=lambda spec: "program_failed" if next(count) == 1 else "ok"))
    assert store.count(head.id) == 7


def test_the_measured_trials_of_skipped_cells_stay_shown(tmp_path: Path) -> None:
    """Also where all of them are in doubt."""
    store = Store(str(tmp_path / "s.db"))

    def kind(spec: TrialSpec) -> str:
        return "program_failed" if int(spec.trial.split("/")[-2]) > 1 else "ok"

    head = new_head(small_study(THREE, threads=(1, 2)), "normal", 1, "concurve run …")
    engine = FakeEngine(kind_of=kind, steal_of=lambda spec: 10**9)
    Runner(head, store, engine, clock=FakeClock()).start()
    findings = findings_of(store, store.find_run(head.id))
    assert [cell.status for cell in findings.cells] == ["skipped", "skipped"]
    for cell in findings.cells:
        assert cell.indicators["wall_seconds"].n == 2
        assert cell.indicators["wall_seconds"].in_doubt
    said = [item.sentence for item in findings.sentences if item.subject == "skipped"]
    assert "threads=1 was skipped after 2 trials: the program failed" in said[0]
    assert figures.brief(findings).blocks

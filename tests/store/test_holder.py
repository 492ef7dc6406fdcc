"""Whether a run still goes on is told by the process that was to run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from concurve.errors import StoreError
from concurve.measuring.heads import new_head
from concurve.store import Store, holder
from concurve.store.holder import is_gone, own_holder
from tests.helpers.fakes import small_study

ADD = """
import sys
from concurve.measuring.heads import new_head
from concurve.store import Store
from tests.helpers.fakes import small_study
Store(sys.argv[1]).add_run(new_head(small_study(), "quick", 1, "concurve sweep").row())
print("stored", flush=True)
sys.stdin.read()
"""


def test_a_run_is_running_as_long_as_its_process_lives(tmp_path: Path) -> None:
    url = str(tmp_path / "s.db")
    with subprocess.Popen(
        [sys.executable, "-c", ADD, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stored\n"
        store = Store.existing(url)
        assert [row.state for row in store.runs()] == ["running"]
        process.kill()
        process.wait()
    (row,) = store.runs()
    assert (row.state, row.reason) == ("interrupted", "its process has ended")
    assert store.find_run("last") == row
    store.set_state(row.id, "running", "")
    assert store.find_run("last").state == "running", "resumed by this process"
    store.set_state(row.id, "complete", "all trials done")
    assert store.find_run("last").state == "complete"


def test_a_number_that_another_process_has_now_is_not_the_holder() -> None:
    machine, boot, namespace, pid, started = own_holder().split(" ")
    assert not is_gone(own_holder())
    for changed in (
        (machine, boot, namespace, pid, str(int(started) + 1)),
        (machine, "another-boot", namespace, pid, started),
        (machine, boot, namespace, "4194399", started),
    ):
        assert is_gone(" ".join(changed))


def test_a_process_that_is_hidden_from_this_user_may_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own_holder()
    machine, boot, namespace, _, started = own.split(" ")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as ended:
        pass
    monkeypatch.setattr(holder, "_PROC", hidden := tmp_path / "proc")
    for name in ("sys/kernel/random/boot_id", "self/ns/pid"):
        (hidden / name).parent.mkdir(parents=True)
    (hidden / "sys/kernel/random/boot_id").write_text(boot)
    (hidden / "self/ns/pid").symlink_to(namespace)
    assert not is_gone(own)
    assert is_gone(" ".join((machine, boot, namespace, str(ended.pid), started)))


@pytest.mark.parametrize("place", [0, 2], ids=["machine", "namespace"])
def test_of_a_process_elsewhere_nothing_is_known(place: int) -> None:
    parts = own_holder().split(" ")
    parts[place] = "elsewhere"
    parts[3] = "4194399"
    assert not is_gone(" ".join(parts))
    assert not is_gone("no holder")


def test_a_run_of_an_older_version_stays_as_it_is_stored(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    row = new_head(small_study(), "quick", 1, "concurve sweep").row()
    store.add_run(row)
    with store._writing() as connection:
        connection.run("DELETE FROM concurve_meta WHERE key LIKE 'holder%'")
    assert store.find_run("last").state == "running"


@pytest.mark.parametrize("url", ["", "  "])
def test_an_empty_name_is_not_the_default_store(url: str) -> None:
    for opened in (Store, Store.existing):
        with pytest.raises(StoreError, match="the name of the store is empty"):
            opened(url)

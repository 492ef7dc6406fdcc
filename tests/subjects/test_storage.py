"""The load and streams of document 003: into PostgreSQL, and as studies on real volumes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from concurve.attendants import volumes
from concurve.attendants.volumes import blocks
from concurve.attendants.volumes.file_systems import FILE_SYSTEMS
from concurve.attendants.volumes.journal import VARIABLE, repair
from concurve.attendants.volumes.steps import Detach, Unmount
from concurve.definition import catalogue
from concurve.errors import HostError
from concurve.host import mounts, native
from tests.helpers import real
from tests.helpers.forked import NO_REDO
from tests.helpers.postgres import Server
from tests.helpers.turns import turn

STUDIES = Path(catalogue.__file__).parents[1] / "studies" / "io-schedulers"


def binary_missing() -> str | None:
    """Why there is no program to test, or ``None``."""
    try:
        native.binary("concurve-storage")
    except HostError as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(binary_missing() is not None, reason=str(binary_missing()))


def storage(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [native.binary("concurve-storage"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=real.PATIENCE,
    )


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    folder = tmp_path / "exports"
    done = storage("export", str(folder), "--size", "2M", "--tables", "40")
    assert done.returncode == 0, done.stderr
    return folder


# -- PostgreSQL ----------------------------------------------------------------------------------


@pytest.mark.postgresql
def test_postgresql_holds_what_was_exported(postgres: Server, exports: Path) -> None:
    url = postgres.database("loaded")
    done = storage("load", "postgres", url, "--exports", str(exports), "--loaders", "3")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in (exports / "manifest").read_text().splitlines()[1:]]
    first = (exports / lines[0][0]).read_text().splitlines()
    table, row = first[1].split()[1], first[2]
    with psycopg.connect(url) as link:
        tables = link.execute("SELECT relname FROM pg_class WHERE relname ~ '^t[0-9]+$'").fetchall()
        assert len(tables) == 40
        found = link.execute(f"SELECT id, part, amount, text FROM {table} WHERE id = 1".encode())
        assert "\t".join(map(str, found.fetchone() or ())) == row
        counts = [
            (link.execute(f"SELECT count(*) FROM {name}".encode()).fetchone() or [0])[0]
            for (name,) in tables
        ]
    assert sum(counts) == sum(int(words[3]) for words in lines)
    # The second time, the tables exist already.
    again = storage("load", "postgres", url, "--exports", str(exports))
    assert again.returncode == 1
    assert re.search(r"cannot load table t\d+: .*already exists", again.stderr)


@pytest.mark.postgresql
def test_a_row_that_the_database_changes_is_found(postgres: Server, exports: Path) -> None:
    url = postgres.database("changing")
    with psycopg.connect(url, autocommit=True) as link:
        link.execute(
            "CREATE FUNCTION spoil() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() "
            "WHERE object_identity = 'public.t00007') THEN "
            "ALTER TABLE t00007 ALTER amount TYPE numeric(20, 1); END IF; END $$"
        )
        link.execute("CREATE EVENT TRIGGER t ON ddl_command_end WHEN TAG IN ('CREATE TABLE') "
                     "EXECUTE FUNCTION spoil()")  # fmt: skip
    done = storage("load", "postgres", url, "--exports", str(exports))
    assert done.returncode == 1
    assert "table t00007 is wrong in the database: the sum " in done.stderr


# -- as studies ----------------------------------------------------------------------------------


def volumes_missing() -> str | None:
    """Why no study can be run on a volume here, or ``None``."""
    try:
        volumes.command("volume-none", "here")
    except HostError as error:
        return str(error)
    return real.missing()


needs_volumes = pytest.mark.skipif(volumes_missing() is not None, reason=str(volumes_missing()))

#: Everything as packaged, but small, and in the test's own folder.
TINY = """[effort.quick]
factors = %s
repeats = 1
time_allowed = "1h"

"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop_devices: None) -> Iterator[real.Lab]:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "journals"))
    monkeypatch.setenv("CONCURVE_VOLUME_ON", str(tmp_path))
    laboratory = real.Lab(tmp_path)
    yield laboratory
    laboratory.end()
    laboratory.wait_until_alone()
    repair()
    left = [str(mount.where) for mount in mounts.mounts() if mount.where.is_relative_to(tmp_path)]
    for where in left:
        Unmount(where).do()
    for path in tmp_path.glob("concurve-volume-*"):
        Detach(str(path)).do()


def tiny_study(lab: real.Lab, name: str, **factors: list[str] | list[int]) -> None:
    """A packaged study with what it shares with others, tiny, with these levels of its factors."""
    levels = ", ".join(
        f"{name.replace('_', '-')} = {json.dumps(it)}" for name, it in factors.items()
    )
    quick = TINY % f"{{ {levels} }}"
    for file in (STUDIES / name / "study.toml", STUDIES / "shared.toml"):
        text = file.read_text(encoding="utf-8")
        text = re.sub(r"\[effort\.quick\].*?(?=\[effort\.normal\])", quick, text, flags=re.DOTALL)
        text = text.replace("../shared.toml", "shared.toml")
        text = text.replace("/run/concurve/volume", str(lab.folder / "mount"))
        text = re.sub(r'quick = \{ size = .*', 'quick = { size = "2M", tables = 34, '
                      'volume-mib = 96, write-mib = 200 }', text)  # fmt: skip
        text = re.sub(r"quick = \{ seconds = \d \}", "quick = { seconds = 0.2 }", text)
        text = text.replace('"--file-size", "4M"', '"--file-size", "1.1M"')
        text = text.replace('volume-mib = "256"', 'volume-mib = "48"')
        if "depth" not in factors:
            text = text.replace('"--depth", "{with.depth}"', '"--depth", "4"')
            text = text.replace('depth = "32"\n', "")
        (lab.folder / file.name).write_text(text, encoding="utf-8")


def ran(lab: real.Lab) -> dict[str, Any]:
    done = lab.run("run", "study.toml", "--effort", "quick", "--export-json", "run.json", **NO_REDO)
    assert done.returncode == 0, done.stderr
    exported: dict[str, Any] = json.loads((lab.folder / "run.json").read_text(encoding="utf-8"))
    return exported


def assert_taken_back(lab: real.Lab) -> None:
    assert not (lab.folder / "mount").exists()
    assert list(lab.folder.glob("concurve-volume-*")) == []
    assert list((lab.folder / "journals").glob("*.journal")) == []


@needs_volumes
def test_a_small_load_runs_under_each_scheduler(lab: real.Lab) -> None:
    tiny_study(lab, "load")
    exported = ran(lab)
    offered = {name for name in volumes.SCHEDULERS if name in blocks.known_schedulers()}
    cells = {(c["parameters"]["scheduler"], c["parameters"]["database"]): c["indicators"]
             for c in exported["cells"]}  # fmt: skip
    assert set(cells) == {(name, kind) for name in offered for kind in ("sqlite", "records")}
    for indicators in cells.values():
        assert indicators["operations"]["value"] == 34
        assert indicators["load_seconds"]["value"] > indicators["closing_seconds"]["value"] > 0
        assert indicators["device_write_bytes"]["value"] > 2_000_000
        assert indicators["seek_ratio"]["value"] > 0
    # The scheduler that the program read is a level of the study, and therefore no fact.
    facts = {(fact["name"], fact["value"]) for fact in exported["facts"]}
    assert {name for name, _ in facts} >= {"seeks"}
    assert facts >= {("loaders_are", "processes"), ("loaders_are", "threads")}
    assert [value for name, value in facts if name == "page_cache"] == [
        "dropped as a whole before the load"
    ] or not os.access("/proc/sys/vm/drop_caches", os.W_OK)
    assert_taken_back(lab)


@needs_volumes
def test_a_small_load_runs_on_each_file_system(lab: real.Lab) -> None:
    """Btrfs has a device number of its own, beneath which the device is found all the same."""
    here = [name for name, kind in FILE_SYSTEMS.items() if shutil.which(kind.maker[0])]
    if len(here) < 2:
        pytest.skip("mkfs.xfs and mkfs.btrfs are not installed")
    tiny_study(
        lab, "load", scheduler=["none"], database=["sqlite"], file_system=["ext4", "xfs", "btrfs"]
    )
    text = (lab.folder / "study.toml").read_text(encoding="utf-8")
    text = text.replace("volume-mib = 96", "volume-mib = 320")
    (lab.folder / "study.toml").write_text(text, encoding="utf-8")
    cells = {cell["parameters"]["file-system"]: cell["indicators"] for cell in ran(lab)["cells"]}
    assert set(cells) == set(here)
    for indicators in cells.values():
        assert indicators["device_write_bytes"]["value"] > 2_000_000
    assert_taken_back(lab)


@needs_volumes
def test_settings_with_tunables_of_their_own_run(lab: real.Lab) -> None:
    tiny_study(lab, "tunables", setting=["none", "none-queue-4", "batch-1", "bfq-idle-0"])
    cells = {cell["parameters"]["setting"]: cell["indicators"] for cell in ran(lab)["cells"]}
    assert {"none", "none-queue-4"} <= set(cells)
    offered = blocks.known_schedulers()
    assert ("batch-1" in cells) == ("mq-deadline" in offered)
    assert ("bfq-idle-0" in cells) == ("bfq" in offered)
    for indicators in cells.values():
        assert indicators["reads_per_second"]["value"] > 0
    assert_taken_back(lab)


@needs_volumes
def test_a_reader_beside_writers_runs_under_each_scheduler(lab: real.Lab) -> None:
    tiny_study(lab, "mixed", depth=[32])
    for cell in ran(lab)["cells"]:
        assert cell["indicators"]["reads_per_second"]["value"] > 0
        assert cell["indicators"]["writes_per_second"]["value"] > 0
    assert_taken_back(lab)


@needs_volumes
def test_what_a_killed_run_has_left_is_told_and_repaired(lab: real.Lab) -> None:
    tiny_study(lab, "mixed", depth=[32])
    text = (lab.folder / "study.toml").read_text(encoding="utf-8")
    (lab.folder / "long.toml").write_text(text.replace("seconds = 0.2", "seconds = 600"))
    with turn("volumes"):
        running = lab.start("run", "long.toml", "--effort", "quick")
        mount = lab.folder / "mount"
        real.wait_until((mount / "reader-1").exists, "the volume with its files", of=running)
        for pid in lab.alive():
            with contextlib.suppress(ProcessLookupError):  # ended with its parent
                os.kill(pid, signal.SIGKILL)
        running.communicate(timeout=real.PATIENCE)
        assert lab.wait_until_alone() == {}
        assert any(entry.where == mount for entry in mounts.mounts())
        done = lab.run("sweep", "--repeats", "1", "--", "true")
        assert done.returncode == 0, done.stderr
        assert "concurve machine repair" in done.stderr, "it needs no volume, and leaves this one"
        assert lab.run("machine", "repair").returncode == 0
    assert_taken_back(lab)

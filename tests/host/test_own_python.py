"""What we start of ourselves is what is installed, whatever the working folder has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import concurve
from concurve.host.own_python import PYTHON, module

#: Leaves a file beside the working folder, and ends.
HOSTILE = "import pathlib; pathlib.Path('../was-run').touch(); raise SystemExit(9)"

#: What the modules import: our package, one of Python's own, one of another package.
NAMES = ("concurve", "json", "html", "msgspec", "fnmatch", "select")


def test_the_working_folder_is_imported_from_by_no_process_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(HOSTILE)
    for line in (
        module("concurve.attendants.remote"),
        module("concurve.hosts.stand_in"),
        (*PYTHON, "-c", "import json, concurve.cli; raise SystemExit(2)"),
    ):
        done = subprocess.run(line, cwd=folder, check=False, capture_output=True)
        assert done.returncode == 2, done.stderr
    assert not (tmp_path / "was-run").exists()


def test_python_is_started_in_this_way_alone() -> None:
    package = Path(concurve.__file__).parent
    found = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "sys.executable" in path.read_text(encoding="utf-8")
    ]
    assert found == ["host/own_python.py"]

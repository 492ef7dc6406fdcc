"""The layers of the Python package, and that no files import each other in a circle."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "scripts" / "import_circles.py").is_file(), reason="not a checkout"
)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_imports_keep_the_contracts_of_the_layers() -> None:
    done = run("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()",
               "--no-cache")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_import_is_excepted_from_the_contracts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (contract for contract in contracts if contract["type"] == "layers")
    assert layers["exhaustive"] and layers["containers"] == ["concurve"]
    excepted = {"ignore_imports", "exhaustive_ignores"}
    assert not any(excepted & contract.keys() for contract in contracts)
    assert "exclude_type_checking_imports" not in settings["tool"]["importlinter"]


def test_no_three_files_import_each_other_in_a_circle() -> None:
    done = run("scripts/import_circles.py", "concurve")
    assert done.returncode == 0, done.stdout + done.stderr

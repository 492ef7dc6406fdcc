"""The folder of an embedded engine is filled once, and copied from then on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from concurve.measuring import packaged
from tests.helpers.attended import PATIENCE

#: Stands for concurve-load: writes what it was asked for into the folder that the address names.
LOADER = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/called"
[ -z "$CONCURVE_REPORT" ] || { echo 'no such channel' >&2; exit 1; }
case "$2" in fail) echo 'no such workload' >&2; exit 2;; esac
echo pages > "${1#records:}/pages"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    loader = tmp_path / "native" / "concurve-load"
    loader.parent.mkdir()
    loader.write_text(LOADER, encoding="utf-8")
    loader.chmod(0o755)
    own = {
        "CONCURVE_REPORT": "9",
        "CONCURVE_NATIVE": str(loader.parent),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    return {**os.environ, **own}


def fill(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*packaged.command("fill", "here"), *words],
        env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


def test_it_is_filled_once_and_copied(tmp_path: Path, environment: dict[str, str]) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        done = fill(environment, str(folder), f"records:{folder}", "--scale", "2")
        assert done.returncode == 0, done.stderr
        assert (folder / "pages").read_text() == "pages\n"
    called = (tmp_path / "native" / "called").read_text().splitlines()
    assert called == [f"records:{tmp_path / 'first'} --scale 2 --init-only"]


def test_a_load_that_fails_is_told(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    done = fill(environment, str(folder), f"records:{folder}", "fail")
    assert done.returncode == 1
    assert "no such workload" in done.stderr
    assert "could not make its data (exit code 2): no such workload" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_wrong_usage_is_told(environment: dict[str, str]) -> None:
    for words in ([], ["/folder"], ["/folder", "records:/elsewhere"]):
        done = fill(environment, *words)
        assert done.returncode == 2 and "usage:" in done.stderr


def test_it_is_described_like_other_programs() -> None:
    assert packaged.describe("fill", "here")["path"].endswith("fill.py")
    assert packaged.command("fill", "here")[0] == sys.executable

"""The command that strikes faults in one pass, without the faults."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.clusters import FILE_VARIABLE, LINK_VARIABLE
from tests.hosts import test_faults as faults

FAILING = 1


@pytest.fixture
def struck(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The number and the seed of each fault; one of them is not as it must be."""
    found: list[tuple[int, int]] = []

    def faulted(number: int, seed: int, folder: Path, row: dict[str, Any]) -> None:
        found.append((number, seed))
        row |= {"number": number, "rig": "measuring", "kind": "head killed"}
        row |= {"gone_seconds": 0.25, "cut_off_seconds": 3.06}
        if number == FAILING:
            raise AssertionError("left 5 s after")
        row["is_resumed"] = True

    monkeypatch.setattr(faults, "faulted", faulted)
    return found


def test_a_pass_goes_on_after_a_fault_that_failed_and_says_so(
    struck: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    words = ["test_faults", "--count", "3", "--seed", "7", "--log", str(log)]
    monkeypatch.setattr(sys, "argv", words)
    assert faults.main() == 1
    assert struck == [(0, 7), (1, 7), (2, 7)]
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| measuring | head killed | 3 | 0 |  | 0 | 0.2 | 3.1 | 2 |"
    assert lines[-1].startswith("3 faults in one pass of ")
    assert lines[-1].endswith("seed 7: FAILED: 1")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row.get("failed", "") for row in rows] == ["", "AssertionError: left 5 s after", ""]


def test_one_is_struck_again(
    struck: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["test_faults", "--count", "1", "--first", "4"])
    assert faults.main() == 0
    assert struck == [(4, faults.SEED)]


@pytest.fixture
def over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults strike the hosts of a file, whose networks nobody takes down."""
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "lab.toml"))
    monkeypatch.delenv(LINK_VARIABLE, raising=False)


def test_faults_of_a_network_that_no_command_takes_down_are_left_out_with_the_reason(
    struck: list[tuple[int, int]],
    over_a_file: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those of links on the hosts of a file; Ray's are struck there, whatever is installed here."""
    words = ["test_faults", "--first", "12", "--count", "6"]
    monkeypatch.setattr(sys, "argv", words)
    assert faults.main() == 0
    assert [number for number, _ in struck] == [12, 13, 15, 17]
    said = capsys.readouterr().out
    assert (
        f"2 faults were left out: no command takes down the network of a host: {LINK_VARIABLE}"
        in said
    )
    assert [faults.fault_of(number)[1] for number in (14, 16)] == ["link down", "link back"]


def test_a_command_that_takes_networks_down_lets_them_be_struck(
    struck: list[tuple[int, int]], over_a_file: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["test_faults", "--first", "14", "--count", "1"]
    monkeypatch.setattr(sys, "argv", words)
    assert faults.main() == 1, "none was struck"
    monkeypatch.setenv(LINK_VARIABLE, "switch {host} {state}")
    assert faults.main() == 0
    assert struck == [(14, faults.SEED)]

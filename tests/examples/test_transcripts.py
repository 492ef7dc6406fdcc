"""The page of transcripts: its markers, its commands, and the script that writes it."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from concurve.cli import app
from tests.helpers.commands import command_lines
from tests.helpers.real import missing

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "write_transcripts.py"
PAGE = ROOT / "docs" / "transcripts.md"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="not a checkout")


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_transcripts", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script() if SCRIPT.exists() else ModuleType("write_transcripts")


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture
def process() -> Iterator[int]:
    """The number of a process that could be attached."""
    sleeping = subprocess.Popen(["sleep", "600"])
    yield sleeping.pid
    sleeping.kill()
    sleeping.wait()


def test_the_page_has_a_transcript_of_each_first_job_with_its_output() -> None:
    found = {item.name: item for item in script.transcripts(page())}
    names = ["clone", "own-program", "own-redis", "document-000", "document-002"]
    assert list(found) == names
    for item in found.values():
        text = page()[item.begin : item.end]
        assert len(text.splitlines()) > 4 + len(item.commands), f"{item.name} has no output"


def test_the_measurements_of_the_page_can_be_planned(
    process: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if reason := missing():
        pytest.skip(reason)
    (tmp_path / "primes.jar").touch()  # the page has a user build it before
    monkeypatch.chdir(tmp_path)
    planned = 0
    for item in script.transcripts(page()):
        for words in command_lines("\n".join(item.commands)):
            verb, *rest = (word.replace("$(cat redis.pid)", str(process)) for word in words[1:])
            if verb in ("sweep", "run"):
                app([verb, "--dry-run", *rest], standalone_mode=False)
                assert "order of the first block" in capsys.readouterr().out
                planned += 1
    assert planned == 4


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("<!-- end of own-redis", "<!-- and of own-redis"), "markers"),
        (("<!-- transcript own-redis -->", "<!-- transcript own-redes -->"), "markers"),
        (("<!-- transcript own-redis -->\n```console", "<!-- transcript own-redis -->\n```"),
         "markers"),
    ],
)  # fmt: skip
def test_a_broken_marker_is_noticed(change: tuple[str, str], error: str) -> None:
    broken = page().replace(*change)
    assert broken != page()
    with pytest.raises(ValueError, match=error):
        script.transcripts(broken)


def test_a_transcript_without_a_command_is_noticed() -> None:
    text = "<!-- transcript a -->\n```console\nprinted\n```\n<!-- end of a -->\n"
    with pytest.raises(ValueError, match="no command"):
        script.transcripts(text)


def test_what_commands_print_stands_under_them_and_they_stay() -> None:
    commands = ("x=1", "printf 'a\\n\\nb'", "echo $x $PWD/a $PWD; echo no >&2")
    printed, seconds = script.run(commands)
    text = script.shown("sample", commands, printed, seconds)
    lines = text.splitlines()
    assert lines[:8] == [
        "<!-- transcript sample -->", "```console", "$ x=1", "$ printf 'a\\n\\nb'", "a", "", "b",
        "$ echo $x $PWD/a $PWD; echo no >&2",
    ]  # fmt: skip
    assert lines[8:10] == ["1 a ~", "```"]
    (item,) = script.transcripts(f"before\n{text}\nafter")
    assert item.commands == commands


def test_a_command_that_fails_and_a_shell_that_ends_are_errors() -> None:
    with pytest.raises(script.FailedError, match="exit code 3: sh -c 'exit 3'"):
        script.run(["true", "sh -c 'exit 3'"])
    with pytest.raises(script.FailedError, match="ended within: exit 0"):
        script.run(["exit 0", "echo b"])

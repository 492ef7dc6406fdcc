"""The manual pages: one for each verb, complete, and clean for the programs that show them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from concurve.cli import app
from concurve.version import __version__
from tests.helpers.wheels import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "scripts").exists(), reason="not a checkout")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every page, as a wheel gets it."""
    folder = tmp_path_factory.mktemp("man")
    script = ROOT / "scripts" / "man_pages.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True)
    return folder


def verbs(command: click.Command, name: str) -> dict[str, click.Command]:
    """A command and everything below it, by the names of their pages."""
    found = {name: command}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for verb in command.list_commands(context):
            below = command.get_command(context, verb)
            assert below is not None
            found |= verbs(below, f"{name}-{verb}")
    return found


VERBS = verbs(app, "concurve")


def test_there_is_a_page_for_each_verb_and_none_else(folder: Path) -> None:
    assert {file.name for file in folder.iterdir()} == {f"{name}.1" for name in VERBS}


@pytest.mark.parametrize("name", VERBS)
def test_a_page_has_every_option_with_its_help(folder: Path, name: str) -> None:
    text = (folder / f"{name}.1").read_text().replace("\\-", "-").replace("\\e", "\\")
    assert f"concurve {__version__}" in text
    for option in VERBS[name].params:
        if isinstance(option, click.Option):
            assert all(written in text for written in (*option.opts, option.help or ""))


@pytest.mark.parametrize("name", VERBS)
def test_a_page_shows_the_help_text_as_it_stands(folder: Path, name: str) -> None:
    if shutil.which("man") is None:
        pytest.skip("man is missing: apt-get install man-db")
    done = subprocess.run(
        ["man", "--warnings=all", "--local-file", str(folder / f"{name}.1")],
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    shown = set(done.stdout.split())
    for line in (VERBS[name].help or "").replace("\b", "").splitlines():
        if line.startswith("  "):  # an example: its line is kept
            assert f"       {line}\n" in done.stdout
        assert set(line.split()) <= shown, "hyphenated or lost"

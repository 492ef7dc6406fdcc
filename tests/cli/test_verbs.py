"""The verbs: each is found, a misspelt one is named, and none pays for another."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from concurve.cli import VERBS, app
from concurve.cli.grouped import Grouped

ROOT = Path(__file__).resolve().parents[2]

#: The name in a requirement.
_NAME = re.compile(r"[\w-]+")


def modules_after(*words: str) -> set[str]:
    """The packages that Python has imported when a command has ended, the laboratory's whole."""
    code = (
        "import sys\n"
        "from concurve.cli import main\n"
        f"sys.argv = {['concurve', *words]!r}\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_module_and_a_help_text(verb: str) -> None:
    command = app.get_command(click.Context(app), verb)
    assert command is not None
    assert command.name == verb
    if verb != "load":  # passes --help on to its program
        done = CliRunner().invoke(app, [verb, "--help"])
        assert done.exit_code == 0
        assert f"Usage: concurve {verb}" in done.output
        assert max(map(len, done.output.splitlines())) <= 80, "as wide as a terminal mostly is"


@pytest.mark.parametrize("verb", ["sweep", "run"])
def test_a_long_help_has_each_option_once_below_a_heading(verb: str) -> None:
    command = app.get_command(click.Context(app), verb)
    assert isinstance(command, Grouped)
    context = click.Context(command, info_name=verb, **command.context_settings)
    grouped = list(command.grouped(context))
    shown = [item.name for _, options in grouped for item in options]
    options = [item.name for item in command.get_params(context) if isinstance(item, click.Option)]
    assert sorted(map(str, shown)) == sorted(map(str, options))
    help_text = CliRunner().invoke(app, [verb, "--help"]).output
    places = [help_text.index(f"\nOptions: {heading}\n") for heading, _ in grouped]
    assert places == sorted(places)
    for _, options_of_group in grouped:
        assert all(f"\n  {item.opts[0]}" in help_text for item in options_of_group[:-1])


def test_the_list_has_every_verb_in_the_order_in_which_one_needs_them() -> None:
    done = CliRunner().invoke(app, ["--help"])
    lines = done.output.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines if line[2:3] != " "] == list(VERBS)
    assert not [line for line in lines if line.endswith("...")], "no sentence is cut off"


def test_a_misspelt_verb_is_named_with_the_nearest_one() -> None:
    done = CliRunner().invoke(app, ["shwo"])
    assert done.exit_code == click.UsageError.exit_code
    assert "No such command 'shwo'. Did you mean 'show'?" in done.output


def test_the_version_needs_nothing_of_the_laboratory() -> None:
    """Every command and every completion pays for what is imported here."""
    modules = modules_after("--version")
    ours = {name for name in modules if name.partition(".")[0] == "concurve"}
    needed = {"cli", "cli.streams", "errors", "interruption", "version"}
    assert ours == {"concurve", *(f"concurve.{name}" for name in needed)}
    assert not modules & {"msgspec", "numpy", "rich", "sqlite3"}


def test_the_list_of_studies_needs_no_arrays_no_store_and_no_whole_study() -> None:
    modules = modules_after("studies")
    assert not modules & {"altair", "numpy", "pandas", "scipy", "sqlite3"}
    assert "concurve.definition.headings" in modules
    assert not modules & {"concurve.definition.study_file", "concurve.definition.study_check"}


def test_the_help_texts_need_what_a_build_of_the_wheel_has() -> None:
    """Manual pages are made from them where pip has installed the build requirements alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built_with = {_NAME.findall(text)[0] for text in project["build-system"]["requires"]}
    runs_with = {_NAME.findall(text)[0] for text in project["project"]["dependencies"]}
    loaded = {module.partition(".")[0] for module in modules_after("--help")}
    unwanted = {name.removesuffix("-python").replace("-", "_") for name in runs_with - built_with}
    assert len(unwanted) > 5
    assert loaded & unwanted == set()


def test_the_package_is_run_as_a_module() -> None:
    words = [sys.executable, "-P", "-m", "concurve", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("concurve "), done.stderr

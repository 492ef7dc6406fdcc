"""What the shells complete: the scripts, and what they get as answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from concurve.cli import VERBS, app, completing, show
from concurve.cli.completion import SHELLS, script
from concurve.definition import catalogue
from concurve.measuring.heads import new_head
from concurve.store import Store
from tests.helpers.fakes import small_study
from tests.helpers.real import CONCURVE, PATIENCE

#: Runs bash's completion of the words that follow, the last of them half typed.
COMPLETE_IN_BASH = """
compopt() { :; }  # it works inside a real completion alone
eval "$(concurve completion bash)"
COMP_WORDS=(concurve "$@") COMP_CWORD=$#
"_concurve_completion" concurve
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words: str) -> list[str]:
    """What bash offers."""
    done = subprocess.run(
        ["bash", "-c", COMPLETE_IN_BASH, "bash", *words],
        env={**os.environ, "PATH": f"{Path(CONCURVE).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_is_one_that_its_shell_can_read(shell: str) -> None:
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert done.output == script(app, shell)
    assert f"_CONCURVE_COMPLETE={shell}_complete" in done.output
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.output, text=True, check=True)


def test_bash_completes_every_verb() -> None:
    assert completed("") == list(VERBS)
    assert completed("com") == ["compare", "completion"]


def test_bash_completes_options_of_a_verb() -> None:
    expected = [name for p in show.verb.params for name in p.opts if name[:2] == "--"]
    assert set(completed("show", "--")) == {*expected, "--help"}


def test_bash_completes_the_packaged_studies() -> None:
    names = [entry.name for entry in [*catalogue.entries(), *catalogue.campaigns()]]
    assert completed("run", "") == names
    assert completed("run", names[0][:-1]) == [names[0]]


def test_bash_completes_stored_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCURVE_DB", str(tmp_path / "runs.db"))
    store = Store(str(tmp_path / "runs.db"))
    for seed in range(2):
        store.add_run(new_head(small_study(threads=(1, 2)), "normal", seed, "concurve …").row())
    ids = [row.id for row in store.runs()]
    store.close()
    assert completed("show", "") == ["last", *reversed(ids)]
    assert completed("compare", ids[0], ids[1]) == [ids[1]]


def test_where_no_run_can_be_read_none_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path / "missing.db", tmp_path):
        monkeypatch.setenv("CONCURVE_DB", str(path))
        assert completed("show", "") == ["last"]


def test_a_store_that_cannot_be_reached_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCURVE_DB", f"/{'x' * 300}/s.db")
    context = click.Context(show.verb)
    assert [item.value for item in completing.runs(context, show.verb.params[0], "")] == ["last"]


def test_a_shell_without_a_script_is_refused_by_name() -> None:
    done = CliRunner().invoke(app, ["completion", "tcsh"])
    assert done.exit_code == click.UsageError.exit_code
    assert all(word in done.output for word in ("tcsh", *SHELLS))

"""What the programs of a trial inherit."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from concurve.definition.beside_line import Beside
from concurve.definition.hiding import hidden
from concurve.definition.study_line import sweep_study
from concurve.engine.local import LocalEngine
from concurve.hosts import running
from concurve.hosts.running import RunningTrial
from concurve.secrets import PASSWORD_VARIABLE, Secrets
from concurve.wire import encode_spec
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.real import Lab, program

PASSWORD = "of-my-own-server"

#: A runner that says what it inherits.
_RUNNER = """#!/bin/sh
printf '{"inherited": "%s"}' "$CONCURVE_PASSWORD"
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "runner"
    made.write_text(_RUNNER, encoding="utf-8")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    return made


def test_a_trial_does_not_inherit_the_password_of_ones_own_server(runner: Path) -> None:
    assert LocalEngine(runner).probes() == {"inherited": ""}


def test_a_trial_on_a_host_does_not_either(
    runner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "runner_command", lambda: [str(runner)])
    spec = encode_spec(TrialSpec(trial="t", roles=(RoleSpec(name="target", argv=("true",)),)))
    trial = RunningTrial(spec, "t", tmp_path / "socket")
    stdout, _ = trial._process.communicate()
    assert stdout == b'{"inherited": ""}'


def test_a_role_that_names_the_variable_has_it() -> None:
    """The others do not; and what a role has of its own stays."""
    study = sweep_study(
        ["load", "--password-from", PASSWORD_VARIABLE, "{n}"],
        [("n", "1,2")],
        2,
        beside=Beside(server="serve {free_port}", ready="tcp:{free_port}"),
    )
    known = Secrets({PASSWORD_VARIABLE: PASSWORD})
    found = {role.name: role.env for role in hidden(study, known=known).roles}
    assert found == {"server": {}, "client": {PASSWORD_VARIABLE: "{secret:CONCURVE_PASSWORD}"}}
    assert known.reveal("{secret:CONCURVE_PASSWORD}") == PASSWORD
    assert hidden(study, known=Secrets({})).roles == study.roles, "there is none to give"
    own = {PASSWORD_VARIABLE: "{run_password}"}
    roles = tuple(msgspec.structs.replace(role, env=own) for role in study.roles)
    study = msgspec.structs.replace(study, roles=roles)
    assert {str(role.env) for role in hidden(study, known=known).roles} == {str(own)}


@pytest.mark.real
def test_a_load_reaches_the_server_that_a_study_starts(lab: Lab) -> None:
    """Where the password of another server is exported: once without any, once with its own."""
    serve = f"{program('concurve-server')} --port {{free_port}}"
    load = (program("concurve-load"), "redis://127.0.0.1:{free_port}", "--transactions", "9",
            "--sessions", "{n}")  # fmt: skip
    own = f"env {PASSWORD_VARIABLE}={PASSWORD} {serve}"
    for server, more in ((serve, ()), (own, ("--password-from", PASSWORD_VARIABLE))):
        done = lab.run(
            "sweep", "-P", "n", "1,2", "--repeats", "1..1", "--server", server,
            "--ready", "tcp:{free_port}", "--", *load, *more, CONCURVE_PASSWORD=PASSWORD,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

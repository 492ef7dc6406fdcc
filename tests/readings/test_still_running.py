"""Who kept a trial from its end that was stopped at its time limit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from concurve.definition.study import Role, Study
from concurve.readings.still_running import still_running
from concurve.wire.record import Outcome, RoleRecord, TrialRecord
from concurve.wire.spec import FORMAT
from tests.helpers.fakes import small_study


def study_of(*roles: Role, target: str = "client") -> Study:
    return msgspec.structs.replace(small_study(), roles=roles, target=target)


def stopped(**ended_by: str) -> TrialRecord:
    roles = tuple(
        RoleRecord(name=name.replace("_", "-"), ended_by=how) for name, how in ended_by.items()
    )
    outcome = Outcome(kind="timed_out", message="the time limit of 3 s passed")
    return TrialRecord(format=FORMAT, trial="r/0/0/0", outcome=outcome, roles=roles)


def role(name: str, **more: Any) -> Role:
    return Role(name=name, command=("true",), **more)


SERVER, CLIENT = role("server"), role("client")


@pytest.mark.parametrize("target", ["client", "server"])
def test_a_server_that_ran_on_after_its_client_is_named(target: str) -> None:
    said = still_running(
        study_of(SERVER, CLIENT, target=target), stopped(server="killed", client="itself")
    )
    assert said == 'role client had ended, and role server still ran, without end = "serve"'


def test_a_server_whose_loads_have_all_ended_is_named() -> None:
    study = study_of(SERVER, role("client", copies="2"))
    done = stopped(server="killed", client_1="itself", client_2="itself")
    assert "role client had ended" in still_running(study, done)
    part = stopped(server="killed", client_1="itself", client_2="killed")
    assert still_running(study, part) == ""


@pytest.mark.parametrize(
    ("roles", "ended_by"),
    [
        ((SERVER, CLIENT), {"server": "killed", "client": "killed"}),
        ((role("server", end="serve"), CLIENT), {"server": "killed", "client": "itself"}),
        ((role("fill"), role("client", after=("fill",))), {"fill": "itself", "client": "killed"}),
        ((role("fill", purpose="setup"), CLIENT), {"fill": "itself", "client": "killed"}),
        ((role("noise", purpose="background"), CLIENT), {"noise": "killed", "client": "itself"}),
        ((CLIENT,), {"client": "killed"}),
    ],
)
def test_where_no_server_has_lost_its_load_nobody_is_named(
    roles: tuple[Role, ...], ended_by: dict[str, str]
) -> None:
    assert still_running(study_of(*roles), stopped(**ended_by)) == ""

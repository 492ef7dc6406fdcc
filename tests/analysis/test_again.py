"""What to do about figures in doubt, where the run waited already."""

from __future__ import annotations

import pytest

from concurve.findings.again import run_again
from concurve.terms import Waiting

BUSY = {"pip": 40.0, "another concurve run": 30.0, "find": 9.0}


def waited(**busy: float) -> Waiting:
    return Waiting(seconds=300.0, before_seconds=65.0, times=2, busy_with=busy)


def test_what_the_hypervisor_took_is_no_reason_to_end_a_program() -> None:
    assert run_again(False, waited(**BUSY), is_stolen=True) == (
        "The run waited 65 s for quiet, and a longer wait does not help. Run again at another time "
        "or on another machine, or more --repeats."
    )


@pytest.mark.parametrize(
    ("constant", "how"),
    [
        (["python3 (PID 7)"], "End it, or lower its priority (renice -n 19 -p 7), and run again; "
         "concurve doctor lists what runs."),
        (["python3 (PID 7)", "cc1 (PID 9)"],
         "End them, or lower their priority (renice -n 19 -p 7 9),"),
        (["python3"], "(renice -n 19 -p PID)"),
        (["python3 (PID 7, nice 19)"], "Its priority is the lowest: end it, or stop it meanwhile "
         "(kill -STOP 7, afterwards kill -CONT 7), and run again."),
        (["python3 (PIDs 7, 9, nice 19)"], "Their priority is the lowest: end them, or stop them "
         "meanwhile (kill -STOP 7 9, afterwards kill -CONT 7 9),"),
        (["python3 (PID 7)", "cc1 (PID 9, nice 19)"], "End them, or stop them meanwhile "
         "(kill -STOP 7 9, afterwards kill -CONT 7 9),"),
    ],
)  # fmt: skip
def test_who_has_the_lowest_priority_is_to_be_stopped(constant: list[str], how: str) -> None:
    said = run_again(False, constant=constant)
    assert how in said


def test_a_low_priority_is_that_of_the_session_where_the_kernel_groups_them() -> None:
    """Which command lowers it depends on the session, which doctor sees."""
    said = run_again(False, constant=["python3 (PID 7)"], autogroups=True)
    assert "End it, or lower its priority, and run again; concurve doctor has the command" in said
    assert "renice" not in said
    of_other = run_again(False, constant=["python3 (PID 7, nice 19)"], autogroups=True)
    assert "End it, or stop it meanwhile (kill -STOP 7," in of_other
    assert "lowest" not in of_other, "not among sessions"


def test_a_server_that_may_be_loaded_is_to_be_attached_and_not_to_be_ended() -> None:
    """Who lowers the priority of the server, or ends it, has lost what was to be measured."""
    said = run_again(False, strangers=("postgres",), constant=("postgres (PID 7)",))
    assert said.startswith("If postgres is the server that this command loads, do not wait for it")
    assert said.index("--attach PID") < said.index("Else concurve doctor says what helps.")
    assert "renice" not in said and "End " not in said and "--wait-quiet" not in said
    # Another program that runs all the time is named as before, behind that.
    constant = ("postgres (PID 7)", "python3 (PID 9)")
    said = run_again(False, strangers=("postgres", "python3"), constant=constant)
    assert said.startswith("If postgres or python3 is the server")
    assert " python3 (PID 9) took CPU time in nearly all" in said
    assert "(renice -n 19 -p 9)" in said and "renice -n 19 -p 7" not in said
    # What is no known server, and nobody's stranger, may be ended.
    assert "renice -n 19 -p 7" in run_again(False, constant=("postgres (PID 7)",))
    said = run_again(False, strangers=("python3",), constant=("python3 (PID 9)",))
    assert said.index("renice -n 19 -p 9") < said.index("--attach PID")


def test_a_run_that_waited_for_the_server_it_loads_is_told_to_attach_it() -> None:
    said = run_again(False, waited(postgres=40.0), ("postgres",))
    assert said.startswith("If postgres is the server that this command loads")
    assert "a longer wait does not help. Attach it, or more --repeats." in said
    said = run_again(False, waited(postgres=40.0, pip=30.0), ("postgres",))
    assert "End what kept it busy (pip)" in said


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        (BUSY, "End what kept it busy (pip and find),"),
        (
            {"another concurve run": 30.0},
            "Another concurve run took most of the CPU time: measure after its end,",
        ),
        ({"pip": 40.0}, "End what kept it busy (pip),"),
    ],
)
def test_another_run_of_the_laboratory_is_waited_for_and_not_ended(
    busy: dict[str, float], said: str
) -> None:
    assert f" {said} or more --repeats." in run_again(False, waited(**busy))

"""What a stopped trial printed last."""

from __future__ import annotations

import msgspec

from concurve.readings.last_printed import last_printed
from concurve.wire.record import Outcome, Output, TrialRecord
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.fakes import record_of


def record(*roles: tuple[str, str, str], blamed: str | None = None) -> TrialRecord:
    """Roles with what they printed to standard output and standard error."""
    spec = TrialSpec(
        trial="r/0/0/0", roles=tuple(RoleSpec(name=it[0], argv=("x",)) for it in roles)
    )
    made = record_of(spec, 1.0, "timed_out")
    said = tuple(
        msgspec.structs.replace(
            role,
            stdout=Output(bytes=len(out), head=out),
            stderr=Output(bytes=len(err), head=err),
            ended_by="killed",
        )
        for role, (_, out, err) in zip(made.roles, roles, strict=True)
    )
    outcome = Outcome(kind="timed_out", message="fake", role=blamed)
    return msgspec.structs.replace(made, roles=said, outcome=outcome)


def test_of_one_program_the_last_line_is_quoted_that_is_not_empty() -> None:
    one = record(("target", "ready\n", "waiting\nstill waiting \n\n"))
    assert last_printed(one, "target") == "the program last printed 'still waiting'"
    silent_error = record(("target", "ready\n", "\n"))
    assert last_printed(silent_error, "target") == "the program last printed 'ready'"
    assert last_printed(record(("target", "", "")), "target") == ""


def test_of_several_the_blamed_one_comes_first_then_the_target_then_any() -> None:
    roles = (("server", "up\n", ""), ("load", "", "no route\n"))
    assert last_printed(record(*roles), "load") == "role load last printed 'no route'"
    assert last_printed(record(*roles, blamed="server"), "load") == "role server last printed 'up'"
    silent = (("server", "up\n", ""), ("load", "", ""))
    assert last_printed(record(*silent), "load") == "role server last printed 'up'"


def test_a_long_line_is_cut() -> None:
    assert len(last_printed(record(("target", "x" * 1000, "")), "target")) < 250


def test_the_line_that_says_why_goes_before_what_was_printed_after_it() -> None:
    printed = "Could not connect to db: Connection refused\nWARNING: no CONFIG\n"
    said = last_printed(record(("target", "", printed)), "target")
    assert said == "the program printed 'Could not connect to db: Connection refused'"

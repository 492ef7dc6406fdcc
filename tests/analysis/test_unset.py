"""Levels that a hook was to set, though it told of an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from concurve.analysis.unset import Unset, unset_of
from concurve.definition.study import Hooks, Role, Rules
from concurve.findings.run import TrialFindings
from concurve.planning.plan import make_plan
from concurve.wire.record import HookRecord, Output, TrialRecord
from tests.analysis.message_kinds import KINDS, sentences_of
from tests.helpers.fakes import small_study

REFUSED = "ERR CONFIG SET failed - can't set immutable config"


def unset(
    hooks: Hooks,
    hook: str = "prepare",
    printed: str = REFUSED,
    command: tuple[str, ...] = ("redis-benchmark",),
    **factors: tuple[int, ...],
) -> Unset | None:
    study = small_study(Rules(), **(factors or {"io-threads": (1, 4)}))
    load = Role(name="target", command=command)
    plan = make_plan(msgspec.structs.replace(study, hooks=hooks, roles=(load,)), "quick", seed=1)
    said = HookRecord(hook=hook, stdout=Output(bytes=len(printed), head=printed))
    return unset_of(plan, record(said))


def record(*hooks: HookRecord) -> TrialRecord:
    """The part of a record that is read."""
    return cast(TrialRecord, SimpleNamespace(hooks=hooks))


def test_what_the_hook_was_to_set_is_named_with_what_it_printed() -> None:
    found = unset(Hooks(prepare="redis-cli config set io-threads {io-threads}"))
    assert found is not None and found.factors == ("io-threads",)
    assert found.answer == (
        "io-threads was probably not set, so that its levels were alike, and none of them is "
        f'recommended: the hook prepare printed "{REFUSED}" and exited with 0.'
    )


@pytest.mark.parametrize(
    ("hooks", "hook", "printed"),
    [
        (Hooks(prepare="redis-cli flushall"), "prepare", REFUSED),  # it sets no level
        (Hooks(conclude="redis-cli get {io-threads}"), "conclude", REFUSED),  # too late to set one
        (Hooks(prepare="redis-cli config set io-threads {io-threads}"), "prepare", "OK"),
    ],
)
def test_other_hooks_leave_the_levels_as_they_are(hooks: Hooks, hook: str, printed: str) -> None:
    assert unset(hooks, hook, printed) is None


def test_what_the_command_names_reaches_the_program_all_the_same() -> None:
    hooks = Hooks(prepare="mkdir out-{io-threads} || true")
    printed = "mkdir: cannot create directory 'out-1': File exists"
    assert unset(hooks, printed=printed, command=("serve", "{io-threads}")) is None
    assert unset(hooks, printed=printed) is not None
    assert unset(hooks, printed="gcc -Wall -Werror -O2 app.c") is None, "an option, and no error"


def test_a_factor_of_one_level_is_none_that_was_to_be_set() -> None:
    hooks = Hooks(prepare="set {clients} {io-threads}")
    factors: dict[str, Any] = {"io-threads": (1, 4), "clients": (8,)}
    found = unset(hooks, **factors)
    assert found is not None and found.factors == ("io-threads",)


def test_no_setting_is_recommended_and_nothing_asked_twice() -> None:
    findings = KINDS["hook-that-set-no-level"][0]()
    assert isinstance(findings, TrialFindings)
    assert all(item.recommended is None and item.doubt for item in findings.best)
    said = [item.sentence for item in sentences_of("hook-that-set-no-level")]
    assert said[0].startswith("threads was probably not set")
    assert not any("did it do its work" in text or "Use " in text for text in said)

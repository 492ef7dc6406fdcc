"""Controls: from text to the spec of the runner."""

from __future__ import annotations

import subprocess

import pytest

from concurve.definition.controls import ControlsTemplate, parse_cpus, parse_nice, parse_policy
from concurve.definition.templates import Value
from concurve.errors import ConcurveError, HostError, StudyError
from concurve.wire import encode_spec
from concurve.wire.spec import Controls, Policy, RoleSpec, TrialSpec
from tests.helpers.real import program

ALLOWED = (2, 3, 6, 7)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("1", (2,)), ("2", (2, 3)), ("4", ALLOWED), ("all", ALLOWED), ("2,7", (2, 7)),
     ("2-3,6", (2, 3, 6)), ("7,2", (2, 7)), ("6,", (6,)), (" 2 ", (2, 3))],
)  # fmt: skip
def test_a_count_takes_the_first_allowed_and_a_list_is_taken_as_it_is(
    text: str, cpus: tuple[int, ...]
) -> None:
    assert parse_cpus(text, ALLOWED, "--cpus") == cpus


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("5", HostError, "5 CPUs asked for, 4 granted"),
        ("0,2", HostError, "CPU 0 is not among those"),
        ("2-4", HostError, "CPU 4 is not among those"),
        ("0-1000000000", HostError, "CPU 0, 1, 4, 5, 8, 9, 10, 11 is not among those"),
        ("0", StudyError, "0 CPUs"),
        ("two", StudyError, "neither a count nor a list"),
        ("3-2", HostError, "CPU 3-2 is not among"),
        ("-1", StudyError, "neither a count nor a list"),
        ("", StudyError, "neither a count nor a list"),
    ],
)
def test_cpus_that_are_not_there_are_refused(
    text: str, kind: type[ConcurveError], says: str
) -> None:
    with pytest.raises(kind) as refused:
        parse_cpus(text, ALLOWED, "cpus=5: role target cpus")
    assert refused.value.what.startswith("cpus=5: role target cpus: ")
    assert says in refused.value.what
    assert refused.value.remedy


def test_nice_values() -> None:
    assert [parse_nice(text, "") for text in ("-20", "0", "+5", "19", " 3 ")] == [-20, 0, 5, 19, 3]
    for text in ("20", "-21", "low", "1.5", ""):
        with pytest.raises(StudyError, match=r"--nice: .* is no nice value"):
            parse_nice(text, "--nice")


def test_policies() -> None:
    assert parse_policy("batch", "") == Policy(class_="batch")
    assert parse_policy("fifo:10", "") == Policy(class_="fifo", priority=10)
    assert parse_policy("rr:99", "") == Policy(class_="rr", priority=99)


@pytest.mark.parametrize(
    ("text", "says"),
    [("fast", "'fast' is no scheduling policy"), ("fifo", "needs a priority"),
     ("rr:0", "needs a priority"), ("fifo:100", "needs a priority"),
     ("other:3", "takes no priority"), ("deadline", "is no scheduling policy"),
     ("FIFO:1", "is no scheduling policy")],
)  # fmt: skip
def test_a_bad_policy_is_refused(text: str, says: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_policy(text, "--policy")
    assert says in refused.value.what
    assert refused.value.remedy


def test_placeholders_are_resolved_for_each_cell() -> None:
    template = ControlsTemplate(cpus="{cpus}", nice="{nice}", policy="fifo:{priority}")
    values: dict[str, Value] = {"cpus": 2, "nice": "", "priority": 7}
    assert template.resolve(values, ALLOWED, "cell") == Controls(
        cpus=(2, 3), policy=Policy(class_="fifo", priority=7)
    )
    template = ControlsTemplate(nice="{nice}", policy="batch")
    assert template.resolve({"nice": -5}, ALLOWED, "cell") == Controls(
        nice=-5, policy=Policy(class_="batch")
    )
    assert ControlsTemplate().resolve({}, ALLOWED, "cell") == Controls(), "nothing given: inherited"


@pytest.mark.parametrize("policy", ["idle", "fifo:10", "rr:1"])
def test_a_nice_value_without_effect_is_refused(policy: str) -> None:
    with pytest.raises(StudyError) as refused:
        ControlsTemplate(nice="0", policy=policy).resolve({}, ALLOWED, "role target")
    said = f"role target: a nice value (0) has no effect under the policy {policy}"
    assert refused.value.what == said
    assert "one of the two" in refused.value.remedy


@pytest.mark.real
@pytest.mark.parametrize("policy", ["other", "batch", "idle", "fifo:10", "rr:1"])
def test_the_runner_refuses_the_same_nice_values(policy: str) -> None:
    """What the plan lets pass must not end the run at its first trial."""
    try:
        ControlsTemplate(nice="5", policy=policy).resolve({}, ALLOWED, "role target")
        is_refused = False
    except StudyError:
        is_refused = True
    controls = Controls(nice=5, policy=parse_policy(policy, ""))
    spec = TrialSpec(trial="t", roles=(RoleSpec(name="target", argv=("true",), controls=controls),))
    done = subprocess.run(
        [program("concurve-trial"), "check"],
        input=encode_spec(spec),
        capture_output=True,
        check=False,
    )
    assert (b"invalid spec" in done.stderr) == is_refused, done.stderr

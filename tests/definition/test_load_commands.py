"""The placeholders of the load generator in the commands that it sends."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from concurve.definition.load_commands import OF_LOAD, load_commands_before
from concurve.definition.study import Study, choose_work
from concurve.definition.study_file import parse_study
from concurve.definition.study_line import sweep_study
from concurve.errors import StudyError
from concurve.planning.plan import make_plan, trial_spec
from tests.helpers import real

SENT = "SET user:{n} {n:8}{key}{value}{session}{count}{run}"


def sent_by(study: Study) -> list[str]:
    """The arguments of the measured role in the trials of the cells."""
    plan = make_plan(study, "normal", seed=1)
    specs = [trial_spec(plan, cell, "t", range(2), lambda *_: ("load",)) for cell in plan.cells]
    return [" ".join(spec.roles[-1].argv) for spec in specs]


def sweep_of(*words: str, parameters: tuple[tuple[str, str], ...]) -> Study:
    return sweep_study([*words, "redis://h:1", "--sessions", "{clients}"], parameters, 2)


@pytest.mark.parametrize(
    "words",
    [
        ("concurve", "load"),
        ("taskset", "-c", "1", "/opt/bin/concurve-load"),
        ("env", "A=1", "concurve", "load"),
    ],
)
@pytest.mark.parametrize("given", [("--command", SENT), (f"--command={SENT}",)])
def test_the_own_placeholders_of_a_load_reach_it(
    words: tuple[str, ...], given: tuple[str, ...]
) -> None:
    study = sweep_of(*words, *given, parameters=(("clients", "1,8"),))
    one, eight = sent_by(study)
    assert SENT in one and SENT in eight
    assert one.endswith("--sessions 1") and eight.endswith("--sessions 8")
    assert load_commands_before(study) == ""


def test_a_parameter_of_that_name_comes_first_and_is_said() -> None:
    command = ("--command", "GET user:{n}:{{n}}:{key}")
    study = sweep_of("concurve", "load", *command, parameters=(("clients", "1"), ("n", "5,6")))
    assert ["GET user:5:{n}:{key}" in sent_by(study)[0], "GET user:6" in sent_by(study)[1]] == [
        True, True,
    ]  # fmt: skip
    assert load_commands_before(study) == (
        "{n} in a --command is the parameter n, and {{n}} the load's own"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("./mine", "--command", "GET {n}"),
        ("concurve", "load", "--keys", "{n}"),
        ("concurve", "load", "--command", "GET {bogus}"),
    ],
)
def test_any_other_placeholder_needs_a_parameter(words: tuple[str, ...]) -> None:
    with pytest.raises(StudyError, match="has no parameter"):
        sweep_of(*words, parameters=(("clients", "1"),))


def test_a_load_of_a_study_file_has_its_own_placeholders_too() -> None:
    text = """
        [study]
        name = "s"
        question = "?"
        [factors]
        clients = [1, 2]
        [[roles]]
        name = "target"
        program = "load"
        arguments = ["redis://h:1", "--sessions", "{clients}", "--command", "GET {key}"]
    """
    assert "--command GET {key}" in sent_by(parse_study(text, 2, "s.toml"))[0]


@pytest.mark.parametrize("given", ["--rate={rate}", "--rate {rate}", "--rate {rate}%"])
def test_the_rate_that_a_load_is_asked_for_is_a_condition(given: str) -> None:
    """No rate is recommended: the answer is the figure at each."""
    words = ("concurve", "load", "redis://h:1", *given.split())
    levels = (("rate", "11000,22000"),)
    study = sweep_study(words, levels, 2, primary="service_ns_p99:lower")
    assert (study.conditions, choose_work(study)) == (("rate",), None)
    assert sweep_study(words, levels, 2, conditions=["none"]).conditions == ()
    other = sweep_study(("./mine", *given.split()), levels, 2)
    assert other.conditions == (), "of another program it may be chosen"
    both = sweep_study((*words, "--sessions", "{clients}"), (*levels, ("clients", "1,8")), 2)
    assert (both.conditions, choose_work(both)) == (("rate",), "clients")


@pytest.mark.real
def test_the_load_generator_knows_these_placeholders(tmp_path: Path) -> None:
    asked = (real.program("concurve-load"), f"{tmp_path}/s", "--command", "GET {no}")
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stderr
    (known,) = re.findall(r"there are (.*)", said)
    assert sorted(known.split(", ")) == sorted(OF_LOAD)

"""A form means one command line, and none of its values another one."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest

from concurve.cli import app
from concurve.definition.levels import parse_levels
from concurve.errors import StudyError
from concurve.terms import Level
from concurve.web import forms
from concurve.web.forms import Parameter, ResumeForm, StudyForm, SweepForm

#: The boxes of the forms, ticked.
TICKED: dict[str, Any] = {"measure_anyway": True}


def parsed(words: list[str]) -> dict[str, Any]:
    """What the command line makes of the words."""
    command = app.get_command(click.Context(app), words[0])
    assert command is not None
    return command.make_context(words[0], words[1:]).params


def test_a_sweep_as_it_is_typed() -> None:
    form = SweepForm(
        command="./mine --threads {threads} 'two words'",
        parameters=(Parameter("threads", "1,2,4"), Parameter("cpus", "1,2")),
        effort="quick",
        extract="pgbench\nr=(\\d+):1/s:higher\n",
        max_time="20m",
    )
    assert forms.sweep_words(form) == [
        "sweep", "-P", "threads", "1,2,4", "-P", "cpus", "1,2", "--extract=pgbench",
        "--extract=r=(\\d+):1/s:higher", "--effort=quick", "--max-time=20m", "--",
        "./mine", "--threads", "{threads}", "two words",
    ]  # fmt: skip


def test_every_field_of_a_sweep_reaches_its_option() -> None:
    names = [*forms._OF_SWEEP, *forms._PROTOCOL]
    given: dict[str, Any] = (
        {name: f"--{name}" for name in names} | {"effort": "quick", "seed": "7"} | TICKED
    )
    form = forms.decode(json.dumps({"command": "x", **given}).encode(), SweepForm)
    found = parsed(forms.sweep_words(form))
    renamed = {"extract": "extracts", "condition": "conditions", "secret": "secrets"}
    for name, value in given.items():
        got = found[renamed.get(name, name)]
        assert str(got[0] if isinstance(got, tuple) else got) == str(value), name
    assert found["command"] == ("x",) and not found["dry_run"]


def test_every_field_of_a_study_reaches_its_option() -> None:
    names = [*forms._OF_STUDY, *forms._PROTOCOL]
    given: dict[str, Any] = (
        {name: f"--{name}" for name in names} | {"effort": "rigorous", "seed": "7"} | TICKED
    )
    levels = {"threads": "1,2", "sync": ""}
    content = {"study": "thread-scaling", "levels": levels, **given}
    form = forms.decode(json.dumps(content).encode(), StudyForm)
    found = parsed(forms.study_words(form))
    for name, value in given.items():
        got = found["secrets" if name == "secret" else name]
        assert str(got[0] if isinstance(got, tuple) else got) == str(value), name
    assert found["study"] == "thread-scaling" and found["levels"] == ("threads=1,2",)


@pytest.mark.parametrize("value", ["--db=/etc/x", "-P", "--", "-h", "--dry-run"])
def test_no_value_is_read_as_an_option(value: str) -> None:
    form = SweepForm(command="true", parameters=(Parameter(value, value),), name=value, cpus=value)
    found = parsed(forms.sweep_words(form))
    assert found["parameters"] == ((value, value),)
    assert found["name"] == value and found["cpus"] == value
    assert found["db"] is None and found["command"] == ("true",)


def test_a_box_that_is_not_ticked_is_no_option() -> None:
    assert forms.sweep_words(SweepForm(command="true", measure_anyway=False)) == [
        "sweep",
        "--",
        "true",
    ]


def test_resuming() -> None:
    assert forms.resume_words("20261123-0912", ResumeForm()) == ["resume", "20261123-0912"]
    words = forms.resume_words("20261123-0912", ResumeForm(max_time="2h"))
    assert parsed(words)["max_time"] == "2h"


@pytest.mark.parametrize(
    ("form", "says"),
    [
        (SweepForm(command=""), "no command"),
        (SweepForm(command="'open"), "cannot be split"),
        (SweepForm(command="a\0b"), "NUL"),
        (SweepForm(command="\ud800"), "UTF-8"),
        (SweepForm(command="x", parameters=(Parameter("", "1"),)), "no name"),
        (SweepForm(command="x", parameters=(Parameter("n", " "),)), "no levels"),
        (SweepForm(command="x", env="\n".join(["A=1"] * 600)), "options"),
    ],
)
def test_a_sweep_that_means_no_command_line(form: SweepForm, says: str) -> None:
    with pytest.raises(StudyError, match=says) as raised:
        forms.sweep_words(form)
    assert raised.value.remedy


@pytest.mark.parametrize("study", ["", " ", "--copy", "-h"])
def test_a_study_that_is_none(study: str) -> None:
    with pytest.raises(StudyError):
        forms.study_words(StudyForm(study=study))


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"\xff\xfe", b'{"command": 1}', b'{"command": "x", "db": "other"}',
     b'{"command": "x", "parameters": [{"name": "n"}]}', b"[" * 9000,
     json.dumps({"command": "x", "effort": None}).encode()],
)  # fmt: skip
def test_a_malformed_form_is_refused(body: bytes) -> None:
    with pytest.raises(StudyError, match="form cannot be read"):
        forms.decode(body, SweepForm)


def test_more_trials_of_a_cell_are_a_run_of_it_alone() -> None:
    setting: dict[str, Level] = {"threads": 4, "sync": "none", "ratio": 0.5}
    found = parsed(forms.more_words("20261123-0912", "quick", setting, 12))
    assert found["study"] == "run:20261123-0912" and found["repeats"] == "12"
    assert found["levels"] == ("threads=4", "sync=none", "ratio=0.5")
    assert found["effort"] == "quick"


@pytest.mark.parametrize("level", ["4", "3.10", "007", "awk -F, x", "1,2", "a=b", -1, 0.5])
def test_more_trials_of_a_level_as_it_was_written(level: Level) -> None:
    """The run that is begun has this level alone, and its program gets the same text."""
    (option,) = parsed(forms.more_words("20261123-0912", "quick", {"n": level}, 5))["levels"]
    name, _, levels = option.partition("=")
    assert [name, *map(str, parse_levels(levels, 1, "--set"))] == ["n", str(level)]


@pytest.mark.parametrize(
    ("setting", "trials"),
    [({"n": 1}, 1), ({"n": 1}, 10_000), ({"n": "1..4"}, 5), ({"n": ""}, 5), ({"n": " "}, 5),
     ({"n": "50%"}, 5), ({"a=b": 1}, 5), ({"n": " x "}, 5), ({"n": "1..9*"}, 5)],
)  # fmt: skip
def test_more_trials_that_would_be_of_another_cell(setting: dict[str, Level], trials: int) -> None:
    """A text that the command line reads as other levels is refused."""
    with pytest.raises(StudyError) as raised:
        forms.more_words("20261123-0912", "normal", setting, trials)
    assert raised.value.remedy

"""Which parameter of a sweep counts workers, and which are conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.definition.controls import ControlsTemplate
from concurve.definition.study import choose_work
from concurve.definition.study_file import load_study, states_conditions
from concurve.definition.study_line import sweep_study
from concurve.definition.sweep_factors import conditions_before, with_conditions
from concurve.errors import StudyError
from concurve.terms import Level
from tests.helpers.fakes import small_study

#: Parameters that set nothing but a control.
CONTROLS = {"cpus": "cpus", "cores": "cpus", "nice": "nice"}


def roles(*parameters: tuple[str, str], **more: Any) -> tuple[str | None, tuple[str, ...]]:
    command = [
        "true",
        *("{" + name + "}" for name, _ in parameters if name not in CONTROLS),
    ]
    if controls := {CONTROLS[n]: "{" + n + "}" for n, _ in parameters if n in CONTROLS}:
        more["controls"] = ControlsTemplate(**controls)
    study = sweep_study(command, parameters, 4, **more)
    return choose_work(study), study.conditions


MODE = ("mode", "cpu,lock")


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ((("n", "1,2,4"), MODE), ("n", ("mode",))),
        ((MODE, ("n", "1,2,4")), ("n", ("mode",))),
        ((("threads", "1,2"), ("size", "100,200")), ("threads", ("size",))),
        ((("size", "1000,2000"), ("n", "1,2,4")), ("n", ("size",))),
        ((("size", "1,2"), ("num_threads", "1,2")), ("num_threads", ("size",))),
        ((("size", "1,2"), ("GOMAXPROCS", "1,2")), ("GOMAXPROCS", ("size",))),
        ((("batch", "8,16"), ("nr-workers", "8,16")), ("nr-workers", ("batch",))),
        ((("worker_processes", "1,2"), ("size", "1,2")), ("worker_processes", ("size",))),
        ((("rows", "1,2"), ("max-pool-threads", "1,2")), ("max-pool-threads", ("rows",))),
        ((("rate", "0.5,1.0"), ("n", "1,2")), ("n", ("rate",))),
        ((("n", "1,2"), ("cpus", "1,2")), ("n", ())),
        ((("n", "1,2"), ("nice", "0,5"), MODE), ("n", ("mode",))),
        ((MODE, ("version", "old,new")), (None, ())),
        ((("threads", "4"), ("clients", "1,2")), ("clients", ("threads",))),
        ((("threads", "1,2"), ("cores", "1,2")), ("threads", ())),
        ((("n", "1,2"),), ("n", ())),
        ((MODE,), (None, ())),
    ],
)
def test_they_are_found_by_names_levels_and_use(
    parameters: tuple[tuple[str, str], ...], expected: tuple[str | None, tuple[str, ...]]
) -> None:
    assert roles(*parameters) == expected


@pytest.mark.parametrize(
    ("levels", "more", "found", "said"),
    [
        ({"workers": (1, 2), "keys": ("hot", "cold")}, {}, ("keys",), "keys is taken for a cond"),
        ({"workers": (1, 2), "a": (1, 2), "b": (1, 2)}, {}, ("a", "b"), "a and b are taken for c"),
        ({"workers": (1, 2), "keys": ("hot",)}, {}, ("keys",), ""),
        ({"workers": (1,), "keys": ("hot", "cold")}, {}, (), ""),
        ({"workers": (1, 2)}, {}, (), ""),
        ({"mode": ("x", "y"), "keys": ("hot", "cold")}, {}, (), ""),
        ({"workers": (1, 2), "keys": ("hot", "cold")}, {"base": {"keys": "hot"}}, (), ""),
    ],
)
def test_a_study_file_that_says_nothing_of_conditions_has_those_of_a_sweep(
    levels: dict[str, tuple[Level, ...]], more: dict[str, Any], found: tuple[str, ...], said: str
) -> None:
    study = with_conditions(msgspec.structs.replace(small_study(None, **levels), **more))
    assert study.conditions == found
    told = conditions_before(study, "quick")
    assert told.startswith(said)
    assert ("; conditions = [] in [protocol] if you choose them" in told) is bool(said)


def test_controls_that_a_study_file_varies_are_chosen() -> None:
    study = small_study(workers=(1, 2), cores=(1, 2))
    controls = ControlsTemplate(cpus="{cores}")
    role = msgspec.structs.replace(study.roles[0], command=("true", "{workers}"), controls=controls)
    study = msgspec.structs.replace(study, roles=(role,))
    assert with_conditions(study).conditions == ()


@pytest.mark.parametrize(
    ("line", "found", "states"),
    [("", ("keys",), False), ("conditions = []", (), True), ('work = "keys"', ("workers",), False)],
)
def test_what_a_study_file_says_of_conditions_holds(
    line: str, found: tuple[str, ...], states: bool, tmp_path: Path
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        '[study]\nname = "s"\nquestion = "?"\n'
        "[factors]\nworkers = [1, 2]\nkeys = [4, 8]\n"
        '[[roles]]\nname = "target"\ncommand = ["true", "{workers}", "{keys}"]\n'
        f"[protocol]\n{line}\n",
        encoding="utf-8",
    )
    assert load_study(file, 4).conditions == found
    assert states_conditions(file) is states


def test_competitors_are_a_condition() -> None:
    study = sweep_study(
        ["true", "{n}"], [("n", "1,2"), ("load", "1,2")], 4, background=("{load}@nice=0",)
    )
    assert (choose_work(study), study.conditions) == ("n", ("load",))


def test_the_user_overrules_what_was_found() -> None:
    assert roles(("n", "1,2"), MODE, conditions=("none",)) == ("n", ())
    assert roles(("n", "1,2"), MODE, ("size", "x,y"), conditions=("size",)) == ("n", ("size",))
    assert roles(("n", "1,2"), ("m", "1,2"), work="m") == ("m", ("n",))
    assert roles(("threads", "1,2"), MODE, work="none") == (None, ())
    assert roles(("n", "1,2"), MODE, base="mode=cpu") == ("n", ()), "compared with its base"


def test_where_several_may_count_workers_the_user_is_asked() -> None:
    with pytest.raises(StudyError, match="which parameter counts workers") as asked:
        roles(("n", "1,2"), ("m", "1,2"), MODE)
    assert "n or m?" in asked.value.what
    assert asked.value.remedy == "--work n; or --work none if none of them does"


@pytest.mark.parametrize(
    "names",
    [
        ("threads", "clients"),
        ("clients", "threads"),
        ("clients", "io-threads"),
        ("threads", "num_workers"),
        ("connections", "tasks"),
        ("threads", "clients", "sessions"),
    ],
)
def test_of_several_that_are_called_so_none_is_taken_silently(names: tuple[str, ...]) -> None:
    parameters = [(name, "1,2") for name in names]
    with pytest.raises(StudyError, match="which parameter counts workers") as asked:
        roles(*parameters, MODE)
    assert all(name in asked.value.what for name in names)
    assert asked.value.remedy.startswith("--work ")
    assert roles(*parameters, work=names[-1])[0] == names[-1]


def test_competitors_that_are_called_so_are_not_asked_about() -> None:
    study = sweep_study(
        ["true", "{threads}"], [("threads", "1,2"), ("jobs", "1,2")], 4, background=("{jobs}",)
    )
    assert (choose_work(study), study.conditions) == ("threads", ("jobs",))


def test_a_condition_that_is_no_parameter_or_counts_workers_is_refused() -> None:
    with pytest.raises(StudyError, match="conditions: 'mood' is no factor"):
        roles(("n", "1,2"), MODE, conditions=("mood",))
    with pytest.raises(StudyError, match="'n' is the work factor"):
        roles(("n", "1,2"), MODE, conditions=("n",))


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ("1,2,x", "x is no number"),
        ("one", "one is no number"),
        ("auto,2,4", "auto is no number"),
        ("500,1k", "1k is no number"),
        ("1,inf", "inf is no number"),
        ("x,1,y", "x and y are no numbers"),
    ],
)
@pytest.mark.parametrize("name", ["threads", "clients", "num_workers", "io-threads"])
def test_a_word_among_the_numbers_of_workers_is_refused_unless_it_is_declared(
    levels: str, words: str, name: str
) -> None:
    with pytest.raises(StudyError, match=f"levels of {name}: {words}") as refused:
        roles((name, levels))
    assert refused.value.remedy.startswith("numbers alone; or --work none, if the program takes ")
    assert roles((name, levels), work="none") == (None, ())
    assert roles((name, levels), ("n", "1,2"), work="n") == ("n", (name,))
    assert roles((name, levels), ("n", "1,2"), conditions=(name,)) == ("n", (name,))


@pytest.mark.parametrize(
    ("levels", "words", "remedy"),
    [
        ("1-4", "1-4 is a single level", "1..4; or"),
        ("1-4,8", "1-4 is a single level", "1..4; or"),
        ("1 2 4", "1 2 4 is a single level", "1,2,4; or"),
    ],
)
def test_a_range_of_workers_in_another_notation_is_refused_unless_it_is_declared(
    levels: str, words: str, remedy: str
) -> None:
    with pytest.raises(StudyError, match=f"levels of threads: {words}, and threads ") as refused:
        roles(("threads", levels))
    assert refused.value.remedy.startswith(f"{remedy} --work none, if the program takes ")
    assert roles(("threads", levels), work="none") == (None, ())
    assert roles(("threads", levels), ("n", "1,2"), conditions=("threads",)) == ("n", ("threads",))
    assert roles(("pages", levels)) == (None, ())


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("threads", "virtual,platform"),
        ("threads", "1,02"),
        ("threads", "0,0-1"),
        ("cores", "0,1-2"),
        ("n", "1,all"),
        ("cache", "none,1,2"),
        ("size", "512,4k"),
    ],
)
def test_kinds_texts_and_words_of_anything_else_are_levels(name: str, levels: str) -> None:
    assert roles((name, levels)) == (None, ())

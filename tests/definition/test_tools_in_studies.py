"""Study files name a tool whose output is known, as ``--extract`` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.definition.study import Study
from concurve.definition.study_file import load_study, parse_study
from concurve.definition.study_line import sweep_study
from concurve.errors import StudyError

STUDY = """
[study]
name = "own"
question = "How fast?"
[factors]
n = [1, 2]
[[roles]]
name = "other"
command = ["./other"]
[[roles]]
name = "target"
command = ["./mine", "{n}"]
"""


def parse(indicators: str, more: str = "") -> Study:
    return parse_study(f"{STUDY}{more}\n{indicators}", 2, "own.toml")


@pytest.mark.parametrize("tool", ["pgbench", "fio", "wrk", "hyperfine"])
def test_the_figures_are_those_of_the_option(tool: str) -> None:
    found = parse(f'[[indicators]]\ntool = "{tool}"\n[[indicators]]\nuse = ["wall_seconds"]')
    typed = sweep_study(["./mine", "{n}"], [("n", "1,2")], 2, extracts=[tool])
    assert found.extracts == typed.extracts
    assert found.primary == typed.primary, "the first figure of the tool"
    assert {item.name: (item.unit, item.better) for item in found.indicators} == {
        item.name: (item.unit, item.better) for item in typed.indicators
    }


def test_a_tool_of_another_role_and_beside_other_indicators() -> None:
    found = parse('[[indicators]]\nuse = ["cpu_seconds"]\n[[indicators]]\ntool = "other.pgbench"')
    assert found.primary == "cpu_seconds"
    assert (found.extracts[0].name, found.extracts[0].role) == ("other.tps", "other")
    assert found.extracts[1].optional and not found.extracts[0].optional
    measured = '[[indicators]]\ntool = "target.pgbench"'
    assert parse(measured).extracts == parse('[[indicators]]\ntool = "pgbench"').extracts
    turned = parse('[[indicators]]\ntool = "other.pgbench"', '[protocol]\ntarget = "other"\n')
    assert turned.extracts[0].name == "tps" and turned.extracts[0].role == ""


def test_figures_of_a_tool_are_shared_by_name(tmp_path: Path) -> None:
    (tmp_path / "shared.toml").write_text('[[indicators]]\ntool = "pgbench"\n')
    text = f'extends = "shared.toml"\n{STUDY}[[indicators]]\nuse = ["tps"]\n'
    (tmp_path / "study.toml").write_text(text)
    found = load_study(tmp_path / "study.toml", 2)
    assert [item.name for item in found.extracts] == ["tps"]


def test_a_figure_may_be_summed_or_missing() -> None:
    one = "[[indicators]]\nname = 'x'\npattern = '(\\d+)'\n"
    extract = parse(f'{one}combine = "sum"\noptional = true').extracts[0]
    assert (extract.combine, extract.optional) == ("sum", True)
    plain = parse(one).extracts[0]
    assert (plain.combine, plain.optional) == ("last", False)


def test_a_tool_that_the_role_does_not_run_is_refused() -> None:
    study = STUDY.replace("./other", "pgbench")
    parse_study(f'{study}[[indicators]]\ntool = "other.pgbench"', 2, "own.toml")
    with pytest.raises(StudyError) as refused:
        parse_study(f'{study}[[indicators]]\ntool = "other.wrk"', 2, "own.toml")
    assert refused.value.what == (
        "own.toml: indicators other.requests_per_second: this figure is printed by wrk, and the "
        "command starts pgbench"
    )
    assert refused.value.remedy == 'tool = "other.pgbench"'


@pytest.mark.parametrize(
    "indicators",
    [
        'tool = "wrk"',
        'name = "rps"\npattern = "(1)"',
        'name = "rps"\nunit = "1/s"\nbetter = "higher"\npattern = "(1)"',
        'use = ["wall_seconds"]',
        "",
    ],
)
@pytest.mark.parametrize("target", ["", "[protocol]\ntarget = 'lod'\n"])
def test_a_measured_role_that_is_none_is_named_whatever_is_read_of_it(
    indicators: str, target: str
) -> None:
    """To forget ``target`` is easily done where no role has its usual name."""
    roles = STUDY.replace('"other"', '"server"').replace('"target"', '"load"')
    read = f"[[indicators]]\n{indicators}" if indicators else ""
    with pytest.raises(StudyError, match=r"the study has no role '(target|lod)' to measure"):
        parse_study(f"{roles}{target}{read}", 2, "own.toml")


@pytest.mark.parametrize(
    ("indicators", "says", "remedy"),
    [
        ('tool = "pgbnch"', "own.toml: indicators, tool: 'pgbnch' is no tool", "'pgbench'"),
        ('tool = "other.psql"', "'other.psql' is no tool", "pgbench"),
        ('tool = ""', "is no tool", "pgbench"),
        ("tool = 5", "own.toml: indicators, tool: no text", "pgbench"),
        ('tool = "pgbench"\nname = "x"', "own.toml: indicators: 'name' beside tool", "own for it"),
        ('tool = "othr.pgbench"', "no role 'othr'", "'other'"),
        ('name = "othr.x"\npattern = "(1)"', "indicator othr.x: no role 'othr'", "'other'"),
    ],
)
def test_what_names_no_tool_is_refused(indicators: str, says: str, remedy: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse(f"[[indicators]]\n{indicators}")
    assert says in refused.value.what and remedy in refused.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        f'extract = "pgbench"\n{STUDY}',
        STUDY.replace('["./other"]', '["./other"]\nextract = "pgbench"'),
        STUDY.replace('["./other"]', '["./other"]\ntool = "pgbench"'),
        f'{STUDY}[[indicators]]\nextract = "pgbench"',
        f'{STUDY}[[extract]]\ntool = "pgbench"',
    ],
)
def test_whoever_writes_a_tool_elsewhere_is_told_where_it_stands(text: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_study(text, 2, "own.toml")
    assert 'tool = "pgbench"' in refused.value.remedy


@pytest.mark.parametrize(
    ("role", "purpose"),
    [
        ('purpose = "load"', "load"),
        ('purpose = "setup"', "setup"),
        ("", ""),
    ],
)
def test_a_purpose_stands_in_a_role(role: str, purpose: str) -> None:
    text = STUDY.replace('command = ["./other"]', f'command = ["./other"]\n{role}')
    assert parse_study(text, 2, "own.toml").roles[0].purpose == purpose


def test_a_purpose_that_is_none_is_refused() -> None:
    with pytest.raises(StudyError, match=r"own\.toml: .*purpose"):
        parse_study(STUDY.replace('["./other"]', '["./other"]\npurpose = "client"'), 2, "own.toml")


def test_an_attached_role_may_have_a_purpose() -> None:
    text = STUDY.replace('command = ["./other"]', 'attach = 4711\npurpose = "background"')
    role = parse_study(text, 2, "own.toml").roles[0]
    assert (role.attach, role.purpose) == ("4711", "background")

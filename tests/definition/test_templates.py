"""Placeholders: what is one, what is not, and what each refusal says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.definition.origins import COMMAND_LINE, Origins
from concurve.definition.templates import Value, check_placeholders, expand, placeholders, render
from concurve.errors import StudyError

BY_LINE = Origins(COMMAND_LINE)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("--threads={threads}", "--threads=4"),
        ("{threads}{threads}", "44"),
        ("{sync}-{threads}", "cas-4"),
        ("{{threads}}", "{threads}"),
        ("awk '{print $1}'", "awk '{print $1}'"),
        ("{}", "{}"),
        ("${HOME}", None),
        ('{"a": 1}', '{"a": 1}'),
        ("{ threads }", "{ threads }"),
        ("{class.nice}", "-5"),
        ("{{class.nice}}", "{class.nice}"),
        ("{class.}", "{class.}"),
        ("{1.2}", "{1.2}"),
    ],
)
def test_only_names_in_braces_are_placeholders(text: str, rendered: str | None) -> None:
    if rendered is None:
        assert placeholders(text) == ["HOME"]
    else:
        assert render(text, {"threads": 4, "sync": "cas", "class.nice": -5}) == rendered


def test_an_argument_that_is_a_list_becomes_several_or_none() -> None:
    values: dict[str, Value] = {"jvm.options": ("-Xint", "-ea"), "none.options": (), "threads": 2}
    arguments = ["{jvm.options}", "--threads", "{threads}", "{none.options}", "{{jvm.options}}"]
    assert expand(arguments, values) == ["-Xint", "-ea", "--threads", "2", "{jvm.options}"]


def test_a_value_is_never_rendered_again() -> None:
    assert render("{a}", {"a": "{b}", "b": "wrong"}) == "{b}"


@given(st.text(alphabet="ab {}$'\"0", max_size=30))
def test_any_text_renders_once_its_placeholders_are_known(text: str) -> None:
    check_placeholders(text, placeholders(text), "here", BY_LINE.parameter)
    render(text, dict.fromkeys(placeholders(text), "x"))


def test_an_unknown_placeholder_is_named_with_the_nearest_and_both_ways_out() -> None:
    with pytest.raises(StudyError) as refused:
        check_placeholders(
            "--n {thread}", ["threads", "effort"], "command line: argument 2", BY_LINE.parameter
        )
    assert refused.value.what == "command line: argument 2: placeholder {thread} has no parameter"
    assert "did you mean {threads}?" in refused.value.remedy
    assert "-P thread LEVELS" in refused.value.remedy
    assert "{{thread}}" in refused.value.remedy


def test_a_placeholder_unlike_any_parameter_gets_no_guess() -> None:
    with pytest.raises(StudyError) as refused:
        check_placeholders("{zebra}", ["threads"], "here", BY_LINE.parameter)
    assert "did you mean" not in refused.value.remedy


def test_a_remedy_names_an_option_or_a_key_as_it_was_written() -> None:
    """Who wrote a file has no options, and who typed options has no file."""
    by_file = Origins("mine.toml")
    for where, advice in ((BY_LINE, "add -P n LEVELS"), (by_file, "add n = [LEVELS] to [factors]")):
        with pytest.raises(StudyError) as refused:
            check_placeholders("{n}", [], "here", where.parameter)
        assert advice in refused.value.remedy
    assert (BY_LINE.hook("check"), by_file.hook("check")) == ("--check", "hooks, check")

"""Options of other tools in the place of ours: the refusal names what to type."""

from __future__ import annotations

import click
import pytest

from concurve.cli import slips
from concurve.cli.sweep import verb as sweep


def refused(*words: str) -> str:
    """What is said of the options of a sweep."""
    with pytest.raises(click.NoSuchOption) as error:
        sweep.make_context("sweep", [*words, "--", "true"])
    known = slips.as_meant(error.value)
    return known.format_message() if known else ""


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (("-p", "n", "1,2"), "-P NAME LEVELS"),
        (("--param", "n", "1,2"), "-P NAME LEVELS"),
        (("-L", "n", "1,2"), "-P NAME LEVELS"),
        (("-t4",), "-P threads 1,2,4 -- COMMAND {threads}"),
        (("--threads=4",), "behind --"),
        (("-n", "5"), "--repeats 5..20"),
        (("--runs", "5"), "--repeats 5..20"),
        (("-w", "1"), "--prepare CMD"),
        (("--warmup", "1"), "--prepare CMD"),
        (("--time", "5s"), "--max-time 5m"),
        (("-o", "f"), "--export-json"),
    ],
)
def test_a_slip_names_what_is_meant(words: tuple[str, ...], typed: str) -> None:
    said = refused(*words)
    assert typed in said and "No such option" in said
    assert len(said.split()) <= 40


def test_what_is_no_known_slip_stays_as_it_is() -> None:
    assert refused("--condtion", "n") == ""


def test_no_option_of_a_sweep_is_taken_for_a_slip() -> None:
    own = {option for parameter in sweep.params for option in parameter.opts}
    assert not own & set(slips._BY_OPTION)


def test_other_verbs_have_other_options() -> None:
    context = click.Context(click.Command("show"), info_name="show")
    assert slips.as_meant(click.NoSuchOption("-n", ctx=context)) is None

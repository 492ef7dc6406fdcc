"""One search for a rate at a time in a trial; who checks a rate that is given may do so beside
others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from concurve.definition.study import Study
from concurve.definition.study_file import parse_study
from concurve.errors import StudyError
from concurve.planning.plan import make_plan, trial_spec
from concurve.planning.searches import is_search
from concurve.wire.spec import TrialSpec
from tests.definition.test_hosts_file import lab

TEXT = """
[study]
name = "slo"
question = "What rate does it keep?"

[factors]
workers = [1, 2]

[[roles]]
name = "target"
command = ["./kv", "--workers", "{workers}"]
ready = "tcp:127.0.0.1:7000"
end = "serve"

[[roles]]
name = "load"
program = "load"
arguments = ["redis://127.0.0.1:7000", "--slo", "p99=2ms"]
copies = 1

[[indicators]]
use = ["load.slo_rate_per_second"]
"""

OTHER = """
[[roles]]
name = "other"
program = "load"
arguments = ["redis://127.0.0.1:7000", "--slo=p99=2ms"]
after = []

[[indicators]]
"""


def test_a_load_that_is_named_by_its_command_searches_too() -> None:
    words = ["redis://127.0.0.1:7000", "--slo", "p99=2ms"]
    assert is_search(None, ["/opt/bin/concurve-load", *words])
    assert not is_search(None, ["/opt/bin/concurve-load", *words, "--rate", "5"])
    assert not is_search(None, ["./mine", *words])


def find(*_: object) -> Sequence[str]:
    return ("/here/load",)


def study(text: str) -> Study:
    return parse_study(text, 2, "mine.toml")


def spec_of(text: str, over_hosts: bool = False) -> TrialSpec:
    plan = make_plan(study(text), "quick", 1, lab() if over_hosts else None)
    return trial_spec(plan, plan.cells[0], "t", (0, 1), find)


def test_one_load_searches() -> None:
    assert [role.name for role in spec_of(TEXT).roles] == ["target", "load"]


@pytest.mark.parametrize(
    ("change", "over_hosts", "copies"),
    [
        ("copies = 2", False, 2),
        ("copies = 3\nhost = 'load'", True, 3),
        ("copies = 1\nhost = 'each:load'", True, 2),
        ("copies = '{workers}'", False, 2),
    ],
)
def test_several_copies_that_search_are_refused_before_the_first_trial(
    change: str, over_hosts: bool, copies: int
) -> None:
    text = TEXT.replace("copies = 1", change)
    plan = make_plan(study(text), "quick", 1, lab() if over_hosts else None)
    with pytest.raises(StudyError) as refused:
        for cell in plan.cells:
            trial_spec(plan, cell, "t", (0, 1), find)
    assert f"role load: {copies} copies would each search" in refused.value.what
    assert "copies = 1" in refused.value.remedy and "--rate R" in refused.value.remedy


@pytest.mark.parametrize("rate", ['"--rate", "1000"', '"--rate=1000"'])
def test_several_copies_check_a_rate_that_is_given(rate: str) -> None:
    text = TEXT.replace("copies = 1", "copies = 2").replace('"p99=2ms"]', f'"p99=2ms", {rate}]')
    assert [role.name for role in spec_of(text).roles] == ["target", "load-1", "load-2"]


def test_two_roles_search_one_after_the_other_alone() -> None:
    both = TEXT.replace("\n[[indicators]]\n", OTHER)
    with pytest.raises(StudyError, match="roles load and other would both search") as refused:
        spec_of(both)
    assert 'after = ["load"] for other' in refused.value.remedy
    spec_of(both.replace("after = []", 'after = ["load"]'))


def test_another_program_may_call_an_option_so() -> None:
    text = (
        TEXT.replace('program = "load"\narguments = [', 'command = ["./mine", ')
        .replace("copies = 1", "copies = 2")
        .replace('use = ["load.slo_rate_per_second"]', 'use = ["wall_seconds"]')
    )
    assert len(spec_of(text).roles) == 3


def test_a_program_of_a_level_is_known_once_it_is_one() -> None:
    """A study may say with a factor which program has the role."""
    known = study(TEXT.replace("copies = 1", "copies = 2"))
    role = msgspec.structs.replace(known.roles[1], program="load{workers}")
    plan = make_plan(msgspec.structs.replace(known, roles=(known.roles[0], role)), "quick", 1)
    assert len(trial_spec(plan, plan.cells[0], "t", (0, 1), find).roles) == 3, "load1 is another"

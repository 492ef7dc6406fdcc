"""The copies of a load search for a rate together; two roles do not search at once. Who checks a
rate that is given may do so beside others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from concurve.definition.study import Study
from concurve.definition.study_file import parse_study
from concurve.errors import StudyError
from concurve.planning.plan import make_plan, trial_spec
from concurve.planning.searches import TOKEN_VARIABLE, is_by_several, is_search
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
    assert is_search(None, ["taskset", "-c", "1", "concurve-load", *words])
    assert is_search(None, ["/usr/bin/concurve", "load", *words])
    assert not is_search(None, ["./mine", *words])
    assert not is_search(None, ["./mine", "--binary", "/opt/concurve-load", *words])
    assert not is_search(None, ["concurve", "monitor", "load", *words])


def find(*_: object) -> Sequence[str]:
    return ("/here/load",)


def study(text: str) -> Study:
    return parse_study(text, 2, "mine.toml")


def spec_of(text: str, over_hosts: bool = False) -> TrialSpec:
    plan = make_plan(study(text), "quick", 1, lab() if over_hosts else None)
    return trial_spec(plan, plan.cells[0], "t", (0, 1), find, search_port=7100)


def test_one_load_searches() -> None:
    assert [role.name for role in spec_of(TEXT).roles] == ["target", "load"]


@pytest.mark.parametrize(
    ("change", "over_hosts", "hosts", "address"),
    [
        ("copies = 2", False, [None, None], "127.0.0.1"),
        ("copies = 3\nhost = 'load'", True, ["load1", "load2", "load1"], "10.77.0.2"),
        ("copies = 1\nhost = 'each:load'", True, ["load1", "load2"], "10.77.0.2"),
    ],
)
def test_copies_search_together(
    change: str, over_hosts: bool, hosts: list[str | None], address: str
) -> None:
    spec = spec_of(TEXT.replace("copies = 1", change), over_hosts)
    first, *others = [role for role in spec.roles if role.name != "target"]
    assert [role.host for role in (first, *others)] == hosts
    meeting = f"{address}:7100"
    token = ("--token-from", TOKEN_VARIABLE)
    leads = ("--slo", "p99=2ms", "--lead", str(len(others)), "--listen", meeting, *token)
    assert first.argv[-8:] == leads
    for other in others:
        assert other.argv[-6:] == ("--slo", "p99=2ms", "--follow", meeting, *token)
    # The spec is stored: it has the name of the secret alone.
    assert {role.env[TOKEN_VARIABLE] for role in (first, *others)} == {"{secret:RUN_PASSWORD}"}
    assert is_by_several(spec)


def test_as_many_copies_search_together_as_a_cell_has() -> None:
    plan = make_plan(study(TEXT.replace("copies = 1", "copies = '{workers}'")), "quick", 1)
    specs = [trial_spec(plan, cell, "t", (0, 1), find) for cell in plan.cells]
    assert [is_by_several(spec) for spec in specs] == [False, True]
    assert "SEARCH_PORT" in " ".join(specs[1].roles[-1].argv), "a plan that is shown has no port"


def test_loads_that_meet_by_themselves_are_left_alone() -> None:
    text = TEXT.replace('"p99=2ms"]', '"p99=2ms", "--lead", "1", "--listen", "127.0.0.1:7100"]')
    assert not is_by_several(spec_of(text.replace("copies = 1", "copies = 2")))


@pytest.mark.parametrize("rate", ['"--rate", "1000"', '"--rate=1000"'])
def test_several_copies_check_a_rate_that_is_given(rate: str) -> None:
    text = TEXT.replace("copies = 1", "copies = 2").replace('"p99=2ms"]', f'"p99=2ms", {rate}]')
    assert [role.name for role in spec_of(text).roles] == ["target", "load-1", "load-2"]


def test_two_roles_search_one_after_the_other_alone() -> None:
    both = TEXT.replace("\n[[indicators]]\n", OTHER)
    with pytest.raises(StudyError, match="roles load and other would both search") as refused:
        spec_of(both)
    assert 'after = ["load"] for other' in refused.value.remedy
    assert "copies of one role" in refused.value.remedy and "--rate R" in refused.value.remedy
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

"""Cells, base cells, order and specs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.definition.controls import ControlsTemplate
from concurve.definition.study import Effort, Indicator, Role, Rules
from concurve.errors import HostError, StudyError
from concurve.planning.plan import Plan, describe, make_plan, shell_line, shuffled, trial_spec
from concurve.wire.spec import Controls, ReadyProbe, RoleSpec, Sampling, TrialSpec
from tests.helpers.fakes import small_study


def nowhere(name: str, where: str, java: str | None, jvm: Sequence[str]) -> list[str]:
    return [f"/opt/{name}"]


def plan_of(seed: int = 1, **factors: tuple[int | float | str, ...]) -> Plan:
    return make_plan(small_study(None, **factors), "normal", seed)


def test_cells_are_the_full_factorial_in_order() -> None:
    plan = plan_of(cpus=(1, 2), threads=(1, 2, 4))
    assert [tuple(cell.parameters.values()) for cell in plan.cells] == [
        (1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4)
    ]  # fmt: skip
    assert [cell.index for cell in plan.cells] == list(range(6))
    assert describe(plan.cells[4].parameters) == "cpus=2 threads=2"


def test_each_group_has_its_base_at_the_lowest_concurrency() -> None:
    plan = plan_of(cpus=(1, 2), threads=(4, 1, 2))
    assert plan.work == "threads"
    assert [cell.base for cell in plan.cells] == [1, 1, 1, 4, 4, 4]


def test_a_named_base_is_one_for_all_that_it_names() -> None:
    study = msgspec.structs.replace(
        small_study(cpus=(1, 2), threads=(1, 2)), base={"cpus": 1, "threads": 1}
    )
    assert [cell.base for cell in make_plan(study, "normal", 1).cells] == [0, 0, 0, 0]
    study = msgspec.structs.replace(study, base={"cpus": 2})
    assert [cell.base for cell in make_plan(study, "normal", 1).cells] == [2, 3, 2, 3]


def test_a_base_that_the_effort_leaves_out_is_refused() -> None:
    study = small_study(threads=(1, 2))
    quick = Effort(rules=Rules(), factors={"threads": (2,)})
    study = msgspec.structs.replace(study, base={"threads": 1}, efforts={"quick": quick})
    with pytest.raises(StudyError, match="base threads=1 is not among the levels at effort quick"):
        make_plan(study, "quick", 1)


def test_words_count_no_threads_whatever_their_factor_is_called() -> None:
    assert plan_of(threads=("one", "two")).work is None


def test_without_a_work_factor_the_first_levels_are_the_base() -> None:
    plan = plan_of(colour=("red", "blue"), shape=("round", "flat"))
    assert plan.work is None
    assert {cell.base for cell in plan.cells} == {0}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 20, 63, 64, 65, 1000])
def test_cells_are_shuffled_as_python_does(count: int) -> None:
    for seed in ("1/0", "1/1", "20261121/7"):
        places = list(range(count))
        random.Random(seed).shuffle(places)
        assert shuffled(count, seed) == places


def test_the_order_is_kept_for_ever() -> None:
    """A stored run is replayed against this order: it may never change."""
    plan = plan_of(seed=7, threads=(1, 2, 3, 4, 5, 6, 7, 8))
    assert [plan.order(block) for block in range(3)] == GOLDEN_ORDER


GOLDEN_ORDER = [
    [6, 3, 2, 1, 7, 0, 4, 5],
    [7, 3, 6, 2, 5, 1, 4, 0],
    [0, 1, 7, 4, 6, 2, 3, 5],
]


@given(seed=st.integers(0, 2**31), block=st.integers(0, 50))
def test_every_block_has_every_cell_once(seed: int, block: int) -> None:
    plan = plan_of(seed=seed, threads=(1, 2, 3, 4, 5))
    assert sorted(plan.order(block)) == [0, 1, 2, 3, 4]
    assert plan.order(block) == plan_of(seed=seed, threads=(1, 2, 3, 4, 5)).order(block)


def test_every_cell_comes_first_about_equally_often() -> None:
    plan = plan_of(threads=(1, 2, 3, 4))
    firsts = [plan.order(block)[0] for block in range(2000)]
    assert all(400 < firsts.count(cell) < 600 for cell in range(4)), "500 ± 5 σ"


def test_a_spec_has_all_placeholders_filled() -> None:
    study = small_study(threads=(1, 2), cpus=(1, 2))
    roles = (
        Role(name="load", program="targets", command=("busy",), copies="{threads}",
             ready="report"),
        Role(name="target", command=("./mine", "{threads}", "{effort}"),
             env={"N": "{threads}", "L": "{{x}}"}, cwd="/tmp/{cpus}",
             controls=ControlsTemplate(cpus="{cpus}", nice="-{threads}"), after=("load",)),
    )  # fmt: skip
    rules = Rules(timeout_seconds=1.5)
    study = msgspec.structs.replace(study, roles=roles, efforts={"quick": Effort(rules=rules)})
    plan = make_plan(study, "quick", 1)
    spec = trial_spec(plan, plan.cells[2], "run/2/0/0", (0, 3), nowhere)
    assert spec == TrialSpec(
        trial="run/2/0/0",
        roles=(
            RoleSpec(name="load-1", argv=("/opt/targets", "busy"), ready="report"),
            RoleSpec(name="load-2", argv=("/opt/targets", "busy"), ready="report"),
            RoleSpec(name="target", argv=("./mine", "2", "quick"), env={"N": "2", "L": "{x}"},
                     cwd="/tmp/1", controls=Controls(cpus=(0,), nice=-2),
                     after=("load-1", "load-2")),
        ),
        time_limit_ns=1_500_000_000,
        sampling=Sampling(thread_timelines=True),
    )  # fmt: skip
    assert shell_line(spec.roles[2]) == "./mine 2 quick"


def test_what_the_machine_has_not_got_names_the_cell() -> None:
    study = small_study(cpus=(1, 3))
    role = Role(name="target", command=("m", "{cpus}"), controls=ControlsTemplate(cpus="{cpus}"))
    plan = make_plan(msgspec.structs.replace(study, roles=(role,)), "normal", 1)
    with pytest.raises(HostError, match="cpus=3: role target cpus: 3 CPUs asked for"):
        trial_spec(plan, plan.cells[1], "t", (0, 1), nowhere)


@pytest.mark.parametrize("copies", ["many", "-1", "1025", "1.5"])
def test_a_number_of_copies_that_is_none_is_refused(copies: str) -> None:
    study = small_study(threads=(1,))
    roles = (*study.roles, Role(name="b", command=("b",), copies=copies, end="serve"))
    plan = make_plan(msgspec.structs.replace(study, roles=roles), "normal", 1)
    with pytest.raises(StudyError, match=r"threads=1: role b: .* copies"):
        trial_spec(plan, plan.cells[0], "t", (0, 1), nowhere)


def test_the_measured_role_is_one() -> None:
    study = small_study(threads=(1, 2))
    role = Role(name="target", command=("m",), copies="{threads}")
    plan = make_plan(msgspec.structs.replace(study, roles=(role,)), "normal", 1)
    trial_spec(plan, plan.cells[0], "t", (0, 1), nowhere)
    with pytest.raises(StudyError, match=r"threads=2: role target: .* has 2 copies"):
        trial_spec(plan, plan.cells[1], "t", (0, 1), nowhere)


def test_a_factorial_beyond_all_bounds_is_refused_at_once() -> None:
    many = tuple(range(10_000))
    with pytest.raises(StudyError, match="100000000 combinations of levels"):
        plan_of(a=many, b=many)


def test_the_cells_of_a_block_share_a_seed_and_blocks_do_not() -> None:
    study = small_study(threads=(1, 2))
    role = Role(name="target", command=("./mine", "{threads}", "{block_seed}"))
    plan = make_plan(msgspec.structs.replace(study, roles=(role,)), "quick", 7)

    def seed(cell: int, block: int) -> str:
        spec = trial_spec(plan, plan.cells[cell], "t", (0,), nowhere, block=block)
        return spec.roles[0].argv[2]

    assert seed(0, 0) == seed(1, 0) == str(plan.block_seed(0))
    assert len({seed(0, block) for block in range(20)}) == 20


def test_a_line_that_levels_make_is_checked_for_the_runner() -> None:
    """A level may hold what the runner reads in another way."""
    server = Role(
        name="server", command=("x",), end="serve", ready_probe=ReadyProbe(line="up on {n}")
    )
    study = msgspec.structs.replace(
        small_study(n=(1, "[[a]")), roles=(server, *small_study(n=(1,)).roles)
    )
    plan = make_plan(study, "quick", 1)

    def spec(cell: int) -> RoleSpec:
        return trial_spec(plan, plan.cells[cell], "t", (0, 1), nowhere).roles[0]

    assert spec(0).ready_probe == ReadyProbe(line="up on 1")
    with pytest.raises(StudyError, match=r"n=\[\[a\]: role server, ready: .*within a class"):
        spec(1)


@pytest.mark.parametrize("name", ["cache_misses", "load.cache_misses_per_operation"])
def test_a_counter_of_cache_misses_is_opened_for_a_study_that_names_it(name: str) -> None:
    plain = small_study(threads=(1,))
    asking = msgspec.structs.replace(plain, indicators=(*plain.indicators, Indicator(name=name)))
    for study, asked in ((plain, msgspec.UNSET), (asking, True)):
        plan = make_plan(study, "normal", 1)
        assert trial_spec(plan, plan.cells[0], "t", (0, 1), nowhere).cache_misses is asked


def test_the_password_of_a_run_is_a_reference() -> None:
    """The runner alone is given it."""
    role = Role(name="target", command=("./mine", "{threads}"), env={"PASS": "{run_password}"})
    plan = make_plan(msgspec.structs.replace(small_study(), roles=(role,)), "quick", 7)
    spec = trial_spec(plan, plan.cells[0], "t", (0,), nowhere)
    assert spec.roles[0].env == {"PASS": "{secret:RUN_PASSWORD}"}

"""Levels that a machine cannot run: left out and reported if the study allows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from concurve.analysis.against_base import Judge
from concurve.analysis.sentences import sentences
from concurve.definition.controls import ControlsTemplate
from concurve.definition.origins import Origins
from concurve.definition.study import Role, Study
from concurve.definition.study_check import check
from concurve.definition.study_file import parse_study
from concurve.errors import HostError, StudyError
from concurve.host import machine
from concurve.measuring import heads, packaged
from concurve.planning.granted import granted
from concurve.planning.plan import Cell, Plan, make_plan, plan_of, trial_spec
from concurve.terms import IndicatorInfo
from tests.helpers.fakes import small_study


def find(name: str, where: str, java: str | None, jvm: Sequence[str]) -> list[str]:
    if name == "redis":
        raise HostError(f"{where}: {name} is not installed", "apt-get install redis-server")
    return [f"/opt/{name}"]


def served(**optional: tuple[Any, ...]) -> Study:
    """A study of two programs on one, two and four CPUs."""
    study = small_study(cpus=(1, 2, 4), server=("ours", "redis"), threads=(1, 2))
    role = Role(
        name="target",
        command=("{threads}",),
        program="{server}",
        controls=ControlsTemplate(cpus="{cpus}"),
    )
    return msgspec.structs.replace(study, roles=(role,), optional=optional)


def test_optional_levels_are_left_out_with_the_reason() -> None:
    study, left_out = granted(served(server=("redis",), cpus=(4,)), "normal", (0, 1), find)
    levels = {factor.name: factor.levels for factor in study.factors_at("normal")}
    assert levels == {"cpus": (1, 2), "server": ("ours",), "threads": (1, 2)}
    assert [(item.factor, item.level) for item in left_out] == [("server", "redis"), ("cpus", 4)]
    assert left_out[0].says == ("role target: redis is not installed; apt-get install redis-server")
    assert "4 CPUs asked for, 2 granted" in left_out[1].why


def test_a_base_that_is_left_out_leaves_the_usual_one() -> None:
    based = msgspec.structs.replace(served(server=("redis",)), base={"server": "redis"})
    study, left_out = granted(based, "normal", (0, 1, 2, 3), find)
    assert [item.level for item in left_out] == ["redis"]
    cells = make_plan(study, "normal", 1).cells
    assert {cells[cell.base].parameters["threads"] for cell in cells} == {1}


def test_what_the_machine_has_stays() -> None:
    study = served(cpus=(4,))
    own = msgspec.structs.replace(
        study, roles=(msgspec.structs.replace(study.roles[0], program="ours"),)
    )
    assert granted(own, "normal", (0, 1, 2, 3), find) == (own, ())


def test_a_factor_keeps_a_level() -> None:
    study = msgspec.structs.replace(served(server=("redis",)), factors=served().factors[1:2])
    study = msgspec.structs.replace(
        study,
        factors=(msgspec.structs.replace(study.factors[0], levels=("redis",)),),
        roles=(Role(name="target", command=(), program="{server}"),),
    )
    with pytest.raises(HostError, match="not installed"):
        granted(study, "normal", (0, 1), find)


def test_a_study_that_compares_levels_needs_two_of_them() -> None:
    study = served(server=("redis",))
    compares = msgspec.structs.replace(study, compares=("server",))
    assert len(granted(study, "normal", (0, 1, 2, 3), find)[1]) == 1
    with pytest.raises(HostError) as refused:
        granted(compares, "normal", (0, 1, 2, 3), find)
    assert refused.value.what == (
        "of server only ours can run here, so there is nothing to compare: "
        "role target: redis is not installed"
    )
    assert refused.value.remedy == "apt-get install redis-server"
    chosen = served(server=("redis",)).factors[1]
    alone = msgspec.structs.replace(
        compares,
        factors=(*compares.factors[:1], msgspec.structs.replace(chosen, levels=("ours",)),
                 *compares.factors[2:]),
        optional={"server": ()},
    )  # fmt: skip
    assert granted(alone, "normal", (0, 1, 2, 3), find)[1] == (), "whoever chose one has one"


def test_a_study_compares_what_it_has_optional_levels_of() -> None:
    study = msgspec.structs.replace(served(server=("redis",)), compares=("cpus",))
    with pytest.raises(StudyError, match="compares: 'cpus' has no optional levels"):
        check(study, Origins("test"))


def test_levels_that_are_not_there_are_refused() -> None:
    for optional, said in (({"servre": ("x",)}, "servre is no factor"),
                           ({"server": ("x",)}, "'x' is no level")):  # fmt: skip
        with pytest.raises(StudyError, match=said):
            check(served(**optional), Origins("test"))


FILE = """
[study]
name = "s"
question = "?"
[factors]
cpus = [1, 2]
[[roles]]
name = "target"
command = ["serve", "{free_port}"]
end = "serve"
controls = { cpus = "{cpus}" }
[[roles]]
name = "load"
command = ["load", "127.0.0.1:{free_port}"]
controls = { cpus = "spare" }
[protocol]
optional = { cpus = [2] }
"""


def test_roles_of_a_trial_share_a_port_and_a_load_has_the_spare_cpus() -> None:
    study = parse_study(FILE, 4, "s.toml")
    assert study.optional == {"cpus": (2,)}
    plan = make_plan(study, "normal", 1)

    def spec(cell: int, cpus: Sequence[int]) -> Any:
        return trial_spec(plan, plan.cells[cell], "t", cpus, find, 4711)

    server, load = spec(0, (0, 1, 2, 3)).roles
    assert server.argv == ("serve", "4711")
    assert load.argv == ("load", "127.0.0.1:4711")
    for cell in (0, 1):
        assert spec(cell, (0, 1, 2, 3)).roles[1].controls.cpus == (2, 3), "the same in every cell"
        assert spec(cell, (0, 1)).roles[1].controls.cpus == (0, 1), "none is left: all"


def test_spare_cpus_are_found_without_a_look_at_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial of a large plan is planned as fast as one of a small plan."""
    text = FILE.replace("cpus = [1, 2]", "cpus = [1, 2]\nkeys = [1, 2, 3, 4, 5, 6, 7, 8]", 1)
    text = text.replace('"{free_port}"]', '"{free_port}", "{keys}"]', 1)
    plan = make_plan(parse_study(text, 4, "s.toml"), "normal", 1)
    assert len(plan.cells) == 16
    asked, values = [], Plan.values

    def counted(self: Plan, cell: Cell, *more: Any) -> Any:
        asked.append(cell.index)
        return values(self, cell, *more)

    monkeypatch.setattr(Plan, "values", counted)
    (_, load) = trial_spec(plan, plan.cells[0], "t", (0, 1, 2, 3), find, 4711).roles
    assert load.controls.cpus == (2, 3)
    assert len(asked) == 1 + 2, "those of the cell, and of a cell for each level of cpus"


def test_cpus_of_a_part_are_bound_at_every_level_that_it_holds() -> None:
    """The part names another factor than the text of the role does."""
    text = FILE.replace("cpus = [1, 2]", 'place = ["low"]\nlast = [0, 1, 2]', 1)
    text = text.replace('cpus = "{cpus}"', 'cpus = "{place.set}"')
    text = text.replace("[protocol]\noptional = { cpus = [2] }\n", "")
    text += '[levels.place]\nlow = { set = "0-{last}" }\n'
    plan = make_plan(parse_study(text, 4, "s.toml"), "normal", 1)
    for cell in plan.cells:
        (_, load) = trial_spec(plan, cell, "t", (0, 1, 2, 3), find, 4711).roles
        assert load.controls.cpus == (3,)


def test_roles_of_a_trial_share_a_folder() -> None:
    text = FILE.replace("127.0.0.1:{free_port}", "{trial_folder}/data")
    plan = make_plan(parse_study(text, 4, "s.toml"), "normal", 1)
    spec = trial_spec(plan, plan.cells[0], "t", (0, 1), find, 4711, folder="/somewhere")
    assert spec.roles[1].argv == ("load", "/somewhere/data")


def test_a_hook_has_no_port() -> None:
    with pytest.raises(StudyError, match="has a value in the roles of a trial only"):
        parse_study(FILE + '[hooks]\nprepare = "x {free_port}"\n', 4, "s.toml")


def test_a_run_says_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "command", find)
    monkeypatch.setattr(machine, "allowed_cpus", lambda: (0, 1))
    monkeypatch.setattr(heads, "programs_of", lambda plan, site: {})
    head = heads.new_head(served(server=("redis",), cpus=(4,)), "normal", 1, "again")
    assert len(plan_of(head).cells) == 4
    from concurve.planning.protocol import replay

    wall = IndicatorInfo(name="wall_seconds", label="wall time")
    said = [
        item.sentence
        for item in sentences(
            head,
            replay(plan_of(head), [], "r"),
            (),
            (),
            "complete",
            (),
            lambda *_: None,
            Judge(lambda *_: ()),
            wall,
        )
    ]
    assert any(
        text.startswith("Not measured: server=redis. role target: redis is not installed; apt-get")
        for text in said
    )

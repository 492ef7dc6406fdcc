"""A study over hosts as specs: which copy runs where, with which addresses and CPUs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from concurve.definition.inventory import Inventory
from concurve.definition.study import Study
from concurve.errors import HostError, StudyError
from concurve.planning.plan import COPIES_MAX, Machine, Plan, make_plan, trial_spec
from concurve.wire.spec import Attach, TrialSpec
from tests.definition.test_hosts_file import STUDY, lab, study


def find(name: str, where: str, java: str | None = None, jvm: Sequence[str] = ()) -> Sequence[str]:
    return (f"/here/{name}",)


def plan_of(text: str = STUDY, inventory: Inventory | None = None) -> Plan:
    return make_plan(study(text), "quick", 1, inventory)


def spec_of(
    text: str = STUDY,
    inventory: Inventory | None = None,
    machines: dict[str, Machine] | None = None,
) -> TrialSpec:
    plan = plan_of(text, inventory)
    return trial_spec(plan, plan.cells[0], "t", (0, 1), find, machines=machines)


def places(spec: TrialSpec) -> list[tuple[str, str | None]]:
    return [(role.name, role.host) for role in spec.roles]


def test_without_a_file_of_hosts_everything_is_here() -> None:
    spec = spec_of()
    assert places(spec) == [
        ("target", None), ("load-1", None), ("load-2", None), ("load-3", None)
    ]  # fmt: skip
    assert spec.roles[0].argv[2] == "127.0.0.1:7000"


def test_copies_are_dealt_out_over_the_hosts_of_a_label() -> None:
    spec = spec_of(inventory=lab())
    assert places(spec) == [
        ("target", "server1"), ("load-1", "load1"), ("load-2", "load2"), ("load-3", "load1")
    ]  # fmt: skip
    assert spec.roles[0].argv[2] == "10.77.0.1:7000"
    assert spec.roles[1].argv == ("/here/load", "10.77.0.1:7000")


def test_each_host_has_as_many_copies() -> None:
    text = STUDY.replace('copies = 3\nhost = "load"', 'copies = 2\nhost = "each:load"')
    assert places(spec_of(text, lab()))[1:] == [
        ("load-1", "load1"), ("load-2", "load1"), ("load-3", "load2"), ("load-4", "load2")
    ]  # fmt: skip
    assert [name for name, _ in places(spec_of(text))] == ["target", "load-1", "load-2"]


def test_a_role_that_names_no_host_runs_on_the_first() -> None:
    text = STUDY.replace('host = "load"\n', "")
    assert {host for _, host in places(spec_of(text, lab()))} == {"server1"}


def test_a_single_copy_has_the_name_of_the_role() -> None:
    text = STUDY.replace("copies = 3\n", "")
    assert places(spec_of(text, lab())) == [("target", "server1"), ("load", "load1")]


def test_a_host_has_its_own_cpus_and_programs() -> None:
    text = STUDY.replace("copies = 3", 'copies = 2\ncontrols = { cpus = "2" }')

    def find_there(*_: object) -> Sequence[str]:
        return ("/there/load",)

    machines = {"load1": Machine((4, 5, 6), find_there)}
    target, first, second = spec_of(text, lab(), machines).roles
    assert target.controls.cpus == (0, 1, 4), "those of the file, for a role that names none"
    assert (first.argv[0], first.controls.cpus) == ("/there/load", (4, 5))
    assert (second.argv[0], second.controls.cpus) == ("/here/load", (0, 1))


def test_a_role_without_cpus_leaves_those_for_housekeeping_alone() -> None:
    """The file names no others: all but these may be measured. The agent itself may run on any."""
    hosts = tuple(
        msgspec.structs.replace(host, cpus=(), housekeeping=(0,) if host.name == "load1" else ())
        for host in lab().hosts
    )
    inventory = msgspec.structs.replace(lab(), hosts=hosts)
    machines = {"load1": Machine((1, 2), find), "load2": Machine((0, 1, 2), find)}
    target, first, second, _ = spec_of(STUDY, inventory, machines).roles
    assert target.controls.cpus is None
    assert first.controls.cpus == (1, 2)
    assert second.controls.cpus is None, "nothing is kept on that host"


def test_spare_cpus_are_those_of_the_host() -> None:
    text = STUDY.replace(
        'host = "server1"\n', 'host = "server1"\ncontrols = { cpus = "1" }\n'
    ).replace("copies = 3", 'copies = 1\ncontrols = { cpus = "spare" }')
    machines = {"load1": Machine((0, 1), find), "server1": Machine((0, 1), find)}
    assert spec_of(text, lab(), machines).roles[1].controls.cpus == (0, 1)
    same = text.replace('host = "load"', 'host = "server1"')
    assert spec_of(same, lab(), machines).roles[1].controls.cpus == (1,)


def test_a_host_that_is_not_there_is_refused_before_the_first_trial() -> None:
    with pytest.raises(HostError, match="role load: no host 'gpu'"):
        spec_of(STUDY.replace('host = "load"', 'host = "gpu"'), lab())


def test_more_copies_on_all_hosts_than_a_trial_can_have() -> None:
    text = STUDY.replace('copies = 3\nhost = "load"', f'copies = {COPIES_MAX}\nhost = "each"')
    with pytest.raises(StudyError, match="copies on all hosts"):
        spec_of(text, lab())


def test_processes_that_run_here_are_not_on_a_host() -> None:
    text = STUDY.replace('host = "server1"\n', "").replace("{host.server1}", "{host.target}")
    known = study(text)
    target = msgspec.structs.replace(
        known.roles[0], attach="pid:1", attached=Attach(cgroup="/x"), ready_probe=None
    )
    attached: Study = msgspec.structs.replace(known, roles=(target, *known.roles[1:]))
    plan = make_plan(attached, "quick", 1, lab())
    with pytest.raises(HostError, match="attached processes are those of this machine"):
        trial_spec(plan, plan.cells[0], "t", (0, 1), find)


def test_the_cells_of_a_plan_do_not_depend_on_hosts() -> None:
    here, there = plan_of(), plan_of(inventory=lab())
    assert here.cells == there.cells and here.order(3) == there.order(3)

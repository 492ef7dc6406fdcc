"""``--wait-quiet``: it waits, names what disturbs, and ends either way."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from concurve.cli.machine import load_item
from concurve.definition.beside_line import Beside
from concurve.definition.study_line import sweep_study
from concurve.errors import BusyError, HostError, StudyError
from concurve.host.load import Load, Process, autogroup_nice, has_autogroups
from concurve.host.lock import measurement_lock, measurement_under_way
from concurve.host.turns import in_line
from concurve.measuring import quiet
from concurve.measuring.heads import with_attached
from concurve.measuring.quiet import (
    QUIET_LOOKS,
    Asked,
    asked_quiet,
    attachable,
    attached_in,
    disturbance,
    is_quiet,
    quiet_machine,
)
from concurve.terms import Disturbance, Waiting
from concurve.wire.spec import Attach

QUIET = Load(0.01, 0.0)
BUSY = Load(0.5, 0.0, (Process("cc1plus", 20, 0, 0.45),))


@pytest.fixture(autouse=True)
def no_autogroups(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said does not depend on the kernel on which the tests run."""
    monkeypatch.setattr(quiet, "has_autogroups", lambda: False)
    monkeypatch.setattr(quiet, "is_ours", lambda pid: True)


class Machine:
    """Shows these loads, one a second; the last one for ever."""

    def __init__(self, *loads: Load) -> None:
        self.loads: Iterator[Load] = iter(loads)
        self.last = loads[-1]
        self.now = 0.0
        self.said: list[str] = []
        self.told: list[Disturbance] = []
        self.holder = ""

    def look(self, seconds: float) -> Load:
        self.now += seconds
        return next(self.loads, self.last)

    def wait(self, seconds: float, *, measure_anyway: bool = False) -> Waiting:
        asked = Asked(seconds, measure_anyway)
        with self.has(asked) as waited:
            self.holder = measurement_under_way()
        return waited

    def has(self, asked: Asked) -> contextlib.AbstractContextManager[Waiting]:
        return quiet_machine(asked, self.said.append, self.tell, self.look, lambda: self.now)

    def tell(self, seconds: float, most_seconds: float, disturbs: Disturbance) -> None:
        self.told.append(disturbs)


def test_a_quiet_machine_is_waited_for_no_longer_than_it_takes_to_see() -> None:
    machine = Machine(QUIET)
    machine.wait(300)
    assert machine.now == QUIET_LOOKS
    assert machine.said[1:] == ["the machine is quiet, after 3.0 s"]


def test_that_it_waits_is_said_before_it_looks() -> None:
    """So concurve web ends in time what it computes itself."""
    machine = Machine(QUIET)
    heard: list[list[str]] = []

    def look(seconds: float) -> Load:
        heard.append([*machine.said])
        return machine.look(seconds)

    with quiet_machine(Asked(300), machine.said.append, machine.tell, look, lambda: machine.now):
        pass
    assert heard[0] == ["waiting at most 5 min for a quiet machine"]


def test_one_quiet_look_is_not_enough() -> None:
    machine = Machine(QUIET, QUIET, BUSY, QUIET)
    machine.wait(300)
    assert machine.now == 3 + QUIET_LOOKS


def test_what_disturbs_is_told_by_name_after_each_look() -> None:
    machine = Machine(*[BUSY] * 25, QUIET)
    machine.wait(300)
    assert len(machine.told) == 25
    what, briefly, who, is_turn = machine.told[0]
    assert "cc1plus (pid 20, nice 0) 45 %" in what
    assert "other processes use 50 % of the CPU time (limit 5 %)" in what
    assert briefly == "cc1plus (pid 20) 45 %, short-lived or small processes 5 %"
    assert (who, is_turn) == ("cc1plus (pid 20)", False)


def test_what_is_told_briefly_begins_with_who_takes_most_and_adds_up_a_run() -> None:
    runner = Process("concurve-trial", 31, 0, 0.02, run=30)
    load = Load(0.5, 0.25, (runner, Process("mine", 32, 0, 0.02, run=30), Process("sh", 7, 0, 0.0)))
    disturbs = disturbance(load)
    assert disturbs is not None
    assert disturbs.briefly == (
        "short-lived or small processes 46 %, the hypervisor 25 %, "
        "another concurve run (pid 30) 4 %"
    )
    assert "0 %" not in disturbs.what.replace("50 %", "")


@pytest.mark.parametrize("less", [0.002, 0.02])
def test_processes_that_seem_to_take_more_than_all_leave_nothing(less: float) -> None:
    """They are read at other moments than the machine."""
    disturbs = disturbance(Load(0.5, 0.0, (Process("sh", 7, 0, 0.5 + less),)))
    assert disturbs is not None
    assert disturbs.briefly == f"sh (pid 7) {50 + 100 * less:.0f} %"


def test_what_is_rounded_to_zero_is_not_told() -> None:
    """Shares are counts of ticks: one of exactly half a percent is common."""
    disturbs = disturbance(Load(0.5, 0.0, (Process("sh", 7, 0, 0.015), Process("x", 8, 0, 0.005))))
    assert disturbs is not None
    assert disturbs.briefly == "short-lived or small processes 48 %, sh (pid 7) 2 %"
    assert disturbs.what.endswith(": sh (pid 7, nice 0) 2 %, others or short-lived ones 48 %")


def test_the_machine_s_load_says_to_wait_for_the_run_that_it_names() -> None:
    run, theirs = Process("concurve", 39, 0, 0.1, run=39), Process("x", 40, 0, 0.2, run=39)
    item = load_item(Load(0.5, 0.0, (theirs, run)))
    assert item.remedy == "wait for that concurve run (pid 39): `concurve sweep --wait-quiet 30m …`"
    both = load_item(Load(0.5, 0.0, (theirs, run, Process("cc1", 7, 19, 0.1)))).remedy
    assert both.startswith("end cc1 (pid 7), or stop it meanwhile (`kill -STOP 7`, ")
    assert ", or wait for that concurve run (pid 39): " in both
    alone = load_item(Load(0.5, 0.0, (Process("cc1", 7, 19, 0.5),))).remedy
    assert alone.endswith(
        ": end this process, or stop it meanwhile (`kill -STOP 7`, afterwards `kill -CONT 7`), or "
        "wait: `concurve sweep --wait-quiet 5m …`"
    )


def test_load_in_bursts_is_not_to_be_waited_for() -> None:
    busy, idle = (Load(share, 0.0, (Process("tick", 7, 0, share),)) for share in (0.3, 0.01))
    other = Load(0.3, 0.0, (Process("cc1", 9, 0, 0.3),))
    for parts, bursts in (
        ([busy, idle, busy, idle], True),
        ([idle, busy, busy, idle, idle, busy], True),
        ([busy, busy, busy], False),  # it may end
        ([idle, busy, busy], False),
        ([busy, other, idle], False),
        ([], False),
    ):
        remedy = load_item(busy, parts).remedy
        assert ("; tick (pid 7) runs in bursts: waiting hardly helps" in remedy) is bursts
        assert ("--wait-quiet" in remedy) is not bursts
    small = Load(0.3, 0.0, (Process("tick", 7, 0, 0.001),))
    assert "--wait-quiet" in load_item(small, [busy, idle, busy]).remedy


def test_where_sessions_share_the_cpus_a_low_priority_is_that_of_the_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process of another session that has nice 19 takes as much as before."""
    monkeypatch.setattr(quiet, "has_autogroups", lambda: True)
    monkeypatch.setattr(quiet, "is_apart", lambda pid: pid < 10)
    monkeypatch.setattr(quiet, "is_ours", lambda pid: pid > 10)
    monkeypatch.setattr(quiet, "autogroup_nice", lambda pid: 19 if pid == 6 else 0)

    def said(*processes: Process) -> str:
        return load_item(Load(0.5, 0.0, processes)).remedy

    theirs, niced, third = (
        Process("cc1", pid, nice, 0.2) for pid, nice in ((7, 0), (8, 19), (9, 0))
    )
    ours = Process("cc1", 20, 0, 0.2)
    yields, of_session = "the lowest priority", "`echo 19 | sudo tee"
    assert said(theirs).startswith(
        f"end this process, or give it {yields} ({of_session} /proc/7/autogroup`), or wait"
    )
    assert f"give it {yields} ({of_session} /proc/8/autogroup`)" in said(niced)
    assert f"end this process, or give it {yields} (`renice -n 19 -p 20`)" in said(ours)
    assert (
        f"end these processes, or give them {yields} (`renice -n 19 -p 20`; {of_session} "
        "/proc/7/autogroup /proc/9/autogroup`)"
    ) in said(theirs, third, ours)
    monkeypatch.setattr(quiet, "is_ours", lambda pid: pid < 9)
    assert (
        f"{yields} (`sudo renice -n 19 -p 20`; `echo 19 > /proc/7/autogroup`; {of_session} "
        "/proc/9/autogroup`)"
    ) in said(theirs, third, ours), "a user writes the file of an own process"
    of_lowest_session = Process("cc1", 6, 0, 0.2)
    assert "end this process, or stop it meanwhile (`kill -STOP 6`" in said(of_lowest_session)
    monkeypatch.undo()
    (tmp_path / "6").mkdir()
    for text, nice in (("/autogroup-41 nice 19\n", 19), ("", 0)):
        (tmp_path / "6/autogroup").write_text(text)
        assert autogroup_nice(6, tmp_path) == nice
    assert autogroup_nice(7, tmp_path) == 0
    assert quiet.is_ours(os.getpid())
    assert quiet.is_ours(7, tmp_path) is (os.geteuid() == 0), "it ended"
    assert not quiet.is_apart(os.getpid()) and quiet.is_apart(2**30)
    file = tmp_path / "enabled"
    for text, has in (("1\n", True), ("0\n", False), ("", False)):
        file.write_text(text)
        assert has_autogroups(file) is has
    assert not has_autogroups(tmp_path / "missing")


def test_bursts_in_a_quiet_look_are_told() -> None:
    """Two commands that look at the same load one after the other may see different parts of it."""
    quiet_part, busy = Load(0.0, 0.0), Load(0.3, 0.0)
    item = load_item(Load(0.04, 0.0), [*[quiet_part] * 7, busy])
    assert item.mark == "--"
    assert "use 4.0 % of the CPU time in 2 s, but " in item.says
    assert "up to 30 % for 0.25 s" in item.says
    assert load_item(QUIET, [quiet_part] * 8).mark == "ok"
    stolen = load_item(QUIET, [*[quiet_part] * 7, Load(0.0, 0.1)])
    assert "the hypervisor up to 10 % for 0.25 s" in stolen.says


def test_a_time_without_a_unit_is_of_seconds_and_is_told_with_it() -> None:
    asked = asked_quiet("5", measure_anyway=False)
    assert asked is not None and asked.seconds == 5
    with pytest.raises(StudyError, match=r"--wait-quiet: 2 s is too short"):
        asked_quiet("2", measure_anyway=False)


def test_nobody_is_asked_to_give_way_who_has_ended(tmp_path: Path) -> None:
    (tmp_path / "20").mkdir()
    assert quiet.quieting({20: 0, 21: 0}, tmp_path) == ["renice -n 19 -p 20"]
    assert quiet.quieting({20: 19}, tmp_path) == [], "it has the lowest priority"


def test_a_machine_that_does_not_become_quiet_ends_the_wait() -> None:
    machine = Machine(BUSY)
    with pytest.raises(HostError, match=r"was not quiet within 30 s: .*cc1plus") as refused:
        machine.wait(30)
    assert "--measure-anyway" in refused.value.remedy
    assert machine.now <= 31


def test_a_machine_that_does_not_become_quiet_is_measured_on_where_that_was_asked() -> None:
    machine = Machine(BUSY)
    waited = machine.wait(30, measure_anyway=True)
    assert machine.holder, "it has the machine"
    assert (waited.before_seconds, waited.is_over) == (30, True)
    assert waited.busiest[0] == "cc1plus"
    assert machine.said[-1].startswith("the machine was not quiet within 30 s: ")
    assert machine.said[-1].endswith("; it is measured on all the same")


def test_no_two_measure_at_once_where_the_machine_need_not_be_quiet() -> None:
    machine = Measured(looks=1000)
    with pytest.raises(BusyError) as refused:
        machine.wait(30, measure_anyway=True)
    assert refused.value.what.startswith("waited 30 s in vain: another measurement runs")
    assert "--measure-anyway is for other processes" in refused.value.remedy
    with pytest.raises(BusyError) as refused:
        machine.wait(30)
    assert refused.value.remedy == "a longer --wait-quiet"


def test_nobody_is_asked_to_end_the_programs_of_another_run() -> None:
    mine, theirs = Process("cc1plus", 20, 0, 0.3), Process("x", 40, 0, 0.2, run=39)
    init, niced = Process("init", 1, 0, 0.3), Process("backup", 50, 19, 0.3)
    yields = "or give it the lowest priority (`renice -n 19 -p 20`), wait longer"
    for processes, remedy in (
        ((mine,), f"end this process, {yields}"),
        ((theirs,), "wait longer"),
        ((mine, theirs), f"end cc1plus (pid 20), {yields}"),
        ((mine, init), f"end cc1plus (pid 20), {yields}"),
        ((init,), "wait longer"),
        (
            (niced,),
            "end this process, or stop it meanwhile (`kill -STOP 50`, afterwards "
            "`kill -CONT 50`), wait longer",
        ),
        (
            (mine, niced),
            "end these processes, or stop them meanwhile (`kill -STOP 20 50`, "
            "afterwards `kill -CONT 20 50`), wait longer",
        ),
        ((Process("small", 60, 0, 0.01),), "wait longer"),  # beside many that are not named
    ):
        with pytest.raises(HostError) as refused:
            Machine(Load(0.5, 0.0, processes)).wait(30)
        assert refused.value.remedy.startswith(f"{remedy}, or add --measure-anyway")


def test_a_busy_machine_on_which_a_measurement_runs_waits_for_that() -> None:
    """Its programs are what takes the CPU time."""
    machine = Measured(looks=1000)
    machine.last = BUSY
    with pytest.raises(BusyError, match="another measurement runs"):
        machine.wait(30)
    assert all(disturbs.is_turn for disturbs in machine.told)


def test_what_was_waited_at_the_start_is_gone() -> None:
    machine = Machine(*[BUSY] * 17, QUIET)
    waited = machine.wait(300)
    assert (waited.before_seconds, waited.left_seconds, waited.times) == (20, 280, 1)
    assert Machine(QUIET).wait(300).waited_seconds == 0, "to look is not to wait"


def test_to_measure_anyway_is_no_wish_of_who_does_not_wait() -> None:
    with pytest.raises(StudyError) as refused:
        asked_quiet(None, True)
    assert "--wait-quiet 5m" in refused.value.remedy
    assert asked_quiet("90s", True) == Asked(90, True)
    assert asked_quiet(None, False) is None


def test_a_wait_in_which_nothing_can_become_quiet_is_refused() -> None:
    with pytest.raises(StudyError) as refused:
        asked_quiet("500ms", False)
    assert "500ms is too short" in refused.value.what and "3s or more" in refused.value.remedy
    assert asked_quiet("3s", False) == Asked(3)


def test_steal_disturbs_too() -> None:
    stolen = Load(0.0, 0.1)
    assert not is_quiet(stolen)
    disturbs = disturbance(stolen)
    assert disturbs is not None
    assert disturbs.what == "the hypervisor takes 10 % of the CPU time (limit 2 %)"
    assert disturbance(QUIET) is None


def test_what_a_study_attaches_disturbs_no_more_than_in_a_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = sweep_study(["true", "{n}"], [("n", "1,2")], 2, beside=Beside(attach=str(os.getpid())))
    attached = attached_in([study, with_attached(study)])
    assert {each.process.pid for each in attached if each.process} == {os.getpid()}
    looked: list[Sequence[Attach]] = []

    def load_over(seconds: float, sleep: object, *, attached: Sequence[Attach]) -> Load:
        looked.append(attached)
        return QUIET

    monkeypatch.setattr("concurve.measuring.quiet.load_over", load_over)
    with quiet_machine(Asked(9), lambda _: None, lambda *_: None, attached=attached):
        assert looked == [attached] * QUIET_LOOKS


def test_studies_whose_process_has_gone_keep_no_others_from_the_wait() -> None:
    here, gone = (
        sweep_study(["true", "{n}"], [("n", "1,2")], 2, beside=Beside(attach=str(pid)))
        for pid in (os.getpid(), 2**22)  # no number of a process is as great
    )
    alone = sweep_study(["true", "{n}"], [("n", "1,2")], 2)
    with pytest.raises(HostError):
        attached_in([here, gone, alone])
    assert attachable([here, gone, alone]) == [here, alone]


class Measured(Machine):
    """Another measurement, which uses no CPU time, runs there until so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__(QUIET)
        self.until = looks
        self.other = contextlib.ExitStack()

    def wait(self, seconds: float, *, measure_anyway: bool = False) -> Waiting:
        with self.other:
            self.other.enter_context(measurement_lock("concurve run 1 (another)"))
            return super().wait(seconds, measure_anyway=measure_anyway)

    def look(self, seconds: float) -> Load:
        if self.now == self.until:
            self.other.close()
        return super().look(seconds)


def test_another_measurement_is_waited_for_although_it_uses_no_cpu_time() -> None:
    machine = Measured(looks=10)
    machine.wait(300)
    assert machine.now > 10
    assert "another measurement runs on this machine" in machine.told[0].what
    assert "concurve run 1 (another)" in machine.told[0].briefly
    assert "on a quiet machine" in machine.holder


def test_another_measurement_that_goes_on_ends_the_wait() -> None:
    machine = Measured(looks=1000)
    with pytest.raises(HostError, match="another measurement runs"):
        machine.wait(30)


def test_who_waited_keeps_the_machine_for_a_run_of_its_own() -> None:
    machine = Machine(QUIET)
    with machine.has(Asked(9)):
        with measurement_lock("concurve run 7 (mine)"):
            assert measurement_under_way().endswith("concurve run 7 (mine)")
        assert measurement_under_way(), "a campaign has more studies"
    assert not measurement_under_way()


# -- the order of those that wait -----------------------------------------------------------------


def test_who_came_first_has_the_machine_first() -> None:
    """The second one sees a quiet machine as early, and would take it."""
    machine, second = Machine(QUIET), Machine(QUIET)
    with in_line() as ahead:
        assert ahead() == 0
        with pytest.raises(BusyError, match="1 other run that waits came before"):
            second.wait(30)
    second.wait(30)
    with machine.has(Asked(30)), in_line() as ahead:
        assert ahead() == 0, "who measures waits no more"


def test_the_place_in_the_line_is_told() -> None:
    machine = Measured(looks=10)
    machine.wait(300)
    assert machine.told[0].what.endswith("; you are first in line")
    with in_line(), in_line(), in_line():
        machine = Measured(looks=1000)
        with pytest.raises(BusyError, match="you are number 4 in line"):
            machine.wait(30)
        assert machine.told[0].briefly.startswith("you are number 4 in line behind pid ")


def test_a_busy_machine_is_measured_on_anyway_whoever_waits_for_a_quiet_one() -> None:
    with in_line():
        machine = Machine(BUSY)
        machine.wait(30, measure_anyway=True)
        assert machine.holder


def test_processes_of_the_lowest_priority_do_not_trouble_a_program_with_cpus_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    niced, mine = Process("backup", 50, 19, 0.3), Process("cc1plus", 20, 0, 0.2)
    item = load_item(Load(0.3, 0.0, (niced,)))
    assert item.remedy.startswith("none for a program with a CPU for each of its threads: ")
    assert "for more threads, or a server and its load: end this process" in item.remedy
    for load in (
        Load(0.5, 0.0, (niced, mine)),
        Load(0.5, 0.0, (niced,)),  # beside others that are not named
        Load(0.3, 0.1, (niced,)),
    ):
        assert not load_item(load).remedy.startswith("none")
    monkeypatch.setattr(quiet, "has_autogroups", lambda: True)
    # Of a session that nice does not compare it takes its share.
    monkeypatch.setattr(quiet, "is_apart", lambda pid: True)
    assert not load_item(Load(0.3, 0.0, (niced,))).remedy.startswith("none")

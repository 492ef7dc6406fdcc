"""A server that the command loads and no role is: it counts as a stranger, and whoever reads the
answer is told how to attach it, and not that it must be ended."""

from __future__ import annotations

import msgspec
import pytest

from concurve.analysis.comparison import compare_levels
from concurve.analysis.comparison.advice import _common
from concurve.analysis.run import first_record, stored_run, trial_findings_of
from concurve.analysis.strangers import causes_of, constant_of, is_stolen, strangers_of
from concurve.definition.attaching import attached_role
from concurve.definition.purposes import names_a_server
from concurve.definition.study import Role, Rules, Study
from concurve.explain import explain_run
from concurve.findings.again import ATTACH_IT, run_again
from concurve.findings.cells import Reject
from concurve.findings.run import Report
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.readings.contamination import programs_named
from concurve.report.html import to_html
from concurve.report.sections.limits import explanation_document
from concurve.report.sections.run import ALL_TOPICS, brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.terms import ANOTHER_RUN, OTHERS, Waiting
from concurve.wire import decode_record
from concurve.wire.record import ForeignProcess, Waits
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import figures_alone

pytestmark = pytest.mark.usefixtures("empty_charts")

RULES = Rules(repeats_min=6, repeats_max=6, redo_max=0, redo_share=0.0)
SENTENCE = (
    f"If postgres is the server that this command loads, do not wait for it or end it: {ATTACH_IT} "
    "in a new run tells that it is no stranger."
)
DETAIL = "processes outside the trial used 30.0 % of the machine's CPU time (limit 5 %): "


class BesideEngine(FakeEngine):
    """Trials beside a PostgreSQL that takes half a CPU."""

    def run(self, spec: TrialSpec) -> bytes:
        record = decode_record(super().run(spec), spec.trial)
        taken = record.wall_ns // 2
        machine = msgspec.structs.replace(
            record.machine,
            busy_ns=record.wall_ns + taken,
            foreign_cpu_ns=taken,
            foreign_low_priority_ns=0,
            foreign_processes=(ForeignProcess(pid=7, name="postgres", nice=0, cpu_ns=taken),),
        )
        return msgspec.json.encode(msgspec.structs.replace(record, machine=machine))


def run_of(study: Study, store: Store, waiting: Waiting | None = None) -> Report:
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, BesideEngine(), clock=FakeClock(0.001)).start()
    if waiting is not None:  # as if it had waited: a run that is asked to looks at this machine
        store.set_head(head.id, msgspec.structs.replace(head, waiting=waiting).row().head)
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


def loading(study: Study) -> Study:
    """The same study whose command has an address."""
    role = study.roles[0]
    command = (*role.command, "http://127.0.0.1:8080")
    return msgspec.structs.replace(
        study, roles=(msgspec.structs.replace(role, command=command), *study.roles[1:])
    )


def reject(detail: str, cause: str = "foreign_cpu") -> Reject:
    return Reject(cell=0, parameters={}, block=0, attempt=0, cause=cause, detail=detail, used=True)


def test_of_as_many_trials_the_cause_that_took_most_is_told_first() -> None:
    taken = [reject("the hypervisor took 3.0 % of the machine's CPU time (limit 2 %)", "steal")]
    used = [reject(f"{DETAIL}python3 (pid 7, nice 19) 30 %")]
    assert causes_of([*taken, *used]) == ["foreign_cpu", "steal"]
    assert not is_stolen([*taken, *used])
    assert is_stolen([*taken * 2, *used]) and causes_of([*taken * 2, *used])[0] == "steal"
    assert not is_stolen([]) and causes_of([]) == []


def test_who_waits_at_no_socket_loads_no_server() -> None:
    study = small_study(RULES, threads=(1, 2))
    rejects = [reject(f"{DETAIL}postgres (pid 7, nice 0) 30 %")] * 4
    store = Store()
    run_of(study, store)
    trial = first_record(store, stored_run(store, store.find_run("last")))
    assert trial is not None

    def named(waits: Waits | None) -> tuple[str, ...]:
        roles = tuple(msgspec.structs.replace(role, waits=waits) for role in trial.roles)
        return strangers_of(study, rejects, 4, msgspec.structs.replace(trial, roles=roles))

    busy = Waits(readings=100, running=90, futex=10)
    assert named(busy) == ()
    assert named(msgspec.structs.replace(busy, network=1)) == ("postgres",)
    assert named(msgspec.structs.replace(busy, poll=1)) == ("postgres",)
    pool = msgspec.structs.replace(busy, poll=9, pipe=9)
    for nothing in (None, Waits(readings=12, running=12), pool):
        assert named(nothing) == (), "a pool of processes polls its pipes; nothing else is seen"
    study = loading(study)
    assert named(busy) == (), "it has an address, and never waits for an answer"
    for something in (None, Waits(readings=40, running=40), pool):
        assert named(something) == ("postgres",)


@pytest.mark.parametrize(
    ("command", "is_client"),
    [
        (("./client", "http://127.0.0.1:8080/x"), True),
        (("./client", "10.0.0.7:80"), True),
        (("./client", "localhost"), True),
        (("./client", "--port", "8080"), True),
        (("./client", "--host=db"), True),
        (("sh", "-c", "cd x && ./client -url $U"), True),
        (("taskset", "-c", "1", "redis-benchmark", "-n", "9"), True),
        (("docker", "exec", "db", "pgbench", "-c", "8"), True),
        (("rustc", "-C", "opt-level=3", "main.rs"), False),
        (("find", "/usr", "-name", "port"), False),
        (("python3", "mypool.py", "4"), False),
        (("./app-1.2.3", "--threads", "4"), False),
    ],
)
def test_a_client_says_in_its_command_whom_it_asks(
    command: tuple[str, ...], is_client: bool
) -> None:
    study = small_study(RULES, threads=(1, 2))
    role = msgspec.structs.replace(study.roles[0], command=command)
    assert names_a_server(msgspec.structs.replace(study, roles=(role,))) == is_client


def test_who_disturbs_nearly_all_trials_is_not_waited_for() -> None:
    """It runs all the time, and a wait for its end helps nobody."""
    by_python = [reject(f"{DETAIL}python3 (pid 7, nice 0) 30 %")] * 9
    assert constant_of(by_python, 10) == ("python3 (PID 7)",)
    each_anew = [reject(f"{DETAIL}cc1 (pid {pid}, nice 0) 30 %") for pid in range(9)]
    assert constant_of(each_anew, 10) == ("cc1",)
    assert constant_of(each_anew, 11) == ()
    assert constant_of(by_python[:4], 4) == (), "four trials may be one build"
    assert constant_of([reject("…", "steal")] * 9, 9) == ()
    said = run_again(False, constant=("python3",))
    assert said.startswith("python3 took CPU time in nearly all disturbed trials, so waiting")
    assert "(renice -n 19 -p PID)" in said
    assert "--wait-quiet" not in said
    assert "End them, or lower their priority" in run_again(False, constant=("a", "b"))
    ours = constant_of([reject(f"{DETAIL}concurve (pid 7, nice 0) 30 %")] * 9, 9)
    assert ours == (ANOTHER_RUN,)
    again = run_again(False, constant=ours)
    assert again.startswith("Another concurve run took CPU time") and "End it" not in again
    over = Waiting(seconds=60, before_seconds=60, times=1, busy_with={"python3": 9.0})
    assert "or --wait-quiet 4m" in run_again(False, over)
    assert "--wait-quiet" not in run_again(False, over, constant=("python3",))
    found = run_of(small_study(RULES, threads=(1, 2)), Store())
    assert found.run.constant == ("postgres (PID 7)",)
    document = brief_run_document(found, topics=ALL_TOPICS)
    told = " ".join(line.plain for line in lines(document, 900))
    assert "postgres (PID 7) took CPU time in nearly all disturbed trials" in told
    assert "--wait-quiet" not in told


def test_a_process_that_disturbs_most_trials_is_to_be_ended_where_it_is_always_the_same() -> None:
    """Some trials are quiet, but no other process disturbs."""
    one = [reject(f"{DETAIL}python3 (pid 7, nice 0) 30 %, init (pid 1, nice 0) 1 %")] * 8
    (constant,) = constant_of(one, 16)
    assert constant == "python3 (PID 7)", "who took a thirtieth of it is not named"
    assert "(renice -n 19 -p 7)" in run_again(False, constant=(constant,))
    assert constant_of(one, 17) == (), "most trials were quiet"
    other = [reject(f"{DETAIL}cc1 (pid {pid}, nice 0) 30 %") for pid in range(8)]
    assert constant_of(other, 16) == (), "a build ends"
    assert constant_of([*one, *other[:2]], 16) == (), "not the only one"


def test_of_a_program_with_several_processes_those_are_named_that_run_all_the_time() -> None:
    both = "python3 (pid 7, nice 0) 30 %, python3 (pid 9, nice 0) 30 %"
    details = [*([f"{DETAIL}{both}"] * 9), f"{DETAIL}{both}, python3 (pid 8, nice 0) 20 %"]
    constant = constant_of(map(reject, details), 10)
    assert constant == ("python3 (PIDs 7, 9)",)
    said = run_again(False, constant=constant)
    assert "End them, or lower their priority (renice -n 19 -p 7 9)" in said
    assert "(renice -n 19 -p 7 9 11)" in run_again(False, constant=(*constant, "sh (PID 11)"))
    assert _common([list(constant), ["python3 (PID 7)"]]) == ["python3"]


def test_the_lowest_priority_of_those_that_run_all_the_time_is_told() -> None:
    niced = [reject(f"{DETAIL}python3 (pid 7, nice 19) 30 %")] * 9
    assert constant_of(niced, 10) == ("python3 (PID 7, nice 19)",)
    lowered = [reject(f"{DETAIL}python3 (pid 7, nice 0) 30 %"), *niced]
    assert constant_of(lowered, 10) == ("python3 (PID 7, nice 19)",), "it was lowered meanwhile"
    both = "python3 (pid 7, nice 19) 30 %, python3 (pid 9, nice 0) 30 %"
    of_both = constant_of([reject(f"{DETAIL}{both}")] * 9, 10)
    assert of_both == ("python3 (PID 9)", "python3 (PID 7, nice 19)")
    assert _common([list(of_both), ["python3 (PID 5)"]]) == ["python3"]


def test_several_in_bursts_that_disturb_nearly_all_together_are_all_named() -> None:
    one, other = "python3 (pid 7, nice 0) 30 %", "find (pid 9, nice 0) 20 %"
    bursts = [reject(f"{DETAIL}{said}") for said in (one, other, f"{one}, {other}")] * 4
    assert constant_of(bursts, 16) == ("python3 (PID 7)", "find (PID 9)")
    same = [reject(bursts[n].detail.replace("find", "python3")) for n in range(12)]
    assert constant_of(same, 16) == ("python3 (PIDs 7, 9)",)
    quiet = [reject(f"{DETAIL}cc1 (pid {pid}, nice 0) 30 %") for pid in range(20, 23)]
    assert constant_of([*bursts, *quiet], 16) == (), "a build disturbed others"
    small = [reject(f"{item.detail}, init (pid 1, nice 0) 1 %") for item in (*bursts, *quiet)]
    assert constant_of(small, 17) == (), "who takes next to nothing counts for nobody"
    assert constant_of(bursts, 25) == (), "most trials were quiet"
    ours = [reject(bursts[n].detail.replace("find", "concurve")) for n in range(12)]
    assert constant_of(ours, 16) == ("python3 (PID 7)",), "another run ends"


def test_runs_beside_the_same_program_name_it_without_the_pid_of_one() -> None:
    assert _common([["a (PID 1)", "b"], ["a (PID 2)"]]) == ["a"]
    assert _common([["a (PID 1)"], ["a (PID 1)"]]) == ["a (PID 1)"]
    assert _common([["a (PID 1)"], []]) == []


@pytest.mark.parametrize(
    "waiting", [None, Waiting(seconds=300, before_seconds=3), Waiting(seconds=300)]
)
def test_how_to_attach_a_server_is_said_once_beside_the_advice(waiting: Waiting | None) -> None:
    store = Store()
    found = run_of(loading(small_study(RULES, threads=(1, 2))), store, waiting)
    again = run_again(False, waiting, found.run.strangers, constant=found.run.constant)
    assert again.startswith(f"{SENTENCE} "), "postgres is a known server"
    row = store.find_run(found.run.id)
    explained = explanation_document(explain_run(store, row))
    for document in (brief_run_document(found, topics=ALL_TOPICS), explained):
        assert " ".join(line.plain for line in lines(document, 900)).count(SENTENCE) == 1
    assert to_html(run_document(found)).count("--attach PID") == 1
    assert SENTENCE in compare_levels(found, "threads", ("1", "2")).advice[-1]


def test_a_server_that_is_known_is_no_stranger() -> None:
    found = run_of(loading(small_study(RULES, threads=(1, 2))), Store())
    assert found.run.strangers == ("postgres",), "or this tests nothing"
    one = small_study(RULES, threads=(1, 2))
    started = Role(name="server", command=("serve",), end="serve")
    attached = attached_role("server", "4711", "here")
    for server in (started, attached):
        study = msgspec.structs.replace(one, roles=(*one.roles, server))
        assert strangers_of(study, [reject(f"{DETAIL}firefox (pid 7, nice 0) 30 %")], 2) == ()
    ours = Role(name="target", program="targets", command=("busy",))
    alone = msgspec.structs.replace(one, roles=(ours,))
    assert strangers_of(alone, [reject(DETAIL)], 2) == (), "a program of ours loads no server"
    competitor = Role(
        name="background", program="targets", command=("busy", "--until-stopped"), end="serve"
    )
    beside = msgspec.structs.replace(one, roles=(*one.roles, competitor))
    assert strangers_of(beside, [reject(DETAIL)], 2) == (OTHERS,), "a competitor serves nobody"


def test_those_that_took_most_are_named_first() -> None:
    study = small_study(RULES, threads=(1, 2))
    said = [
        f"{DETAIL}cc1plus (pid 7, nice 0) 10 %, make (pid 8, nice 0) 1 %",
        f"{DETAIL}tmux: server (pid 9, nice -5) 20 %, cc1plus (pid 10, nice 0) 15 %",
    ]
    assert strangers_of(study, map(reject, said), 2) == ("cc1plus", "tmux: server")
    assert strangers_of(study, [reject("…", "steal")], 2) == (), "the hypervisor is no server"
    assert strangers_of(study, [reject(DETAIL + "others or short-lived ones 9 %")], 2) == (OTHERS,)
    assert strangers_of(study, [], 2) == ()
    assert "If what takes the CPU time is the server" in run_again(False, None, (OTHERS,))
    assert "If a or b is the server" in run_again(False, None, ("a", "b"))
    assert "--attach" not in run_again(True, None, ("a",)), "nothing is attached on other hosts"


def test_programs_are_read_from_what_a_sign_says() -> None:
    of = "host east: 2 workers on 2 CPUs were ready to run while others had the CPU, for 9 % of it "
    of += "(limit 5 %): of the machine's CPU time postgres (pid 7, nice 0) 12 %, yes (pid 8, "
    assert programs_named(f"{of}nice 19) 3 %") == [("postgres", 12), ("yes", 3)]
    assert programs_named("nothing (limit 5 %)") == []


def test_who_disturbs_few_trials_or_measures_himself_is_no_server() -> None:
    study = small_study(RULES, threads=(1, 2))
    by_firefox = [reject(f"{DETAIL}firefox (pid 7, nice 0) 30 %")] * 5
    assert strangers_of(study, by_firefox, 10) == ("firefox",)
    assert strangers_of(study, by_firefox, 11) == (), "a server is loaded in every trial"
    by_ours = [reject(f"{DETAIL}concurve (pid 7, nice 0) 30 %")] * 5
    assert strangers_of(study, by_ours, 10) == ()
    assert strangers_of(study, by_ours + by_firefox, 10) == ("firefox",)

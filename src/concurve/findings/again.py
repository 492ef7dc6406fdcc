"""What to do about figures in doubt."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from concurve import words
from concurve.terms import ANOTHER_RUN, HYPERVISOR, OTHERS, Waiting

#: How a server is attached, with all that the option takes.
ATTACH_IT = "--attach PID (or unit:NAME, container:NAME; in a study file a role with attach)"

#: What helps where the hypervisor takes the CPU time.
_ELSEWHERE = "Run again at another time or on another machine"

#: Programs that serve others, as the kernel names them, with 15 letters at most: one of them that
#: takes CPU time while a command runs, which may be a client, is most likely what that loads.
SERVERS = frozenset({
    "apache2", "beam.smp", "caddy", "clickhouse-serv", "dragonfly", "envoy", "etcd", "haproxy",
    "httpd", "influxd", "keydb-server", "lighttpd", "mariadbd", "memcached", "mongod", "mysqld",
    "nginx", "php-fpm", "postgres", "redis-server", "traefik", "uwsgi", "valkey-server", "varnishd",
})  # fmt: skip

#: A wait that was too short is to be so many times as long.
LONGER = 4

#: Nobody yields more than at this nice value.
LOWEST_NICE = 19


def run_again(
    over_hosts: bool,
    waiting: Waiting | None = None,
    strangers: Sequence[str] = (),
    *,
    is_stolen: bool = False,
    constant: Sequence[str] = (),
    autogroups: bool = False,
) -> str:
    """What to do about figures in doubt, in words that the next run can follow. One waits for this
    machine only where it is the one that measures; who was ``waiting`` already is told what helps
    beside that. ``strangers`` disturbed a run in which no role serves: one of them may be the
    server that its command loads. ``is_stolen``: the hypervisor took the CPU time of most trials in
    doubt, which nobody on this machine can end. ``constant`` are programs that disturbed nearly
    all that were disturbed: to wait does not help against those. ``autogroups``: the kernel shares
    the CPUs among sessions first. Of strangers that are known servers it is said first how to
    attach them, and never to end them: who does as told would end what is measured."""
    if over_hosts:
        return "Run again when the hosts are quiet; concurve doctor on each says why."
    again = "Run again: --wait-quiet 5m; concurve doctor says why."
    servers = SERVERS.intersection(strangers)
    constant = [name for name in constant if program_of(name) not in servers]
    if servers:
        again = "Else concurve doctor says what helps."
    if waiting is None and constant:
        again = _of_constant(constant, autogroups=autogroups)
    elif waiting is not None:
        again = _after(
            waiting,
            _ELSEWHERE if is_stolen else _end(waiting, servers),
            is_constant=bool(constant or servers),
        )
    advice = (again, _of_a_server(strangers))
    return " ".join(filter(None, reversed(advice) if servers else advice))


def lowest_priority(
    same: Sequence[object], others: Sequence[object], of_others: Collection[object] = ()
) -> list[str]:
    """The commands that give processes the lowest priority, by their PIDs: ``same`` are of a
    session whose threads nice compares, ``others`` of sessions among which the kernel shares the
    CPUs first (sched(7)). Those among them that are ``of_others``, of another user, take root."""
    found = []
    for root in ("", "sudo "):
        if pids := [str(pid) for pid in same if (pid in of_others) is bool(root)]:
            found.append(f"{root}renice -n {LOWEST_NICE} -p {' '.join(pids)}")
    # The kernel refuses a user a second one within 0.1 s: one command each.
    found += [
        f"echo {LOWEST_NICE} > /proc/{pid}/autogroup" for pid in others if pid not in of_others
    ]
    files = " ".join(f"/proc/{pid}/autogroup" for pid in others if pid in of_others)
    return [*found, f"echo {LOWEST_NICE} | sudo tee {files}"] if files else found


def _of_constant(constant: Sequence[str], *, autogroups: bool) -> str:
    """What helps against those that run all the time; another run of the laboratory ends."""
    if ANOTHER_RUN in constant:
        return (
            "Another concurve run took CPU time in nearly all disturbed trials. Run again after "
            "its end: --wait-quiet 30m waits for it."
        )
    is_one = len(constant) == 1 and "(PIDs" not in constant[0]
    it = "it" if is_one else "them"
    found = [_WITH_PIDS.fullmatch(name) for name in constant]
    pids = ", ".join([item["pids"] if item else "" for item in found]).split(", ")
    are_lowest = [item is not None and item["lowest"] is not None for item in found]
    tells = "; concurve doctor lists what runs"
    if any(are_lowest):
        # Nice values of other sessions count only inside those, and a lower one may help there.
        is_said = all(are_lowest) and not autogroups
        begun = f"{'Its' if is_one else 'Their'} priority is the lowest: end" if is_said else "End"
        what = f"{begun} {it}, or stop {it} meanwhile ({stopping(pids if all(pids) else ['PID'])})"
        tells = ""
    elif autogroups:
        # In which sessions they were is not stored; concurve doctor sees it.
        what = f"End {it}, or lower {'its' if is_one else 'their'} priority"
        tells = "; concurve doctor has the command for it"
    else:
        (how,) = lowest_priority(pids if all(pids) else ["PID"], ())
        what = f"End {it}, or lower {'its' if is_one else 'their'} priority ({how})"
    return (
        f"{words.listed(constant)} took CPU time in nearly all disturbed trials, so waiting does "
        f"not help. {what}, and run again{tells}."
    )


def stopping(pids: Sequence[object], mark: str = "") -> str:
    """The commands that stop processes, and let them go on, each between two of a ``mark``."""
    every = " ".join(map(str, pids))
    return f"{mark}kill -STOP {every}{mark}, afterwards {mark}kill -CONT {every}{mark}"


def with_pids(program: str, pids: Sequence[int], *, is_lowest: bool = False) -> str:
    """A program with those of its processes that are meant, as it is named: ``python3 (PID 4711)``,
    ``python3 (PIDs 17, 4711)``; without any its name alone. ``is_lowest``: their nice value is the
    lowest priority, which is told."""
    if not pids:
        return program
    lowest = f", nice {LOWEST_NICE}" if is_lowest else ""
    return f"{program} ({'PID' if len(pids) == 1 else 'PIDs'} {', '.join(map(str, pids))}{lowest})"


def program_of(constant: str) -> str:
    """The program alone."""
    found = _WITH_PIDS.fullmatch(constant)
    return found["program"] if found else constant


_WITH_PIDS = re.compile(
    rf"(?P<program>.*) \(PIDs? (?P<pids>\d+(?:, \d+)*)(?P<lowest>, nice {LOWEST_NICE})?\)"
)


def _of_a_server(strangers: Sequence[str]) -> str:
    """How a server that the command loads is told from a stranger; empty where nobody may be
    one."""
    if not strangers:
        return ""
    named = [name for name in strangers if name not in (HYPERVISOR, OTHERS)]
    who = words.listed(named, "or") if named else "what takes the CPU time"
    return (
        f"If {who} is the server that this command loads, do not wait for it or end it: "
        f"{ATTACH_IT} in a new run tells that it is no stranger."
    )


def _after(waiting: Waiting, end: str, *, is_constant: bool) -> str:
    """What helps where the run waited already: to ``end`` what disturbed it, or something else, but
    no longer wait where that ``is_constant``."""
    waited = f"The run waited {words.duration(waiting.waited_seconds)} for quiet"
    if waiting.is_over:
        longer = f"--wait-quiet {words.option_duration(LONGER * waiting.seconds)}"
        waits = "" if is_constant else f", or {longer}"
        return f"{waited}, all it was given. {end}{waits}, or more --repeats."
    if waiting.is_cut and not waiting.waited_seconds:
        return f"The run had no time to wait for quiet. {end}, or more --max-time."
    if waiting.is_cut:
        return f"{waited}, all it had time for. {end}, or more --max-time."
    if not waiting.times:
        return (
            "The machine was quiet whenever the run looked, not during the trials. "
            f"{end}, or more --repeats and --max-time."
        )
    return f"{waited}, and a longer wait does not help. {end}, or more --repeats."


def _end(waiting: Waiting, servers: Collection[str]) -> str:
    """Whom to end, by name where that is known, but none of the ``servers``, which may be those
    that are loaded; nobody here ends what takes the CPUs of a virtual machine, and another run of
    the laboratory ends by itself."""
    if waiting.busiest[:1] == (HYPERVISOR,):
        return "The hypervisor took most of the CPU time: try another machine or another hour"
    if waiting.busiest[:1] == (ANOTHER_RUN,):
        return "Another concurve run took most of the CPU time: measure after its end"
    programs = [name for name in waiting.programs if program_of(name) not in servers]
    if servers and not programs:
        return "Attach it"
    if programs:
        return f"End what kept it busy ({words.listed(programs)})"
    return "End what keeps it busy (concurve doctor names it)"

"""Waits until other processes and other measurements leave the machine alone, by the limits of a
clean trial: before a run, and before each trial in its course.

No wait depends on what a trial measured, and none changes which trial comes next. What runs before
a look has ended, and threads of the kernel that write for it are no strangers.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.definition.study import Study
from concurve.definition.units import format_duration, parse_duration
from concurve.errors import BusyError, HostError, StudyError
from concurve.findings.again import LOWEST_NICE, lowest_priority, stopping
from concurve.host.attaching import find
from concurve.host.load import Load, autogroup_nice, has_autogroups, is_seen, load_over
from concurve.host.lock import measurement_lock, measurement_under_way
from concurve.host.turns import in_line
from concurve.readings.contamination import FOREIGN_SHARE_MAX, STEAL_SHARE_MAX
from concurve.terms import HYPERVISOR, OTHERS, Disturbance, Waiting
from concurve.wire.spec import Attach

#: Looks at the load for so many seconds.
Look = Callable[[float], Load]
#: Hears for how many seconds a wait lasts, how many these may become, and what disturbs.
Tell = Callable[[float, float, Disturbance], None]

#: The machine is looked at for so long each time,
WINDOW_SECONDS = 1.0
#: and is quiet after so many quiet looks in a row.
QUIET_LOOKS = 3
#: In a shorter wait it cannot be seen to become quiet.
SHORTEST_SECONDS = QUIET_LOOKS * WINDOW_SECONDS
#: Before a trial a glance is enough: it is a part of the time of the trial. Only where it shows a
#: busy machine, is this looked at.
GLANCE_SECONDS = 0.25
#: Short trials share a glance, so that glances take a tenth of a run at most.
GLANCE_EACH_SECONDS = 10 * GLANCE_SECONDS

#: The first places in a line; further ones are said by their numbers.
_PLACES = ("first", "second", "third")


def is_quiet(load: Load) -> bool:
    """Would a trial under this load count as clean?"""
    return load.foreign <= FOREIGN_SHARE_MAX and load.steal <= STEAL_SHARE_MAX


def is_in_bursts(load: Load, parts: Sequence[Load]) -> bool:
    """Does the process that takes most of a ``load`` disturb again and again, by the loads of its
    ``parts`` one after another? It is not seen to end then, and no wait for a pause helps long."""
    if not load.seen:
        return False
    most = load.seen[0].pid
    shares = [sum(it.share for it in part.processes if it.pid == most) for part in parts]
    is_busy = [share > FOREIGN_SHARE_MAX for share in shares]
    begun = [now and not before for before, now in pairwise([False, *is_busy])]
    return sum(begun) > 1


def disturbance(load: Load) -> Disturbance | None:
    """What disturbs, by name; ``None`` if nothing does."""
    found = []
    if load.foreign > FOREIGN_SHARE_MAX:
        found.append(
            f"other processes use {load.foreign * 100:.0f} % of the CPU time (limit "
            f"{FOREIGN_SHARE_MAX * 100:.0f} %): {load.named}"
        )
    if load.steal > STEAL_SHARE_MAX:
        found.append(
            f"the hypervisor takes {load.steal * 100:.0f} % of the CPU time (limit "
            f"{STEAL_SHARE_MAX * 100:.0f} %)"
        )
    if not found:
        return None
    shares: dict[str, float] = {}
    for process in load.seen:
        who = f"{process.whose} (pid {process.pid if process.run is None else process.run})"
        shares[who] = shares.get(who, 0.0) + process.share
    shares |= {OTHERS: load.rest, HYPERVISOR: load.steal}
    most = sorted((it for it in shares.items() if is_seen(it[1])), key=lambda it: -it[1])
    return Disturbance(
        what="; ".join(found),
        briefly=", ".join(f"{who} {share * 100:.0f} %" for who, share in most),
        who=most[0][0],
    )


def attached_in(studies: Iterable[Study]) -> list[Attach]:
    """The processes that roles of some studies are attached to.

    Raises:
        HostError: there are no such processes.
    """
    roles = [role for study in studies for role in study.roles]
    return [
        role.attached or find(role.attach, f"role {role.name}") for role in roles if role.attach
    ]


def attachable(studies: Iterable[Study]) -> list[Study]:
    """Those of some studies whose attached processes run. The others of a campaign do not keep it
    from its wait: each is refused with its reason when its turn comes."""
    found = []
    for study in studies:
        with contextlib.suppress(HostError):
            attached_in([study])
            found.append(study)
    return found


def looking(attached: Sequence[Attach]) -> Look:
    """Looks at this machine. The processes that are ``attached`` disturb no more than they do in a
    trial."""
    return lambda seconds: load_over(seconds, time.sleep, attached=attached)


class Asked(NamedTuple):
    """``--wait-quiet``: at most so many seconds; ``measure_anyway``: then measure also where the
    machine did not become quiet."""

    seconds: float
    measure_anyway: bool = False


def asked_quiet(wait: str | None, measure_anyway: bool) -> Asked | None:
    """What ``--wait-quiet`` and ``--measure-anyway`` ask for; ``None`` if nothing.

    Raises:
        StudyError: the time is none or too short, or it is not said.
    """
    if wait is not None:
        seconds = parse_duration(wait, "--wait-quiet")
        if seconds < SHORTEST_SECONDS:
            unit = "" if wait[-1:].isalpha() else " s"
            raise StudyError(
                f"--wait-quiet: {wait}{unit} is too short: to see a quiet machine takes "
                f"{QUIET_LOOKS} looks of {WINDOW_SECONDS:g} s each",
                f"{SHORTEST_SECONDS:g}s or more, such as 5m",
            )
        return Asked(seconds, measure_anyway)
    if measure_anyway:
        raise StudyError(
            "--measure-anyway says what to do where a wait for a quiet machine was in vain, and "
            "this run does not wait",
            "--wait-quiet 5m beside it, or neither: trials that others disturb are marked",
        )
    return None


@contextlib.contextmanager
def quiet_machine(
    asked: Asked,
    say: Callable[[str], None],
    tell: Tell,
    look: Look | None = None,
    clock: Callable[[], float] = time.monotonic,
    attached: Sequence[Attach] = (),
) -> Iterator[Waiting]:
    """Have the machine for one's own measurements once it is quiet and no other measurement runs:
    of several that wait, the one that came first gets it, and the others wait on. ``say`` hears
    that it waits, and the result; ``tell``, after each look that is not quiet, what disturbs. Gives
    what was waited, and what may be waited yet.

    Raises:
        HostError: it was not quiet within the time, and is not to be measured on then; names what
            disturbed last.
        BusyError: another measurement runs after that time, or others that wait came before.
    """
    look = look or looking(attached)
    seen: dict[str, float] = {}
    begun, quiet, has_waited = clock(), 0, False
    # Before the first look: concurve web ends then what it computes itself.
    say(f"waiting at most {format_duration(asked.seconds)} for a quiet machine")
    with contextlib.ExitStack() as held:
        with in_line() as ahead:
            while True:
                load = look(WINDOW_SECONDS)
                disturbs = disturbance(load)
                quiet = 0 if disturbs else quiet + 1
                if disturbs:
                    _count(load, WINDOW_SECONDS, seen)
                    # Its programs are what takes the CPU time, or no matter while it runs.
                    disturbs = _measured(measurement_under_way(), ahead()) or disturbs
                elif quiet >= QUIET_LOOKS:
                    disturbs = (
                        _measured(measurement_under_way(), ahead())
                        or _before(ahead())
                        or _taken(held, ahead)
                    )
                    if disturbs is None:
                        break
                    quiet = 0
                has_waited = has_waited or bool(disturbs)
                waited = clock() - begun
                if disturbs and waited >= asked.seconds:
                    if not disturbs.is_turn and asked.measure_anyway:
                        disturbs = _taken(held, ahead) or disturbs
                    _refuse_in_vain(asked, disturbs, load)
                    say(f"{_in_vain(asked, disturbs)}; it is measured on all the same")
                    break
                if disturbs:
                    tell(waited, asked.seconds, disturbs)
        waited = max(clock() - begun, 0.0)
        if quiet:
            say(f"the machine is quiet, after {format_duration(waited)}")
        yield Waiting(
            seconds=asked.seconds,
            before_seconds=min(waited, asked.seconds) if has_waited else 0.0,
            times=int(has_waited),
            busy_with=seen,
        )


def _taken(held: contextlib.ExitStack, ahead: Callable[[], int]) -> Disturbance | None:
    """Take the machine until ``held`` is closed; or the measurement that has it."""
    try:
        held.enter_context(measurement_lock("concurve, on a quiet machine", for_runs=True))
    except BusyError as error:
        return _measured(error.what.partition(": ")[2], ahead())
    return None


def _measured(holder: str, ahead: int) -> Disturbance | None:
    """The measurement of this holder, and the place in the line behind it; ``None`` where nobody
    measures."""
    if not holder:
        return None
    place = _PLACES[ahead] if ahead < len(_PLACES) else f"number {ahead + 1}"
    return Disturbance(
        what=f"another measurement runs on this machine: {holder}; you are {place} in line",
        briefly=f"you are {place} in line behind {holder}",
        who=f"{holder}, {place}",
        is_turn=True,
    )


def _before(ahead: int) -> Disturbance | None:
    """Those that came before and wait for the same quiet machine; ``None`` where nobody does."""
    if not ahead:
        return None
    others = words.count(ahead, "other run")
    said = f"{others} that {words.verb(ahead, 'waits', 'wait')} came before"
    return Disturbance(what=said, briefly=said, who=others, is_turn=True)


def _in_vain(asked: Asked, disturbs: Disturbance) -> str:
    return f"the machine was not quiet within {format_duration(asked.seconds)}: {disturbs.what}"


def _refuse_in_vain(asked: Asked, disturbs: Disturbance, load: Load) -> None:
    """End a wait that was in vain, unless what disturbs is to be measured beside.

    Raises:
        HostError: processes, or the hypervisor, take CPU time.
        BusyError: another measurement runs, or others came before.
    """
    if disturbs.is_turn:
        not_for = (
            "; --measure-anyway is for other processes, and never measures beside another "
            "measurement"
        )
        raise BusyError(
            f"waited {format_duration(asked.seconds)} in vain: {disturbs.what}",
            f"a longer --wait-quiet{not_for if asked.measure_anyway else ''}",
        )
    if not asked.measure_anyway:
        raise HostError(
            _in_vain(asked, disturbs),
            f"{end_these(load, ', ')}wait longer, or add --measure-anyway: trials that are "
            "disturbed are marked",
        )


#: To end who takes less than this share of what the busiest does changes little.
ENDED_SHARE = 0.1


#: The first process: to end it is to end the machine, or its container.
_INIT = 1


def end_these(load: Load, then: str) -> str:
    """Which of the processes that disturb are to be ended, or to yield, and ``then`` what follows;
    empty for the hypervisor, and where they are of another measurement alone, or as good as."""
    least = ENDED_SHARE * max((load.rest, *(process.share for process in load.seen)))
    strangers = [it for it in load.seen if it.run is None and it.share >= least and it.pid != _INIT]
    if load.foreign <= FOREIGN_SHARE_MAX or not strangers:
        return ""
    whom = words.verb(len(strangers), "this process", "these processes")
    if len(strangers) < len(load.seen):
        whom = words.listed([f"{it.name} (pid {it.pid})" for it in strangers])
    them = words.verb(len(strangers), "it", "them")
    commands, yielding = to_lowest({it.pid: it.nice for it in strangers})
    how = [f"`{command}`" for command in commands]
    other = f", or give {them} the lowest priority ({'; '.join(how)})"
    if yielding < len(strangers):
        # To some the lowest priority is no change: it is what helps all of them.
        other = f", or stop {them} meanwhile ({stopping([it.pid for it in strangers], '`')})"
    return f"end {whom}{other}{then}"


def to_lowest(nice: Mapping[int, int]) -> tuple[list[str], int]:
    """The commands that give processes the lowest priority, by their PIDs with their ``nice``
    values, and to how many of them that is a change."""
    apart = [pid for pid in nice if is_apart(pid)] if has_autogroups() else []
    same = [pid for pid, value in nice.items() if pid not in apart and value < LOWEST_NICE]
    others = [pid for pid in apart if autogroup_nice(pid) < LOWEST_NICE]
    of_others = [pid for pid in (*same, *others) if not is_ours(pid)]
    return lowest_priority(same, others, of_others), len(same) + len(others)


def quieting(nice: Mapping[int, int], proc: Path = Path("/proc")) -> list[str]:
    """The same commands for those of the processes that have not ended since."""
    return to_lowest({pid: it for pid, it in nice.items() if (proc / str(pid)).exists()})[0]


def yields(load: Load) -> bool:
    """Does all that disturbs yield already to programs that have a CPU for each of their threads:
    processes of the lowest priority, of sessions that nice compares, and nobody else?"""
    others = [it for it in load.seen if it.nice < LOWEST_NICE or it.run is not None]
    disturbing = load.rest + sum(it.share for it in others)
    if load.steal > STEAL_SHARE_MAX or disturbing > FOREIGN_SHARE_MAX:
        return False
    return not (has_autogroups() and any(is_apart(it.pid) for it in load.seen))


def is_ours(pid: int, proc: Path = Path("/proc")) -> bool:
    """May this user lower the priority of a process? Of one that ended nobody knows."""
    if os.geteuid() == 0:
        return True
    try:
        return (proc / str(pid)).stat().st_uid == os.geteuid()
    except OSError:
        return False


def is_apart(pid: int) -> bool:
    """Is a process of another session than this one? One that ended, or is not told, may be."""
    try:
        return os.getsid(pid) != os.getsid(0)
    except OSError:
        return True


class Waits:
    """The waits in the course of a run. ``now`` says what was waited so far; its ``seconds`` bound
    them all together."""

    def __init__(
        self,
        now: Waiting,
        look: Look,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = now
        self._look = look
        self._clock = clock
        self._glanced_at: float | None = None

    def is_busy(self, *, is_redo: bool) -> bool:
        """Does the machine look busy? A glance, if a wait is left, and if the last look is some
        time ago, or a trial is to be redone."""
        if self.now.is_over:
            return False
        at = self._glanced_at
        if at is not None and not is_redo and self._clock() - at < GLANCE_EACH_SECONDS:
            return False
        load = self._look(GLANCE_SECONDS)
        self._glanced_at = self._clock()
        return not is_quiet(load)

    def wait(self, seconds: float, is_before: bool, tell: Tell) -> None:
        """Wait until the machine is quiet, at most so many seconds, and as long as a wait is left.
        ``is_before``: no trial was run. ``tell`` hears how long it has been, the most that it may
        become, and what disturbs. If the first whole look is quiet, the glance saw a moment, and
        that was all."""
        room = min(seconds, self.now.left_seconds)
        seen: dict[str, float] = {}
        begun, quiet, needed = self._clock(), 0, 1
        try:
            while quiet < needed and (left := room - (self._clock() - begun)) >= GLANCE_SECONDS:
                # The last look takes the rest: a shorter one than a glance shows nothing.
                window = left if left < WINDOW_SECONDS + GLANCE_SECONDS else WINDOW_SECONDS
                load = self._look(window)
                disturbs = disturbance(load)
                if not disturbs:
                    quiet += 1
                    continue
                quiet, needed = 0, QUIET_LOOKS
                _count(load, window, seen)
                tell(self._clock() - begun, room, disturbs)
        finally:
            self._glanced_at = self._clock()
            self._add(min(self._glanced_at - begun, room), is_before, seen)
        if quiet < needed and not self.now.is_over:
            self.now = msgspec.structs.replace(self.now, is_cut=True)

    def _add(self, waited: float, is_before: bool, seen: dict[str, float]) -> None:
        now = self.now
        self.now = msgspec.structs.replace(
            now,
            before_seconds=now.before_seconds + (waited if is_before else 0.0),
            during_seconds=now.during_seconds + (0.0 if is_before else waited),
            times=now.times + bool(seen),
            busy_with={
                name: now.busy_with.get(name, 0.0) + seen.get(name, 0.0)
                for name in (*now.busy_with, *seen)
            },
        )


def _count(load: Load, seconds: float, seen: dict[str, float]) -> None:
    """Add who took CPU time in a look at a busy machine, in seconds of the whole machine."""
    named = sum(process.share for process in load.processes)
    took = [(process.whose, process.share) for process in load.processes]
    for who, share in (*took, (OTHERS, load.foreign - named), (HYPERVISOR, load.steal)):
        if share > 0:
            seen[who] = seen.get(who, 0.0) + share * seconds

"""A running reference server: what ``concurve monitor`` says of it, and the dials outside."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from concurve.errors import HostError, StudyError
from concurve.host.listening import serving
from concurve.host.machine import allowed_cpus
from concurve.monitor.asking import Watched, address_of, watching
from concurve.monitor.interval import Interval, between
from concurve.report import format as fmt
from concurve.secrets import KNOWN

#: A server is looked at over so long.
WATCH_SECONDS = 1.0

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Watching(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which server is watched: its address, and the variable of the environment of ``concurve web``
    that has its password."""

    place: str
    password_from: str = ""


class Turning(Watching, frozen=True, forbid_unknown_fields=True):
    """The same, and what is to be set: the CPUs of all its threads, and their nice value; ``None``
    for what stays."""

    cpus: tuple[int, ...] | None = None
    nice: int | None = None


class Dials(msgspec.Struct, frozen=True):
    """What the process of a server may use: the CPUs on which any of its threads runs, of those
    that may be ``allowed``, and the nice value of its first thread."""

    cpus: tuple[int, ...]
    allowed: tuple[int, ...]
    nice: int


class Second(msgspec.Struct, frozen=True):
    """What a server did over a second. ``dials`` is ``None`` where its process is not to be seen
    from here."""

    place: str
    interval: dict[str, Any]
    dials: Dials | None


def watched(form: Watching) -> Second:
    """What a server did over a second.

    Raises:
        ConcurveError: no server of ours answers there, or the variable is not set.
    """
    with _reached(form) as server:
        before = server.read()
        time.sleep(WATCH_SECONDS)
        found = between(before, server.read(), server.place)
        pids = _processes(server, form.place)
    return Second(fmt.clean(server.place), _cleaned(found), _dials(pids) if pids else None)


def turn(form: Turning) -> Dials:
    """Set the CPUs and the nice value of all threads of a server on this machine.

    Raises:
        ConcurveError: no server of ours answers there, it runs elsewhere or as somebody else, or a
            value makes no sense.
    """
    if form.cpus is not None and (not form.cpus or set(form.cpus) - set(allowed_cpus())):
        granted = ", ".join(map(str, allowed_cpus()))
        raise StudyError(f"CPUs {list(form.cpus)} are not granted", f"some of {granted}")
    if form.nice is not None and not -20 <= form.nice <= 19:
        raise StudyError(f"nice {form.nice} is out of range", "a number from -20 to 19")
    with _reached(form) as server:
        server.read()  # it is one of ours
        pids = _processes(server, form.place)
    if not pids:
        raise HostError(
            "the process of this server is not to be seen from here",
            "concurve web on the server's machine, as the user who started it",
        )
    _set(pids, form)
    return _dials(pids)


@contextmanager
def _reached(form: Watching) -> Iterator[Watched]:
    """A connection to a server that has its password."""
    host, port = address_of(form.place)
    password = None
    if form.password_from:
        is_name = _VARIABLE.fullmatch(form.password_from)
        password = os.environ.get(form.password_from) if is_name else None
        if password is None:
            # Another text may be the password itself, and is not shown.
            raise StudyError(
                "the environment of concurve web does not have the variable of the password",
                "its name, and concurve web started with it",
            )
        KNOWN.add(form.password_from, password)
    with watching(host, port) as server:
        if password is not None:
            server.log_in(password)
        yield server


def _processes(server: Watched, place: str) -> list[int]:
    """The processes of a server on this machine: those behind its port, and not those that it
    names, since a stranger's server may name any."""
    return serving(address_of(place)[1]) if server.is_near else []


def _threads(pids: list[int]) -> Iterator[int]:
    for pid in pids:
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                yield int(task.name)


def _dials(pids: list[int]) -> Dials:
    cpus: set[int] = set()
    for thread in _threads(pids):
        with suppress(OSError):
            cpus |= os.sched_getaffinity(thread)
    nice = 0
    with suppress(OSError):
        nice = os.getpriority(os.PRIO_PROCESS, pids[0])
    return Dials(tuple(sorted(cpus)), allowed_cpus(), nice)


def _set(pids: list[int], form: Turning) -> None:
    for thread in _threads(pids):
        try:
            if form.cpus is not None:
                os.sched_setaffinity(thread, form.cpus)
            if form.nice is not None:
                os.setpriority(os.PRIO_PROCESS, thread, form.nice)
        except ProcessLookupError:
            continue  # a thread that has just ended
        except PermissionError as error:
            raise HostError(
                f"this user may not set that of thread {thread}: {error.strerror}",
                "a nice value that is not lower than now, or root",
            ) from error


def _cleaned(interval: Interval) -> dict[str, Any]:
    """The interval as plain values, without control characters: a server has written its names."""
    found: dict[str, Any] = _clean(msgspec.to_builtins(interval))
    return found


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return fmt.clean(value)
    if isinstance(value, dict):
        return {fmt.clean(str(name)): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value

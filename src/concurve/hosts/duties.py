"""What an agent does for the laboratory beside trials: it answers for its host."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concurve.engine.local import LocalEngine
from concurve.errors import HostError
from concurve.host import machine, native
from concurve.host.addresses import public_addresses
from concurve.host.lock import measurement_under_way, taken_lock
from concurve.host.own_files import own_files
from concurve.host.temporary import folder_at, free_port
from concurve.hosts import messages as m
from concurve.hosts.daemons import check_free
from concurve.hosts.messages import Description, Request
from concurve.measuring import packaged
from concurve.wire import decode_spec

#: Seconds that the runner may take to say its version.
_VERSION_SECONDS = 10


class Duties:
    """The duties, and what is held for them until the agent ends."""

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()
        self._folders: dict[str, contextlib.ExitStack] = {}
        self._is_locked = False

    def do(self, request: Request) -> Any:
        """Carry a request out; the value of its answer.

        Raises:
            ConcurveError: it cannot be carried out here.
        """
        answer: Any = None
        match request:
            case m.Renew():
                pass
            case m.Describe():
                answer = describe()
            case m.FindProgram(name, where, java, jvm):
                answer = list(packaged.command(name, where, java, jvm))
            case m.DescribeProgram():
                answer = _program(request)
            case m.Check(spec):
                answer = [list(it) for it in LocalEngine().check(decode_spec(spec))]
            case m.Lock(what):
                self._lock(what)
            case m.FreePort(address):
                answer = _free_port(address)
            case m.MakeFolder(path):
                answer = self._make_folder(path)
            case m.RemoveFolder(path):
                self._remove_folder(path)
            case _:
                raise HostError(f"the agent does not know {type(request).__name__}")
        return answer

    def close(self) -> None:
        """Give back what is held: all of it, though some cannot be."""
        with self._held:
            for path in list(self._folders):
                with contextlib.suppress(OSError):  # the next agent removes it
                    self._remove_folder(path)

    def _lock(self, what: str) -> None:
        if not self._is_locked:
            self._held.callback(os.close, taken_lock(what))
            self._is_locked = True

    def _make_folder(self, path: str) -> bool:
        stack = contextlib.ExitStack()
        made = stack.enter_context(folder_at(Path(path)))
        self._folders[path] = stack
        return made

    def _remove_folder(self, path: str) -> None:
        if stack := self._folders.pop(path, None):
            stack.close()


def describe() -> Description:
    """This host, as the laboratory must know it.

    Raises:
        HostError: its runner does not run, or no trial has room here.
    """
    folder = Path(tempfile.gettempdir())
    check_free(folder, os.statvfs(folder))
    versions = machine.versions()
    return Description(
        version=versions["concurve"],
        python=versions["python"],
        runner=_runner_version(),
        cpus=machine.allowed_cpus(),
        machine=machine.describe_machine(),
        probes=LocalEngine().probes(),
        nice=os.getpriority(os.PRIO_PROCESS, 0),
        public=_public_addresses(),
        files=own_files(),
        busy=measurement_under_way(),
    )


def _public_addresses() -> tuple[str, ...]:
    """Those of this host; none where the kernel does not tell them."""
    try:
        return public_addresses()
    except OSError:
        return ()


def _runner_version() -> str:
    runner = str(native.runner())
    try:
        done = subprocess.run(
            [runner, "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise HostError(f"the trial runner {runner} does not run: {error}", "make build") from error
    return done.stdout.strip().rpartition(" ")[2]


def _program(request: m.DescribeProgram) -> Mapping[str, Any]:
    if request.packaged:
        return packaged.describe(request.name, request.where, request.java)
    return machine.describe_program(request.name, request.path)


def _free_port(address: str) -> int:
    """A TCP port on which nothing listens now at an address of this host."""
    try:
        return free_port(address)
    except OSError as error:
        raise HostError(
            f"{address} is no address of this host: {error.strerror}",
            "its address as other hosts reach it, in the file of hosts or as Ray has it",
        ) from error

"""Where the trials of a run take place: what a run needs of it beside an engine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from concurve.engine.tasks import Processes, Tasks
from concurve.host import machine
from concurve.host.lock import measurement_lock
from concurve.host.temporary import free_port, temporary_folder
from concurve.measuring.packaged import describe as describe_packaged
from concurve.planning.plan import Machine


class Site(Protocol):
    """This machine, or several hosts."""

    @property
    def machines(self) -> Mapping[str, Machine]:
        """What each host grants, by its name; none where there is this machine alone."""
        ...

    @property
    def tasks(self) -> Tasks | None:
        """What runs the trials of a simulation there, several at once; ``None``: nothing does."""
        ...

    def lock(self, what: str) -> AbstractContextManager[None]:
        """Have it for measurements alone; ``what`` names the holder.

        Raises:
            BusyError: another measurement runs there.
        """
        ...

    def port(self) -> int:
        """A TCP port on which nothing listens there now."""
        ...

    def folder(self) -> AbstractContextManager[Path]:
        """A new, empty folder for one trial, which is removed at the end."""
        ...

    def machine(self, host: str) -> dict[str, Any]:
        """The description that is stored with a run whose measured role runs on this host."""
        ...

    def describe_program(
        self, host: str, name: str, where: str, packaged: bool, java: str | None, path: str | None
    ) -> dict[str, Any]:
        """The files of a packaged program on a host, or of a command that is looked up in ``path``.

        Raises:
            HostError: a packaged program is not installed there.
        """
        ...


class ThisMachine:
    """The machine of this process. ``tasks`` run the trials of a simulation, several at once;
    without them they run one after the other, as all others do."""

    machines: Mapping[str, Machine] = {}

    def __init__(self, tasks: Tasks | None = None) -> None:
        self.tasks = tasks

    def lock(self, what: str) -> AbstractContextManager[None]:
        """See :meth:`Site.lock`."""
        return measurement_lock(what)

    def port(self) -> int:
        """See :meth:`Site.port`."""
        return free_port()

    def folder(self) -> AbstractContextManager[Path]:
        """See :meth:`Site.folder`."""
        return temporary_folder()

    def machine(self, host: str) -> dict[str, Any]:
        """See :meth:`Site.machine`."""
        return machine.describe_machine()

    def describe_program(
        self, host: str, name: str, where: str, packaged: bool, java: str | None, path: str | None
    ) -> dict[str, Any]:
        """See :meth:`Site.describe_program`."""
        if packaged:
            return describe_packaged(name, where, java)
        return machine.describe_program(name, path)


def this_machine() -> ThisMachine:
    """This machine, with as many simulations at once as it grants CPUs."""
    return ThisMachine(Processes(len(machine.allowed_cpus())))

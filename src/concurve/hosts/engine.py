"""An engine that runs trials on several hosts, and the site of a run that is measured there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from concurve.definition.inventory import Inventory
from concurve.engine import Problem
from concurve.engine.local import revealed
from concurve.engine.tasks import Tasks
from concurve.errors import BusyError, HostError, RunError
from concurve.host.temporary import temporary_folder
from concurve.hosts import messages as m
from concurve.hosts.connection import QUICK_SECONDS, Connection, HostLostError
from concurve.hosts.host import ConnectedHost, HostEvents, check_alike
from concurve.hosts.parts import hosts_of
from concurve.hosts.trial import TrialOverHosts
from concurve.planning.plan import Machine
from concurve.secrets import KNOWN
from concurve.wire import encode_spec
from concurve.wire.spec import TrialSpec


class HostsEngine:
    """Runs trials over connected hosts, one at a time; it is the site of a run as well. ``tasks``
    run simulations, several at once."""

    def __init__(
        self,
        inventory: Inventory,
        connections: Mapping[str, Connection],
        tasks: Tasks | None = None,
        events: HostEvents | None = None,
    ) -> None:
        self.inventory = inventory
        self.tasks = tasks
        self.events = HostEvents() if events is None else events
        self.hosts: dict[str, ConnectedHost] = {}
        self._found: dict[tuple[str, ...], tuple[str, ...]] = {}
        try:
            for name, connection in connections.items():
                self.hosts[name] = ConnectedHost(name, connection, self.events)
            check_alike(self.hosts.values())
            self.machines = {name: self._machine(name) for name in self.hosts}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all agents."""
        for host in self.hosts.values():
            host.close()

    def __enter__(self) -> HostsEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the engine -----------------------------------------------------------------------------

    def run(self, spec: TrialSpec) -> bytes:
        """Run one trial; see :meth:`concurve.engine.Engine.run`."""
        trial = TrialOverHosts(spec, self.hosts, self.inventory, self.events)
        try:
            record = trial.run()
        except BaseException:
            trial.abandon()
            raise
        return msgspec.json.encode(record)

    def check(self, spec: TrialSpec) -> list[Problem]:
        """Launch every role suspended on its host, and end it again."""
        problems = []
        for host in hosts_of(spec):
            roles = tuple(role for role in spec.roles if (role.host or "") == host)
            if not any(role.end == "exit" for role in roles):
                roles = tuple(msgspec.structs.replace(role, end="exit") for role in roles)
            part = revealed(msgspec.structs.replace(spec, roles=roles))
            found = self._host(host).ask(m.Check(encode_spec(part)))
            problems += [
                Problem(role, kind, KNOWN.hide(f"host {host}: {message}"))
                for role, kind, message in found
            ]
        return problems

    # -- the site -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, what: str) -> Iterator[None]:
        """Have the hosts for measurements alone, until the agents end.

        Raises:
            BusyError: another measurement runs on one of them.
            HostError: the clock of one jumps.
        """
        for host in self.hosts.values():
            try:
                host.ask(m.Lock(what))
            except BusyError as error:
                remedy = "wait until it is done: two at once would disturb each other"
                raise BusyError(error.what, remedy) from error
        if len(self.hosts) > 1:
            self._check_clocks()
        yield

    def port(self) -> int:
        """A TCP port that is free on the first host, and likely on the others."""
        first = next(iter(self.hosts))
        request = m.FreePort(self.inventory.host(first).address)
        return int(self._host(first).ask(request, QUICK_SECONDS))

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """An empty folder for one trial, at the same path on all hosts."""
        with temporary_folder() as folder:
            try:
                for host in self.hosts.values():
                    host.ask(m.MakeFolder(str(folder)), QUICK_SECONDS)
                yield folder
            finally:
                for host in self.hosts.values():
                    with contextlib.suppress(RunError, HostError):
                        host.ask(m.RemoveFolder(str(folder)))

    def machine(self, host: str) -> dict[str, Any]:
        """The description of a host, and those of the others."""
        others = {
            name: other.description.machine for name, other in self.hosts.items() if name != host
        }
        connected = self._host(host)
        own = {"host": connected.name, **connected.description.machine}
        return {**own, "hosts": others} if others else own

    def describe_program(
        self, host: str, name: str, where: str, packaged: bool, java: str | None, path: str | None
    ) -> dict[str, Any]:
        """The files of a packaged program on a host, or of a command."""
        request = m.DescribeProgram(name, where, packaged, java, path)
        found: dict[str, Any] = self._host(host).ask(request)
        return {**found, "host": host}

    def _check_clocks(self) -> None:
        """Refuse a clock that jumps while nothing is measured yet."""
        for host in self.hosts.values():
            try:
                host.offset()
                host.offset()
            except HostLostError:
                raise
            except RunError as error:
                raise HostError(
                    error.what, "its clock source; a virtual machine that is not moved or paused"
                ) from error

    def _machine(self, name: str) -> Machine:
        """What a host grants to trials: the CPUs that its file names, or all but those of daemons;
        and its programs."""
        host, granted = self.inventory.host(name), self.hosts[name].description.cpus
        for cpu in (*host.cpus, *host.housekeeping):
            if cpu not in granted:
                raise HostError(
                    f"host {name}: CPU {cpu} is not among those that it grants "
                    f"({', '.join(map(str, granted))})",
                    "other cpus and housekeeping in the file of hosts",
                )
        cpus = host.cpus or tuple(cpu for cpu in granted if cpu not in host.housekeeping)
        if not cpus:
            raise HostError(
                f"host {name}: no CPU is left to measure on: housekeeping has all that it grants "
                f"({', '.join(map(str, granted))})",
                "fewer CPUs in housekeeping, or none, in the file of hosts",
            )

        def find(
            program: str, where: str, java: str | None = None, jvm: Sequence[str] = ()
        ) -> Sequence[str]:
            key = (name, program, java or "", *jvm)
            if key not in self._found:
                request = m.FindProgram(program, where, java, tuple(jvm))
                self._found[key] = tuple(self._host(name).ask(request))
            return self._found[key]

        return Machine(cpus, find)

    def _host(self, name: str) -> ConnectedHost:
        return self.hosts[name] if name else next(iter(self.hosts.values()))

"""Three hosts that Ray connects, for the tests and the benches: network namespaces of this machine,
or the hosts of a file, which are reached by OpenSSH and by the addresses of the file alone.

``CONCURVE_TEST_HOSTS=FILE`` names a file as ``concurve hosts up`` takes it. The tests run on the
host of Ray's head then, by the Python that ``[ray]`` names. ``CONCURVE_TEST_LINK=COMMAND`` is a
line of a shell that takes the network of a host down and up: ``{host}`` and ``{address}`` in it
stand for the host, ``{state}`` for ``down`` or ``up``. Without it no network is cut off.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from concurve.definition.hosts_file import load_hosts
from concurve.errors import HostError
from concurve.hosts import commands, daemons
from concurve.hosts.commands import Step
from tests.helpers import on_host
from tests.helpers.agents import Namespaces, no_namespaces

FILE_VARIABLE = "CONCURVE_TEST_HOSTS"
LINK_VARIABLE = "CONCURVE_TEST_LINK"

#: So many hosts of a cluster are used: that of the head, and two others.
USED = 3

#: Ray is started so often, before that is given up.
STARTS = 3

#: The label of the others where hosts are namespaces.
LOAD = "load"

_NO_RAY = "Ray: pip install 'concurve[ray]'"

#: The program that looks at the processes of a host.
_LOOKS = Path(on_host.__file__).read_text(encoding="utf-8")


class Cluster:
    """Hosts that Ray connects. ``hosts`` are those that are used, that of Ray's head first: the
    laboratory is there. ``is_one_machine``: they share its clock and its CPUs. ``beside``: the host
    whose CPUs this process has; ``says``: what the hosts are."""

    is_one_machine: bool
    beside: str
    says: str

    def __init__(self, file: Path) -> None:
        self.file = file
        self.inventory = load_hosts(file)
        self.mark = commands.mark_of(self.inventory)
        head = self.inventory.cluster.head
        names = [host.name for host in self.inventory.hosts if host.name != head]
        self.hosts = (head, *names[: USED - 1])

    def up(self, is_checked: bool = True) -> None:
        """Start Ray by the commands of ``concurve hosts up``. ``is_checked``: with the checks of
        versions and tokens, which take long.

        Raises:
            HostError: it did not start.
        """
        for stage in commands.up(self.inventory):
            commands.run([self.here(step) for step in stage if is_checked or not step.is_check])

    def restart(self, is_checked: bool = True) -> None:
        """Start Ray anew. On a busy machine it gives its own start up after 30 s.

        Raises:
            HostError: it did not start, several times.
        """
        for left in range(STARTS - 1, -1, -1):
            self.down()
            try:
                self.up(is_checked)
                return
            except HostError:
                if left == 0:
                    raise

    def down(self) -> None:
        """Stop it."""
        for stage in commands.down(self.inventory):
            commands.run([self.here(step) for step in stage])

    def here(self, step: Step) -> Step:
        """A step as it is run for these hosts."""
        return step

    def laboratory(self, words: Sequence[str]) -> list[str]:
        """A command of the laboratory's host."""
        return list(words)

    def link(self, host: str, state: str) -> None:
        """Take the network of a host ``down`` or ``up``, where :func:`no_link` has no reason."""
        raise NotImplementedError

    def address(self, host: str) -> str:
        """By which the others reach it."""
        return self.inventory.host(host).address

    def processes(self, hosts: Sequence[str] = ()) -> dict[str, dict[int, str]]:
        """The command lines of the processes of Ray, of agents and of trials on some hosts, or on
        each."""
        hosts = hosts or self.hosts
        found = self._asked(hosts, "list")
        return {
            host: {int(pid): str(line) for pid, line in said.items()}
            for host, said in zip(hosts, found, strict=True)
        }

    def pids(self, host: str, words: Sequence[str]) -> list[int]:
        """The same processes of a host, of those that have any of some words in their command
        lines."""
        found = self.processes([host])[host]
        return [pid for pid, line in found.items() if any(it in line for it in words)]

    def cpu_ns(self, host: str) -> int:
        """The CPU time so far of the same processes of a host."""
        (found,) = self._asked([host], "cpu")
        return int(found)

    def memory(self, host: str, words: str) -> dict[str, int]:
        """The memory of the same processes of a host; see
        :func:`~tests.helpers.on_host.memory`."""
        (found,) = self._asked([host], "memory", words)
        return {str(name): int(value) for name, value in found.items()}

    def strike(self, host: str, words: str, number: signal.Signals) -> Callable[[], None]:
        """Signal the first of them that has words in its command line; what lets it go on."""
        (found,) = self._asked([host], "strike", str(int(number)), words)

        def go_on() -> None:
            for pid in found:
                self._asked([host], "signal", str(int(signal.SIGCONT)), str(pid))

        return go_on if number is signal.SIGSTOP else lambda: None

    def _asked(self, hosts: Sequence[str], verb: str, *more: str) -> list[Any]:
        """What :mod:`tests.helpers.on_host` says on each of some hosts."""
        python = self.inventory.cluster.python
        line = shlex.join([python, "-S", "-E", "-c", _LOOKS, verb, self.mark, *more])
        remedy = f"by hand: {python} --version there"
        steps = [
            Step(host, "a look at its processes", commands.ssh(self.inventory.host(host), line),
                 remedy)
            for host in hosts
        ]  # fmt: skip
        return [json.loads(said) for said in commands.run([self.here(step) for step in steps])]


class InNamespaces(Cluster):
    """Network namespaces of this machine, each with a measurement lock of its own. ``is_pinned``:
    the last CPU, of two or more, is for the daemons of all of them."""

    is_one_machine = True
    says = "network namespaces"

    def __init__(
        self, namespaces: Namespaces, folder: Path, port: int, is_pinned: bool = True
    ) -> None:
        *others, last = sorted(os.sched_getaffinity(0))
        pinned = f'housekeeping = "{last}"\n' if is_pinned and others else ""
        token = folder / "token"
        token.write_text(uuid.uuid4().hex)
        token.chmod(0o600)
        first, *_ = namespaces.addresses
        hosts = "".join(
            f'[hosts.{name}]\naddress = "{address}"\n{pinned}'
            + ("" if name == first else f'labels = ["{LOAD}"]\n')
            for name, address in namespaces.addresses.items()
        )
        file = folder / "lab.toml"
        file.write_text(
            f'[ray]\nhead = "{first}"\nport = {port}\npython = "{sys.executable}"\n'
            f'token = "{token}"\n{hosts}'
        )
        super().__init__(file)
        self.beside = self.hosts[1]
        self._namespaces = namespaces
        self._folder = folder

    def here(self, step: Step) -> Step:
        """Without OpenSSH."""
        lock = f"CONCURVE_LOCK={self._folder / f'lock-{step.host}'}"
        words = (*self._namespaces.enter(step.host), "env", lock, "sh", "-c", step.words[-1])
        return step._replace(words=words)

    def down(self) -> None:
        daemons.stop(self.mark)

    def processes(self, hosts: Sequence[str] = ()) -> dict[str, dict[int, str]]:
        """Looked at from here, at once: three programs would take long on a busy machine."""
        hosts = hosts or self.hosts
        places = {it: Path("/run/netns", self._namespaces.name(it)) for it in hosts}
        return {
            host: on_host.processes(self.mark, f"net:[{place.stat().st_ino}]")
            for host, place in places.items()
        }

    def laboratory(self, words: Sequence[str]) -> list[str]:
        return [*self._namespaces.enter(self.hosts[0]), *words]

    def link(self, host: str, state: str) -> None:
        words = ["ip", "-n", self._namespaces.name(host), "link", "set", "eth0", state]
        subprocess.run(words, check=True)


class OfAFile(Cluster):
    """The hosts of a file."""

    is_one_machine = False

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.says = f"the hosts {', '.join(self.hosts)} of {file}"
        self.beside = self.hosts[0]
        _check(self)

    def link(self, host: str, state: str) -> None:
        line = os.environ[LINK_VARIABLE]
        values = {"{host}": host, "{address}": self.address(host), "{state}": state}
        for name, value in values.items():
            line = line.replace(name, value)
        says = f"the command that takes its network {state}"
        commands.run([Step(host, says, ("sh", "-c", line), f"by hand: {line}")])


def _check(cluster: OfAFile) -> None:
    """Refuse what the tests could not run on, before anything is started.

    Raises:
        HostError: names the file and the remedy.
    """
    where, head = str(cluster.file), cluster.hosts[0]
    if len(cluster.hosts) < USED:
        raise HostError(f"{where}: {len(cluster.hosts)} hosts", f"{USED} hosts or more")
    if not _is_own(cluster.address(head)):
        raise HostError(
            f"{where}: {head} has Ray's head, and its address {cluster.address(head)} is not one "
            "of this machine",
            f"the same command on {head}; or head = the name of this machine in [ray]",
        )
    if cluster.inventory.cluster.python != sys.executable:
        raise HostError(
            f"{where}: ray, python: {cluster.inventory.cluster.python!r}, and the tests are run by "
            f"{sys.executable!r}",
            "one Python at one path on all hosts: the programs of trials are beside it",
        )


def _is_own(address: str) -> bool:
    """Is it an address of this machine?"""
    with contextlib.suppress(OSError):  # no such name
        for family, kind, protocol, _, place in socket.getaddrinfo(address, 0):
            with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as tried:
                tried.bind(place)
                return True
    return False


def named_file() -> Path | None:
    """The file of hosts on which the tests are to run; ``None`` for namespaces."""
    name = os.environ.get(FILE_VARIABLE, "")
    return Path(name) if name else None


def no_link() -> str | None:
    """Why no network of a host can be taken down, or ``None``."""
    if named_file() is None or os.environ.get(LINK_VARIABLE):
        return None
    return f"no command takes down the network of a host: {LINK_VARIABLE} is not set"


def missing() -> str | None:
    """Why there can be no cluster here, or ``None``."""
    if importlib.util.find_spec("ray") is None:
        return _NO_RAY
    return None if named_file() is not None else no_namespaces()


@contextlib.contextmanager
def cluster(
    folder: Path, port: Callable[[], int] | int, is_pinned: bool = True
) -> Iterator[Cluster]:
    """The hosts of the named file, or else three namespaces with the port of Ray's head
    (:class:`InNamespaces`). What was started there is ended.

    Raises:
        HostError: the tests cannot run on the hosts of the file.
    """
    with contextlib.ExitStack() as stack:
        found: Cluster
        if (file := named_file()) is not None:
            found = OfAFile(file)
        else:
            namespaces = stack.enter_context(Namespaces(("a", "b", "c")))
            number = port if isinstance(port, int) else port()
            found = InNamespaces(namespaces, folder, number, is_pinned)
        stack.callback(found.down)
        yield found

"""Hosts that OpenSSH reaches: network namespaces of this machine, with an ``sshd`` in each that has
a port, keys and an environment of its own. Who runs in one of them with :attr:`Reached.environment`
reaches the others by the names of a file of hosts, as an engineer does."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.helpers import real
from tests.helpers.agents import Namespaces

PORT = 2222

#: Where ``sshd`` is, beside the ``PATH`` of an ordinary user.
_FOLDERS = "/usr/sbin:/usr/local/sbin"

#: It gives its privileges up in here, and does not begin without.
_EMPTY = Path("/run/sshd")


def no_sshd() -> str | None:
    """Why there is no OpenSSH here, or ``None``."""
    if shutil.which("ssh") is None:
        return "ssh is not installed: apt-get install openssh-client"
    if _sshd() is None:
        return "sshd is not installed: apt-get install openssh-server"
    if _is_locked():
        return "sshd refuses locked accounts, as that of root is here: usermod -p '*' root"
    return None


def _is_locked() -> bool:
    """Whether the account of root is locked, so that without PAM ``sshd`` refuses its keys, too."""
    with contextlib.suppress(OSError):
        accounts = (line.split(":") for line in Path("/etc/shadow").read_text().splitlines())
        return any(name == "root" and secret.startswith("!") for name, secret, *_ in accounts)
    return False


def _sshd() -> str | None:
    return shutil.which("sshd", path=f"{os.environ['PATH']}:{_FOLDERS}")


class Reached:
    """Hosts that OpenSSH reaches. ``file`` is their file, that of Ray's head first."""

    def __init__(self, namespaces: Namespaces, folder: Path, ray_port: int) -> None:
        self._namespaces = namespaces
        self._folder = folder
        self.file = folder / "lab.toml"
        token = folder / "token"
        token.write_text(uuid.uuid4().hex)
        token.chmod(0o600)
        hosts = "".join(
            f'[hosts.{name}]\naddress = "{address}"\nssh = "lab-{name}"\nlabels = ["load"]\n'
            for name, address in namespaces.addresses.items()
        )
        self.file.write_text(
            f'[ray]\nport = {ray_port}\npython = "{sys.executable}"\ntoken = "{token}"\n{hosts}'
        )

    @property
    def environment(self) -> dict[str, str]:
        """Of who reaches them: with an ``ssh`` that has their keys, as ``~/.ssh`` has those of a
        user."""
        return {**os.environ, "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}"}

    def within(self, host: str, *words: str) -> list[str]:
        """A command on a host, as someone starts it who is logged in there."""
        return [*self._namespaces.enter(host), *words]

    def link(self) -> str:
        """A line of a shell that takes the network of a host down or up."""
        name = self._namespaces.name("{host}")
        return f"ip -n {name} link set eth0 {{state}}"

    def prepare(self) -> None:
        """Make keys, and the ``ssh`` that has them."""
        for key in ("host", "client"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / key)]
            subprocess.run(words, check=True)
        public = (self._folder / "host.pub").read_text()
        known = self._folder / "known_hosts"
        addresses = self._namespaces.addresses
        known.write_text("".join(f"[{it}]:{PORT} {public}" for it in addresses.values()))
        config = self._folder / "ssh_config"
        config.write_text(
            f"Host *\n  User root\n  Port {PORT}\n  IdentityFile {self._folder / 'client'}\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n  StrictHostKeyChecking yes\n"
            + "".join(f"Host lab-{name}\n  HostName {it}\n" for name, it in addresses.items())
        )
        program = self._folder / "bin" / "ssh"
        program.parent.mkdir()
        words = [str(shutil.which("ssh")), "-F", str(config)]
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        program.chmod(0o755)

    @contextlib.contextmanager
    def served(self, host: str) -> Iterator[None]:
        """Have an ``sshd`` in a host. What is started through it has a measurement lock of its own,
        as a machine has."""
        config, log = (self._folder / f"{kind}-{host}" for kind in ("sshd_config", "sshd_log"))
        given = {
            "PATH": os.environ["PATH"],
            "CONCURVE_LOCK": str(self._folder / f"lock-{host}"),
            **{it: os.environ[it] for it in ("PYTHONPATH", "CONCURVE_NATIVE") if it in os.environ},
        }
        config.write_text(
            f"Port {PORT}\nListenAddress {self._namespaces.addresses[host]}\n"
            f"HostKey {self._folder / 'host'}\nAuthorizedKeysFile {self._folder / 'client.pub'}\n"
            "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "UsePAM no\nPermitRootLogin prohibit-password\nPidFile none\n"
            f"SetEnv {' '.join(f'{name}={value}' for name, value in given.items())}\n"
        )
        words = self.within(host, str(_sshd()), "-D", "-e", "-f", str(config))
        with log.open("w") as stream, subprocess.Popen(words, stderr=stream) as process:
            try:
                real.wait_until(
                    lambda: "Server listening" in log.read_text() or process.poll() is not None,
                    "sshd",
                )
                assert process.poll() is None, log.read_text()
                yield
            finally:
                process.terminate()


@contextlib.contextmanager
def reached(names: tuple[str, ...], folder: Path, ray_port: int) -> Iterator[Reached]:
    """Hosts of these names."""
    _EMPTY.mkdir(mode=0o755, exist_ok=True)
    with contextlib.ExitStack() as stack:
        found = Reached(stack.enter_context(Namespaces(names)), folder, ray_port)
        found.prepare()
        for name in names:
            stack.enter_context(found.served(name))
        yield found

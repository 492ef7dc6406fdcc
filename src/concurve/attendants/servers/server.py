"""The interface of a kind of server for its attendant, and the search for its program."""

from __future__ import annotations

import ipaddress
import os
import pwd
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

#: Where the attendant reaches its server.
LOOPBACK = "127.0.0.1"

#: More requests than this between two readings mean load: the attendant itself sends fewer.
_REQUESTS_MIN = 10


class Reading(NamedTuple):
    """The counters of a server at one time: ``requests`` answered so far, and ``figures``."""

    requests: int
    figures: dict[str, float]


class Session(ABC):
    """A connection to a running server, for its attendant alone."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Facts about this server: its version and its configuration."""

    @abstractmethod
    def read(self) -> Reading:
        """Its counters now; cheap enough to be read some twenty times a second."""

    def busy(self, before: Reading, after: Reading) -> bool:
        """Was it under load between two readings?"""
        return after.requests - before.requests > _REQUESTS_MIN

    @abstractmethod
    def indicators(self, first: Reading, under_load: Sequence[Reading], last: Reading
                   ) -> dict[str, float]:  # fmt: skip
        """The indicators to report at the end: from the readings at ``ready``, while the server
        answered requests, and after the last request."""

    @abstractmethod
    def protect(self, password: str) -> None:
        """From now on have others asked for a password.

        Raises:
            AttendantError: the server does not take it.
        """

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Bring the loaded data into the state in which trials measure it."""

    @abstractmethod
    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Ask its process to stop at once, without saving anything."""


class Server(ABC):
    """A kind of server.

    ``name`` is what studies call it; ``remedy`` how it is installed; ``variable`` names an
    environment variable that may hold the file; ``folders`` are searched after ``PATH``.
    """

    name: str
    remedy: str
    variable: str
    folders: tuple[str, ...] = ("/usr/sbin", "/usr/local/bin", "/usr/bin")

    #: The name of the program file.
    program: str

    #: The system user that it runs as if Concurve is root; ``None``: as root.
    user: ClassVar[str | None] = None

    #: Ends the server at once; unwritten data are lost, which a trial does not need.
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def find(self) -> Path | None:
        """Its program; ``None`` if it is not installed. If the variable is set, no other place is
        searched: a wrong path is an error, not a reason to take another program."""
        named = os.environ.get(self.variable)
        if named:
            return Path(named) if os.access(named, os.X_OK) else None
        return next((Path(c) for c in self.candidates() if c and os.access(c, os.X_OK)), None)

    def candidates(self) -> list[str | None]:
        """Where its program may be, the preferred place first."""
        return [
            shutil.which(self.program),
            *(f"{folder}/{self.program}" for folder in self.folders),
        ]

    def places(self) -> list[str]:
        """Where :meth:`find` looks, in words."""
        named = os.environ.get(self.variable)
        return [f"{self.variable}={named}"] if named else ["PATH", *self.folders]

    def lacks(self) -> tuple[str, str] | None:
        """A further requirement that this machine lacks, and the remedy."""
        if self.user is None or os.geteuid() != 0:
            return None
        try:
            pwd.getpwnam(self.user)
        except KeyError:
            return f"{self.name} refuses root, and there is no user {self.user}", self.remedy
        return None

    @abstractmethod
    def argv(
        self, file: Path, folder: Path, port: int, arguments: Sequence[str], bind: str = LOOPBACK
    ) -> list[str]:
        """Its command line: serving on loopback, and on the address ``bind``, with its data in
        ``folder``."""

    def admit(self, folder: Path, password: str) -> None:  # noqa: B027 - most need no file for it
        """Have clients of other machines admitted, with a password, once it starts."""

    @abstractmethod
    def connect(self, port: int) -> Session | None:
        """A session, if it answers already; ``None`` if it does not yet.

        Raises:
            ValueError: something else answers there; the text says what it said.
        """


class Database(Server):
    """A server whose data are made before it starts."""

    #: Ends the server with complete data files, so that they may be copied.
    settle_signal: ClassVar[signal.Signals] = signal.SIGTERM

    @abstractmethod
    def make(self, file: Path, folder: Path) -> list[str]:
        """The command that makes its data, without any content yet, in an empty folder."""

    @abstractmethod
    def url(self, port: int) -> str:
        """The address at which concurve-load reaches it."""


def addresses(bind: str) -> tuple[str, ...]:
    """Where a server listens that is to listen on an address: on loopback as well, where its
    attendant looks for it."""
    if bind == LOOPBACK or ipaddress.ip_address(bind).is_unspecified:
        return (bind,)
    return (LOOPBACK, bind)

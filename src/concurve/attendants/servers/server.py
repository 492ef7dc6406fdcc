"""What an attendant must know of a kind of server, and where its program is looked for."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

#: More requests than this between two readings mean load: those of the attendant itself are fewer.
_REQUESTS_MIN = 10


class Reading(NamedTuple):
    """The counters of a server at one time: ``requests`` answered so far, and ``figures``."""

    requests: int
    figures: dict[str, float]


class Session(ABC):
    """A connection to a running server, for its attendant alone."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What is worth knowing of this server: its version, what was asked for."""

    @abstractmethod
    def read(self) -> Reading:
        """Its figures now; cheap enough to be asked for some twenty times a second."""

    def busy(self, before: Reading, after: Reading) -> bool:
        """Was it under load between two readings?"""
        return after.requests - before.requests > _REQUESTS_MIN

    @abstractmethod
    def indicators(self, first: Reading, under_load: Sequence[Reading], last: Reading
                   ) -> dict[str, float]:  # fmt: skip
        """What is reported of it in the end: from the readings at ``ready``, while it answered
        requests, and after the last one."""

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Bring what was loaded into the state in which it is to be measured."""

    @abstractmethod
    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Ask its process to stop at once, without saving anything."""


class Server(ABC):
    """A kind of server.

    ``name`` is what studies call it; ``remedy`` how it is installed; ``variable`` names an
    environment variable that may hold the file; ``folders`` are looked in after ``PATH``.
    """

    name: str
    remedy: str
    variable: str
    folders: tuple[str, ...] = ("/usr/sbin", "/usr/local/bin", "/usr/bin")

    #: Of its program file.
    program: str

    #: The system user that it runs as where Concurve is root; ``None``: as root.
    user: ClassVar[str | None] = None

    #: Ends it at once; what it has not written is lost, and so is all the rest.
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def find(self) -> Path | None:
        """Its program; ``None`` if it is not installed. What the variable names is not searched
        further: a wrong path is an error, not a reason to take another program."""
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
        """What else it needs that this machine has not got, and what would help."""
        if self.user is None or os.geteuid() != 0:
            return None
        try:
            pwd.getpwnam(self.user)
        except KeyError:
            return f"{self.name} refuses root, and there is no user {self.user}", self.remedy
        return None

    @abstractmethod
    def argv(self, file: Path, folder: Path, port: int, arguments: Sequence[str]) -> list[str]:
        """Its command line: serving on loopback only, with its data in ``folder``."""

    @abstractmethod
    def connect(self, port: int) -> Session | None:
        """A session, if it answers already; ``None`` if it does not yet.

        Raises:
            ValueError: something else answers there; the text says what it said.
        """


class Database(Server):
    """A server whose data are made before it starts."""

    #: Ends it with its data whole, so that they may be copied.
    settle_signal: ClassVar[signal.Signals] = signal.SIGTERM

    @abstractmethod
    def make(self, file: Path, folder: Path) -> list[str]:
        """The command that makes its data, without any content yet, in an empty folder."""

    @abstractmethod
    def url(self, port: int) -> str:
        """How concurve-load reaches it."""

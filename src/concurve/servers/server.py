"""What an attendant has to know of a kind of server, and where servers are looked for."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple


class Reading(NamedTuple):
    """What a server says of itself at a moment: ``requests`` answered so far, and ``figures``."""

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

    @abstractmethod
    def indicators(self, first: Reading, under_load: Sequence[Reading], last: Reading
                   ) -> dict[str, float]:  # fmt: skip
        """What is reported of it in the end: from the readings at ``ready``, while it answered
        requests, and after the last one."""

    @abstractmethod
    def stop(self) -> None:
        """Ask it to stop at once, without saving anything."""


class Server(ABC):
    """A kind of server.

    ``package`` is Debian's; ``variable`` names an environment variable that may hold the file;
    ``folders`` are looked in after ``PATH``.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    variable: ClassVar[str]
    folders: ClassVar[tuple[str, ...]] = ("/usr/sbin", "/usr/local/bin", "/usr/bin")

    def find(self) -> Path | None:
        """Its program; ``None`` if it is not installed. What the variable names is not searched
        further: a wrong path there is an answer, too."""
        named = os.environ.get(self.variable)
        if named:
            return Path(named) if os.access(named, os.X_OK) else None
        candidates = [
            shutil.which(self.name),
            *(f"{folder}/{self.name}" for folder in self.folders),
        ]
        return next((Path(c) for c in candidates if c and os.access(c, os.X_OK)), None)

    def places(self) -> list[str]:
        """Where :meth:`find` looks, in words."""
        named = os.environ.get(self.variable)
        return [f"{self.variable}={named}"] if named else ["PATH", *self.folders]

    @abstractmethod
    def argv(self, file: Path, folder: Path, port: int, arguments: Sequence[str]) -> list[str]:
        """Its command line: serving on loopback only, with its data in ``folder``, which is new
        and empty. May prepare the folder."""

    @abstractmethod
    def connect(self, port: int) -> Session | None:
        """A session, if it answers already; ``None`` if it does not yet.

        Raises:
            ValueError: something else answers there; the text says what it said.
        """

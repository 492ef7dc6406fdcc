"""The files of the parts of a study, for error messages."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

#: Where the options of ``concurve sweep`` come from.
COMMAND_LINE = "command line"

_PATH = re.compile(r"(\w+)(?:\[(\d+)\]|\.([\w-]+(?:\.[\w-]+)?))?")


class Origins(msgspec.Struct, frozen=True):
    """A study's own file (or ``command line``), and the file of each part that comes from another
    one: by table, and by name or position of the entry in it."""

    own: str
    parts: Mapping[tuple[str, str], str] = {}

    def __str__(self) -> str:
        return self.own

    @property
    def is_command_line(self) -> bool:
        """Is the study that of a command line, so that its parts are options?"""
        return self.own == COMMAND_LINE

    def parameter(self, name: str) -> str:
        """How a factor of this name is written."""
        return f"-P {name} LEVELS" if self.is_command_line else f"{name} = [LEVELS] to [factors]"

    def hook(self, name: str) -> str:
        """How a hook is written."""
        return f"--{name}" if self.is_command_line else f"hooks, {name}"

    def of(self, table: str, name: str = "") -> str:
        """The file of an entry: ``of("roles", "target")``, ``of("effort", "quick.repeats")``."""
        other = self.parts.get((table, name))
        return f"{other} (extended by {self.own})" if other else self.own

    def at(self, path: str) -> str:
        """The file of a path as msgspec writes it: ``roles[0].controls``, ``study.name``."""
        match = _PATH.match(path)
        if match is None:
            return self.own
        if path.startswith(f"{match[1]}[...]"):  # a key that msgspec does not name
            others = {file for (table, _), file in self.parts.items() if table == match[1]}
            return " or ".join([self.own, *sorted(others)])
        names = [match[2] or match[3] or "", (match[3] or "").partition(".")[0], ""]
        found = (name for name in names if (match[1], name) in self.parts)
        return self.of(match[1], next(found, ""))

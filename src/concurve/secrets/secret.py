"""The type of a secret, and the reference that stands for it in texts."""

from __future__ import annotations

import hmac
import re
from typing import NoReturn

#: What is shown of a secret that has no name.
MASK = "***"

#: A reference, and the name in it.
REFERENCE = re.compile(r"\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")


class Secret:
    """A text that cannot be formatted, stored or compared by its time: its text is a mask."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself, for whoever starts a program or opens a connection with it."""
        return self._value

    def __repr__(self) -> str:
        return MASK

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        ours, theirs = (it.encode(errors="surrogateescape") for it in (self._value, other._value))
        return hmac.compare_digest(ours, theirs)

    def __hash__(self) -> NoReturn:
        raise TypeError("a secret has no hash, which might tell a short one")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not stored")


def reference(name: str) -> str:
    """What stands for the secret of this name: ``{secret:NAME}``."""
    return f"{{secret:{name}}}"


def references(text: str) -> list[str]:
    """The names of the secrets that a text refers to, each once, in order."""
    return list(dict.fromkeys(REFERENCE.findall(text)))


def replaced(text: str, values: dict[str, str]) -> str:
    """The text with the values in place of the references to these names; others stay."""
    return REFERENCE.sub(lambda match: values.get(match[1], match[0]), text)

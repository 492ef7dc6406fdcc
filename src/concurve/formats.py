"""Data with a format number: data of an older version is upgraded when it is read, and data of a
newer version is refused with a message that names it.

A type whose data is stored has a field ``format``. The module of the type holds the dated history
of its formats and its ``VERSIONS``, with one pure function for each step to the next format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from concurve.errors import StoreError


class Numbered(Protocol):
    """Data with a number of its format."""

    @property
    def format(self) -> int: ...


T = TypeVar("T", bound=Numbered)

#: Turns the decoded JSON of a format into that of the next one.
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


def number_alone(data: dict[str, Any]) -> dict[str, Any]:
    """The upgrade to a format that differs from the one before by its number alone."""
    return data


class _Number(msgspec.Struct):
    """The format number and the trial of the data; data without a number has format 1."""

    format: int = 1
    trial: str = ""


#: What decoding and checking of damaged data raises: :mod:`msgspec` does not report bytes that are
#: no UTF-8, too deep a nesting or another type than text as its own errors.
_DAMAGED = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


def _accept(_value: object) -> None:
    """The check of a type that needs none."""


class Versions(Generic[T]):
    """The formats of a stored type: ``upgrades[0]`` leads from format 1 to format 2, and so on.
    ``check`` raises a :class:`ValueError` for a value that contradicts itself.

    Attributes:
        newest: the format that this version writes, and the newest that it reads.
    """

    def __init__(
        self,
        type_: type[T],
        kind: str,
        upgrades: Sequence[Upgrade] = (),
        check: Callable[[T], None] = _accept,
    ) -> None:
        self.newest = len(upgrades) + 1
        self._kind = kind
        self._upgrades = tuple(upgrades)
        self._check = check
        self._type = type_

    @cached_property
    def _values(self) -> msgspec.json.Decoder[T]:
        """Made when data is first read: of a large type that takes several milliseconds."""
        return msgspec.json.Decoder(self._type)

    def decode(self, raw: bytes | str, name: str = "") -> T:
        """Read stored JSON of any format up to the newest.

        Args:
            raw: the JSON text.
            name: which one it is, for messages.

        Raises:
            StoreError: it has a newer format, or is not of this type.
        """
        try:
            value = self._newest(raw, name)
            self._check(value)
            return value
        except _DAMAGED as error:
            shown = f"{self._kind} ({name})" if name else self._kind
            raise StoreError(f"not a {shown}: {error}", "was it cut or edited?") from error

    def _newest(self, raw: bytes | str, name: str) -> T:
        """The value, brought to the newest format."""
        with suppress(*_DAMAGED):
            # Nearly all data has the newest format.
            value = self._values.decode(raw)
            if value.format == self.newest:
                return value
        return self._values.decode(self._up_to_date(raw, name))

    def _up_to_date(self, raw: bytes | str, name: str) -> bytes | str:
        """The JSON in the newest format."""
        found = msgspec.json.decode(raw, type=_Number)
        if found.format > self.newest:
            raise StoreError(
                f"{self._kind} {name or found.trial} has format {found.format}, so it was stored "
                f"by a newer concurve; this one reads up to {self.newest}",
                "install a newer version of concurve",
            )
        if found.format < 1:
            raise msgspec.ValidationError(f"there is no format {found.format}")
        if found.format == self.newest:
            return raw
        data = msgspec.json.decode(raw, type=dict[str, Any])
        for upgrade in self._upgrades[found.format - 1 :]:
            data = upgrade(data)
        return msgspec.json.encode({**data, "format": self.newest})

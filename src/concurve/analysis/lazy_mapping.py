"""A mapping whose values are made when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class LazyMapping(Mapping[str, Value]):
    """Names are known from the start, values made by ``make`` once each; ``known`` ones are there.

    A view of a long run reads few of its indicators: making all of them would take most of the
    time.
    """

    __slots__ = ("_make", "_names", "_values")

    def __init__(
        self,
        names: Iterable[str],
        make: Callable[[str], Value],
        known: Mapping[str, Value] | None = None,
    ) -> None:
        self._values: dict[str, Value] = dict(known or {})
        self._names = dict.fromkeys((*names, *self._values))
        self._make = make

    def __getitem__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            if name not in self._names:
                raise
        value = self._values[name] = self._make(name)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))

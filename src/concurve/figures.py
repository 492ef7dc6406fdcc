"""Figures of trials as they are stored beside the records: packed, for fast reading.

A trial's figures are their names as a JSON array, a zero byte, and the values as little-endian
doubles. Trials of a run nearly always have the same names, so a whole run is read as one table.

They have no format number of their own: they are a column of the store, whose format
(:mod:`concurve.store.database`) counts for them as for its tables. Another packing would be a new
format of the store, whose upgrade computes the figures again from the records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, overload

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class FigureTable(NamedTuple):
    """Figures of many trials: one row a trial, one column a name; NaN where a trial has none."""

    names: tuple[str, ...]
    values: NDArray[np.float64]

    def row(self, index: int) -> dict[str, float]:
        """The figures of one trial."""
        pairs = zip(self.names, self.values[index].tolist(), strict=True)
        return {name: value for name, value in pairs if not math.isnan(value)}


@dataclass(frozen=True)
class PackedFigures(Sequence[bytes]):
    """Figures of many trials as stored, without what nearly all of them begin with.

    ``heading`` is that: the names of the first trial, with the zero byte. ``together`` has what
    follows it, one trial after the other, in so many bytes as ``lengths`` says; and in ``others``
    stand, by their places, trials that begin otherwise, as a whole.
    """

    heading: bytes
    together: bytes | bytearray
    lengths: list[int]
    others: Mapping[int, bytes]

    @classmethod
    def of(cls, figures: Sequence[bytes]) -> PackedFigures:
        """Those of figures that are whole."""
        heading = heading_of(figures[0]) if figures else b""
        begin = [bool(heading) and blob.startswith(heading) for blob in figures]
        bodies = [
            blob[len(heading) :] if alike else b""
            for blob, alike in zip(figures, begin, strict=True)
        ]
        others = {place: figures[place] for place, alike in enumerate(begin) if not alike}
        return cls(heading, b"".join(bodies), list(map(len, bodies)), others)

    @cached_property
    def _ends(self) -> list[int]:
        """Where each begins, and where the last one ends."""
        return [0, *itertools.accumulate(self.lengths)]

    def digested(self) -> Iterator[bytes | bytearray]:
        """Everything that they hold, in few pieces that no other figures have."""
        yield msgspec.msgpack.encode((self.heading, self.lengths, self.others))
        yield self.together

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self.lengths))[index]
        if place in self.others:
            return self.others[place]
        return self.heading + self.together[self._ends[place] : self._ends[place + 1]]


def heading_of(figures: bytes) -> bytes:
    """The names at the beginning of stored figures, with the zero byte; empty where these are
    damaged."""
    return figures[: figures.find(b"\0") + 1]


def encode_figures(figures: Mapping[str, float]) -> bytes:
    """A trial's figures, as stored."""
    import numpy as np

    values = np.fromiter(figures.values(), "<f8", len(figures))
    return msgspec.json.encode(list(figures)) + b"\0" + values.tobytes()


def decode_figures(blobs: Iterable[bytes]) -> FigureTable:
    """The figures of many trials, in their order.

    Raises:
        msgspec.DecodeError, ValueError: a trial's figures are damaged.
    """
    import numpy as np

    if isinstance(blobs, PackedFigures) and blobs.lengths and not blobs.others:
        return _of_same_names(blobs)
    bodies: dict[bytes, list[bytes]] = {}
    places: dict[bytes, list[int]] = {}
    count = 0
    for blob in blobs:
        heading, _, body = blob.partition(b"\0")
        bodies.setdefault(heading, []).append(body)
        places.setdefault(heading, []).append(count)
        count += 1
    columns = {heading: msgspec.json.decode(heading, type=list[str]) for heading in bodies}
    for heading, some in columns.items():
        if any(len(body) != 8 * len(some) for body in bodies[heading]):
            raise ValueError(f"a trial has not one value for each of its {len(some)} names")
    names = tuple(dict.fromkeys(name for some in columns.values() for name in some))
    blocks = {
        heading: np.frombuffer(b"".join(bodies[heading]), "<f8").reshape(len(bodies[heading]), -1)
        for heading, some in columns.items()
        if some
    }
    if len(bodies) == len(blocks) == 1:
        return FigureTable(names, next(iter(blocks.values())))
    values = np.full((count, len(names)), np.nan)
    for heading, block in blocks.items():
        values[np.ix_(places[heading], [names.index(name) for name in columns[heading]])] = block
    return FigureTable(names, values)


def _of_same_names(packed: PackedFigures) -> FigureTable:
    """The figures of trials that all have the same names."""
    import numpy as np

    names = tuple(msgspec.json.decode(packed.heading[:-1], type=list[str]))
    if not names:
        return FigureTable((), np.empty((len(packed), 0)))
    if set(packed.lengths) != {8 * len(names)}:
        raise ValueError(f"a trial has not one value for each of its {len(names)} names")
    values = np.frombuffer(packed.together, "<f8")
    return FigureTable(names, values.reshape(len(packed), len(names)))

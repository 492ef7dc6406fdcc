"""Figures of trials as they are stored beside the records: packed, for fast reading.

A trial's figures are their names as a JSON array, a zero byte, and the values as little-endian
doubles. Trials of a run nearly always have the same names, so a whole run is read as one table.

They have no format number of their own: they are a column of the store, whose format
(:mod:`concurve.store.database`) counts for them as for its tables. Another packing would be a new
format of the store, whose upgrade computes the figures again from the records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, NamedTuple

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

    blobs = list(blobs)
    same = _same_names(blobs)
    if same is not None:
        return same
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


def _same_names(blobs: list[bytes]) -> FigureTable | None:
    """The figures of trials that all have the same names, read as one block; ``None`` of others."""
    import numpy as np

    if not blobs or len(set(map(len, blobs))) > 1:
        return None
    heading = blobs[0][: blobs[0].find(b"\0") + 1]
    if not all(map(methodcaller("startswith", heading), blobs)):
        return None
    names = tuple(msgspec.json.decode(heading[:-1], type=list[str]))
    bodies = map(itemgetter(slice(len(heading), None)), blobs)
    values = np.frombuffer(b"".join(bodies), "<f8")
    return FigureTable(names, values.reshape(len(blobs), len(names)))

"""Histograms as programs report them: the HdrHistogram V2 serialisation, read bin by bin, added,
and asked for percentiles (https://hdrhistogram.github.io).

Percentiles of several processes cannot be computed from the percentiles of each. Their histograms
can be added: histograms of equal resolution have the same bins, and the sum of the counts of a bin
is the count of the pooled values.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

COMPRESSED = 0x1C849314
_PLAIN = 0x1C849313
_HEADER = struct.Struct(">IIIIQQd")
#: HdrHistogram has at most so many significant digits, and values of 63 bits: 47 buckets of 2^17
#: values each, of which none takes more than nine bytes.
_DIGITS_MAX = 5
_PLAIN_BYTES_MAX = 64 << 20


class Histogram(NamedTuple):
    """Counts of values by bin. ``digits`` are the significant digits of a value and ``lowest`` the
    smallest value that is told from 0: they decide which values a bin has. ``counts`` has the bins
    that are not empty, by their index in ascending order."""

    digits: int
    lowest: int
    counts: dict[int, int]

    @property
    def total(self) -> int:
        """How many values it has."""
        return sum(self.counts.values())

    def quantile(self, share: float) -> int:
        """The value below or at which at least this share of the values lies, as the greatest
        value of its bin; 0 for an empty histogram."""
        wanted = max(1, math.ceil(min(share, 1.0) * self.total))
        reached = 0
        for index, count in self.counts.items():
            reached += count
            if reached >= wanted:
                return self._greatest_of(index)
        return 0

    def greatest(self) -> int:
        """The greatest value of the highest bin that is not empty; 0 for an empty histogram."""
        return self._greatest_of(next(reversed(self.counts))) if self.counts else 0

    def mean(self) -> float:
        """The mean of the values, each taken as the middle of its bin; 0 for an empty histogram."""
        total = self.total
        if total == 0:
            return 0.0
        return math.fsum(self._middle_of(i) * count for i, count in self.counts.items()) / total

    def _bin(self, index: int) -> tuple[int, int]:
        """The least value of a bin, and how many bits its width has."""
        half = _half(self.digits)
        shift = max(index // half - 1, 0)
        within = index if index < half else index % half + half
        unit = shift + self.lowest.bit_length() - 1
        return within << unit, unit

    def _greatest_of(self, index: int) -> int:
        least, unit = self._bin(index)
        return least + (1 << unit) - 1

    def _middle_of(self, index: int) -> int:
        least, unit = self._bin(index)
        return least + ((1 << unit) >> 1)


def merged(histograms: Sequence[Histogram]) -> Histogram:
    """The histogram of the values of all of them together: the counts of each bin added.

    Raises:
        ValueError: none are given, or their bins differ.
    """
    if not histograms:
        raise ValueError("no histogram")
    digits, lowest, _ = histograms[0]
    counts: dict[int, int] = {}
    for histogram in histograms:
        if (histogram.digits, histogram.lowest) != (digits, lowest):
            raise ValueError(
                f"bins differ: {digits} significant digits from {lowest} on, and "
                f"{histogram.digits} from {histogram.lowest} on"
            )
        for index, count in histogram.counts.items():
            counts[index] = counts.get(index, 0) + count
    return Histogram(digits, lowest, dict(sorted(counts.items())))


def decode(encoded: str) -> Histogram:
    """The histogram of a base64 text, compressed or not.

    Raises:
        ValueError: it is none.
    """
    return read_plain(plain_of(encoded))


def plain_of(encoded: str) -> bytes:
    """The V2 encoding before compression of a base64 text.

    Raises:
        ValueError: it is none.
    """
    try:
        packed = base64.b64decode(encoded, validate=True)
        cookie, length = struct.unpack_from(">II", packed)
        plain = _decompressed(packed[8 : 8 + length]) if cookie == COMPRESSED else packed
        begin = struct.unpack_from(">I", plain)[0]
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(str(error)) from error
    if begin != _PLAIN:
        raise ValueError(f"it begins with {cookie:#x}")
    return plain


def read_plain(plain: bytes) -> Histogram:
    """The histogram of a V2 encoding that is not compressed.

    Raises:
        ValueError: it is none.
    """
    try:
        fields = _HEADER.unpack_from(plain)
    except struct.error as error:
        raise ValueError(str(error)) from error
    length, digits, lowest = (int(fields[place]) for place in (1, 3, 4))
    if not (digits <= _DIGITS_MAX and 0 < lowest < 1 << 63):
        raise ValueError(f"it has {digits} significant digits from the value {lowest} on")
    return Histogram(digits, lowest, _counts(plain[_HEADER.size : _HEADER.size + length], digits))


def _counts(encoded: bytes, digits: int) -> dict[int, int]:
    """The counts of the bins that are not empty; a negative number is so many empty ones."""
    limit = 64 * _half(digits)
    counts: dict[int, int] = {}
    position = index = 0
    while position < len(encoded):
        number, position = _zigzag(encoded, position)
        if number < 0:
            index -= number
            continue
        if number:
            if index > limit:
                raise ValueError("it counts values of more than 63 bits")
            counts[index] = number
        index += 1
    return counts


def _half(digits: int) -> int:
    """Values of a bucket that belong to it alone: half as many as this number of digits needs."""
    return 1 << (2 * int(10**digits) - 1).bit_length() - 1


def _decompressed(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    plain = unpacking.decompress(packed, _PLAIN_BYTES_MAX)
    if unpacking.unconsumed_tail:
        raise ValueError(f"it is larger than {_PLAIN_BYTES_MAX} bytes")
    if not unpacking.eof:
        raise ValueError("its compressed bytes are cut off")
    return plain


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    """A ZigZag LEB128-64b9B number and where the next one begins."""
    raw = 0
    for count in range(9):
        if position >= len(data):
            raise ValueError("its counts are cut off")
        byte = data[position]
        position += 1
        if count == 8:
            raw |= byte << 56
            break
        raw |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            break
    return (raw >> 1) ^ -(raw & 1), position

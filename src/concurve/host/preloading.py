"""Whether a library can stand in front of the functions that a program calls (``LD_PRELOAD``)."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF"
_CLASS_64, _LITTLE = 2, 1
_DYNAMIC, _INTERPRETER = 2, 3
#: An entry of the dynamic section, and the flag that an executable without a fixed place has.
_FLAGS_1, _IS_EXECUTABLE = 0x6FFFFFFB, 0x08000000
#: Entries that are read at most: a damaged file may claim any number.
_HEADERS_MAX, _ENTRIES_MAX = 256, 4096


class _Segment(NamedTuple):
    kind: int
    offset: int
    bytes: int


def why_not_preloaded(path: str) -> str:
    """Why no library can stand in front of the functions of a program or a library; empty if it
    can. What cannot be read is taken to have none."""
    try:
        mode = Path(path).stat().st_mode
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                return f"{path} is empty"
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                is_static = is_statically_linked(content)
    except (OSError, ValueError) as error:
        return f"{path} cannot be read: {error}"
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return f"{path} runs with the rights of its owner, so nothing is loaded in front of it"
    if is_static:
        return (
            f"{path} is statically linked, so nothing can stand in front of its locks; link it "
            "dynamically"
        )
    return ""


def is_statically_linked(content: bytes | mmap.mmap) -> bool:
    """Does a file of a program name no loader? Libraries name none, either, but are no programs.

    Raises:
        ValueError: it is no ELF file of 64 bits, or a damaged one.
    """
    try:
        segments = list(_segments(content))
        if any(segment.kind == _INTERPRETER for segment in segments):
            return False
        dynamic = next((it for it in segments if it.kind == _DYNAMIC), None)
        return dynamic is None or bool(_flags(content, dynamic) & _IS_EXECUTABLE)
    except (struct.error, OverflowError) as error:
        raise ValueError("a damaged ELF file") from error


def _segments(content: bytes | mmap.mmap) -> Iterator[_Segment]:
    if content[:4] != _MAGIC or len(content) < 64 or content[4] != _CLASS_64:
        raise ValueError("no ELF file of 64 bits")
    order = "<" if content[5] == _LITTLE else ">"
    (at,) = struct.unpack_from(f"{order}Q", content, 32)
    each, count = struct.unpack_from(f"{order}HH", content, 54)
    for number in range(min(count, _HEADERS_MAX)):
        place = at + number * each
        (kind,) = struct.unpack_from(f"{order}I", content, place)
        (offset,) = struct.unpack_from(f"{order}Q", content, place + 8)
        (length,) = struct.unpack_from(f"{order}Q", content, place + 32)
        yield _Segment(kind, offset, length)


def _flags(content: bytes | mmap.mmap, dynamic: _Segment) -> int:
    order = "<" if content[5] == _LITTLE else ">"
    for number in range(min(dynamic.bytes // 16, _ENTRIES_MAX)):
        tag, value = struct.unpack_from(f"{order}qQ", content, dynamic.offset + 16 * number)
        if tag == _FLAGS_1:
            return int(value)
        if tag == 0:
            break
    return 0

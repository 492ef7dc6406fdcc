"""Blocked time by the place in the program that waited: stacks of frames, each with its time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import fsum
from typing import NamedTuple, TypeAlias

import msgspec


class BlockedStack(msgspec.Struct, frozen=True):
    """A place that waited: its frames, the outermost first, and its blocked time in ns of thread
    time per operation. The first frame is the kind of waiting; in a cell no two have equal
    frames."""

    frames: tuple[str, ...]
    ns: float


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A rectangle of a flame graph: it stands on the frame that called it, at ``depth``, and
    begins at ``start`` of the blocked time. ``before_ns`` is what the same frame took in the cell
    that this one is compared with, ``None`` where it is compared with none. ``is_merged``: several
    small frames in one."""

    path: tuple[str, ...]
    depth: int
    start_ns: float
    ns: float
    before_ns: float | None = None
    is_merged: bool = False

    @property
    def name(self) -> str:
        """The function, or the kind of waiting."""
        return self.path[-1] if self.path else ""


_Path: TypeAlias = tuple[str, ...]

#: The line at the end of a frame.
_LINE = re.compile(r"(?<=[^:]):\d+$")
#: What a frame that holds several small ones is called.
MERGED = "…"


def flames(
    stacks: Iterable[BlockedStack],
    before: Iterable[BlockedStack] | None = None,
    share_min: float = 0.0,
    depth_max: int = 64,
) -> list[Frame]:
    """The frames of a flame graph (Gregg 2016), callers before what they called, the largest first.
    Of two cells that is the larger of both together, so that their graphs have the same order.

    Frames below ``share_min`` of the whole are merged with their neighbours into one, and what is
    called at ``depth_max`` and beyond is left out. ``before`` are the stacks of another cell, whose
    times the frames carry as well.
    """
    own = _totals(stacks)
    other = None if before is None else _totals(before)
    graph = _Graph(
        own=own,
        before=other,
        called=_called(own, other or {}),
        least=share_min * own.get((), 0.0),
        depth_max=depth_max,
    )
    return list(_above(graph, (), 0.0))


def without_lines(stacks: Iterable[BlockedStack]) -> tuple[BlockedStack, ...]:
    """The stacks by functions alone: between two versions of a program, lines move."""
    found: dict[_Path, float] = {}
    for stack in stacks:
        frames = tuple(_LINE.sub("", frame) for frame in stack.frames)
        found[frames] = found.get(frames, 0.0) + stack.ns
    return tuple(BlockedStack(frames, ns) for frames, ns in found.items())


def difference_ns(stacks: Iterable[BlockedStack], before: Iterable[BlockedStack]) -> float:
    """By how much two cells differ in where they were blocked: the sum of what each stack takes
    more, or less. Time that went from one place to another counts at both."""
    changes: dict[_Path, float] = {stack.frames: stack.ns for stack in stacks}
    for stack in before:
        changes[stack.frames] = changes.get(stack.frames, 0.0) - stack.ns
    return fsum(map(abs, changes.values()))


def _totals(stacks: Iterable[BlockedStack]) -> dict[_Path, float]:
    """The time of each frame with all that it called; that of the empty path is the whole."""
    totals: dict[_Path, float] = {}
    for stack in stacks:
        for length in range(len(stack.frames) + 1):
            path = stack.frames[:length]
            totals[path] = totals.get(path, 0.0) + stack.ns
    return totals


class _Graph(NamedTuple):
    """What a flame graph is made of: times by path, those of the other cell, what each frame
    called, the largest first, and the bounds."""

    own: dict[_Path, float]
    before: dict[_Path, float] | None
    called: dict[_Path, list[_Path]]
    least: float
    depth_max: int

    def before_of(self, *paths: _Path) -> float | None:
        """What the frames took in the other cell."""
        return None if self.before is None else sum(self.before.get(it, 0.0) for it in paths)


def _called(own: dict[_Path, float], other: dict[_Path, float]) -> dict[_Path, list[_Path]]:
    called: dict[_Path, list[_Path]] = {}
    for path in sorted(own, key=lambda it: (-own[it] - other.get(it, 0.0), it)):
        if path and own[path] > 0:
            called.setdefault(path[:-1], []).append(path)
    return called


def _above(graph: _Graph, path: _Path, start: float) -> Iterator[Frame]:
    """The frames that stand on one, with those that stand on them."""
    if len(path) >= graph.depth_max:
        return
    called = graph.called.get(path, [])
    small = [it for it in called if graph.own[it] < graph.least]
    # One small frame alone would not be smaller under another name.
    drawn = [it for it in called if it not in small] if len(small) > 1 else called
    for child in drawn:
        ns = graph.own[child]
        before = graph.before_of(child)
        yield Frame(path=child, depth=len(path), start_ns=start, ns=ns, before_ns=before)
        yield from _above(graph, child, start)
        start += ns
    if len(drawn) < len(called):
        yield Frame(
            path=(*path, MERGED),
            depth=len(path),
            start_ns=start,
            ns=sum(graph.own[it] for it in small),
            before_ns=graph.before_of(*small),
            is_merged=True,
        )

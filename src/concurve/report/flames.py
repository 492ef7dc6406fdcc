"""Blocked time as other programs read it: collapsed stacks, and a profile for Firefox Profiler."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.findings.stacks import BlockedStack
from concurve.report import format as fmt

#: The version of the processed profile format (firefox-devtools/profiler,
#: docs-developer/CHANGELOG-formats.md); later versions of the program read it, too.
_PROCESSED, _GECKO = 48, 24
_FRAME_COLUMNS = (
    "address",
    "category",
    "column",
    "func",
    "implementation",
    "inlineDepth",
    "innerWindowID",
    "line",
    "nativeSymbol",
    "subcategory",
)


def to_collapsed(explanation: Explanation) -> str:
    """A line for each stack: its frames with semicolons between them, from the cell inwards, and
    its blocked time in whole ns per operation. Tools that draw flame graphs read it."""
    lines = []
    for cell in explanation.cells:
        for stack in sorted(cell.stacks, key=lambda it: it.frames):
            if (ns := round(stack.ns)) > 0:
                frames = (_cell_name(cell, explanation), *stack.frames)
                lines.append(f"{';'.join(map(_plain, frames))} {ns}\n")
    return "".join(lines)


def _plain(frame: str) -> str:
    """A frame without what separates frames and lines."""
    return re.sub(r"[;\s]+", " ", fmt.clean(frame)).strip() or "?"


def _cell_name(cell: CellExplanation, explanation: Explanation) -> str:
    where = {name: cell.parameters[name] for name in explanation.factors}
    return fmt.setting(where) or explanation.study


def to_firefox(explanation: Explanation) -> bytes:
    """A profile with a thread for each cell, whose samples are weighted by blocked time: open it at
    profiler.firefox.com, or with ``samply load``."""
    cells = [cell for cell in explanation.cells if cell.stacks]
    profile = {
        "meta": _meta(explanation),
        "libs": [],
        "pages": [],
        "counters": [],
        "profilerOverhead": [],
        "threads": [
            _thread(number, _cell_name(cell, explanation), cell.stacks)
            for number, cell in enumerate(cells, start=1)
        ],
    }
    return msgspec.json.encode(profile)


def _meta(explanation: Explanation) -> dict[str, Any]:
    return {
        "product": f"Concurve: blocked time per operation, {explanation.study}",
        "version": _GECKO,
        "preprocessedProfileVersion": _PROCESSED,
        "processType": 0,
        "startTime": 0,
        "interval": 1,
        "stackwalk": 1,
        "debug": False,
        "symbolicated": True,
        "pausedRanges": [],
        "extensions": {"length": 0, "id": [], "name": [], "baseURL": []},
        "categories": [{"name": "Blocked", "color": "orange", "subcategories": ["Other"]}],
        "markerSchema": [],
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
    }


class _Strings:
    """Texts, each once, by their numbers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


def _thread(number: int, name: str, stacks: Iterable[BlockedStack]) -> dict[str, Any]:
    strings = _Strings()
    functions: dict[str, int] = {}
    nodes: dict[tuple[str, ...], int] = {}
    prefixes: list[int | None] = []
    frames: list[int] = []
    ends, weights = [], []
    for stack in stacks:
        parent: int | None = None
        for length, frame in enumerate(stack.frames, start=1):
            path = stack.frames[:length]
            if path not in nodes:
                nodes[path] = len(prefixes)
                prefixes.append(parent)
                frames.append(functions.setdefault(frame, len(functions)))
            parent = nodes[path]
        ends.append(parent)
        weights.append(stack.ns / 1e6)
    count = len(functions)
    names = [strings.number(fmt.clean(function)) for function in functions]
    return {
        "name": fmt.clean(name),
        "processName": fmt.clean(name),
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "isMainThread": True,
        "pausedRanges": [],
        "pid": str(number),
        "tid": number,
        "samples": {
            "length": len(ends),
            "stack": ends,
            "time": list(range(len(ends))),
            "weight": weights,
            "weightType": "tracing-ms",
        },
        "stackTable": {
            "length": len(frames),
            "prefix": prefixes,
            "frame": frames,
            "category": [0] * len(frames),
            "subcategory": [0] * len(frames),
        },
        "frameTable": {
            "length": count,
            **{column: [None] * count for column in _FRAME_COLUMNS},
            "address": [-1] * count,
            "inlineDepth": [0] * count,
            "category": [0] * count,
            "subcategory": [0] * count,
            "func": list(range(count)),
        },
        "funcTable": {
            "length": count,
            "name": names,
            "isJS": [False] * count,
            "relevantForJS": [False] * count,
            "resource": [-1] * count,
            "fileName": [None] * count,
            "lineNumber": [None] * count,
            "columnNumber": [None] * count,
        },
        "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
        "nativeSymbols": {
            "length": 0,
            "libIndex": [],
            "address": [],
            "name": [],
            "functionSize": [],
        },
        "markers": {
            "length": 0,
            "category": [],
            "data": [],
            "endTime": [],
            "name": [],
            "phase": [],
            "startTime": [],
        },
        "stringArray": strings.texts,
    }

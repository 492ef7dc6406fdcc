"""The live line of a run: how much is done, the next trial, the estimate of its cell so far, and
the time left.

Drawing takes CPU time, and so does a thread that waits to draw: nothing happens here but
inside the methods, which the protocol calls between trials. While a trial runs the line stands
still.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TextIO

from rich.cells import cell_len

from concurve import words
from concurve.estimate import Estimate
from concurve.report import format as fmt
from concurve.report.console import cut, fit_encoding
from concurve.terms import Level

# If the output is not a terminal: one line a block, at intervals of at least the first number of
# seconds, and a line in any case after the second.
_PLAIN_SECONDS_MIN = 1.0
_PLAIN_SECONDS_MAX = 10.0

# At most this many rejects of each cause are shown, and of a disturbance the first: a noisy machine
# causes hundreds, and the report lists them all.
_SHOWN_OF_A_CAUSE = 3

#: A longer cause is shown by its first clauses.
_CAUSE_CHARS = 200

# A narrower terminal gets no bar, and where it says for how long it waited that needs more.
_WIDTH_OF_BAR = 60
_WIDTH_OF_WAITED = 40
_BAR = 16

# What became of a trial that is not used as it is.
_STATUSES = {"program_error": "failed", "contaminated": "disturbed", "abandon": "given up"}

_Cell = tuple[tuple[str, Level], ...]


def _bar(done: int, planned: int) -> str:
    """``████░░░░``: the trials that are done."""
    full = min(_BAR, round(_BAR * done / planned)) if planned > 0 else 0
    return "█" * full + "░" * (_BAR - full)


def _left(seconds: float | None, may_grow: bool) -> str:
    """``about 40 s left``; before it is known how many trials follow, that these are the first."""
    if seconds is None:
        return ""
    left = f"about {fmt.duration(seconds)} left"
    return f"{left} of the first trials; more may follow" if may_grow else left


def _shortened(text: str) -> str:
    """A cause without its last clauses, if it is long: the report has all of it."""
    at = text.rfind("; ", 0, _CAUSE_CHARS) if len(text) > _CAUSE_CHARS else 0
    return f"{text[:at]} (concurve show last --rejected has all of it)" if at > 0 else text


class Progress:
    """Progress of one run, to stderr. Call in the order begin, (starts, ended)…, finish."""

    def __init__(
        self,
        stream: TextIO | None = None,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``live`` redraws one line; by default on terminals that can."""
        self._stream = stream or sys.stderr
        self._live = self._can_redraw() if live is None else live
        self._clock = clock
        self._estimates: dict[_Cell, str] = {}
        self._rejects: Counter[str] = Counter()
        self._causes: set[str] = set()
        self._drawn = 0
        self._plain_at = -_PLAIN_SECONDS_MAX
        self._plain_block: int | None = None
        self._digits = 1

    def begin(self, total: int, title: str) -> None:
        """A run of ``total`` trials begins; their number may change during the run."""
        self._digits = len(str(total))
        self._write_line(title)

    def trial_starts(
        self,
        parameters: Mapping[str, Level],
        block: int,
        attempt: int,
        done: int,
        planned: int,
        seconds_left: float | None,
        may_grow: bool = False,
        waited_seconds: float = 0.0,
    ) -> None:
        """A trial is about to run. This method draws the line, and :meth:`waits` before it.
        ``may_grow``: these are the first trials of each cell, and their spread says how many
        follow. ``waited_seconds``: so long the run has waited for a quiet machine."""
        cell = tuple(parameters.items())
        again = f", attempt {attempt + 1}" if attempt else ""
        width = _WIDTH_OF_BAR + (_WIDTH_OF_WAITED if waited_seconds else 0)
        bar = f"{_bar(done, planned)} " if self._live and self._width() >= width else ""
        parts = [
            f"{bar}[{done + 1:>{self._digits}}/{planned}{'+' if may_grow else ''}]",
            fmt.setting(parameters),
            f"trial {block + 1}{again}",
            self._estimates.get(cell, ""),
            _left(seconds_left, may_grow),
            f"waited {fmt.duration(waited_seconds)}" if waited_seconds else "",
        ]
        if self._live:
            self._draw(parts)
        elif self._due(block):
            self._write_line("  ".join(part for part in parts if part))

    def waits(self, seconds: float, most_seconds: float, disturbs: str) -> None:
        """The next trial waits for a quiet machine, for so long by now, and at most for so long.
        Where the output is no terminal, that is said no more often than trials are."""
        waited = f"{fmt.duration(seconds)} of at most {fmt.duration(most_seconds)}"
        parts = [f"waiting for a quiet machine ({waited}):", disturbs]
        if self._live:
            self._draw(parts)
        elif self._due(self._plain_block):
            self._write_line(" ".join(parts))

    def trial_ended(
        self,
        parameters: Mapping[str, Level],
        estimate: Estimate | None,
        status: str,
        cause: str | None,
    ) -> None:
        """A trial ended; ``estimate`` is that of its cell so far. It prints a line for a reject
        only."""
        if estimate is not None:
            shown = fmt.estimate(estimate)
            value = fmt.with_unit(shown.value, shown.unit)
            same = estimate.n > 1 and estimate.low == estimate.high
            text = f"{value} {'each time' if same else fmt.precision(estimate)}".rstrip()
            self._estimates[tuple(parameters.items())] = text
        if cause:
            setting = fmt.setting(parameters) or "trial"
            self._show_reject(setting, status, cause)

    def _show_reject(self, setting: str, status: str, cause: str) -> None:
        became = f"{setting}: {_STATUSES.get(status, status)}"
        kind = cause.partition(":")[0]
        self._rejects[kind] += 1
        if status == "contaminated":
            # Who took how much differs from trial to trial: the result says it of all of them.
            if self._rejects[kind] == 1:
                self.note(f"{became}, {kind}; further ones are counted in the result")
            return
        again = cause in self._causes and ":" in cause
        self._causes.add(cause)
        text = f"{became}, {'for the same reason' if again else cause}"
        if not again and kind == words.cause("program_failed"):
            text = f"{setting}: {cause}"  # it says that it failed
        if self._rejects[kind] <= _SHOWN_OF_A_CAUSE:
            self.note(_shortened(text))
        elif self._rejects[kind] == _SHOWN_OF_A_CAUSE + 1:
            self.note(
                f"more trials for this cause ({kind}) are counted in the result, not shown here"
            )

    def note(self, text: str) -> None:
        """A remark that stays, above the live line."""
        self._wipe()
        self._write_line(text)

    def finish(self) -> None:
        """Leave the terminal as it was found."""
        self._wipe()

    def _due(self, block: int | None) -> bool:
        now = self._clock()
        since = now - self._plain_at
        if since >= _PLAIN_SECONDS_MAX or (
            block != self._plain_block and since >= _PLAIN_SECONDS_MIN
        ):
            self._plain_at, self._plain_block = now, block
            return True
        return False

    def _draw(self, parts: list[str]) -> None:
        """Draw one line, never wider than the terminal: the setting is shortened first."""
        parts = [fmt.clean(part) for part in parts]
        width = max(self._width() - 1, 10)
        text = "  ".join(part for part in parts if part)
        excess = cell_len(text) - width
        if excess > 0:
            parts[1] = cut(parts[1], max(cell_len(parts[1]) - excess, 8))
            text = cut("  ".join(part for part in parts if part), width)
        pad = " " * max(0, self._drawn - cell_len(text))
        self._write(f"\r{text}{pad}")
        self._drawn = cell_len(text)

    def _wipe(self) -> None:
        if self._drawn:
            self._write(f"\r{' ' * self._drawn}\r")
            self._drawn = 0

    def _write_line(self, text: str) -> None:
        self._write(f"{fmt.clean(text)}\n")

    def _write(self, text: str) -> None:
        """Write what is cleaned already: settings, errors of programs and the names of others'
        processes are not ours to choose."""
        self._stream.write(fit_encoding(text, self._stream))
        self._stream.flush()

    def _can_redraw(self) -> bool:
        return self._stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError, AttributeError):
            return shutil.get_terminal_size((80, 24)).columns

"""The live line of a run: how much is done, the next trial, the estimate of its cell so far, and
the time left.

Drawing takes CPU time, and so does a thread that waits to draw: nothing happens here but
inside the methods, which the protocol calls between trials. While a trial runs the line stands
still.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TextIO

from rich.cells import cell_len

from concurve import words
from concurve.estimate import Estimate
from concurve.report import format as fmt
from concurve.report.console import cut, fit_encoding, with_commands
from concurve.terms import Disturbance, Level

# If the output is not a terminal: one line a block, at intervals of at least the first number of
# seconds, and a line in any case after the second.
_PLAIN_SECONDS_MIN = 1.0
_PLAIN_SECONDS_MAX = 10.0
# What a run waits for is said there once, and again where another one disturbs, after so long.
_PLAIN_SECONDS_OF_WAITS = 60.0

# At most this many rejects of each cause are shown, and of a disturbance the first: a noisy machine
# causes hundreds, and the report lists them all.
_SHOWN_OF_A_CAUSE = 3

#: A longer cause is shown by its first clauses.
_CAUSE_CHARS = 200
#: Any other one in a line of the terminal, or of so many columns where that is narrower.
_CAUSE_MIN = 72

#: What stands before the words of a program that failed, and what is short for it.
_WROTE = re.compile(r"the program failed: [^\n]*?; its standard (?:error|output): ")
_FAILED = "failed: "

# A narrower terminal gets no bar.
_WIDTH_OF_BAR = 60
_BAR = 16

# Where a setting does not fit, it keeps so many columns at least.
_SETTING_MIN = 8

# Until it is known how many trials follow.
_MORE = " of the first trials; more may follow"

# What became of a trial that is not used as it is.
_STATUSES = {"program_error": "failed", "contaminated": "disturbed", "abandon": "given up"}

_Cell = tuple[tuple[str, Level], ...]


def _bar(done: int, planned: int) -> str:
    """``████░░░░``: the trials that are done."""
    full = min(_BAR, round(_BAR * done / planned)) if planned > 0 else 0
    return "█" * full + "░" * (_BAR - full)


def _left(seconds: float | None, *, is_allowance: bool) -> str:
    """``about 40 s left``; a fraction of a second is no estimate."""
    if seconds is None:
        return ""
    left = f"about {fmt.duration(seconds)}" if seconds >= 1 else "less than 1 s"
    return f"{left} left of the time allowance" if is_allowance else f"{left} left"


#: Intervals of fewer trials are so wide that they only frighten.
_TRIALS_OF_PRECISION = 5


class _Line(NamedTuple):
    """The parts of the line of a trial, as they stand in it."""

    bar: str
    place: str
    setting: str
    trial: str
    estimate: str
    left: str
    more: str
    waited: str

    def __str__(self) -> str:
        parts = (f"{self.bar}{self.place}", self.setting, self.trial, self.estimate,
                 f"{self.left}{self.more}", self.waited)  # fmt: skip
        return "  ".join(part for part in parts if part)

    def narrowed(self, width: int) -> list[str]:
        """The line, each time with less, until the setting fits: that more trials may follow is in
        the count too, and the number of the trial follows from it. A setting that is longer than
        all of that is cut."""
        lines = [self]
        for part in ("more", "bar", "waited", "trial", "left"):
            lines.append(lines[-1]._replace(**{part: ""}))
        timed = lines[-2]
        room = cell_len(timed.setting) - (cell_len(str(timed)) - width)
        shortened = timed._replace(setting=cut(timed.setting, max(room, _SETTING_MIN)))
        return [*map(str, lines), str(shortened)]


def _middle_cut(text: str, width: int) -> str:
    """The text in at most ``width`` cells: a part of its middle is left out, as a message begins
    with its kind and often ends with what it is about."""
    text = text.rstrip()
    if cell_len(text) <= width:
        return text
    tail = text[-(width // 3) :]
    while cell_len(tail) > width // 3:
        tail = tail[1:]
    return f"{cut(text, width - cell_len(tail))}{tail}"


def _shortened(text: str, width: int) -> str:
    """A cause in a line, and no more than its first clauses if it is long: what the report shows
    below its table has all of it. Of a program that failed, what it wrote stays: the reason."""
    if cell_len(text) > width and (wrote := _WROTE.sub(_FAILED, text, count=1)) != text:
        return _middle_cut(wrote, width)
    if len(text) > _CAUSE_CHARS and (at := text.rfind("; ", 0, _CAUSE_CHARS)) > 0:
        return f"{text[:at]} (concurve show last --rejected has all of it)"
    return cut(text, width)


class Progress:
    """Progress of one run, to stderr. Call in the order begin, (starts, ended)…, finish."""

    def __init__(
        self,
        stream: TextIO | None = None,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        reword: Callable[[str], str] = str,
    ) -> None:
        """``live`` redraws one line; by default on terminals that can. ``reword`` puts the commands
        in remarks into the reader's terms."""
        self._stream = stream or sys.stderr
        self._live = self._can_redraw() if live is None else live
        self._clock = clock
        self._reword = reword
        self._estimates: dict[_Cell, str] = {}
        self._rejects: Counter[str] = Counter()
        self._causes: set[str] = set()
        self._drawn = 0
        self._plain_at = -_PLAIN_SECONDS_MAX
        self._plain_block: int | None = None
        self._waits_said_at = -_PLAIN_SECONDS_OF_WAITS
        self._waits_for: str | None = None
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
        is_allowance: bool = False,
    ) -> None:
        """A trial is about to run. This method draws the line, and :meth:`waits` before it.
        ``may_grow``: these are the first trials of each cell, and their spread says how many
        follow. ``waited_seconds``: so long the run has waited for a quiet machine.
        ``is_allowance``: the time allowance ends before the trials that are planned."""
        cell = tuple(parameters.items())
        again = f", attempt {attempt + 1}" if attempt else ""
        self._waits_for = None
        line = _Line(
            bar=f"{_bar(done, planned)} " if self._live and self._width() >= _WIDTH_OF_BAR else "",
            place=f"[{done + 1:>{self._digits}}/{planned}{'+' if may_grow else ''}]",
            setting=fmt.clean(fmt.setting(parameters)),
            trial=f"trial {block + 1}{again}",
            estimate=fmt.clean(self._estimates.get(cell, "")),
            left=_left(seconds_left, is_allowance=is_allowance),
            more=_MORE if may_grow and seconds_left is not None and not is_allowance else "",
            waited=f"waited {fmt.duration(waited_seconds)}" if waited_seconds else "",
        )
        if self._live:
            self._draw(line.narrowed(self._room()))
        elif self._due(block):
            self._write_line(str(line))

    def waits(self, seconds: float, most_seconds: float, disturbs: Disturbance) -> None:
        """The next trial waits for a quiet machine, for so long by now, and at most for so long.
        Where the output is no terminal, that is said once, and again only where another one
        disturbs."""
        waited, most = fmt.duration(seconds), fmt.duration(most_seconds)
        texts = [
            f"waiting for a quiet machine ({waited} of at most {most}): {disturbs.briefly}",
            f"waiting ({waited} of {most}): {disturbs.briefly}",
            f"waiting: {disturbs.briefly}",
        ]
        if self._live:
            self._draw([fmt.clean(text) for text in texts])
        elif self._is_news(disturbs):
            self._write_line(texts[0])

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
            known = fmt.precision(estimate) if estimate.n >= _TRIALS_OF_PRECISION else ""
            text = f"{value} {'each time' if same else known}".rstrip()
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
                self.note(
                    f"{became}, {kind}. Disturbed trials are repeated; those that are used all "
                    "the same are marked as in doubt. Only the first is shown here."
                )
            return
        again = cause in self._causes and ":" in cause
        self._causes.add(cause)
        text = f"{became}, {'for the same reason' if again else cause}"
        if not again and kind == words.cause("program_failed"):
            text = f"{setting}: {cause}"  # it says that it failed
        if self._rejects[kind] <= _SHOWN_OF_A_CAUSE:
            self.note(_shortened(text, max(self._room(), _CAUSE_MIN)))
        elif self._rejects[kind] == _SHOWN_OF_A_CAUSE + 1:
            self.note(
                f"more trials for this cause ({kind}) are counted in the result, not shown here"
            )

    def note(self, text: str) -> None:
        """A remark that stays, above the live line."""
        self._wipe()
        self._write_line(self._reword(text))

    def finish(self) -> None:
        """Leave the terminal as it was found."""
        self._wipe()

    def _is_news(self, disturbs: Disturbance) -> bool:
        """Is it to be said where nothing is redrawn?"""
        now = self._clock()
        is_soon = now - self._waits_said_at < _PLAIN_SECONDS_OF_WAITS
        if is_soon or disturbs.who == self._waits_for:
            return False
        self._waits_said_at, self._waits_for = now, disturbs.who
        return True

    def _due(self, block: int) -> bool:
        now = self._clock()
        since = now - self._plain_at
        if since >= _PLAIN_SECONDS_MAX or (
            block != self._plain_block and since >= _PLAIN_SECONDS_MIN
        ):
            self._plain_at, self._plain_block = now, block
            return True
        return False

    def _draw(self, texts: Sequence[str]) -> None:
        """Draw the first of these clean texts that fits; else the last one, cut: never more than a
        line of the terminal."""
        width = self._room()
        text = next((text for text in texts if cell_len(text) <= width), cut(texts[-1], width))
        pad = " " * max(0, self._drawn - cell_len(text))
        self._write(f"\r{text}{pad}")
        self._drawn = cell_len(text)

    def _wipe(self) -> None:
        if self._drawn:
            self._write(f"\r{' ' * self._drawn}\r")
            self._drawn = 0

    def _write_line(self, text: str) -> None:
        """Write a line; a terminal shows a longer one over several, broken between words."""
        text = fmt.clean(text)
        if self._live and cell_len(text) > self._room():
            indent = "  "
            found = with_commands(text, self._room(), indent)
            text = "\n".join(line.plain for line in found).removeprefix(indent)
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        """Write what is cleaned already: settings, errors of programs and the names of others'
        processes are not ours to choose."""
        self._stream.write(fit_encoding(text, self._stream))
        self._stream.flush()

    def _can_redraw(self) -> bool:
        return self._stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")

    def _room(self) -> int:
        """The columns of a line; the last one of a terminal stays free."""
        return max(self._width() - 1, 10)

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError, AttributeError):
            return shutil.get_terminal_size((80, 24)).columns

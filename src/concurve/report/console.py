"""Lines on a stream: its width, its letters, and colours where it has them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from concurve.report.letters import fit_encoding

_WIDTH_PLAIN = 80
WIDTH_MIN = 20
_ASCII_ROOM = 8


def print_lines(make: Callable[[int], Iterable[Text]], file: TextIO | None = None) -> None:
    """Print the lines that ``make`` gives for a width, in letters that the stream can carry."""
    out = console(file or sys.stdout)
    # Without ± and its like the same text is longer: a sign takes two letters.
    width = out.width if fit_encoding("±", out.file) == "±" else out.width - _ASCII_ROOM
    for line in make(max(width, WIDTH_MIN)):
        text = fit_encoding(line.plain, out.file)
        if out.is_terminal:
            out.print(Text(text, line.style), soft_wrap=True, highlight=False)
        else:
            # The same letters: styling them for nobody takes longer than all else here.
            out.file.write(f"{text}\n")
    out.file.flush()


def console(file: TextIO) -> Console:
    """A console on a stream: colours on a terminal only, 80 columns elsewhere."""
    terminal = file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    width = None if file.isatty() or "COLUMNS" in os.environ else _WIDTH_PLAIN
    return Console(
        file=file,
        force_terminal=terminal,
        no_color=True if "NO_COLOR" in os.environ else None,
        color_system="auto" if terminal else None,
        width=width,
        emoji=False,
        markup=False,
        highlight=False,
    )

"""Text on a stream: its width, encoding, colours, and lines broken between words."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

_WIDTH_PLAIN = 80
WIDTH_MIN = 20
#: Columns kept free for the replacements below, some of which are longer than their characters.
_ASCII_MARGIN = 8
_ASCII = str.maketrans(
    {"±": "+-", "×": "x", "µ": "u", "–": "-", "…": "~", "�": "?", "·": "-", "§": "section "}
    | {"█": "#", "░": "."}
    | {"α": "alpha", "β": "beta", "γ": "gamma", "√": "sqrt", "∞": "inf", "≤": "<=", "−": "-"}
)


def print_lines(make: Callable[[int], Iterable[Text]], file: TextIO | None = None) -> None:
    """Print the lines that ``make`` gives for a width, in characters that the stream can encode."""
    out = console(file or sys.stdout)
    width = out.width if fit_encoding("±", out.file) == "±" else out.width - _ASCII_MARGIN
    for line in make(max(width, WIDTH_MIN)):
        text = fit_encoding(line.plain, out.file)
        if out.is_terminal:
            out.print(Text(text, line.style), soft_wrap=True, highlight=False)
        else:
            # Plain text: styling it without colours would take most of the time here.
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


def fit_encoding(text: str, stream: object) -> str:
    """The text in characters that the stream can encode."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "").startswith("utf"):
        return text
    return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)


def cut(text: str, size: int) -> str:
    """The text in at most ``size`` cells of a terminal; ``…`` marks a text that was cut."""
    return text if cell_len(text) <= size else set_cell_size(text, max(size - 1, 0)).rstrip() + "…"


def wrapped(text: Text, width: int, indent: str = "") -> Iterator[Text]:
    """A sentence over as many lines as it needs, the further ones indented; a word is broken where
    it is wider than a line."""
    line = indent
    for word in text.plain.split():
        for piece in _pieces(word, width - len(indent) - 2):
            glue = " " if line.strip() else ""
            if cell_len(line) + cell_len(glue) + cell_len(piece) > width:
                yield Text(line, text.style)
                line, glue = indent + "  ", ""
            line += glue + piece
    if line.strip():
        yield Text(line, text.style)


def _pieces(word: str, width: int) -> Iterator[str]:
    while cell_len(word) > width:
        size = len(word)
        while cell_len(word[:size]) > width:
            size -= 1
        yield word[:size]
        word = word[size:]
    yield word

"""Text on a stream: its width, encoding, colours, and lines broken between words."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TextIO

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_PLAIN = 80
WIDTH_MIN = 20
#: Columns kept free for the replacements below, some of which are longer than their characters.
_ASCII_MARGIN = 8
_ASCII = str.maketrans(
    {"±": "+-", "×": "x", "µ": "u", "–": "-", "…": "~", "�": "?", "·": "-", "§": "section "}
    | {"‡": "#", "†": "*"}
    | {"█": "#", "░": "."}
    | {"α": "alpha", "β": "beta", "γ": "gamma", "√": "sqrt", "∞": "inf", "≤": "<=", "−": "-"}
)

#: The words of a text, and its commands in backticks with what touches them.
_WITH_COMMANDS = re.compile(r"(?:[^\s`]*`[^`]*`)+[^\s`]*|\S+")
#: How a line of a shell ends that the next one continues.
_CONTINUES = " \\"


class Line(NamedTuple):
    """A line of text, and how a terminal with colours shows it: ``bold``, ``dim``, a colour."""

    plain: str = ""
    style: str = ""


def print_lines(make: Callable[[int], Iterable[Line]], file: TextIO | None = None) -> None:
    """Print the lines that ``make`` gives for a width, in characters that the stream can encode."""
    out = file or sys.stdout
    styled = _console(out) if out.isatty() else None
    width = _width_elsewhere(out) if styled is None else styled.width
    if fit_encoding("±", out) != "±":
        width -= _ASCII_MARGIN
    for line in make(max(width, WIDTH_MIN)):
        text = fit_encoding(line.plain, out)
        if styled is not None and styled.is_terminal:
            styled.print(text, style=line.style or None, soft_wrap=True)
        else:
            out.write(f"{text}\n")
    out.flush()


def has_height(file: TextIO | None = None) -> bool:
    """Are the lines read on a screen, of a terminal or of a pager behind a pipe? A file is not."""
    try:
        return not stat.S_ISREG(os.fstat((file or sys.stdout).fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return True


def as_text(make: Callable[[int], Iterable[Line]]) -> str:
    """The lines that ``make`` gives for the width of the terminal (80 without one), as a text to
    print, in characters that standard output can encode."""
    width = shutil.get_terminal_size((_WIDTH_PLAIN, 24)).columns
    if fit_encoding("±", sys.stdout) != "±":
        width -= _ASCII_MARGIN
    lines = make(max(width, WIDTH_MIN))
    return "\n".join(fit_encoding(line.plain, sys.stdout) for line in lines)


def _width_elsewhere(out: TextIO) -> int:
    """The width of lines that go to no terminal: what ``COLUMNS`` says, else that of the terminal
    on which a pager shows them; else 80."""
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isascii() and given.isdigit() else 0
    return width or _width_of_pager(out) or _WIDTH_PLAIN


def _width_of_pager(out: TextIO) -> int:
    """The width of the terminal that standard error has, where ``out`` is a pipe: ``less`` at its
    other end shows the lines there. 0 elsewhere, and for what is written to a file."""
    try:
        if not stat.S_ISFIFO(os.fstat(out.fileno()).st_mode):
            return 0
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 0


def _console(terminal: TextIO) -> Console:
    """A console on a terminal, with colours unless it has none."""
    # Only here: to import it takes as long as to read a run.
    from rich.console import Console

    has_colours = os.environ.get("TERM") not in ("dumb", "unknown")
    return Console(
        file=terminal,
        force_terminal=has_colours,
        no_color=True if "NO_COLOR" in os.environ else None,
        color_system="auto" if has_colours else None,
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


def wrapped(text: Line, width: int, indent: str = "") -> Iterator[Line]:
    """A sentence over as many lines as it needs, the further ones indented; a word is broken where
    it is wider than a line."""
    line = indent
    for word in text.plain.split():
        for piece in _pieces(word, width - len(indent) - 2):
            glue = " " if line.strip() else ""
            if cell_len(line) + cell_len(glue) + cell_len(piece) > width:
                yield Line(line, text.style)
                line, glue = indent + "  ", ""
            line += glue + piece
    if line.strip():
        yield Line(line, text.style)


def with_commands(text: str, width: int, indent: str) -> Iterator[Line]:
    """A text over as many lines as it needs, all indented. A command, which stands in backticks, is
    broken only where a line does not hold it, and so that a shell reads it as one."""
    room = width - cell_len(indent)
    line = ""
    for word in _WITH_COMMANDS.findall(text):
        if line and cell_len(line) + 1 + cell_len(word) > room:
            yield Line(indent + line)
            line = ""
        *full, rest = _continued(word, room) if "`" in word else _pieces(word, room)
        yield from (Line(indent + piece) for piece in full)
        line = f"{line} {rest}" if line else rest
    if line:
        yield Line(indent + line)


def _continued(command: str, room: int) -> Iterator[str]:
    """A command in as many lines as it needs, each but the last with the backslash at its end that
    continues it."""
    if cell_len(command) <= room:
        yield command
        return
    line, *words = command.split(" ")
    for word in words:
        if cell_len(line) + 1 + cell_len(word) + len(_CONTINUES) > room:
            yield line + _CONTINUES
            line = word
        else:
            line += f" {word}"
    yield line


def as_printed(text: Line, width: int, indent: str = "") -> Iterator[Line]:
    """A line of a program, or a command, with its own blanks; one that is wider is broken between
    words, and keeps its indentation."""
    plain = text.plain.rstrip()
    if cell_len(indent + plain) <= width:
        yield Line(indent + plain, text.style)
        return
    own = plain[: len(plain) - len(plain.lstrip())]
    # Half of the line at least is for the words.
    yield from wrapped(Line(plain, text.style), width, (indent + own)[: width // 2])


def beside(head: str, text: str, width: int) -> Iterator[Line]:
    """A text beside its head; its further lines are indented as far, unless the head is wide."""
    room = cell_len(head)
    if 2 * room > width:
        yield from wrapped(Line(f"{head}{text}"), width)
        return
    for index, line in enumerate(wrapped(Line(text), width, " " * room)):
        yield line if index else Line(head + line.plain[room:], line.style)


def _pieces(word: str, width: int) -> Iterator[str]:
    while cell_len(word) > width:
        size = len(word)
        while cell_len(word[:size]) > width:
            size -= 1
        yield word[:size]
        word = word[size:]
    yield word

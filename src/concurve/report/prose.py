"""Sentences on the terminal: broken between words, and inside one only where it must be."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text


def wrapped(text: Text, width: int, indent: str = "") -> Iterator[Text]:
    """A sentence over as many lines as it needs, the further ones indented."""
    plain = text.plain
    line = indent
    for word in plain.split():
        pieces = list(_pieces(word, width - len(indent) - 2))
        for piece in pieces:
            glue = " " if line.strip() else ""
            if cell_len(line) + cell_len(glue) + cell_len(piece) > width:
                yield Text(line, text.style)
                line, glue = indent + "  ", ""
            line += glue + piece
    if line.strip():
        yield Text(line, text.style)


def _pieces(word: str, width: int) -> Iterator[str]:
    """A word, broken where it is wider than a line."""
    while cell_len(word) > width:
        size = len(word)
        while cell_len(word[:size]) > width:
            size -= 1
        yield word[:size]
        word = word[size:]
    yield word

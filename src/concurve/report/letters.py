"""Text for streams that have a width and an encoding."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

_ASCII = str.maketrans(
    {"±": "+-", "×": "x", "µ": "u", "–": "-", "…": "~", "�": "?", "·": "-", "§": "section "}
    | {"α": "alpha", "β": "beta", "γ": "gamma", "√": "sqrt", "∞": "inf", "≤": "<=", "−": "-"}
)


def cut(text: str, size: int) -> str:
    """The text in at most ``size`` cells of a terminal; ``…`` tells that it was longer."""
    return text if cell_len(text) <= size else set_cell_size(text, max(size - 1, 0)).rstrip() + "…"


def fit_encoding(text: str, stream: object) -> str:
    """The text in letters that the stream can carry."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "").startswith("utf"):
        return text
    return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)

"""What is asked of a cell, and what is answered."""

from __future__ import annotations

from typing import NamedTuple

from concurve.explain.cells import Picture
from concurve.findings.explanation import Cause


class Verdict(NamedTuple):
    """A cause, and the rest of the sentence that says where the time goes. ``unproven``: not by
    what exceeds the base; ``open``: others on the machine may have been the cause all the same.
    ``limit`` is what is used up where a server was loaded: CPUs, a thread, or the load."""

    cause: Cause
    words: str
    unproven: bool = False
    open: bool = False
    limit: str = ""


class Here(NamedTuple):
    """A cell and its base (``None`` for the base itself); the roles that are its clients; and does
    it serve them?"""

    cell: Picture
    base: Picture | None
    clients: tuple[str, ...]
    serving: bool

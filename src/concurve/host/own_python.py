"""How our own modules are started as processes."""

from __future__ import annotations

import sys

#: Python as it runs this process. ``-P``: without it, Python looks for what it imports in the
#: working folder first, and a ``json.py`` there, somebody else's maybe, would be run by whoever
#: measures in it.
PYTHON = (sys.executable, "-P")


def module(name: str) -> tuple[str, ...]:
    """The command line that runs a module of the installed package, up to its arguments."""
    return (*PYTHON, "-m", name)

"""Concurve: a laboratory for concurrent software.

The names below are all of its interface for Python; :mod:`concurve.api` documents them::

    import concurve

    run = concurve.sweep(["./renderer", "--threads", "{threads}"], {"threads": [1, 2, 4, 8]})
    run.frame()[["threads", "wall_seconds", "speedup"]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from concurve.version import __version__

if TYPE_CHECKING:
    from concurve.api import Run, compare, fit, history, load, run, runs, sweep
    from concurve.definition.study import Hooks
    from concurve.errors import ConcurveError

__all__ = [
    "ConcurveError", "Hooks", "Run", "__version__", "compare", "fit", "history", "load", "run",
    "runs", "sweep",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the interface when it is first used, so that the command line starts at once."""
    if name == "ConcurveError":
        from concurve.errors import ConcurveError

        return ConcurveError
    if name in __all__:
        from concurve import api

        return getattr(api, name)
    raise AttributeError(f"module 'concurve' has no attribute {name!r}")

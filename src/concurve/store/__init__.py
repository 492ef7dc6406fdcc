"""Where runs, trials and campaigns are kept: :class:`Store`, and the types of what is stored."""

from __future__ import annotations

from concurve.store.store import Store

__all__ = ["Store"]

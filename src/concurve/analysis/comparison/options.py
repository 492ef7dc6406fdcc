"""How to compare."""

from __future__ import annotations

from typing import NamedTuple

from concurve.stats.comparison import Method

#: Differences below this share are not worth the name, unless another is given.
EFFECT = 0.02


class Options(NamedTuple):
    """How to compare. ``better`` is for indicators that have no direction of their own;
    ``seed`` that of the bootstrap."""

    indicators: tuple[str, ...] = ()
    effect: float = EFFECT
    method: Method = "welch"
    better: str = ""
    across_machines: bool = False
    seed: int = 0


DEFAULTS = Options()

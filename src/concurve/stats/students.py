"""Student's t."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t with ``df`` degrees of freedom (may be fractional)."""
    from scipy.special import stdtrit  # 0.1 s to import; scipy.stats takes seconds

    return float(stdtrit(df, probability))


def t_upper(t: float, df: float) -> float:
    """Probability of a value above ``t``."""
    from scipy.special import stdtr

    return float(stdtr(df, -t))

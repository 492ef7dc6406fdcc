"""Figures of trials → the centre of an indicator, with an interval within the indicator's range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from concurve.estimate import Estimate
from concurve.readings.measures import cpu_info
from concurve.stats.centre import centre_estimate, centre_estimates

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Endings of the names of indicators that are parts of a whole.
_PARTS = ("_jain", "_jain_window_min", "_fairness", "_min_over_mean", "_gini", "_contention",
          "_share", "_share_max")  # fmt: skip

#: A process of several threads may use more than one CPU.
_OF_ONE_CPU = "cpu_share"


def indicator_centre(
    name: str,
    values: Sequence[float],
    unit: str,
    is_staged: bool = False,
    resolution: float = 0.0,
) -> Estimate:
    """The median of an indicator over trials with its interval, cut at 0 and at what it cannot
    exceed. ``is_staged`` and ``resolution`` as in :func:`~concurve.stats.centre.centre_estimate`.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    return centre_estimate(
        values,
        unit,
        ceiling=greatest_of(name, unit),
        is_staged=is_staged,
        resolution=resolution,
    )


def greatest_of(name: str, unit: str = "") -> float | None:
    """The value that an indicator cannot exceed, if there is one: 1 for a share, an index of
    fairness, latches' contention. The bound of an indicator with
    a unit, such as %, is not known."""
    if unit or name.endswith(_OF_ONE_CPU):
        return None
    return 1.0 if name.endswith(_PARTS) or cpu_info(name) else None


def indicator_centres(
    name: str,
    rows: npt.NDArray[np.float64],
    unit: str,
    is_staged: bool = False,
    resolutions: Sequence[float] = (),
) -> list[Estimate]:
    """:func:`indicator_centre` of very many cells with as many trials each, a row a cell."""
    return centre_estimates(
        rows, unit, ceiling=greatest_of(name, unit), is_staged=is_staged, resolutions=resolutions
    )

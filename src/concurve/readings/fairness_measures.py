"""How evenly each indicator is spread over the workers that reported it. Pure."""

from __future__ import annotations

import math

from concurve.stats.fairness import Fairness, fairness, poisson_floor, windows
from concurve.wire.record import RoleRecord


def fairness_figures(role: RoleRecord) -> tuple[dict[str, float], dict[str, str]]:
    """Figures of a role, and the reasons why others are absent. Successive lines of a worker are
    windows, and their sum its share."""
    values: dict[str, float] = {}
    absent: dict[str, str] = {}
    series: dict[str, dict[str, list[float]]] = {}
    for line in role.indicators:
        if line.worker is not None:
            series.setdefault(line.indicator, {}).setdefault(line.worker, []).append(line.value)
    for name, workers in series.items():
        shares = [math.fsum(reported) for reported in workers.values()]
        try:
            figures = fairness(shares)
        except ValueError as error:
            absent.update({f"{name}_{ending}": str(error) for ending in Fairness._fields})
            continue
        for ending, value in figures._asdict().items():
            if math.isfinite(value):
                values[f"{name}_{ending}"] = value
            else:
                absent[f"{name}_{ending}"] = "a worker has nothing"
        if all(share == int(share) for share in shares):
            values[f"{name}_cv_floor"] = poisson_floor(shares)
        in_time = [window for window in windows(list(workers.values())) if any(window)]
        if len(in_time) > 1:
            worst = min(fairness(window).jain for window in in_time)
            values[f"{name}_jain_window_min"] = worst
    return values, absent

"""How evenly each indicator is spread over the workers that reported it. Pure."""

from __future__ import annotations

import math

import msgspec

from concurve.stats.fairness import Fairness, fairness, poisson_floor, windows
from concurve.terms import IndicatorInfo
from concurve.wire.record import RoleRecord

#: The figures derived from an indicator that each worker reports, by the ending of their names.
FAIRNESS: dict[str, IndicatorInfo] = {
    info.name: info
    for info in (
        IndicatorInfo(name="jain", label="Jain's fairness", better="higher",
                      note="over workers: 1/n if one has all, 1 for equal shares"),
        IndicatorInfo(name="cv", label="CV over workers", better="lower",
                      note="standard deviation of the workers' shares over their mean"),
        IndicatorInfo(name="cv_floor", label="Poisson floor of the CV",
                      note="1/√mean: what chance alone gives to counts"),
        IndicatorInfo(name="min_over_mean", label="worst worker over mean", better="higher",
                      note="0 is starvation"),
        IndicatorInfo(name="max_over_min", label="best over worst worker", better="lower"),
        IndicatorInfo(name="gini", label="Gini over workers", better="lower"),
        IndicatorInfo(name="range_over_mean", label="range over mean of workers", better="lower",
                      note="best less worst worker over their mean"),
        IndicatorInfo(name="jain_window_min", label="Jain's fairness, worst window",
                      better="higher", note="over the workers' successive reports"),
    )
}  # fmt: skip


def fairness_info(name: str) -> IndicatorInfo | None:
    """The description of a figure of fairness by its name, ``worker_operations_jain``."""
    endings = sorted(FAIRNESS, key=len, reverse=True)
    ending = next((ending for ending in endings if name.endswith(f"_{ending}")), None)
    if ending is None:
        return None
    of = name.removesuffix(f"_{ending}").replace("_", " ")
    return msgspec.structs.replace(
        FAIRNESS[ending], name=name, label=f"{of}: {FAIRNESS[ending].label}"
    )


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

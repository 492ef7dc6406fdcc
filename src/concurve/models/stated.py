"""What is said of a curve: figures with intervals that hold whatever model is the true one.

The chosen model was chosen by the same data, so its own intervals are too narrow: they take it for
known. What is stated is the union of the intervals over every model that the data do not
contradict. A model without α or β stands for 0 there, one without a peak for a peak at infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
from scipy.special import fdtri

from concurve.estimate import Estimate
from concurve.findings.fit import ModelFit, PeakEstimate, Stated
from concurve.models.all_models import MODELS
from concurve.models.predict import curve_of

#: A model is contradicted where an F test against the closest model rejects it at this level.
_CONTRADICTED = 0.01
_LARGEST_EXPONENT = 600.0


def stated(
    models: Sequence[ModelFit], chosen: ModelFit, observations: int, levels: Sequence[float]
) -> Stated:
    """The figures to print: the chosen model's, with intervals over all models left.

    ``observations`` is the number that the likelihoods count.
    """
    left = [item for item in models if item is chosen or _stands(item, models, observations)]
    names = ["gamma", "alpha", _beta_of(chosen, left), "cap"]
    found = {name: _parameter(name, left, chosen) for name in names if name}
    return Stated(
        parameters={name: figure for name, figure in found.items() if figure is not None},
        peak=_peak(left, chosen, levels),
        models=tuple(item.name for item in left),
    )


def _stands(item: ModelFit, models: Sequence[ModelFit], observations: int) -> bool:
    """Is the model not contradicted, judged against the one that is closest to the data?"""
    closest = max(models, key=lambda other: other.log_likelihood)
    df = observations - len(closest.parameters)
    more = max(len(closest.parameters) - len(item.parameters), 1)
    apart = 2 * (closest.log_likelihood - item.log_likelihood) / observations
    statistic = math.expm1(min(apart, _LARGEST_EXPONENT)) * df / more
    return statistic <= float(fdtri(more, max(df, 1), 1 - _CONTRADICTED))


def _beta_of(chosen: ModelFit, left: Sequence[ModelFit]) -> str:
    """β where a model left has it in the meaning of the chosen one (else: of the USL)."""
    return "beta" if any(_has_beta(item, chosen) for item in left) else ""


def _has_beta(item: ModelFit, chosen: ModelFit) -> bool:
    name = chosen.name if "beta" in chosen.parameters else "usl"
    return item.name == name


def _parameter(name: str, left: Sequence[ModelFit], chosen: ModelFit) -> Estimate | None:
    """The chosen model's figure with the union of the intervals; ``None`` where nobody has it."""
    having = [item for item in left if name in item.parameters]
    if name == "cap" and "cap" not in chosen.parameters:
        return None
    if name == "beta":
        having = [item for item in having if _has_beta(item, chosen)]
    if not having:
        return None
    figures = [item.parameters[name] for item in having]
    without = name in ("alpha", "beta") and any(name not in item.parameters for item in left)
    known = chosen.parameters.get(name)
    value = 0.0 if known is None else known.value
    low = [figure.value if figure.low is None else figure.low for figure in figures]
    high = [figure.value if figure.high is None else figure.high for figure in figures]
    zero = [0.0] if without else []
    return msgspec.structs.replace(
        figures[0], value=value, low=min(*low, *zero, value), high=max(*high, *zero, value)
    )


def growth(left: Sequence[ModelFit], levels: Sequence[float]) -> int:
    """How throughput grows from the lowest to the greatest level, if all models left say the same:
    1 faster than N, −1 more slowly, else 0."""
    lowest, top = min(levels), max(levels)
    ends = [curve_of(item, [lowest, top]).tolist() for item in left]
    faster = {at_top * lowest > at_lowest * top for at_lowest, at_top in ends}
    if len(faster) != 1 or any(item.name == "linear" for item in left):
        return 0
    return 1 if faster.pop() else -1


def _peak(
    left: Sequence[ModelFit], chosen: ModelFit, levels: Sequence[float]
) -> PeakEstimate | None:
    """Where the peak may be; ``None`` where no model left has one.

    A curve that grows faster than N up to its greatest level shows no peak beyond.
    """
    peaked = [item for item in left if item.peak is not None]
    if not peaked:
        return None
    first = chosen if chosen.peak is not None else max(peaked, key=lambda item: item.weight)
    assert first.peak is not None
    peaks = [item.peak for item in peaked if item.peak is not None]
    lows = [peak.n.value if peak.n.low is None else peak.n.low for peak in peaks]
    highs = [math.inf if peak.n.high is None else peak.n.high for peak in peaks]
    endless = len(peaked) < len(left) or any(not peak.established for peak in peaks)
    endless = endless or (first.peak.n.value > max(levels) and growth(left, levels) > 0)
    position = msgspec.structs.replace(
        first.peak.n, low=min(lows), high=math.inf if endless else max(highs)
    )
    throughput = _over_all(first.peak.throughput, [peak.throughput for peak in peaks])
    return PeakEstimate(n=position, throughput=throughput, established=not endless)


def _over_all(figure: Estimate, figures: Sequence[Estimate]) -> Estimate:
    """A figure with the union of the intervals of several; without one where one has none."""
    lows, highs = [it.low for it in figures], [it.high for it in figures]
    known = [end for end in (*lows, *highs) if end is not None]
    if len(known) < 2 * len(figures):
        return msgspec.structs.replace(figure, low=None, high=None)
    return msgspec.structs.replace(figure, low=min(known), high=max(known))


def doubts(result_models: Sequence[ModelFit], chosen: ModelFit) -> tuple[str, ...]:
    """Parameters that the chosen model sets to 0 although a wider model's interval excludes 0."""
    found = []
    for item in result_models:
        beta = item.parameters.get("beta")
        if item.name != "usl" or beta is None or beta.low is None or beta.low <= 0:
            continue
        if "beta" not in chosen.parameters and "cap" not in chosen.parameters:
            found.append(
                f"{MODELS[chosen.name].title[:1].upper()}{MODELS[chosen.name].title[1:]} has no "
                f"coherency, but the USL's interval of β leaves out 0 ({beta.low:.3g} to "
                f"{beta.high:.3g}): measure at more levels before relying on it."
            )
    return tuple(found)

"""Models of throughput against concurrency: fitted, judged and extrapolated with their errors.

    result = fit_all([1, 2, 4, 8, 16, 32], [955, 1879, 3549, 6531, 9897, 12074])
    result.best.parameters["alpha"]           # an Estimate with its interval
    predict(result, [64])                     # a band that covers model error

Arrays and numbers in, :class:`FitResult` out; nothing here knows of runs or reports. The models
stand in one file each; the method is in docs/method/models.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from concurve.findings.fit import FitResult, ModelFit, PeakEstimate, Prediction
from concurve.models.all_models import MODELS
from concurve.models.curve import make_curve
from concurve.models.fit_curves import fit_curves
from concurve.models.model import Floats, Model
from concurve.models.predict import predict

__all__ = [
    "MODELS",
    "FitResult",
    "Model",
    "ModelFit",
    "PeakEstimate",
    "Prediction",
    "fit_all",
    "fit_many",
    "predict",
]

Column = Sequence[float] | Floats


def fit_all(
    n: Column, x: Column, *, absolute: bool = False, confidence: float = 0.95, unit: str = ""
) -> FitResult:
    """Fit every model to one curve.

    Args:
        n: workers of each trial; equal ones are replicates, in any order.
        x: throughput of each trial.
        absolute: least squares of X itself; by default of log X, for relative errors.
        confidence: of all intervals.
        unit: of throughput.

    Raises:
        ConcurveError: numbers that are not finite or not above 0, or fewer than three levels.
    """
    return fit_many([(n, x)], absolute=absolute, confidence=confidence, unit=unit)[0]


def fit_many(
    curves: Sequence[tuple[Column, Column]],
    *,
    absolute: bool = False,
    confidence: float = 0.95,
    unit: str = "",
    processes: int = 1,
) -> list[FitResult]:
    """Fit every model to many curves, each a pair (n, x), far faster than one by one.

    Args:
        curves: pairs of numbers of workers and throughputs, as in :func:`fit_all`.
        absolute: as in :func:`fit_all`, like ``confidence`` and ``unit``.
        processes: number of processes that share the curves; useful from hundreds of curves on.

    Raises:
        ConcurveError: as :func:`fit_all`.
    """
    made = [make_curve(n, x, absolute) for n, x in curves]
    work = partial(fit_curves, confidence=confidence, unit=unit)
    if processes <= 1 or len(made) < 2 * processes:
        return work(made) if made else []
    share = -(-len(made) // processes)
    parts = [made[begin : begin + share] for begin in range(0, len(made), share)]
    with ProcessPoolExecutor(processes) as pool:
        return [result for part in pool.map(work, parts) for result in part]

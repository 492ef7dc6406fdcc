"""The form of scaling models: throughput X = γ · g(N; shape), on a logarithmic scale.

All models share this form, so one solver, one profiler and one selection serve them. Inside, a
model has *coordinates* ``u = (log γ, shape…)``; outside it has *parameters* by name, of which
``gamma`` is the throughput of one worker. Arrays are batched: a row is a problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int_]

LogShape = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Levels (B, L) and shape coordinates (B, q) → log g (B, L) and ∂ log g/∂ shape (B, L, q).

Where the shape gives no positive throughput, log g is NaN or −∞.
"""

Grid = Callable[[Floats], Floats]
"""Levels (B, L) → shapes (B, S, q) from which to start."""

Chart = Callable[[Floats], tuple[Floats, Floats]]
"""Other coordinates v (B, p) → coordinates u (B, p) and ∂u/∂v (B, p, p)."""


def _same(v: Floats) -> tuple[Floats, Floats]:
    return v, np.broadcast_to(np.eye(v.shape[1]), (*v.shape, v.shape[1]))


def _as_is(u: Floats) -> Floats:
    return u


@dataclass(frozen=True)
class Quantity:
    """Something that a fit estimates: a coordinate of the model, or of another chart of it.

    ``index`` is its place in the chart; ``log``: the chart has its logarithm. ``lower``
    and ``upper`` bound its value; ``unit`` is that of its value, where ``X`` stands for the
    unit of throughput and ``N`` for workers.
    """

    name: str
    index: int
    meaning: str
    unit: str = "1"
    log: bool = False
    lower: float = -np.inf
    upper: float = np.inf
    chart: Chart = _same
    unchart: Callable[[Floats], Floats] = _as_is

    def of(self, u: Floats) -> Floats:
        """Its value at coordinates (B, p)."""
        return self.shown(self.unchart(u)[:, self.index])

    def shown(self, coordinate: Floats) -> Floats:
        """The value that a coordinate stands for."""
        return np.exp(coordinate) if self.log else coordinate


GAMMA = Quantity("gamma", 0, "throughput of one worker", "X", log=True, lower=0.0)


@dataclass(frozen=True)
class Model:
    """A scaling model. ``parameters`` are in the order of the coordinates, ``gamma`` first.

    ``phi`` is φ(N) of models with a cost of coherency, β φ(N) (N−1) relative to the work.
    ``lower`` and ``upper`` bound the shape coordinates of the fitted values; intervals are
    computed without these bounds and cut at them afterwards, which keeps their level.
    """

    name: str
    title: str
    formula: str
    source: str
    parameters: tuple[Quantity, ...]
    log_shape: LogShape
    grid: Grid
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    peak: Peak | None = None
    phi: Callable[[Floats], Floats] | None = None
    capped: bool = False
    coordinates: Callable[[Floats], Floats] = field(default=lambda p: p)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    def log_curve(self, n: Floats, u: Floats) -> tuple[Floats, Floats]:
        """log X (B, L) at levels (B, L), and its derivatives (B, L, p) by the coordinates."""
        shape, slopes = self.log_shape(n, u[:, 1:])
        ones = np.ones((*shape.shape, 1))
        return u[:, :1] + shape, np.concatenate([ones, slopes], axis=2)

    def evaluate(self, n: Floats, parameters: dict[str, float]) -> Floats:
        """Throughput at any number of workers.

        Args:
            n: numbers of workers, of any shape.
            parameters: every parameter by its name, as a fit reports them.
        """
        values = np.array([[parameters[quantity.name] for quantity in self.parameters]], float)
        levels = np.asarray(n, float)
        with np.errstate(all="ignore"):
            log_x, _ = self.log_curve(levels.reshape(1, -1), self.coordinates(values))
        return np.asarray(np.exp(log_x).reshape(levels.shape))


@dataclass(frozen=True)
class Peak:
    """Where throughput is greatest, for models that have a peak.

    ``inverse`` is κ = β/(1−α), which is 0 where there is no peak; ``position`` turns κ into N*;
    ``throughput`` is X at N*.
    """

    inverse: Quantity
    throughput: Quantity
    position: Callable[[Floats], Floats]


def log_gamma_first(values: Floats) -> Floats:
    """Parameters (γ, shape…) → coordinates, for models whose shape is its own coordinate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.concatenate([np.log(values[:, :1]), values[:, 1:]], axis=1)

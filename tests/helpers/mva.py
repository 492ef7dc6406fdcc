"""Exact mean value analysis of a closed network of queues with one class.

M. Reiser and S. S. Lavenberg, JACM 1980. Ground truth for tests and for the coverage of
predictions: curves that no model here describes exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from concurve.models.model import Floats


@dataclass(frozen=True)
class Network:
    """Throughput and response time (of 1 … N customers), and the queues' lengths (N, stations)."""

    throughput: Floats
    response_time: Floats
    queue_lengths: Floats


def exact_mva(demands: Sequence[float], think_time: float, customers: int) -> Network:
    """Solve the network for 1 … ``customers``.

    R_k(n) = D_k (1 + Q_k(n−1)), X(n) = n / (Z + Σ R_k), Q_k(n) = X R_k.

    Args:
        demands: seconds of service that an operation takes at each station.
        think_time: seconds between operations, outside all stations.
        customers: greatest number of customers, at least 1.
    """
    service = np.asarray(demands, float)
    queues = np.zeros(len(service))
    rows = []
    for n in range(1, customers + 1):
        times = service * (1 + queues)
        throughput = n / (think_time + times.sum())
        queues = throughput * times
        rows.append((throughput, times.sum(), queues))
    return Network(
        np.array([row[0] for row in rows]),
        np.array([row[1] for row in rows]),
        np.array([row[2] for row in rows]),
    )

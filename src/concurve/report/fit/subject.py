"""What was fitted, and what its columns are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concurve.estimate import Estimate
from concurve.models import FitResult


@dataclass(frozen=True)
class Subject:
    """What was fitted: workers and throughput of each trial, and what the columns are called.

    ``time`` tells that the column has the times of a fixed piece of work, of which throughput is
    the inverse. ``derived`` is N, X or R if Little's law gave it.
    """

    n: Sequence[float]
    x: Sequence[float]
    n_name: str
    x_name: str
    time: bool = False
    derived: str = ""

    def values(self, figure: Estimate) -> tuple[float, float | None, float | None]:
        """A throughput with its ends, as a time where the column has times."""
        if not self.time:
            return figure.value, figure.low, figure.high
        return 1 / figure.value, _inverse(figure.high), _inverse(figure.low)

    def notes(self, result: FitResult) -> list[str]:
        """How the numbers were read."""
        notes = [f"Error model: {result.error_model}."]
        if result.trials > len(result.levels):
            notes.append(
                f"Rows of the same {self.n_name} are replicates: {result.trials} trials at "
                f"{len(result.levels)} levels."
            )
        if self.time:
            notes.append(f"{self.x_name} is a time: throughput is 1/{self.x_name}.")
        if self.derived in ("N", "X"):
            notes.append(f"{self.derived} was not measured but follows from Little's law.")
        notes += [f"{name} is left out: {why}." for name, why in result.left_out.items()]
        return notes


def _inverse(value: float | None) -> float | None:
    return None if value is None else 1 / value

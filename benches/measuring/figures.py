"""What a bench yields: figures, each with what is promised of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from concurve.estimate import Estimate


class MissingToolError(Exception):
    """A figure cannot be measured on this machine; the message says what to install."""


class Bound(NamedTuple):
    """What is promised of a figure. ``parity`` bounds hold as long as the interval touches them:
    two equally fast programs can never be shown to be on the right side. Where they have two ends,
    the interval must also be no wider than they are apart: one that says nothing shows no
    parity. ``counted`` bounds are
    on a count out of a number that the promise names ("at most 10 of 200"): the count itself is
    judged, and its interval stands beside it."""

    low: float | None = None
    high: float | None = None
    parity: bool = False
    counted: bool = False

    def holds(self, estimate: Estimate) -> bool:
        """Is the whole interval inside (for parity: any part of it; counted: the value)?"""
        if self.counted:
            estimate = Estimate(value=estimate.value)
        low = estimate.value if estimate.low is None else estimate.low
        high = estimate.value if estimate.high is None else estimate.high
        if self.parity:
            if not self.is_narrow(estimate):
                return False
            low, high = high, low
        return (self.low is None or low >= self.low) and (self.high is None or high <= self.high)

    def is_narrow(self, estimate: Estimate) -> bool:
        """Is the interval no wider than the two ends of the bound are apart, if it has two?"""
        if self.low is None or self.high is None:
            return True
        if estimate.low is None or estimate.high is None:
            return False
        return estimate.high - estimate.low <= self.high - self.low

    def text(self) -> str:
        """The bound in a few characters."""
        if self.low is None:
            return f"≤ {self.high:g}"
        return f"≥ {self.low:g}" if self.high is None else f"{self.low:g} … {self.high:g}"


class Figure(NamedTuple):
    """One line of the table: a promised figure, or (without a bound) one to see it beside.

    ``missing`` says why it could not be measured.
    """

    name: str
    how: str
    estimate: Estimate | None = None
    bound: Bound | None = None
    missing: str = ""

    @property
    def held(self) -> bool | None:
        """``None``: nothing is promised, or nothing was measured."""
        if self.bound is None or self.estimate is None:
            return None
        return self.bound.holds(self.estimate)


Bench = Callable[[bool], Iterator[Figure]]
"""Yields its figures one by one; the argument asks for a quick smoke run."""


def unless_missing(figure: Figure, measure: Callable[[], Estimate]) -> Figure:
    """The figure with its estimate, or with the tool that is missing."""
    try:
        return figure._replace(estimate=measure())
    except MissingToolError as error:
        return figure._replace(missing=str(error))

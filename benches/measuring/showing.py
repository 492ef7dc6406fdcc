"""Figures as a table, and the command line of a bench."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.host.lock import measurement_lock
from measuring.figures import Bench, Figure, MissingToolError


def number(value: float) -> str:
    """Four significant digits, never an exponent for what people read."""
    return f"{value:.4f}" if 0.1 <= abs(value) < 10 else f"{value:.4g}"


def estimate_text(estimate: Estimate) -> str:
    """``1.002 [0.998, 1.006] ms``."""
    text = number(estimate.value)
    if estimate.low is not None and estimate.high is not None:
        text += f" [{number(estimate.low)}, {number(estimate.high)}]"
    return f"{text} {estimate.unit}".rstrip()


HEADING = f"{'figure':<46}{'value [95 % interval]':<32}{'bound':<14}held"


def lines(figure: Figure, judged: bool = True) -> str:
    """A figure as a line of the table and one on how it was measured."""
    if figure.estimate is None:
        return f"{figure.name:<45} not measured: {figure.missing}\n    {figure.how}"
    bound = figure.bound.text() if figure.bound else ""
    held = {None: "–", True: "yes", False: "NO"}[figure.held if judged else None]
    shown = estimate_text(figure.estimate)
    return f"{figure.name:<45} {shown:<31} {bound:<13} {held}\n    {figure.how}"


def show(subjects: Iterable[Bench], quick: bool) -> list[Figure]:
    """Measure and print; figures appear as they come."""
    print(HEADING, flush=True)
    found = []
    try:
        with machine_to_ourselves():
            for subject in subjects:
                for figure in unless_all_missing(subject, quick):
                    print(lines(figure, judged=not quick), flush=True)
                    found.append(figure)
    except ConcurveError as error:
        raise SystemExit(f"benches: {error}") from error
    return found


def unless_all_missing(subject: Bench, quick: bool) -> Iterator[Figure]:
    """The figures of a bench; where it cannot begin, or go on, one that says what is missing."""
    try:
        yield from subject(quick)
    except MissingToolError as error:
        yield Figure(subject.__module__, "what this bench needs", missing=str(error))


@contextmanager
def machine_to_ourselves() -> Iterator[None]:
    """Hold the measurement lock; the sweeps that are measured take one of their own.

    Raises:
        HostError: another measurement runs.
    """
    kept = os.environ.get("CONCURVE_LOCK")
    with measurement_lock("concurve's benches"), tempfile.TemporaryDirectory() as folder:
        os.environ["CONCURVE_LOCK"] = str(Path(folder) / "lock")
        try:
            yield
        finally:
            del os.environ["CONCURVE_LOCK"]
            if kept is not None:
                os.environ["CONCURVE_LOCK"] = kept


def exit_code(figures: Iterable[Figure], quick: bool) -> int:
    """1 if a bound was missed; a quick run judges nothing."""
    return 0 if quick else int(any(figure.held is False for figure in figures))


def alone(subject: Bench, description: str | None) -> int:
    """The command line of a bench that is run alone."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    quick = parser.parse_args().quick
    return exit_code(show([subject], quick), quick)


def quiet_warning() -> str:
    """What to say first when the machine is not quiet; empty if it is."""
    load = os.getloadavg()[0]
    if load < 0.5:
        return ""
    return f"The load average is {load:.1f}: the figures are those of a disturbed machine."

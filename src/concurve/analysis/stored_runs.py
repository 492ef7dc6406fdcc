"""Names of stored runs → their comparison, or the history of a study: what the command line, the
pages and Python ask for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from concurve.analysis.comparison import compare_levels, compare_runs
from concurve.analysis.comparison.options import DEFAULTS, Options
from concurve.analysis.history import history_of
from concurve.analysis.run import findings_of, trial_findings_of
from concurve.errors import ComparisonError, RunError, StoreError
from concurve.findings.comparison import Comparison
from concurve.findings.history import History
from concurve.store import Store


def compare_stored(
    store: Store,
    sides: Sequence[str],
    factor: str = "",
    levels: str = "",
    options: Options = DEFAULTS,
) -> Comparison:
    """Compare two sides, each a run or several with commas between them (``A1,A2``), the base
    first. With a ``factor`` there is one run, and ``levels`` of the factor are compared inside it
    (``none,cas``, the base first; empty: all).

    Raises:
        ComparisonError: another number of sides or of runs, or they cannot be compared.
        StoreError: no or several runs have such a name, or a run is damaged.
        RunError: the trials of a run do not fit its plan.
    """
    if not factor and (len(sides) != 2 or not all(sides)):
        raise ComparisonError("two runs are compared", "a base and a new one")
    runs = [
        [trial_findings_of(store, store.find_run(name.strip())) for name in side.split(",")]
        for side in sides
    ]
    if not factor:
        return compare_runs(runs[0], runs[1], options)
    inside = [run for side in runs for run in side]
    if len(inside) != 1:
        raise ComparisonError(
            f"levels of {factor} are compared inside one run, not in {len(inside)}", "one run"
        )
    asked = [level.strip() for level in levels.split(",")] if levels.strip() else []
    return compare_levels(inside[0], factor, asked, options)


def history_of_stored(
    store: Store, study: str, indicator: str = "", across_machines: bool = False
) -> History:
    """An indicator (the primary one if empty) over the stored runs of a study. A run that cannot
    be read is left out, and a warning of the history says why.

    Raises:
        ComparisonError: no run of the study has trials, no such indicator, or its unit changed.
        StoreError, RunError: no run can be read; of the last one.
    """
    rows = [row for row in store.runs(study) if store.has_trials(row.id)]
    if not rows:
        names = ", ".join(dict.fromkeys(row.study for row in store.runs())) or "none yet"
        raise ComparisonError(
            f"no run of {study!r} in {store.shown()} has trials", f"stored are {names}"
        )
    runs, damaged = [], []
    for row in rows:
        try:
            runs.append(findings_of(store, row))
        except (StoreError, RunError) as error:
            damaged.append((row.id, error))
    if not runs:
        raise damaged[-1][1]
    found = history_of(runs, indicator, across_machines)
    left_out = tuple(f"run {id_} is left out: {error.what}" for id_, error in damaged)
    return msgspec.structs.replace(found, warnings=(*found.warnings, *left_out))

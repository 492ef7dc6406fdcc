"""Names of stored runs → their comparison, or the history of a study: what the command line, the
pages and Python ask for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from concurve import words
from concurve.analysis.comparison import compare_levels, compare_with_base
from concurve.analysis.comparison.options import DEFAULTS, Options
from concurve.analysis.comparison.several import check_number
from concurve.analysis.history import history_of
from concurve.analysis.run import findings_of, newest_in_use, trial_findings_of
from concurve.errors import ComparisonError, RunError, StoreError
from concurve.findings.comparison import Comparison
from concurve.findings.history import History
from concurve.findings.run import TrialFindings
from concurve.store import Store
from concurve.store.store import LAST
from concurve.terms import joined_levels, split_levels


def compare_stored(
    store: Store,
    sides: Sequence[str],
    factor: str = "",
    levels: str = "",
    options: Options = DEFAULTS,
) -> list[Comparison]:
    """Compare sides, each a run or several with commas between them (``A1,A2``): each further one
    with the first, the base. With a single run, or a ``factor``, ``levels`` of the factor are
    compared inside the run (``none,cas``, the base first; empty: all); of a run with one factor of
    several levels nothing else is compared, so that need not be named.

    Raises:
        ComparisonError: another number of sides or of runs, one of them has no trial in use, or
            they cannot be compared.
        StoreError: no or several runs have such a name, or a run is damaged.
        RunError: the trials of a run do not fit its plan.
    """
    if not sides or not all(sides):
        raise ComparisonError("two runs are compared", "a base and a new one")
    if len(sides) > 1 and not factor:
        check_number(len(sides) - 1)
    runs = [
        [
            trial_findings_of(store, store.find_run(name.strip()), with_warned=False)
            for name in side.split(",")
        ]
        for side in sides
    ]
    inside = [run for side in runs for run in side]
    _refuse_without_trials(store, inside)
    if len(inside) == 1:
        factor = factor or _only_factor(inside[0], sides[0])
    elif factor:
        raise ComparisonError(
            f"levels of {factor} are compared inside one run, not in {len(inside)}", "one run"
        )
    elif len(runs) == 1:
        raise ComparisonError(
            f"{sides[0]} is one side, with {len(inside)} runs: a second side is missing",
            f"concurve compare {sides[0].replace(',', ' ')}",
        )
    if not factor:
        return compare_with_base(runs[0], runs[1:], options)
    asked = [level.strip() for level in split_levels(levels)] if levels.strip() else []
    return [compare_levels(inside[0], factor, asked, options)]


def _refuse_without_trials(store: Store, runs: Sequence[TrialFindings]) -> None:
    """Refuse a run that has no figures, where ``last`` often names one that failed.

    Raises:
        ComparisonError: there is one.
    """
    for run in runs:
        if any(cell.indicators for cell in run.cells):
            continue
        other = newest_in_use(store, store.run(run.run.id))
        newest = f"; the newest run that has some is {other}" if other else ""
        raise ComparisonError(
            f"run {run.run.id} has no trial in use to compare",
            f"concurve show {run.run.id} says why{newest}",
        )


def _only_factor(run: TrialFindings, name: str) -> str:
    """The factor of a run whose levels can only be meant: the one that has several.

    Raises:
        ComparisonError: there is more to choose from, or nothing to compare.
    """
    shown = name if name == LAST else run.run.id  # a study's name, in another store, is another's
    varied = [item for item in run.factors if len(item.levels) > 1]
    if len(varied) == 1:
        return varied[0].name
    if not varied:
        raise ComparisonError(
            f"run {run.run.id} has one setting, so nothing inside it is compared",
            f"another run beside it: concurve compare {shown} RUN",
        )
    levels = words.listed([f"{item.name} ({len(item.levels)} levels)" for item in varied])
    commands = (
        f"concurve compare {shown} --factor {shlex.quote(item.name)} --levels "
        + shlex.quote(joined_levels(item.levels))
        for item in varied
    )
    raise ComparisonError(
        f"run {run.run.id} varies {levels}: which of them are compared?",
        f"{'; or '.join(commands)}; or another run: concurve compare {shown} RUN",
    )


def history_of_stored(
    store: Store, study: str, indicator: str = "", across_machines: bool = False
) -> History:
    """An indicator over the stored runs of a study; empty: the one by which they compare their
    settings. A run that cannot be read is left out, and a warning of the history says why.

    Raises:
        ComparisonError: no run of the study has trials, no such indicator, or its unit changed.
        StoreError, RunError: no run can be read; of the last one.
    """
    rows = [row for row in store.runs(study) if store.has_trials(row.id)]
    if not rows:
        studies = list(dict.fromkeys(row.study for row in store.runs()))
        stored = f"stored are {', '.join(studies) or 'none yet'}"
        remedy = stored if study in studies else words.meant(study, studies, stored)
        raise ComparisonError(f"no run of {study!r} in {store.shown()} has trials", remedy)
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

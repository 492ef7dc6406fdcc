"""Concurve from Python: run a study, sweep a command, load a run as a data frame.

Everything here is also behind ``import concurve``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from concurve import exports
from concurve.analysis.comparison import compare_runs
from concurve.analysis.comparison.options import EFFECT, Options
from concurve.analysis.run import findings_of, trial_findings_of
from concurve.definition.catalogue import find_study
from concurve.definition.controls import ControlsTemplate
from concurve.definition.study import EFFORTS, Hooks, Study
from concurve.definition.study_check import with_rules
from concurve.definition.study_line import rules_from_options, sweep_study
from concurve.engine.local import LocalEngine
from concurve.errors import StudyError
from concurve.explain import explain_run
from concurve.findings.best import BestFinding
from concurve.findings.comparison import Comparison
from concurve.findings.explanation import Explanation
from concurve.findings.run import TrialFindings
from concurve.host.granted import granted_cpus
from concurve.measuring.heads import draw_seed, new_head
from concurve.measuring.laboratory import Runner
from concurve.report.csv import Rows, cell_rows, trial_rows
from concurve.store import Store
from concurve.terms import Level
from concurve.wire import decode_record
from concurve.wire.record import TrialRecord

if TYPE_CHECKING:
    import pandas as pd


class Run:
    """A stored run."""

    def __init__(self, store: Store, id_: str) -> None:
        self._store = store
        self.id = id_

    @property
    def findings(self) -> TrialFindings:
        """What its figures say, with an interval for each, and the figures of each trial."""
        return trial_findings_of(self._store, self._store.find_run(self.id))

    def best(self, indicator: str = "") -> BestFinding | None:
        """The settings that cannot be distinguished from the best over all cells, and the smallest
        of them, by the primary indicator or another; ``None`` for fewer than two cells, for an
        indicator without a better direction, and where the study's conditions differ among the
        cells: then ``findings.best`` has the settings under each of them."""
        row = self._store.find_run(self.id)
        return findings_of(self._store, row, indicator).best_overall

    def explain(self) -> Explanation:
        """Where the time of an operation goes in each cell, and what limits it; as
        ``concurve explain``.

        Raises:
            RunError: the run has no trial in use.
        """
        return explain_run(self._store, self._store.find_run(self.id))

    def frame(self) -> pd.DataFrame:
        """One row a cell: its parameters, ``status``, ``trials`` in use, and for each indicator
        its estimate with the bounds of its 95 % interval as ``NAME_low`` and ``NAME_high``. A
        parameter of the same name as another column stands as ``parameter_NAME``."""
        return _frame(cell_rows(self.findings))

    def trials(self) -> pd.DataFrame:
        """One row a trial in the order in which they were made: parameters, ``block``,
        ``attempt``, whether it is ``used`` in the figures, and its raw figures."""
        return _frame(trial_rows(self.findings))

    def records(self) -> list[TrialRecord]:
        """The raw record of every trial, in order."""
        return [
            decode_record(row.record, row.key.shown(self.id))
            for row in self._store.records(self.id)
        ]

    def write(self, file: str | Path) -> Path:
        """Write the run to a file: ``.html``, ``.md``, ``.csv`` or ``.json`` by its ending.

        Raises:
            ConcurveError: another ending, or a place that cannot be written.
        """
        path = Path(file)
        exports.write_run(self._store, self.id, {exports.format_of(path): path})
        return path

    def __repr__(self) -> str:
        return f"<concurve.Run {self.id}>"


def run(
    study: str | Path,
    *,
    effort: str = "normal",
    seed: int | None = None,
    repeats: str | int | None = None,
    max_time: str | None = None,
    db: str | None = None,
) -> Run:
    """Run a packaged study by name, or one from a ``.toml`` file; as ``concurve run``.

    Raises:
        ConcurveError: the study or the machine does not allow it, or the run failed.
    """
    found = find_study(str(study), granted_cpus())
    rules = rules_from_options(_text(repeats), None, None, max_time)
    return _measure(with_rules(found, rules), effort, seed, db)


def sweep(
    command: Sequence[str],
    parameters: Mapping[str, Sequence[Level] | str],
    *,
    cpus: str | int | None = None,
    nice: str | int | None = None,
    policy: str | None = None,
    env: Mapping[str, str] | None = None,
    hooks: Hooks | None = None,
    background: Sequence[str] = (),
    extracts: Sequence[str] = (),
    primary: str | None = None,
    work: str | None = None,
    work_amount: Literal["fixed", "scales"] | None = None,
    conditions: Sequence[str] = (),
    effort: str = "normal",
    seed: int | None = None,
    repeats: str | int | None = None,
    timeout: str | None = None,
    max_time: str | None = None,
    db: str | None = None,
) -> Run:
    """Measure a command over all combinations of its parameters' levels; as ``concurve sweep``.

    Levels are a sequence, or a text such as ``"1..64*2"``. ``work_amount`` is ``"scales"`` where
    each worker brings its own work, ``"fixed"`` where all cells do the same.

    Raises:
        ConcurveError: the command or the machine does not allow it, or the run failed.
    """
    for name, given in (("command", command), ("background", background), ("extracts", extracts),
                        ("conditions", conditions)):  # fmt: skip
        if isinstance(given, str):
            raise StudyError(f"{name}: a text instead of a list of texts", f"[{given!r}]")
    study = sweep_study(
        command,
        [(name, _levels_text(name, levels)) for name, levels in parameters.items()],
        granted_cpus(),
        controls=ControlsTemplate(
            cpus=_text(cpus),
            nice=_text(nice),
            policy=policy,
        ),
        env=env,
        hooks=hooks,
        background=background,
        extracts=extracts,
        primary=primary,
        work=work,
        work_amount=work_amount,
        conditions=conditions,
        rules=rules_from_options(_text(repeats), None, timeout, max_time),
    )
    return _measure(study, effort, seed, db)


def load(name: str = "last", db: str | None = None) -> Run:
    """A stored run by its id, the start of its id, or ``last``.

    Raises:
        StoreError: none or several fit.
    """
    store = Store.existing(db)
    return Run(store, store.find_run(name).id)


def runs(study: str | None = None, db: str | None = None) -> list[Run]:
    """The stored runs, the newest last."""
    store = Store.existing(db)
    return [Run(store, row.id) for row in store.runs(study)]


def compare(
    base: str | Run,
    new: str | Run,
    *,
    indicators: Sequence[str] = (),
    effect: float = EFFECT,
    across_machines: bool = False,
    db: str | None = None,
) -> Comparison:
    """Each cell of ``new`` over the same cell of ``base``; as ``concurve compare``.

    Raises:
        ConcurveError: the runs cannot be compared.
    """
    sides = [run if isinstance(run, Run) else load(run, db) for run in (base, new)]
    options = Options(indicators=tuple(indicators), effect=effect, across_machines=across_machines)
    return compare_runs([sides[0].findings], [sides[1].findings], options)


def _measure(study: Study, effort: str, seed: int | None, db: str | None) -> Run:
    if effort not in EFFORTS:
        raise StudyError(f"no effort {effort!r}", f"one of {', '.join(EFFORTS)}")
    store = Store(db)
    head = new_head(study, effort, draw_seed() if seed is None else seed, "from Python")
    Runner(head, store, LocalEngine()).start()
    return Run(store, head.id)


def _frame(table: Rows) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(table.rows, columns=pd.Index(table.heading))


def _text(given: str | int | None) -> str | None:
    return None if given is None else str(given)


def _levels_text(name: str, levels: Sequence[Level] | str) -> str:
    if isinstance(levels, int | float):
        raise StudyError(f"{name}: {levels!r} instead of levels", f"[{levels!r}]")
    return levels if isinstance(levels, str) else ",".join(map(str, levels))

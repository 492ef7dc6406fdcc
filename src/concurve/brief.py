"""A stored run → what a terminal shows of it, from its figures and few of its records.

Apart from :mod:`concurve.assemble`, which reads the whole of a run: who looks at one waits for
each module that is imported here.
"""

from __future__ import annotations

from typing import NamedTuple

from concurve.analysis.run import analyse, first_record, stored_run, with_trials
from concurve.findings.explanation import CellExplanation
from concurve.findings.run import Findings
from concurve.findings.scaling import ScalingFinding
from concurve.store import Store
from concurve.store.rows import RunRow


class Figures(NamedTuple):
    """What the stored figures of a run say. ``scaling`` are the models fitted to them; empty where
    they were not asked for, too. ``limit`` says what limits the cell that a reader is told of
    first, where it was asked for and the records of that cell say it."""

    findings: Findings
    scaling: tuple[ScalingFinding, ...] = ()
    limit: CellExplanation | None = None


def figures_of(
    store: Store, row: RunRow, best_by: str = "", *, models: bool = False, brief: bool = False
) -> Figures:
    """The figures of a run; with scaling models if they are asked for, which take every trial and
    time. ``brief``: for a terminal, with what limits the run, which takes some of its records, and
    without what would decide between its best settings.

    Raises:
        RunError: no trial has the indicator ``best_by``.
    """
    run = stored_run(store, row)
    findings: Findings = analyse(run, first_record(store, run), best_by, advised=not brief)
    scaling: tuple[ScalingFinding, ...] = ()
    if models:
        from concurve.analysis.granted import granted_cpus
        from concurve.analysis.scaling import scaling_of

        scaling = scaling_of(with_trials(findings, run), granted_cpus(run))
    if not brief:
        return Figures(findings, scaling)
    from concurve.explain import explained_cell

    return Figures(findings, scaling, explained_cell(store, run, findings))

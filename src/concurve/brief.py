"""A stored run → what a terminal shows of it, from its figures and few of its records.

Apart from :mod:`concurve.assemble`, which reads the whole of a run: who looks at one waits for
each module that is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from concurve.analysis.run import analyse, first_record, stored_run, with_trials
from concurve.findings.explanation import REPORT_TRIALS, CellExplanation
from concurve.findings.run import Findings, TrialFindings
from concurve.findings.scaling import ScalingFinding
from concurve.store import Store
from concurve.store.rows import RunRow, Trials

if TYPE_CHECKING:
    from concurve.findings.campaign import CampaignFindings


class Figures(NamedTuple):
    """What the stored figures of a run say. ``scaling`` are the models fitted to them; empty where
    they were not asked for, too. ``limit`` says what limits the cell that a reader is told of
    first, where it was asked for and the records of that cell say it."""

    findings: Findings
    scaling: tuple[ScalingFinding, ...] = ()
    limit: CellExplanation | None = None


def figures_of(
    store: Store,
    row: RunRow,
    best_by: str = "",
    *,
    models: bool = False,
    brief: bool = False,
    trials: Trials | None = None,
) -> Figures:
    """The figures of a run; with scaling models if they are asked for, which take every trial and
    time. ``brief``: for a terminal, with what limits the run, which takes some of its records, and
    without what would decide between its best settings. ``trials`` are those of the run, where they
    are read already.

    Raises:
        RunError: no trial has the indicator ``best_by``.
    """
    run = stored_run(store, row, trials)
    findings: Findings = analyse(run, first_record(store, run), best_by, advised=not brief)
    scaling: tuple[ScalingFinding, ...] = ()
    if models:
        from concurve.analysis.granted import granted_cpus
        from concurve.analysis.scaling import scaling_of

        scaling = scaling_of(with_trials(findings, run), granted_cpus(run))
    if not brief or run.protocol.done > REPORT_TRIALS:
        return Figures(findings, scaling)
    from concurve.explain import explained_cell

    return Figures(findings, scaling, explained_cell(store, run, findings))


def limit_of_campaign(
    store: Store, findings: CampaignFindings[TrialFindings]
) -> CellExplanation | None:
    """What limits the cell that a reader is told of first, in the study that answers the question
    of a campaign; ``None`` as in :func:`~concurve.explain.explained_cell`."""
    from concurve.explain import explained_cell

    for study in findings.studies:
        if study.name == findings.answered_by and study.run is not None:
            run = stored_run(store, store.run(study.run.run.id))
            return explained_cell(store, run, study.run)
    return None

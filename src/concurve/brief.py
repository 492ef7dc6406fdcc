"""A stored run → what a terminal shows of it, from its figures and few of its records.

Apart from :mod:`concurve.assemble`, which reads the whole of a run: who looks at one waits for
each module that is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from concurve import words
from concurve.analysis.run import (
    StoredRun,
    analyse,
    first_record,
    stored_run,
    warned_of,
    with_trials,
)
from concurve.findings.cells import FailureOutput
from concurve.findings.explanation import REPORT_TRIALS, Limit
from concurve.findings.run import Findings, Report, TrialFindings
from concurve.findings.scaling import ScalingFinding
from concurve.store import Store
from concurve.store.rows import RunRow, TrialKey, Trials
from concurve.wire import decode_record

if TYPE_CHECKING:
    from concurve.findings.campaign import CampaignFindings


class Figures(NamedTuple):
    """What the stored figures of a run say. ``scaling`` are the models fitted to them; empty where
    they were not asked for, too. ``limits`` say what limits the cell that a reader is told of
    first, or that of each condition, where it was asked for and the records of that cell say it.
    ``outputs`` has what programs
    had written that failed."""

    findings: Findings
    scaling: tuple[ScalingFinding, ...] = ()
    limits: tuple[Limit, ...] = ()
    outputs: tuple[FailureOutput, ...] = ()


#: Causes of trials that a program made fail, as a record names them, or a judgement.
_FAILURES = ("program_failed", "not_ready", "timed_out", "timed_out, machine busy", "no match")

#: So many of the last lines of an output are shown, each of so many characters at most.
_LINES, _LINE_CHARS = 10, 200
#: The outputs of at most so many trials: each is looked for in all records of its cell.
_OUTPUTS_MAX = 12


def figures_of(
    store: Store,
    row: RunRow,
    best_by: str = "",
    *,
    models: bool = False,
    brief: bool = False,
    rejected: bool = False,
    with_warned: bool = True,
    trials: Trials | None = None,
) -> Figures:
    """The figures of a run; with scaling models if they are asked for, which take every trial and
    time. ``brief``: for a terminal, with what limits the run, which takes some of its records, and
    without what would decide between its best settings. ``rejected``: with what programs that
    failed had written in each cell, and not for each cause alone. ``with_warned``: with what its
    programs warned of, which takes records, too. ``trials`` are those of the run, where they are
    read already.

    Raises:
        RunError: no trial has the indicator ``best_by``.
    """
    run = stored_run(store, row, trials)
    first = first_record(store, run)
    warned = warned_of(store, run) if with_warned else ()
    findings: Findings = analyse(run, first, best_by, advised=not brief, warned=warned)
    scaling: tuple[ScalingFinding, ...] = ()
    if models:
        from concurve.analysis.granted import granted_cpus
        from concurve.analysis.scaling import scaling_of

        scaling = scaling_of(with_trials(findings, run), granted_cpus(run.head, run.plan))
    outputs = tuple(_failure_outputs(store, run, of_cells=rejected)) if brief else ()
    limits = _limits(store, run, findings) if brief else ()
    return Figures(findings, scaling, limits, outputs)


def glance_of(store: Store, row: RunRow) -> tuple[Report, tuple[Limit, ...]]:
    """A run for a view of its answer, its first chart and its table: its figures with those of each
    trial, and what limits the cell that a reader is told of first, or that of each condition. It
    takes the records of these cells, and no scaling models."""
    run = stored_run(store, row)
    first, warned = first_record(store, run), warned_of(store, run)
    findings = with_trials(analyse(run, first, advised=False, warned=warned), run)
    return Report.of_figures(findings), _limits(store, run, findings)


def _limits(store: Store, run: StoredRun, findings: Findings) -> tuple[Limit, ...]:
    """What limits the cells that a reader is told of first; not of a run of very many trials."""
    if run.protocol.done > REPORT_TRIALS:
        return ()
    from concurve.explain import explained_limits

    return explained_limits(store, run, findings)


def _failure_outputs(store: Store, run: StoredRun, *, of_cells: bool) -> Iterator[FailureOutput]:
    """What the role had written last in the first trial that failed for each cause, where
    that is more than the line which its cause quotes; ``of_cells``: in each cell, as far as it
    differs from those before, and that it wrote nothing."""
    first: dict[tuple[str, int | None], tuple[TrialKey, str]] = {}
    for key, (cause, detail) in run.protocol.rejected.items():
        if cause in _FAILURES:
            first.setdefault((cause, key.cell if of_cells else None), (key, detail))
    shown: set[tuple[str, ...]] = set()
    for (cause, _), (key, detail) in list(first.items())[:_OUTPUTS_MAX]:
        rows = store.records(run.row.id, key.cell)
        raw = next((row.record for row in rows if row.key == key), None)
        record = None if raw is None else decode_record(raw, key.shown(run.row.id))
        name = (record and record.outcome.role) or run.head.study.target
        role = None if record is None else record.role(name)
        if role is None:
            continue
        lines = _last_lines(role.stderr.text())
        stream: Literal["standard error", "standard output"] = "standard error"
        if not lines:
            lines, stream = _last_lines(role.stdout.text()), "standard output"
        is_said = len(lines) == 1 and lines[0].strip() in detail
        is_told = bool(lines) or (of_cells and role.pid is not None)
        if is_told and not is_said and lines not in shown:
            shown.add(lines)
            yield FailureOutput(
                parameters=run.plan.cells[key.cell].parameters,
                cause=words.cause(cause),
                role=name,
                stream=stream,
                lines=lines,
            )


def _last_lines(text: str) -> tuple[str, ...]:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return tuple(line[:_LINE_CHARS] for line in lines[-_LINES:])


def limits_of_campaign(
    store: Store, findings: CampaignFindings[TrialFindings]
) -> tuple[Limit, ...]:
    """What limits the cells that a reader is told of first, in the study that answers the question
    of a campaign; none as in :func:`~concurve.explain.explained_limits`."""
    from concurve.explain import explained_limits

    for study in findings.studies:
        if study.name == findings.answered_by and study.run is not None:
            run = stored_run(store, store.run(study.run.run.id))
            return explained_limits(store, run, study.run)
    return ()

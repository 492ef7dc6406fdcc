"""Stored trials → :class:`~concurve.findings.run.Findings`: the computing between store and views.

``tables`` sorts the figures by cell, ``indicators`` says what they are, ``cells`` makes estimates
of them, ``best`` names the settings to run, and ``run_samples`` is what the tests of claims read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import msgspec

from concurve.analysis.against_base import Judge
from concurve.analysis.claims.deciding import deciding
from concurve.analysis.dependence import assumed_ratios, dependences
from concurve.analysis.dependence import sentences as dependence_sentences
from concurve.analysis.doubt import (
    claims_in_doubt,
    published_in_doubt,
    withheld_claims,
    withheld_published,
)
from concurve.analysis.granted import granted_cpus
from concurve.analysis.ground import Speed, following_wall, ground_of, undirected
from concurve.analysis.records import FirstRecord, Reader, read_records
from concurve.analysis.run.bases import with_measured_bases
from concurve.analysis.run.best import best_of, withheld_best
from concurve.analysis.run.cells import (
    absent_of,
    cell_findings,
    speedup_among,
    speedups_judged,
)
from concurve.analysis.run.cold import ColdStarts
from concurve.analysis.run.core_speed import speed_sentences
from concurve.analysis.run.doubted import Chosen, chosen
from concurve.analysis.run.failures import failed_loads, failure_sentences, not_compared
from concurve.analysis.run.given_back import Shares, shares_of
from concurve.analysis.run.hosts import compare_hosts
from concurve.analysis.run.hosts import sentences as host_sentences
from concurve.analysis.run.indicators import indicator_infos
from concurve.analysis.run.own_latencies import latency_sentences, with_contradicted
from concurve.analysis.run.reported import ReportedWarnings
from concurve.analysis.run.response_sizes import size_sentences
from concurve.analysis.run.run_samples import samples_of
from concurve.analysis.run.shapes import InTime, in_time_of, with_shapes, with_widened
from concurve.analysis.run.siblings import slower_siblings
from concurve.analysis.run.tables import Table, in_use_of, is_staged, tables_of
from concurve.analysis.run.used_up import with_used_up
from concurve.analysis.samples import Samples
from concurve.analysis.sentences import sentences
from concurve.analysis.sentences.looks import look_sentences
from concurve.analysis.shape_sentences import shape_sentences
from concurve.analysis.strangers import constant_of, has_autogroups, is_stolen, strangers_of
from concurve.analysis.unset import unset_of
from concurve.definition.failures import failure_counts
from concurve.errors import ComparisonError, RunError, StoreError
from concurve.estimate import Estimate
from concurve.figures import FigureTable, decode_figures
from concurve.findings.best import Withheld
from concurve.findings.cells import Dot, Reject
from concurve.findings.explanation import REPORT_TRIALS
from concurve.findings.run import Finding, Findings, RunInfo, TrialFindings
from concurve.planning.plan import Plan, describe, plan_of
from concurve.planning.protocol import LOST, Protocol, replay
from concurve.readings.contamination import took_most
from concurve.stats.comparison import EFFECT, Direction
from concurve.store import Store
from concurve.store.rows import DAMAGED_TRIAL_REMEDY, RunRow, TrialKey, Trials
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import Factor, IndicatorInfo
from concurve.wire.record import TrialRecord

#: Among so many of the newest runs one is looked for that has a trial in use.
_RUNS_TRIED = 20

#: Sentences in the order in which they are said.
_KINDS = ("answer", "warning", "note")

#: What decoding of damaged figures raises.
_DAMAGED = (msgspec.MsgspecError, ValueError, RecursionError)


@dataclass(frozen=True)
class StoredRun:
    """A run from the store without its records: its head and its replayed trials. ``plan`` is that
    of the protocol with bases that were measured. ``shares`` reads how much of some trials was
    undisturbed, for which it takes their records."""

    head: RunHead
    row: RunRow
    plan: Plan
    protocol: Protocol
    trials: Trials
    figures: FigureTable
    in_use: Sequence[bool]
    shares: Shares | None = None

    @cached_property
    def tables(self) -> list[Table]:
        """The figures by cell."""
        return tables_of(self.plan, self.trials.outcomes, self.figures, self.in_use)

    @cached_property
    def chosen(self) -> Chosen:
        """Which of the trials in use are the figures."""
        return chosen(
            self.plan, self.protocol, self.trials.outcomes, self.figures, self.in_use, self.tables
        )

    @property
    def first_key(self) -> TrialKey | None:
        """The trial that ran first and was not lost: the record of a lost one has no role."""
        outcomes = self.trials.outcomes
        found = (place for place, cause in enumerate(outcomes.causes) if cause != LOST)
        return next((outcomes.key(place) for place in found), None)

    @cached_property
    def used(self) -> dict[int, list[TrialKey]]:
        """The trials in use by cell, in the order in which they were made."""
        used: dict[int, list[TrialKey]] = {}
        for key, is_used in zip(self.trials.outcomes.keys(), self.in_use, strict=True):
            if is_used:
                used.setdefault(key.cell, []).append(key)
        return used


def stored_run(store: Store, row: RunRow, trials: Trials | None = None) -> StoredRun:
    """A run as it is stored, without its records. ``trials`` are its trials, if they are read."""
    head = decode_head(row)
    trials = store.trials(row.id) if trials is None else trials
    plan = plan_of(head)
    protocol = replay(plan, trials.outcomes, head.id)
    figures = _figures(row.id, trials)
    in_use = in_use_of(protocol, trials.outcomes)
    shares = partial(shares_of, store, row.id, head.study)
    plan = with_measured_bases(plan, protocol)
    return StoredRun(head, row, plan, protocol, trials, figures, in_use, shares)


def newest_in_use(store: Store, row: RunRow) -> str:
    """The id of the newest other run with a trial in use, among a few; empty without one."""
    others = [other for other in reversed(store.runs(with_heads=False)) if other.id != row.id]
    for other in others[:_RUNS_TRIED]:
        try:
            if stored_run(store, store.run(other.id)).used:
                return other.id
        except (StoreError, RunError):
            continue  # a damaged one has nothing to show
    return ""


def _figures(run: str, trials: Trials) -> FigureTable:
    """The figures of all trials of a run.

    Raises:
        StoreError: those of a trial are damaged.
    """
    try:
        return decode_figures(trials.figures)
    except _DAMAGED:
        for trial in trials:
            try:
                decode_figures([trial.figures])
            except _DAMAGED as error:
                raise StoreError(
                    f"the figures of {trial.outcome.key.shown(run)} are damaged: {error}",
                    DAMAGED_TRIAL_REMEDY,
                ) from error
        raise


def findings_of(store: Store, row: RunRow, best_by: str = "") -> Findings:
    """What the figures of a run say, cell by cell.

    ``best_by`` names the indicator by which settings are best, if not the primary one; one without
    a better direction of its own is given with it, as in ``tps:higher``.

    Raises:
        RunError: no trial has that indicator, or which direction is better is not known.
    """
    run = stored_run(store, row)
    return analyse(run, first_record(store, run), best_by)


def trial_findings_of(
    store: Store, row: RunRow, best_by: str = "", *, with_warned: bool = True
) -> TrialFindings:
    """The same with the figures of each trial, for what shows or counts single trials.
    ``with_warned``: with what the programs warned of, for which many records are read."""
    run = stored_run(store, row)
    warned = warned_of(store, run) if with_warned else ()
    return with_trials(analyse(run, first_record(store, run), best_by, warned=warned), run)


def first_record(store: Store, run: StoredRun) -> TrialRecord | None:
    """The record of the trial that ran first; ``None`` where none did."""
    first = FirstRecord(run.first_key)
    read_records(store, run.row.id, (first,))
    return first.record


class RecordWarnings:
    """What the records of a run warn of: what its programs reported, and cold starts. Nothing of a
    simulation."""

    def __init__(self, run: StoredRun) -> None:
        used = {} if run.head.study.simulation else run.used
        self._plan = run.plan
        self._reported = ReportedWarnings(used, run.head.study)
        self._cold = ColdStarts(used, run.tables, run.head.study)

    @property
    def readers(self) -> tuple[Reader, ...]:
        """Who reads the records."""
        return (self._reported, self._cold)

    def found(self) -> tuple[Finding, ...]:
        """The sentences, once the records are read."""
        return (*self._reported.found(self._plan), *self._cold.found(self._plan))


def warned_of(store: Store, run: StoredRun) -> tuple[Finding, ...]:
    """What the records of a run warn of; nothing of a run of very many trials, as
    :data:`~concurve.findings.explanation.REPORT_TRIALS` has it: what a terminal shows of one is
    kept, and follows from no record but the first. Nothing where a record is damaged: figures are
    shown without them."""
    if run.head.study.simulation or run.protocol.done > REPORT_TRIALS:
        return ()
    warnings = RecordWarnings(run)
    try:
        read_records(store, run.row.id, warnings.readers)
    except StoreError:
        return ()
    return warnings.found()


def _judge(stored: StoredRun, speed: Speed | None, samples: Samples) -> Judge:
    """How the levels of a run are told apart, by the effect that it was asked for if there is
    one."""

    def judged(cells: Sequence[int], effect: float) -> Sequence[tuple[Direction, Estimate | None]]:
        assert speed is not None, "speed-ups are judged where there are some"
        return speedups_judged(stored.plan, speed, samples, cells, effect)

    asked = stored.head.effect
    return Judge(judged, EFFECT if asked is None else asked, asked is not None)


def with_trials(findings: Findings, stored: StoredRun) -> TrialFindings:
    """The findings of a stored run with the figures of each of its trials."""
    return TrialFindings.of(findings, _dots(stored))


def analyse(
    stored: StoredRun,
    first: TrialRecord | None,
    best_by: str = "",
    *,
    advised: bool = True,
    warned: tuple[Finding, ...] = (),
) -> Findings:
    """Findings of a stored run. The record of its first trial says what is absent and why.
    ``advised``: best settings say what would decide between them. ``warned``: what the programs
    warned of, which comes before the other warnings."""
    head, plan, protocol = stored.head, stored.plan, stored.protocol
    indicators = indicator_infos(head, plan, first, stored.tables)
    picked = stored.chosen
    if not head.study.simulation:
        picked = picked.with_resolutions(indicators)
    tables, every = picked.tables, stored.tables
    rejects = _rejects(plan, protocol)
    ground = ground_of(head, plan, tables, indicators, best_by)
    primary = head.study.primary
    info = next((info for info in indicators if info.name == primary), None)
    asked = info or IndicatorInfo(name=primary, label=primary)
    hosts = compare_hosts(plan, tables, asked)
    unlike = hosts.doubt if hosts else ""
    loads = failed_loads(head.study, every)
    failed = not_compared(loads, indicators)
    best = best_of(
        plan,
        protocol,
        picked,
        ground,
        failed,
        advised=advised,
        shares=stored.shares,
        is_sweep=head.is_sweep,
    )
    if unlike:
        best = withheld_best(best, unlike)
    unset = unset_of(plan, first)
    if unset is not None:
        best = withheld_best(best, unset.doubt, unset.factors)
    absent = absent_of(first, head.study)
    samples = samples_of(head, plan, protocol, tables, indicators, picked.quiet, absent, failed)
    cells = cell_findings(
        plan, protocol, picked, every, samples, indicators, ground.speed, absent, head, failed
    )
    cells = with_contradicted(plan, cells)
    speed = "" if ground.speed is None else ground.speed.indicator.name
    best = with_used_up(best, cells, granted_cpus(head, plan), head.study.target, speed)
    in_time = InTime()
    if not head.study.simulation:
        cells = with_shapes(cells, tables, asked, by_data=is_staged(plan.rules))
        in_time = in_time_of(tables, primary)
        if ground.speed is not None:
            cells = with_widened(plan, cells, tables, ground.speed.indicator.name)
    depends = dependences(head.study, samples)
    said = (
        *warned,
        *failure_sentences(plan, loads, indicators),
        *(undirected(head, ground) if any(table.used for table in tables) else ()),
        *sentences(
            head,
            protocol,
            cells,
            rejects,
            stored.row.state,
            best,
            cache(partial(speedup_among, plan, ground.speed, samples)),
            _judge(stored, ground.speed, samples),
            ground.indicator,
            ground.speed,
            first,
            unset,
        ),
        *dependence_sentences(depends),
        *ground.said,
        *look_sentences(head.study, tables, (primary, ground.indicator.name)),
        *speed_sentences(head.study, tables, primary),
        *shape_sentences(plan, cells, *in_time, indicators, primary),
        *host_sentences(hosts),
        *slower_siblings(plan, tables),
        *latency_sentences(plan, cells),
        *size_sentences(plan, cells),
    )
    block_seconds = _block_seconds(plan, protocol)
    had = max((len(cell.used) for cell in protocol.cells), default=0)
    claims = claims_in_doubt(head.study, samples, samples.quiet, block_seconds, had)
    published = published_in_doubt(head.study, samples, samples.quiet, plan.cells[0].parameters)
    if why := unlike or (unset.doubt if unset is not None else ""):
        claims = withheld_claims(claims, why, "over all hosts" if unlike else "by the figures")
        published = withheld_published(published, why)
    found = Findings(
        run=_run_info(stored, rejects, first),
        question=head.study.question,
        source=head.study.source,
        factors=tuple(
            Factor(name=factor.name, levels=factor.levels, work=factor.name == plan.work)
            for factor in head.study.factors_at(head.effort)
        ),
        primary=head.study.primary,
        asked=tuple(item.name for item in head.study.indicators),
        extracted=tuple(extract.name for extract in head.study.extracts),
        failures=tuple(count.name for count in failure_counts(head.study)),
        throughput=ground.throughput,
        is_of_fixed_time=ground.is_of_fixed_time,
        indicators=indicators,
        cells=cells,
        sentences=_in_order(said),
        rejects=rejects,
        machine={**head.machine, "versions": head.versions, "programs": head.programs},
        roles=tuple(role.name for role in head.study.roles),
        claims=claims,
        deciding=deciding(claims, block_seconds),
        dependences=depends,
        assumed_ratios=assumed_ratios(head.study, samples),
        best=best,
        withheld=Withheld(
            indicators=(ground.indicator.name, *following_wall(tables)),
            figures=ground.doubt,
            hosts=unlike,
            factors=() if unset is None else unset.factors,
            unset="" if unset is None else unset.doubt,
        ),
        published=published,
        test_case=head.study.test_case,
        level_change=in_time.change,
        drift=in_time.drift,
    )
    return found if unset is not None else _with_hint(found, stored)


def _with_hint(found: Findings, stored: StoredRun) -> Findings:
    """The findings with what ``compare`` says of CPU time, and of named levels how many trials
    would decide, last of the answers, where these leave open which level of the only factor is
    faster. A verdict by CPU time is the first answer."""
    plan = stored.plan
    varied = [item for item in found.factors if len(item.levels) > 1]
    is_asked = found.ranked == found.primary and not found.run.simulation
    if not is_asked or len(varied) != 1 or varied[0].work:
        return found
    effect = EFFECT if stored.head.effect is None else stored.head.effect
    if _is_decided(found, varied[0].name, effect):
        return found
    # Few runs are compared.
    from concurve.analysis.comparison.compare import of_undecided_levels
    from concurve.analysis.comparison.options import Options

    factor, base = varied[0], plan.study.base.get(varied[0].name, varied[0].levels[0])
    levels = [base, *(level for level in factor.levels if level != base)]
    try:
        more = of_undecided_levels(
            with_trials(found, stored), factor.name, levels, Options(effect=effect)
        )
    except ComparisonError:  # of a figure that has no better direction, say
        return found
    hints = more.hints if found.primary != "cpu_seconds" else ()
    # What would decide between numbers is said of the best setting, where it is open.
    best = found.best_overall
    is_named = all(isinstance(level, str) for level in factor.levels)
    is_open = is_named and best is not None and best.recommended is not None
    texts = [*(more.plan if is_open else ()), *hints]
    # Wall times that compare no settings are not in doubt by the machine alone.
    first = {} if found.withheld.figures or found.withheld.hosts else more.verdicts
    # What the wall time in doubt seems to say of the same levels would contradict it.
    decided = [describe(it.parameters) for it in found.cells if it.parameters[factor.name] in first]
    left = [item for item in found.sentences if item.subject not in decided]
    said = [*map(_answer, first.values()), *left, *map(_answer, texts)]
    return msgspec.structs.replace(found, sentences=_in_order(said))


def _answer(text: str) -> Finding:
    return Finding(kind="answer", sentence=text)


def _is_decided(found: Findings, factor: str, effect: float) -> bool:
    """Does a speed-up say that a level of the factor is faster than another one, or slower, and
    seem to do so by the effect of interest?"""
    for cell in found.cells:
        base, speedup = found.cells[cell.base or 0].parameters, cell.indicators.get("speedup")
        differ = {name for name, level in cell.parameters.items() if base[name] != level}
        if cell.base is None or differ != {factor} or speedup is None or speedup.in_doubt:
            continue
        low, high = speedup.low, speedup.high
        is_apart = low is not None and high is not None and not low <= 1 <= high
        if is_apart and not 1 / (1 + effect) < speedup.value < 1 + effect:
            return True
    return False


def _in_order(said: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(said, key=lambda finding: _KINDS.index(finding.kind)))


def _block_seconds(plan: Plan, protocol: Protocol) -> float | None:
    """The time of one block."""
    return protocol.seconds_of(len(plan.cells)) if protocol.done else None


def _rejects(plan: Plan, protocol: Protocol) -> tuple[Reject, ...]:
    found = [(key, cause, False) for key, cause in protocol.rejected.items()]
    found += [(key, cause, True) for key, cause in protocol.doubtful.items()]
    return tuple(
        Reject(
            cell=key.cell,
            parameters=plan.cells[key.cell].parameters,
            block=key.block,
            attempt=key.attempt,
            cause=took_most(cause, detail).cause,
            detail=detail,
            used=used,
        )
        for key, (cause, detail), used in sorted(found)
    )


def _dots(stored: StoredRun) -> tuple[Dot, ...]:
    return tuple(
        Dot(
            cell=key.cell,
            block=key.block,
            attempt=key.attempt,
            used=used,
            values=stored.figures.row(index),
            set_aside=aside,
        )
        for index, (key, used, aside) in enumerate(
            zip(stored.trials.outcomes.keys(), stored.in_use, stored.chosen.set_aside, strict=True)
        )
    )


def _run_info(stored: StoredRun, rejects: tuple[Reject, ...], first: TrialRecord | None) -> RunInfo:
    head, row, protocol = stored.head, stored.row, stored.protocol
    return RunInfo(
        id=head.id,
        study=head.study.name,
        effort=head.effort,
        seed=head.seed,
        started=head.started,
        state=row.state,  # type: ignore[arg-type]
        reason=row.reason,
        trials=protocol.done,
        rejected=sum(not reject.used for reject in rejects),
        duration_seconds=protocol.elapsed,
        again=head.again,
        version=head.versions.get("concurve", ""),
        pilot=head.rules.repeats_min,
        is_staged=is_staged(head.rules),
        simulation=head.study.simulation,
        over_hosts=head.hosts is not None,
        is_sweep=head.is_sweep,
        waiting=head.waiting,
        strangers=strangers_of(head.study, rejects, protocol.done, first),
        is_stolen=is_stolen(rejects),
        constant=constant_of(rejects, protocol.done),
        autogroups=has_autogroups(head.machine),
        allowed_seconds=head.rules.time_allowed_seconds,
        resumed_after=tuple(item.trials for item in head.resumed if item.trials),
    )

"""What limits each cell of a run: records → :class:`~concurve.findings.explanation.Explanation`.

``threads`` finds the threads whose time is explained, ``accounts`` reads a record,
``breakdown`` puts the trials of a cell together and compares them with the base, ``losses`` divides
the lost speed-up, ``causes`` names the cause by that and by what ``components`` makes of each part
of the thread time, and ``sentences`` says it. Records are read one cell at a time, and of a cell
with very many trials the first :data:`TRIALS_READ`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from concurve import words
from concurve.analysis.records import FirstRecord, StoredRecord, read_records
from concurve.analysis.run import RecordWarnings, StoredRun, analyse, newest_in_use, stored_run
from concurve.definition.study import Study
from concurve.errors import RunError, StoreError
from concurve.estimate import Estimate
from concurve.explain.accounts import Account, account
from concurve.explain.blocked import blocked_clause
from concurve.explain.breakdown import Breakdown, breakdown, excess
from concurve.explain.causes import cause_of
from concurve.explain.components import used_up_by_itself
from concurve.explain.confirmation import confirm_run, confirmations_of
from concurve.explain.experiments import may_be_tried
from concurve.explain.locks import is_seen
from concurve.explain.losses import Loss, undivided_loss
from concurve.explain.others import did_not_answer, waits_for_who_is_not_held_up
from concurve.explain.room import ceiling
from concurve.explain.sentences import (
    above_ideal,
    less_possible,
    lock_allows,
    lock_measured,
    loss_told,
    of_start_and_end,
    parts_without_cause,
    rate_kept,
    reason,
    sentence,
    spent,
    spins_most,
)
from concurve.explain.sites import (
    of_the_program,
    place_sentence,
    sites_of,
    stacks_of,
    with_place,
)
from concurve.explain.stacks import blocked_stacks
from concurve.explain.verdict import Case, Verdict
from concurve.explain.waiting import KINDS, lock_places
from concurve.explain.weights import Weight, greater_without_cause, outweighed, weigh
from concurve.findings.cells import CellFindings
from concurve.findings.confirmation import Confirmation
from concurve.findings.explanation import (
    REPORT_TRIALS,
    Cause,
    CellExplanation,
    Explanation,
    Limit,
    WaitSite,
)
from concurve.findings.limits import named_cells, told
from concurve.findings.run import Findings, is_reported, where_the_server_limits
from concurve.findings.stacks import BlockedStack
from concurve.host.machine_check import is_virtual
from concurve.planning.plan import describe
from concurve.readings.measures import MEASURE_PHASE
from concurve.readings.operations import OPERATIONS, Asked, Counted, asked_of
from concurve.store import Store
from concurve.store.rows import RunRow, TrialKey
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import Level, joined_levels

#: At most this many records of a cell are read: more would hardly change an estimate.
TRIALS_READ = 200
#: A cause in doubt is named if so many quiet trials of a cell say the same: one has no spread.
QUIET_TRIALS_MIN = 2
#: With fewer trials of a cell or of its base, a short answer names no limit, as it has no room for
#: how little that is, and ``explain`` says that what it names is in doubt.
TRIALS_TOLD_MIN = 3
#: What an operation is, by what is counted.
_OPERATION: dict[Counted, str] = {
    "reported": "reported by the program",
    "rate": "the printed rate times the time of the run",
    "units": "a unit of work: each worker brings one",
    "run": "a whole run",
}
_COMPONENTS = ("total", "cpu", "run_queue", "blocked")
_BAR = ("cpu", "run_queue", *KINDS)
#: Indicators of the readings that causes are named by: where one is in doubt, so is the cause.
_JUDGED_BY = ("wall_seconds", "cpu_seconds")


def explain_run(store: Store, row: RunRow) -> Explanation:
    """What limits each cell of a stored run.

    Raises:
        RunError: the run has no trial in use.
    """
    run = stored_run(store, row)
    first, accounts = FirstRecord(run.first_key), AccountReader(run)
    warnings = RecordWarnings(run)
    read_records(store, row.id, (first, accounts, *warnings.readers))
    findings = analyse(run, first.record, warned=warnings.found())
    try:
        found = explain(findings, run.head, accounts)
    except RunError as error:
        if other := newest_in_use(store, row):
            newest = f"concurve explain {other}, the newest run that has some"
            raise RunError(error.what, f"{error.remedy}; or {newest}") from None
        raise
    return with_experiments(store, row, found)


def with_experiments(store: Store, row: RunRow, explanation: Explanation) -> Explanation:
    """The explanation of a run with what the stored experiments on it say; of a run of experiments,
    what these say."""
    head = decode_head(row)
    if head.confirms is not None:
        tried = [confirm_run(store, row)]
        return msgspec.structs.replace(explanation, confirmations=tuple(tried))
    tried, left_out = confirmations_of(store, row.id, row.study)
    recorded = [it.parameters for it in tried if it.recorded is not None]
    hint = _hint(explanation, recorded) if may_be_tried(head) else []
    return msgspec.structs.replace(
        explanation,
        cells=tuple(_as_measured(cell, tried, explanation.work) for cell in explanation.cells),
        confirmations=tuple(tried),
        notes=(*explanation.notes, *left_out, *hint),
    )


def _as_measured(
    cell: CellExplanation, tried: Sequence[Confirmation], work: str | None
) -> CellExplanation:
    """The cell with what its lock allows by the time for which experiments saw it held, where they
    did: the waits bound that time alone."""
    workers = None if work is None else cell.parameters.get(work)
    allows = lock_measured(cell, tried, workers)
    return msgspec.structs.replace(cell, ideal=allows) if allows else cell


def _hint(explanation: Explanation, recorded: list[dict[str, Level]]) -> list[str]:
    """What names the lines of Java where the samples do not: for the last cell whose threads wait
    for a lock, unless its waits were recorded."""
    cells = [
        cell
        for cell in explanation.cells
        if cell.is_jvm and cell.cause == "lock" and cell.parameters not in recorded
    ]
    if not cells:
        return []
    at = joined_levels([f"{name}={cells[-1].parameters[name]}" for name in explanation.factors])
    option = f" --at {shlex.quote(at)}" if at else ""
    command = f"concurve explain {explanation.run} --confirm{option}"
    return [f"Samples name no line of Java. {command} records in which lines the threads wait."]


class AccountReader:
    """Where the thread time went in the trials that are the figures of the run, by cell; ``quiet``
    has those of a quiet machine alone. ``set_aside`` is the number of trials in use that are not
    figures, because enough quiet ones are. Only some ``cells`` are read, if they are given."""

    def __init__(self, run: StoredRun, cells: Collection[int] | None = None) -> None:
        keys = run.trials.outcomes.keys()
        aside = {key for key, names in zip(keys, run.chosen.set_aside, strict=True) if names}
        used = {cell: set(keys) - aside for cell, keys in run.used.items()}
        self.set_aside = sum(map(len, run.used.values())) - sum(map(len, used.values()))
        self._used = {cell: keys for cell, keys in used.items() if cells is None or cell in cells}
        self._asked = asked_of(run.head.study)
        self._levels = {cell.index: run.plan.workers(cell) for cell in run.plan.cells}
        topology = run.head.machine.get("topology")
        self._cores = topology.get("cores") if isinstance(topology, dict) else None
        self._is_virtual = is_virtual(run.head.machine)
        self._left = {cell: len(keys) for cell, keys in self._used.items()}
        self.accounts: dict[int, list[Account]] = {cell: [] for cell in self._used}
        self.quiet: dict[int, list[Account]] = {cell: [] for cell in self._used}
        self._doubtful = run.protocol.doubtful.keys()

    def cells(self) -> Collection[int]:
        """The cells that have a trial in use."""
        return self._used

    def wants(self, key: TrialKey) -> bool:
        """Is the trial one of the figures, and among the first :data:`TRIALS_READ` of its cell?"""
        return not self.has_all(key.cell) and key in self._used[key.cell]

    def take(self, stored: StoredRecord) -> None:
        """Account for the time of a trial, unless its record has none."""
        cell = stored.key.cell
        self._left[cell] -= 1
        found = account(
            stored.record, self._asked, self._levels[cell], self._cores, self._is_virtual
        )
        if found is not None:
            self.accounts[cell].append(found)
            if stored.key not in self._doubtful:
                self.quiet[cell].append(found)

    def has_all(self, cell: int) -> bool:
        """Are all trials of the cell read, or enough of them?"""
        return not self._left.get(cell) or len(self.accounts[cell]) == TRIALS_READ


def explain(findings: Findings, head: RunHead, read: AccountReader) -> Explanation:
    """What limits each cell, by the findings and the records.

    Raises:
        RunError: the run has no trial in use.
    """
    asked = asked_of(head.study)
    breakdowns = _breakdowns(read.accounts, findings.run.is_staged)
    quiet = _breakdowns(read.quiet, findings.run.is_staged)
    if not breakdowns:
        raise RunError(
            f"run {findings.run.id} has no trial in use to explain{_why_none(findings)}",
            _new_run(findings),
        )
    counted = _counted(breakdowns)
    operation, roles = _operation(findings, head.study, asked, counted), asked.roles
    if _are_marked(breakdowns.values(), all):
        operation = f"{operation}, in the phase {MEASURE_PHASE}"
    if roles.clients or roles.others:
        operation = f"{operation}; the threads are those of the role {roles.subject}"
    serving = asked.roles.serving
    cells = tuple(_cell(cell, findings, breakdowns, quiet, serving) for cell in findings.cells)
    missing = _everywhere(cells)
    return Explanation(
        run=findings.run.id,
        study=findings.run.study,
        factors=_varying(findings),
        work=findings.work.name if findings.work else None,
        operation=operation,
        cells=cells,
        missing=missing,
        notes=(
            *_notes(findings, breakdowns, asked, counted, read.set_aside),
            *_of_no_comparison(findings, breakdowns),
            *_of_speedups(findings, cells, breakdowns),
            *_of_idle_threads(breakdowns),
            *_of_lifetimes(findings, breakdowns),
        ),
        warnings=_warnings(findings, cells),
        over_hosts=findings.run.over_hosts,
        waiting=findings.run.waiting,
        strangers=findings.run.strangers,
        is_stolen=findings.run.is_stolen,
        constant=findings.run.constant,
        autogroups=findings.run.autogroups,
    )


def _why_none(findings: Findings) -> str:
    """Why the trials of the first cell failed, and how many more did; empty where none failed."""
    failed = [cell for cell in findings.cells if cell.has_failed]
    if not failed:
        return ""
    where = _levels(failed[0], findings)
    more = f"; so did {words.count(len(failed) - 1, 'more cell')}" if len(failed) > 1 else ""
    return f"{f', {where}' if where else ''}: {failed[0].note}{more}"


def _new_run(findings: Findings) -> str:
    """What to do about a cell whose trials failed."""
    return f"concurve show {findings.run.id} --rejected says more; correct it, and start a new run"


#: What a rate of the primary figure counts, by the end of its label.
_PER_SECOND = " per second"


def _operation(findings: Findings, study: Study, asked: Asked, counted: Counted) -> str:
    """What an operation is, and whose output counts them, where they are read out of one."""
    reads = {(it.role or asked.roles.measured): it for it in asked.extracts
             if it.name.split(".")[-1] == OPERATIONS}  # fmt: skip
    names = [role.command[0] for role in study.roles if role.name in reads and role.command]
    if counted != "reported" or len(names) != 1:
        return _OPERATION[counted]
    info = findings.indicator(findings.primary)
    is_rate = info.label.endswith(_PER_SECOND)
    what = info.label.removesuffix(_PER_SECOND) if is_rate else "operations"
    return f"{what} counted by {PurePath(names[0]).name}"


def _warnings(findings: Findings, cells: Iterable[CellExplanation]) -> tuple[str, ...]:
    """What programs warned of; a busy load is no limit where each that is named is the server."""
    reported = [item for item in findings.sentences if is_reported(item)]
    named = [cell for cell in cells if cell.cause not in ("none", "in doubt") and not cell.few]
    if named and all(cell.is_limited_by_server for cell in named):
        reported = [where_the_server_limits(item) for item in reported]
    return tuple(item.sentence for item in reported)


def may_explain(run: StoredRun) -> bool:
    """Does a report of this run say what limits it? No for a simulation, whose time is not that of
    the machine, and for a run with very many records."""
    return not run.head.study.simulation and run.protocol.done <= REPORT_TRIALS


def explained(findings: Findings, head: RunHead, read: AccountReader | None) -> Explanation | None:
    """What limits each cell, for reports; ``None`` where no records were read, the primary
    indicator has no better direction (nothing is to be faster), or no trial is in use."""
    if read is None or findings.indicator(findings.primary).better == "neither":
        return None
    try:
        return explain(findings, head, read)
    except RunError:
        return None


def explained_limits(store: Store, run: StoredRun, findings: Findings) -> tuple[Limit, ...]:
    """What limits the cell that a reader is told of first, or that of each condition, as the report
    of the run says it, from the records of these cells and their bases alone. None where the report
    does not say it either, and where a record is damaged: figures are shown without them.
    """
    wanted = findings.limits_by
    is_asked = findings.indicator(findings.primary).better != "neither"
    if not wanted or not is_asked or not may_explain(run):
        return ()
    further = list(named_cells(findings))
    cells = [*(cell for _, cell in wanted), *further]
    bases = [cell.index if cell.base is None else cell.base for cell in cells]
    read = AccountReader(run, {*(cell.index for cell in cells), *bases})
    try:
        read_records(store, run.row.id, (read,))
    except StoreError:
        return ()
    breakdowns, quiet = (
        _breakdowns(accounts, findings.run.is_staged) for accounts in (read.accounts, read.quiet)
    )
    serving = asked_of(run.head.study).roles.serving
    if not breakdowns:
        return ()

    def of(cell: CellFindings) -> CellExplanation:
        return _cell(cell, findings, breakdowns, quiet, serving)

    return tuple(told(findings, Limit(group, of(cell)), map(of, further)) for group, cell in wanted)


def _breakdowns(accounts: dict[int, list[Account]], is_staged: bool) -> dict[int, Breakdown]:
    """The cells that have such trials, by index."""
    made = {cell: breakdown(trials, is_staged) for cell, trials in accounts.items()}
    places = lock_places(account.sites for trials in accounts.values() for account in trials)
    return {
        cell: found._replace(lock_places=places)
        for cell, found in made.items()
        if found is not None
    }


def _counted(breakdowns: Mapping[int, Breakdown]) -> Counted:
    """What an operation is in all trials: whole runs where they differ."""
    found = {account.counted for cell in breakdowns.values() for account in cell.accounts}
    return found.pop() if len(found) == 1 else "run"


def _cell(
    cell: CellFindings,
    findings: Findings,
    breakdowns: dict[int, Breakdown],
    quiet: dict[int, Breakdown],
    serving: bool,
) -> CellExplanation:
    base_cell = findings.cells[cell.index if cell.base is None else cell.base]
    own = breakdowns.get(cell.index)
    if cell.load_failed or base_cell.load_failed:
        return _unexplained(cell, findings, _of_failures(cell, base_cell, findings))
    if own is None:
        return _unexplained(cell, findings)
    if serving and did_not_answer(own):
        return _unexplained(cell, findings, words.IDLE_SERVER)
    has_base = base_cell.index != cell.index
    is_compared = _are_compared(findings, own)
    base = breakdowns.get(base_cell.index) if has_base and is_compared else None
    verdict, case = _verdict(own, base, serving), Case(own, base, serving)
    weight = weigh(case, verdict)
    greater = greater_without_cause(weight)
    evidence = sentence(cell, base_cell, own, base, verdict, _varying(findings), greater)
    # A server that waits for the next request of a schedule waits for no load that is used up.
    keeps_rate = cell.keeps_rate and verdict.cause in ("client", "none")
    if keeps_rate:
        verdict, weight = Verdict("none", ""), Weight()
        evidence = rate_kept(cell, own, _varying(findings))
    sampled = [account.sites for account in own.accounts]
    sites = sites_of(sampled, (account.names for account in own.accounts))
    doubt = _doubt(cell, base_cell, findings)
    alone = _quiet_verdict(cell, base_cell if base is not None else None, quiet, serving)
    said = verdict.cause, verdict.limit
    is_confirmed = alone is not None and (alone.cause, alone.limit) == said
    shown = _shown(own, base, verdict)
    # Other processes are a cause that a quiet machine would not show: it is the doubt itself.
    is_sure = is_confirmed or bool(shown) or verdict.cause == "contamination" or keeps_rate
    is_withheld = bool(doubt) and not is_sure
    if doubt and is_confirmed:
        evidence = f"{evidence} The quiet trials alone say the same; {doubt}."
    elif doubt and shown:
        evidence = f"{evidence} {shown}; {doubt}."
    # An address in a JVM without symbols tells nobody anything.
    named = of_the_program(sites)
    # Where threads waited is so on a busy machine, too.
    place = place_sentence(verdict.cause, named, addresses=not own.is_jvm)
    known = [name for name in _COMPONENTS if name in own.columns]
    loss = loss_told(cell, own, base) or _of_phase(cell, own, base, findings.primary)
    weight = Weight() if is_withheld else weight
    return CellExplanation(
        parameters=cell.parameters,
        cause="in doubt" if is_withheld else verdict.cause,
        evidence=evidence,
        index=cell.index,
        limit="" if is_withheld else verdict.limit,
        doubt=doubt,
        seeming=_seeming(verdict) if is_withheld else None,
        base=base_cell.parameters if base is not None else None,
        per_operation={name: own.estimate(name) for name in known},
        by_kind={kind: own.estimate(kind) for kind in KINDS} if own.sampled else {},
        shares=_shares(own),
        excess=_excesses(own, base) if base is not None else {},
        threads=own.threads,
        trials=own.trials,
        keeps_rate=keeps_rate,
        missing=_missing(own),
        share=weight.share,
        share_parts=weight.parts,
        runner_up=with_place(weight.runner_up, named, addresses=not own.is_jvm),
        speedup=loss.speedup if loss else None,
        speedup_possible=loss.possible if loss else None,
        speedup_lost=loss.parts if loss else {},
        by_means=loss is not None and loss.by_means,
        ceiling=_ceiling(own, base, verdict) if loss else None,
        sites=named,
        sampled_stacks=stacks_of(sampled),
        place=place,
        stacks=_stacks(own, sites),
        is_jvm=own.is_jvm,
        used=own.used if verdict.cause == "none" else "",
        few=_few(cell, base_cell, breakdowns, findings),
        reason="" if is_withheld else reason(_levels(cell, findings), verdict),
        remedy="" if is_withheld else verdict.remedy or of_start_and_end(verdict, weight.runner_up),
        spent="" if is_withheld else spent(own, verdict),
        spun=spins_most(own, base, verdict) if serving and not is_withheld else "",
        server_cpu=own.server_cpu,
        blocked=blocked_clause(own, findings.run.id) if serving else "",
        ideal=above_ideal(cell, base_cell, own, base)
        or less_possible(cell, base_cell, own, base)
        or (
            "" if is_withheld else lock_allows(base_cell, cell, case, verdict, in_doubt=bool(doubt))
        ),
        parts=""
        if is_withheld or keeps_rate
        else _parts(own, base, verdict, is_compared=is_compared),
    )


def _are_compared(findings: Findings, own: Breakdown) -> bool:
    """Does what an operation takes compare the cells? Not where nothing counts operations and the
    program runs for a fixed time: nothing is lost where that takes more thread time. Where the work
    seems to grow they are compared, since threads that spin for a lock look alike."""
    is_of_run = any(account.counted == "run" for account in own.accounts)
    return not (findings.is_of_fixed_time and is_of_run)


#: What stands in place of a loss where the cells are not compared.
_NOT_COMPARED = (
    "Nothing counts its operations, and wall time compares nothing here, so no loss is told."
)


def _parts(own: Breakdown, base: Breakdown | None, verdict: Verdict, *, is_compared: bool) -> str:
    """What is known of a loss without a cause, or that none is known of."""
    if is_compared:
        return parts_without_cause(own, base, verdict)
    return _NOT_COMPARED if verdict.cause == "none" else ""


#: The figure that is of the whole run, whatever phase the program marks.
_OF_WHOLE_RUN = "run_seconds"


def _of_phase(
    cell: CellFindings, own: Breakdown, base: Breakdown | None, primary: str
) -> Loss | None:
    """The lost speed-up of a phase that the program marks, as the tables of figures have it; that
    of the mean times where these compare whole runs, as the evidence is of the phase."""
    loss = undivided_loss(own, base) if base is not None else None
    if loss is not None and primary == _OF_WHOLE_RUN:
        return loss._replace(by_means=True)
    return loss and loss.at(cell.indicators.get("speedup"))


def _ceiling(own: Breakdown, base: Breakdown | None, verdict: Verdict) -> int | None:
    """The CPUs that bound the speed-up of a cell; ``None`` where they do not, and where its number
    of workers does not count what runs."""
    return None if base is None or verdict.is_uncounted else ceiling(own, base)


def _few(
    cell: CellFindings, base: CellFindings, breakdowns: dict[int, Breakdown], findings: Findings
) -> str:
    """How many trials a cell and its base have, and how many are enough, where one has too few to
    name a limit; else empty."""
    sides = [cell] if base.index == cell.index else [cell, base]
    known = {side.index: breakdowns.get(side.index) for side in sides}
    trials = {index: found.trials if found else 0 for index, found in known.items()}
    if min(trials.values()) >= TRIALS_TOLD_MIN:
        return ""
    said = (f"{trials[it.index] or 'none'} of {_levels(it, findings) or 'it'}" for it in sides)
    each = " of each" if len(sides) > 1 else ""
    return f"{', '.join(said)}; {TRIALS_TOLD_MIN}{each} are enough"


def _seeming(verdict: Verdict) -> tuple[Cause, str] | None:
    """The cause that figures in doubt point to, with its limit; ``None`` where there is none, or
    another one may be it as well."""
    if verdict.cause == "none" or verdict.either is not None:
        return None
    return verdict.cause, verdict.limit


def _shown(own: Breakdown, base: Breakdown | None, verdict: Verdict) -> str:
    """Why a cause stands whatever others did, or empty. A quota counts the CPU time of its control
    group alone. At a lock, threads were seen, and waited for one another for longer than others can
    have held them up."""
    if verdict.cause == "quota":
        return "Others do not use up its quota" if used_up_by_itself(own) else ""
    if base is None or verdict.cause != "lock" or not is_seen(own):
        return ""
    if not waits_for_who_is_not_held_up(own, base):
        return ""
    return "Other processes cannot have made them wait so long"


#: What goroutines wait for that wait for nothing of Go's library, as records name it.
_OF_RUNTIME = "other"


def _stacks(cell: Breakdown, sites: tuple[WaitSite, ...]) -> tuple[BlockedStack, ...]:
    """Where the blocked time went; empty without samples."""
    if not cell.sampled:
        return ()
    unknown = sum(account.sites.unknown for account in cell.accounts if account.sites)
    by_kind = {kind: cell.mean(kind) for kind in KINDS}
    if cell.is_go:
        # Who waits as the runtime says, for its collector for example, waits for no lock.
        sites = tuple(site for site in sites if site.primitive != _OF_RUNTIME)
        if not sites:
            by_kind["in Go's runtime"] = by_kind.pop("futex")
            unknown = 0
    return blocked_stacks(sites, by_kind, unknown)


def _quiet_verdict(
    cell: CellFindings, base: CellFindings | None, quiet: dict[int, Breakdown], serving: bool
) -> Verdict | None:
    """What the quiet trials alone say; ``None`` where a side has fewer than
    :data:`QUIET_TRIALS_MIN`."""
    sides = [quiet.get(side.index) for side in ([cell] if base is None else [cell, base])]
    if any(side is None or side.trials < QUIET_TRIALS_MIN for side in sides):
        return None
    compared = None if base is None else quiet[base.index]
    return _verdict(quiet[cell.index], compared, serving)


def _verdict(own: Breakdown, base: Breakdown | None, serving: bool) -> Verdict:
    return outweighed(Case(own, base, serving), cause_of(own, base, serving))


def _doubt(cell: CellFindings, base: CellFindings, findings: Findings) -> str:
    """Why the figures of a cell or of its base are in doubt, as the table marks them, or empty."""
    doubted = [
        f"{side.doubtful} of {words.count(side.trials, 'trial')} of "
        f"{describe({name: side.parameters[name] for name in _varying(findings)}) or 'the run'}"
        for side in ([cell] if base.index == cell.index else [cell, base])
        if any(
            name in side.indicators and side.indicators[name].in_doubt
            for name in (findings.primary, *_JUDGED_BY)
        )
    ]
    return f"the machine was not quiet during {' and '.join(doubted)}" if doubted else ""


def _of_failures(cell: CellFindings, base: CellFindings, findings: Findings) -> str:
    """That the load of a cell failed, or that of its base: errors take another time than work."""
    if cell.load_failed:
        return f"its load failed ({cell.load_failed})"
    return f"the load of its base, {_levels(base, findings)}, failed ({base.load_failed})"


def _levels(cell: CellFindings, findings: Findings) -> str:
    """The levels of a cell that vary, in words; empty where none does."""
    varying = {name: cell.parameters[name] for name in _varying(findings)}
    return describe(varying) if varying else ""


def _unexplained(cell: CellFindings, findings: Findings, why: str = "") -> CellExplanation:
    """A cell of which nothing can be said, and ``why``, where it is not that it lacks trials."""
    if not why:
        why = "its trials reported no operations or no time" if cell.trials else "it has no trial"
        if cell.has_failed:
            why = f"its trials failed: {cell.note.rstrip('.')}. What to do: {_new_run(findings)}"
        elif cell.status == "skipped":
            why = f"it was skipped: {cell.note}"
    of = _levels(cell, findings) or "this run"
    return CellExplanation(
        parameters=cell.parameters,
        cause="none",
        evidence=f"Nothing can be said of {of}: {why}{'' if why.endswith('?') else '.'}",
        index=cell.index,
        trials=0,
    )


def _shares(cell: Breakdown) -> dict[str, float]:
    """The parts of a cell's bar; without samples ``blocked`` is one part."""
    names = _BAR if cell.sampled else ("cpu", "run_queue", "blocked")
    return {name: cell.share(name) for name in names if name in cell.columns}


def _excesses(cell: Breakdown, base: Breakdown) -> dict[str, Estimate]:
    """By how much each component exceeds the base's."""
    return {
        name: excess(cell, base, name)
        for name in (*_COMPONENTS, *KINDS)
        if name in cell.columns and name in base.columns
    }


def _missing(cell: Breakdown) -> dict[str, str]:
    missing = dict(cell.missing)
    sites = [site for it in cell.accounts if it.sites is not None for site in it.sites.listed]
    if any(site.function for site in sites):
        missing.pop("sites", None)  # another trial has names
    if cell.sampled and not cell.enough_samples:
        missing["waits"] = (
            f"{sum(cell.readings.values())} readings of what threads were doing are too few to say "
            "what they waited for; longer trials give more"
        )
    return missing


def _varying(findings: Findings) -> tuple[str, ...]:
    return tuple(factor.name for factor in findings.factors if len(factor.levels) > 1)


def _everywhere(cells: tuple[CellExplanation, ...]) -> dict[str, str]:
    """Evidence that every explained cell lacks for the same reason."""
    explained = [cell.missing for cell in cells if cell.trials]
    first = explained[0] if explained else {}
    return {
        name: why
        for name, why in first.items()
        if all(missing.get(name) == why for missing in explained)
    }


def _notes(
    findings: Findings,
    breakdowns: dict[int, Breakdown],
    asked: Asked,
    counted: Counted,
    set_aside: int,
) -> list[str]:
    """Notes on how to read the explanation."""
    notes = []
    if counted == "units":
        notes.append("The work scales: each worker counts as one operation, as in the table.")
    if counted == "run" and not findings.is_of_fixed_time:
        notes.append(
            "The program reports no operations, so a whole run counts as one: if its work grows "
            "with a factor, so does its time, and that is no loss. Report the indicator "
            "`operations` to have it counted."
        )
    idle = max(cell.accounts[0].idle for cell in breakdowns.values())
    if idle:
        is_jvm = any(cell.accounts[0].is_jvm for cell in breakdowns.values())
        own = ", among them the JVM's own (compilers, collector)" if is_jvm else ""
        notes.append(
            f"Not counted: up to {words.count(idle, 'thread')} in a trial that only started "
            f"others, or ran for less than a tenth as long as the busiest{own}."
        )
    doubted = sum(reject.used for reject in findings.rejects) - set_aside
    for count, what in (
        (set_aside, "set aside, as in the table: the machine was not quiet"),
        (
            doubted,
            f"in use with a doubt: concurve show {findings.run.id} --rejected says why",
        ),
    ):
        if count:
            every = sum(cell.trials for cell in findings.cells)
            notes.append(f"{words.count_of(count, every, 'trial')} {words.verb(count)} {what}.")
    cut = [cell for cell in findings.cells if cell.trials > TRIALS_READ]
    if cut:
        notes.append(f"Of cells with more trials, the first {TRIALS_READ} are read.")
    return notes


def _of_no_comparison(findings: Findings, breakdowns: Mapping[int, Breakdown]) -> Iterator[str]:
    """That cells are not compared with their base, and why."""
    if len(findings.cells) > 1 and not all(
        _are_compared(findings, it) for it in breakdowns.values()
    ):
        yield (
            "The program reports no operations, and wall time does not compare the cells: what "
            "limits each is told of it alone, without a loss and without shares. Have its "
            "operations or its rate read (--extract)."
        )


def _of_speedups(
    findings: Findings, cells: Sequence[CellExplanation], breakdowns: Mapping[int, Breakdown]
) -> Iterator[str]:
    """Why no speed-up is divided into what was lost of it, where the program itself keeps it from
    that, and why those that are divided are not those of the tables of figures."""
    is_compared = any(cell.base is not None for cell in cells)
    divided = [cell for cell in cells if cell.speedup_lost]
    is_marked = _are_marked(breakdowns.values(), any)
    if is_marked:
        yield from _of_marked(cells, is_compared=is_compared, is_divided=bool(divided))
    if not is_marked and any(cell.cause == "serial" for cell in cells):
        yield (
            "The start and the end of a program are work that one thread does alone: more work in "
            f"a trial makes them small, and a phase `{MEASURE_PHASE}` leaves them out."
        )
    if any(cell.by_means and not cell.speedup_lost for cell in cells):
        yield (
            f'A speed-up "by mean times" is that of the phase `{MEASURE_PHASE}`, as the causes '
            "are. concurve show compares the times of whole runs: its speed-up differs."
        )
    if any(_wait_by_turns(cell, breakdowns) for cell in divided):
        yield (
            "Of more workers than CPUs, the ideal already contains that they wait for a CPU by "
            "turns: the column `queue` has that time, `for a CPU` only what is lost beyond it."
        )
    if any(cell.by_means for cell in divided):
        yield (
            'A speed-up "by mean times" is the ratio of the mean times of all trials, so that its '
            "parts add up. concurve show compares the trials of each block: its speed-up differs."
        )


#: A smaller share of the thread time in run queues needs no word.
_BY_TURNS_MIN = 0.25


def _wait_by_turns(cell: CellExplanation, breakdowns: Mapping[int, Breakdown]) -> bool:
    """Do more workers than CPUs wait for these for much of their time?"""
    side = breakdowns[cell.index]
    is_more = side.level is not None and side.cpus is not None and side.level > side.cpus
    return is_more and cell.shares.get("run_queue", 0.0) >= _BY_TURNS_MIN


def _are_marked(sides: Iterable[Breakdown], which: Callable[[Iterable[object]], bool]) -> bool:
    """Does the program mark its measured phase in ``any`` trial, or in ``all`` of them?"""
    return which(account.is_marked for side in sides for account in side.accounts)


def _of_marked(
    cells: Sequence[CellExplanation], *, is_compared: bool, is_divided: bool
) -> Iterator[str]:
    """Which figures are of the phase that the program marks, and which of the whole run."""
    marks = f"The program marks the phase `{MEASURE_PHASE}`"
    if is_compared and is_divided:
        yield (
            f"{marks} in some cells alone. The table of the lost speed-up is of the others, whole "
            "runs; what is said of those with a phase is of the phase."
        )
    elif is_compared:
        yield (
            f"{marks}: times, shares and speed-ups are of the phase. Records have the lives of "
            "threads for the whole run alone: no speed-up is divided into what was lost of it."
        )
    if any(cell.sites for cell in cells if cell.is_of_lock):
        yield "Samples of the places where threads wait are of the whole run."


#: A smaller share of the thread time that threads without work have is not told.
_IDLE_TOLD_MIN = 0.05


def _of_idle_threads(breakdowns: Mapping[int, Breakdown]) -> Iterator[str]:
    """How much of the time of the threads of a Go program is left out, as they had no goroutine to
    run: they wait at futexes, and for events in place of goroutines."""
    shares = [
        idle / (idle + side.per_trial("thread_ns"))
        for side in breakdowns.values()
        if (idle := side.per_trial("runtime_idle_ns"))
    ]
    if max(shares, default=0.0) >= _IDLE_TOLD_MIN:
        yield (
            f"Not counted: up to {words.percent(max(shares))} of the time of a cell's threads, for "
            "which those of Go's runtime wait for a goroutine to run. The program does not wait "
            "for them."
        )


#: So many of the cells are named of which only the whole life of a server is known.
_LIFETIMES_NAMED = 3


def _of_lifetimes(findings: Findings, breakdowns: Mapping[int, Breakdown]) -> Iterator[str]:
    """What the thread time of a server holds whose load marks no phase, in the cells with a trial
    in which the time of the load is not known either, and in how many of their trials."""
    late = {
        index: sum(account.is_lifetime for account in side.accounts)
        for index, side in breakdowns.items()
    }
    found = [cell for cell in findings.cells if late.get(cell.index)]
    if not found:
        return
    some = [cell for cell in found if late[cell.index] < breakdowns[cell.index].trials]
    where = ""
    if some or len(found) < len(breakdowns):
        named = []
        for cell in found[:_LIFETIMES_NAMED]:
            trials = f" ({late[cell.index]} of {breakdowns[cell.index].trials} trials)"
            named.append(f"{_levels(cell, findings)}{trials if cell in some else ''}")
        left = len(found) - len(named)
        where = f"In {words.listed([*named, *([f'{left} more'] if left else [])])}, "
    start = f"{where}{'the' if where else 'The'} server's times and CPUs used are of its whole life"
    unknown = "This load does not report when it begins (`concurve load` does"
    if some:
        yield f"{start}, its rate is not; CPUs used are told by the other trials. {unknown})."
    else:
        yield (
            f"{start}, with waits before and after the load; its rate is not. {unknown}, as the "
            f"phase `{MEASURE_PHASE}`)."
        )

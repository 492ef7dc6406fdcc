"""What limits each cell of a run: records → :class:`~concurve.findings.explanation.Explanation`.

``parts`` and ``threads`` find the threads whose time is explained, ``accounts`` reads a record,
``breakdown`` puts the trials of a cell together and compares them with the base, ``causes`` names
the cause by what ``components`` makes of each part, and ``sentences`` says it. Records are read one
cell at a time, and of a cell with very many trials the first :data:`TRIALS_READ`.
"""

from __future__ import annotations

import msgspec

from concurve.analysis.run import findings_of
from concurve.errors import RunError
from concurve.estimate import Estimate
from concurve.explain.accounts import Account, account
from concurve.explain.breakdown import Breakdown, breakdown, excess
from concurve.explain.causes import cause_of
from concurve.explain.parts import Parts, parts_of
from concurve.explain.sentences import sentence
from concurve.explain.waiting import KINDS
from concurve.findings.cells import CellFindings
from concurve.findings.explanation import CellExplanation, Explanation
from concurve.findings.run import Findings
from concurve.store import Store
from concurve.store.rows import RunRow
from concurve.store.run_head import RunHead, decode_head
from concurve.wire import decode_record

#: Trials of a cell whose records are read at most: more would hardly move an estimate.
TRIALS_READ = 200
#: Reports of runs with more trials leave the section out: ``concurve explain`` reads them.
REPORT_TRIALS = 5_000
_COMPONENTS = ("total", "cpu", "run_queue", "blocked")
_BAR = ("cpu", "run_queue", *KINDS)


def explain_run(store: Store, row: RunRow) -> Explanation:
    """What limits each cell of a stored run.

    Raises:
        RunError: the run has no trial in use.
    """
    return explain(findings_of(store, row), decode_head(row), store)


def explain(findings: Findings, head: RunHead, store: Store) -> Explanation:
    """What limits each cell, from findings that hold the trials one by one, and the records."""
    parts = parts_of(head.study)
    breakdowns = _breakdowns(findings, parts, head, store)
    if not breakdowns:
        raise RunError(f"run {findings.run.id} has no trial in use to explain", "another run")
    counted = {account.counted for cell in breakdowns.values() for account in cell.accounts}
    cells = tuple(_cell(cell, findings, breakdowns, parts) for cell in findings.cells)
    missing = _everywhere(cells)
    return Explanation(
        run=findings.run.id,
        study=findings.run.study,
        factors=_varying(findings),
        work=findings.work.name if findings.work else None,
        operation="reported by the program" if counted == {True} else "a whole run",
        cells=cells,
        missing=missing,
        notes=tuple(_notes(findings, breakdowns, parts, counted)),
    )


def with_explanation(findings: Findings, store: Store) -> Findings:
    """The findings with what limits each cell, for reports; as they are where the primary indicator
    has no better direction (nothing is to be faster), where the time is that of a simulator, where
    a run has no trial in use, or so many that a report would wait for them."""
    if findings.run.simulation:
        return findings
    if findings.indicator(findings.primary).better == "neither":
        return findings
    if findings.run.trials > REPORT_TRIALS:
        return findings
    head = decode_head(store.find_run(findings.run.id))
    try:
        return msgspec.structs.replace(findings, explanation=explain(findings, head, store))
    except RunError:
        return findings


def _breakdowns(
    findings: Findings, parts: Parts, head: RunHead, store: Store
) -> dict[int, Breakdown]:
    """The cells that have trials in use, by index."""
    used: dict[int, set[tuple[int, int]]] = {}
    for dot in findings.dots:
        if dot.used:
            used.setdefault(dot.cell, set()).add((dot.block, dot.attempt))
    breakdowns = {}
    for index, keys in used.items():
        found = breakdown(_accounts(store, head.id, index, keys, parts), head.rules.repeats_min)
        if found is not None:
            breakdowns[index] = found
    return breakdowns


def _accounts(
    store: Store, run: str, cell: int, used: set[tuple[int, int]], parts: Parts
) -> list[Account]:
    accounts: list[Account] = []
    for key, raw in store.records(run, cell):
        if (key.block, key.attempt) in used:
            found = account(decode_record(raw), parts)
            accounts += [found] if found is not None else []
        if len(accounts) == TRIALS_READ:
            break
    return accounts


def _cell(
    cell: CellFindings, findings: Findings, breakdowns: dict[int, Breakdown], parts: Parts
) -> CellExplanation:
    own = breakdowns.get(cell.index)
    if own is None:
        return _unexplained(cell)
    base_cell = findings.cells[cell.index if cell.base is None else cell.base]
    base = breakdowns.get(base_cell.index) if base_cell.index != cell.index else None
    verdict = cause_of(own, base, parts.clients, parts.serving)
    known = [name for name in _COMPONENTS if name in own.columns]
    return CellExplanation(
        parameters=cell.parameters,
        cause=verdict.cause,
        evidence=sentence(cell, base_cell, own, base, verdict, _varying(findings)),
        index=cell.index,
        limit=verdict.limit,
        base=base_cell.parameters if base is not None else None,
        per_operation={name: own.estimate(name) for name in known},
        by_kind={kind: own.estimate(kind) for kind in KINDS} if own.sampled else {},
        shares=_shares(own),
        excess=_excesses(own, base) if base is not None else {},
        threads=own.threads,
        trials=own.trials,
        missing=_missing(own),
    )


def _unexplained(cell: CellFindings) -> CellExplanation:
    why = "its trials reported no operations or no time" if cell.trials else "it has no trial"
    if cell.status == "skipped":
        why = f"it was skipped: {cell.note}"
    return CellExplanation(
        parameters=cell.parameters,
        cause="none",
        evidence=f"Nothing can be said of this cell: {why}.",
        index=cell.index,
        trials=0,
    )


def _shares(cell: Breakdown) -> dict[str, float]:
    """What the bar of a cell is made of; ``blocked`` is one part where there are no samples."""
    names = _BAR if cell.sampled else ("cpu", "run_queue", "blocked")
    return {name: cell.share(name) for name in names if name in cell.columns}


def _excesses(cell: Breakdown, base: Breakdown) -> dict[str, Estimate]:
    """By how much each component exceeds the base's."""
    found = {}
    for name in (*_COMPONENTS, *KINDS):
        if name in cell.columns and name in base.columns:
            more = excess(cell, base, name)
            n = min(cell.trials, base.trials)
            found[name] = Estimate(value=more.value, low=more.low, high=more.high, n=n, unit="ns")
    return found


def _missing(cell: Breakdown) -> dict[str, str]:
    missing = dict(cell.missing)
    if cell.sampled and not cell.enough_samples:
        missing["waits"] = (
            f"{sum(cell.readings.values())} readings of what threads were doing are too few to say "
            "what they waited for; longer trials give more"
        )
    return missing


def _varying(findings: Findings) -> tuple[str, ...]:
    return tuple(factor.name for factor in findings.factors if len(factor.levels) > 1)


def _everywhere(cells: tuple[CellExplanation, ...]) -> dict[str, str]:
    """What every explained cell lacks for the same reason."""
    explained = [cell.missing for cell in cells if cell.trials]
    first = explained[0] if explained else {}
    return {
        name: why
        for name, why in first.items()
        if all(missing.get(name) == why for missing in explained)
    }


def _notes(
    findings: Findings, breakdowns: dict[int, Breakdown], parts: Parts, counted: set[bool]
) -> list[str]:
    """How to read it."""
    notes = []
    if parts.clients and parts.subject != findings.roles[0]:
        notes.append(f"The threads are those of the role {parts.subject}.")
    if counted != {True}:
        notes.append(
            "The program reports no operations, so a whole run counts as one: if its work grows "
            "with a factor, so does its time, and that is no loss. Report the indicator "
            "`operations` to have it counted."
        )
    idle = max(cell.accounts[0].idle for cell in breakdowns.values())
    if idle:
        notes.append(
            f"Threads that did less than a tenth of the busiest one's work are left out: up to "
            f"{idle} in a trial."
        )
    doubted = sum(reject.used for reject in findings.rejects)
    if doubted:
        which = "1 trial is" if doubted == 1 else f"{doubted} trials are"
        notes.append(f"{which} in use with a doubt: others took CPU time of the machine.")
    cut = [cell for cell in findings.cells if cell.trials > TRIALS_READ]
    if cut:
        notes.append(f"Of cells with more trials, the first {TRIALS_READ} are read.")
    return notes

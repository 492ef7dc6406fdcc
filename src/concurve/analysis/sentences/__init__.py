"""The findings of a run as sentences: answers, warnings and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concurve.analysis import against_base
from concurve.analysis.against_base import Among, Judge, Versions
from concurve.analysis.ground import WALL, Speed
from concurve.analysis.sentences.answers import answers_of
from concurve.analysis.sentences.gains import greatest
from concurve.analysis.sentences.measured import measured
from concurve.analysis.sentences.naming import name
from concurve.analysis.sentences.notes import notes_of
from concurve.analysis.sentences.untried import untried
from concurve.analysis.sentences.warnings import warnings_of
from concurve.analysis.strangers import constant_of, has_autogroups, is_stolen, strangers_of
from concurve.analysis.unset import Unset
from concurve.findings.again import run_again
from concurve.findings.best import BestFinding
from concurve.findings.cells import CellFindings, Reject
from concurve.findings.run import Finding
from concurve.planning.plan import Plan, describe
from concurve.planning.protocol import Protocol
from concurve.store.run_head import RunHead
from concurve.terms import GIVEN_UP, IndicatorInfo
from concurve.wire.record import TrialRecord

#: So many settings that failed are named.
_NAMED_MAX = 3


def sentences(
    head: RunHead,
    protocol: Protocol,
    cells: tuple[CellFindings, ...],
    rejects: tuple[Reject, ...],
    state: str,
    best: tuple[BestFinding, ...],
    among: Among,
    judge: Judge,
    asked: IndicatorInfo,
    speed: Speed | None = None,
    first: TrialRecord | None = None,
    unset: Unset | None = None,
) -> list[Finding]:
    """First the answers, then the warnings that make them doubtful, those that matter most first,
    then notes on how to read them. ``asked`` is the indicator by which settings are compared,
    ``speed`` what speed-ups are measured by. ``unset``: factors that were probably not set, which
    comes before all that their levels seem to differ by."""
    plan = protocol.plan
    by = (speed.by(head.study.primary) or speed.by(asked.name)) if speed else ""
    named = None
    if speed and unset is None:
        named = _versions(plan, cells, judge, best, speed)
    versions = named.said if named else {}
    is_open = named is not None and not (named.are_told or named.are_alike)
    gains = [
        item
        for item in greatest(plan, cells, among, by, best)
        if (item.slower or item.cell).index not in versions
    ]
    strangers = strangers_of(head.study, rejects, protocol.done, first)
    again = run_again(
        plan.inventory is not None,
        plan.waiting,
        strangers,
        is_stolen=is_stolen(rejects),
        constant=constant_of(rejects, protocol.done),
        autogroups=has_autogroups(head.machine),
    )
    by_name = speed.indicator.name if speed else ""
    told = best
    if unset is not None:
        # Only what chance does not do to levels that are alike is worth a word.
        gains = [item for item in gains if item.is_gain and not item.speedup.in_doubt]
        told = tuple(item for item in best if not unset.concerns(item))
    answers, further, shorter = answers_of(plan, gains, told, by_name, again)
    # A speed-up by wall time says nothing where the study asks for another figure.
    if versions:
        # The base would be named because it is the first, and that reads as a decision.
        answers = [] if is_open else answers
        is_one = len(best) == 1 and best[0].recommended is not None
        if speed and named and answers and is_one and best[0].indicator == speed.indicator.name:
            label = f" (by {best[0].label})" if speed.indicator.name != WALL else ""
            choice = "" if named.is_faster else named.choice(label)
            answers = [choice] if choice else answers
        answers = [*versions.values(), *answers]
    elif speed and (not by or speed.indicator.name != WALL):
        compared = list(against_base.sentences(plan, cells, judge, among, by))
        if unset is not None and against_base.factor_of(plan) in unset.factors:
            compared = []
        answers = [*answers, *compared] if len(compared) > 1 else [*compared, *answers]
    answers += [
        *_other_bases(plan, cells),
        *_without_base(plan, cells),
        *untried(head, plan, cells, best),
    ]
    if unset is not None:
        answers.insert(0, unset.answer)
    if not answers:
        answers = list(measured(plan, cells, asked)) or _nothing(cells, state)
        answers = [*_without_others(plan, cells), *answers]
    is_tentative = any(item.is_tentative for item in best)
    is_planned = any(item.is_open and item.trials is not None for item in best)
    warnings = warnings_of(
        head, protocol, cells, rejects, state, first, again, unset, is_tentative, is_planned
    )
    notes = [*further, *notes_of(plan, cells, speed, are_judged=bool(versions))]
    return [
        *(_answer(text, versions, cells, shorter) for text in answers),
        *warnings,
        *(Finding(kind="note", sentence=text) for text in notes),
    ]


def _versions(
    plan: Plan,
    cells: tuple[CellFindings, ...],
    judge: Judge,
    best: tuple[BestFinding, ...],
    speed: Speed,
) -> Versions | None:
    """How named levels compare with their base, where that is said: where one differs from it, or
    the base would be the one to use for being the first, or what is used is in doubt."""
    found = against_base.versions(plan, cells, judge, speed.indicator.label, speed.is_rate)
    if found is None or found.are_apart or any(item.is_tentative for item in best):
        return found
    return found if _prefers_base(cells, best, speed.indicator.name) else None


def _answer(
    text: str,
    versions: dict[int, str],
    cells: Sequence[CellFindings],
    shorter: Mapping[str, str],
) -> Finding:
    """An answer; one on a version has that as its subject."""
    of = next(
        (describe(cells[index].parameters) for index, it in versions.items() if it == text), ""
    )
    return Finding(kind="answer", sentence=text, subject=of, short=shorter.get(text, ""))


def _prefers_base(
    cells: tuple[CellFindings, ...], best: tuple[BestFinding, ...], speed: str
) -> bool:
    """Is the base of all cells the setting to use, by what speed-ups are measured by?"""
    if len(best) != 1 or best[0].recommended is None or best[0].indicator != speed:
        return False
    bases = {cell.base for cell in cells if cell.base is not None}
    named = best[0].recommended.items()
    return all(named <= cells[index].parameters.items() for index in bases)


def _without_others(plan: Plan, cells: tuple[CellFindings, ...]) -> list[str]:
    """That nothing is compared, where the others of the only cell with figures failed."""
    failed = [cell for cell in cells if cell.status == "skipped" and not cell.trials]
    if len(cells) - len(failed) != 1 or not failed or failed[0].note.startswith(GIVEN_UP):
        return []
    names = ", ".join(name(plan, cell.parameters) for cell in failed[:_NAMED_MAX])
    more = f" and {len(failed) - _NAMED_MAX} more" if len(failed) > _NAMED_MAX else ""
    return [f"Nothing can be compared: {names}{more} failed."]


def _other_bases(plan: Plan, cells: tuple[CellFindings, ...]) -> list[str]:
    """Over which cells the speed-ups are, where those that the plan compares with failed:
    ``threads=0 failed, so speed-ups are against threads=1.`` Where that is so in some groups only,
    it says in how many."""
    meant: dict[tuple[str, str], set[int]] = {}
    bases = {cell.base for cell in plan.cells}
    for cell in cells:
        base = plan.cells[cell.index].base
        if cell.base is not None and cell.base != base:
            failed, own = plan.cells[base].parameters, cells[cell.base].parameters
            only = [
                it for it in own if it == plan.work or (not plan.work and failed[it] != own[it])
            ]
            names = (describe({it: one[it] for it in only}) for one in (failed, own))
            meant.setdefault((next(names), next(names)), set()).add(base)
    said = []
    for (failed_name, own_name), groups in meant.items():
        where, which = "", ""
        if len(groups) < len(bases):
            where, which = (
                f" in {len(groups)} of {len(bases)} settings of the other factors",
                " there",
            )
        said.append(f"{failed_name} failed{where}, so speed-ups are against {own_name}{which}.")
    return said


def _without_base(plan: Plan, cells: tuple[CellFindings, ...]) -> list[str]:
    """That there are no speed-ups, where the base of several cells with figures failed, and which
    level to compare with in its place."""
    failed = {cell.index: cell for cell in cells if cell.status == "skipped" and not cell.trials}
    left = [cell for cell in cells if cell.base in failed and cell.trials]
    if not plan.work or len(left) < 2:
        return []
    base = failed[left[0].base or 0]
    work = plan.work
    if any(cell.parameters[work] == base.parameters[work] for cell in left):
        return []
    other = left[0].parameters[work]
    return [
        f"There is no speed-up: its base, {name(plan, base.parameters)}, failed. A new run can "
        f"compare with {work}={other} (--base {work}={other}; in a study file base in [protocol])."
    ]


def _nothing(cells: tuple[CellFindings, ...], state: str) -> list[str]:
    """That nothing was measured, where every cell was skipped, or the run failed before."""
    is_over = state == "failed" or all(cell.status == "skipped" for cell in cells)
    if not is_over or any(cell.trials for cell in cells):
        return []
    each = "its only cell" if len(cells) == 1 else f"the {len(cells):,} cells"
    return [f"Nothing was measured: no trial of {each} gave a figure."]

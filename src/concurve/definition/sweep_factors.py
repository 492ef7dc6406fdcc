"""Which parameter of a sweep counts workers, and which of the others are conditions.

A study file may say both. On a command line they are found by the names of the parameters, by their
levels, and by where they are used; where that does not decide, the user is asked. A file that says
nothing of conditions has those that a sweep would have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from concurve.definition.levels import ranges_meant
from concurve.definition.load_commands import asked_rates
from concurve.definition.study import (
    WORK_NAMES,
    Factor,
    Study,
    choose_work,
    may_count,
    texts,
    usual_work,
)
from concurve.definition.templates import placeholders
from concurve.errors import StudyError
from concurve.terms import joined_levels
from concurve.words import is_number, listed, verb

#: What says that no parameter counts workers, or that none is a condition.
NONE = "none"

#: Names of parameters that count workers, apart from the usual ones.
_NAME = re.compile(
    r"(n|num|nr|max|io)?[_-]?(thread|worker|proc|process|client|session|connection|conn|job|core"
    r"|executor|actor|goroutine|task)(s|es)?|gomaxprocs|concurrency|parallel(ism)?|par|j"
    # More words before one in the plural: worker_processes, max-pool-threads.
    r"|([a-z]+[_-])+(threads|workers|proc(esse)?s|clients|sessions|conn(ection)?s|goroutines)",
    re.IGNORECASE,
)

#: Controls that a user chooses as one chooses a setting.
_CHOSEN = (", cpus", ", nice", ", policy")


def is_said_by_name(study: Study, factor: str) -> bool:
    """Does the name of a factor say that it counts workers, as far as a short one does?"""
    return factor in (*usual_work(study), "n") or bool(_NAME.fullmatch(factor))


def is_called_workers(factor: str) -> bool:
    """Is a factor called as what counts workers is, whatever its levels are? ``n`` may be a number
    of anything."""
    return factor in WORK_NAMES or bool(_NAME.fullmatch(factor))


def words_among(factor: Factor) -> list[str]:
    """The levels of a factor that are words: ``x``, ``auto``, ``4k``, and no number or list of
    CPUs."""
    return [level for level in factor.levels if isinstance(level, str) and _is_word(level)]


def _is_word(level: str) -> bool:
    has_digit = any(map(str.isdigit, level))
    has_letter = any(letter.isalpha() or not letter.isascii() for letter in level)
    return has_letter and not (has_digit and is_number(level))


class Roles(NamedTuple):
    """``work``: the parameter that counts workers, empty for none. ``conditions``: those whose
    levels are met and not chosen."""

    work: str
    conditions: tuple[str, ...]


def roles_of(study: Study, work: str | None, conditions: Sequence[str], cpus: int) -> Roles:
    """The parts that the parameters of a sweep play. ``work`` and ``conditions`` are what the user
    says; ``cpus`` are the CPUs granted.

    Raises:
        StudyError: several parameters may count workers, or one that counts them by its name has
            words or ranges in another notation among its levels, and the user does not say what
            it is.
    """
    if work is None:
        _refuse_slips(study, conditions)
    chosen = _work(study, cpus) if work is None else "" if work == NONE else work
    if conditions:
        return Roles(chosen, tuple(name for name in conditions if name != NONE))
    return Roles(chosen, _met(study, chosen))


def _met(study: Study, work: str) -> tuple[str, ...]:
    """The factors whose levels are likely met and not chosen: the rate that a load is asked for,
    and those beside that which counts workers, if one does."""
    rates = asked_rates(study)
    return tuple(
        factor.name
        for factor in study.factors
        if factor.name not in (work, *study.base)
        and (factor.name in rates or (work and not _is_control(study, factor.name)))
    )


def with_conditions(study: Study) -> Study:
    """The study of a file that says nothing of conditions, with those that a sweep of the same
    factors would have. Where no level of what counts workers is chosen, these are asked rates."""
    work = choose_work(study)
    varied = [factor.name for factor in study.factors if len(factor.levels) > 1]
    return msgspec.structs.replace(
        study, conditions=_met(study, work if work is not None and work in varied else "")
    )


def conditions_before(study: Study, effort: str) -> str:
    """What to say before a run of a study file that does not say what its conditions are: which
    factors are taken for some (:func:`with_conditions`), and how to state it; empty where none
    is."""
    varied = [factor.name for factor in study.factors_at(effort) if len(factor.levels) > 1]
    names = [name for name in study.conditions if name in varied]
    if not names:
        return ""
    what = verb(len(names), "a condition, whose levels are", "conditions, whose levels are")
    return (
        f"{listed(names)} {verb(len(names))} taken for {what} not recommended; conditions = [] in "
        "[protocol] if you choose them"
    )


def _refuse_slips(study: Study, conditions: Sequence[str]) -> None:
    """Refuse a slip among the levels of what counts workers by its name: ``1,2,x``, or ``1-4``,
    which is a single level. The program gets ``x``, and ends at once or takes it for 0: such a
    level looks fast, and nothing scales. Words alone are kinds of something, unless there is only
    one.

    Raises:
        StudyError: there is one.
    """
    is_alone = len(study.factors) == 1
    said = f"--work {NONE}" if is_alone else f"--work with another parameter, or {NONE}"
    for factor in study.factors:
        is_other = factor.name in conditions or _is_control(study, factor.name)
        slip = None if is_other or not is_called_workers(factor.name) else _slip(factor)
        if slip:
            raise StudyError(
                f"levels of {factor.name}: {slip.says}, and {factor.name} counts workers by its "
                "name",
                f"{slip.remedy}; or {said}, if the program takes {listed(slip.levels)} there",
            )


class _Slip(NamedTuple):
    """Levels that seem to be one, what they are, and what to write in their place."""

    levels: list[str]
    says: str
    remedy: str


def _slip(factor: Factor) -> _Slip | None:
    if ranges := ranges_meant(joined_levels(factor.levels)):
        what = verb(len(ranges), "is a single level", "are single levels")
        return _Slip([*ranges], f"{listed([*ranges])} {what}", ", ".join(ranges.values()))
    found = words_among(factor)
    if found and (len(found) < len(factor.levels) or len(factor.levels) == 1):
        what = verb(len(found), "is no number", "are no numbers")
        return _Slip(found, f"{listed(found)} {what}", "numbers alone")
    return None


def _work(study: Study, cpus: int) -> str:
    """The parameter that counts workers: the only one that is called so, else the only one that
    may."""
    if len(study.factors) < 2:
        return choose_work(study) or ""
    numbers = [factor for factor in study.factors if _may_count(study, factor)]
    usual = usual_work(study)
    named = [
        factor
        for factor in study.factors
        if factor.name in usual or (factor in numbers and _NAME.fullmatch(factor.name))
    ]
    # What only sets controls or competitors is meant where nothing else is called so.
    beside = (*_CHOSEN, ", copies")
    named = [it for it in named if not _is_only(study, it.name, beside)] or named
    named = [it for it in named if len(it.levels) > 1] or named
    varied = [factor for factor in numbers if not _is_control(study, factor.name)]
    few = [factor for factor in varied if _least(factor) <= 2 * cpus]
    candidates = named or few or varied or numbers
    if len(candidates) > 1:
        names = [factor.name for factor in candidates]
        raise StudyError(
            f"which parameter counts workers (threads, clients, …): {' or '.join(names)}?",
            f"--work {names[0]}; or --work {NONE} if none of them does",
        )
    return candidates[0].name if candidates else ""


def _may_count(study: Study, factor: Factor) -> bool:
    """May it count workers, and is it more than a priority or a number of competitors?"""
    return may_count(factor) and not _is_only(
        study, factor.name, (", nice", ", policy", ", copies")
    )


def _least(factor: Factor) -> float:
    return min(float(level) for level in factor.levels)


def _is_control(study: Study, factor: str) -> bool:
    """Is it used in nothing but controls, which a user chooses?"""
    return _is_only(study, factor, _CHOSEN)


def _is_only(study: Study, factor: str, ends: tuple[str, ...]) -> bool:
    """Is it used in such places only? So is one that nothing uses: it changes nothing."""
    places = [item.place for item in texts(study) if factor in placeholders(item.text)]
    return all(place.endswith(ends) for place in places)

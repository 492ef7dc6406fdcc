"""The warnings that programs of a trial reported, and that an attached server was another one in
some trials: records → each once, with its trials and cells.

A program reports them as the fact ``warnings``, a list of texts, or as that key of another fact: a
search for a rate has a fact of its own. What a load warns of its steadiness differs from trial to
trial, and is one warning of all of them, by its fact ``steady_state``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from concurve import words
from concurve.analysis.records import StoredRecord
from concurve.analysis.sentences.naming import name
from concurve.definition.study import Study
from concurve.findings.run import BUSY_LOAD, REPORTED, Finding
from concurve.planning.plan import Plan
from concurve.store.rows import TrialKey
from concurve.wire.record import WARNINGS_FACT

_MARK = b'"warnings"'

#: So many records are read at most, the same number of each cell: a view waits for them.
RECORDS_MAX = 1_000

#: So many cells are named; of more their number is said.
_CELLS_NAMED = 3

#: So many kinds of warnings are told, each with so many characters of its text.
_KINDS_TOLD, _TEXT_CHARS = 5, 300

#: A load that was busy says so with these words (``busy_client`` of ``instrument/load``).
_BUSY = "a client thread used "

#: The fact of a load that says since when its rate and latency stayed at one level.
_STEADY_FACT = "steady_state"
#: What the fact says of a level that changed late begins so.
_NO_STEADY_STATE = "no steady state: "
#: A --warm-up is to leave the beginning out of so many of the trials whose beginning differs.
_COVERED = 0.9

#: What differs between trials that report the same warning: a number, and the unit of a time.
_NUMBER = re.compile(r">?\d[\d,.]*(?: (?:ns|µs|ms|s)\b)?")


class _Role(msgspec.Struct):
    name: str = ""
    facts: dict[str, Any] = {}
    pid: int | None = None


class _Record(msgspec.Struct):
    """The part of a record that is read."""

    roles: list[_Role] = []


class _Unsteady(NamedTuple):
    """That a load was not steady all the time: since when it was, in seconds, or ``None`` where it
    never was; and what changed, in words."""

    since: float | None
    text: str


class ReportedWarnings:
    """The warnings in the trials in use of a run, ``used`` by cell. ``study``: what it measured."""

    def __init__(self, used: Mapping[int, Sequence[TrialKey]], study: Study) -> None:
        each = RECORDS_MAX // max(len(used), 1)
        self._wanted = {cell: set(keys[:each]) for cell, keys in used.items() if each}
        self._left = {cell: len(keys) for cell, keys in self._wanted.items()}
        #: Are there trials in use of which no record is read?
        self._is_sample = any(len(keys) > each for keys in used.values())
        #: Trials that were read of each cell.
        self._read: Counter[int] = Counter()
        #: Role and warning without its numbers → the trials of each cell, and the last text.
        self._trials: dict[tuple[str, str], Counter[int]] = {}
        self._last: dict[tuple[str, str], str] = {}
        #: The warnings with more than one text.
        self._varying: set[tuple[str, str]] = set()
        #: Role → the cells of the trials in which its load was not steady, and how in each.
        self._unsteady: dict[str, list[tuple[int, _Unsteady]]] = {}
        #: Attached roles by their names, with the trials of each first process that they had. Where
        #: a hook runs, it may be what starts them again for each trial.
        self._attached: dict[str, Counter[int]] = {
            role.name: Counter()
            for role in study.roles
            if role.attach is not None and not study.hooks.texts()
        }

    def cells(self) -> Collection[int]:
        """The cells that have a trial in use."""
        return self._wanted

    def wants(self, key: TrialKey) -> bool:
        """Is it in use, and among the first of its cell?"""
        return key in self._wanted.get(key.cell, ())

    def take(self, stored: StoredRecord) -> None:
        """Keep what its programs warned of. A damaged record is another reader's matter."""
        cell = stored.key.cell
        self._left[cell] -= 1
        self._read[cell] += 1
        roles = _roles(stored.raw) if self._attached or _MARK in stored.raw else []
        told: dict[tuple[str, str], str] = {}
        for role in roles:
            if role.name in self._attached and role.pid is not None:
                self._attached[role.name][role.pid] += 1
            unsteady = _unsteady(role.facts)
            if unsteady is not None:
                self._unsteady.setdefault(role.name, []).append((cell, unsteady))
            for text in _texts(role.facts):
                if unsteady is None or unsteady.text not in text:
                    told[role.name, _NUMBER.sub("#", text)] = text
        for which, text in told.items():
            self._trials.setdefault(which, Counter())[cell] += 1
            if self._last.setdefault(which, text) != text:
                self._varying.add(which)
                self._last[which] = text

    def has_all(self, cell: int) -> bool:
        """Are enough trials of the cell read?"""
        return not self._left.get(cell)

    def found(self, plan: Plan) -> tuple[Finding, ...]:
        """A sentence for each of the warnings of most trials, those of most first, and one that
        counts the others."""
        said: list[tuple[int, Finding]] = []
        for which, trials in self._trials.items():
            subject = BUSY_LOAD if which[1].startswith(_BUSY) else REPORTED
            said.append((trials.total(), _warning(self._sentence(plan, which, trials), subject)))
        for role, found in self._unsteady.items():
            said.append((len(found), _warning(self._of_steadiness(plan, role, found))))
        said.sort(key=lambda item: -item[0])
        told = [finding for _, finding in said[:_KINDS_TOLD]]
        if more := len(said) - len(told):
            told.append(_warning(f"And {words.count(more, 'more kind')} of warnings."))
        return (*map(_of_restart, self._restarts(plan)), *told)

    def _restarts(self, plan: Plan) -> Iterator[str]:
        """That a unit or a container was restarted between trials: a process that ends fails its
        trial. Its first process is the one that the record names."""
        for role, trials in self._attached.items():
            if len(trials) < 2:
                continue
            attach = next(it.attach for it in plan.study.roles if it.name == role)
            most, second = trials.most_common(2)
            others = words.count(trials.total() - most[1], "trial")
            yield (
                f"Role {role} ({attach}) was restarted during the run: its first process was "
                f"{most[0]} in {words.count(most[1], 'trial')}, and another one, such as "
                f"{second[0]}, in {others}. Caches and connections began anew: start a new run "
                "without a restart."
            )

    def _sentence(self, plan: Plan, which: tuple[str, str], trials: Counter[int]) -> str:
        example = ", for example" if which in self._varying else ""
        who, where = _who(plan, which[0]), self._in_trials(plan, trials)
        return f"{who} warns in {where}{example}: {self._last[which]}."

    def _of_steadiness(self, plan: Plan, role: str, found: list[tuple[int, _Unsteady]]) -> str:
        """What all trials that were not steady say together, and the one --warm-up that leaves the
        beginning out of nearly all."""
        where = self._in_trials(plan, Counter(cell for cell, _ in found))
        begun = f"{_who(plan, role)} was not steady all the time in {where}"
        since = sorted(each.since for _, each in found if each.since is not None)
        never = [each.text for _, each in found if each.since is None]
        parts = []
        if since:
            seconds = _rounded_up(since[math.ceil(_COVERED * len(since)) - 1])
            covered = sum(each <= seconds for each in since)
            many = f" of {covered}" if covered < len(found) else ""
            parts.append(f"--warm-up {round(1000 * seconds)}ms leaves the beginning out{many}")
        if never:
            many = f"in {len(never)} " if since else ""
            changed = never[-1].removeprefix(_NO_STEADY_STATE)
            more = "" if since else "; look at the server then, or try a longer --duration"
            parts.append(f"{many}no level was kept (such as: {changed}){more}")
        return f"{begun}: {'; '.join(parts)}."

    def _in_trials(self, plan: Plan, trials: Counter[int]) -> str:
        """``3 of 6 trials (threads=2)``."""
        total, among = trials.total(), self._read.total()
        many = "its only trial" if among == 1 else words.all_of(among, "trial")
        if total < among:
            many = words.count_of(total, among, "trial")
        if self._is_sample:
            many = f"{many} that were read" if among > 1 else "the only trial that was read"
        return f"{many}{self._where(plan, trials)}"

    def _where(self, plan: Plan, trials: Counter[int]) -> str:
        """The cells of a warning that not all of them have."""
        if len(trials) == len(self._read):
            return ""
        if len(trials) > _CELLS_NAMED:
            return f" ({len(trials)} of {words.count(len(self._read), 'cell')})"
        cells = [name(plan, plan.cells[cell].parameters) for cell in sorted(trials)]
        return f" ({words.listed(cells)})"


def _warning(sentence: str, subject: str = REPORTED) -> Finding:
    return Finding(kind="warning", sentence=sentence, subject=subject)


def _who(plan: Plan, role: str) -> str:
    return "The program" if len(plan.study.roles) == 1 else f"Role {role}"


def _rounded_up(seconds: float) -> float:
    """To two digits, and whole milliseconds."""
    if seconds <= 0:
        return 0.001
    step = 10.0 ** max(math.floor(math.log10(seconds)) - 1, -3)
    # What is a multiple but for a rounding of floats stays it.
    return math.ceil(seconds / step - 1e-9) * step


def _of_restart(sentence: str) -> Finding:
    return Finding(kind="warning", sentence=sentence)


def _roles(record: bytes) -> list[_Role]:
    try:
        return msgspec.json.decode(record, type=_Record).roles
    except msgspec.MsgspecError:
        return []


def _unsteady(facts: Mapping[str, Any]) -> _Unsteady | None:
    """What a load says of a level that changed. One that was steady says nothing, and that nothing
    was answered any more is a warning of its own."""
    fact = facts.get(_STEADY_FACT)
    if not isinstance(fact, dict) or not isinstance(fact.get("text"), str):
        return None
    at = fact.get("at_seconds")
    if not isinstance(at, int | float):
        return None
    return _Unsteady(float(at) if fact.get("is_steady") is True else None, fact["text"])


def _texts(facts: Mapping[str, Any]) -> Iterator[str]:
    within = [
        fact[WARNINGS_FACT]
        for fact in facts.values()
        if isinstance(fact, dict) and WARNINGS_FACT in fact
    ]
    for found in (facts.get(WARNINGS_FACT), *within):
        if isinstance(found, list):
            yield from (_cut(text.rstrip(".")) for text in found if isinstance(text, str) and text)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_CHARS else f"{text[: _TEXT_CHARS - 2].rstrip()} …"

"""The warnings that programs of a trial reported, and that an attached server was another one in
some trials: records → each once, with its trials and cells.

A program reports them as the fact ``warnings``, a list of texts, or as that key of another fact: a
search for a rate has a fact of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from concurve import words
from concurve.analysis.records import StoredRecord, read_records
from concurve.analysis.sentences.naming import name
from concurve.definition.study import Study
from concurve.errors import StoreError
from concurve.findings.run import REPORTED, Finding
from concurve.planning.plan import Plan
from concurve.store import Store
from concurve.store.rows import TrialKey
from concurve.wire.record import WARNINGS_FACT

_MARK = b'"warnings"'

#: So many records are read at most, the same number of each cell: a view waits for them.
RECORDS_MAX = 1_000

#: So many cells are named; of more their number is said.
_CELLS_NAMED = 3

#: So many kinds of warnings are told, each with so many characters of its text.
_KINDS_TOLD, _TEXT_CHARS = 5, 300

#: What differs between trials that report the same warning.
_NUMBER = re.compile(r"\d[\d,.]*")


class _Role(msgspec.Struct):
    name: str = ""
    facts: dict[str, Any] = {}
    pid: int | None = None


class _Record(msgspec.Struct):
    """The part of a record that is read."""

    roles: list[_Role] = []


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
        for role in roles:
            if role.name in self._attached and role.pid is not None:
                self._attached[role.name][role.pid] += 1
        for which, text in dict(_warnings(roles)).items():
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
        ranking = sorted(self._trials.items(), key=lambda item: -item[1].total())
        said = [self._sentence(plan, which, trials) for which, trials in ranking[:_KINDS_TOLD]]
        if more := len(ranking) - len(said):
            said.append(f"And {words.count(more, 'more kind')} of warnings.")
        return (
            *(Finding(kind="warning", sentence=text) for text in self._restarts(plan)),
            *(Finding(kind="warning", sentence=text, subject=REPORTED) for text in said),
        )

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
        role, _ = which
        total, among = trials.total(), self._read.total()
        many = "its only trial" if among == 1 else words.all_of(among, "trial")
        if total < among:
            many = words.count_of(total, among, "trial")
        if self._is_sample:
            many = f"{many} that were read" if among > 1 else "the only trial that was read"
        who = "The program" if len(plan.study.roles) == 1 else f"Role {role}"
        example = ", for example" if which in self._varying else ""
        return f"{who} warns in {many}{self._where(plan, trials)}{example}: {self._last[which]}."

    def _where(self, plan: Plan, trials: Counter[int]) -> str:
        """The cells of a warning that not all of them have."""
        if len(trials) == len(self._read):
            return ""
        if len(trials) > _CELLS_NAMED:
            return f" ({len(trials)} of {words.count(len(self._read), 'cell')})"
        cells = [name(plan, plan.cells[cell].parameters) for cell in sorted(trials)]
        return f" ({words.listed(cells)})"


def reported_warnings(
    store: Store, run: str, used: Mapping[int, Sequence[TrialKey]], plan: Plan
) -> tuple[Finding, ...]:
    """The same of a stored run; none where a record is damaged: figures are shown without them."""
    reader = ReportedWarnings(used, plan.study)
    try:
        read_records(store, run, (reader,))
    except StoreError:
        return ()
    return reader.found(plan)


def _roles(record: bytes) -> list[_Role]:
    try:
        return msgspec.json.decode(record, type=_Record).roles
    except msgspec.MsgspecError:
        return []


def _warnings(roles: Sequence[_Role]) -> Iterator[tuple[tuple[str, str], str]]:
    """Each warning of the roles of a record, with its role and the text without numbers."""
    for role in roles:
        for text in _texts(role.facts):
            yield (role.name, _NUMBER.sub("#", text)), text


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

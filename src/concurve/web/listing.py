"""The stored runs as a list that can be searched. Pure, apart from reading the store."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from concurve.errors import StudyError
from concurve.planning.doubt import remarks
from concurve.planning.protocol import shown_state
from concurve.report import format as fmt
from concurve.store import Store
from concurve.store.rows import RunRow

#: So many runs stand on a page.
PAGE_RUNS = 100

STATES = ("running", "complete", "interrupted", "failed")


class Listed(NamedTuple):
    """A run as the list shows it."""

    id: str
    study: str
    started: str
    state: str
    reason: str
    trials: int
    effort: str
    machine: str
    campaign: str
    remarks: Sequence[str] = ()

    @property
    def shown_state(self) -> str:
        """Its state in words."""
        return shown_state(self.state, self.reason, self.remarks)


class Glance(NamedTuple):
    """What a list shows of the head of a run."""

    effort: str
    machine: str


class Choice(NamedTuple):
    """Which runs are listed: all that fit each part that is not empty. ``text`` is looked for in
    id, study, reason and machine; days are as 2026-11-23, the last one included."""

    text: str = ""
    study: str = ""
    state: str = ""
    machine: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Choice:
        """The choice that an address names.

        Raises:
            StudyError: a day or a state that is none.
        """
        chosen = cls(*(asked.get(name, "").strip() for name in cls._fields))
        for name in ("since", "until"):
            day = getattr(chosen, name)
            try:
                if day:  # which may be written otherwise, and is compared as a text
                    found = datetime.date.fromisoformat(day).isoformat()
                    chosen = chosen._replace(**{name: found})
            except ValueError as error:
                raise StudyError(f"{name} {day[:40]!r} is no day", "2026-11-23") from error
        if chosen.state and chosen.state not in STATES:
            raise StudyError(f"{chosen.state[:40]!r} is no state", ", ".join(STATES))
        return chosen

    def fits(self, run: Listed) -> bool:
        """Is the run chosen?"""
        day = run.started[:10]
        text = " ".join((run.id, run.study, run.reason, run.machine, run.campaign)).lower()
        return (
            all(word in text for word in self.text.lower().split())
            and self.study in ("", run.study)
            and self.state in ("", run.state)
            and self.machine in ("", run.machine)
            and (not self.since or day >= self.since)
            and (not self.until or day <= self.until)
        )


class Page(NamedTuple):
    """A part of the chosen runs, the newest first: its number from 1 on, how many there are, and
    how many runs were chosen of how many."""

    runs: Sequence[Listed]
    number: int
    pages: int
    chosen: int
    of: int


def page_of(runs: Sequence[Listed], choice: Choice, number: int) -> Page:
    """The page of this number; the last one for a number that is too high."""
    chosen = [run for run in runs if choice.fits(run)]
    pages = max(1, -(-len(chosen) // PAGE_RUNS))
    number = min(max(number, 1), pages)
    first = (number - 1) * PAGE_RUNS
    return Page(chosen[first : first + PAGE_RUNS], number, pages, len(chosen), len(runs))


def listed(store: Store, glances: dict[str, Glance] | None = None) -> list[Listed]:
    """All runs, the newest first. ``glances`` keeps what was read of their heads: these are large,
    and what a list shows of them stays."""
    known = {} if glances is None else glances
    counts, outcomes = store.counts(), store.not_plain()
    campaigns = {
        member.run: row.id
        for row in store.campaigns()
        for member in store.members(row.id)
        if member.run
    }
    rows = store.runs(with_heads=False)
    for row in rows:
        if row.id not in known:
            known[row.id] = _glance_at(store.run(row.id).head)
    return [
        _listed(row, known[row.id], counts, campaigns)._replace(
            remarks=remarks(outcomes.get(row.id, ()))
        )
        for row in reversed(rows)
    ]


class _Head(msgspec.Struct, frozen=True):
    """The few facts of a head that a list shows; of all formats, and of damaged ones."""

    effort: str = ""
    machine: dict[str, Any] = {}


_HEAD = msgspec.json.Decoder(_Head)


def _glance_at(head: bytes) -> Glance:
    try:
        found = _HEAD.decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = _Head()
    return Glance(fmt.clean(found.effort), fmt.clean(machine_name(found.machine)))


def _listed(
    row: RunRow, glance: Glance, counts: Mapping[str, int], campaigns: Mapping[str, str]
) -> Listed:
    return Listed(
        id=row.id,
        study=fmt.clean(row.study),
        started=row.started,
        state=row.state,
        reason=fmt.clean(row.reason),
        trials=counts.get(row.id, 0),
        effort=glance.effort,
        machine=glance.machine,
        campaign=campaigns.get(row.id, ""),
    )


def machine_name(machine: Mapping[str, Any]) -> str:
    """A machine in few words: its processor and the CPUs that were granted."""
    cpus = machine.get("cpus_allowed")
    count = fmt.count(len(cpus), "CPU") if isinstance(cpus, list) else ""
    return ", ".join(filter(None, (str(machine.get("cpu_model", "")), count)))

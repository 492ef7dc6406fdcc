"""The rows of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any, Literal, NamedTuple, overload

from concurve.figures import PackedFigures

Verdict = Literal["ok", "program_error", "wrong", "abandon", "contaminated"]

#: Ids of campaigns begin with it, and a date follows; those of runs begin with the date.
CAMPAIGN_PREFIX = "c"

#: The state of a run or a campaign under way, and of one that was stopped or whose process ended.
RUNNING = "running"
INTERRUPTED = "interrupted"


class TrialKey(NamedTuple):
    """A place in the plan: which cell, in which block, at which attempt."""

    cell: int
    block: int
    attempt: int

    def shown(self, run: str) -> str:
        """The trial of a run, in words."""
        return f"run {run}, trial (cell {self.cell}, block {self.block}, attempt {self.attempt})"


class Outcome(NamedTuple):
    """How a trial ended, as far as the protocol needs it.

    ``value`` is the primary indicator, ``seconds`` what the trial took of the time allowance, with
    its hooks. ``cause`` and ``detail`` say why it was not used, or used with a doubt.
    """

    key: TrialKey
    verdict: Verdict
    value: float | None
    seconds: float
    cause: str = ""
    detail: str = ""


class Told(NamedTuple):
    """What a list reads of an outcome; ``has_value``: it has the primary indicator."""

    cell: int
    block: int
    verdict: Verdict
    cause: str
    has_value: bool


class RunRow(NamedTuple):
    """A run as listed; ``head`` is the encoded :class:`concurve.store.run_head.RunHead`."""

    id: str
    study: str
    started: str
    state: str
    reason: str
    head: bytes


class CampaignRow(NamedTuple):
    """A campaign as listed; ``head`` is an encoded
    :class:`~concurve.store.campaign_head.CampaignHead`."""

    id: str
    name: str
    started: str
    state: str
    reason: str
    head: bytes


class MemberRow(NamedTuple):
    """A study of a campaign: the ``run`` it has (``""``: none yet) and what became of it:
    ``planned``, ``begun``, ``complete``, ``failed`` or ``not run``."""

    position: int
    name: str
    run: str = ""
    state: str = "planned"
    reason: str = ""


class TrialRow(NamedTuple):
    """A stored trial without its record."""

    outcome: Outcome
    figures: bytes


@dataclass(frozen=True)
class Outcomes(Sequence[Outcome]):
    """Outcomes in the order in which the trials were made, by column: of very many, to read a
    column takes a fraction of the time that all rows take."""

    cells: list[int]
    blocks: list[int]
    attempts: list[int]
    verdicts: list[Verdict]
    values: list[float | None]
    seconds: list[float]
    causes: list[str]
    details: list[str]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Outcomes:
        """These outcomes."""
        rows = [(*key, *rest) for key, *rest in outcomes]
        return cls(*_columns(rows, len(fields(cls))))

    @classmethod
    def stored(cls, rows: Sequence[tuple[Any, ...]]) -> Outcomes:
        """Those of rows as they are stored: the columns in the order of the fields."""
        return cls(*_columns(rows, len(fields(cls))))

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> list[Outcome]: ...
    def __getitem__(self, index: int | slice) -> Outcome | list[Outcome]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return Outcome(
            self.key(index),
            self.verdicts[index],
            self.values[index],
            self.seconds[index],
            self.causes[index],
            self.details[index],
        )

    def key(self, index: int) -> TrialKey:
        """The place of a trial in the plan."""
        return TrialKey(self.cells[index], self.blocks[index], self.attempts[index])

    def keys(self) -> list[TrialKey]:
        """The place of each trial."""
        return list(map(TrialKey, self.cells, self.blocks, self.attempts))


@dataclass(frozen=True)
class Trials(Sequence[TrialRow]):
    """Stored trials in the order in which they were made, by column."""

    outcomes: Outcomes
    figures: PackedFigures

    @classmethod
    def stored(
        cls,
        batches: Iterable[Sequence[tuple[Any, ...]]],
        others: Callable[[], Iterable[tuple[Any, ...]]] = tuple,
        heading: bytes = b"",
    ) -> Trials:
        """Those of rows as they are stored: cell, block, value, seconds, and the figures without
        the ``heading``. A trial that was not accepted at once, or whose figures begin otherwise,
        has no figures there; if there is one, ``others`` gives them all, in the same order:
        attempt, verdict, cause, detail, figures."""
        columns: tuple[list[Any], ...] = ([], [], [], [])
        together = bytearray()
        lengths: list[int] = []
        places: list[int] = []
        for rows in batches:
            *some, bodies = zip(*rows, strict=True)
            if None in bodies:
                begin = len(lengths)
                places += [begin + place for place, body in enumerate(bodies) if body is None]
                bodies = tuple(body or b"" for body in bodies)
            for column, entries in zip(columns, some, strict=True):
                column.extend(entries)
            lengths += map(len, bodies)
            together += b"".join(bodies)
        count = len(lengths)
        attempts, causes, details = [0] * count, [""] * count, [""] * count
        verdicts: list[Verdict] = ["ok"] * count
        whole: dict[int, bytes] = {}
        unusual = others() if places else ()
        for place, (attempt, verdict, cause, detail, figures) in zip(places, unusual, strict=False):
            attempts[place], verdicts[place] = attempt, verdict
            causes[place], details[place] = cause, detail
            whole[place] = as_bytes(figures)
        cells, blocks, values, seconds = columns
        outcomes = Outcomes(cells, blocks, attempts, verdicts, values, seconds, causes, details)
        return cls(outcomes, PackedFigures(heading, together, lengths, whole))

    @classmethod
    def of(cls, rows: Sequence[TrialRow]) -> Trials:
        """These trials."""
        outcomes = Outcomes.of(row.outcome for row in rows)
        return cls(outcomes, PackedFigures.of([row.figures for row in rows]))

    def __len__(self) -> int:
        return len(self.figures)

    @overload
    def __getitem__(self, index: int) -> TrialRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[TrialRow]: ...
    def __getitem__(self, index: int | slice) -> TrialRow | list[TrialRow]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return TrialRow(self.outcomes[index], self.figures[index])


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> list[list[Any]]:
    """The columns of rows that have so many entries each."""
    return [list(map(itemgetter(place), rows)) for place in range(count)]


def as_bytes(stored: Any) -> bytes:
    """Bytes as they are stored. SQLite keeps any type in any column: another one, in a damaged
    store, is read as the bytes of its text, so that whoever decodes them can name the run and the
    trial."""
    return stored if isinstance(stored, bytes) else str(stored).encode()


class RecordRow(NamedTuple):
    """A stored trial's raw record."""

    key: TrialKey
    record: bytes


#: What to try if a part of a trial is damaged.
DAMAGED_TRIAL_REMEDY = (
    "was the store cut or edited? A backup of it, or another run: concurve runs lists them"
)

"""The head of a run: what is known before its first trial. It is stored once, as JSON.

History of the format:

- 1 (2026-11): first version, without a number of its format.
- 2 (2026-11): ``format`` is written. Everything else is as in format 1.
- 3 (2026-11): ``protocol`` says which protocol the run follows; those of older formats follow the
  first one. ``allowed_at_start`` may be there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from concurve.definition.inventory import Inventory
from concurve.definition.study import Rules, Study
from concurve.formats import Versions, number_alone
from concurve.secrets import NAMING_OPTIONS
from concurve.secrets.likely import masked_line
from concurve.store.consistency import check_study
from concurve.store.rows import RunRow
from concurve.terms import Level, Waiting

#: The protocol that new runs follow (:mod:`concurve.planning.protocol`), and that of version 0.1.0.
PROTOCOL = 4
FIRST_PROTOCOL = 1
#: The first one in which redos that are quiet earn further ones.
EARNING_PROTOCOL = 3
#: The first one that ends where all cells but one failed at once.
ENDING_PROTOCOL = 4


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A level that was not measured: what the machine lacks, and what would help."""

    factor: str
    level: Level
    why: str
    remedy: str

    @property
    def says(self) -> str:
        """Why the level was not measured, as a sentence without its full stop."""
        return f"{self.why}; {self.remedy}" if self.remedy else self.why


class Confirms(msgspec.Struct, frozen=True, kw_only=True):
    """What the trials of a run are to confirm: the ``cause`` of a cell of another run, with these
    ``parameters``. ``lock`` names the lock that is held longer, and ``missing`` says why none is.
    ``cpu_ns`` is the CPU time of an operation in the base of the cell, and ``is_alone`` that one
    worker ran there, so that nothing contends in it. ``unrecorded`` says why no
    trial records where threads of a JVM wait, if threads of one do."""

    run: str
    parameters: dict[str, Level]
    cause: str
    lock: str = ""
    missing: str = ""
    cpu_ns: float | None = None
    is_alone: bool = False
    unrecorded: str = ""


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """That a run went on when so many ``trials`` were stored. ``changed`` are the programs that
    were no longer those with which the run began, each as ``FILE (role NAME)``."""

    trials: int
    changed: tuple[str, ...] = ()


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """Study, effort and seed, the rules in force, and the machine with everything that ran.

    ``started`` is an ISO 8601 time in UTC, to the millisecond since runs are listed in its order,
    ``again`` the command line that repeats the run, and ``programs`` says which file each role
    executes. ``left_out`` are optional levels that the machine could not run; the study is without
    them. ``protocol`` is the number of the protocol that orders its trials. ``allowed_at_start`` is
    the time allowance in seconds that the run began with, if it was resumed with another one.
    ``hosts`` are those that it runs on, if there are others than this machine.
    ``confirms`` is there if its trials are experiments on another run.
    ``folder`` is the working folder that the run began in, and goes on in; older runs have none.
    ``waiting`` is there if it waits for a quiet machine, and says how long it has.
    ``resumed`` says when it went on after a stop, oldest first. ``effect`` is the share below which
    a difference counts as none, if the run was asked to judge by one.
    """

    format: int
    id: str
    study: Study
    effort: str
    seed: int
    started: str
    again: str
    machine: dict[str, Any]
    programs: dict[str, Any]
    versions: dict[str, str]
    rules: Rules
    left_out: tuple[LeftOut, ...] = ()
    protocol: int = PROTOCOL
    allowed_at_start: float | None = None
    hosts: Inventory | None = None
    confirms: Confirms | None = None
    folder: str | None = None
    waiting: Waiting | None = None
    resumed: tuple[Resumption, ...] = ()
    effect: float | None = None

    @property
    def is_sweep(self) -> bool:
        """Was its study said by the options of a sweep, and not by the keys of a file?"""
        return is_of_sweep(self.study, self.again)

    def row(self) -> RunRow:
        """The run as it is stored when it begins."""
        return RunRow(
            self.id, self.study.name, self.started, "running", "", msgspec.json.encode(self)
        )


def is_of_sweep(study: Study, again: str) -> bool:
    """Was a study said by the options of a sweep? ``again`` is the command that measures it."""
    return study.work_amount == "unknown" or "sweep" in again.split()[:2]


def _check(head: RunHead) -> None:
    check_study(head.study, head.effort)
    if not 1 <= head.rules.repeats_min <= head.rules.repeats_max:
        raise ValueError(f"repeats {head.rules.repeats_min}..{head.rules.repeats_max}")
    if not FIRST_PROTOCOL <= head.protocol <= PROTOCOL:
        raise ValueError(f"there is no protocol {head.protocol}")


def _with_protocol(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "protocol": FIRST_PROTOCOL}


VERSIONS = Versions(RunHead, "run", (number_alone, _with_protocol), _check)

#: The format that this version writes.
FORMAT = VERSIONS.newest


def decode_head(row: RunRow) -> RunHead:
    """The head of a stored run, also one of an older format.

    Raises:
        StoreError: it has a newer format, or cannot be read.
    """
    head = VERSIONS.decode(row.head, row.id)
    # Older versions kept passwords in it.
    return msgspec.structs.replace(head, again=masked_line(head.again, NAMING_OPTIONS))

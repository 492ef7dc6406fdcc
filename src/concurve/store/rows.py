"""The rows of a store."""

from __future__ import annotations

from typing import Literal, NamedTuple

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


class RecordRow(NamedTuple):
    """A stored trial's raw record."""

    key: TrialKey
    record: bytes


#: What to try if a part of a trial is damaged.
DAMAGED_TRIAL_REMEDY = (
    "was the store cut or edited? A backup of it, or another run: concurve runs lists them"
)

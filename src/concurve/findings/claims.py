"""The findings of a run on the claims of its source."""

from __future__ import annotations

from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import Level

VerdictName = Literal["supported", "refuted", "undecided", "cannot be decided", "not testable here"]


class ClaimFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a claim of the source: ``estimate`` against ``threshold``, with the published
    figure. ``id`` is that of the ``claim``, with the levels at which it was judged if there are
    several. ``cell`` is the cell that the claim is about, if it is a single one; ``doubt`` says why
    a verdict was withheld on a machine that was not quiet.

    ``family`` is the number of claims whose verdicts hold together with 95 %; the ``estimate`` has
    the interval that decided among them. 0: no error is to be shared, or nothing was tested.
    ``trials``: how many of each cell would decide an undecided claim with a power of 80 %, if the
    truth is as estimated.

    ``setting`` has the levels at which it was judged, of the factors of its ``each``. Where a claim
    needs cells to differ by more than the share ``differ_by``, ``differ`` says by which share they
    do: the greatest less the least, over the least."""

    id: str
    says: str
    source: str
    kind: str
    verdict: VerdictName
    reason: str
    threshold: str = ""
    estimate: Estimate | None = None
    published: float | None = None
    claim: str = ""
    indicator: str = ""
    cell: dict[str, Level] = {}
    doubt: str = ""
    family: int = 0
    trials: int | None = None
    setting: dict[str, Level] = {}
    differ: Estimate | None = None
    differ_by: float | None = None


class Deciding(msgspec.Struct, frozen=True, kw_only=True):
    """What would decide undecided claims: ``trials`` of each cell would decide so many ``claims``,
    in a new run that takes about ``seconds``, where that is known."""

    trials: int
    claims: int
    seconds: float | None = None


class Dependence(msgspec.Struct, frozen=True, kw_only=True):
    """How a ratio that a claim of a simulation is about depends on one of its assumptions: at a
    ``level`` of ``factor`` the geometric mean over all ``settings`` of the others, and as
    ``change`` its ratio to that at the first level, which itself has no ``change``. The changes of
    a ``family`` of so many hold together with 95 %."""

    claim: str
    says: str
    factor: str
    level: Level
    settings: int
    ratio: Estimate
    change: Estimate | None = None
    family: int = 0


class AssumedRatio(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of the ``indicator`` of a simulation at a ``level`` of ``factor`` to that at its
    level ``base``, where an ``assumption`` is ``at`` one of its levels: the geometric mean over all
    ``settings`` of the others, each interval at 95 % by itself. ``published``: the ratio that the
    source has, if a claim names one; ``alike_within``: ratios that lie closer to 1 than by this
    share decide no claim, if one says so."""

    indicator: str
    factor: str
    base: Level
    level: Level
    assumption: str
    at: Level
    settings: int
    ratio: Estimate
    published: float | None = None
    alike_within: float | None = None

"""The findings of a run."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from concurve.findings.best import BestFinding
from concurve.findings.cells import CellFindings, Dot, Reject
from concurve.findings.claims import ClaimFinding, Dependence
from concurve.findings.explanation import Explanation
from concurve.findings.published import PublishedTable
from concurve.findings.scaling import ScalingFinding
from concurve.findings.workers import ProgramFact, WorkerShares
from concurve.terms import Factor, IndicatorInfo, TestCase


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which run this is, and how to run it again.

    ``pilot``: the first trials of a cell, whose spread set how many more it got. ``simulation``:
    the figures come from a clock of the program's own, so the state of the machine does not affect
    them.
    """

    id: str
    study: str
    effort: str
    seed: int
    started: str
    state: Literal["running", "complete", "interrupted", "failed"]
    reason: str
    trials: int
    rejected: int
    duration_seconds: float
    again: str
    version: str
    pilot: int | None = None
    simulation: bool = False


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of the answer. ``kind`` groups them: answer, warning, or note."""

    kind: Literal["answer", "warning", "note"]
    sentence: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What the stored figures of a run say. ``asked`` names the indicators that the study or the
    command line asked for by name, the primary one included."""

    run: RunInfo
    question: str
    source: str
    factors: tuple[Factor, ...]
    primary: str
    indicators: tuple[IndicatorInfo, ...]
    asked: tuple[str, ...] = ()
    cells: tuple[CellFindings, ...]
    sentences: tuple[Finding, ...]
    rejects: tuple[Reject, ...]
    dots: tuple[Dot, ...]
    machine: dict[str, Any]
    roles: tuple[str, ...]
    claims: tuple[ClaimFinding, ...] = ()
    dependences: tuple[Dependence, ...] = ()
    best: tuple[BestFinding, ...] = ()
    published: tuple[PublishedTable, ...] = ()
    test_case: TestCase | None = None

    def indicator(self, name: str) -> IndicatorInfo:
        """The indicator's description; an unknown name describes itself."""
        found = next((item for item in self.indicators if item.name == name), None)
        return found or IndicatorInfo(name=name, label=name)

    def columns(self, name: str) -> dict[int, list[float]]:
        """Values of an indicator in the trials in use, by cell, in the order of the trials."""
        columns: dict[int, list[float]] = {}
        for dot in self.dots:
            if dot.used and name in dot.values:
                columns.setdefault(dot.cell, []).append(dot.values[name])
        return columns

    def blocks(self, name: str) -> dict[int, dict[int, float]]:
        """The same by cell and block."""
        blocks: dict[int, dict[int, float]] = {}
        for dot in self.dots:
            if dot.used and name in dot.values:
                blocks.setdefault(dot.cell, {})[dot.block] = dot.values[name]
        return blocks

    @property
    def best_overall(self) -> BestFinding | None:
        """The finding over all cells of the run; ``None`` if conditions differ between cells."""
        return next((item for item in self.best if not item.group), None)

    @property
    def work(self) -> Factor | None:
        """The factor that counts as concurrency, if one does."""
        return next((factor for factor in self.factors if factor.work), None)


class Report(Findings, frozen=True, kw_only=True):
    """All findings of a run: its figures, the scaling models fitted to them, and from its records
    where the time went, the facts of the program and the shares of its workers.

    ``explanation`` is ``None`` if the primary indicator has no better direction, the time is that
    of a simulator, or no records were read. ``shares`` is ``None`` if the study has no indicator of
    fairness over workers.
    """

    scaling: tuple[ScalingFinding, ...]
    explanation: Explanation | None
    facts: tuple[ProgramFact, ...]
    shares: WorkerShares | None

    @classmethod
    def of(
        cls,
        findings: Findings,
        *,
        scaling: tuple[ScalingFinding, ...] = (),
        explanation: Explanation | None = None,
        facts: tuple[ProgramFact, ...] = (),
        shares: WorkerShares | None = None,
    ) -> Report:
        """The report of a run from the findings of its figures and further findings."""
        given = {name: getattr(findings, name) for name in Findings.__struct_fields__}
        return cls(**given, scaling=scaling, explanation=explanation, facts=facts, shares=shares)

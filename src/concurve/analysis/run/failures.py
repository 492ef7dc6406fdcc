"""How much of a load failed, cell by cell: a rate of errors is no rate of the work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve import words
from concurve.analysis.run.tables import Table
from concurve.analysis.sentences.naming import name
from concurve.definition.failures import EXPECTED, PERCENT, FailureCount, failure_counts
from concurve.definition.study import Study
from concurve.findings.run import Finding
from concurve.planning.plan import Plan
from concurve.terms import IndicatorInfo

#: A setting of whose load so much failed is not compared: its figures are those of errors. What
#: failed less is said, and moves a rate by no more than that.
FAILED_SHARE = 0.1

#: A sentence names at most so many cells.
CELLS_NAMED = 3


class FailedLoad(NamedTuple):
    """What failed in the trials of a cell by one indicator, in all; ``total`` is ``None`` where
    nothing counts what it is a part of, and so is ``share``. ``of`` is the indicator of which it is
    a part, and ``done`` what that counts in all; a share by itself has neither."""

    cell: int
    indicator: str
    failed: float
    total: float | None
    share: float | None
    of: str = ""
    done: float = 0.0


def failed_loads(study: Study, tables: Sequence[Table]) -> list[FailedLoad]:
    """Whatever failed in the trials in use, by indicator and cell."""
    units = {item.name: item.unit for item in study.indicators}
    found = []
    for count in failure_counts(study):
        for cell, table in enumerate(tables):
            load = _failed(count, units.get(count.name, ""), cell, table)
            if load is not None:
                found.append(load)
    return found


def _failed(count: FailureCount, unit: str, cell: int, table: Table) -> FailedLoad | None:
    by_block = table.by_block(count.name)
    if not by_block or not any(by_block.values()):
        return None
    if count.how == "share":
        share = math.fsum(by_block.values()) / len(by_block)
        share /= 100 if unit == PERCENT else 1
        # More than all is no share of anything.
        return FailedLoad(cell, count.name, share, None, share if share <= 1 else None)
    totals = table.by_block(count.of)
    failed = math.fsum(by_block.values())
    if not by_block.keys() <= totals.keys():
        return FailedLoad(cell, count.name, failed, None, None)
    # Tools print no count where nothing failed: such a trial did its part all the same.
    done = total = math.fsum(totals.values())
    if count.how == "beside":
        total += failed
    share = failed / total if total > 0 else 1.0
    return FailedLoad(cell, count.name, failed, total, share, count.of, done)


def _failed_parts(loads: Sequence[FailedLoad]) -> list[FailedLoad]:
    """Those of cells of whose load so much failed that they are not compared: what failed of the
    same operations counts together."""
    found = []
    for cell, of in dict.fromkeys((load.cell, load.of) for load in loads):
        own = [load for load in loads if (load.cell, load.of) == (cell, of)]
        known = [load for load in own if load.share is not None]
        if of and known:
            failed = math.fsum(load.failed for load in known)
            beside = math.fsum((load.total or 0.0) - load.done for load in known)
            of_all = max(load.done for load in known) + beside
            share = failed / of_all if of_all > 0 else 1.0
        else:
            share = max((load.share or 0.0 for load in known), default=0.0)
        found += known if share >= FAILED_SHARE else []
    return found


def not_compared(loads: Sequence[FailedLoad], infos: Sequence[IndicatorInfo]) -> dict[int, str]:
    """The cells whose load failed, and what of it: ``failed responses: all 12,107``."""
    labels = {info.name: info.label for info in infos}
    found: dict[int, list[str]] = {}
    for load in _failed_parts(loads):
        label = labels.get(load.indicator, load.indicator)
        found.setdefault(load.cell, []).append(f"{label}: {_amount(load)}")
    return {cell: "; ".join(said) for cell, said in found.items()}


def failure_sentences(
    plan: Plan, loads: Sequence[FailedLoad], infos: Sequence[IndicatorInfo]
) -> list[Finding]:
    """What failed where: the answer of a run whose settings are not compared for it, and else a
    warning."""
    labels = {info.name: info.label for info in infos}
    failed = _failed_parts(loads)
    others = [load for load in loads if load not in failed]
    found = []
    if failed:
        said = " ".join(_each(plan, failed, labels))
        own = len({load.cell for load in failed})
        if own == len(plan.cells):
            what = "This run says nothing of the work, and no setting is recommended"
        elif own == 1:
            what = "This setting is not compared with the others"
        else:
            what = "These settings are not compared with the others"
        found.append(
            Finding(
                kind="answer",
                sentence=f"{said} {what}: see what the load asks for, and what it "
                f"gets{_expecting(plan.study, failed)}.",
            )
        )
    if others:
        found.append(Finding(kind="warning", sentence=" ".join(_each(plan, others, labels))))
    return found


def _expecting(study: Study, failed: Sequence[FailedLoad]) -> str:
    """How a study says that it expects what a program of ours counts: nobody but the author of a
    study file has such a program, and what is extracted counts failures because the author said
    so."""
    extracted = {extract.name for extract in study.extracts}
    names = dict.fromkeys(load.indicator for load in failed if load.indicator not in extracted)
    if not names:
        return ""
    used = ", ".join(f'"{name}"' for name in names)
    return f'; if the study expects that: use = [{used}], failures = "{EXPECTED}"'


def _each(plan: Plan, loads: Sequence[FailedLoad], labels: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each indicator: ``Failed responses: all 12,107 with workers=1.``"""
    for indicator in dict.fromkeys(load.indicator for load in loads):
        own = sorted(
            (load for load in loads if load.indicator == indicator),
            key=lambda load: -(load.share or 0.0),
        )
        label = labels.get(indicator, indicator)
        shown = own if len(own) <= CELLS_NAMED else own[:1]
        named = words.listed([_one(plan, load) for load in shown])
        more = len(own) - len(shown)
        others = f", the most of {words.count(len(own), 'setting')}" if more else ""
        yield f"{label[:1].upper()}{label[1:]}: {named}{others}."


def _one(plan: Plan, load: FailedLoad) -> str:
    """``all 12,107 with workers=1``, ``12 of 44,377 (0.03 %) with workers=2``"""
    where = f" with {name(plan, plan.cells[load.cell].parameters)}" if len(plan.cells) > 1 else ""
    return f"{_amount(load)}{where}"


def _amount(load: FailedLoad) -> str:
    if load.total is None:
        return f"{load.failed:,.0f}" if load.share is None else words.share(load.share)
    if load.failed >= load.total:
        return f"all {load.failed:,.0f}"
    return f"{load.failed:,.0f} of {load.total:,.0f} ({words.share(load.share or 0.0)})"

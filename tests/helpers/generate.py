"""Fills a store with a run of any size whose every figure is known."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec

from concurve.definition.purposes import purposes_of
from concurve.definition.study import Rules
from concurve.figures import encode_figures
from concurve.host.machine import allowed_cpus
from concurve.measuring.heads import new_head
from concurve.measuring.packaged import command
from concurve.planning.plan import Cell, plan_of, trial_spec
from concurve.readings.measures import measure
from concurve.readings.operations import Asked
from concurve.store import Store
from concurve.store.run_head import RunHead
from concurve.store.tables import insert
from tests.helpers.fakes import record_of, small_study

#: Trials of a cell differ from its mean by these shares in turn; they add up to nothing.
DEVIATIONS = (-0.02, -0.01, 0.0, 0.01, 0.02)


def wall_seconds(cell: Cell, block: int) -> float:
    """The time of a trial: the cell's mean and a deviation."""
    return mean_seconds(cell) * (1 + DEVIATIONS[block % len(DEVIATIONS)])


def mean_seconds(cell: Cell) -> float:
    """Amdahl's law with 5 % serial, of ten seconds."""
    threads = cell.parameters["threads"]
    assert isinstance(threads, int)
    return 10.0 * (0.05 + 0.95 / threads)


def fill(path: Path, threads: int, repeats: int) -> RunHead:
    """Write a complete run of as many cells as ``threads``, in one transaction.

    ``repeats``, a multiple of 5, is the number of trials a cell.
    """
    rules = Rules(repeats_min=repeats, repeats_max=repeats, time_allowed_seconds=1e9)
    study = small_study(rules, threads=tuple(range(1, threads + 1)))
    head = new_head(study, "normal", 1, "concurve sweep …")
    store = Store(str(path))
    store.add_run(head.row()._replace(state="complete", reason="all trials done"))
    store.close()
    plan = plan_of(head)
    rows: list[dict[str, object]] = []
    records: list[dict[str, object]] = []
    bodies = {
        (cell.index, block): _body(head, cell, block)
        for cell in plan.cells
        for block in range(len(DEVIATIONS))
    }
    for block in range(repeats):
        for index in plan.order(block):
            figures, record = bodies[index, block % len(DEVIATIONS)]
            number = len(rows) + 1
            rows.append(
                {"id": number, "run": head.id, "cell": index, "block": block, "attempt": 0,
                 "verdict": "ok", "cause": "", "detail": "", "figures": figures,
                 "value": wall_seconds(plan.cells[index], block), "seconds": 0.01}
            )  # fmt: skip
            records.append({"trial": number, "record": record})
    store = Store(str(path))
    with store._writing() as connection:
        connection.run_each(insert("concurve_trials", rows[0]), rows)
        connection.run_each(insert("concurve_records", records[0]), records)
    store.close()
    return head


def _body(head: RunHead, cell: Cell, block: int) -> tuple[bytes, bytes]:
    """Figures and record of a trial, as stored."""
    spec = trial_spec(plan_of(head), cell, f"{head.id}/{cell.index}", allowed_cpus(), command)
    record = record_of(spec, wall_seconds(cell, block))
    figures = measure(record, Asked(purposes_of(head.study)), plan_of(head).workers(cell)).values
    return encode_figures(figures), zlib.compress(msgspec.json.encode(record), 1)

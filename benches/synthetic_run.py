"""Fills a store with a made-up run of any size, which the protocol accepts as its own.

    python benches/synthetic_run.py STORE CELLS REPEATS

Records and figures have the shape of real ones. Everything is written in one transaction: this
is no measure of how fast trials are stored.
"""

from __future__ import annotations

import random
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec

from concurve.definition.purposes import alone
from concurve.definition.study_check import with_rules
from concurve.definition.study_line import sweep_study
from concurve.figures import encode_figures
from concurve.measuring.heads import new_head
from concurve.planning.plan import plan_of
from concurve.planning.protocol import Protocol, Stop
from concurve.readings.measures import measure
from concurve.readings.operations import Asked
from concurve.store import Store
from concurve.store.rows import Outcome, RunRow, TrialKey
from concurve.store.run_head import RunHead
from concurve.store.tables import insert
from concurve.wire.record import (
    Exit,
    InstrumentRecord,
    MachineRecord,
    RoleRecord,
    ThreadRecord,
    ThreadsRecord,
    TrialRecord,
    Usage,
)
from concurve.wire.record import Outcome as Ending
from concurve.wire.spec import FORMAT

THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
DISTINCT_RECORDS = 50
"""Records are taken in turn from so many: making each anew would take minutes."""


def fill(store_path: Path, cells: int, repeats: int, seed: int = 1) -> str:
    """Write a complete run of so many cells (a multiple of 10) and trials a cell; return its id."""
    head = head_of(cells, repeats, seed)
    store = Store(str(store_path))
    store.add_run(
        RunRow(head.id, head.study.name, head.started, "complete", "as planned",
               msgspec.json.encode(head))
    )  # fmt: skip
    write_trials(store_path, head, seed)
    store.close()
    return head.id


def head_of(cells: int, repeats: int, seed: int) -> RunHead:
    """A sweep over ten numbers of threads and as many sizes as make the cells."""
    study = sweep_study(
        ["true", "{threads}", "{size}"],
        [("threads", ",".join(map(str, THREADS))), ("size", f"1..{cells // len(THREADS)}")],
        2,
        name="synthetic",
    )
    study = with_rules(
        study, {"repeats_min": repeats, "repeats_max": repeats, "time_allowed_seconds": 1e9}
    )
    return new_head(study, "normal", seed, "synthetic")


def write_trials(store_path: Path, head: RunHead, seed: int) -> None:
    """Play the protocol to its end and write what it asked for."""
    rng = random.Random(seed)
    plan = plan_of(head)
    protocol = Protocol(plan)
    bodies = [zlib.compress(msgspec.json.encode(record(f"{head.id}/{n}", rng, 8)), 1)
              for n in range(DISTINCT_RECORDS)]  # fmt: skip
    rows: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    while not isinstance(key := protocol.next(), Stop):
        threads = plan.cells[key.cell].parameters["threads"]
        outcome, figures = made_up(key, rng, int(threads))
        protocol.record(outcome)
        rows.append(
            {"id": len(rows) + 1, "run": head.id, **key._asdict(), "verdict": outcome.verdict,
             "cause": "", "detail": "", "value": outcome.value, "seconds": outcome.seconds,
             "figures": figures}
        )  # fmt: skip
        records.append({"trial": len(rows), "record": bodies[len(rows) % DISTINCT_RECORDS]})
    store = Store(str(store_path))
    with store._writing() as connection:
        connection.run_each(insert("concurve_trials", rows[0]), rows)
        connection.run_each(insert("concurve_records", records[0]), records)
    store.close()


def made_up(key: TrialKey, rng: random.Random, threads: int) -> tuple[Outcome, bytes]:
    """An accepted trial of Amdahl's law on two CPUs, and its figures."""
    body = record("synthetic", rng, threads)
    values = measure(body, Asked(alone("target")), float(threads)).values
    value = values["wall_seconds"]
    return Outcome(key, "ok", value, value + 0.005), encode_figures(values)


def record(trial: str, rng: random.Random, threads: int) -> TrialRecord:
    """A plausible record of a CPU-bound program; at most eight threads are listed."""
    cpu_ns = round(1e9 * rng.gauss(1.0, 0.01))
    wall_ns = round(cpu_ns * (0.05 + 0.95 / min(threads, 2)))
    usage = Usage(
        cpu_ns=cpu_ns, user_ns=cpu_ns - 1_000_000, system_ns=1_000_000,
        run_queue_ns=rng.randrange(10_000_000), slices=rng.randrange(200),
        voluntary_switches=rng.randrange(50), involuntary_switches=rng.randrange(150),
        migrations=rng.randrange(10), minor_faults=200, major_faults=0, rss_bytes_max=3 << 20,
        block_inputs=0, block_outputs=0,
    )  # fmt: skip
    listed = tuple(
        ThreadRecord(tid=1000 + n, pid=1000, name=f"worker-{n}", source="exit", nice=0, usage=usage)
        for n in range(min(threads, 8))
    )
    role = RoleRecord(
        name="target", pid=1000, exit=Exit(code=0), ended_by="itself", wall_ns=wall_ns,
        usage=usage, threads=ThreadsRecord(total=threads + 1, peak=threads + 1, processes=1,
                                           cpu_ns=cpu_ns, listed=listed),
    )  # fmt: skip
    machine = MachineRecord(cpus=2, busy_ns=cpu_ns, steal_ns=0, foreign_cpu_ns=0, tick_ns=10**7)
    instrument = InstrumentRecord(samples=50, runner_cpu_ns=10**6, sampling_cpu_ns=5 * 10**5)
    return TrialRecord(
        format=FORMAT, trial=trial, runner="synthetic", outcome=Ending(kind="ok"), roles=(role,),
        wall_ns=wall_ns, machine=machine, instrument=instrument,
    )  # fmt: skip


if __name__ == "__main__":
    counts = [int(text) for text in sys.argv[2:] if text.isdigit()]
    if len(counts) != 2 or not all(counts) or counts[0] % len(THREADS):
        sys.exit(f"CELLS must be a multiple of {len(THREADS)}; usage: {(__doc__ or '').strip()}")
    print(fill(Path(sys.argv[1]), *counts))

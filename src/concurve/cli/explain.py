"""``concurve explain``: where the time of an operation goes, and what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from concurve.cli import options
from concurve.errors import StudyError

if TYPE_CHECKING:
    from concurve.findings.explanation import Explanation
    from concurve.store.run_head import RunHead

HELP = """Say for each cell of a run where its time goes, and what limits it.

\b
Examples:
  concurve explain
  concurve explain 20261121-0912 --json
  concurve explain last --at threads=4
  concurve explain last --confirm --budget 5m
  concurve explain last --confirm --at threads=4 --dry-run

The thread time of an operation is divided into CPU time, waiting for a CPU, and being blocked on
a lock, the disk, the network …; what exceeds that of the base cell names the cause: cpu, lock,
coherency, memory (bandwidth), smt, clock, kernel, quota (of CPU time), io, client, contamination
(other processes on the machine), or none (not found, where there is a loss). Where most of the
lost speed-up is time in which workers did not exist, had ended, or waited for one thread, that is
the cause: serial, imbalance, stage, or collector (of garbage). Each cause has its share of the
loss, and the next one is named. Where a lock is the cause, it says in which function and line of
the program threads waited for it. What to do about each cause stands in docs/limits.md.

--confirm tries it out: further trials hold the lock longer, put all threads on one CPU, or take
CPU time or memory bandwidth away. They say whether the cause is one, and what a lock that is held
half as long would gain. Where threads of a JVM wait, its flight recorder says in which line. The
trials are stored as a run of their own.
"""


@click.command(
    "explain", help=HELP, short_help="Say where the time of each cell goes, and what limits it."
)
@options.run_name
@click.option("--json", is_flag=True, help="Print JSON.")
@click.option(
    "--confirm",
    is_flag=True,
    help="Confirm the cause of a cell by experiments, which run the program again.",
)
@click.option(
    "--at",
    metavar="NAME=LEVEL,..",
    help="Show the cells with these levels alone (default: all); with --confirm, that whose cause "
    "is tried out (default: the last one with a cause).",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="With --confirm: the time that the experiments may take (default: 10m).",
)
@click.option("--dry-run", is_flag=True, help="With --confirm: print the experiments; run nothing.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="With --confirm: seed of the order of trials (default: drawn, and recorded).",
)
@options.db
def verb(
    run: str,
    json: bool,
    confirm: bool,
    at: str | None,
    budget: str | None,
    dry_run: bool,
    seed: int | None,
    db: str | None,
) -> None:
    """Print the explanation of a run, or confirm it."""
    from concurve.cli.showing import note_measured, print_document
    from concurve.cli.streams import tell_json
    from concurve.explain import explain_run
    from concurve.report.json.explanation import to_json
    from concurve.report.sections.confirmation import confirmation_document
    from concurve.report.sections.limits import explanation_document
    from concurve.store import Store
    from concurve.store.run_head import decode_head

    if json and dry_run:
        raise StudyError("--dry-run prints what would be run, and no JSON", "one of the two")
    store = Store.existing(db)
    row = store.find_run(run)
    if confirm:
        from concurve.cli.confirming import Confirming, confirm_cause

        made = confirm_cause(store, row, Confirming(at, budget, dry_run, seed, db))
        if made is None:
            return
        row = store.find_run(made)
    else:
        _refuse_without_confirm({"--budget": budget, "--dry-run": dry_run or None,
                                 "--seed": seed})  # fmt: skip
        note_measured()
    found = explain_run(store, row)
    if at and not confirm:
        found = _only_at(found, decode_head(row), at)
    if json:
        tell_json(to_json(found))
    elif decode_head(row).confirms is not None:
        print_document(confirmation_document(found.confirmations[0]))
    else:
        print_document(explanation_document(found))


def _only_at(found: Explanation, head: RunHead, at: str) -> Explanation:
    """What is said of the cells with these levels."""
    import msgspec

    from concurve.definition.study_line import parse_base
    from concurve.explain.experiments import cells_at

    levels = {factor.name: factor.levels for factor in head.study.factors_at(head.effort)}
    cells = cells_at(found, parse_base(at, levels, "--at"))
    return msgspec.structs.replace(found, cells=tuple(cells))


def _refuse_without_confirm(given: dict[str, object]) -> None:
    """Refuse options that say how to confirm, where nothing is confirmed.

    Raises:
        StudyError: there is one.
    """
    from concurve.errors import StudyError

    for option, value in given.items():
        if value is not None:
            raise StudyError(f"{option} says how to confirm a cause", f"{option} with --confirm")

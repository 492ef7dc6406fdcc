"""``concurve explain --confirm``: plans the experiments on a run, and runs them."""

from __future__ import annotations

import shlex
import sys
from typing import NamedTuple

import msgspec

from concurve.cli.showing import note
from concurve.cli.streams import tell, with_store
from concurve.definition.study_line import parse_base
from concurve.definition.units import parse_duration
from concurve.engine.local import LocalEngine
from concurve.errors import HostError, RunError
from concurve.explain import explain_run
from concurve.explain.experiments import (
    NO_RECORDER,
    Experiments,
    Reach,
    Recorder,
    cell_to_confirm,
    experiments,
    is_to_be_recorded,
    reach_of,
    refuse_useless,
)
from concurve.findings.explanation import CellExplanation
from concurve.host.machine import allowed_cpus
from concurve.host.preloading import why_not_preloaded
from concurve.measuring import flight_recorder, packaged
from concurve.measuring.folder import inside
from concurve.measuring.heads import draw_seed, new_head
from concurve.measuring.laboratory import Runner
from concurve.report.progress import Progress
from concurve.stats.moments import mean
from concurve.store import Store
from concurve.store.rows import RunRow
from concurve.store.run_head import RunHead, decode_head

BUDGET = "10m"


class Confirming(NamedTuple):
    """What the options say: the cell, the time, whether nothing is run, the seed, and the store."""

    at: str | None
    budget: str | None
    dry_run: bool
    seed: int | None
    db: str | None

    def again(self, run: str, seed: int) -> str:
        """The command that confirms the cause of this run again: ``last`` is another one then."""
        given = {"--at": self.at, "--budget": self.budget, "--db": self.db}
        words = [word for name, text in given.items() if text for word in (name, text)]
        return shlex.join(["concurve", "explain", run, "--confirm", "--seed", str(seed), *words])


def confirm_cause(store: Store, row: RunRow, asked: Confirming) -> str | None:
    """Run the experiments on a run; the id of the run that has them, ``None`` for a dry run.

    Raises:
        RunError: no experiment can confirm what limits the run, or reaches its lock.
        StudyError: the budget is too short, or the cell is not written as one.
    """
    head = decode_head(row)
    cell = _cell(store, row, head, asked.at)
    reach = reach_of(cell, why_not_preloaded) if cell.cause == "lock" else Reach()
    recorder = _recorder(head, cell)
    made = experiments(
        head,
        cell,
        reach,
        str(packaged.program("perturb", "experiments")),
        allowed_cpus(),
        _seconds(store, row, cell),
        parse_duration(asked.budget or BUDGET, "--budget"),
        recorder,
    )
    if recorder.why_not:
        note(f"note: no line of Java will be named: {recorder.why_not}")
    refuse_useless(made, reach)
    if reach.why_not:
        note(f"note: the lock cannot be held longer: {reach.why_not}")
    seed = draw_seed() if asked.seed is None else asked.seed
    if asked.dry_run:
        with inside(head.folder, f"run {head.id}"):
            _print_plan(made, head, seed, store)
        return None
    with inside(head.folder, f"run {head.id}"):
        new = new_head(made.study, head.effort, seed, asked.again(head.id, seed))
        new = msgspec.structs.replace(new, confirms=made.confirms)
        Runner(new, store, LocalEngine(), Progress(sys.stderr, reword=with_store)).start()
    return new.id


def _cell(store: Store, row: RunRow, head: RunHead, at: str | None) -> CellExplanation:
    levels = {factor.name: factor.levels for factor in head.study.factors_at(head.effort)}
    wanted = parse_base(at, levels, "--at") if at else {}
    return cell_to_confirm(explain_run(store, row), wanted)


def _recorder(head: RunHead, cell: CellExplanation) -> Recorder:
    """What records where threads of a JVM wait, if they do."""
    if not is_to_be_recorded(cell):
        return NO_RECORDER
    argv = [word for role in head.study.roles for word in role.command]
    try:
        return Recorder(flight_recorder.beginning(argv))
    except HostError as error:
        return Recorder(why_not=f"{error.what}; {error.remedy}")


def _seconds(store: Store, row: RunRow, cell: CellExplanation) -> float:
    """What a trial of the cell took."""
    outcomes = store.trials(row.id).outcomes
    taken = [
        seconds
        for key, seconds in zip(outcomes.keys(), outcomes.seconds, strict=True)
        if key.cell == cell.index
    ]
    if not taken:
        raise RunError(f"run {row.id} has no trial of that cell", f"concurve resume {row.id}")
    return mean(taken)


def _print_plan(made: Experiments, head: RunHead, seed: int, store: Store) -> None:
    from concurve.cli.planning import print_plan

    confirms = made.confirms
    held = f" ({confirms.lock})" if confirms.lock else ""
    tell(f"confirm {confirms.cause}{held} of run {confirms.run}")
    print_plan(made.study, head.effort, seed, store)

"""What the verbs that measure have in common: options → run → table and files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from concurve import words
from concurve.analysis.ground import undirected_before
from concurve.cli.showing import note, show_run
from concurve.cli.streams import with_store
from concurve.definition.hiding import check_marked, hidden
from concurve.definition.inventory import Inventory, used_hosts
from concurve.definition.load_commands import load_commands_before
from concurve.definition.placing import placed_on
from concurve.definition.study import Study, with_java
from concurve.definition.study_check import with_rules
from concurve.definition.study_line import rules_from_options
from concurve.definition.sweep_factors import conditions_before
from concurve.engine.local import LocalEngine
from concurve.errors import ConcurveError, FailedCellsError, StoreError, StudyError
from concurve.exports import Format, check_writable, write_run
from concurve.host.granted import granted_cpus
from concurve.host.machine import allowed_cpus
from concurve.measuring.heads import again_line, draw_seed, new_head, resumed_head, with_wait
from concurve.measuring.laboratory import Runner, nothing_left
from concurve.measuring.launches import check_plan
from concurve.measuring.quiet import Asked, asked_quiet, attached_in, quiet_machine
from concurve.measuring.site import this_machine
from concurve.measuring.wrappers import wrapper_before
from concurve.planning.forecast import forecast, shortfall
from concurve.planning.plan import Machine, describe, plan_of
from concurve.planning.protocol import replay
from concurve.report.progress import Progress
from concurve.store import Store
from concurve.store.run_head import RunHead, is_of_sweep
from concurve.terms import GIVEN_UP, Waiting

if TYPE_CHECKING:
    from concurve.hosts.engine import HostsEngine


class Exports(msgspec.Struct, frozen=True, kw_only=True):
    """The files asked for."""

    export_json: Path | None = None
    export_csv: Path | None = None
    export_markdown: Path | None = None
    export_html: Path | None = None

    def files(self) -> dict[Format, Path]:
        """The files by format; each is checked to be writable before anything is measured."""
        asked: dict[Format, Path | None] = {
            "json": self.export_json,
            "csv": self.export_csv,
            "markdown": self.export_markdown,
            "html": self.export_html,
        }
        files = {kind: path for kind, path in asked.items() if path is not None}
        places = [path.absolute() for path in files.values()]
        for path in files.values():
            if places.count(path.absolute()) > 1:
                raise StudyError(
                    f"{path} is asked for in two formats, and would hold the last one",
                    "a name for each",
                )
            check_writable(path)
        return files


class Choices(Exports, frozen=True, kw_only=True):
    """The options that all verbs that start a run share."""

    effort: str = "normal"
    repeats: str | None = None
    precision: str | None = None
    timeout: str | None = None
    max_time: str | None = None
    wait_quiet: str | None = None
    measure_anyway: bool = False
    hosts: Path | None = None
    ray: str | None = None
    places: tuple[str, ...] = ()
    seed: int | None = None
    dry_run: bool = False
    java: str | None = None
    secrets: tuple[str, ...] = ()
    db: str | None = None


@contextlib.contextmanager
def quiet_as_asked(asked: Asked | None, studies: Sequence[Study]) -> Iterator[Waiting | None]:
    """Wait for a quiet machine and have it, if ``--wait-quiet`` asks for it: what was waited. What
    the studies attach is no stranger."""
    if asked is None:
        yield None
        return
    line = Progress(sys.stderr, reword=with_store)

    def say(text: str) -> None:
        line.finish()
        note(text)

    with contextlib.ExitStack() as held:
        try:
            attached = attached_in(studies)
            waiting = held.enter_context(quiet_machine(asked, say, line.waits, attached=attached))
        finally:
            line.finish()
        yield waiting


def measure_study(
    study_for: Callable[[int], Study],
    choices: Choices,
    *,
    is_silent: bool = False,
    effect: float | None = None,
    say: Callable[[RunHead], None] | None = None,
) -> RunHead | None:
    """Start a run of a study, or print its plan: its head, none of a plan. ``study_for`` makes it
    for a number of CPUs, which are those of the host of its measured role. ``is_silent``: it is
    of a file that does not say what its conditions are. ``effect``: the share below which a
    difference counts as none, if one is asked for. ``say`` tells of the cells that ran, where
    others failed."""
    rules = rules_from_options(
        choices.repeats, choices.precision, choices.timeout, choices.max_time
    )

    def made(cpus: int) -> Study:
        study = placed_on(with_rules(study_for(cpus), rules), choices.places)
        if choices.java is not None:
            study = with_java(study, choices.java)
        factors = [factor.name for factor in study.factors]
        return hidden(study, check_marked(choices.secrets, factors))

    study = made(granted_cpus())
    inventory = hosts_of(choices)
    asked = asked_quiet(choices.wait_quiet, choices.measure_anyway)
    if inventory is not None and (named := cpus_of_target([study], inventory)):
        study = made(named)
    files = choices.files()
    store = Store(choices.db)
    seed = draw_seed() if choices.seed is None else choices.seed
    if choices.dry_run:
        from concurve.cli.planning import print_plan

        notes = notes_before(study, choices.effort, again_line(seed), is_silent=is_silent)
        print_plan(study, choices.effort, seed, store, inventory, notes)
        return None
    with connected_hosts([study], inventory) as hosts:
        if hosts is not None:
            study = made(cpus_of_target([study], hosts.inventory, hosts.machines) or granted_cpus())
        head = new_head(study, choices.effort, seed, again_line(seed), inventory, hosts)
        if choices.wait_quiet is not None:
            # What cannot run is refused at once, and not after the wait.
            check_plan(plan_of(head), LocalEngine(), allowed_cpus())
        with quiet_as_asked(asked, [head.study]) as waiting:
            head = msgspec.structs.replace(head, waiting=waiting, effect=effect)
            notes = notes_before(head.study, head.effort, head.again, is_silent=is_silent)
            try:
                _measure(head, store, files, hosts, resume=False, notes=notes)
            except FailedCellsError:
                if say is not None:
                    say(head)
                raise
    return head


def notes_before(study: Study, effort: str, again: str, *, is_silent: bool) -> list[str]:
    """What a study lacks for the answer that its author may expect, and what its figures hold that
    is not the program's: it would be read after all its trials only. ``again`` is the command that
    measures it, ``is_silent`` as in :func:`measure_study`."""
    undirected = undirected_before(study, effort, is_sweep=is_of_sweep(study, again))
    conditions = conditions_before(study, effort) if is_silent else ""
    found = (undirected, conditions, wrapper_before(study), load_commands_before(study))
    return [text for text in found if text]


def cpus_of_target(
    studies: Sequence[Study],
    inventory: Inventory,
    machines: Mapping[str, Machine] | None = None,
) -> int | None:
    """How many CPUs may be measured on the hosts of the measured roles, the least of them: as the
    hosts that are connected grant them, or as the file names them; ``None`` where it does not."""
    hosts = {
        host.name: host
        for study in studies
        for role in study.roles
        if role.name == study.target
        for host in inventory.meant_by(role.host, f"role {role.name}")
    }
    counts = [
        len(machines[name].cpus if machines and name in machines else host.cpus)
        for name, host in hosts.items()
    ]
    return min(counts, default=0) or None


def hosts_of(choices: Choices) -> Inventory | None:
    """The hosts of the file, or of the Ray cluster, that is named, if there is one."""
    option = "--hosts" if choices.hosts is not None else "--ray"
    if choices.hosts is None and choices.ray is None:
        return None
    if choices.hosts is not None and choices.ray is not None:
        raise StudyError(
            "--hosts and --ray: the hosts of a file, or the nodes of a cluster that runs",
            "one of the two",
        )
    if choices.wait_quiet is not None:
        raise StudyError(
            f"--wait-quiet looks at this machine, and {option} measures on others", "one of the two"
        )
    return inventory_of(choices.hosts, choices.ray)


def inventory_of(file: Path | None, ray: str | None) -> Inventory:
    """The hosts of a file, or the nodes of the Ray cluster at an address."""
    if ray is not None:
        from concurve.hosts.ray_cluster import nodes_at

        return nodes_at(ray)
    from concurve.definition.hosts_file import load_hosts

    assert file is not None
    return load_hosts(file)


@contextlib.contextmanager
def connected_hosts(
    studies: Sequence[Study], inventory: Inventory | None
) -> Iterator[HostsEngine | None]:
    """The hosts that studies use, connected; ``None`` where they run on this machine."""
    if inventory is None:
        yield None
        return
    from concurve.hosts.ray_cluster import connected

    used = {host.name for study in studies for host in used_hosts(study, inventory)}
    with connected(inventory, [host for host in inventory.hosts if host.name in used]) as engine:
        yield engine


def resume_run(
    head: RunHead,
    store: Store,
    files: dict[Format, Path],
    allowed: float | None = None,
    asked: Asked | None = None,
) -> None:
    """Resume a run where it began: on this machine, once it is quiet if that is ``asked`` for, or
    on its hosts. ``head`` has the time allowance that is ``allowed``, in seconds, if there is one.
    A run that is complete needs neither the machine nor its hosts."""
    refuse_wait_for_hosts(asked, head.hosts)
    if _is_shown_complete(head, store, files):
        return
    if asked is not None:
        # What cannot run is refused at once, and not after the wait.
        Runner(head, store, LocalEngine()).check()
    with quiet_as_asked(asked, [head.study]) as waiting:
        if waiting is not None:
            # What was waited for may have been this run.
            head = with_wait(resumed_head(store, head.id, allowed), waiting)
            if _is_shown_complete(head, store, files):
                return
        with connected_hosts([head.study], head.hosts) as hosts:
            _measure(head, store, files, hosts, resume=True)


def refuse_wait_for_hosts(asked: Asked | None, inventory: Inventory | None) -> None:
    """Refuse to wait for this machine where others are measured.

    Raises:
        StudyError: so it is.
    """
    if asked is not None and inventory is not None:
        raise StudyError(
            "--wait-quiet looks at this machine, and what is resumed measures on others",
            "without it",
        )


def _is_shown_complete(head: RunHead, store: Store, files: dict[Format, Path]) -> bool:
    """Has a run no trial left? Then that is said, with its table, and its files are written."""
    stop = nothing_left(head, store)
    if stop is None:
        return False
    again = f"concurve run run:{head.id} --repeats N"
    more = f"; more trials are a new run: {again}" if stop.kind == "complete" else ""
    note(f"run {head.id} was complete ({stop.reason}): no trial was run{more}")
    write_run(store, head.id, files, words=with_store)
    show_run(store, head.id, files.get("html"))
    _refuse_failed_cells(head, store)
    return True


@contextlib.contextmanager
def written_if_possible() -> Iterator[None]:
    """Write what there is after an error, which is what is told: an error of this is a note."""
    try:
        yield
    except StoreError:
        pass  # the store may be what failed
    except ConcurveError as error:
        note(f"note: {error.what}")


def _measure(
    head: RunHead,
    store: Store,
    files: dict[Format, Path],
    hosts: HostsEngine | None,
    resume: bool,
    notes: Sequence[str] = (),
) -> None:
    """Run or resume a run with progress, then print its table and write its files; the ``notes``
    come before it."""
    site = hosts or this_machine()
    runner = Runner(
        head, store, hosts or LocalEngine(), Progress(sys.stderr, reword=with_store), site=site
    )
    try:
        if resume:
            before = store.count(head.id)
            note(f"run {head.id} goes on: {words.count(before, 'trial')} {words.verb(before)} in")
            stop = runner.resume()
            if store.count(head.id) == before:
                note(f"run {head.id} was complete ({stop.reason}): no trial was run")
        else:
            if short := shortfall(runner.plan, forecast(runner.plan, store)):
                note(f"note: {short}")
            for text in notes:
                note(f"note: {text}")
            if late := clock_set_back(head, store):
                note(f"note: {late}")
            runner.start()
    except ConcurveError:
        with written_if_possible():
            if store.has_trials(head.id):
                write_run(store, head.id, files, words=with_store)
        raise
    write_run(store, head.id, files, words=with_store)
    show_run(store, head.id, files.get("html"))
    _refuse_failed_cells(head, store)


def clock_set_back(head: RunHead, store: Store) -> str:
    """That ``last`` will not mean this new run, because another one began later by the clock of its
    machine; empty if it will. A store knows the order of runs by nothing else."""
    newest = store.runs(with_heads=False)[-1:]
    if not newest or newest[0].started <= head.started:
        return ""
    return (
        f"run {newest[0].id} in this store began later by its clock, so `last` still means that "
        f"one; this run is {head.id}"
    )


#: So many of the cells that failed are named.
_NAMED_MAX = 3


def _refuse_failed_cells(head: RunHead, store: Store) -> None:
    """Tell a script that the program failed in some cells: the answer is without them.

    Raises:
        FailedCellsError: so it did.
    """
    failed, total = failed_cells(head, store)
    if failed:
        more = f" and {len(failed) - _NAMED_MAX} more" if len(failed) > _NAMED_MAX else ""
        raise FailedCellsError(
            f"{words.count_of(len(failed), total, 'cell')} failed: "
            f"{', '.join(failed[:_NAMED_MAX])}{more}",
            f"concurve show {head.id} says why; correct it, and start a new run",
        )


def failed_cells(head: RunHead, store: Store) -> tuple[list[str], int]:
    """The cells of a stored run in which the program failed, and how many cells it has. A cell
    that the check gave up is what the study asked for, and a level that the machine lacks is no
    cell."""
    plan = plan_of(head)
    states = replay(plan, store.trials(head.id).outcomes, head.id).cells
    cells = zip(plan.cells, states, strict=True)
    failed = [
        describe(cell.parameters)
        for cell, state in cells
        if state.skipped and not state.skipped.startswith(GIVEN_UP)
    ]
    return failed, len(states)

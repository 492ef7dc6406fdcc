"""A run: the protocol drives an engine, and every trial is stored before the next begins."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec

from concurve import interruption, words
from concurve.attendants import volumes
from concurve.definition.hiding import secrets_of
from concurve.definition.purposes import may_load_a_stranger, names_a_server
from concurve.definition.readiness import unawaited_before
from concurve.definition.study import FREE_PORT, RUN_PASSWORD, TRIAL_FOLDER, uses
from concurve.definition.templates import render
from concurve.definition.units import format_count, format_duration
from concurve.engine import Engine, TrialInterrupt, TrialLostError
from concurve.errors import (
    ConcurveError,
    RunError,
    RunInterruptedError,
    StoreError,
)
from concurve.estimate import Estimate
from concurve.figures import encode_figures
from concurve.host import machine
from concurve.measuring import packaged
from concurve.measuring.ahead import Ahead, can_run_at_once
from concurve.measuring.alike import check_alike
from concurve.measuring.changed_programs import changed_programs, changed_study_file
from concurve.measuring.disturbances import Disturbances
from concurve.measuring.failures import Failures
from concurve.measuring.flight_recorder import with_recordings
from concurve.measuring.folder import inside
from concurve.measuring.heads import with_resumption
from concurve.measuring.hooks import hook_seconds, run_hook, with_hooks
from concurve.measuring.judgement import TIMED_OUT_BUSY, Judge
from concurve.measuring.launches import check_plan
from concurve.measuring.patience import Patience
from concurve.measuring.quiet import Look, Waits, attached_in, looking, quieting
from concurve.measuring.site import Site, ThisMachine
from concurve.planning.plan import (
    RUN_PASSWORD_SECRET,
    Cell,
    Plan,
    describe,
    plan_of,
    trial_spec,
)
from concurve.planning.protocol import CUT, LOST, Stop, replay
from concurve.planning.protocol import Protocol as TrialProtocol
from concurve.planning.searches import is_by_several
from concurve.readings.centres import indicator_centre
from concurve.readings.hook_outputs import telling_line
from concurve.readings.last_printed import last_printed
from concurve.readings.refused import refused_lines
from concurve.readings.still_running import still_running
from concurve.secrets import KNOWN
from concurve.store import Store
from concurve.store.rows import Outcome, TrialKey
from concurve.store.run_head import RunHead
from concurve.terms import Disturbance, Level
from concurve.wire import decode_record
from concurve.wire.record import HookRecord, TrialRecord
from concurve.wire.record import Outcome as RecordedOutcome
from concurve.wire.spec import FORMAT, TrialSpec


class Progress(Protocol):
    """Shows how a run goes on; called between trials only."""

    def begin(self, total: int, title: str) -> None: ...

    def trial_starts(
        self,
        parameters: dict[str, Level],
        block: int,
        attempt: int,
        done: int,
        planned: int,
        seconds_left: float | None,
        may_grow: bool = False,
        waited_seconds: float = 0.0,
        is_allowance: bool = False,
    ) -> None: ...

    def waits(self, seconds: float, most_seconds: float, disturbs: Disturbance) -> None: ...

    def trial_ended(
        self, parameters: dict[str, Level], estimate: Estimate | None, status: str, cause: str
    ) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


class Silence:
    """Progress that shows nothing."""

    def begin(self, *_: Any) -> None: ...

    def trial_starts(self, *_: Any) -> None: ...

    def waits(self, *_: Any) -> None: ...

    def trial_ended(self, *_: Any) -> None: ...

    def note(self, *_: Any) -> None: ...

    def finish(self) -> None: ...


#: The least time limit of a trial: it has begun, so it is to get anywhere.
LIMIT_SECONDS_MIN = 0.01

#: The least trials are told not to fit where they take so many times the time allowance: the first
#: ones tell no more exactly.
BEYOND_MIN = 1.25


class _Limit(NamedTuple):
    """The time limit of a trial in seconds, and whether the run's allowance sets it."""

    seconds: float
    is_allowance: bool

    @property
    def remedy(self) -> str:
        """The option that changes it."""
        return "--max-time" if self.is_allowance else "--timeout"

    def is_cut(self, record: TrialRecord) -> bool:
        """Was it the allowance that stopped the trial?"""
        return self.is_allowance and record.wall_ns >= self.seconds * 1e9


class Trial(NamedTuple):
    """A finished trial on its way to the store, or one that was lost; ``lost`` says why, and ends
    the run."""

    outcome: Outcome
    figures: dict[str, float]
    record: bytes
    lost: TrialLostError | None = None


def uses_volume(plan: Plan) -> bool:
    """Does a role of any cell make a volume?"""
    programs = dict.fromkeys(role.program for role in plan.study.roles if role.program)
    return any(
        render(program, plan.values(cell)) in volumes.VOLUMES
        for program in programs
        for cell in (plan.cells if "{" in program else plan.cells[:1])
    )


#: So many times what a hook printed stays in the record of one trial: a setup runs for every cell.
_HOOKS_KEPT = 20

_VOLUME_LEFT = (
    "note: an earlier run on this machine was killed, and has left a volume: concurve machine "
    "repair --dry-run shows it"
)


def nothing_left(head: RunHead, store: Store) -> Stop | None:
    """Why a stored run that is complete has no trial left to run; ``None`` if it has one, with the
    allowance of this head. One that was stopped after its last trial has its hooks left.

    Raises:
        RunError: what is stored does not follow from the plan.
    """
    if all(run.id != head.id or run.state != "complete" for run in store.runs()):
        return None
    key = replay(plan_of(head), store.trials(head.id).outcomes, head.id).next()
    return key if isinstance(key, Stop) else None


class Runner:
    """Runs or resumes one run. Store, engine, clock, progress and site are given; ``look`` looks at
    the load of this machine, if the run waits for a quiet one."""

    def __init__(
        self,
        head: RunHead,
        store: Store,
        engine: Engine,
        progress: Progress | None = None,
        clock: Callable[[], float] = time.monotonic,
        site: Site | None = None,
        look: Look | None = None,
    ) -> None:
        self.head = head
        self.plan = plan_of(head)
        self.store = store
        self.engine = engine
        self.progress: Progress = progress or Silence()
        self._clock = clock
        self._site: Site = site or ThisMachine()
        self._cpus = machine.allowed_cpus()
        self._judge = Judge(self.plan)
        self._patience = Patience(self._note)
        self._disturbances = Disturbances(
            may_load_a_stranger(head.study) and head.hosts is None,
            names_a_server(head.study),
            quieting,
        )
        self._refused_told = False
        #: What hooks printed since the last trial, and those of which it was told.
        self._hooks_said: list[HookRecord] = []
        self._hooks_told: set[str] = set()
        #: What a trial that the user stopped had printed last.
        self._stopped_printed = ""
        self._is_short_told = False
        self._failures = Failures(self.plan, head.id)
        self._wants_port = uses(head.study, FREE_PORT)
        self._wants_folder = uses(head.study, TRIAL_FOLDER)
        tasks = self._site.tasks
        at_once = tasks is not None and can_run_at_once(head.study)
        self._ahead = Ahead(tasks) if tasks is not None and at_once else None
        self._waits: Waits | None = None
        # The clock of a simulation is its program's own.
        if head.waiting is not None and not head.study.simulation:
            seen = look or looking(attached_in([head.study]))
            self._waits = Waits(head.waiting, seen, self._clock)

    def start(self) -> Stop:
        """Check, store the run's head, and run it to its end."""
        with self._prepared():
            if unawaited := unawaited_before(self.head.study):
                self._note(f"note: {unawaited}")
            self._begin(lambda: self.store.add_run(self.head.row()))
            return self._run()

    def check(self) -> None:
        """Refuse to resume what cannot run here, at once: whoever waits for the machine would hear
        it after the wait only.

        Raises:
            ConcurveError: a program, a control or a secret is missing here, or the folder.
        """
        with inside(self.head.folder, f"run {self.head.id}"):
            self._check()

    def resume(self) -> Stop:
        """Continue after the last stored trial, in the folder where the run began. Where nothing is
        left to do, nothing of the machine is needed."""
        if (ended := nothing_left(self.head, self.store)) is not None:
            return ended
        with inside(self.head.folder, f"run {self.head.id}"), self._prepared():
            self._failures.is_resumed = True
            changed = list(changed_programs(self.head))
            for program in changed:
                self._note(f"note: {program.says(self.head.again)}")
            done = self.store.count(self.head.id)
            self.head = with_resumption(self.head, done, [program.name for program in changed])
            if text := changed_study_file(self.head):
                self._note(f"note: {text}")
            self._begin(self._go_on)
            return self._run()

    def _go_on(self) -> None:
        self.store.set_head(self.head.id, self.head.row().head)
        self.store.set_state(self.head.id, "running", "")

    def _begin(self, write: Callable[[], None]) -> None:
        """Store that the run goes on; a signal that came meanwhile leaves it to be resumed."""
        try:
            write()
        except KeyboardInterrupt:
            if all(run.id != self.head.id for run in self.store.runs()):
                raise
            raise self._interrupted(self._replay().done) from None

    def _interrupted(self, done: int) -> RunInterruptedError:
        """Store that the user has stopped the run; what to say of it."""
        interruption.heed()
        self.store.set_state(self.head.id, "interrupted", "stopped by the user")
        # Who stops the very first one wants to know why it took so long.
        said = f"; {self._stopped_printed}" if self._stopped_printed and not done else ""
        return RunInterruptedError(
            f"run {self.head.id} was stopped after {format_count(done, 'trial')}; "
            f"what was measured is stored{said}",
            f"concurve resume {self.head.id}"
            + (f"; what is in so far: concurve show {self.head.id}" if done else ""),
        )

    @contextlib.contextmanager
    def _prepared(self) -> Iterator[None]:
        """Check that the plan can run here, and have the machine for it alone."""
        self._check()
        lock = self._site.lock(f"concurve run {self.head.id} ({self.head.study.name})")
        with interruption.handled(), lock:
            self._clear_volumes()
            try:
                yield
            finally:
                if self._ahead is not None:
                    self._ahead.close()

    def _check(self) -> None:
        KNOWN.require(secrets_of(self.head.study), f"run {self.head.id}")
        if uses(self.head.study, RUN_PASSWORD):
            KNOWN.draw(RUN_PASSWORD_SECRET)
        check_plan(self.plan, self.engine, self._cpus, self._site.machines)
        check_alike(self.plan, self._site)

    def _clear_volumes(self) -> None:
        """Undo what killed runs have left of their volumes, if this run needs one; else say that
        there is something."""
        if uses_volume(self.plan):
            volumes.repair(self._note)
        elif volumes.left():
            self._note(_VOLUME_LEFT)

    def _run(self) -> Stop:
        """Run trials until the protocol stops."""
        protocol = self._replay()
        try:
            self.progress.begin(protocol.planned(), self._title())
            self._for_each_cell("setup")
            try:
                stop = self._trials(protocol)
            finally:
                self._for_each_cell("cleanup")
            self._failures.refuse_run(protocol)
        except KeyboardInterrupt:
            raise self._interrupted(protocol.done) from None
        except RunError as error:
            self.store.set_state(self.head.id, "failed", error.what)
            raise
        except BaseException as error:
            # The store may be what failed: what it holds then says who was to run this.
            with contextlib.suppress(StoreError):
                reason = error.what if isinstance(error, ConcurveError) else repr(error)
                self.store.set_state(self.head.id, "interrupted", reason)
            raise
        finally:
            self.progress.finish()
        self.store.set_state(self.head.id, "complete", stop.reason)
        return stop

    def _replay(self) -> TrialProtocol:
        outcomes = self.store.trials(self.head.id).outcomes
        if "ok" in outcomes.verdicts:
            self._judge.matched.update(extract.name for extract in self.head.study.extracts)
            self._judge.has_had_rate = True
        return replay(self.plan, outcomes, self.head.id)

    def _title(self) -> str:
        head = self.head
        return (
            f"{head.study.name}: {format_count(len(self.plan.cells), 'cell')}, "
            f"effort {head.effort}, seed {head.seed}, run {head.id}"
        )

    def _for_each_cell(self, hook: str) -> None:
        for cell in self.plan.cells:
            self._hook(hook, cell)

    def _hook(self, name: str, cell: Cell) -> None:
        """Run a hook, keep what it printed for the record of the next trial, and say once what went
        wrong although it exited with 0."""
        with self._watch_hook(name, cell):
            said = run_hook(self.plan, name, cell)
        if said is None:
            return
        line = telling_line(said)
        if sum(one.hook == name for one in self._hooks_said) < _HOOKS_KEPT:
            self._hooks_said.append(said)
        if line and name not in self._hooks_told:
            self._hooks_told.add(name)
            self._note(
                f"note: {describe(cell.parameters)}: the hook {name} exited with 0, and printed "
                f"{line!r}"
            )

    def _watch_hook(self, name: str, cell: Cell) -> contextlib.AbstractContextManager[None]:
        """Announce a hook that takes long, if the study has it: no thread watches one that it has
        not."""
        if name not in self.plan.study.hooks.texts():
            return contextlib.nullcontext()
        return self._watch(f"the hook {name}", cell, hook_seconds(self.plan), "--max-time")

    def _watch(
        self, what: str, cell: Cell, seconds: float, remedy: str
    ) -> contextlib.AbstractContextManager[None]:
        """Announce what takes long in a cell."""
        return self._patience.watch(f"{describe(cell.parameters)}: {what}", seconds, remedy)

    def _note(self, text: str) -> None:
        self.progress.note(text)

    def _trials(self, protocol: TrialProtocol) -> Stop:
        stored = protocol.done
        while not isinstance(key := protocol.next(), Stop):
            interruption.refuse_if_asked()
            if protocol.done > stored:  # who resumes a run has perhaps mended what was the matter
                self._failures.refuse_never_ready(protocol)
            cell = self.plan.cells[key.cell]
            glanced = self._wait_for_quiet(protocol, key)
            self.progress.trial_starts(
                cell.parameters,
                key.block,
                key.attempt,
                protocol.done,
                max(protocol.in_all(), protocol.done + 1),
                protocol.seconds_left(),
                protocol.may_grow(),
                self.head.waiting.waited_seconds if self.head.waiting else 0.0,
                protocol.ends_by_allowance(),
            )
            trial = self._trial(cell, key, self._limit(protocol), protocol.coming, glanced)
            if trial.lost is None:
                self._failures.refuse_to_spoil(protocol, trial.outcome)
            with interruption.whole():
                self.store.add_trial(
                    self.head.id, trial.outcome, encode_figures(trial.figures), trial.record
                )
                protocol.record(trial.outcome)
            if trial.lost is not None:
                raise trial.lost
            self._tell(protocol, cell, trial.outcome)
            self._tell_what_fits(protocol)
            self._failures.refuse_only_failures(key.cell, trial.figures, trial.record)
        return key

    def _wait_for_quiet(self, protocol: TrialProtocol, key: TrialKey) -> float:
        """Wait while others disturb, if the run was asked to. What it takes is stored at once, also
        where it is interrupted; the seconds of the glance are time of the trial. Where no time is
        left to wait, a glance says whether one was needed."""
        waits, most_seconds = self._waits, protocol.seconds_to_wait()
        if waits is None or (most_seconds <= 0 and waits.now.is_cut):
            return 0.0
        begun = self._clock()
        is_busy = waits.is_busy(is_redo=key.attempt > 0)
        glanced = self._clock() - begun
        if not is_busy:
            return glanced
        try:
            waits.wait(most_seconds, protocol.done == 0, self.progress.waits)
        finally:
            protocol.waited = waits.now.during_seconds
            self.head = msgspec.structs.replace(self.head, waiting=waits.now)
            with interruption.whole():
                self.store.set_head(self.head.id, self.head.row().head)
        if waits.now.is_over:
            self._note(
                f"note: the run has waited {format_duration(waits.now.seconds)} in all for a quiet "
                "machine, as long as it may: from now on disturbed trials are measured, and marked"
            )
        return glanced

    def _limit(self, protocol: TrialProtocol) -> _Limit:
        """When a trial is stopped: at its own limit, and at the end of the allowance at the
        latest."""
        rules = self.plan.rules
        left = protocol.allowance_left()
        if rules.timeout_seconds is not None and rules.timeout_seconds <= left:
            return _Limit(rules.timeout_seconds, False)
        return _Limit(max(left, LIMIT_SECONDS_MIN), True)

    def _trial(
        self,
        cell: Cell,
        key: TrialKey,
        limit: _Limit,
        coming: Callable[[], Sequence[TrialKey]],
        glanced: float = 0.0,
    ) -> Trial:
        """One trial from its preparation to its judgement; ``coming`` are those that may run with
        it. Before it the machine was ``glanced`` at for so many seconds."""
        started = self._clock() - glanced
        self._hook("prepare", cell)
        with self._watch("this trial", cell, limit.seconds, limit.remedy):
            if self._ahead is None:
                try:
                    raw = self._measured(key, limit)
                except TrialLostError as error:
                    return self._lost(key, error)
                except TrialInterrupt as interrupt:
                    with contextlib.suppress(ConcurveError):  # it may have been cut short
                        self._stopped_printed = self._last_printed(decode_record(interrupt.record))
                    raise
            else:
                raw = self._ahead.record(
                    key, coming, lambda other: self._spec(other, "", limit), limit.seconds
                )
        record = decode_record(raw)
        if record.outcome.kind == "interrupted":
            self._stopped_printed = self._last_printed(record)
            raise KeyboardInterrupt
        self._tell_refused(record)
        self._hook("conclude", cell)
        said, self._hooks_said = self._hooks_said, []
        raw, record = with_hooks(raw, said), msgspec.structs.replace(record, hooks=tuple(said))
        with self._watch_hook("check", cell):
            verdict, value, cause, detail, figures = self._judge.judge(cell, record)
        is_disturbed = verdict == "contaminated" or cause == TIMED_OUT_BUSY
        self._disturbances.take(record, is_disturbed=is_disturbed)
        if record.outcome.kind == "timed_out" and limit.is_cut(record):
            # What follows the message of a time-out are the signs of a busy machine, and more.
            is_busy = cause == TIMED_OUT_BUSY
            why = still_running(self.head.study, record), self._last_printed(record)
            more = (detail.partition("; ")[2],) if is_busy else why
            stopped = f"stopped with the run, after {record.wall_ns / 1e9:.1f} s"
            cause, detail = CUT, "; ".join(filter(None, (stopped, *more)))
        seconds = self._clock() - started
        return Trial(Outcome(key, verdict, value, seconds, cause, detail), figures, raw)

    def _last_printed(self, record: TrialRecord) -> str:
        return last_printed(record, self.head.study.target)

    def _measured(self, key: TrialKey, limit: _Limit) -> bytes:
        """The record of one trial, which runs alone."""
        with self._folder() as folder:
            spec = self._spec(key, folder, limit)
            return with_recordings(self.engine.run(spec), spec, folder)

    def _lost(self, key: TrialKey, error: TrialLostError) -> Trial:
        """A trial of which a host was lost: it is marked with that and has no figure, not even of
        the hosts that are left, and takes nothing of the time allowance."""
        record = TrialRecord(
            format=FORMAT,
            trial=self._name(key),
            outcome=RecordedOutcome(kind="interrupted", message=error.what),
            roles=(),
        )
        outcome = Outcome(key, "program_error", None, 0.0, LOST, error.what)
        return Trial(outcome, {}, msgspec.json.encode(record), error)

    def _name(self, key: TrialKey) -> str:
        return f"{self.head.id}/{key.cell}/{key.block}/{key.attempt}"

    @contextlib.contextmanager
    def _folder(self) -> Iterator[str]:
        """A folder for one trial, if the study uses one; else an empty text."""
        if not self._wants_folder:
            yield ""
            return
        try:
            with self._site.folder() as folder:
                yield str(folder)
        except OSError as error:
            raise RunError(
                f"no folder for a trial: {error}", "TMPDIR=FOLDER with free space"
            ) from error

    def _spec(self, key: TrialKey, folder: str, limit: _Limit) -> TrialSpec:
        port: Level = self._site.port() if self._wants_port else ""
        make = partial(
            trial_spec,
            self.plan,
            self.plan.cells[key.cell],
            self._name(key),
            self._cpus,
            packaged.command,
            port,
            key.block,
            folder,
            machines=self._site.machines,
        )
        spec = make()
        if is_by_several(spec):
            KNOWN.draw(RUN_PASSWORD_SECRET)
            spec = make(search_port=self._other_port(port))
        return msgspec.structs.replace(spec, time_limit_ns=round(limit.seconds * 1e9))

    def _other_port(self, taken: Level) -> int:
        """A free port that is not the one that the study has."""
        while (port := self._site.port()) == taken:
            pass
        return port

    def _tell(self, protocol: TrialProtocol, cell: Cell, outcome: Outcome) -> None:
        values = protocol.cells[cell.index].values()
        study = self.head.study
        self.progress.trial_ended(
            cell.parameters,
            indicator_centre(study.primary, values, study.primary_unit) if values else None,
            # What the end of the run cut short is no failure.
            "cut short" if outcome.cause == CUT else outcome.verdict,
            outcome.cause and words.why(outcome.cause, outcome.detail),
        )
        said = self._disturbances.said()
        if said:
            self._note(said)

    def _tell_what_fits(self, protocol: TrialProtocol) -> None:
        """Say once in a run, early, that its trials are so long that the time allowance holds fewer
        than the least that an interval needs."""
        left, allowed = protocol.left_of_pilot(), self.plan.rules.time_allowed_seconds
        least = protocol.done + left
        is_said = self._is_short_told or self.head.study.simulation
        if is_said or not left or not protocol.has_length:
            return
        each = protocol.seconds_of(1)
        if protocol.elapsed + left * each <= BEYOND_MIN * allowed:
            return
        self._is_short_told = True
        fit = protocol.done + int(max(0.0, allowed - protocol.elapsed) / each)
        self._note(
            f"note: a trial takes about {words.duration(each)}, so about "
            f"{words.count(fit, 'trial')} fit into {format_duration(allowed)} "
            f"(--max-time); at least {least:,} are needed. Give --max-time "
            f"{words.option_duration(protocol.seconds_for_all())}, or shorten the trial (of a load "
            "often -n or -d)"
        )

    def _tell_refused(self, record: TrialRecord) -> None:
        """Say once in a run what the programs reported in vain."""
        said = refused_lines(record)
        if said and not self._refused_told:
            self._refused_told = True
            self._note(f"note: {said}")

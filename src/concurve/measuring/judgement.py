"""Record → the judgement of a trial for the protocol: its figures, and whether they count."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from concurve.definition.extracting import is_of_tool, tool_to_read
from concurve.definition.indicators_meant import indicator_meant
from concurve.definition.purposes import starts_unawaited, unawaited
from concurve.definition.readiness import nothing_waits
from concurve.definition.study import FREE_PORT, uses
from concurve.definition.templates import expand, placeholders, render
from concurve.errors import RunError
from concurve.measuring.hooks import Ended, shell
from concurve.planning.plan import Cell, Plan, describe
from concurve.readings.contamination import LATE_READING, MACHINE_WIDE, Contamination
from concurve.readings.contamination import judge as judge_machine
from concurve.readings.extraction import MissedExtractError, shown_lines
from concurve.readings.hook_outputs import hooks_said
from concurve.readings.last_printed import last_printed
from concurve.readings.measures import NOTHING_DONE, is_probed, measure
from concurve.readings.operations import asked_of
from concurve.readings.rate_searches import why_no_rate
from concurve.readings.still_running import still_running
from concurve.store.rows import Verdict
from concurve.wire.record import COUNTERS_OF, REMOTE_FACT, Exit, TrialRecord

#: Causes of program errors, as a record names them.
NOT_READY = "not_ready"
PROGRAM_FAILED = "program_failed"
TIMED_OUT = "timed_out"

#: The cause where the validator refused a trial.
CHECK = "check"

#: The cause where a search for a rate gave none.
UNDECIDED = "undecided"

#: The cause of a time-out that other processes brought about: they used the machine, and the roles
#: waited for a CPU for at least this share of the trial, while their own CPU time was below that
#: other share of what the CPUs had for so many threads: more of it nearly fills the limit alone.
TIMED_OUT_BUSY = "timed_out, machine busy"
WAIT_SHARE_MIN = 0.25
CPU_SHARE_MAX = 0.8


#: So much of the command of a check is shown, and so many of the last lines that it printed.
_CHECK_CHARS = 80
_CHECK_LINES = 3

#: What programs say where nobody listens.
_REFUSED = re.compile(r"connection refused|ECONNREFUSED", re.IGNORECASE)
FREE_PORT_TEXT = f"{{{FREE_PORT}}}"


#: What the runner says of a role that ended, or that found its port taken, before it was ready.
_ENDED_EARLY = " before it was ready"
_PORT_TAKEN = " before the role was started"


def ready_remedy(details: Sequence[str]) -> str:
    """What to look at where no role became ready, by what the records say of it."""
    if all(COUNTERS_OF in detail for detail in details):
        return (
            "look at them by hand (curl, or the command of --counters): do they come, and has each "
            "line a name and a number?"
        )
    if all(_PORT_TAKEN in detail for detail in details):
        return (
            f"stop that program, or another port: {FREE_PORT_TEXT} in the commands is a free one, "
            "another in each trial"
        )
    if all(_ENDED_EARLY in detail for detail in details):
        return "run its command by hand: why does it end, and does it stay in the foreground?"
    return (
        "run its command by hand; is what is waited for right (--ready, or ready in the study "
        "file), and the time (--ready-within, ready_within)?"
    )


class Judgement(NamedTuple):
    """A verdict with its cause, the primary value, and all figures of the trial."""

    verdict: Verdict
    value: float | None
    cause: str
    detail: str
    figures: dict[str, float]


class Judge:
    """Judges the trials of one run.

    ``matched`` names the extracts that have matched in this run: a pattern that never did is a
    mistake in the study and stops the run, one that misses later is an error of that trial. So is a
    search for a rate that gives none, once another one gave one (``has_had_rate``).
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.matched: set[str] = set()
        self.has_had_rate = False
        self._asked = asked_of(plan.study)

    def judge(self, cell: Cell, record: TrialRecord) -> Judgement:
        """Judge one record.

        Raises:
            RunError: an error that another trial cannot correct.
        """
        failed = self._failed(cell, record)
        if failed is not None:
            return failed
        try:
            figures = self._figures(cell, record)
        except MissedExtractError as missed:
            return self._missed(cell, record, missed)
        value = figures.get(self.plan.study.primary)
        if value is None:
            return self._without_value(record)._replace(figures=figures)
        self.has_had_rate = True
        refused = lost_sessions(record) or self._check(cell, record, value)
        if refused is not None:
            return refused._replace(figures=figures)
        signs = self._signs(cell, record)
        if signs:
            detail = "; ".join(sign.detail for sign in signs)
            # A sign that each cell shows alike decides about a redo, if there is one.
            wide = [sign for sign in signs if sign.cause in MACHINE_WIDE]
            cause = (wide or signs)[0].cause
            return Judgement("contaminated", value, cause, detail, figures)
        return Judgement("ok", value, "", "", figures)

    def _failed(self, cell: Cell, record: TrialRecord) -> Judgement | None:
        """Of a trial that did not end in order.

        Raises:
            RunError: an error that another trial cannot correct.
        """
        kind, message = record.outcome.kind, record.outcome.message or ""
        if kind != "ok" and self._is_attached(record.outcome.role):
            raise self._error(
                cell,
                message,
                "a new run, with the process that runs now; this one cannot be given another",
            )
        if kind in ("exec_failed", "control_refused"):
            raise self._error(cell, message, "correct it, then concurve resume last")
        if kind != "ok":
            return self._went_wrong(cell, record)
        unread = unread_counters(record)
        return Judgement("program_error", None, PROGRAM_FAILED, unread, {}) if unread else None

    def _without_value(self, record: TrialRecord) -> Judgement:
        """Of a trial that ended in order and has no primary figure."""
        if refused := lost_sessions(record):
            return refused
        undecided = why_no_rate(record, self.plan.study.primary, self.plan.study.target)
        cause = "nothing done" if undecided is None else UNDECIDED
        return Judgement("program_error", None, cause, undecided or NOTHING_DONE, {})

    def _is_attached(self, role: str | None) -> bool:
        """Is this a role that was not started, so that nothing starts it again?"""
        roles = self.plan.study.roles
        return any(item.attach is not None for item in roles if item.name == role)

    def _went_wrong(self, cell: Cell, record: TrialRecord) -> Judgement:
        """A program error; a time-out says whether other processes used the machine."""
        kind, message = record.outcome.kind, record.outcome.message or ""
        signs = self._signs(cell, record) if kind == TIMED_OUT else []
        waited = sum(role.usage.run_queue_ns or 0 for role in record.roles)
        used = sum(role.usage.cpu_ns or 0 for role in record.roles)
        kept_waiting = (
            waited >= WAIT_SHARE_MIN * record.wall_ns
            and used < CPU_SHARE_MAX * _usable_cpus(record) * record.wall_ns
        )
        cause = TIMED_OUT_BUSY if signs and kept_waiting else kind
        unready = self._unready(record)
        disturbed = (sign.detail for sign in signs)
        last = last_printed(record, self.plan.study.target) if kind == TIMED_OUT else ""
        waits_for = still_running(self.plan.study, record) if kind == TIMED_OUT else ""
        said = [message, waits_for, *disturbed, *unready, last, *hooks_said(record).values()]
        detail = "; ".join(filter(None, said))
        return Judgement("program_error", None, cause, detail, {})

    def _unready(self, record: TrialRecord) -> list[str]:
        """What helps where a role found nobody: the servers for which nothing waits."""
        failed = record.role(record.outcome.role or "")
        said = f"{record.outcome.message} {failed.stderr.text() if failed else ''}"
        if not _REFUSED.search(said):
            return []
        study = self.plan.study
        at_once = [
            role.name
            for role in study.roles
            if starts_unawaited(role) and role.name != record.outcome.role
        ]
        if not at_once:
            return []
        known = unawaited(study).get(at_once[0], "PORT") if len(at_once) == 1 else "PORT"
        port = FREE_PORT_TEXT if uses(study, FREE_PORT) else known
        return [nothing_waits(at_once, port)]

    def _signs(self, cell: Cell, record: TrialRecord) -> list[Contamination]:
        """Signs that other processes disturbed what the study asks for."""
        study = self.plan.study
        if study.simulation:  # it has a clock of its own: other load has no effect
            return []
        signs = judge_machine(record, self.plan.workers(cell), study.target)
        if any(is_probed(item.name) for item in study.indicators):
            return signs
        return [sign for sign in signs if sign.cause != LATE_READING]

    def _figures(self, cell: Cell, record: TrialRecord) -> dict[str, float]:
        study = self.plan.study
        measures = measure(record, self._asked, self.plan.workers(cell))
        self.matched.update(extract.name for extract in study.extracts)
        absent = study.primary not in measures.values
        undecided = why_no_rate(record, study.primary, study.target)
        if absent and undecided is not None:
            if self.has_had_rate or lost_sessions(record) is not None:
                return measures.values
            raise self._error(
                cell,
                f"the primary indicator {study.primary} is absent: {undecided}",
                "a search that has an answer in a trial; concurve load with the same options shows "
                "one by itself",
            )
        if absent and measures.absent.get(study.primary) != NOTHING_DONE:
            reason = measures.absent.get(study.primary, "the program did not report it")
            reason = "; ".join([reason, *hooks_said(record).values()])
            raise self._error(
                cell,
                f"the primary indicator {study.primary} is absent: {reason}",
                indicator_meant(
                    study.primary,
                    measures.values,
                    "--primary NAME of another one (in a study file, another first "
                    "[[indicators]] entry), or a program that reports it",
                ),
            )
        return measures.values

    def _missed(self, cell: Cell, record: TrialRecord, missed: MissedExtractError) -> Judgement:
        name, pattern = missed.extract.name, missed.extract.pattern
        role = missed.extract.role or self.plan.study.target
        gave = "gives no figure of" if missed.reason else "matched no number in"
        detail = f"figure {name}: '{pattern}' {gave} the output of role {role}"
        if missed.reason:
            detail += f": {missed.reason}"
        detail = "; ".join([detail, *hooks_said(record).values()])
        if name in self.matched:
            return Judgement("program_error", None, "no match", detail, {})
        raise self._error(
            cell,
            f"{detail}; {shown_lines(pattern, missed.output)}",
            self._other_pattern(missed),
        )

    def _other_pattern(self, missed: MissedExtractError) -> str:
        """What to write in place of a pattern that does not match: the tool by its name, if its
        output is known and is not asked for so already."""
        if missed.remedy:
            return missed.remedy
        if missed.reason:
            return "a pattern with one group around the figure, in the dialect of RE2"
        name = missed.extract.role or self.plan.study.target
        role = next((role for role in self.plan.study.roles if role.name == name), None)
        tool = tool_to_read(role.command) if role is not None and role.command else None
        if tool is not None and not is_of_tool(missed.extract, tool):
            own = "" if name == self.plan.study.target else f"{name}."
            return (
                f'--extract {own}{tool} (tool = "{own}{tool}" in a study file): its figures are '
                "known by name"
            )
        return "a pattern that matches a line as it is printed, with one group around the figure"

    def _check(self, cell: Cell, record: TrialRecord, value: float) -> Judgement | None:
        """Ask the validator: exit code 0 accepts, 1 redoes, 2 gives up; others are errors."""
        text = self.plan.study.hooks.check
        if not text:
            return None
        target = record.role(self.plan.study.target)
        output = target.stdout.text() if target else ""
        done = shell(self.plan, "check", text, cell, output, {"CONCURVE_VALUE": repr(value)})
        detail = f"{shown_check(text)} exited with {done.returncode}{_last_lines(done)}"
        if done.returncode == 0:
            return None
        if done.returncode == 1:
            return Judgement("wrong", value, CHECK, detail, {})
        if done.returncode == 2:
            return Judgement("abandon", value, CHECK, detail, {})
        raise self._error(
            cell,
            f"the hook check {detail}",
            f"0 accepts, 1 asks for a redo, 2 gives the cell up; {check_by_hand(self.plan, cell)}",
        )

    def _error(self, cell: Cell, what: str, remedy: str) -> RunError:
        return RunError(f"{describe(cell.parameters)}: {what}", remedy)


def shown_check(text: str) -> str:
    """The command of a check, as it is written, in a message: its beginning, if it is long."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _CHECK_CHARS else f"{line[: _CHECK_CHARS - 1]}…")


def _last_lines(done: Ended) -> str:
    """What a check printed last: to standard error, else to standard output."""
    for printed in (done.stderr, done.stdout):
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        if lines:
            return f": {' | '.join(lines[-_CHECK_LINES:])}"
    return " and said nothing"


def check_by_hand(plan: Plan, cell: Cell) -> str:
    """How the check of a cell is tried by hand: its program, with the levels filled in, and what it
    prints, handed to the check."""
    check = plan.study.hooks.check or ""
    command = next(role.command for role in plan.study.roles if role.name == plan.study.target)
    known = plan.study.factors_at(plan.effort)
    levels = {factor.name for factor in known}
    used = {name for text in (*command, check) for name in placeholders(text)}
    if not command or len(plan.study.roles) > 1 or not used <= levels:
        return f"by hand: hand what the program prints to the check of {describe(cell.parameters)}"
    words = expand(command, cell.parameters)
    return f"by hand: {shlex.join(words)} | sh -c {shlex.quote(render(check, cell.parameters))}"


def _usable_cpus(record: TrialRecord) -> int:
    """How many CPUs the threads of the roles could have used at once."""
    threads = sum(role.threads.peak or 1 for role in record.roles)
    return max(1, min(threads, record.machine.cpus or threads))


def unread_counters(record: TrialRecord) -> str:
    """Why the counters of a server elsewhere could not be read after the load; empty where they
    were. What reads them is being stopped by then, so the record calls the trial no failure."""
    failed = (
        role
        for role in record.roles
        if REMOTE_FACT in role.facts and role.exit not in (None, Exit(code=0))
    )
    said = (f"role {role.name}: {role.stderr.text().strip() or 'it failed'}" for role in failed)
    return "; ".join(said)


def lost_sessions(record: TrialRecord) -> Judgement | None:
    """A program error if sessions of a load were lost: the trial had fewer than its cell."""
    lost = [
        f"{line.value:g} of the sessions of {role.name} lost their connection"
        for role in record.roles
        for line in role.indicators
        if line.indicator == "sessions_lost" and line.value > 0
    ]
    return Judgement("program_error", None, "sessions lost", "; ".join(lost), {}) if lost else None

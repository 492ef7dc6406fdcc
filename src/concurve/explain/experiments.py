"""An explained cell → the experiments that confirm its cause, as a study of their own. Pure.

The study is that of the run at the levels of the cell, with one factor more. Its levels are the
experiments, so the protocol interleaves them, repeats what was disturbed, and stores each trial, as
of any other run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.definition.controls import SPARE, parse_cpus
from concurve.definition.study import Effort, Factor, Role, Rules, Study
from concurve.definition.templates import Value, render
from concurve.errors import RunError, StudyError
from concurve.findings.explanation import CellExplanation, Explanation, WaitSite
from concurve.planning.plan import Cell, Plan, describe, plan_of
from concurve.readings.operations import asked_of
from concurve.store.run_head import Confirms, RunHead
from concurve.terms import Level

#: The name of the factor; with a number behind it where the study has one of this name.
FACTOR = "experiment"
AS_IS, ONE_CPU, PROCESSES = "as-is", "one-cpu", "processes"
#: How many times as long a lock is held, by level. The first one differs from the others in nothing
#: but this: the library is there, too.
HELD: dict[str, float] = {"held-1": 1.0, "held-1.25": 1.25, "held-1.5": 1.5, "held-2": 2.0}
#: What a process beside the program takes, and for which part of the time, by level.
HOGS: dict[str, tuple[str, float]] = {
    "cpu-hog-half": ("cpu", 0.5),
    "cpu-hog": ("cpu", 1.0),
    "memory-hog-half": ("memory", 0.5),
    "memory-hog": ("memory", 1.0),
}
HOG = "hog"
#: The JVM records where its threads wait.
RECORDED = "flight-recorder"

#: Levels of a factor by which a study has its workers as threads or as processes.
_AS_THREADS = ("thread", "threads", "threaded")
_AS_PROCESSES = ("process", "processes", "fork", "forked", "prefork", "multiprocess")

#: Causes that CPU time shows: what an operation takes falls where the threads share no more.
BY_CPU_TIME = ("coherency", "memory", "smt")
#: What experiments can confirm.
TESTABLE = ("lock", "cpu", *BY_CPU_TIME)

#: Bounds of the number of trials of each experiment.
REPEATS_MIN, REPEATS_MAX = 3, 12
#: A trial of an experiment takes about so many times as long as one of the run.
_SLOWER = 1.5
#: What a recorder adds to a trial: it starts and writes, and is read afterwards.
_RECORDING_SECONDS = 5.0
#: Futexes take this share of the thread time: they limit the cell, whatever it is called.
_FUTEX_SHARE = 0.5
#: What a time limit for each trial is multiplied by: on one CPU, or with a lock that is held
#: longer, a trial takes longer.
_LIMIT_FACTOR = 4.0

#: Locks of libraries that ask the kernel themselves, by parts of the names of their functions. C++
#: has those of the C library.
_OF_THEIR_OWN = (
    "std::sync::",
    "std::sys::",
    "lock_contended",
    "parking_lot",
    "absl::",
    "sync.(*",
    "runtime.",
)
_HELD = ("mutex", "reader_writer_lock")
_NO_LOCKS = ("barrier", "once")

#: Why a file cannot have a library in front of its functions; empty if it can.
WhyNot = Callable[[str], str]


class Experiments(NamedTuple):
    """A study whose trials are the experiments, and what they are to confirm."""

    study: Study
    confirms: Confirms


class Recorder(NamedTuple):
    """What the command line of a program begins with so that its JVM records its waits, or why
    it does not; neither where no JVM waits for locks."""

    beginning: tuple[str, ...] = ()
    why_not: str = ""


NO_RECORDER = Recorder()


class Reach(NamedTuple):
    """The sites of a lock that can be held longer, or why it cannot."""

    sites: tuple[WaitSite, ...] = ()
    why_not: str = ""


def cell_to_confirm(explanation: Explanation, wanted: Mapping[str, Level]) -> CellExplanation:
    """The cell whose cause is confirmed: of those with the ``wanted`` levels that have a cause, the
    last one in the order of the run. If none has such a cause, the last one where threads of a JVM
    wait for something: an experiment says where.

    Raises:
        RunError: none of them has anything to be tried out.
    """
    alike = cells_at(explanation, wanted)
    testable = [cell for cell in alike if cell.cause in TESTABLE and cell.base is not None]
    found = testable or [cell for cell in alike if is_to_be_recorded(cell)]
    if found:
        return found[-1]
    last = alike[-1]
    if len(alike) == 1 and not last.trials and last.evidence:
        raise RunError(last.evidence.removesuffix("."), "another cell, by --at")
    is_said = not last.doubt or last.cause == "in doubt"
    said = f"{describe(last.parameters)}: {last.cause}" + ("" if is_said else ", in doubt")
    of = f"of run {explanation.run}"
    if wanted:
        of = f"with {describe(dict(wanted))} {of}"
    which = f"no cell {of} has a cause"
    if wanted and len(alike) == 1:
        which = f"the cell {of} has no cause"
    raise RunError(
        f"{which} that an experiment can confirm ({said})",
        f"a run where the cause is {words.listed(list(TESTABLE), 'or')}; concurve explain "
        f"{explanation.run} says what limits each cell",
    )


def cells_at(explanation: Explanation, wanted: Mapping[str, Level]) -> list[CellExplanation]:
    """The cells with these levels.

    Raises:
        RunError: there is none.
    """
    alike = [
        cell
        for cell in explanation.cells
        if all(str(cell.parameters.get(name)) == str(level) for name, level in wanted.items())
    ]
    if not alike:
        known = "; ".join(describe(cell.parameters) for cell in explanation.cells[:8])
        raise RunError(
            f"run {explanation.run} has no cell with {describe(dict(wanted))}", f"one of: {known}"
        )
    return alike


def is_to_be_recorded(cell: CellExplanation) -> bool:
    """Do threads of a JVM wait for a lock, or for one another, where no sample names the line?"""
    waits = cell.cause == "lock" or cell.share_of("futex") >= _FUTEX_SHARE
    return cell.is_jvm and waits


def reach_of(cell: CellExplanation, why_not: WhyNot) -> Reach:
    """Which sites take the lock that limits a cell, if a library can stand in front of it."""
    if not cell.sites:
        why = cell.missing.get("sites", "the records name no place where threads waited for it")
        return Reach(why_not=why)
    # At a barrier threads wait for the slowest, which may be slow for the lock.
    at_locks = [site for site in cell.sites if site.primitive not in _NO_LOCKS]
    first = (at_locks or cell.sites)[0]
    operation = first.operation or ""
    if first.primitive not in _HELD or any(name in operation for name in _OF_THEIR_OWN):
        what = operation or first.primitive.replace("_", " ")
        return Reach(
            why_not=f"threads wait in {what}, which is no mutex or reader-writer lock of the C "
            "library: nothing can stand in front of it"
        )
    refusal = why_not(first.module)
    if refusal:
        return Reach(why_not=refusal)
    same = [
        site
        for site in cell.sites
        if site is first or (first.lock and (site.lock, site.module) == (first.lock, first.module))
    ]
    return Reach(tuple(same))


def experiments(
    head: RunHead,
    cell: CellExplanation,
    reach: Reach,
    perturb: str,
    cpus: tuple[int, ...],
    seconds: float,
    budget_seconds: float,
    recorder: Recorder = NO_RECORDER,
) -> Experiments:
    """The experiments on a cell of a run.

    Args:
        head: that of the run.
        reach: the lock that is held longer, where a lock is the cause.
        perturb: the program that does what an experiment does.
        cpus: the CPUs that this process may use.
        seconds: what a trial of the cell took.
        budget_seconds: the time that all trials may take.
        recorder: that of the JVM whose threads wait, where one runs them.

    Raises:
        RunError: the run is one of experiments, or ran where no experiment can be made.
        StudyError: the budget is too short.
    """
    plan = plan_of(head)
    planned = next(it for it in plan.cells if it.index == cell.index)
    role = _role(head)
    levels = _levels(cell, reach, perturb, _cpus_of(role, plan, planned, cpus), recorder)
    swapped = _swapped(head.study, planned.parameters)
    if swapped:
        levels = _with_processes(levels, head.study, planned.parameters, *swapped)
    repeats = _repeats(levels, seconds, budget_seconds)
    limit = head.rules.timeout_seconds
    rules = Rules(
        precision=head.rules.precision,
        repeats_min=repeats,
        repeats_max=repeats,
        time_allowed_seconds=budget_seconds,
        timeout_seconds=None if limit is None else _LIMIT_FACTOR * limit,
    )
    study = _study(head, plan, planned, role, levels, rules, swapped[0] if swapped else "")
    first = reach.sites[0] if reach.sites else None
    return Experiments(
        study,
        Confirms(
            run=head.id,
            parameters=cell.parameters,
            cause=cell.cause,
            lock=_lock_words(first) if first else "",
            missing=reach.why_not if cell.cause == "lock" else "",
            cpu_ns=_base_cpu(cell),
            is_alone=plan.work is not None and (cell.base or {}).get(plan.work) == 1,
            unrecorded=recorder.why_not,
        ),
    )


def refuse_useless(made: Experiments, reach: Reach) -> None:
    """Refuse experiments on a lock that none of them touches: what is left, one CPU for all
    threads, says nothing of a lock.

    Raises:
        RunError: the lock cannot be held longer, and no other experiment says where threads wait.
    """
    confirms = made.confirms
    levels = {str(level) for level in made.study.factors[-1].levels}
    if confirms.cause != "lock" or reach.sites or levels - {AS_IS, ONE_CPU}:
        return
    raise RunError(
        f"{describe(confirms.parameters)}: no experiment reaches its lock: {reach.why_not}",
        "--confirm holds only mutexes and reader-writer locks of the C library, in ELF programs "
        f"that are dynamically linked; concurve explain {confirms.run} says what is known",
    )


def factor_of(study: Study) -> str:
    """The factor whose levels are the experiments: the last one."""
    return study.factors[-1].name


def _lock_words(site: WaitSite) -> str:
    """The lock, or the place that takes it, for a sentence."""
    return site.lock or f"the lock taken in {site.name}"


def _base_cpu(cell: CellExplanation) -> float | None:
    """The CPU time of an operation in the base of a cell."""
    own, excess = cell.per_operation.get("cpu"), cell.excess.get("cpu")
    return None if own is None or excess is None else own.value - excess.value


def may_be_tried(head: RunHead) -> bool:
    """May experiments be made on the run? What is not so is not advised."""
    try:
        _role(head)
    except RunError:
        return False
    return True


def _role(head: RunHead) -> Role:
    """The role that is experimented on."""
    if head.confirms is not None:
        raise RunError(
            f"the trials of run {head.id} are experiments themselves, on run {head.confirms.run}",
            f"concurve explain {head.confirms.run} --confirm",
        )
    if head.hosts is not None:
        raise RunError(
            f"run {head.id} was made on other hosts, and experiments run on this machine",
            "a run of the same study on this machine",
        )
    subject = asked_of(head.study).roles.subject
    role = next(it for it in head.study.roles if it.name == subject)
    if role.attach is not None:
        raise RunError(
            f"role {role.name} of run {head.id} is a process that runs already, and nothing is "
            "done to it",
            "a run that starts the program itself",
        )
    return role


def _cpus_of(
    role: Role, plan: Plan, cell: Cell, cpus: tuple[int, ...]
) -> tuple[str, tuple[int, ...]] | None:
    """The CPUs of a role as written, and which they are; ``None`` where they are those that other
    roles leave."""
    text = role.controls.cpus or ""
    if text == SPARE:
        return None
    text = render(text, plan.values(cell))
    return text, parse_cpus(text, cpus, f"role {role.name} cpus") if text else cpus


def _levels(
    cell: CellExplanation,
    reach: Reach,
    perturb: str,
    cpus: tuple[str, tuple[int, ...]] | None,
    recorder: Recorder,
) -> dict[str, dict[str, Value]]:
    """The parts of each level: the CPUs of the program, what its command line begins with, and what
    runs beside it."""
    usual = "" if cpus is None else cpus[0]
    plain: dict[str, Value] = {
        "cpus": usual,
        "prefix": (),
        "hogs": "0",
        "take": "cpu",
        "share": "0",
    }
    levels = {AS_IS: plain}
    if reach.sites:
        for level, times in HELD.items():
            levels[level] = {**plain, "prefix": _held(reach.sites, perturb, times)}
    elif cell.cause in TESTABLE and cpus is not None and len(cpus[1]) > 1:
        levels[ONE_CPU] = {**plain, "cpus": f"{cpus[1][0]},"}
    if cell.cause in BY_CPU_TIME:
        for level, (take, share) in HOGS.items():
            levels[level] = {**plain, "hogs": "1", "take": take, "share": str(share)}
    if recorder.beginning:
        levels[RECORDED] = {**plain, "prefix": recorder.beginning}
    if len(levels) == 1 and recorder.why_not:
        raise RunError(f"no experiment says more of this cell: {recorder.why_not}")
    if len(levels) == 1:
        raise RunError(
            "the program has one CPU, so no experiment can take the others away from it",
            "a run with two CPUs or more",
        )
    return levels


def _held(sites: tuple[WaitSite, ...], perturb: str, times: float) -> tuple[str, ...]:
    places = [f"{offset}@{site.module}" for site in sites for offset in site.offsets]
    options = [part for place in places for part in ("--site", _literal(place))]
    return (_literal(perturb), "hold", *options, "--held", f"{times:g}", "--")


def _literal(text: str) -> str:
    """A text that holds no placeholder."""
    return re.sub(r"\{([A-Za-z_][\w.-]*)\}", r"{{\1}}", text)


def _repeats(levels: Collection[str], seconds: float, budget_seconds: float) -> int:
    each = len(levels) * max(seconds, 1e-3) * _SLOWER
    each += _RECORDING_SECONDS if RECORDED in levels else 0.0
    fits = int(budget_seconds / each)
    if fits < REPEATS_MIN:
        raise StudyError(
            f"--budget {words.duration(budget_seconds)} is too short: {len(levels)} experiments, "
            f"{REPEATS_MIN} times each, take about {words.duration(REPEATS_MIN * each)}",
            f"--budget {max(1, round(2 * REPEATS_MIN * each / 60))}m",
        )
    return min(fits, REPEATS_MAX)


def _study(
    head: RunHead,
    plan: Plan,
    cell: Cell,
    role: Role,
    levels: dict[str, dict[str, Value]],
    rules: Rules,
    swapped: str,
) -> Study:
    study = head.study
    factor = FACTOR
    while factor in cell.parameters:
        factor += "-2"
    changed = _changed(role, factor)
    roles = tuple(changed if it.name == role.name else it for it in study.roles)
    if swapped:
        roles = tuple(_asking(it, swapped, factor) for it in roles)
    hogs = (_hog(factor, study),) if any(parts["hogs"] != "0" for parts in levels.values()) else ()
    return msgspec.structs.replace(
        study,
        name=f"{study.name}-confirm",
        title="",
        question=f"What limits {study.name} at {describe(cell.parameters)}?",
        factors=(
            *(Factor(name=name, levels=(level,)) for name, level in cell.parameters.items()),
            Factor(name=factor, levels=tuple(levels)),
        ),
        roles=(*hogs, *roles),
        efforts={plan.effort: Effort(rules=rules)},
        claims=(),
        base={factor: AS_IS},
        conditions=(factor,),
        optional={},
        compares=(),
        level_parts={**study.level_parts, factor: levels},
        test_case=None,
        published=(),
    )


def _changed(role: Role, factor: str) -> Role:
    """The role with what an experiment does to it."""
    controls = role.controls
    if controls.cpus != SPARE:
        controls = msgspec.structs.replace(controls, cpus=f"{{{factor}.cpus}}")
    prefix = (f"{{{factor}.prefix}}", *role.prefix)
    return msgspec.structs.replace(role, controls=controls, prefix=prefix)


def _hog(factor: str, study: Study) -> Role:
    name = HOG
    while any(role.name == name for role in study.roles):
        name += "-2"
    take, share = f"{{{factor}.take}}", f"{{{factor}.share}}"
    return Role(
        name=name,
        program="perturb",
        command=("hog", "--take", take, "--share", share),
        copies=f"{{{factor}.hogs}}",
        end="serve",
        purpose="background",
    )


# -- processes in place of threads ------------------------------------------------------------


def _swapped(study: Study, parameters: Mapping[str, Level]) -> tuple[str, Level] | None:
    """The factor by which the workers of a cell are threads, and its level by which they are
    processes; ``None`` where the study has none."""
    for factor in study.factors:
        if str(parameters.get(factor.name, "")).lower() in _AS_THREADS:
            for level in factor.levels:
                if str(level).lower() in _AS_PROCESSES:
                    return factor.name, level
    return None


def _with_processes(
    levels: dict[str, dict[str, Value]],
    study: Study,
    parameters: Mapping[str, Level],
    factor: str,
    processes: Level,
) -> dict[str, dict[str, Value]]:
    """The experiments with one more, in which that factor has its other level. Each level then says
    what the factor stands for, with its parts."""

    def meant(level: Level) -> dict[str, Value]:
        parts = study.level_parts.get(factor, {}).get(str(level), {})
        return {"kind": level, **{f"kind_{name}": value for name, value in parts.items()}}

    usual = meant(parameters[factor])
    made = {name: {**parts, **usual} for name, parts in levels.items()}
    made[PROCESSES] = {**made[AS_IS], **meant(processes)}
    return made


def _asking(role: Role, swapped: str, factor: str) -> Role:
    """The role whose texts ask the experiment for what that factor stands for."""

    def renamed(value: object) -> object:
        if isinstance(value, str):
            text = re.sub(
                rf"(?<!\{{)\{{{re.escape(swapped)}\}}(?!\}})", f"{{{factor}.kind}}", value
            )
            return re.sub(rf"\{{{re.escape(swapped)}\.([\w-]+)\}}", rf"{{{factor}.kind_\1}}", text)
        if isinstance(value, list | tuple):
            return [renamed(item) for item in value]
        if isinstance(value, dict):
            return {name: renamed(item) for name, item in value.items()}
        return value

    return msgspec.convert(renamed(msgspec.to_builtins(role)), Role)

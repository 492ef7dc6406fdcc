"""What limits a cell, as one sentence with its numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from concurve.estimate import Estimate
from concurve.explain.breakdown import Breakdown, excess
from concurve.explain.causes import CPU_LOSS_MIN, LOSS_MIN
from concurve.explain.computing import SPINNING, served_spinning_words
from concurve.explain.hot import most_spent
from concurve.explain.lock_ceiling import lock_held, share_measured, waits_in_go
from concurve.explain.losses import Loss, known_parts, loss_of, seeming_part, undivided_loss
from concurve.explain.room import cpus_at_once, taken_by_strangers
from concurve.explain.verdict import EXPLAINS, WHOLE_SHARE, Case, Verdict, mixture
from concurve.explain.weights import MAIN_MIN
from concurve.findings.cells import CellFindings
from concurve.findings.confirmation import Confirmation
from concurve.findings.explanation import (
    LITTLE_LOST,
    NO_LOSS,
    NOTHING_LOST_MAX,
    CellExplanation,
    RunnerUp,
)
from concurve.readings.measures import MEASURE_PHASE
from concurve.terms import Level
from concurve.words import count, in_percent, listed, percent

#: What is lost to a cause.
_LOST = {
    "serial": "serial work",
    "imbalance": "uneven work",
    "stage": "waiting for one stage",
    "collector": "the garbage collector",
    "quota": "a quota of CPU time",
}
#: The same of parts that name no cause by themselves.
_LOST_PARTS = _LOST | {
    "queue": "waiting for a CPU",
    "waiting": "waiting (locks, I/O)",
    "cpu": "more CPU time per operation",
    "helping": "less help from other threads",
}
#: Of more parts of a loss without a cause the greatest are told.
_PARTS_TOLD = 3


def loss_told(cell: CellFindings, own: Breakdown, base: Breakdown | None) -> Loss | None:
    """The lost speed-up as all views tell it, at the speed-up of the figures of the cell; ``None``
    for a base, and where it is not divided."""
    loss = loss_of(own, base) if base is not None else None
    return loss and loss.at(cell.indicators.get("speedup"))


def sentence(
    cell: CellFindings,
    base_cell: CellFindings,
    own: Breakdown,
    base: Breakdown | None,
    verdict: Verdict,
    varying: tuple[str, ...],
    greater: tuple[str, ...] = (),
) -> str:
    """One sentence of evidence, with its numbers. ``greater``: the parts of the lost speed-up that
    are greater than that of the cause together, and of which no cause is known."""
    where = _setting({name: cell.parameters[name] for name in varying})
    start = f"With {where} an operation" if where else "An operation"
    over = f"{f'With {where} the' if where else 'The'} speed-up over {_named(base_cell, cell)} is"
    loss = loss_told(cell, own, base)
    if base is not None and verdict.is_uncounted:
        return _uncounted(cell, base_cell, own, base, loss)
    if base is None or not base.mean("total"):
        return f"{start} takes {_time(own.mean('total'))} of thread time: {verdict.words}."
    if verdict.is_loss:
        return _lost(where, _named(base_cell, cell), own, loss, verdict, greater)
    if verdict.cause == "none" and (without := _without_loss(own, base, loss, verdict)):
        return f"{over} {without}."
    if loss is not None:
        # The thread times of the two are no measure: more kinds of threads may work in one.
        said = _of_an_operation(f"{verdict.words}{_ending(own, base, loss, verdict)}")
        return f"{over} {_speedup_of(loss)}. {said[:1].upper()}{said[1:]}."
    ratio = own.mean("total") / base.mean("total")
    times = f"{ratio:.2f}" if ratio < 1.95 else f"{ratio:.1f}"
    said = f"{start} takes {times} × the thread time of {_named(base_cell, cell)}: {verdict.words}"
    return f"{said}{_ending(own, base, loss, verdict)}."


def rate_kept(cell: CellFindings, own: Breakdown, varying: tuple[str, ...]) -> str:
    """That nothing limits a cell whose load kept the rate that it was asked for, and how much CPU
    time the server used, or where the thread time goes where that is not known."""
    where = _setting({name: cell.parameters[name] for name in varying})
    begun = f"With {where} nothing" if where else "Nothing"
    takes = f"an operation takes {_time(own.mean('total'))} of thread time: {mixture(own)}"
    said = own.used or takes
    return (
        f"{begun} limits it at the asked rate, which the load kept. {said[:1].upper()}{said[1:]}."
    )


#: An efficiency whose interval begins above this is more than the ideal.
_ABOVE_MIN = 1.05
#: What a base is blocked for less than this share of an operation explains nothing.
_WAITED_MIN = 0.1
#: CPU time of an operation that falls by less than this share does not either.
_LESS_CPU_MIN = 0.05


def above_ideal(
    cell: CellFindings, base_cell: CellFindings, own: Breakdown, base: Breakdown | None
) -> str:
    """That a speed-up is surely more than the growth of the workers promises, and what of that the
    thread time shows: a base that waited, and CPU time that an operation takes less. Empty of any
    other speed-up."""
    speedup, efficiency = (cell.indicators.get(it) for it in ("speedup", "efficiency"))
    if base is None or speedup is None or efficiency is None or efficiency.in_doubt:
        return ""
    if efficiency.low is None or efficiency.low <= _ABOVE_MIN:
        return ""
    ideal = speedup.value / efficiency.value
    said = f"The speed-up of {speedup.value:.2f} is more than the ideal {ideal:.3g}"
    shown = []
    waited = base.share("blocked")
    if waited >= _WAITED_MIN and _is_less(own, base, "blocked"):
        shown.append(
            f"with {_named(base_cell, cell)} threads are blocked for {percent(waited)} of an "
            f"operation, here for {percent(own.share('blocked'))}"
        )
    less = 1 - own.mean("cpu") / base.mean("cpu") if base.mean("cpu") else 0.0
    if less >= _LESS_CPU_MIN and _is_less(own, base, "cpu"):
        shown.append(f"an operation takes {percent(less)} less CPU time")
    why = "; ".join(shown)
    return f"{said}: {why}." if why else f"{said}; nothing that was measured says why."


#: A base that keeps so few CPUs busy beyond its workers leaves the ideal as it is.
_LESS_POSSIBLE = 0.05


def less_possible(
    cell: CellFindings, base_cell: CellFindings, own: Breakdown, base: Breakdown | None
) -> str:
    """Why less is possible than the growth of the workers promises: the base keeps more CPUs busy
    than it has workers, as a JVM with its compilers does. Empty elsewhere."""
    loss = loss_of(own, base) if base is not None else None
    if loss is None or base is None or own.cpus is None or base.level is None or own.level is None:
        return ""
    promised = min(own.level, own.cpus) / min(base.level, own.cpus)
    if loss.possible >= (1 - _LESS_POSSIBLE) * promised or own.level < own.cpus:
        return ""
    return (
        f"No more than {loss.possible:.2f}× is possible, and not {promised:.3g}×: "
        f"{_named(base_cell, cell)} already uses {cpus_at_once(base):.2f} of the {own.cpus} CPUs."
    )


def lock_allows(
    base_cell: CellFindings,
    cell: CellFindings,
    case: Case,
    verdict: Verdict,
    *,
    in_doubt: bool = False,
) -> str:
    """How much speed-up a lock allows at most, by the time for which it is held at least; empty
    where the evidence does not tell, and where that is more than the workers promise. Of figures
    ``in_doubt`` no time is told: who has a lock and waits for a CPU holds it longer. That many wait
    for it is told as what it seems to mean."""
    if waiting := waits_in_go(case, verdict):
        which = listed(
            [it for it, of in cell.parameters.items() if base_cell.parameters.get(it) != of]
        )
        is_taken = "seems to be" if in_doubt else "is"
        gain = "seem to gain" if in_doubt else "gain"
        return (
            f"If that is one lock, it {is_taken} nearly always taken, as {waiting:.1f} goroutines "
            f"wait for it on the average: more {which} {gain} next to nothing."
        )
    if in_doubt:
        return ""
    held = lock_held(case, verdict)
    level = case.cell.level
    if held is None or held.low is None or level is None or 1 / held.low > level:
        return ""
    base = _named(base_cell, cell)
    return (
        f"The lock is held for at least {_interval(held, percent)} of an operation's time with "
        f"{base}: however many workers there are, no more than {1 / held.low:.2f}× the speed of "
        f"{base} is possible."
    )


def lock_measured(
    cell: CellExplanation, tried: Sequence[Confirmation], workers: Level | None
) -> str:
    """How much speed-up a lock allows at most, by the time for which experiments saw it held;
    empty without them, and where that is more than so many ``workers`` promise."""
    held, base = share_measured(cell, tried), cell.base or {}
    if held is None or held.low is None or cell.speedup is None or not base:
        return ""
    allowed = cell.speedup / min(1.0, held.low)
    if not isinstance(workers, int | float) or allowed > workers:
        return ""
    named = _setting({k: v for k, v in base.items() if cell.parameters.get(k) != v})
    return (
        f"In the experiments a thread had the lock for {_interval(held, percent)} of the time: "
        f"however many workers there are, no more than {allowed:.2f}× the speed of "
        f"{named} is possible."
    )


def _is_less(own: Breakdown, base: Breakdown, component: str) -> bool:
    """Does an operation surely take less of a component than in the base?"""
    if any(component not in side.columns for side in (own, base)):
        return False
    more = excess(own, base, component)
    return more.high is not None and more.high < 0


def spent(own: Breakdown, verdict: Verdict) -> str:
    """What an operation of a server whose CPU time is used up costs of that, and in which function,
    library, or in the kernel surely most of it is spent; of other programs the second alone. Empty
    where neither is known, and where threads spin: that is told by itself."""
    if any(own.mean(name) for name in SPINNING):
        return ""
    where, cost = most_spent(own.hot), own.server_cpu if verdict.limit else None
    of_it = "" if where is None else f"{_interval(where.share, percent)} of "
    if cost is not None:
        said = f"An operation takes {_interval(cost, _time)} of the server's CPU time"
        return f"{said}, {of_it}it in {where.place}." if where is not None else f"{said}."
    is_limit = verdict.cause != "contamination"
    return f"{of_it}the CPU time is in {where.place}." if where and is_limit else ""


def spins_most(own: Breakdown, base: Breakdown | None, verdict: Verdict) -> str:
    """That threads of a server spin, and where, where that takes most of the CPU time that an
    operation costs more; else empty."""
    if base is None or verdict.cause != "cpu":
        return ""
    more = own.mean("cpu") - base.mean("cpu")
    spinning = sum(own.mean(name) - base.mean(name) for name in SPINNING)
    if more < CPU_LOSS_MIN * base.mean("cpu") or spinning <= EXPLAINS * more:
        return ""
    said = served_spinning_words(own)
    return f"{said[:1].upper()}{said[1:]}."


def _interval(figure: Estimate, words: Callable[[float], str]) -> str:
    """``94 % [92 %, 96 %]``; without an interval that would show the same number."""
    if figure.low is None or figure.high is None:
        return words(figure.value)
    value, low, high = map(words, (figure.value, figure.low, figure.high))
    return value if value == low == high else f"{value} [{low}, {high}]"


def parts_without_cause(own: Breakdown, base: Breakdown | None, verdict: Verdict) -> str:
    """What is known of a loss of which no cause is named, in sentences: its parts that are beyond
    their noise, and what the evidence cannot tell apart. Empty where there is neither."""
    if verdict.cause != "none" or verdict.is_uncounted:
        return ""
    either = f"Not told apart: {verdict.either_way}." if verdict.either_way else ""
    parts = "" if base is None else _parts_told(own, base)
    return " ".join(filter(None, (parts, either)))


def _parts_told(own: Breakdown, base: Breakdown) -> str:
    """The parts of a loss that are beyond their noise, as a sentence; empty where none is. A
    greater one goes first, though it is within its noise."""
    shares = [(name, _part_share(share)) for name, share in known_parts(own, base)]
    if not shares:
        return ""
    if (greater := seeming_part(own, base)) is not None:
        shares.insert(0, (greater[0], f"{percent(greater[1].value)} (not sure)"))
    (name, part), *others = shares[:_PARTS_TOLD]
    whole = "the extra time per operation" if loss_of(own, base) is None else "the lost speed-up"
    first = f"{_LOST_PARTS[name]} is {part} of {whole}"
    if not others:
        return f"{first[:1].upper()}{first[1:]}, and its cause is not known."
    rest = listed([f"{_LOST_PARTS[name]} {part}" for name, part in others])
    return f"No single cause: {first}, {rest}."


def _part_share(share: Estimate) -> str:
    """``28 % [10 %, 45 %] (not sure)`` of a part that could have a cause, but may be too small for
    one; else without its interval."""
    is_sure = share.low is None or share.low >= MAIN_MIN
    if share.value < MAIN_MIN or is_sure:
        return percent(min(1.0, share.value))
    return f"{_interval(share, percent)} (not sure)"


def _without_loss(own: Breakdown, base: Breakdown, loss: Loss | None, verdict: Verdict) -> str:
    """The speed-up, that nothing is lost, and where the time goes; empty where there is
    a loss, or where it is not known. The ratio of the thread times would say nothing: how many
    threads work differs."""
    is_all = loss is not None and loss.speedup >= (1 - NOTHING_LOST_MAX) * loss.possible
    if loss is None or not is_all or _ending(own, base, loss, verdict) != f"; {NO_LOSS}":
        return ""
    computes = own.share("cpu") >= WHOLE_SHARE
    words = f"{percent(own.share('cpu'))} of it on a CPU" if computes else verdict.words
    said = _of_an_operation(words)
    return f"{_speedup_of(loss)}: {NO_LOSS}. {said[:1].upper()}{said[1:]}"


def _speedup_of(loss: Loss) -> str:
    """``1.99 of 2``; ``7.80`` where threads wait and need no CPU, so that more is possible than the
    CPUs alone allow."""
    is_more = loss.speedup > (1 + NOTHING_LOST_MAX) * loss.possible
    of = "" if is_more else f" of {loss.possible:.3g}"
    return f"{loss.speedup:.2f}{of}{' by mean times' if loss.by_means else ''}"


def _of_an_operation(words: str) -> str:
    """Words that go on from what an operation takes, as a clause of their own."""
    if _SHARE.match(words):
        return _SHARE.sub(r"an operation spends \1 of its thread time ", words, count=1)
    return f"an operation takes {words}" if re.match(r"[\d.]+ × the CPU time", words) else words


#: A reason has so many characters at most: with the cause before it, it takes two lines of a
#: terminal.
REASON_CHARS = 108

#: What makes a reason long, and tells nothing that it needs: the last of these goes first.
_ASIDES = re.compile(r" \([^()]*\)(?=[,.;:]|$| and )")
#: How many threads a kind has: of less use than how much of the CPUs it or the load used.
_THREADS_OF_KIND = re.compile(r" in \d+ (?:threads|processes)(?=[,)])")
#: How many CPUs somebody had: the parts add up to those that are used up.
_PART_OF_CPUS = re.compile(r"[\d.]+ by ")
_COST = re.compile(r", at [\d.]+ × the CPU time")
_SHARE = re.compile(r"([\d.]+ %) of it ")
#: What goes before what other processes did.
_BESIDE = re.compile(r".*?, (?:while|as) (?=the hypervisor|other processes|processes outside)")


def reason(where: str, verdict: Verdict) -> str:
    """The reason why a cause is named, as a short sentence without its full stop: the first clause
    of its evidence, without figures that its length has no room for. Empty where the evidence
    begins with the reason."""
    if verdict.is_uncounted:
        return ""
    said = _COST.sub("", re.split(r"; |\. ", verdict.words, maxsplit=1)[0])
    if verdict.cause == "contamination":
        said = _BESIDE.sub("", said, count=1)
    said = _of_an_operation(said)
    if where:
        said = f"With {where} {said}"
    if len(said) > REASON_CHARS:
        said = _THREADS_OF_KIND.sub("", said)
    while len(said) > REASON_CHARS and (asides := list(_ASIDES.finditer(said))):
        said = said[: asides[-1].start()] + said[asides[-1].end() :]
    while len(said) > REASON_CHARS and ", " in said:
        head, _, clause = said.rpartition(", ")
        # Without it the rest would claim more than the evidence.
        if clause.startswith("or ") or _PART_OF_CPUS.match(clause):
            break
        said = head
    return said[:1].upper() + said[1:]


def _uncounted(
    cell: CellFindings,
    base_cell: CellFindings,
    own: Breakdown,
    base: Breakdown,
    loss: Loss | None,
) -> str:
    """That a factor does not count what runs, and what to vary in its place."""
    assert loss is not None, "it is said only where the loss is known"
    names = [name for name, level in cell.parameters.items()
             if base_cell.parameters.get(name) != level]  # fmt: skip
    what = f"the parameter {names[0]} does" if len(names) == 1 else f"{listed(names)} do"
    others = taken_by_strangers(own, base)
    had = f", and other processes {others * own.cpus:.2f}" if own.cpus and others >= 0.01 else ""
    return (
        f"{_named(base_cell, cell)} already uses {cpus_at_once(base):.2f} of "
        f"{count(own.cpus or 0, 'CPU')}{had}: {what} not count all that runs. No more than "
        f"{loss.possible:.2f} × is possible, and {_named(cell, base_cell)} gets {loss.speedup:.2f} "
        "×. To see how it scales, vary the CPUs: concurve sweep -P cpus 1,2 --cpus {cpus}."
    )


def _ending(own: Breakdown, base: Breakdown, loss: Loss | None, verdict: Verdict) -> str:
    """Why nothing was found, where nothing was."""
    if min(own.trials, base.trials) < 2:
        return "; a single trial has no interval, so no excess is named"
    if verdict.cause != "none":
        return ""
    if own.mean("total") < (1 + LOSS_MIN) * base.mean("total"):
        return _small(loss) if not _loses(loss) else _UNPROVEN
    more = excess(own, base, "total")
    if more.low is None or more.low <= 0:
        return f"; the excess is within its noise{_too_short(own)}"
    if not verdict.unproven:
        return _too_short(own)
    return "" if _tells_parts(own, base, loss) else _made_of(own, base, more.value)


def _tells_parts(own: Breakdown, base: Breakdown, loss: Loss | None) -> bool:
    """Does a sentence follow on the parts of the loss? Nothing follows on next to no loss."""
    known = loss or undivided_loss(own, base)
    is_little = known is not None and known.speedup >= (1 - NOTHING_LOST_MAX) * known.possible
    return not is_little and bool(known_parts(own, base))


#: The parts of the thread time, in words.
_PARTS = {"cpu": "CPU time", "run_queue": "waiting for a CPU", "blocked": "blocked time"}


def _made_of(own: Breakdown, base: Breakdown, amount: float) -> str:
    """What most of an excess is, where no cause is named: a part may be beyond its noise and too
    small for one, or may have none that the records tell."""
    known = [name for name in _PARTS if name in own.columns and name in base.columns]
    found = {name: excess(own, base, name) for name in known}
    name = max(found, key=lambda part: found[part].value)
    most, total = found[name], base.mean("total")
    if most.low is None or most.high is None or most.low <= 0 or most.value < EXPLAINS * amount:
        return _UNPROVEN
    value, low, high = (in_percent(it / total) for it in (most.value, most.low, most.high))
    return (
        f"; most of what it takes more is {_PARTS[name]}, {value} % [{low}, {high} %] of the "
        "base's thread time: why is not known"
    )


def _too_short(own: Breakdown) -> str:
    """That trials are short, where nothing was found of a loss: they have few samples, and threads
    wait for one another only a few times in each."""
    wall = own.per_trial("wall_ns")
    if wall >= SHORT_NS:
        return ""
    return f". Trials of {_time(wall)} are short: with more work in each, more can be said"


#: In shorter trials a thread is sampled a dozen times at most, and the start of an interpreter is a
#: good part of them.
SHORT_NS = 150_000_000.0
_UNPROVEN = "; no part of the excess is significant: more trials may show one"
#: Less than this share of the possible speed-up is no loss.
_SPEEDUP_LOST_MIN = 0.1


def _small(loss: Loss | None) -> str:
    """That there is no loss, or a small one."""
    is_little = loss is not None and loss.speedup < (1 - NOTHING_LOST_MAX) * loss.possible
    return f"; {LITTLE_LOST if is_little else NO_LOSS}"


def _loses(loss: Loss | None) -> bool:
    """Is the speed-up less than what was possible, whatever the thread time says?"""
    return loss is not None and loss.speedup < (1 - _SPEEDUP_LOST_MIN) * loss.possible


def _lost(
    where: str,
    base_name: str,
    own: Breakdown,
    loss: Loss | None,
    verdict: Verdict,
    greater: tuple[str, ...],
) -> str:
    """How much of the speed-up that was possible is lost, and what of it to the cause, after what a
    ``greater`` part takes."""
    assert loss is not None, "a loss has a cause only where it is known"
    start = f"With {where} the speed-up" if where else "The speed-up"
    means = " by mean times" if loss.by_means else ""
    start = f"{start} over {base_name} is {loss.speedup:.2f} of {loss.possible:.3g}{means}"
    if verdict.cause == "none":  # its parts explain too little
        return f"{start}: {verdict.words}{_too_short(own)}."
    lost, part, to = loss.possible - loss.speedup, loss.parts[verdict.cause], _LOST[verdict.cause]
    first = "".join(
        f"{loss.parts[name]:.2f} go to {_LOST_PARTS[name]}, of no known cause, and "
        for name in greater
    )
    of = f"of the {lost:.2f} lost, {first}{part:.2f} {'' if first else 'go '}to {to}"
    if part - lost >= _WON_MIN:
        of = f"all of the {lost:.2f} lost goes to {to} ({part:.2f}; other parts win some back)"
    return f"{start}; {of}: {verdict.words}{_of_the_start(own, verdict)}."


#: A part that exceeds the loss by as much as this shows that another one has won some.
_WON_MIN = 0.005


def _of_the_start(own: Breakdown, verdict: Verdict) -> str:
    """That what one thread does alone may be the start of the program, where trials are short."""
    wall = own.per_trial("wall_ns")
    if verdict.cause != "serial" or wall >= SHORT_NS:
        return ""
    return (
        f". Trials of {_time(wall)} are short, and the start of the program is a part of that: "
        "more work in each would tell what limits the work"
    )


def of_start_and_end(verdict: Verdict, second: RunnerUp | None) -> str:
    """That the start and the end of the program are serial work, and what to do about it, where
    that is the cause, or comes next; else empty."""
    is_next = second is not None and not second.is_indistinct
    is_serial = verdict.cause == "serial" or (
        second is not None and is_next and (second.cause == "serial" or "serial" in second.parts)
    )
    if not is_serial:
        return ""
    return (
        "the start and the end of the program are serial work, too: more work in a trial makes "
        f"them small, and a phase `{MEASURE_PHASE}` leaves them out"
    )


def _named(cell: CellFindings, other: CellFindings) -> str:
    """The levels in which a cell differs from another."""
    mine = {k: v for k, v in cell.parameters.items() if other.parameters.get(k) != v}
    return _setting(mine)


def _setting(parameters: dict[str, Level]) -> str:
    return " ".join(f"{name}={level}" for name, level in parameters.items())


def _time(ns: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"

"""The answers of a run: by how much its settings are faster, and which one to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from concurve import words
from concurve.analysis.sentences.gains import Greatest
from concurve.analysis.sentences.naming import is_counted, own
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding, Disagreement, Undisturbed, UsedUp
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe
from concurve.terms import Level

#: The greatest speed-up is named for each group, up to this many groups.
GROUPS_NAMED = 6

#: A sentence names at most this many settings of a best set.
SETTINGS_NAMED = 6


#: So many settings are told with the range of their undisturbed trials.
_RANGES_TOLD = 4

#: Speed-ups are by one of these; a recommendation by another one says so.
_TIMES = ("wall_seconds", "seconds_per_operation")

#: The first words of the sentences here; others are names, and keep their letters.
_OPENINGS = ("No", "Not", "Use", "The", "Of")

_NOT_QUIET = "the machine was not quiet"
_ALL_OTHERS = "all others"

#: An interval with an upper end beyond so many times the estimate has none that tells anything.
_TELLING = 5.0


def answers_of(
    plan: Plan,
    found: list[Greatest],
    best: tuple[BestFinding, ...],
    speed: str = "",
    again: str = "",
) -> tuple[list[str], list[str], dict[str, str]]:
    """The setting to use over all cells; then, for each group of the other factors, the greatest
    speed-up and the setting to use. For many groups how often each is said, and the single ones
    apart: the answers and the further sentences, and those of groups that a shorter one may stand
    for, with that. ``speed`` is the indicator of the speed-ups, ``again`` what to do about figures
    in doubt."""
    whole = [item for item in best if len(best) > 1 and not item.group]
    # The best of all settings under a condition comes before the best level of the work factor.
    by_choice = sorted(best, key=lambda item: -len(item.factors))
    of_groups = {
        describe(item.group) if item.group else "": item for item in by_choice if item not in whole
    }
    gains = {item.group: item for item in found}
    answers = [_of_all(plan, item, speed, again) for item in whole]
    if len(gains) > GROUPS_NAMED:
        answers += _of_many(plan, found)
        gains = {}
    # What puts all settings in doubt is said once, and what would decide.
    is_said = any(item.is_tentative or item.is_open for item in whole)
    each, shorter = [], {}
    for group in dict.fromkeys((*of_groups, *gains)):
        gain, found_best = gains.get(group), of_groups.get(group)
        text = _of_group(plan, group, gain, found_best, speed, again, is_said)
        if text:
            each.append(text)
        if text and found_best is not None and (short := _short(plan, found_best, gain, speed)):
            shorter[text] = short
    chosen = max((len(item.factors) for item in best if item.group), default=0)
    # A sentence of a group has no room for what would decide there.
    decide = [] if is_said else _decisive([item for item in of_groups.values() if item.group])
    every_group = [item for item in best if item.group and len(item.factors) == chosen]
    groups = [item for item in every_group if item.recommended is not None]
    if len(every_group) <= GROUPS_NAMED or not groups:
        return [*answers, *each], decide, shorter
    counts = Counter(describe(item.named) for item in groups)
    settings = words.listed([f"{name} under {count}" for name, count in counts.most_common()])
    left = len(every_group) - len(groups)
    open_ = f"; under {left} nothing is recommended" if left else ""
    said = f"Of {len(every_group)} conditions, use {settings}{open_}."
    return [said, *answers], [*each, *decide], shorter


def _decisive(items: Sequence[BestFinding]) -> list[str]:
    """What would decide where nothing is: the number of trials of a run that decides everywhere
    that trials can, and where they cannot."""
    open_ = [item for item in items if item.is_open and item.decide]
    known = [item for item in open_ if item.trials is not None]
    said = [f"With {describe(it.group)}: {it.decide}." for it in open_ if it.trials is None]
    if known:
        most = max(known, key=lambda item: item.trials or 0)
        where = f"With {describe(most.group)}" if len(known) == 1 else "Where nothing is decided"
        said.insert(0, f"{where}: {most.decide}.")
    return said


def _of_group(
    plan: Plan,
    group: str,
    gain: Greatest | None,
    best: BestFinding | None,
    speed: str,
    again: str,
    is_said: bool,
) -> str:
    """The greatest speed-up of a group, and the setting to use; where that is withheld, first why,
    then what the figures point to. ``is_said``: that nothing is recommended, and why."""
    said = []
    best = None if best is None else _as_printed(best, gain, speed)
    if best is not None and (rest := _of_undisturbed(plan, best, speed, gain)):
        is_led = gain is not None and gain.is_gain and not gain.speedup.in_doubt
        is_led = is_led and _over_next(best, gain, speed) is None
        said += [_gain(plan, gain)] if gain is not None and is_led else []
        said += [rest]
    elif best is not None and best.recommended is None:
        is_told = is_said and (best.is_tentative or best.is_open)
        one_of = _undecided(plan, best, speed, gain)
        said += [] if is_told or one_of else [_refused(best, speed)]
        said += [one_of or _pointed(plan, best, again, gain, speed)]
    else:
        if gain is not None and best is not None and best.given_back is not None:
            gain = None if gain.speedup.in_doubt else gain  # what it is at least is said instead
        if gain is not None and gain.speedup.in_doubt:
            said.append(f"{_seems(plan, gain)}, in doubt{'' if is_said else f': {_NOT_QUIET}'}.")
        elif gain is not None:
            said.append(_speedup(plan, gain, best, speed))
        if best is not None and _is_apart(best, speed):
            # The figure that was asked for comes first, the speed-up by another one after it.
            said.insert(0, _use(plan, best, speed))
        elif best is not None and gain is not None and _tells_nothing(best, gain, speed):
            said.append(_decide(best))
        elif best is not None:
            said.append(_use(plan, best, speed, gain))
    text = " ".join(filter(None, said))
    if group and text.startswith("Not decided"):
        return f"With {group} it is not yet {text.removeprefix('Not ')}"
    return f"With {group}: {_uncapitalised(text)}" if group and text else text


def _as_printed(item: BestFinding, gain: Greatest | None, speed: str) -> BestFinding:
    """The finding as it is told beside the interval of a speed-up. It left the best set by a test
    at another level than that of the interval, or in other trials: a base that the interval does
    not tell from the setting is not told to be worse, but may be as good."""
    if gain is None or _is_apart(item, speed) or not gain.speedup.holds(1.0):
        return item
    base = {name: gain.base.parameters[name] for name in item.factors}
    if base not in item.behind or gain.cell.index == gain.base.index:
        return item
    behind = tuple(setting for setting in item.behind if setting != base)
    # Beside a recommended one, what is said of the base is decided with the recommendation.
    as_good = item.as_good if item.recommended is not None else (*item.as_good, base)
    return msgspec.structs.replace(item, behind=behind, as_good=as_good)


def _speedup(plan: Plan, gain: Greatest, best: BestFinding | None, speed: str) -> str:
    """That a setting is faster, or none; only that it seems so, where it is the one to use and not
    told from the base beyond the choice among all."""
    if gain.is_gain:
        return _gain(plan, gain)
    if best is not None and best.recommended is not None and _is_led(best, gain, speed):
        return f"{_seems(plan, gain)}."
    return _no_gain(plan, gain)


def _tells_nothing(best: BestFinding, gain: Greatest, speed: str) -> bool:
    """Is the interval of the setting to use over the base so wide that it says neither which is
    faster nor by how much, as of two trials? Then none is to be used for its median."""
    return not gain.is_gain and gain.speedup.is_too_wide and _is_led(best, gain, speed)


def _is_apart(item: BestFinding, speed: str) -> bool:
    """Is the recommendation by another figure than the speed-ups are?"""
    return speed not in ("", item.indicator) and not {item.indicator, speed} <= set(_TIMES)


def _refused(item: BestFinding, speed: str) -> str:
    """That no setting is recommended, and why; what seems best follows where the trials do not
    decide."""
    by = f"by {item.label}" if item.indicator not in _TIMES or _is_apart(item, speed) else ""
    if item.is_open:
        said = "; ".join(filter(None, (by, _telling(item))))
        return f"Not decided{f' ({said})' if said else ''}:"
    by = f" {by}" if by else ""
    return f"No setting is recommended{by}: {_NOT_QUIET if item.is_tentative else item.doubt}."


def _telling(item: BestFinding) -> str:
    """How many trials would decide, in the few words that there is room for under a condition."""
    if not item.group or item.trials is None:
        return ""
    return f"about {words.count(item.trials, 'trial')} of each would tell"


def _undecided(plan: Plan, item: BestFinding, speed: str, gain: Greatest | None = None) -> str:
    """Which few settings one is to be used of, and by how much they may differ, where all others
    are worse: ``2 threads are 1.65× as fast as 1 [1.45, 1.93]. Use 2 or 4; 1 is worse. 4 is 0.97×
    to 1.12× as fast as 2.`` Where the smallest seems about as good, it is the one to use: ``Use 2:
    4 is not shown to be faster (0.97× to 1.09×). 1 is worse.`` Where it uses up the CPUs, that is
    why: ``Use 2: server and client use up the 2 CPUs, so more workers can hardly gain (4: 0.99× to
    1.13×). 1 is worse.`` Empty elsewhere. ``gain`` is that of the first of them."""
    if item.first is None:
        return ""
    is_apart = _is_apart(item, speed)
    by = f" (by {item.label})" if item.indicator not in _TIMES or is_apart else ""
    is_told = gain is not None and (_is_led(item, gain, speed) or gain.is_gain) and not is_apart
    told = _told(plan, gain) if gain is not None and is_told else ""
    rest = _not_of_the_few(plan, item)
    is_first = item.first_is_alike
    settings = [item.first] if is_first else item.settings
    use = f"Use {_one_of(plan, item, settings, with_noun=not told)}{by}"
    apart = _apart(plan, item, "as good" if is_apart else "as fast")
    if is_first:
        why = _not_shown(plan, item, is_apart)
        if item.used_up is not None and not is_apart:
            why = _full(plan, item, item.used_up)
        use = f"{use}: {why}. {rest}."
    else:
        use = f"{use}; {rest}."
    use = " ".join(filter(None, (use, _given_back(plan, item, speed), "" if is_first else apart)))
    after = ""
    if gain is not None and is_apart:
        after = _gain(plan, gain) if gain.is_gain else _no_gain(plan, gain)
    return " ".join(filter(None, (told, use, after, _decide(item))))


def _not_of_the_few(plan: Plan, item: BestFinding) -> str:
    """What is said of the settings that are none of the few: ``1 is worse``; ``1 may be as good, 8
    is worse``, where a printed interval does not tell one of them."""
    as_good = [it for it in item.as_good if it not in item.settings]
    said = [f"{_named(plan, item, as_good)} may be as good"] if as_good else []
    worse, number = _named(plan, item, item.behind), len(item.behind)
    said += [f"{worse} {words.verb(number)} worse"] if worse else []
    return ", ".join(said)


def _told(plan: Plan, gain: Greatest) -> str:
    """The speed-up of a setting, which may not be beyond the choice among all."""
    return _gain(plan, gain) if gain.is_gain else f"{_seems(plan, gain)}."


def _apart(plan: Plan, item: BestFinding, good: str) -> str:
    """``4 is 0.97× to 1.12× as fast as 2.`` With how many trials would decide, where it is one of
    several conditions: there is no room for more."""
    assert item.first is not None, "there is one to compare with"
    others, telling = _others(item), _telling(item)
    who, verb = _named(plan, item, others), words.verb(len(others))
    first = _setting(plan, item, item.first)
    telling = f" ({telling})" if telling else ""
    return f"{who} {verb} {_span(item)} {good} as {first}{telling}."


def _not_shown(plan: Plan, item: BestFinding, is_apart: bool) -> str:
    """``4 is not shown to be faster (0.97× to 1.09×)``, of the others than the setting to use."""
    others = _others(item)
    who, verb = _named(plan, item, others), words.verb(len(others))
    said = "; ".join(filter(None, (_span(item), _telling(item))))
    return f"{who} {verb} not shown to be {'better' if is_apart else 'faster'} ({said})"


def _full(plan: Plan, item: BestFinding, found: UsedUp) -> str:
    """``they use up the 2 CPUs, so more workers can hardly gain (4: 0.97× to 1.09×)``; with a load
    generator: ``server and load use up …``."""
    assert item.first is not None, "a setting that uses them up"
    ((name, level),) = item.first.items()
    are_counted = is_counted(name, level)
    who = "they use" if are_counted and level != 1 else "it uses"
    who = f"{words.listed(found.roles)} use" if len(found.roles) > 1 else who
    cpus = "the one CPU" if found.cpus == 1 else f"the {found.cpus:g} CPUs"
    more = f"more {name}" if are_counted else f"a greater {name}"
    others = _named(plan, item, _others(item))
    said = "; ".join(filter(None, (f"{others}: {_span(item)}", _telling(item))))
    return f"{who} up {cpus}, so {more} can hardly gain ({said})"


def _others(item: BestFinding) -> list[dict[str, Level]]:
    return [setting for setting in item.settings if setting != item.first]


def _span(item: BestFinding) -> str:
    """``0.97× to 1.12×``: of the other settings to the first one."""
    assert item.to_first is not None, "there is one to compare with"
    return _from_to(item.to_first)


def _from_to(found: Estimate) -> str:
    """``0.97× to 1.12×``: an interval alone."""
    assert found.low is not None and found.high is not None, "with an interval"
    digits = words.ratio_digits(found.value, found.low, found.high)
    return f"{found.low:.{digits}f}× to {found.high:.{digits}f}×"


def _one_of(
    plan: Plan,
    item: BestFinding,
    settings: Sequence[dict[str, Level]],
    *,
    with_noun: bool,
    last: str = "or",
) -> str:
    """``2 or 4 workers``, or ``8 or more clients`` where these are the greatest of several levels.
    ``with_noun``: it was not said before. ``last`` is the conjunction; with ``and`` each is
    named."""
    ((name, _),) = item.leader.items()
    levels = sorted((setting[name] for setting in settings), key=_order)
    every = {cell.parameters[name] for cell in plan.cells}
    above = {level for level in every if _order(level) >= _order(levels[0])}
    are_counted = all(is_counted(name, level) for level in levels)
    if not are_counted:
        return words.listed([describe({name: level}) for level in levels], last)
    noun = f" {name}" if with_noun else ""
    # Not where a greater one is worse, or gave no figure.
    if last == "or" and len(levels) > 3 and above == set(levels):
        return f"{levels[0]} or more{noun}"
    return f"{words.listed([str(level) for level in levels], last)}{noun}"


def _pointed(
    plan: Plan,
    item: BestFinding,
    again: str,
    gain: Greatest | None = None,
    speed: str = "",
) -> str:
    """What the figures say where nothing is recommended, for who cannot measure again, and what
    would decide; empty where they say nothing. A speed-up by another figure has a sentence of its
    own."""
    if item.disagreement is not None and item.disagreement.is_told:
        return _disagreeing(plan, item, item.disagreement, again)
    rest = (
        "" if item.undisturbed is None else _best_undisturbed(plan, item, item.undisturbed, speed)
    )
    others = _not_told_from(plan, item)
    is_led = gain is not None and _is_led(item, gain, speed)
    seems = ""
    if gain is not None and gain.speedup.in_doubt:
        seems = f"{_seems(plan, gain)}."
    elif gain is not None:
        seems = _gain(plan, gain) if gain.is_gain else _no_gain(plan, gain)
    if not (item.is_tentative or item.is_open):
        return seems
    if rest:
        # A speed-up by another figure is of other settings; else this alone says which is better.
        return " ".join(filter(None, (rest, seems if _is_apart(item, speed) else "")))
    if is_led and gain is not None and gain.speedup.value <= 1 and others == _ALL_OTHERS:
        # Its median is the best, and block by block it is no faster than its base.
        no = "no" if item.is_open else "No"  # the former follows a colon
        return " ".join(
            filter(None, (f"{no} setting seems better than the others.", _decide(item)))
        )
    is_one, leader = _setting_named(plan, item, item.leader)
    fast = ""
    if gain is not None and not _is_apart(item, speed):
        if (gain.speedup.in_doubt or item.is_open) and is_led:
            seems, fast = "", _as_fast(plan, gain)
        elif others and not gain.is_gain and item.leader.items() <= gain.base.parameters.items():
            seems = ""  # it is the base that seems best
    if not others and item.is_tentative:
        which = f", which seems {fast}" if fast else ""
        pointed = f"The figures point to {describe(item.leader)}{which}."
    else:
        best = f"{leader} {'seems' if is_one else 'seem'} best"
        if gain is not None and gain.most is not None and not _is_apart(item, speed):
            # The table shows a greater speed-up of another one.
            is_most = item.named.items() <= gain.most.parameters.items()
            best += "" if is_most else f" by {'its' if is_one else 'their'} median"
        best += f", {fast}" if fast else ""
        pointed = f"{best}{_rivals(plan, item, others)}."
    alone = _undisturbed_alone(plan, item)
    return " ".join(filter(None, (pointed, seems, alone, _decide(item))))


def _undisturbed_alone(plan: Plan, item: BestFinding) -> str:
    """Between which values the trials lie that nothing disturbed: ``The undisturbed trials alone
    (wall time): workers=1 1.20 to 1.31 s (3 trials), 2 0.98 to 1.01 s (4): too few to decide.`` Of
    many settings those with the most of them. A group has no room for it."""
    if not item.ranges or item.group:
        return ""
    most = sorted(item.ranges, key=lambda found: -found.trials)[:_RANGES_TOLD]
    said: list[str] = []
    for found in (found for found in item.ranges if found in most):
        name = _setting(plan, item, found.setting) if said else describe(found.setting)
        span = words.quantity_range(found.low, found.high, found.unit)
        number = f"{found.trials}" if said else words.count(found.trials, "trial")
        said.append(f"{name} {span} ({number})")
    more = len(item.ranges) - len(most)
    said += [f"and those of {words.count(more, 'other')}"] if more else []
    return f"The undisturbed trials alone ({item.label}): {', '.join(said)}: too few to decide."


def _of_undisturbed(plan: Plan, item: BestFinding, speed: str, gain: Greatest | None = None) -> str:
    """Which setting to use of those that are not in doubt, where those in doubt seem worse: ``Of
    the settings not in doubt, use 8 clients: 1.21× as fast as 4 [1.17, 1.26], the next best.
    clients=1 seems worse, but is in doubt.`` Greater ones that are in doubt may be as good. Empty
    elsewhere."""
    found = item.undisturbed
    if found is None or not found.is_to_use:
        return ""
    use = _use(plan, found.best, speed) if found.best.recommended is not None else ""
    use = use or _undecided(plan, found.best, speed)
    if next_best := _to_next(plan, found, speed, _over_next(item, gain, speed)):
        use = f"{use.removesuffix('.')}: {next_best}."
    worse = [setting for setting in found.doubted if setting not in found.may_be_as_good]
    said = [f"Of the settings not in doubt, {_uncapitalised(use)}"]
    if worse:
        who = f"{len(worse)} others"
        if len(worse) <= SETTINGS_NAMED:
            who = words.listed([describe(setting) for setting in worse])
        verb = words.verb(len(worse))
        said.append(f"{who} {_seem(len(worse) == 1)} worse, but {verb} in doubt.")
    if as_good := found.may_be_as_good:
        who = _named(plan, item, as_good)
        said.append(f"{who} {words.verb(len(as_good))} in doubt, and may be as good.")
    return " ".join(said)


def _over_next(item: BestFinding, gain: Greatest | None, speed: str) -> Greatest | None:
    """The speed-up, if it is that of the best setting not in doubt over the next one."""
    found = item.undisturbed
    if found is None or found.best.recommended is None or found.next_best is None or gain is None:
        return None
    next_best = found.next_best.items()
    is_of_both = _is_led(found.best, gain, speed) and next_best <= gain.base.parameters.items()
    return gain if is_of_both and not gain.speedup.in_doubt else None


def _best_undisturbed(plan: Plan, item: BestFinding, found: Undisturbed, speed: str) -> str:
    """The same where a setting in doubt may be the one to use: ``Of the settings not in doubt, 4
    clients are best: 1.31× as fast as 2 [1.28, 1.36], the next best. clients=8 is in doubt.`` It
    alone says which of the former is better: of the latter only that they are in doubt. Empty where
    none of the former is worse."""
    best = found.best
    if found.is_to_use or len(best.settings) == best.compared:
        return ""
    if len(best.settings) == 1:
        is_one, who = _setting_named(plan, best, best.settings[0])
        next_best = _to_next(plan, found, speed)
        is_shown = found.to_next is None or not found.to_next.holds(1.0)
        verb = ("is" if is_one else "are") if is_shown else _seem(is_one)
        said = f"{who} {verb} best{f': {next_best}' if next_best else ''}"
    elif len(best.settings) <= SETTINGS_NAMED and len(best.factors) == 1:
        few = _one_of(plan, best, best.settings, with_noun=True, last="and")
        said = f"{few} cannot be told from the best"
    else:
        return ""
    number = len(found.doubted)
    doubted = f"{_named(plan, item, found.doubted)} {words.verb(number)} in doubt"
    return f"Of the settings not in doubt, {said}. {doubted}."


def _to_next(plan: Plan, found: Undisturbed, speed: str, gain: Greatest | None = None) -> str:
    """``1.21× as fast as 4 [1.17, 1.26], the next best``; empty where several may be the best. Of
    two settings it is the ``gain`` of one over the other, which has the interval that is shown
    elsewhere, too."""
    ratio, follows = found.to_next, found.next_best
    if ratio is None or follows is None:
        return ""
    are_two = found.best.compared == 2
    ratio = gain.speedup if gain is not None and are_two else ratio
    good = "as good" if _is_apart(found.best, speed) else "as fast"
    next_best = "" if are_two else ", the next best"
    # As beside every interval that holds 1 (:func:`_as_printed`).
    next_best += ", which may be as good" if ratio.holds(1.0) else ""
    named = _setting(plan, found.best, follows)
    return f"{_times(ratio)} {good} as {named}{_interval(ratio)}{next_best}"


def _short(plan: Plan, item: BestFinding, gain: Greatest | None, speed: str) -> str:
    """The answer of a group in about a line, where it is in doubt: which settings may be the best,
    and how fast the one with the best figure is. Empty elsewhere."""
    if not item.group or not item.is_tentative or item.recommended is not None:
        return ""
    item = _as_printed(item, gain, speed)
    if item.undisturbed is not None and item.undisturbed.is_to_use:
        return ""
    begun = f"With {describe(item.group)}, in doubt"
    if (found := item.disagreement) and found.is_told:
        return (
            f"{begun}: quiet trials point to {describe(found.quiet)}, all to "
            f"{describe(found.every)}."
        )
    are_few = item.compared <= SETTINGS_NAMED and len(item.factors) == 1
    if len(item.as_good) == item.compared - 1:
        if not are_few:
            return f"{begun}: no setting seems better than the others."
        every = _one_of(plan, item, [item.leader, *item.as_good], with_noun=True, last="and")
        return f"{begun}: {every} may be equally good."
    is_one, who = _setting_named(plan, item, item.leader)
    fast = _as_fast(plan, gain) if gain is not None and _is_led(item, gain, speed) else ""
    rest = f"; {_named(plan, item, item.as_good)} may be as good" if item.as_good else ""
    if are_few and item.as_good:
        is_one, who = False, _one_of(plan, item, [item.leader, *item.as_good], with_noun=True)
        fast = f"{_setting(plan, item, item.leader)} is {fast}" if fast else ""
        rest = f"; {_named(plan, item, item.behind)} {_seem(len(item.behind) == 1)} worse"
    fast = f" ({fast})" if fast else ""
    return f"{begun}: {who} {_seem(is_one)} best{fast}{rest}."


def _seem(is_one: bool) -> str:
    return "seems" if is_one else "seem"


def _rivals(plan: Plan, item: BestFinding, others: str) -> str:
    """``; 4 and 8 may be as good, 1 is not``. What disturbed trials have behind is not excluded."""
    if not others:
        return ""
    worse = _named(plan, item, item.behind) if item.is_open else ""
    more = f", {worse} {words.verb(len(item.behind))} not" if worse else ""
    return f"; {others} may be as good{more}"


def _decide(item: BestFinding) -> str:
    """What would decide, as a sentence; a group has no room for it."""
    if not item.decide or item.group:
        return ""
    return f"{item.decide[:1].upper()}{item.decide[1:]}."


def _is_led(item: BestFinding, gain: Greatest, speed: str) -> bool:
    """Is the speed-up that of the setting that is named, over another one, by the same figure?"""
    named = item.named.items()
    is_other = not named <= gain.base.parameters.items()
    return named <= gain.cell.parameters.items() and is_other and not _is_apart(item, speed)


def _disagreeing(plan: Plan, item: BestFinding, found: Disagreement, again: str) -> str:
    """That the trials that nothing disturbed point to another setting than all trials do."""
    is_one, quiet = _setting_named(plan, item, found.quiet)
    every = describe(found.every)
    if found.are_enough:
        seem = "seems" if is_one else "seem"
        return f"By the undisturbed trials alone {quiet} {seem} best; all trials point to {every}."
    pointed = (
        f"The undisturbed trials, {found.trials} or more of each, point to "
        f"{describe(found.quiet)}, not to {every} as all trials do."
    )
    return " ".join(filter(None, (pointed, _undisturbed_alone(plan, item), again)))


def _setting_named(plan: Plan, item: BestFinding, setting: dict[str, Level]) -> tuple[bool, str]:
    """A setting as the subject of a sentence, and whether it is singular."""
    ((name, level), *more) = setting.items()
    if not more and name == plan.work and is_counted(name, level) and level != 1:
        return False, f"{level} {name}"
    return True, describe(setting)


def _not_told_from(plan: Plan, item: BestFinding) -> str:
    """The other settings that no trial tells from that with the best figure."""
    if len(item.as_good) == item.compared - 1 > 1:
        return _ALL_OTHERS
    others = _named(plan, item, item.as_good)
    # What all candidates have is decided.
    shared = [
        (name, level)
        for name, level in item.leader.items()
        if all(setting.get(name) == level for setting in item.as_good)
    ]
    if not item.as_good or not shared or len(item.factors) < 2:
        return others
    return f"{others} with {describe(dict(shared))}"


def _named(plan: Plan, item: BestFinding, settings: Sequence[dict[str, Level]]) -> str:
    """Some of the settings in their order; their number, if they are many, or differ in several
    factors; empty where there are none."""
    if len(settings) > SETTINGS_NAMED or (settings and len(item.factors) > 1):
        return words.count(len(settings), "other")
    ordered = sorted(settings, key=lambda setting: [*map(_order, setting.values())])
    return words.listed([_setting(plan, item, one) for one in ordered]) if ordered else ""


def _of_many(plan: Plan, found: list[Greatest]) -> list[str]:
    gains = [item for item in found if item.is_gain and not item.speedup.in_doubt]
    doubted = [item for item in found if item.speedup.in_doubt]
    answers = []
    if gains:
        most = max(gains, key=lambda item: item.speedup.value)
        answers.append(f"With {most.group}: {_uncapitalised(_gain(plan, most))}")
    none = len(found) - len(gains) - len(doubted)
    if none:
        answers.append(
            f"Under {none} of {len(found)} conditions no cell is significantly faster than the "
            f"base cell{found[0].by}."
        )
    if doubted:
        answers.append(
            f"Under {len(doubted)} of {len(found)} conditions the greatest speed-up is in doubt: "
            "the machine was not quiet."
        )
    return answers


def _gain(plan: Plan, item: Greatest) -> str:
    """``2 threads are 2.02× as fast as 1 [1.92, 2.11].``"""
    is_one, subject = _subject(plan, item.cell)
    return f"{subject} {'is' if is_one else 'are'} {_as_fast(plan, item)}."


def _seems(plan: Plan, item: Greatest) -> str:
    """A speed-up that rests on trials in doubt."""
    is_one, subject = _subject(plan, item.cell)
    return f"{subject} {'seems' if is_one else 'seem'} {_as_fast(plan, item)}"


def _as_fast(plan: Plan, item: Greatest) -> str:
    """``2.02× as fast as 1 [1.92, 2.11]``; ``at least 4.96× as fast as 1``, where the interval has
    no upper end that tells anything; ``0.74× to 2.26× as fast as 1 (too wide to tell)``, where none
    of it does."""
    found, base = item.speedup, _base(plan, item)
    if found.low is not None and found.high is not None and found.high > _TELLING * found.value:
        if found.low > 1:
            least = f"{found.low:.{words.ratio_digits(found.low, found.low)}f}"
            return f"at least {least}× as fast as {base}{item.by}"
        return f"{_times(found)} as fast as {base}{item.by} (too few trials for a useful interval)"
    if found.is_too_wide:
        return f"{_from_to(found)} as fast as {base}{item.by} (too wide to tell)"
    return f"{_times(found)} as fast as {base}{_interval(found)}{item.by}"


def _no_gain(plan: Plan, item: Greatest) -> str:
    if item.slower is not None:
        is_one, subject = _subject(plan, item.slower)
        fast = _as_fast(plan, item._replace(cell=item.slower))
        return f"{subject} {'is' if is_one else 'are'} slower: {fast}."
    if item.all_slower:
        return _fastest(plan, item)
    base = _base(plan, item)
    other = "setting"
    if plan.work and base == str(item.base.parameters[plan.work]):
        other = f"number of {plan.work}"
    return f"No {other} is significantly faster than {base}{item.by}."


def _fastest(plan: Plan, item: Greatest) -> str:
    """``threads=1 is the fastest: 2 threads are 0.68× as fast, 4 threads 0.09×.``"""
    is_one, base = _subject(plan, item.base)
    begun = f"{base} {'is' if is_one else 'are'} the fastest{item.by}"
    ranked = sorted(item.all_slower, key=lambda it: -it[1].value)
    if len(ranked) > SETTINGS_NAMED:
        most, least = ranked[0][1], ranked[-1][1]
        return f"{begun}: the {len(ranked)} others are {_times(least)} to {_times(most)} as fast."
    is_one, first = _subject(plan, ranked[0][0])
    said = [f"{first} {'is' if is_one else 'are'} {_times(ranked[0][1])} as fast"]
    said += [f"{_subject(plan, cell)[1]} {_times(found)}" for cell, found in ranked[1:]]
    return f"{begun}: {', '.join(said)}."


def _subject(plan: Plan, cell: CellFindings) -> tuple[bool, str]:
    """A cell as the subject of a sentence, and whether it is singular: ``2 threads`` where the
    factor is the name of what it counts, else ``n=2``."""
    level = cell.parameters[plan.work] if plan.work else ""
    if plan.work and is_counted(plan.work, level) and level != 1:
        return False, f"{level} {plan.work}"
    return True, own(plan, cell)


def _of_all(plan: Plan, item: BestFinding, speed: str, again: str) -> str:
    """The setting to use over all cells, or that none is recommended, and what the figures say."""
    if item.recommended is not None:
        return _use(plan, item, speed)
    if rest := _of_undisturbed(plan, item, speed):
        return rest
    return _undecided(plan, item, speed) or " ".join(
        filter(None, (_refused(item, speed), _pointed(plan, item, again)))
    )


def _use(plan: Plan, item: BestFinding, speed: str, gain: Greatest | None = None) -> str:
    """The recommended setting of a best set, and which others are as good: ``Use 4; 2 may be as
    good, 8 is not significantly better.`` The sentence on the ``gain`` stands before it, if there
    is one."""
    assert item.recommended is not None, "one that is withheld is not to be used"
    is_named = item.indicator not in _TIMES or _is_apart(item, speed)
    by = f" (by {item.label})" if is_named else ""
    # The noun was said with the gain, which stands before it.
    name = _setting(plan, item, item.recommended)
    if gain is None:
        _, name = _setting_named(plan, item, item.recommended)
    advice = f"Use {name}{by}"
    # That no other setting is faster than this one was said.
    is_said = gain is not None and not gain.is_gain
    is_base = gain is not None and item.recommended.items() <= gain.base.parameters.items()
    said = []
    passed = _maybe_as_good(plan, item, speed, gain)
    if passed:
        cost = _to_passed(plan, item, speed) if len(passed) == len(item.passed) else ""
        said.append(f"{_named(plan, item, passed)} may be as good{cost}")
    if item.as_good and not (is_said and is_base):
        verb = words.verb(len(item.as_good))
        said.append(f"{_named(plan, item, item.as_good)} {verb} not significantly better")
    # Where no speed-up stands before it, what it is better than is said after it.
    is_told = gain.is_gain if gain is not None else _is_apart(item, speed)
    worse = _worse_beside(plan, item, gain) if is_told else []
    if worse:
        said.append(f"{_named(plan, item, worse)} {words.verb(len(worse))} worse")
    use = f"{advice}; {', '.join(said)}." if said else f"{advice}."
    return " ".join(filter(None, (use, _given_back(plan, item, speed))))


def _maybe_as_good(
    plan: Plan, item: BestFinding, speed: str, gain: Greatest | None
) -> list[dict[str, Level]]:
    """The settings that may be as good as the recommended one, though the figures have them behind:
    so may the base that it is not faster than beyond the choice among all."""
    found = list(item.passed)
    if gain is None or gain.is_gain or not _is_led(item, gain, speed) or len(item.factors) > 1:
        return found
    base = {name: gain.base.parameters[name] for name in item.factors}
    return found if base in (*found, *item.as_good) else [base, *found]


def _to_passed(plan: Plan, item: BestFinding, speed: str) -> str:
    """`` (4 is 0.97× to 1.21× as fast)``: how much smaller settings that may be as good may cost;
    empty where that is not known."""
    found = item.to_passed
    if found is None or found.low is None or found.high is None or item.recommended is None:
        return ""
    digits = words.ratio_digits(found.value, found.low, found.high)
    span = f"{found.low:.{digits}f}× to {found.high:.{digits}f}×"
    good = "as good" if _is_apart(item, speed) else "as fast"
    return f" ({_setting(plan, item, item.recommended)} is {span} {good})"


def _given_back(plan: Plan, item: BestFinding, speed: str) -> str:
    """On what the setting to use stands where settings with one worker were disturbed:
    ``threads=1 was disturbed in 6 of 10 trials; even with all CPU time that others took counted as
    its own, 2 threads are at least 1.35× as fast.`` Empty where none was."""
    found = item.given_back
    if found is None:
        return ""
    many = f"disturbed in {found.disturbed} of {words.count(found.trials, 'trial')}"
    if found.at_least is None:
        return f"It was {many}, which made it no better."
    who, own = f"{len(found.settings)} settings with one worker were", "their own"
    if len(found.settings) == 1:
        who, own = f"{describe(found.settings[0])} was", "its own"
    begun = f"{who} {many}"
    is_one, named = _setting_named(plan, item, item.named)
    least = f"{found.at_least:.{words.ratio_digits(found.at_least)}f}"
    good = "as good" if _is_apart(item, speed) else "as fast"
    return (
        f"{begun}; even with all CPU time that others took counted as {own}, {named} "
        f"{'is' if is_one else 'are'} at least {least}× {good}."
    )


def _worse_beside(plan: Plan, item: BestFinding, gain: Greatest | None) -> list[dict[str, Level]]:
    """The settings with a greater number than the recommended one that are told to be worse, as
    who thinks that more is better is told, and the next smaller one, which would do if it were as
    good. Under a condition there is no room for the latter, nor for a base that was named."""
    if len(item.factors) != 1 or item.recommended is None:
        return []
    (name,) = item.factors
    own = item.recommended[name]
    if isinstance(own, str):
        return []
    behind = {level for it in item.behind if not isinstance(level := it[name], str)}
    found = {level for level in behind if level > own}
    if item.group:
        return [{name: level} for level in found] if gain is not None else []
    every = {level for cell in plan.cells if not isinstance(level := cell.parameters[name], str)}
    below = max((level for level in every if level < own), default=None)
    is_named = gain is not None and gain.base.parameters[name] == below
    if below in behind and below is not None and not is_named:
        found.add(below)
    return [{name: level} for level in found]


def _setting(plan: Plan, item: BestFinding, setting: dict[str, Level]) -> str:
    """A member of a best set: its level alone, where the factor names what it counts."""
    levels = list(setting.items())
    if len(levels) == 1 and levels[0][0] == plan.work and is_counted(*levels[0]):
        return str(levels[0][1])
    return describe(setting)


def _order(level: Level) -> tuple[bool, float, str]:
    """Numbers by size, then words."""
    return (True, 0.0, level) if isinstance(level, str) else (False, level, "")


def _uncapitalised(text: str) -> str:
    """A sentence that follows a colon."""
    first, _, _ = text.partition(" ")
    return text[:1].lower() + text[1:] if first in _OPENINGS else text


def _base(plan: Plan, item: Greatest) -> str:
    """The base of a cell, with its levels that differ from those of the cell's group; its level
    alone, where nothing else differs and the factor names what it counts."""
    other = {
        name: level
        for name, level in item.base.parameters.items()
        if name != plan.work and level != item.cell.parameters[name]
    }
    if plan.work and not other and is_counted(plan.work, item.base.parameters[plan.work]):
        return str(item.base.parameters[plan.work])
    itself = own(plan, item.base)
    return f"{describe(other)} {itself}" if plan.work and other else itself


def _times(estimate: Estimate) -> str:
    return f"{estimate.value:.{_digits(estimate)}f}×"


def _digits(estimate: Estimate) -> int:
    return words.ratio_digits(estimate.value, estimate.low, estimate.high)


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return " (one trial, no interval)"
    digits = _digits(estimate)
    return f" [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"

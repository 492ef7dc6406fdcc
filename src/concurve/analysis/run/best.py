"""The best settings of a run by an indicator: those that cannot be distinguished from the best,
and the one of them to use."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.ground import Ground
from concurve.analysis.run.doubted import Chosen
from concurve.analysis.run.given_back import Shares, bounds_of
from concurve.analysis.run.tables import Table, is_staged
from concurve.estimate import Estimate
from concurve.findings.best import (
    BestFinding,
    Disagreement,
    GivenBack,
    NewRun,
    Undisturbed,
    UndisturbedRange,
)
from concurve.findings.repeats import repeats_options
from concurve.planning.doubt import is_doubtful, is_enough
from concurve.planning.plan import Cell, Plan
from concurve.planning.protocol import Protocol
from concurve.stats.best import (
    ALIKE,
    RIVALS_MAX,
    BestSet,
    Gap,
    best_set,
    choose,
    gap,
    trials_to_place,
)
from concurve.stats.blocks import Blocks, block_ratio
from concurve.stats.centre import centre, staged
from concurve.stats.power import TOO_COARSE
from concurve.terms import IndicatorInfo, Level, joined_levels

#: A smaller relative difference between the best two settings is not looked for.
EFFECT = 0.01

#: Trials of different blocks differ by what the machine's own level does between them, too: only so
#: much is no such difference.
_APART = 0.25

#: Hardly anybody runs for longer, in seconds, to tell settings apart that are nearly as good.
_WORTH_SECONDS = 900.0

#: The spread of fewer blocks does not say how many trials would decide: that of two has one degree
#: of freedom, and the number goes by its square.
_BLOCKS_TOLD_MIN = 3

#: Fewer trials are not advised: by the spread of a few trials, a number is rough.
_ADVISED_MIN = 10

#: Why nothing is recommended of settings that the trials do not tell apart.
OPEN = "the trials do not decide"
#: Both centres are 0, as of errors that hardly any trial has.
_NO_SHARE = "the centres of the best settings are 0, so no share says how far they lie apart"
_SINGLE = "a setting with a single trial cannot be distinguished from any: run more trials"


class _Candidate(NamedTuple):
    """A measured setting; its values may be off by ``resolution``."""

    cell: Cell
    values: Blocks
    resolution: float


class _Asked(NamedTuple):
    """Whether it is said what would decide between the best two settings, and what a run with more
    trials is planned by: the time of a block, and the time allowance of this run, in seconds.
    ``is_sweep``: options say its levels. ``had``: so many trials of a setting this run has in use,
    with those that are set aside."""

    advised: bool
    block_seconds: float | None
    allowed_seconds: float
    is_sweep: bool = False
    had: int = 0

    def at_least(self, trials: int) -> int:
        """So many trials, or more: as many as this run had would only repeat it."""
        return max(trials, self.had + 1, _ADVISED_MIN)

    def after_few(self, common: int, left: _Left | None = None) -> _Decisive:
        """What to do after so few blocks that their spread does not say what would decide."""
        trials = self.at_least(common + 1)
        time, new_run = self._new_run(trials, left)
        return _Decisive(
            f"{words.count(common, 'trial')} of each to compare are too few to say how many would "
            f"decide; measure at least {trials}{time}",
            new_run=new_run,
        )

    def told(self, trials: int, said: str, left: _Left | None = None) -> _Decisive:
        """That so many trials of each setting would decide, as it is ``said``, with the time that
        they take; where that is too long, what may need fewer trials."""
        time, new_run = self._new_run(trials, left)
        return _Decisive(f"{said}{time}", trials, new_run)

    def _new_run(self, trials: int, left: _Left | None) -> tuple[str, NewRun | None]:
        """The time of a new run with so many trials of each setting, in brackets or as a remark,
        and its options; ``None`` where it is too long."""
        block = self.block_seconds
        if block is not None and left is not None:
            block *= len(left.levels) / left.of
        seconds = None if block is None else trials * block
        if seconds is not None and seconds > _WORTH_SECONDS:
            time = words.duration(seconds)
            return f"; that is {time}: longer trials or a quieter machine may need fewer", None
        options = repeats_options(trials, seconds, self.allowed_seconds)
        if left is not None:
            levels = f"{left.factor}={joined_levels(left.levels)}"
            options = f"--set {shlex.quote(levels)} {options}"
        time = "" if seconds is None else f" (about {words.duration(seconds)})"
        return time, NewRun(trials=trials, options=options)


class _Left(NamedTuple):
    """The levels of the only factor that varies among which is not decided, ``of`` so many that
    this run had: a new run needs no others."""

    factor: str
    levels: tuple[Level, ...]
    of: int


class _Decisive(NamedTuple):
    """What would decide, as a sentence without its full stop, and how many trials of each setting
    in which new run, where that is known."""

    said: str
    trials: int | None = None
    new_run: NewRun | None = None


def best_settings(
    plan: Plan,
    columns: Sequence[Blocks],
    indicator: IndicatorInfo,
    resolutions: Sequence[float] = (),
    *,
    advised: bool = True,
    block_seconds: float | None = None,
    is_sweep: bool = False,
    had: int = 0,
) -> tuple[BestFinding, ...]:
    """One finding for each group of cells that differ in the work factor only, and one over all
    cells of equal conditions; only the latter where nothing else is chosen. None for an indicator
    without a better direction, or where every factor is a condition.

    ``columns`` has the values of each cell by block, and ``resolutions`` by how much they may be
    off, in the order of the plan; cells without values are left out. ``advised``: say what would
    decide between the best two settings, which takes as long as all the rest. ``block_seconds`` is
    the time of a trial of every cell, by which a new run may need more time than this one had.
    ``is_sweep``: options say what is measured, so they can say that only some levels are. ``had``:
    the trials of a setting in use, where some of them are set aside and not in the columns.
    """
    if indicator.better == "neither":
        return ()
    measured = [
        _Candidate(cell, column, off)
        for cell, column, off in zip(
            plan.cells, columns, resolutions or [0.0] * len(columns), strict=True
        )
        if column
    ]
    had = max([had, *(len(candidate.values) for candidate in measured)])
    asked = _Asked(advised, block_seconds, plan.rules.time_allowed_seconds, is_sweep, had)
    varied = [name for name, levels in _levels(plan).items() if len(levels) > 1]
    chosen = tuple(name for name in varied if name not in plan.study.conditions)
    if not chosen:
        return ()
    found = []
    if plan.work in chosen and len(chosen) > 1:
        others = [name for name in varied if name != plan.work]
        found = _found(plan, (plan.work,), _alike(measured, others), indicator, asked)
    met = [name for name in varied if name not in chosen]
    return tuple(found + _found(plan, chosen, _alike(measured, met), indicator, asked))


def _found(
    plan: Plan,
    factors: tuple[str, ...],
    groups: Sequence[list[_Candidate]],
    indicator: IndicatorInfo,
    asked: _Asked,
) -> list[BestFinding]:
    """The finding of each group; their sets hold together."""
    comparisons = sum(len(group) - 1 for group in groups)
    each = (_find(plan, factors, group, indicator, comparisons, asked) for group in groups)
    return [item for item in each if item is not None]


def _alike(measured: Sequence[_Candidate], names: Sequence[str]) -> list[list[_Candidate]]:
    """The candidates that share the levels of these factors, together."""
    groups: dict[tuple[Level, ...], list[_Candidate]] = {}
    for candidate in measured:
        key = tuple(candidate.cell.parameters[name] for name in names)
        groups.setdefault(key, []).append(candidate)
    return list(groups.values())


def _find(
    plan: Plan,
    factors: tuple[str, ...],
    candidates: list[_Candidate],
    indicator: IndicatorInfo,
    comparisons: int,
    asked: _Asked,
) -> BestFinding | None:
    """``comparisons``: how many all sets of this kind take."""
    if len(candidates) < 2:
        return None
    columns = [candidate.values for candidate in candidates]
    resolutions = [candidate.resolution for candidate in candidates]
    is_lower, by_data = indicator.better == "lower", is_staged(plan.rules)
    best = best_set(
        columns, is_lower, is_staged=by_data, resolutions=resolutions, comparisons=comparisons
    )
    levels = _levels(plan)
    work_first = sorted(factors, key=lambda name: name != plan.work)

    def cost(index: int) -> list[tuple[bool, float]]:
        parameters = candidates[index].cell.parameters
        return [_rank(parameters[name], levels[name]) for name in work_first]

    def only(indices: Iterable[int]) -> tuple[dict[str, Level], ...]:
        return tuple(_only(factors, candidates[index].cell.parameters) for index in indices)

    choice = choose(
        columns,
        best,
        sorted(best.members, key=cost),
        is_lower,
        is_staged=by_data,
        resolutions=resolutions,
    )
    is_open = choice.chosen is None
    decisive = _Decisive("")
    first, to_first, to_passed = None, None, None
    passed, as_good = choice.passed, choice.others
    if choice.chosen is not None:
        # Whatever the set holds is named: who reads of one setting takes the others to be worse.
        order = sorted(best.members, key=cost)
        place = order.index(choice.chosen)
        passed, as_good = tuple(order[:place]), tuple(order[place + 1 :])
    if choice.chosen is not None and len(factors) == 1:
        pairs = [(choice.chosen, smaller) for smaller in passed]
        to_passed = _times_as_good_each(candidates, pairs, is_lower, by_data)
    if passed:
        every = range(len(candidates))
        first, to_first = _first(candidates, best, every, cost, is_lower, by_data, factors)
    if is_open:
        first, to_first = _first(candidates, best, choice.others, cost, is_lower, by_data, factors)
        left = _levels_left(plan, factors, candidates, best) if asked.is_sweep else None
        decisive = _decide_open(candidates, best, 2 * staged(0.95, by_data) - 1, asked, left)
    elif asked.advised:
        confidence = 1 - (1 - staged(0.95, by_data)) / comparisons
        decisive = _decide(candidates, best, confidence, asked)
    leader = candidates[best.leader].cell.parameters
    shared = {
        name: level
        for name, level in leader.items()
        if name not in factors and len(levels[name]) > 1
    }
    return BestFinding(
        indicator=indicator.name,
        label=indicator.label or indicator.name,
        group=shared,
        factors=factors,
        settings=only(best.members),
        leader=_only(factors, leader),
        compared=len(candidates),
        recommended=None if choice.chosen is None else only([choice.chosen])[0],
        passed=only(passed),
        to_passed=to_passed,
        as_good=only(as_good),
        behind=only(sorted(set(range(len(candidates))) - set(best.members))),
        decide=decisive.said,
        trials=decisive.trials,
        new_run=decisive.new_run,
        doubt=OPEN if is_open else "",
        is_open=is_open,
        first=None if first is None else only([first])[0],
        to_first=to_first,
        first_is_alike=(
            plan.work in factors and to_first is not None and to_first.value <= 1 + ALIKE
        ),
    )


#: Of more settings than these nobody is told to use one.
FEW = 6


def _first(
    candidates: Sequence[_Candidate],
    best: BestSet,
    as_good: Collection[int],
    cost: Callable[[int], list[tuple[bool, float]]],
    is_lower: bool,
    is_staged: bool,
    factors: Sequence[str],
) -> tuple[int | None, Estimate | None]:
    """The smallest of the few settings of which one is to be used, since all others are worse, and
    how many times as good the others of them are as it (:func:`_times_as_good_each`)."""
    few, rest = best.members, len(candidates) - len(best.members)
    if len(factors) != 1 or not rest or not 2 <= len(few) <= FEW or len(as_good) < len(few) - 1:
        return None, None
    first, *others = sorted(few, key=cost)
    pairs = [(other, first) for other in others]
    found = _times_as_good_each(candidates, pairs, is_lower, is_staged)
    return (None, None) if found is None else (first, found)


def _times_as_good_each(
    candidates: Sequence[_Candidate],
    pairs: Sequence[tuple[int, int]],
    is_lower: bool,
    is_staged: bool,
) -> Estimate | None:
    """How many times as good the first of each pair is as the second: the greatest, with an
    interval at 95 % that holds for each of them (Bonferroni); ``None`` without a pair, and where
    one has a single trial, or figures that have no ratio."""
    each = 1 - 0.05 / max(1, len(pairs))
    found = [
        _times_as_good(candidates[one], candidates[other], is_lower, is_staged, each)
        for one, other in pairs
    ]
    known = [item for item in found if item is not None and item.low is not None]
    if not known or len(known) < len(found):
        return None
    most = max(known, key=lambda item: item.value)
    return msgspec.structs.replace(
        most,
        low=min(item.low for item in known if item.low is not None),
        high=max(item.high for item in known if item.high is not None),
        confidence=0.95,
    )


def _times_as_good(
    one: _Candidate, other: _Candidate, is_lower: bool, is_staged: bool, confidence: float
) -> Estimate | None:
    """How many times as good the one is as the other, by the blocks of both."""
    top, bottom = (other, one) if is_lower else (one, other)
    off = 0.0
    for side in (top, bottom):
        middle = abs(centre(list(side.values.values())))
        off += side.resolution / middle if middle else 0.0
    return block_ratio(top.values, bottom.values, confidence, is_staged, off)


def _levels_left(
    plan: Plan, factors: Sequence[str], candidates: Sequence[_Candidate], best: BestSet
) -> _Left | None:
    """The levels of the only factor that varies among which is not decided, in the order of the
    plan, where others are worse and need not be measured again; else ``None``."""
    varied = [name for name, levels in _levels(plan).items() if len(levels) > 1]
    if list(factors) != varied or len(varied) != 1 or len(best.members) < 2:
        return None
    (name,) = varied
    left = {candidates[index].cell.parameters[name] for index in best.members}
    every = _levels(plan)[name]
    if len(left) == len(every):
        return None
    return _Left(name, tuple(level for level in every if level in left), len(candidates))


def _decide_open(
    candidates: Sequence[_Candidate],
    best: BestSet,
    confidence: float,
    asked: _Asked,
    left: _Left | None,
) -> _Decisive:
    """What would decide which setting to use, and about how many trials it takes: those by which
    each other one is shown to be as good as the leader, or to be worse, all of them with a power of
    80 %. The ``confidence`` is that of an interval of a pair whose ends are one-sided tests of
    it. ``left``: the factor and the levels that a new run needs, where it needs not all."""
    first = candidates[best.leader]
    others = [index for index in best.ranking if index in best.members and index != best.leader]
    others = others[:RIVALS_MAX] or [index for index in best.ranking if index != best.leader][:1]
    gaps = [
        gap(first.values, other.values, (first.resolution, other.resolution))
        for other in (candidates[index] for index in others)
    ]
    found = [item for item in gaps if item is not None]
    if len(found) < len(gaps):
        return _Decisive(_SINGLE)
    if not all(item.is_of_centres for item in found):
        return _Decisive(_NO_SHARE)
    if any(item.is_placed_within_resolution(ALIKE) for item in found):
        return _Decisive(TOO_COARSE)
    have = min(len(item.ranked.values) for item in found)
    if have < _BLOCKS_TOLD_MIN:
        return asked.after_few(have, left)
    wanted = trials_to_place(found, confidence)
    if wanted is None:
        return _Decisive("the trials spread too much for more of them to decide")
    trials = asked.at_least(wanted)
    said = f"about {words.count(trials, 'trial')} of each would decide"
    return asked.told(trials, said, left)


def _rank(level: Level, levels: Sequence[Level]) -> tuple[bool, float]:
    """The cost order of a level: numbers by size, words by their position in the study."""
    if isinstance(level, str):
        return True, levels.index(level)
    return False, level


def _decide(
    candidates: Sequence[_Candidate], best: BestSet, confidence: float, asked: _Asked
) -> _Decisive:
    """What would decide between the best two settings, and how many trials it takes. The
    ``confidence`` is that of a two-sided comparison."""
    if best.rival is None:
        return _Decisive("")
    first, second = candidates[best.leader], candidates[best.rival]
    found = gap(first.values, second.values, (first.resolution, second.resolution))
    if found is None:
        return _Decisive(_SINGLE)
    if not found.is_of_centres and not found.is_none:
        return _Decisive(_NO_SHARE)
    return _decide_pair(found, confidence, asked)


def _decide_pair(found: Gap, confidence: float, asked: _Asked) -> _Decisive:
    """The same of two settings whose distance is a share."""
    if found.is_within(EFFECT, confidence):
        return _Decisive(
            f"the best two settings lie less than {words.share(EFFECT)} apart: no relevant "
            "difference"
        )
    is_close = found.share < EFFECT
    seem = f"the best two settings seem {words.share(found.share)} apart"
    if is_close:
        seem = "the best two settings cannot be told apart"
    if found.is_within_resolution(EFFECT):
        return _Decisive(f"{seem}; {TOO_COARSE}")
    have = len(found.ranked.values)
    if have < _BLOCKS_TOLD_MIN:
        return asked.after_few(have)
    trials = found.trials(EFFECT, confidence)
    if trials is None:
        return _Decisive(f"{seem}, and spread so much that more trials will hardly decide")
    trials = asked.at_least(trials)
    what = f"a difference of {words.share(EFFECT)}" if is_close else "that, if it is true,"
    return asked.told(
        trials,
        f"{seem}; about {words.count(trials, 'trial')} of each would show {what} with a "
        "power of 80 %",
    )


def _levels(plan: Plan) -> dict[str, tuple[Level, ...]]:
    return {factor.name: factor.levels for factor in plan.study.factors_at(plan.effort)}


def _only(names: Sequence[str], parameters: Mapping[str, Level]) -> dict[str, Level]:
    return {name: parameters[name] for name in names}


def best_of(
    plan: Plan,
    protocol: Protocol,
    picked: Chosen,
    ground: Ground,
    failed: Collection[int] = (),
    *,
    advised: bool = True,
    shares: Shares | None = None,
    is_sweep: bool = False,
) -> tuple[BestFinding, ...]:
    """The best settings by the ground of a run, cells that were skipped and those whose load
    ``failed`` left out. The finding is withheld where the ground is in doubt, where many trials of
    a figure were disturbed, and where those that were not point to another setting than all trials
    do; not where only settings with one worker were disturbed, and the same is found with all that
    was taken given back, for which ``shares`` has the undisturbed shares of trials. ``advised`` and
    ``is_sweep`` as in :func:`best_settings`."""
    info, name = ground.indicator, ground.indicator.name
    tables = picked.tables
    columns = _columns(protocol, tables, name, failed)
    resolutions = _resolutions(tables, columns, name)
    seconds = protocol.seconds_of(len(plan.cells)) if protocol.done else None
    found = best_settings(
        plan,
        columns,
        info,
        resolutions,
        advised=advised,
        block_seconds=seconds,
        is_sweep=is_sweep,
        had=max((len(cell.used) for cell in protocol.cells), default=0),
    )
    if ground.doubt:
        return withheld_best(found, ground.doubt)
    if picked.quiet is None:
        return found
    alone = _columns(protocol, picked.quiet, name, failed)
    cells = [
        _Disturbed(_Candidate(cell, own, off), left)
        for cell, own, off, left in zip(plan.cells, columns, resolutions, alone, strict=True)
        if own
    ]
    is_lower = info.better == "lower"
    told = tuple(_withheld(item, cells, info, picked.is_read_alike) for item in found)
    if shares is not None and any(map(_may_hold, found, told)):
        bounds = bounds_of(plan, columns, protocol.doubtful, info, shares)
        if bounds is not None:
            at_best = best_settings(plan, bounds.at_best, info, resolutions, advised=False)
            bounded = [
                cell._replace(given_back=bounds.given_back[index])
                if (index := cell.candidate.cell.index) in bounds.cells
                else cell
                for cell in cells
            ]
            held = _Held(bounded, is_lower, is_staged(plan.rules))
            told = tuple(map(held.told, found, told, at_best))
    if not any(item.is_tentative for item in told):
        return told
    doubted = {cell.candidate.cell.index for cell in cells if cell.is_doubtful}
    left = [{} if index in doubted else column for index, column in enumerate(columns)]
    among = best_settings(plan, left, info, resolutions, advised=False)
    rest = _Rest(cells, among, is_lower, is_staged(plan.rules), picked.is_read_alike)
    return tuple(map(rest.told, found, told))


class _Disturbed(NamedTuple):
    """A measured setting, and its values of the trials that nothing disturbed. ``given_back`` are
    all values with what was taken given back, where that is known."""

    candidate: _Candidate
    quiet: Blocks
    given_back: Blocks | None = None

    @property
    def parameters(self) -> Mapping[str, Level]:
        """Its levels."""
        return self.candidate.cell.parameters

    @property
    def every(self) -> Blocks:
        """Its values, disturbed or not."""
        return self.candidate.values

    @property
    def is_doubtful(self) -> bool:
        """Is its figure in doubt?"""
        return is_doubtful(len(self.quiet), len(self.every))


def _may_hold(found: BestFinding, told: BestFinding) -> bool:
    """Is a finding withheld for settings in doubt alone?"""
    is_found = found.recommended is not None or found.first is not None
    return is_found and told.is_tentative and told.disagreement is None


class _Held(NamedTuple):
    """Findings that hold although settings with one worker are in doubt."""

    cells: Sequence[_Disturbed]
    is_lower: bool
    is_staged: bool

    def told(self, found: BestFinding, told: BestFinding, at_best: BestFinding) -> BestFinding:
        """The finding, if the same one is made ``at_best``: with the settings in doubt as good as
        they can have been. They were no worse than they are measured to be, so what is found at
        both ends holds between them."""
        if not _may_hold(found, told):
            return told
        compared = [it for it in self.cells if found.group.items() <= it.parameters.items()]
        doubted = [cell for cell in compared if cell.is_doubtful]
        named, at_best_named = (
            (it.recommended, it.first if it.recommended is None else None)
            for it in (found, at_best)
        )
        is_bounded = all(cell.given_back is not None for cell in doubted)
        if not is_bounded or named != at_best_named:
            return told
        least = self._least(found, compared, doubted)
        if least is not None and least <= 1:
            return told
        found = _common(found, at_best)
        settings = tuple(_only(found.factors, cell.parameters) for cell in doubted)
        if any(setting in found.settings for setting in settings):
            found = msgspec.structs.replace(found, decide="", trials=None, new_run=None)
        back = GivenBack(
            settings=settings,
            disturbed=sum(len(cell.every) - len(cell.quiet) for cell in doubted),
            trials=sum(len(cell.every) for cell in doubted),
            at_least=least,
        )
        return msgspec.structs.replace(found, given_back=back)

    def _least(
        self, found: BestFinding, compared: Sequence[_Disturbed], doubted: Sequence[_Disturbed]
    ) -> float | None:
        """How many times as good as those in doubt the setting that is named is at least, with what
        was taken given back; ``None`` where it is the only one of these. 0 where it is not
        known."""
        named = {**found.group, **found.named}.items()
        (own,) = (cell for cell in compared if named <= cell.parameters.items())
        confidence = 1 - 0.05 / max(1, found.compared - 1)
        lows = []
        for cell in doubted:
            if cell is own:
                continue
            sides = own.every, cell.given_back or {}
            top, bottom = reversed(sides) if self.is_lower else sides
            ratio = block_ratio(top, bottom, confidence, self.is_staged)
            lows.append((ratio.low or 0.0) if ratio is not None else 0.0)
        return min(lows) if lows else None


class _Rest(NamedTuple):
    """What the settings say that are not in doubt, where a finding is withheld for others."""

    cells: Sequence[_Disturbed]
    among: Sequence[BestFinding]
    is_lower: bool
    is_staged: bool
    is_read_alike: bool

    def told(self, found: BestFinding, told: BestFinding) -> BestFinding:
        """The withheld finding with what is found ``among`` the settings that are not in doubt,
        where that names one or a few, and their undisturbed trials agree. ``found`` is by all
        settings."""
        alike = (it for it in self.among if (it.factors, it.group) == (found.factors, found.group))
        among = next(alike, None)
        if not told.is_tentative or among is None:
            return told
        is_named = among.recommended is not None or among.first is not None
        compared = [it for it in self.cells if found.group.items() <= it.parameters.items()]
        left = [cell for cell in compared if not cell.is_doubtful]
        doubted = tuple(
            _only(found.factors, cell.parameters) for cell in compared if cell.is_doubtful
        )
        is_apart = _disagreement(among, left, self.is_lower, self.is_read_alike) is not None
        if not doubted or not is_named or is_apart:
            return told
        next_best, to_next = self._next(among, left)
        rest = Undisturbed(
            doubted=doubted,
            best=among,
            seem_worse=all(setting in found.behind for setting in doubted),
            may_be_as_good=_greater_as_good(found, among, doubted),
            next_best=next_best,
            to_next=to_next,
        )
        return msgspec.structs.replace(told, undisturbed=rest)

    def _next(
        self, among: BestFinding, left: Sequence[_Disturbed]
    ) -> tuple[dict[str, Level] | None, Estimate | None]:
        """The setting that follows a single best one, and how many times as good the latter is;
        ``None`` where several may be the best, or figures have no ratio."""
        if among.recommended is None or len(among.settings) > 1:
            return None, None
        named = {**among.group, **among.recommended}.items()
        (own,) = (cell for cell in left if named <= cell.parameters.items())
        each = 1 - 0.05 / max(1, len(left) - 1)
        others = [cell.candidate for cell in left if cell is not own]
        ratios = [
            _times_as_good(own.candidate, other, self.is_lower, self.is_staged, each)
            for other in others
        ]
        known = [ratio for ratio in ratios if ratio is not None and ratio.low is not None]
        if len(known) < len(ratios):
            return None, None
        least, follows = min(zip(known, others, strict=True), key=lambda item: item[0].value)
        # The best over the next one is the least of its ratios, so its bounds are theirs.
        to_next = msgspec.structs.replace(
            least,
            low=min(ratio.low for ratio in known if ratio.low is not None),
            high=min(ratio.high for ratio in known if ratio.high is not None),
            confidence=0.95,
        )
        return _only(among.factors, follows.cell.parameters), to_next


def _greater_as_good(
    found: BestFinding, among: BestFinding, doubted: Sequence[dict[str, Level]]
) -> tuple[dict[str, Level], ...]:
    """The settings in doubt that all trials do not tell from the best one ``among`` those that are
    not; none unless all of them are greater and have a worse figure. The smallest setting that is
    as good is the one to use, so a smaller one that may be as good forbids to name another."""
    used = among.recommended
    if used is None or len(found.factors) != 1 or found.leader != used:
        return ()
    (own,) = used.values()
    not_behind = tuple(setting for setting in doubted if setting not in found.behind)
    for (level,) in (setting.values() for setting in not_behind):
        if isinstance(own, str) or isinstance(level, str) or level <= own:
            return ()
    return not_behind


def _common(found: BestFinding, at_best: BestFinding) -> BestFinding:
    """What two findings that recommend the same have in common: what is worse is so by both."""

    def either(name: str, without: Collection[dict[str, Level]] = ()) -> list[dict[str, Level]]:
        first, second = getattr(found, name), getattr(at_best, name)
        return [
            it for it in (*first, *(it for it in second if it not in first)) if it not in without
        ]

    passed = either("passed")
    return msgspec.structs.replace(
        found,
        settings=tuple(either("settings")),
        passed=tuple(passed),
        as_good=tuple(either("as_good", passed)),
        behind=tuple(it for it in found.behind if it in at_best.behind),
    )


def _columns(
    protocol: Protocol, tables: Sequence[Table], name: str, failed: Collection[int] = ()
) -> list[Blocks]:
    return [
        {} if state.skipped or index in failed else table.by_block(name)
        for index, (state, table) in enumerate(zip(protocol.cells, tables, strict=True))
    ]


def _resolutions(tables: Sequence[Table], columns: Sequence[Blocks], name: str) -> list[float]:
    return [
        table.resolution(name) if column else 0.0
        for table, column in zip(tables, columns, strict=True)
    ]


def _withheld(
    found: BestFinding, cells: Sequence[_Disturbed], info: IndicatorInfo, is_read_alike: bool
) -> BestFinding:
    """The finding, withheld where a setting that it compares is in doubt, or trials disagree."""
    is_lower = info.better == "lower"
    compared = [cell for cell in cells if found.group.items() <= cell.parameters.items()]
    in_doubt = sum(cell.is_doubtful for cell in compared)
    apart = _disagreement(found, compared, is_lower, is_read_alike)
    if apart is None and not in_doubt:
        return found
    why = "the machine was not quiet, and its undisturbed trials point to another setting"
    if in_doubt:
        settings = "a setting has" if in_doubt == 1 else f"{in_doubt} settings have"
        why = f"the machine was not quiet, and {settings} too few quiet trials"
    withheld = _in_doubt(found, why)
    if apart is not None and apart.are_enough:
        withheld = msgspec.structs.replace(withheld, leader=apart.quiet, as_good=())
    ranges = tuple(
        UndisturbedRange(
            setting=_only(found.factors, cell.parameters),
            low=min(cell.quiet.values()),
            high=max(cell.quiet.values()),
            unit=info.unit,
            trials=len(cell.quiet),
        )
        for cell in compared
        if len(cell.quiet) > 1
    )
    return msgspec.structs.replace(
        withheld, is_tentative=True, disagreement=apart, ranges=ranges if len(ranges) > 1 else ()
    )


def _disagreement(
    found: BestFinding, compared: Sequence[_Disturbed], is_lower: bool, is_read_alike: bool
) -> Disagreement | None:
    """Do the trials that nothing disturbed have the setting that all trials point to further behind
    another one than is alike in practice? ``None`` where they do not, or say nothing of it.

    What was read in every cell alike is no choice between cells; other signs are seen in some cells
    only, whose undisturbed trials are then better than those of the others.
    """
    sign = 1 if is_lower else -1
    known = [cell for cell in compared if cell.quiet]
    named = [cell for cell in known if found.pointed.items() <= cell.parameters.items()]
    if not named:
        return None
    first = min(known, key=lambda cell: sign * centre(list(cell.quiet.values())))
    sides = (first, named[0]) if is_lower else (named[0], first)
    behind = gap(sides[0].quiet, sides[1].quiet)
    if behind is None:  # too few blocks that both have
        low, high = (centre(list(cell.quiet.values())) for cell in sides)
        is_behind = high - low > _APART * min(abs(low), abs(high))
    else:
        is_behind = behind.is_beyond(ALIKE)
    if not is_behind:
        return None
    are_enough = all(is_enough(len(cell.quiet), len(cell.every)) for cell in compared)
    return Disagreement(
        quiet=_only(found.factors, first.parameters),
        every=found.pointed,
        trials=min(len(cell.quiet) for cell in (first, named[0])),
        are_enough=are_enough and is_read_alike,
    )


def withheld_best(
    found: tuple[BestFinding, ...], why: str, factors: Collection[str] = ()
) -> tuple[BestFinding, ...]:
    """The findings without a recommended setting, for a doubt of the whole run, or of these
    ``factors``: then only those that compare their levels. What disturbed some of the trials is not
    the reason then."""
    return tuple(
        msgspec.structs.replace(_in_doubt(item, why), is_tentative=False, disagreement=None)
        if not factors or set(factors) & set(item.factors)
        else item
        for item in found
    )


def _in_doubt(found: BestFinding, why: str) -> BestFinding:
    """Trials of a machine that was not quiet neither decide nor say how many others would."""
    return msgspec.structs.replace(
        found,
        recommended=None,
        passed=(),
        as_good=tuple(setting for setting in found.settings if setting != found.leader),
        doubt=why,
        is_open=False,
        first=None,
        to_first=None,
        first_is_alike=False,
        used_up=None,
        decide="",
        trials=None,
        new_run=None,
        undisturbed=None,
        ranges=(),
    )

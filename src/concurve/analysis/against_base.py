"""How the levels of a factor compare with the one that a study names as its base, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe
from concurve.stats.best import ALIKE
from concurve.stats.comparison import EFFECT, Direction
from concurve.terms import Level

#: With more levels than this, each is no longer compared in a sentence.
LEVELS_NAMED = 6

# A smaller ratio than this is none that matters between two designs.
_ALIKE = 1 + ALIKE
# An interval whose ends differ by more than this factor says nothing.
_TELLING_MAX = 1000.0

Among = Callable[[int, int], Estimate | None]
"""A cell, and among how many its speed-up is one → the speed-up with an interval that holds for
all of them."""

JudgeCells = Callable[[Sequence[int], float], Sequence[tuple[Direction, Estimate | None]]]
"""Cells, and the smallest effect of interest → the verdict of a comparison on the speed-up of each,
all of them together, and the speed-up with the interval by which it is told."""


class Judge(NamedTuple):
    """How levels are told apart: as a comparison does, by ``effect``. ``is_asked``: the user named
    it, so nothing is said by another one."""

    cells: JudgeCells
    effect: float = EFFECT
    is_asked: bool = False


_Verdict = Literal["faster", "slower", "alike", "open", "in doubt"]
_VERDICTS: dict[Direction, _Verdict] = {
    "higher": "faster", "lower": "slower", "same": "alike", "undecided": "open"
}  # fmt: skip


def _in_settings(judge: Judge, among: Among) -> Judge:
    """The same by the intervals that hold for all speed-ups of a run, which its other answers on
    several settings have: of one speed-up they name one interval."""

    def cells(indices: Sequence[int], effect: float) -> list[tuple[Direction, Estimate | None]]:
        speedups = [among(index, len(indices)) for index in indices]
        return [(_direction(speedup, effect), speedup) for speedup in speedups]

    return judge._replace(cells=cells)


def _direction(speedup: Estimate | None, effect: float) -> Direction:
    if speedup is None or speedup.low is None or speedup.high is None:
        return "undecided"
    least, most = 1 / (1 + effect), 1 + effect
    if least <= speedup.low and speedup.high <= most:
        return "same"
    if speedup.low > 1 and speedup.value >= most:
        return "higher"
    return "lower" if speedup.high < 1 and speedup.value <= least else "undecided"


class _Compared(NamedTuple):
    """A cell's speed-up over its base cell, and where: the levels of the other factors."""

    where: str
    speedup: Estimate
    verdict: _Verdict

    @property
    def is_told(self) -> bool:
        """Is it faster or slower, by as much as matters?"""
        return self.verdict in ("faster", "slower")

    @property
    def is_apart(self) -> bool:
        """Is it faster or slower at all?"""
        low, high = self.speedup.low, self.speedup.high
        is_known = self.verdict != "in doubt" and low is not None and high is not None
        return is_known and not (low or 0.0) <= 1 <= (high or 0.0)


def factor_of(plan: Plan) -> str:
    """The factor whose base level the study names, if it is a single one and none that counts as
    concurrency; else empty."""
    names = [name for name in plan.study.base if name != plan.work]
    is_compared = len(names) == 1 == len(plan.study.base)
    levels = {cell.parameters[names[0]] for cell in plan.cells} if is_compared else set()
    return names[0] if 1 < len(levels) <= LEVELS_NAMED + 1 else ""


def sentences(
    plan: Plan, cells: Sequence[CellFindings], judge: Judge, among: Among, by: str = ""
) -> Iterator[str]:
    """A sentence for each other level: ``mode=b is faster than mode=a in all 3 settings, …``."""
    factor = factor_of(plan)
    if not factor:
        return
    base, judge = plan.study.base[factor], _in_settings(judge, among)
    rows: dict[Level, list[_Compared]] = {}
    others = [cell for cell in cells if cell.parameters[factor] != base and _has_base(cell)]
    for cell, item in zip(others, _compared(plan, factor, others, judge), strict=True):
        rows.setdefault(cell.parameters[factor], []).append(item)
    for level, found in rows.items():
        yield _said(f"{factor}={level}", f"{factor}={base}", found, judge, by)


#: A difference beyond this is a ratio, below it a percentage.
_AS_SHARE = 1.25
#: An end that is not 0 is not written as 0, up to so many decimals.
_SHARE_DIGITS_MAX = 4


class Versions(NamedTuple):
    """How the other levels of the only factor compare with its base, if its levels are names and
    none counts as concurrency. ``said`` has a sentence for each, by its cell."""

    said: dict[int, str]
    factor: str
    base: Level
    found: dict[Level, _Compared]
    judge: Judge

    @property
    def are_told(self) -> bool:
        """Is one of them faster or slower than the base, by as much as matters?"""
        return any(item.is_told for item in self.found.values())

    @property
    def are_apart(self) -> bool:
        """Is one of them faster or slower at all?"""
        return any(item.is_told or item.is_apart for item in self.found.values())

    @property
    def are_alike(self) -> bool:
        """Are all of them as fast as the base in practice?"""
        return all(_within(item, self.judge) is not None for item in self.found.values())

    @property
    def is_faster(self) -> bool:
        """Is one of them faster than the base, by as much as matters?"""
        return any(item.verdict == "faster" for item in self.found.values())

    def choice(self, by: str = "") -> str:
        """Which of them to use where none is faster than the base: those that are as fast as it are
        no worse a choice, and the base is preferred to no one that the trials do not tell from it.
        Empty where all others are slower. ``by`` names the figure."""
        left = {
            level: item for level, item in self.found.items() if item.verdict in ("alike", "open")
        }
        if not left:
            return ""
        levels = [self.base, *left]
        use = f"Use {words.listed([f'{self.factor}={level}' for level in levels], 'or')}{by}"
        shares = [_within(item, self.judge) for item in left.values()]
        known = [share for share in shares if share is not None]
        if len(known) == len(shares):
            none = "neither" if len(levels) == 2 else "none"
            return f"{use}: {none} loses {words.in_percent(max(known))} % or more."
        if any(item.is_apart for item in left.values()):
            return f"{use}: by how much they differ is not decided."
        return f"{use}: which of them is faster is not decided."


def versions(
    plan: Plan, cells: Sequence[CellFindings], judge: Judge, label: str, is_rate: bool
) -> Versions | None:
    """The comparison of named levels, ``None`` of other ones: ``build=new is 3.8 % slower than
    build=old by CPU time [3.2, 4.5 %].`` Where one may differ from the base by as much as matters:
    ``Whether build=new or build=old is faster cannot be said by CPU time: 3.1 % slower [2.0 %
    faster to 8.9 % slower].`` Of figures in doubt, what they seem to say. ``label`` is what
    speed-ups are measured by."""
    factor = _of_names(plan)
    others = [cell for cell in cells if _has_base(cell)]
    if not factor or not others:
        return None
    found = _compared(plan, factor, others, judge)
    base = cells[others[0].base or 0].parameters[factor]
    said = {
        cell.index: _of_version(
            f"{factor}={cell.parameters[factor]}", f"{factor}={base}", item, judge, label, is_rate
        )
        for cell, item in zip(others, found, strict=True)
    }
    levels = [cell.parameters[factor] for cell in others]
    return Versions(said, factor, base, dict(zip(levels, found, strict=True)), judge)


def _has_base(cell: CellFindings) -> bool:
    return cell.base not in (None, cell.index) and "speedup" in cell.indicators


def _of_names(plan: Plan) -> str:
    """The only factor that varies, if its levels are names; else empty."""
    levels = {
        name: {cell.parameters[name] for cell in plan.cells} for name in plan.cells[0].parameters
    }
    varied = {name: found for name, found in levels.items() if len(found) > 1}
    if plan.work is not None or len(varied) != 1:
        return ""
    ((name, found),) = varied.items()
    is_named = all(isinstance(level, str) for level in found)
    return name if is_named and len(found) <= LEVELS_NAMED + 1 else ""


def _of_version(
    own: str, base: str, item: _Compared, judge: Judge, label: str, is_rate: bool
) -> str:
    """The difference as a share of the base's figure, where it is small: of a time that of 1 over
    the speed-up."""
    speedup, by = item.speedup, f" by {label}"
    difference = _difference(speedup, is_rate)
    if not difference:
        return _single(own, base, item, judge, by)
    share, _, span = difference.partition(" [")
    if item.verdict == "in doubt":
        return f"{own} seems {share} than {base}{by} [{span}, in doubt: the machine was not quiet."
    if not item.is_told:
        return _open(own, base, item, judge, by, difference)
    return f"{own} is {share} than {base}{by} [{span}."


def _difference(speedup: Estimate, is_rate: bool) -> str:
    """``3.8 % slower [3.2, 4.5 %]``, or ``0.8 % faster [0.3 % slower to 1.1 % faster]``; empty
    where a difference is great, or has no interval."""
    low, high = speedup.low, speedup.high
    if low is None or high is None or not 1 / _AS_SHARE < speedup.value < _AS_SHARE or low <= 0:
        return ""
    value, *ends = ((it if is_rate else 1 / it) - 1 for it in (speedup.value, low, high))
    ends.sort(key=abs)
    digits = 1 if abs(value) >= 0.01 else 2
    if (ends[0] < 0) == (ends[1] < 0):
        while digits < _SHARE_DIGITS_MAX and round(100 * abs(ends[0]), digits) == 0:
            digits += 1
        span = ", ".join(f"{100 * abs(it):.{digits}f}" for it in ends)
        return f"{words.share(abs(value))} {_way(speedup.value)} [{span} %]"
    first, second = (
        f"{100 * abs((it if is_rate else 1 / it) - 1):.{digits}f} % {_way(it)}"
        for it in (low, high)
    )
    return f"{words.share(abs(value))} {_way(speedup.value)} [{first} to {second}]"


def _way(speedup: float) -> str:
    return "faster" if speedup > 1 else "slower"


def _compared(
    plan: Plan, factor: str, cells: Sequence[CellFindings], judge: Judge
) -> list[_Compared]:
    """The cells against their bases, judged together."""
    judged = judge.cells([cell.index for cell in cells], judge.effect)
    found = []
    for cell, (direction, speedup) in zip(cells, judged, strict=True):
        where = {
            name: level
            for name, level in cell.parameters.items()
            if name != factor and any(other.parameters[name] != level for other in plan.cells)
        }
        alone = cell.indicators["speedup"]
        verdict = "in doubt" if alone.in_doubt else _VERDICTS[direction]
        found.append(_Compared(describe(where) if where else "", speedup or alone, verdict))
    return found


def _said(own: str, base: str, found: Sequence[_Compared], judge: Judge, by: str) -> str:
    if len(found) == 1:
        return _single(own, base, found[0], judge, by)
    faster = [item for item in found if item.verdict == "faster"]
    slower = [item for item in found if item.verdict == "slower"]
    doubted = sum(item.verdict == "in doubt" for item in found)
    settings = f"{len(found)} settings"
    are = words.verb(doubted)
    doubt = (
        f" {doubted} of {settings} {are} in doubt: the machine was not quiet." if doubted else ""
    )
    if faster and slower:
        return (
            f"It depends: {own} is faster than {base} in {len(faster)} of {settings} (most: "
            f"{_at(max(faster, key=_value))}) and slower in {len(slower)} (most: "
            f"{_at(min(slower, key=_value))}){by}.{doubt}"
        )
    if faster or slower:
        some, word = (faster, "faster") if faster else (slower, "slower")
        if len(some) == len(found):
            least, most = min(some, key=_value), max(some, key=_value)
            return (
                f"{own} is {word} than {base} in all {settings}{by}: {_at(least)} to {_at(most)}."
            )
        most = max(some, key=_value) if faster else min(some, key=_value)
        return (
            f"{own} is {word} than {base} in {len(some)} of {settings}{by}, most with {_at(most)}; "
            f"in no other by {_percent(judge.effect)} or more.{doubt}"
        )
    return _undecided(own, base, found, judge, by) + doubt


def _undecided(own: str, base: str, found: Sequence[_Compared], judge: Judge, by: str) -> str:
    """Neither is faster anywhere, by as much as matters."""
    settings = f"{len(found)} settings"
    if all(item.verdict == "in doubt" for item in found):
        return f"Whether {own} or {base} is faster cannot be said."
    span = f"{_at(min(found, key=_value))} to {_at(max(found, key=_value))}"
    shares = [_within(item, judge) for item in found]
    known = [share for share in shares if share is not None]
    if len(known) == len(shares):
        within = _percent(max(known))
        return f"{own} is as fast as {base} in all {settings}{by}, within {within}: {span}."
    return (
        f"Whether {own} or {base} is faster cannot be said: in none of {settings} do they differ "
        f"for sure by {_percent(judge.effect)} or more{by}: {span}."
    )


def _within(item: _Compared, judge: Judge) -> float | None:
    """Within which share of its base a level lies: the effect of interest, or 5 % unless another
    one was asked for; ``None`` where that is not sure."""
    if item.verdict == "alike":
        return judge.effect
    low, high = item.speedup.low, item.speedup.high
    if judge.is_asked or item.verdict != "open" or low is None or high is None:
        return None
    return ALIKE if low >= 1 / _ALIKE and high <= _ALIKE else None


def _percent(share: float) -> str:
    return f"{words.in_percent(share)} %"


def _single(own: str, base: str, item: _Compared, judge: Judge, by: str) -> str:
    figure = f"{_times(item.speedup)}{_interval(item.speedup)}"
    if item.verdict == "in doubt":
        return f"{own} seems {figure} as fast as {base}{by}, in doubt: the machine was not quiet."
    if not item.is_told:
        return _open(own, base, item, judge, by, figure)
    return f"{own} is {figure} as fast as {base}{by}."


def _open(own: str, base: str, item: _Compared, judge: Judge, by: str, figure: str) -> str:
    """Of two that do not differ by as much as matters: that they are as fast in practice, or that
    this is open."""
    within = _within(item, judge)
    if within is not None:
        return f"{own} is as fast as {base}{by}, within {_percent(within)}: {figure}."
    if item.is_apart:
        way, effect = _way(item.speedup.value), _percent(judge.effect)
        return (
            f"Whether {own} is {way} than {base} by {effect} or more cannot be said{by}: {figure}."
        )
    return f"Whether {own} or {base} is faster cannot be said{by}: {figure}."


def _at(item: _Compared) -> str:
    """``1.40× [1.10, 1.80] (clients=32)``."""
    where = f" ({item.where})" if item.where else ""
    return f"{_times(item.speedup)}{_interval(item.speedup)}{where}"


def _interval(figure: Estimate) -> str:
    if figure.low is None or figure.high is None:
        return ""
    if figure.low <= 0 or figure.high / figure.low > _TELLING_MAX:
        return " (too few trials for a useful interval)"
    digits = words.ratio_digits(figure.value, figure.low, figure.high)
    return f" [{figure.low:.{digits}f}, {figure.high:.{digits}f}]"


def _times(figure: Estimate) -> str:
    return f"{figure.value:.{words.ratio_digits(figure.value, figure.low, figure.high)}f}×"


def _value(item: _Compared) -> float:
    return item.speedup.value

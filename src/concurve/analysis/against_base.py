"""How the levels of a factor compare with the one that a study names as its base, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe
from concurve.stats.best import ALIKE
from concurve.stats.comparison import EFFECT
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


class _Compared(NamedTuple):
    """A cell's speed-up over its base cell, and where: the levels of the other factors."""

    where: str
    speedup: Estimate
    verdict: Literal["faster", "slower", "open", "in doubt"]


def factor_of(plan: Plan) -> str:
    """The factor whose base level the study names, if it is a single one and none that counts as
    concurrency; else empty."""
    names = [name for name in plan.study.base if name != plan.work]
    is_compared = len(names) == 1 == len(plan.study.base)
    levels = {cell.parameters[names[0]] for cell in plan.cells} if is_compared else set()
    return names[0] if 1 < len(levels) <= LEVELS_NAMED + 1 else ""


def sentences(
    plan: Plan, cells: Sequence[CellFindings], among: Among, by: str = ""
) -> Iterator[str]:
    """A sentence for each other level: ``mode=b is faster than mode=a in all 3 settings, …``."""
    factor = factor_of(plan)
    if not factor:
        return
    base = plan.study.base[factor]
    rows: dict[Level, list[CellFindings]] = {}
    for cell in cells:
        level = cell.parameters[factor]
        if level != base and cell.base is not None and "speedup" in cell.indicators:
            rows.setdefault(level, []).append(cell)
    number = sum(map(len, rows.values()))
    for level, group in rows.items():
        found = [_compared(plan, factor, cell, among, number) for cell in group]
        yield _said(f"{factor}={level}", f"{factor}={base}", found, by)


#: A difference beyond this is a ratio, below it a percentage.
_AS_SHARE = 1.25
#: An end that is not 0 is not written as 0, up to so many decimals.
_SHARE_DIGITS_MAX = 4


def versions(
    plan: Plan, cells: Sequence[CellFindings], among: Among, label: str, is_rate: bool
) -> dict[int, str]:
    """A sentence for each other level of the only factor, if its levels are names and none counts
    as concurrency: ``build=new is 3.8 % slower than build=old by CPU time [3.2, 4.5 %].`` By cell;
    none where no level is told from the base. ``label`` is what speed-ups are measured by."""
    factor = _of_names(plan)
    others = [
        cell
        for cell in cells
        if cell.base not in (None, cell.index) and "speedup" in cell.indicators
    ]
    if not factor or not others:
        return {}
    found = {cell.index: _compared(plan, factor, cell, among, len(others)) for cell in others}
    if not any(item.verdict in ("faster", "slower") for item in found.values()):
        return {}
    base = cells[others[0].base or 0].parameters[factor]
    return {
        index: _of_version(
            f"{factor}={cells[index].parameters[factor]}", f"{factor}={base}", item, label, is_rate
        )
        for index, item in found.items()
    }


def undecided_versions(
    plan: Plan, cells: Sequence[CellFindings], among: Among, label: str, is_rate: bool
) -> tuple[dict[int, str], bool]:
    """The same where no level is told from the base, and one may differ from it by as much as
    matters: ``Whether build=new or build=old is faster cannot be said by CPU time: 3.1 % slower
    [2.0 % faster to 8.9 % slower].`` And whether all are as fast in practice. Of figures in doubt,
    what they seem to say."""
    others = [
        cell
        for cell in cells
        if cell.base not in (None, cell.index) and "speedup" in cell.indicators
    ]
    factor = _of_names(plan)
    if not factor or not others:
        return {}, False
    found = [_compared(plan, factor, cell, among, len(others)) for cell in others]
    if any(item.verdict not in ("open", "in doubt") for item in found):
        return {}, False
    base = cells[others[0].base or 0].parameters[factor]
    said = {
        cell.index: _of_version(
            f"{factor}={cell.parameters[factor]}", f"{factor}={base}", item, label, is_rate
        )
        for cell, item in zip(others, found, strict=True)
    }
    return said, all(map(_is_alike, found))


def choice_of_versions(
    plan: Plan, cells: Sequence[CellFindings], among: Among, by: str = ""
) -> str:
    """Which versions to use where none is faster than the base: those that are as fast as it are
    no worse a choice, and the base is preferred to no one that the trials do not tell from it.
    Empty where all others are slower. ``by`` names the figure."""
    factor = _of_names(plan)
    others = [
        cell
        for cell in cells
        if cell.base not in (None, cell.index) and "speedup" in cell.indicators
    ]
    found = [(cell, _compared(plan, factor, cell, among, len(others))) for cell in others]
    left = [(cell, item) for cell, item in found if item.verdict == "open"]
    if not left:
        return ""
    base = cells[others[0].base or 0]
    levels = [cell.parameters[factor] for cell in (base, *(cell for cell, _ in left))]
    use = f"Use {words.listed([f'{factor}={level}' for level in levels], 'or')}{by}"
    if not all(_is_alike(item) for _, item in left):
        return f"{use}: which of them is faster is not decided."
    most = EFFECT if all(_is_alike(item, 1 + EFFECT) for _, item in left) else ALIKE
    none = "neither" if len(levels) == 2 else "none"
    return f"{use}: {none} loses {words.in_percent(most)} % or more."


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


def _of_version(own: str, base: str, item: _Compared, label: str, is_rate: bool) -> str:
    """The difference as a share of the base's figure, where it is small: of a time that of 1 over
    the speed-up."""
    speedup, by = item.speedup, f" by {label}"
    difference = _difference(speedup, is_rate)
    if not difference:
        return _single(own, base, item, by)
    share, _, span = difference.partition(" [")
    if item.verdict == "in doubt":
        return f"{own} seems {share} than {base}{by} [{span}, in doubt: the machine was not quiet."
    if item.verdict == "open":
        return _open(own, base, item, by, difference)
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


def _compared(plan: Plan, factor: str, cell: CellFindings, among: Among, number: int) -> _Compared:
    speedup = among(cell.index, number) or cell.indicators["speedup"]
    where = {
        name: level
        for name, level in cell.parameters.items()
        if name != factor and any(other.parameters[name] != level for other in plan.cells)
    }
    verdict: Literal["faster", "slower", "open", "in doubt"] = "open"
    if cell.indicators["speedup"].in_doubt:
        verdict = "in doubt"
    elif speedup.low is not None and speedup.low > 1:
        verdict = "faster"
    elif speedup.high is not None and speedup.high < 1:
        verdict = "slower"
    return _Compared(describe(where) if where else "", speedup, verdict)


def _said(own: str, base: str, found: Sequence[_Compared], by: str) -> str:
    if len(found) == 1:
        return _single(own, base, found[0], by)
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
            f"in no other is the difference significant.{doubt}"
        )
    return _undecided(own, base, found, by) + doubt


def _undecided(own: str, base: str, found: Sequence[_Compared], by: str) -> str:
    """Neither is significantly faster anywhere."""
    settings = f"{len(found)} settings"
    if all(item.verdict == "in doubt" for item in found):
        return f"Whether {own} or {base} is faster cannot be said."
    span = f"{_at(min(found, key=_value))} to {_at(max(found, key=_value))}"
    if all(map(_is_alike, found)):
        return f"{own} is as fast as {base} in all {settings}{by}, within 5 %: {span}."
    return (
        f"Whether {own} or {base} is faster cannot be said: in none of {settings} do they differ "
        f"significantly{by}: {span}."
    )


def _is_alike(item: _Compared, most: float = _ALIKE) -> bool:
    """Is the whole interval within this ratio of 1, of 5 % unless another one is given?"""
    low, high = item.speedup.low, item.speedup.high
    return (
        item.verdict != "in doubt"
        and low is not None
        and high is not None
        and low >= 1 / most
        and high <= most
    )


def _single(own: str, base: str, item: _Compared, by: str) -> str:
    figure = f"{_times(item.speedup)}{_interval(item.speedup)}"
    if item.verdict == "in doubt":
        return f"{own} seems {figure} as fast as {base}{by}, in doubt: the machine was not quiet."
    if item.verdict == "open":
        return _open(own, base, item, by, figure)
    return f"{own} is {figure} as fast as {base}{by}."


def _open(own: str, base: str, item: _Compared, by: str, figure: str) -> str:
    """Of two that are not told apart: that they are as fast in practice, or that this is open."""
    if _is_alike(item):
        most = EFFECT if _is_alike(item, 1 + EFFECT) else ALIKE
        return f"{own} is as fast as {base}{by}, within {words.in_percent(most)} %: {figure}."
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

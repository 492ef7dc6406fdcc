"""``--fail-on``: a comparison decides the exit code, of ``compare``, of a sweep and of a run."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from concurve.cli import options

if TYPE_CHECKING:
    from concurve.definition.study import Study
    from concurve.findings.comparison import CellComparison, Comparison
    from concurve.store import Store
    from concurve.store.run_head import RunHead
    from concurve.terms import Level

#: The verdicts that may fail.
VERDICTS = ("slower", "faster", "undecided")

judged: Callable[[options.F], options.F] = options.together(
    click.option(
        "--effect",
        default="2%",
        show_default=True,
        metavar="SHARE",
        help="Smallest effect of interest.",
    ),
    click.option(
        "--in-doubt",
        is_flag=True,
        help="Judge cells in doubt, too, as if the machine had been quiet.",
    ),
    click.option(
        "--fail-on",
        multiple=True,
        type=click.Choice(VERDICTS),
        help="Exit with code 10 if a cell has this verdict (undecided: 11) or no figures to judge; "
        "repeatable.",
    ),
)


class Asked(msgspec.Struct, frozen=True):
    """What is judged: the verdicts of ``fail_on`` fail, a difference below the share ``effect``
    counts as none, and ``in_doubt`` judges trials that others disturbed as any. ``is_given``: the
    effect was given, or a verdict is asked for, which needs one."""

    fail_on: tuple[str, ...]
    effect: float
    in_doubt: bool
    is_given: bool = False

    @property
    def effect_of_answer(self) -> float | None:
        """The effect that the answer of the run goes by as well, if one is asked for."""
        return self.effect if self.fail_on or self.is_given else None


def asked_of(fail_on: tuple[str, ...], effect: str, in_doubt: bool) -> Asked:
    """What the options of a verb that measures ask for.

    Raises:
        UsageError: ``--in-doubt`` without ``--fail-on``: it would change nothing.
        StudyError: the effect is no share.
    """
    from concurve.definition.units import parse_share

    context = click.get_current_context()
    if in_doubt and not fail_on:
        raise click.UsageError(
            "--in-doubt is for --fail-on; concurve compare last --in-doubt judges later"
        )
    source = context.get_parameter_source("effect")
    is_given = source is not click.core.ParameterSource.DEFAULT
    return Asked(fail_on, parse_share(effect, "--effect"), in_doubt, is_given)


def judge(found: Sequence[Comparison], asked: Asked, runs: Sequence[str]) -> None:
    """Judge comparisons of the ``runs`` of these names; nothing where nothing is to fail.

    Raises:
        UndecidedError: cells are undecided, which is to fail, and none has another such verdict.
        VerdictError: a cell has a verdict that is to fail, or no figures of both sides.
    """
    from concurve import words
    from concurve.cli.showing import note
    from concurve.errors import UndecidedError, VerdictError

    cells = [cell for item in found for cell in item.cells]
    failing = {
        _name(cell, item, is_alone=len(found) == 1): cell
        for item in found
        for cell in item.cells
        if cell.decided in asked.fail_on
    }
    if failing:
        is_open = all(cell.decided == "undecided" for cell in failing.values())
        kind = UndecidedError if is_open else VerdictError
        raise kind(f"{_failed(failing, len(cells))} (--fail-on)")
    told = sum(cell.by_cpu_time is not None for cell in cells)
    if asked.fail_on and told:
        where = "" if told == len(cells) else f" of {words.count_of(told, len(cells), 'cell')}"
        note(
            f"--fail-on goes by the CPU time{where}: the machine was not quiet, and the wall time "
            "is undecided"
        )
    doubted = [cell for cell in cells if cell.decided == "undecided" and cell.is_doubted]
    if asked.fail_on and doubted:
        them = words.verb(len(doubted), "it", "them")
        note(
            f"{words.count_of(len(doubted), len(cells), 'cell')} undecided, in doubt: the exit "
            f"code says nothing of {them}; --fail-on undecided fails on {them}"
            f"{'' if asked.in_doubt else f', and --in-doubt judges {them}'}"
        )
    # A new version that crashes is none that passes.
    unknown = [cell for cell in cells if cell.is_without_figures]
    if asked.fail_on and unknown:
        raise VerdictError(
            f"{words.count_of(len(unknown), len(cells), 'cell')} cannot be judged: there are no "
            "figures of both sides (--fail-on)",
            f"concurve show {' or '.join(runs)} says what failed",
        )


#: So many cells that fail are named.
_NAMED_MAX = 3


def _name(cell: CellComparison, of: Comparison, *, is_alone: bool) -> str:
    """A cell by its levels, and by its side where that is not the only one."""
    levels = " ".join(f"{name}={level}" for name, level in cell.parameters.items())
    indicator = f" by {cell.indicator}" if len(of.indicators) > 1 else ""
    if not levels:
        return f"{of.new}{indicator}"
    return f"{levels}{'' if is_alone else f' of {of.new}'}{indicator}"


def _failed(failing: Mapping[str, CellComparison], of: int) -> str:
    """``version=new is slower by CPU time: 1.05× [1.04, 1.06]``, the ratio of new over base, or
    ``2 slower of 4 cells: n=1 (1.05× [1.04, 1.06]) and n=2 (1.2× [1.1, 1.3])``."""
    from concurve import words

    verdicts = Counter(cell.decided for cell in failing.values())
    by = _by_cpu_time(list(failing.values()))
    if len(failing) == 1:
        ((name, cell),) = failing.items()
        ratio = _ratio(cell)
        return f"{name} is {cell.decided}{by}{f': {ratio}' if ratio else ''}"
    said = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())
    named = list(failing.items())[:_NAMED_MAX]
    names = [f"{name} ({ratio})" if (ratio := _ratio(cell)) else name for name, cell in named]
    if left := len(failing) - len(named):
        names.append(f"{left} more")
    return f"{said} of {words.count(of, 'cell')}{by}: {words.listed(names)}"


#: A difference of a percent has an interval in print.
_DECIMALS = 3


def _ratio(cell: CellComparison) -> str:
    """``1.05× [1.04, 1.06]``: new over base, by what decides the verdict; empty without one."""
    from concurve.words import ratio_digits

    ratio = cell.ratio if cell.by_cpu_time is None else cell.by_cpu_time.ratio
    if ratio is None:
        return ""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.{ratio_digits(ratio.value)}f}×, one trial"
    digits = max(_DECIMALS, ratio_digits(ratio.value, ratio.low, ratio.high))
    return f"{ratio.value:.{digits}f}× [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def _by_cpu_time(failing: Sequence[CellComparison]) -> str:
    """Which of the verdicts are by CPU time, as the wall time is in doubt."""
    told = sum(cell.by_cpu_time is not None for cell in failing)
    if not told:
        return ""
    return " by CPU time" if told == len(failing) else f", {told} of them by CPU time"


def compared_factor(study: Study, effort: str, naming: Callable[[str, Level], str]) -> str:
    """The factor of a study whose levels ``--fail-on`` compares: that of its base level, else the
    only one that varies at this effort. ``naming`` says how to name a level of a factor
    as its base.

    Raises:
        StudyError: there is more to choose from, or nothing to compare.
    """
    from concurve.errors import StudyError
    from concurve.words import listed

    varied = [factor for factor in study.factors_at(effort) if len(factor.levels) > 1]
    named = [factor.name for factor in varied if factor.name in study.base]
    found = named or [factor.name for factor in varied]
    if not found:
        raise StudyError(
            "--fail-on compares the levels of a parameter, and none has several",
            "one with several levels, such as version=old,new",
        )
    if len(found) > 1:
        first = next(factor for factor in varied if factor.name == found[0])
        raise StudyError(
            f"--fail-on compares the levels of one parameter: {listed(found, 'or')}?",
            naming(first.name, first.levels[0]),
        )
    return found[0]


def judged_factor(
    study: Study, effort: str, asked: Asked, naming: Callable[[str, Level], str]
) -> str:
    """The factor that ``--fail-on`` compares (:func:`compared_factor`), empty where it was not
    given.

    Raises:
        StudyError: as :func:`compared_factor`.
        UsageError: an effect was given that would change nothing: it is for verdicts, and for the
            answer on levels that are names, or that a study compares with a base.
    """
    if asked.fail_on:
        return compared_factor(study, effort, naming)
    varied = [factor for factor in study.factors_at(effort) if len(factor.levels) > 1]
    is_used = any(
        factor.name in study.base or all(isinstance(level, str) for level in factor.levels)
        for factor in varied
    )
    if asked.is_given and not is_used:
        raise click.UsageError(
            "--effect is for --fail-on, and for versions, which are levels that are names; "
            "concurve compare last --effect judges later"
        )
    return ""


def judge_run(head: RunHead, store: Store, factor: str, asked: Asked) -> None:
    """Compare the levels of a factor inside a stored run with the base level, say the verdicts, and
    judge them.

    Raises:
        VerdictError: as :func:`judge`.
        ComparisonError: the levels cannot be compared.
    """
    judge(_said_verdicts(head, store, factor, asked), asked, (head.id,))


def verdicts_beside(factor: str, db: str | None, asked: Asked) -> Callable[[RunHead], None] | None:
    """What says the verdicts of :func:`judge_run` on a run that fails for another reason, where
    its levels can be compared; ``None`` where nothing is judged."""
    from concurve.errors import ComparisonError
    from concurve.store import Store

    def say(head: RunHead) -> None:
        with contextlib.suppress(ComparisonError):
            _said_verdicts(head, Store.existing(db), factor, asked)

    return say if factor else None


def _said_verdicts(head: RunHead, store: Store, factor: str, asked: Asked) -> Sequence[Comparison]:
    """The comparison with the base level, which is the first unless the study names another one,
    and what it says.

    Raises:
        ComparisonError: the levels cannot be compared.
    """
    from concurve.analysis.comparison.options import Options
    from concurve.analysis.stored_runs import compare_stored
    from concurve.cli.showing import note
    from concurve.report.sections.comparison import summary
    from concurve.terms import joined_levels

    levels = next(item.levels for item in head.study.factors_at(head.effort) if item.name == factor)
    base = head.study.base.get(factor, levels[0])
    ordered = joined_levels((base, *(level for level in levels if level != base)))
    chosen = Options(effect=asked.effect, in_doubt=asked.in_doubt)
    found = compare_stored(store, (head.id,), factor, ordered, chosen)
    for item in found:
        note(f"{item.new} against {item.base}: {summary(item)}")
    return found

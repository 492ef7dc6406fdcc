"""The settings that cannot be distinguished from the best, as a document of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Entries,
    Missing,
    Number,
    Paragraph,
    Role,
    Table,
    Tone,
)
from concurve.terms import Level

#: So many settings are named.
_NAMED_MAX = 6


def best_document(item: BestFinding, figures: Sequence[Estimate | None]) -> Document:
    """The setting to use, or why there is none, as :func:`doubt_sentences` says it; and a row for
    each of its ``settings``, which have these ``figures``."""
    return Document(title=_title(item), blocks=tuple(_blocks(item, figures)))


def doubt_sentences(item: BestFinding, known: Estimate | None, again: str) -> str:
    """Why no setting is recommended, what the figures point to all the same, and what to do; empty
    where one is recommended. ``known`` is the figure of the leader; ``again`` says
    what to do about figures in doubt."""
    if item.recommended is not None:
        return ""
    why = f"{item.doubt[:1].upper()}{item.doubt[1:]}."
    figure = ""
    if known is not None:
        shown = words.quantity_with_interval(known.value, known.low, known.high, known.unit)
        figure = f": {item.label} {shown}"
    if item.is_open:
        return " ".join(filter(None, (why, _seeming(item, figure), _decide(item))))
    if not item.is_tentative:
        return f"{why} print(run) says more."
    # Which of the settings not in doubt is better is said once, by what compares them alone.
    pointed = _among_undisturbed(item) or _seeming(item, figure)
    found = item.disagreement
    is_used = item.undisturbed is not None and item.undisturbed.is_to_use
    if found is not None and found.is_told and not is_used:
        quiet, every = map(fmt.setting, (found.quiet, found.every))
        trials = f", {found.trials} or more of each,"
        pointed = f"The undisturbed trials{trials} point to {quiet}, not to {every} as all do."
    return " ".join(filter(None, (why, pointed, again)))


def decisive_command(best: Sequence[BestFinding], run: str) -> str:
    """The command of a new run that would decide which settings of a ``run`` are best, to be pasted
    into a shell: that with the most trials; empty where none is advised."""
    told = (item for item in best if item.is_open or not item.doubt)
    most = max(
        (item.new_run for item in told if item.new_run is not None),
        key=lambda new_run: new_run.trials,
        default=None,
    )
    return "" if most is None else f"concurve run run:{run} {most.options}"


def _among_undisturbed(item: BestFinding) -> str:
    """Which settings are the best of those that are not in doubt; empty where that is not
    known."""
    found = item.undisturbed
    if found is None:
        return ""
    best = found.best
    begun = "Of the settings not in doubt"
    if not found.is_to_use:
        few = words.listed([fmt.setting(setting) for setting in best.settings])
        is_one = len(best.settings) == 1
        return f"{begun}, {few} {'is best' if is_one else 'cannot be told from the best'}."
    if best.use is None:
        few = words.listed([fmt.setting(setting) for setting in best.settings], "or")
        return f"{begun}, use {few}."
    others = len(best.not_told_from)
    said = f"{begun}, use {fmt.setting(best.use)}"
    return f"{said}; {words.count(others, 'other')} may be as good." if others else f"{said}."


def _seeming(item: BestFinding, figure: str) -> str:
    """Which setting is best by the figures, and which may be as good."""
    seems = f"{fmt.setting(item.leader)} seems best{figure}"
    if item.first is not None and item.to_first is not None:
        return f"{seems}. {_one_of(item, item.first, item.to_first)}"
    if not item.as_good:
        return f"{seems}."
    others = f"{len(item.as_good)} others"
    if len(item.as_good) <= _NAMED_MAX:
        others = words.listed([fmt.setting(setting) for setting in item.as_good])
    return f"{seems}; {others} may be as good."


def _one_of(item: BestFinding, first: dict[str, Level], found: Estimate) -> str:
    """Of which settings one is to be used, and how many times as good the others are as the
    ``first``."""
    others = [fmt.setting(setting) for setting in item.settings if setting != first]
    low, high = found.low, found.high
    assert low is not None and high is not None, "it has an interval"
    digits = words.ratio_digits(found.value, low, high)
    span = f"{low:.{digits}f}× to {high:.{digits}f}×"
    if item.use == first:
        why = f"{words.listed(others)} {words.verb(len(others))} not shown to be better"
        return f"Use {fmt.setting(first)}: {_used_up(item)}{why} ({span})."
    few = [fmt.setting(setting) for setting in item.settings]
    who = f"{others[0]} is" if len(others) == 1 else "The others of these are"
    return f"Use {words.listed(few, 'or')}. {who} {span} as good as {fmt.setting(first)}."


def _used_up(item: BestFinding) -> str:
    """Why more can hardly gain, where the setting to use leaves no CPU to them."""
    if item.used_up is None:
        return ""
    cpus = "the one CPU" if item.used_up.cpus == 1 else f"the {item.used_up.cpus:g} CPUs"
    return f"{cpus} {'is' if item.used_up.cpus == 1 else 'are'} used up, and "


def _decide(item: BestFinding) -> str:
    return f"{item.decide[:1].upper()}{item.decide[1:]}." if item.decide else ""


def _title(item: BestFinding) -> str:
    under = f" (with {fmt.setting(item.group)})" if item.group else ""
    if item.use is None:
        return f"No setting is recommended by {item.label}{under}"
    return f"Use {fmt.setting(item.use)}, by {item.label}{under}"


def _blocks(item: BestFinding, figures: Sequence[Estimate | None]) -> Iterator[Block]:
    if item.doubt:
        yield Paragraph(item.doubt, Tone.WARNING if item.use is None else Tone.SOFT)
    number = len(item.settings)
    if number > 1:
        which = words.all_of(number, "setting") if number == item.compared else (
            f"{number} of {words.count(item.compared, 'setting')}"
        )  # fmt: skip
        yield Paragraph(f"{which[:1].upper()}{which[1:]} cannot be told apart from the best.")
    yield _table(item, figures)
    if item.decide and not item.doubt:
        yield Paragraph(_decide(item), Tone.SOFT)


def _table(item: BestFinding, figures: Sequence[Estimate | None]) -> Table:
    known = [figure for figure in figures if figure is not None]
    scale = fmt.scale_for([figure.value for figure in known], known[0].unit if known else "")
    entries: list[Cell] = [
        Missing() if figure is None else _number(figure, scale) for figure in figures
    ]
    keys = (
        Column(name, [fmt.level(setting[name]) for setting in item.settings], Role.KEY)
        for name in item.factors
    )
    columns = [*keys, Column(item.label, Entries(entries, scale.symbol), Role.NUMBER)]
    if item.use is not None:
        mark = "to use" if item.recommended is None else "recommended"
        marks = [mark if one == item.use else "" for one in item.settings]
        columns.append(Column("", marks))
    return Table(tuple(columns), title="One row a setting.")


def _number(figure: Estimate, scale: fmt.Scale) -> Number:
    shown = fmt.estimate(figure, scale)
    return Number(shown.value, shown.spread, shown.span, figure.value, shown.is_skewed)

"""The two sides of a comparison: their runs, the cells that both have, and warnings about them."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve import words
from concurve.errors import ComparisonError
from concurve.findings.cells import CellFindings
from concurve.findings.counts import count_trials
from concurve.findings.run import Findings, TrialFindings
from concurve.host.same_machine import is_same_machine, machine_differences
from concurve.terms import CellKey, Level, cell_key

#: A warning names at most this many cells.
_NAMED_MAX = 3


class Side(NamedTuple):
    """The sessions (runs) of one side, and the cells of each by parameters, without those of the
    factors that tell the sides apart."""

    name: str
    sessions: tuple[TrialFindings, ...]
    cells: tuple[dict[CellKey, CellFindings], ...]


class Pair(NamedTuple):
    """Two cells to compare: how the table names them, and where they are on each side."""

    parameters: dict[str, Level]
    base: CellKey
    new: CellKey


def side_of(name: str, sessions: Sequence[TrialFindings], apart: Collection[str] = ()) -> Side:
    """Runs as a side of that name; the factors ``apart`` do not name its cells."""
    cells = tuple(
        {cell_key(without(cell.parameters, apart)): cell for cell in run.cells} for run in sessions
    )
    return Side(name, tuple(sessions), cells)


def names_of(base: Sequence[Findings], new: Sequence[Findings]) -> tuple[str, str]:
    """What the two sides are called. Where the names of their studies differ, and nothing else of
    them is a name, these tell them apart; ids alone would have to be looked up."""
    differ = {run.run.study for run in base}.isdisjoint(run.run.study for run in new)
    names = apart(base, new)
    return side_name(base, names, named=differ), side_name(new, names, named=differ)


def side_name(
    sessions: Sequence[Findings], apart: Collection[str] = (), *, named: bool = False
) -> str:
    """The runs of a side by their ids, with their levels of the factors ``apart``. Where ``named``,
    by the name of their study first: ``io8 (20261121-0912)``."""
    ids = ", ".join(run.run.id for run in sessions)
    own = {name: level for name, (level, *_) in _levels(sessions).items() if name in apart}
    more = [_setting(own)] if own else []
    if named:
        names = ", ".join(dict.fromkeys(run.run.study for run in sessions))
        return f"{names} ({', '.join([ids, *more])})"
    return f"{ids} ({', '.join(more)})" if more else ids


def apart(base: Sequence[Findings], new: Sequence[Findings]) -> tuple[str, ...]:
    """The factors that tell the sides apart: of one level on each side, and not of the same."""
    one, other = _levels(base), _levels(new)
    common = [name for name in one if name in other]
    return tuple(n for n in common if len(one[n]) == len(other[n]) == 1 and one[n] != other[n])


def without(parameters: Mapping[str, Level], names: Collection[str]) -> dict[str, Level]:
    """The levels of the other factors."""
    return {name: level for name, level in parameters.items() if name not in names}


def _levels(runs: Sequence[Findings]) -> dict[str, tuple[str, ...]]:
    """The levels of each factor in all these runs, as texts."""
    named = dict.fromkeys(name for run in runs for cell in run.cells for name in cell.parameters)
    return {
        name: tuple(
            dict.fromkeys(str(cell.parameters.get(name, "")) for run in runs for cell in run.cells)
        )
        for name in named
    }


def common_cells(base: Side, new: Side) -> tuple[list[CellKey], list[str]]:
    """Cells that every session of both sides has, and a warning about the others."""
    everywhere = [*base.cells, *new.cells]
    common = [key for key in new.cells[0] if all(key in cells for cells in everywhere)]
    alone = {
        key: cells[key] for cells in everywhere for key in cells if key not in set(common)
    }  # fmt: skip
    if not alone or not common:
        return common, []
    names = [_setting(cell.parameters) for cell in list(alone.values())[:_NAMED_MAX]]
    more = f" and {len(alone) - _NAMED_MAX} more" if len(alone) > _NAMED_MAX else ""
    return common, [f"left out, as not every run has it: {'; '.join(names)}{more}"]


def varying(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The factors in which the pairs differ."""
    names = list(pairs[0].parameters)
    return tuple(n for n in names if len({pair.parameters[n] for pair in pairs}) > 1)


def factors_of(run: Findings) -> str:
    """The factors of a run with their levels."""
    return _setting({f.name: ",".join(map(str, f.levels)) for f in run.factors})


def _setting(parameters: Mapping[str, Level]) -> str:
    return " ".join(f"{name}={level}" for name, level in parameters.items()) or "the only cell"


def machines(runs: Sequence[Findings], across: bool) -> Iterator[str]:
    """Refuse runs of different hardware unless ``across``; warn of different settings of a
    machine."""
    first = runs[0]
    for run in runs[1:]:
        differences = machine_differences(first.machine, run.machine)
        listed = "; ".join(differences)
        if not is_same_machine(first.machine, run.machine):
            if not across:
                raise ComparisonError(
                    f"runs {first.run.id} and {run.run.id} are of different machines: {listed}",
                    "--across-machines, if that is what you want to compare",
                )
            yield f"{first.run.id} and {run.run.id} are of different machines: {listed}"
        elif differences:
            yield f"the machine was not the same in {first.run.id} and {run.run.id}: {listed}"


def studies(base: Findings, new: Findings) -> Iterator[str]:
    """Warn if the runs are of different studies, or sweeps that measure something else. Sweeps of
    one command are one study, whatever they are called: their names tell two states of something
    apart."""
    lines = _sweep_of(base), _sweep_of(new)
    if None in lines:
        if base.run.study != new.run.study:
            yield f"different studies: {base.run.study} and {new.run.study}"
    elif lines[0] != lines[1]:
        one, other = _told_apart(*(line for line in lines if line is not None))
        yield f"different commands: {one} and {other}"


#: Options of a sweep that do not change what is measured, each with a value; those that name a file
#: to export to begin alike.
_NOT_MEASURED = frozenset(
    {
        "--name",
        "--seed",
        "--effort",
        "--repeats",
        "--max-time",
        "--precision",
        "--timeout",
        "--secret",
        "--base",
        "--primary",
        "--condition",
        "-P",
        "--parameter",
        "--wait-quiet",
        "--db",
        "--fail-on",
        "--effect",
    }
)
#: These have a name and levels.
_PARAMETERS = ("-P", "--parameter")
_EXPORT = "--export"
_LINE_LENGTH_MAX = 80


#: The same without a value.
_NOT_MEASURED_FLAGS = frozenset({"--measure-anyway", "--in-doubt"})


def _sweep_of(run: Findings) -> list[str] | None:
    """What a sweep measures, by the words of its command line; ``None`` if it is no sweep."""
    line = shlex.split(run.run.again)
    if "sweep" not in line[:2] or "--" not in line:
        return None
    end = line.index("--")
    options = iter(line[2:end])
    kept = []
    for word in options:
        name = word.partition("=")[0]
        if name in _NOT_MEASURED_FLAGS:
            continue
        if name not in _NOT_MEASURED and not name.startswith(_EXPORT):
            kept.append(word)
        elif "=" not in word:
            value = next(options, "")
            if word in _PARAMETERS and "=" not in value:
                next(options, None)
    return [*kept, *line[end + 1 :]]


def _told_apart(one: list[str], other: list[str]) -> tuple[str, str]:
    """Two lines that differ; of long ones what is between the words with which both begin and end,
    and the word before it."""
    whole = " ".join(one), " ".join(other)
    if max(map(len, whole)) <= _LINE_LENGTH_MAX:
        return whole
    one, other = (line.split() for line in whole)
    begin = max(_alike(one, other) - 1, 0)
    end = _alike(one[:begin:-1], other[:begin:-1])
    return _part(one, begin, end), _part(other, begin, end)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """With how many words both begin."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in pairs)


def _part(line: list[str], begin: int, end: int) -> str:
    """The words from one place to another, with ``…`` for what is left out."""
    text = " ".join(line[begin : len(line) - end])
    if len(text) > _LINE_LENGTH_MAX:
        text, end = text[:_LINE_LENGTH_MAX].rstrip(), 1
    return f"{'… ' if begin else ''}{text}{' …' if end else ''}"


def sessions(base: Sequence[Findings], new: Sequence[Findings]) -> Iterator[str]:
    """Warn where the variance between runs is not known on a side."""
    if len(base) == len(new) == 1:
        yield (
            "one run on each side: runs of equal programs differ, too; several a side (A1,A2), or "
            "levels of one run, show by how much"
        )
    if (len(base) == 1) != (len(new) == 1):
        yield "one run against several: the variance between runs of the single side is not known"


def states(runs: Sequence[Findings], in_doubt: bool) -> list[str]:
    """Warnings about runs that are not complete, or have trials in doubt. ``in_doubt``: those are
    judged as any others."""
    found = []
    for run in runs:
        if run.run.state != "complete":
            found.append(
                f"run {run.run.id} is {run.run.state}, with {words.count(run.run.trials, 'trial')}"
            )
        counts = count_trials(run.run.trials, run.rejects, run.cells)
        if counts.doubted and in_doubt and counts.set_aside:
            found.append(f"run {run.run.id}: {counts.in_doubt_all_judged}")
        elif counts.doubted:
            found.append(f"run {run.run.id}: {counts.in_doubt}")
    return found

"""Are the hosts alike over which the blocks of a run were dealt out? Pure.

Each block ran on one host. What a host does to all cells of a block drops out of their ratios. What
it does to one cell more than to another does not, and the figure of a cell is a median over all
hosts. So both are tested, each host against the others, by the rank-sum test
(:mod:`concurve.stats.rank_sums`): the level of its blocks (the geometric mean over the cells), and
the ratio of each cell to its base. The error of 5 % is shared among all of these tests
(Bonferroni). Where hosts differ by a relevant share, verdicts and recommended settings are
withheld, with the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve import words
from concurve.analysis.run.tables import Table
from concurve.findings.run import Finding
from concurve.planning.plan import Cell, Plan, describe
from concurve.stats.blocks import Blocks, geometric_means, quotients
from concurve.stats.moments import growth
from concurve.stats.rank_sums import Shifted, shifted
from concurve.stats.signed_ranks import Ranked
from concurve.terms import IndicatorInfo

#: Hosts that differ by less than this share are alike for all that is said of a run.
RELEVANT = 0.01

#: The error that all tests of a run share.
_LEVEL = 0.05

#: So many differences are named; others are counted.
_NAMED_MOST = 3


class Difference(NamedTuple):
    """How many times as high a figure is on a host as on others, with its interval. ``of`` says
    which figure: the level of all cells, or the ratio of a cell to its base."""

    host: str
    others: str
    of: str
    ratio: float
    low: float
    high: float
    is_seen: bool

    @property
    def is_relevant(self) -> bool:
        """Is it beyond chance, and not too small to matter?"""
        return self.is_seen and abs(math.log(self.ratio)) > math.log1p(RELEVANT)

    @property
    def says(self) -> str:
        """The difference in words."""
        return (
            f"{self.of} on {self.host} is {self.ratio:.3g} times that on {self.others} "
            f"({self.low:.3g} to {self.high:.3g})"
        )


class Comparison(NamedTuple):
    """The hosts of a run, held against each other; ``differences`` is empty where a host has too
    few blocks for that."""

    hosts: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def relevant(self) -> list[Difference]:
        """The differences for which the hosts are not alike, the greatest first."""
        found = [difference for difference in self.differences if difference.is_relevant]
        return sorted(found, key=lambda it: -abs(math.log(it.ratio)))

    @property
    def doubt(self) -> str:
        """Why nothing is to be concluded over these hosts; empty where they are alike."""
        found = self.relevant
        return f"the hosts are not alike: {found[0].says}" if found else ""


def compare_hosts(plan: Plan, tables: Sequence[Table], info: IndicatorInfo) -> Comparison | None:
    """The hosts of a run by an indicator; ``None`` where its blocks were not dealt out."""
    if not plan.alike or plan.study.simulation:
        return None
    parted = {of: _by_host(plan, values) for of, values in _series(plan, tables, info)}
    pairs = [
        (of, host, test)
        for of, by_host in parted.items()
        for host, test in _against_others(plan.alike, by_host)
    ]
    if not pairs or any(test is None for _, _, test in pairs):
        return Comparison(plan.alike, ())
    others = plan.alike[0] if len(plan.alike) == 2 else "the other hosts"
    differences = [
        difference((host, others, of), test, len(pairs))
        for of, host, test in pairs
        if test is not None
    ]
    return Comparison(plan.alike, tuple(differences))


def _series(
    plan: Plan, tables: Sequence[Table], info: IndicatorInfo
) -> Iterator[tuple[str, Blocks]]:
    """What is compared: by block the level of all measured cells, and the ratio of each to its
    base."""
    columns = {
        cell.index: column
        for cell, table in zip(plan.cells, tables, strict=True)
        if (column := table.by_block(info.name))
    }
    if columns and (means := geometric_means(list(columns.values()))) is not None:
        yield info.label, means
    for index, column in columns.items():
        cell = plan.cells[index]
        if cell.base == index or cell.base not in columns:
            continue
        if (ratios := quotients(column, columns[cell.base])) is not None:
            yield f"{info.label} of {_over(cell, plan.cells[cell.base])}", ratios


def _over(cell: Cell, base: Cell) -> str:
    """A cell over its base, with the levels in which they differ."""
    own = {name: it for name, it in cell.parameters.items() if it != base.parameters[name]}
    others = {name: base.parameters[name] for name in own}
    shared = {name: it for name, it in cell.parameters.items() if name not in own}
    at = f" at {describe(shared)}" if shared else ""
    return f"{describe(own)} over {describe(others)}{at}"


def _by_host(plan: Plan, values: Blocks) -> dict[str, list[float]]:
    """The logarithms of the values of each host."""
    found: dict[str, list[float]] = {host: [] for host in plan.alike}
    for block, value in values.items():
        found[plan.host_of(block)].append(math.log(value))
    return found


def _against_others(
    hosts: Sequence[str], by_host: Mapping[str, Sequence[float]]
) -> Iterator[tuple[str, Shifted | None]]:
    """Each host against the others together; of two hosts the second alone, as the first one says
    the same."""
    for host in hosts[1:] if len(hosts) == 2 else hosts:
        others = [value for other in hosts if other != host for value in by_host[other]]
        yield host, shifted(by_host[host], others)


def difference(names: tuple[str, str, str], test: Shifted | Ranked, tests: int) -> Difference:
    """What a test, one of several, says: the names are those of :class:`Difference`."""
    level = _LEVEL / tests
    low, high = test.interval(1 - level)
    p = 2 * min(test.p_above(), test.p_below())
    return Difference(*names, growth(test.value), growth(low), growth(high), p <= level)


def sentences(found: Comparison | None) -> Iterator[Finding]:
    """What a reader is told of the hosts."""
    if found is None:
        return
    hosts = words.listed(found.hosts)
    relevant = found.relevant
    if relevant:
        named = "; ".join(it.says for it in relevant[:_NAMED_MOST])
        more = len(relevant) - _NAMED_MOST
        others = f"; and {words.count(more, 'further difference')}" if more > 0 else ""
        yield Finding(
            kind="warning",
            sentence=f"The hosts {hosts} are not alike: {named}{others}. No claim is judged and no "
            "setting is recommended. Look at that host, or run again on one of them, or on hosts "
            "that are alike.",
        )
    elif not found.differences:
        yield Finding(
            kind="note",
            sentence=f"Each block ran on one of {hosts}, in turn. Whether they are alike was not "
            "tested: each needs two blocks.",
        )
    else:
        most = max(max(it.high, 1 / it.low) if it.low > 0 else math.inf for it in found.differences)
        within = f"they may differ by up to {words.share(most - 1)}"
        if not math.isfinite(most):
            within = "the blocks are too few to say how much they may differ"
        yield Finding(
            kind="note",
            sentence=f"Each block ran on one of {hosts}, in turn, so ratios compare trials of one "
            f"host. No relevant difference between the hosts was seen; {within}.",
        )

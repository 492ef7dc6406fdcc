"""Is a host of a load slower than its siblings? Pure.

Copies of a role run at once on several hosts, and their figures are added up: a host that is slower
than the others is to be told, and not only to make the sum smaller. Each host is held against the
others trial by trial, so what slows a whole trial drops out: the rate of its copies and the 99th
percentile of their latencies, of a search for a rate the share of its requests that were bad, or
the wall time of roles that count no operations. The test is that
of ratios (:mod:`concurve.stats.blocks`), with the error and the least relevant difference of hosts
that are to be alike (:mod:`~concurve.analysis.run.hosts`). Where hosts have unequal numbers of
copies they are not compared: copies on one host share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve.analysis.run.hosts import Difference, difference
from concurve.analysis.run.tables import Table
from concurve.definition.study import Role
from concurve.definition.templates import render
from concurve.findings.run import Finding
from concurve.planning.placing import placed
from concurve.planning.plan import Cell, Plan
from concurve.readings.copies import copied_roles
from concurve.stats.blocks import Blocks, geometric_means, log_ratios, quotients
from concurve.stats.moments import median
from concurve.stats.signed_ranks import Ranked

#: A figure of a copy in a cell, by its name.
_Read = Callable[[Table, str], Blocks]


class _Figure(NamedTuple):
    """A figure of a role, its ``tests`` of each host against the others, and whether a slow host
    has a low one."""

    role: str
    of: str
    is_low_if_slow: bool
    hosts: tuple[str, ...]
    tests: dict[str, Ranked]


def slower_siblings(plan: Plan, tables: Sequence[Table]) -> Iterator[Finding]:
    """What a reader is told of hosts that differ from those that did the same work at once."""
    if plan.inventory is None or plan.study.simulation:
        return
    figures = list(_figures(plan, tables))
    tests = sum(len(figure.tests) for figure in figures)
    said: dict[str, list[str]] = {}
    for figure in figures:
        found = [_difference(figure, host, tests) for host in figure.tests]
        if relevant := [it for it in found if it.is_relevant]:
            greatest = max(relevant, key=lambda it: abs(math.log(it.ratio)))
            said.setdefault(figure.role, []).append(greatest.says)
    for role, differences in said.items():
        yield Finding(
            kind="warning",
            sentence=f"The hosts of role {role} are not alike: {'; '.join(differences)}. The "
            "figures of all its copies mix hosts that differ: look at the slower ones, or leave "
            "them out.",
        )


def _figures(plan: Plan, tables: Sequence[Table]) -> Iterator[_Figure]:
    """The figures by which the hosts of each role are compared."""
    roles = {role.name: role for role in plan.study.roles}
    for copied in copied_roles(plan.study):
        cells = _comparable(plan, roles[copied.role], tables)
        rate = _tests(cells, _rate)
        bad = _tests(cells, _named("slo_bad_share"))
        for of, is_low_if_slow, tests in (
            ("its rate", True, rate),
            ("its 99th percentile of latency", False, _tests(cells, _named("latency_ns_p99"))),
            ("its share of bad requests", False, bad),
            ("its wall time", False, {} if rate or bad else _tests(cells, _named("wall_seconds"))),
        ):
            if tests:
                yield _Figure(copied.role, of, is_low_if_slow, tuple(cells[0][1]), tests)


def _comparable(
    plan: Plan, role: Role, tables: Sequence[Table]
) -> list[tuple[Table, Mapping[str, Sequence[str]]]]:
    """The cells in which the role has equally many copies on the most hosts, and these copies by
    host."""
    found = []
    for cell, table in zip(plan.cells, tables, strict=True):
        copies = _copies_by_host(plan, role, cell)
        if len(copies) > 1 and len({len(names) for names in copies.values()}) == 1 and table.used:
            found.append((table, copies))
    most = max((len(copies) for _, copies in found), default=0)
    return [(table, copies) for table, copies in found if len(copies) == most]


def _copies_by_host(plan: Plan, role: Role, cell: Cell) -> dict[str, list[str]]:
    """The names of the copies of a role in a cell, by their hosts."""
    count = int(render(role.copies, plan.values(cell)))
    found: dict[str, list[str]] = {}
    for number, host in enumerate(placed(role, count, plan.inventory, f"role {role.name}"), 1):
        found.setdefault(host, []).append(f"{role.name}-{number}")
    return found


def _named(name: str) -> _Read:
    return lambda table, copy: table.by_block(f"{copy}.{name}")


def _rate(table: Table, copy: str) -> Blocks:
    """The operations of a copy in a second of its time."""
    operations = table.by_block(f"{copy}.operations")
    return quotients(operations, table.by_block(f"{copy}.wall_seconds")) or {}


def _tests(
    cells: Sequence[tuple[Table, Mapping[str, Sequence[str]]]], read: _Read
) -> dict[str, Ranked]:
    """The test of each host against the others; none where a host lacks the figure, or there are
    too few trials. Of two hosts the second alone, as the first one says the same."""
    if not cells:
        return {}
    hosts = list(cells[0][1])
    by_host: dict[str, Blocks] = {}
    for host in hosts:
        found = [_mean([read(table, name) for name in copies[host]]) for table, copies in cells]
        by_host[host] = _mean(found)
    tests = {
        host: log_ratios(by_host[host], _middle([by_host[it] for it in hosts if it != host]))
        for host in (hosts[1:] if len(hosts) == 2 else hosts)
    }
    ranked = {host: test for host, test in tests.items() if test is not None}
    return ranked if len(ranked) == len(tests) else {}


def _mean(several: Sequence[Blocks]) -> Blocks:
    """The geometric mean in each block; nothing where a value is not above 0."""
    return geometric_means(several) or {}


def _middle(several: Sequence[Blocks]) -> Blocks:
    """The median of several hosts in each block, by the logarithms: one that is odd among them does
    not make the others look so."""
    common = sorted(set.intersection(*(set(blocks) for blocks in several)))
    return {
        block: math.exp(median(sorted(math.log(blocks[block]) for blocks in several)))
        for block in common
    }


def _difference(figure: _Figure, host: str, tests: int) -> Difference:
    """The difference of a host from the others; of two hosts that of the slower one."""
    others = figure.hosts[0] if len(figure.hosts) == 2 else "the other hosts"
    found = difference((host, others, figure.of), figure.tests[host], tests)
    if len(figure.hosts) > 2 or (found.ratio < 1) == figure.is_low_if_slow:
        return found
    return found._replace(
        host=others,
        others=host,
        ratio=1 / found.ratio,
        low=1 / found.high,
        high=1 / found.low if found.low > 0 else math.inf,
    )

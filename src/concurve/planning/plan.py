"""Study → cells and trial specs: pure and seeded.

The same study, effort and seed give the same cells, the same blocks and the same specs, so a
killed run resumes from the stored data alone.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from concurve.definition.controls import SPARE, parse_cpus
from concurve.definition.inventory import LOOPBACK, Inventory, addresses, alike_hosts
from concurve.definition.level_parts import part_values
from concurve.definition.levels import levels_meant
from concurve.definition.measured import asks_for_cache_misses
from concurve.definition.readiness import check_address, check_line
from concurve.definition.study import (
    BLOCK_SEED,
    FREE_PORT,
    RUN_PASSWORD,
    TRIAL_FOLDER,
    Role,
    Rules,
    Study,
    choose_work,
)
from concurve.definition.templates import Value, expand, placeholders, render
from concurve.errors import HostError, StudyError
from concurve.planning.placing import placed
from concurve.planning.searches import check_searches, is_search, together
from concurve.secrets import reference
from concurve.store.run_head import PROTOCOL, RunHead
from concurve.terms import Level, Waiting, same_level
from concurve.wire.spec import ReadyProbe, RoleSpec, Sampling, TrialSpec
from concurve.words import meant

#: Name, place, Java and JVM options → how the command line begins:
#: :func:`concurve.measuring.packaged.command`.
ProgramFinder = Callable[[str, str, str | None, Sequence[str]], Sequence[str]]

COPIES_MAX = 1024

#: The value of ``{free_port}`` in a plan that is shown, not run.
PORT = "PORT"

#: The same of the port where the copies of a load meet that search together.
SEARCH_PORT = "SEARCH_PORT"

#: The secret that ``{run_password}`` stands for, and by which those copies know each other.
RUN_PASSWORD_SECRET = "RUN_PASSWORD"

CELLS_MAX = 100_000

#: The threads of the first trials of each cell are followed in so many blocks.
_TIMELINE_BLOCKS = 3


class Cell(msgspec.Struct, frozen=True):
    """One combination of levels; ``base`` is the index of the cell it is compared with."""

    index: int
    parameters: dict[str, Level]
    base: int


class Plan(msgspec.Struct, frozen=True):
    """What will be run: the cells, the rules and the seed that orders them.

    ``allowed_at_start`` is the time allowance in seconds that the run began with, before any
    other one; ``protocol`` the number of the protocol that it follows; ``inventory`` the hosts that
    it runs on, ``None`` for this machine alone; ``alike`` names those over which blocks are dealt
    out, if a role asks for any of several. ``waiting``: how its run waits for a quiet machine, if
    it does; the time that it waited since its first trial is none for further trials.
    """

    study: Study
    effort: str
    seed: int
    cells: tuple[Cell, ...]
    rules: Rules
    work: str | None
    allowed_at_start: float
    protocol: int = PROTOCOL
    inventory: Inventory | None = None
    alike: tuple[str, ...] = ()
    waiting: Waiting | None = None

    @property
    def work_grows(self) -> bool:
        """Do cells differ from their base in concurrency? No if the study names a base by other
        factors: then each cell is compared with one of equal concurrency."""
        return self.work is not None and (not self.study.base or self.work in self.study.base)

    @property
    def compares_names(self) -> bool:
        """Are all levels names, such as versions? Then a figure says something beside another one;
        that of a number of clients, a rate or a size says something alone."""
        return all(isinstance(level, str) for it in self.study.factors for level in it.levels)

    def order(self, block: int) -> list[int]:
        """The cells of a block in their randomised order."""
        return next(self.orders([block]))

    def orders(self, blocks: Iterable[int]) -> Iterator[list[int]]:
        """The orders of several blocks. One generator draws them all: to make one takes as long as
        to seed it."""
        generator = random.Random()
        for block in blocks:
            generator.seed(f"{self.seed}/{block}")
            yield _shuffled(len(self.cells), generator)

    def host_of(self, block: int) -> str:
        """The host of a block, where blocks are dealt out over hosts that are alike; else empty.
        Every so many blocks each host has one, in a randomised order, so that neither a level nor
        the time of day goes with a host."""
        if not self.alike:
            return ""
        turn, place = divmod(block, len(self.alike))
        return self.alike[shuffled(len(self.alike), f"{self.seed}/hosts/{turn}")[place]]

    def by_importance(self) -> list[int]:
        """The cells in the order that answers most where not all can be measured: the bases, the
        cells furthest from them, then those in the middle of what was left out."""
        series: dict[int, list[int]] = {}
        for cell in self.cells:
            series.setdefault(cell.base, []).append(cell.index)
        ranks = [_halving(base, cells) for base, cells in series.items()]
        return [
            cell for place in itertools.zip_longest(*ranks) for cell in place if cell is not None
        ]

    def block_seed(self, block: int) -> int:
        """The seed for random draws in a block's trials: the same in all its cells, so that they
        differ by their levels alone (common random numbers), and a different one in each block."""
        return random.Random(f"{self.seed}/draws/{block}").randrange(1 << 31)

    def values(
        self, cell: Cell, port: Level = "", block: int = 0, folder: str = ""
    ) -> dict[str, Value]:
        """The values of the placeholders in a cell; ``port`` is a free port, ``folder`` an empty
        folder."""
        of_trial: dict[str, Level] = {
            FREE_PORT: port,
            BLOCK_SEED: self.block_seed(block),
            TRIAL_FOLDER: folder,
            RUN_PASSWORD: reference(RUN_PASSWORD_SECRET),
        }
        levels = {**cell.parameters, "effort": self.effort, **of_trial}
        parts = part_values(self.study.level_parts, levels)
        return {**addresses(self.study, self.inventory, self.host_of(block)), **levels, **parts}

    def workers(self, cell: Cell) -> float | None:
        """The level of the factor that counts as concurrency, if there is one."""
        level = cell.parameters[self.work] if self.work else None
        return level if isinstance(level, int | float) else None


def shuffled(count: int, seed: str) -> list[int]:
    """The numbers below ``count`` in the order that ``random.Random(seed).shuffle`` gives them."""
    return _shuffled(count, random.Random(seed))


def _shuffled(count: int, generator: random.Random) -> list[int]:
    """The same by a generator, in half of the time of its own ``shuffle``: whoever reads a run of
    many blocks replays the order of each."""
    places = list(range(count))
    draw = generator.getrandbits
    for last, bits in _draws(count):
        while (other := draw(bits)) > last:
            pass
        places[last], places[other] = places[other], places[last]
    return places


@lru_cache(maxsize=8)
def _draws(count: int) -> tuple[tuple[int, int], ...]:
    """The last place of each step of a shuffle, and how many bits hold the number of its places."""
    return tuple((last, (last + 1).bit_length()) for last in range(count - 1, 0, -1))


def make_plan(study: Study, effort: str, seed: int, inventory: Inventory | None = None) -> Plan:
    """Make the cells of a study at an effort, to be run on these hosts or on this machine.

    Raises:
        StudyError: too many cells, or a base that the effort leaves out.
        HostError: the hosts cannot be those of the study.
    """
    factors = study.factors_at(effort)
    names = [factor.name for factor in factors]
    count = math.prod(len(factor.levels) for factor in factors)
    if count > CELLS_MAX:
        raise StudyError(
            f"{count} combinations of levels ({' × '.join(str(len(f.levels)) for f in factors)}), "
            f"at most {CELLS_MAX} can be planned",
            "fewer levels, or a wider step: 1..64*2",
        )
    combinations = [
        dict(zip(names, levels, strict=True))
        for levels in itertools.product(*(factor.levels for factor in factors))
    ]
    work = choose_work(study)
    base_levels = _base_levels(study, effort, work)
    position = {tuple(parameters.values()): i for i, parameters in enumerate(combinations)}
    cells = tuple(
        Cell(i, parameters, position[tuple({**parameters, **base_levels}.values())])
        for i, parameters in enumerate(combinations)
    )
    rules = study.effort(effort).rules
    allowed = rules.time_allowed_seconds
    alike = alike_hosts(study, inventory)
    return Plan(study, effort, seed, cells, rules, work, allowed, inventory=inventory, alike=alike)


def plan_of(head: RunHead) -> Plan:
    """The plan that a run follows."""
    at_start = head.allowed_at_start
    return msgspec.structs.replace(
        make_plan(head.study, head.effort, head.seed, head.hosts),
        rules=head.rules,
        allowed_at_start=head.rules.time_allowed_seconds if at_start is None else at_start,
        protocol=head.protocol,
        waiting=head.waiting,
    )


def _halving(base: int, cells: list[int]) -> list[int]:
    """A base, the last of its cells, the one half-way, and so on between these."""
    line = [base, *(cell for cell in cells if cell != base)]
    order = [0, len(line) - 1]
    gaps = deque([(0, len(line) - 1)])
    while gaps:
        low, high = gaps.popleft()
        middle = (low + high) // 2
        if low < middle:
            order.append(middle)
            gaps.extend([(low, middle), (middle, high)])
    return [line[place] for place in dict.fromkeys(order)]


def _base_levels(study: Study, effort: str, work: str | None) -> dict[str, Level]:
    """The levels to replace in a cell to get the cell that it is compared with.

    Without a named base: the lowest level of the work factor, the others equal; without a work
    factor: the first level of every factor.
    """
    factors = {factor.name: factor.levels for factor in study.factors_at(effort)}
    if study.base:
        for name, level in study.base.items():
            if same_level(level, factors[name]) is None:
                raise StudyError(
                    f"base {name}={level} is not among the levels at effort {effort}",
                    meant(str(level), map(str, factors[name])),
                )
        return levels_meant(study.base, factors)
    if work:
        return {work: min(factors[work], key=float)}
    return {name: levels[0] for name, levels in factors.items()}


def trial_spec(
    plan: Plan,
    cell: Cell,
    trial: str,
    cpus: Sequence[int],
    find_program: ProgramFinder,
    port: Level = PORT,
    block: int = 0,
    folder: str = "FOLDER",
    name_cell: bool = True,
    machines: Mapping[str, Machine] | None = None,
    search_port: Level = SEARCH_PORT,
) -> TrialSpec:
    """The spec of one trial of a cell in a block.

    Args:
        trial: the trial's name.
        cpus: the CPUs that this process may use.
        find_program: gives the beginning of a packaged program's command line.
        port: the value of ``{free_port}``.
        folder: the value of ``{trial_folder}``.
        name_cell: whether errors name the cell beside the role.
        machines: what the hosts grant, by name; what is not there is as on this machine.
        search_port: where the copies of a load meet that search for a rate together.

    Raises:
        StudyError: a rendered control is malformed, or several roles search for a rate at once.
        HostError: the machine lacks what a level requires, or there is no such host.
    """
    limit = plan.rules.timeout_seconds
    values = plan.values(cell, port, block, folder)
    granted = _granted(plan, Machine(cpus, find_program), machines or {})
    where = f"{describe(cell.parameters)}: " if name_cell else ""
    copies: dict[str, tuple[RoleSpec, ...]] = {}
    searching: list[str] = []
    for role in plan.study.roles:
        after = tuple(spec.name for other in role.after for spec in copies[other])
        copies[role.name] = _role_specs(
            plan, role, after, values, granted, f"{where}role {role.name}", plan.host_of(block)
        )
        program = None if role.program is None else render(role.program, values)
        if any(is_search(program, spec.argv) for spec in copies[role.name]):
            searching.append(role.name)
            token = reference(RUN_PASSWORD_SECRET)
            copies[role.name] = together(
                copies[role.name], _addresses(plan.inventory), search_port, token
            )
    check_searches(plan.study.roles, searching, where)
    return TrialSpec(
        trial=trial,
        roles=tuple(spec for specs in copies.values() for spec in specs),
        time_limit_ns=msgspec.UNSET if limit is None else round(limit * 1e9),
        sampling=_sampling(plan.study, block),
        cache_misses=asks_for_cache_misses(plan.study) or msgspec.UNSET,
    )


def _sampling(study: Study, block: int) -> Sampling:
    """A report shows the threads of one trial of a cell, so only the first ones record them."""
    if study.simulation or block >= _TIMELINE_BLOCKS:
        return Sampling()
    return Sampling(thread_timelines=True)


def _addresses(inventory: Inventory | None) -> dict[str, str]:
    """The addresses of hosts by name; that of this machine, where there is no other, has an empty
    name."""
    if inventory is None:
        return {"": LOOPBACK}
    return {host.name: host.address for host in inventory.hosts}


class Machine(NamedTuple):
    """The part of a machine that a trial may use: its CPUs and its packaged programs."""

    cpus: Sequence[int]
    find_program: ProgramFinder


class _Granted(NamedTuple):
    """A machine, its spare CPUs (``spare``), the CPUs of roles that name none (``None``: any)."""

    cpus: Sequence[int]
    find_program: ProgramFinder
    spare: Sequence[int]
    usual: tuple[int, ...] | None = None


def _granted(plan: Plan, here: Machine, machines: Mapping[str, Machine]) -> dict[str, _Granted]:
    """What each host of a plan grants; that of this machine has an empty name."""
    if plan.inventory is None:
        return {"": _Granted(*here, _spare_cpus(plan, here.cpus, ""))}
    found = {}
    for host in plan.inventory.hosts:
        machine = machines.get(host.name) or Machine(host.cpus or here.cpus, here.find_program)
        spare = _spare_cpus(plan, machine.cpus, host.name)
        usual = host.cpus or (tuple(machine.cpus) if host.housekeeping else None)
        found[host.name] = _Granted(*machine, spare, usual)
    return found


def _spare_cpus(plan: Plan, cpus: Sequence[int], host: str) -> tuple[int, ...]:
    """The CPUs of a host that no role there is bound to in any cell, or all if none are left: so
    the CPUs of a load stay the same while those of a server vary."""
    texts = {
        role.name: role.controls.cpus for role in plan.study.roles if _may_run(plan, role, host)
    }
    if SPARE not in texts.values():
        return tuple(cpus)
    bound: set[int] = set()
    for role, text in texts.items():
        if not text or text == SPARE:
            continue
        for cell in _told_apart(plan.cells, text):
            if rendered := render(text, plan.values(cell)):
                with contextlib.suppress(HostError):  # refused when that cell is planned
                    bound.update(parse_cpus(rendered, cpus, f"role {role}"))
    return tuple(cpu for cpu in cpus if cpu not in bound) or tuple(cpus)


def _told_apart(cells: Iterable[Cell], text: str) -> Iterable[Cell]:
    """The first cell of each way in which a text is rendered. A text mostly names one factor, and a
    plan may have thousands of cells."""
    names = placeholders(text)
    if any("." in name for name in names):  # a part, which may hold the level of any other factor
        return cells
    found: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        levels = tuple(str(cell.parameters[name]) for name in names if name in cell.parameters)
        found.setdefault(levels, cell)
    return found.values()


def _may_run(plan: Plan, role: Role, host: str) -> bool:
    if plan.inventory is None:
        return True
    meant = plan.inventory.meant_by(role.host, f"role {role.name}")
    return host in [one.name for one in meant]


def _role_specs(
    plan: Plan,
    role: Role,
    after: tuple[str, ...],
    values: Mapping[str, Value],
    granted: Mapping[str, _Granted],
    where: str,
    alike: str,
) -> tuple[RoleSpec, ...]:
    """The copies of a role; ``after`` names the copies of the roles that it waits for, ``where``
    names the role in errors, ``alike`` is the host of the block."""
    copies = render(role.copies, values)
    if not copies.isdigit() or not 0 <= int(copies) <= COPIES_MAX:
        raise StudyError(f"{where}: {copies!r} copies", f"a count from 0 to {COPIES_MAX}")
    hosts = placed(role, int(copies), plan.inventory, where, alike)
    if role.name == plan.study.target and len(hosts) != 1:
        raise StudyError(
            f"{where}: the measured role has {len(hosts)} copies",
            "one copy, or another [protocol] target",
        )
    if len(hosts) > COPIES_MAX:
        raise StudyError(f"{where}: {len(hosts)} copies on all hosts", f"at most {COPIES_MAX}")
    if role.attach is not None:
        return (RoleSpec(name=role.name, end=role.end, attach=role.attached),)
    names = [role.name] if len(hosts) == 1 else [f"{role.name}-{i + 1}" for i in range(len(hosts))]
    made = {
        host: _role_spec(role, after, values, granted[host], f"{where}{f' on {host}' * bool(host)}")
        for host in dict.fromkeys(hosts)
    }
    return tuple(
        msgspec.structs.replace(made[host], name=name, host=host or None)
        for name, host in zip(names, hosts, strict=True)
    )


def _role_spec(
    role: Role,
    after: tuple[str, ...],
    values: Mapping[str, Value],
    granted: _Granted,
    where: str,
) -> RoleSpec:
    """A copy of a role on a machine, with the role's own name."""
    argv = expand(role.command, values)
    if role.program is not None:
        java = None if role.java is None else render(role.java, values)
        jvm = expand(role.jvm, values)
        argv[:0] = granted.find_program(render(role.program, values), where, java, jvm)
    argv[:0] = expand(role.prefix, values)
    controls = role.controls.resolve(values, granted.cpus, where, granted.spare)
    if controls.cpus is None:
        controls = msgspec.structs.replace(controls, cpus=granted.usual)
    return RoleSpec(
        name=role.name,
        argv=tuple(argv),
        env={key: render(value, values) for key, value in role.env.items()},
        cwd=None if role.cwd is None else render(role.cwd, values),
        controls=controls,
        end=role.end,
        ready=role.ready,
        after=after,
        ready_probe=_ready_probe(role, values, where),
        ready_limit_ns=None if role.ready_seconds is None else round(role.ready_seconds * 1e9),
    )


def _ready_probe(role: Role, values: Mapping[str, Value], where: str) -> ReadyProbe | None:
    """What is seen of a role in a cell once it is ready."""
    probe = role.ready_probe
    if probe is None:
        return None
    tcp = None if probe.tcp is None else render(probe.tcp, values)
    if tcp is not None and values[FREE_PORT] != PORT:
        check_address(tcp, f"{where}, ready")
    line = None if probe.line is None else render(probe.line, values)
    if line is not None:
        check_line(line, f"{where}, ready")
    return ReadyProbe(
        tcp=tcp,
        line=line,
        command=None if probe.command is None else tuple(expand(probe.command, values)),
    )


def describe(parameters: dict[str, Level]) -> str:
    """A cell in words: ``cpus=2 threads=8``."""
    return " ".join(f"{name}={level}" for name, level in parameters.items()) or "the only cell"


def shell_line(spec: RoleSpec) -> str:
    """A role's command as one would type it; of an attached role, what is attached."""
    if spec.attach is not None:
        process = spec.attach.process
        return f"attached: process {process.pid}" if process else f"attached: {spec.attach.cgroup}"
    return shlex.join(spec.argv)

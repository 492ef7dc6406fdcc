"""Begins a run or a campaign: its head, made of what is asked for and of what this machine says."""

from __future__ import annotations

import datetime
import math
import random
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from concurve import words
from concurve.definition.campaign import Campaign
from concurve.definition.hiding import hidden
from concurve.definition.inventory import Inventory
from concurve.definition.remote import PROGRAM as REMOTE
from concurve.definition.starters import started_here
from concurve.definition.study import Role, Study
from concurve.definition.templates import Value, render
from concurve.definition.units import format_duration
from concurve.errors import StudyError
from concurve.host import attaching, machine
from concurve.measuring import packaged
from concurve.measuring.folder import working_folder
from concurve.measuring.site import Site, ThisMachine
from concurve.planning.granted import granted
from concurve.planning.placing import placed
from concurve.planning.plan import Plan, make_plan
from concurve.secrets import KNOWN
from concurve.store import Store, campaign_head, run_head
from concurve.store.campaign_head import CampaignHead
from concurve.store.rows import CAMPAIGN_PREFIX
from concurve.store.run_head import Resumption, RunHead, decode_head
from concurve.terms import Waiting

#: What this process has begun: many runs may begin within a second.
_begun: set[str] = set()


def _fresh_id(prefix: str, now: datetime.datetime) -> str:
    """The time and four digits that nothing else of this process has."""
    while True:
        name = f"{prefix}{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        if name not in _begun:
            _begun.add(name)
            return name


def new_head(
    study: Study,
    effort: str,
    seed: int,
    again: str,
    inventory: Inventory | None = None,
    site: Site | None = None,
) -> RunHead:
    """The head of a new run on this machine, or on the hosts of a site, without the optional levels
    that cannot be run there and without the secrets of the study.

    Raises:
        HostError: a program that is not optional is not installed.
    """
    now = datetime.datetime.now(datetime.UTC)
    site = site or ThisMachine()
    study, left_out = granted(
        with_attached(hidden(study)),
        effort,
        machine.allowed_cpus(),
        packaged.command,
        inventory,
        site.machines,
    )
    plan = make_plan(study, effort, seed, inventory)
    measured = next(role for role in study.roles if role.name == study.target)
    return RunHead(
        format=run_head.FORMAT,
        id=_fresh_id("", now),
        study=study,
        effort=effort,
        seed=seed,
        started=now.isoformat(timespec="milliseconds"),
        again=KNOWN.hide(again),
        machine=site.machine(_host_of(measured, plan)),
        programs=programs_of(plan, site),
        versions=machine.versions(),
        rules=plan.rules,
        left_out=left_out,
        hosts=inventory,
        folder=working_folder(),
    )


def with_attached(study: Study) -> Study:
    """The study with the processes that its attached roles have now.

    Raises:
        HostError: there are no such processes.
        StudyError: a role does not say which.
    """
    roles = tuple(
        role
        if role.attach is None
        else msgspec.structs.replace(
            role, attached=attaching.find(role.attach, f"role {role.name}")
        )
        for role in study.roles
    )
    return msgspec.structs.replace(study, roles=roles)


def new_campaign_head(
    campaign: Campaign,
    effort: str,
    seed: int,
    again: str,
    version: str,
    hosts: Inventory | None = None,
) -> CampaignHead:
    """The head of a new campaign, without the secrets of its studies."""
    studies = tuple(
        msgspec.structs.replace(member, study=hidden(member.study)) for member in campaign.studies
    )
    now = datetime.datetime.now(datetime.UTC)
    return CampaignHead(
        format=campaign_head.FORMAT,
        id=_fresh_id(CAMPAIGN_PREFIX, now),
        campaign=msgspec.structs.replace(campaign, studies=studies),
        effort=effort,
        seed=seed,
        started=now.isoformat(timespec="milliseconds"),
        again=KNOWN.hide(again),
        version=version,
        hosts=hosts,
        folder=working_folder(),
    )


def with_allowance(head: RunHead, seconds: float) -> RunHead:
    """The head with another time allowance, for a run that is resumed: longer or shorter than that
    which it began with, which still orders the trials."""
    rules = msgspec.structs.replace(head.rules, time_allowed_seconds=seconds)
    allowed = head.rules.time_allowed_seconds
    at_start = allowed if head.allowed_at_start is None else head.allowed_at_start
    return msgspec.structs.replace(head, rules=rules, allowed_at_start=at_start)


def with_wait(head: RunHead, waited: Waiting | None) -> RunHead:
    """The head of a run that is resumed after a wait for a quiet machine, if it was to wait: what
    it may wait yet is what this wait leaves."""
    if waited is None:
        return head
    waiting = waited if head.waiting is None else head.waiting.and_then(waited)
    return msgspec.structs.replace(head, waiting=waiting)


def with_resumption(head: RunHead, trials: int, changed: Sequence[str]) -> RunHead:
    """The head of a run that goes on when so many trials are stored, with the programs that have
    ``changed`` since it began. A stop before the next trial adds nothing: the last one counts."""
    before = [item for item in head.resumed if item.trials != trials]
    now = Resumption(trials=trials, changed=tuple(changed))
    return msgspec.structs.replace(head, resumed=(*before, now))


def resumed_head(store: Store, run: str, allowed: float | None = None) -> RunHead:
    """The head of a stored run that goes on, with another time allowance in seconds if there is
    one.

    Raises:
        StoreError: there is no such run, or it cannot be read.
        StudyError: its trials have used up the allowance.
    """
    head = decode_head(store.find_run(run))
    if allowed is None:
        return head
    check_time_left(head, store, allowed)
    return with_allowance(head, allowed)


def check_time_left(head: RunHead, store: Store, allowed: float) -> None:
    """Refuse an allowance of the whole run that its stored trials have used up.

    Raises:
        StudyError: nothing is left of it.
    """
    run = head.id
    waited = 0.0 if head.waiting is None else head.waiting.during_seconds
    used = sum(store.trials(run).outcomes.seconds) + waited
    if used and used >= allowed:
        more = math.ceil(used + allowed)
        raise StudyError(
            f"an allowance of {format_duration(allowed)} is for the whole run, and run {run} has "
            f"taken {format_duration(used)}",
            f"--max-time {words.option_duration(more)} for {format_duration(allowed)} more, or no "
            "--max-time",
        )


def draw_seed() -> int:
    """A seed for the order of trials, to be recorded."""
    return random.SystemRandom().randrange(2**31)


def again_line(seed: int) -> str:
    """The command line of this process, with the seed that it drew."""
    given = sys.argv[1:]
    # What stands behind is the command of a user, who may have a seed of his own.
    own = given[: given.index("--")] if "--" in given else given
    is_given = any(word == "--seed" or word.startswith("--seed=") for word in own)
    drawn = [] if is_given else ["--seed", str(seed)]
    return shlex.join(["concurve", *given[:1], *drawn, *given[1:]])


def programs_of(plan: Plan, site: Site, block: int = 0) -> dict[str, Any]:
    """The files of the roles' programs in a block, by role, and by program if a role has several;
    without those that hold placeholders. Of a role elsewhere its address is known, no file."""
    programs: dict[str, Any] = {}
    for role in plan.study.roles:
        host = _host_of(role, plan, block)
        if role.program == REMOTE:
            programs[role.name] = {"remote": role.command[0]}
        elif role.program is not None:
            launches = dict.fromkeys(_launch(role, plan.values(cell)) for cell in plan.cells)
            for name, java in launches:
                label = f"{name} on Java {java}" if java else name
                key = role.name if len(launches) == 1 else f"{role.name}: {label}"
                programs[key] = site.describe_program(
                    host, name, f"role {role.name}", True, java, None
                )
        elif role.attached is not None:
            programs[role.name] = attaching.describe(role.attached)
        elif "{" not in (command := _executed(role.command)):
            programs[role.name] = site.describe_program(
                host, command, f"role {role.name}", False, None, role.env.get("PATH")
            )
    return programs


def _executed(command: Sequence[str]) -> str:
    """The program that a command executes in the end: of ``env A=1 redis-server`` that is no env.
    Where it is looked for elsewhere, as in a container, the first word is all that is known."""
    return (started_here(command) or command)[0]


def _host_of(role: Role, plan: Plan, block: int = 0) -> str:
    """The first host of a role in a block; empty for this machine alone."""
    where = f"role {role.name}"
    return next(iter(placed(role, 1, plan.inventory, where, plan.host_of(block))))


def _launch(role: Role, values: Mapping[str, Value]) -> tuple[str, str | None]:
    """A role's packaged program in a cell, and the Java it asks for."""
    name = render(role.program or "", values)
    is_jar = role.java and name in packaged.JAVA_PROGRAMS
    return name, render(role.java, values) if role.java and is_jar else None

"""What the verbs do with a campaign: run it, resume it, show it, write its report."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from concurve import words
from concurve.cli.measuring import (
    Choices,
    connected_hosts,
    cpus_of_target,
    failed_cells,
    hosts_of,
    quiet_as_asked,
    refuse_wait_for_hosts,
    written_if_possible,
)
from concurve.cli.showing import note, show_campaign
from concurve.cli.streams import with_store
from concurve.definition.campaign import (
    Campaign,
    at_effort,
    only,
    with_java_everywhere,
    with_rules_everywhere,
)
from concurve.definition.hiding import check_marked, hidden
from concurve.definition.study import Study
from concurve.definition.study_line import rules_from_options
from concurve.engine.local import LocalEngine
from concurve.errors import CampaignError, ConcurveError, StudyError
from concurve.exports import Format, check_campaign_format, write_campaign
from concurve.host import machine
from concurve.host.granted import granted_cpus
from concurve.measuring.campaign_laboratory import CampaignRunner
from concurve.measuring.heads import again_line, draw_seed, new_campaign_head
from concurve.measuring.quiet import Asked, asked_quiet, attachable
from concurve.measuring.site import this_machine
from concurve.report.progress import Progress
from concurve.store import Store
from concurve.store.campaign_head import CampaignHead, decode_campaign
from concurve.store.rows import CampaignRow, MemberRow
from concurve.store.run_head import decode_head

if TYPE_CHECKING:
    from concurve.hosts.engine import HostsEngine


def measure_campaign(
    campaign_for: Callable[[int], Campaign], names: Sequence[str] | None, choices: Choices
) -> None:
    """Start a campaign, or print its plan. ``campaign_for`` makes it for a number of CPUs, which
    are the least of the hosts of its measured roles."""
    campaign = campaign_for(granted_cpus())
    if choices.places:
        raise StudyError(
            f"--place is for one study, {campaign.name} is a campaign",
            f"concurve run {campaign.name}/{campaign.studies[0].name} --place ROLE=HOST",
        )
    inventory = hosts_of(choices)
    asked = asked_quiet(choices.wait_quiet, choices.measure_anyway)
    rules = rules_from_options(
        choices.repeats, choices.precision, choices.timeout, choices.max_time
    )

    def made(campaign: Campaign) -> Campaign:
        chosen = at_effort(campaign, choices.effort) if names is None else only(campaign, names)
        chosen = with_rules_everywhere(chosen, rules)
        if choices.java is not None:
            chosen = with_java_everywhere(chosen, choices.java)
        return with_secrets_hidden(chosen, choices.secrets)

    chosen = made(campaign)
    if inventory is not None and (named := cpus_of_target(_studies(chosen), inventory)):
        chosen = made(campaign_for(named))
    files = choices.files()
    for kind in files:
        check_campaign_format(kind)
    store = Store(choices.db)
    seed = draw_seed() if choices.seed is None else choices.seed
    if choices.dry_run:
        from concurve.cli.planning import print_campaign_plan

        print_campaign_plan(chosen, choices.effort, seed, store, inventory)
        return
    version = machine.versions().get("concurve", "")
    total, of_all = len(chosen.studies), len(campaign.studies)
    counted = words.count(total, "study")
    if total != of_all:
        counted = words.count_of(total, of_all, "study")
    with connected_hosts(_studies(chosen), inventory) as hosts:
        if hosts is not None:
            cpus = cpus_of_target(_studies(chosen), hosts.inventory, hosts.machines)
            chosen = made(campaign_for(cpus or granted_cpus()))
        head = new_campaign_head(chosen, choices.effort, seed, again_line(seed), version, inventory)
        with quiet_as_asked(asked, attachable(_studies(chosen))) as waiting:
            head = msgspec.structs.replace(head, waiting=waiting)
            note(f"campaign {head.id}: {chosen.name}, {counted}, effort {head.effort}, seed {seed}")
            _measure(head, store, files, hosts, resume=False)


def _studies(campaign: Campaign) -> list[Study]:
    return [member.study for member in campaign.studies]


def with_secrets_hidden(campaign: Campaign, marked: Sequence[str]) -> Campaign:
    """The campaign without the secrets of its studies."""
    studies = [member.study for member in campaign.studies]
    named = check_marked(marked, [factor.name for study in studies for factor in study.factors])
    return msgspec.structs.replace(
        campaign,
        studies=tuple(
            msgspec.structs.replace(member, study=hidden(member.study, named))
            for member in campaign.studies
        ),
    )


def resume_campaign(
    row: CampaignRow,
    store: Store,
    files: dict[Format, Path],
    allowed: float | None,
    asked: Asked | None = None,
) -> None:
    """Measure what is missing of a campaign, once this machine is quiet if that is ``asked``
    for."""
    for kind in files:
        check_campaign_format(kind)
    head = decode_campaign(row)
    with contextlib.ExitStack() as stack:
        refuse_wait_for_hosts(asked, head.hosts)
        with _written_if_it_fails(head, store, files):
            if asked is not None and (missing := _missing(head, store)):
                stack.enter_context(quiet_as_asked(asked, attachable(missing)))
            hosts = stack.enter_context(connected_hosts(_studies(head.campaign), head.hosts))
        to_wait = None if asked is None else asked.seconds
        _measure(head, store, files, hosts, resume=True, allowed=allowed, to_wait=to_wait)


def _missing(head: CampaignHead, store: Store) -> list[Study]:
    """The studies that a campaign still has to measure."""
    rows = [row for row in store.members(head.id) if row.state != "complete"]
    return [head.campaign.studies[row.position].study for row in rows]


def campaign_to_resume(store: Store, name: str) -> CampaignRow | None:
    """The campaign that a name stands for; ``last`` is the one of the last run, unless it is
    done."""
    if name != "last":
        return store.find_campaign(name)
    newest = store.campaigns()[-1:]
    if newest and newest[0].state != "complete" and not store.runs():
        return newest[0]
    campaign = store.campaign_of(store.find_run(name).id)
    return campaign if campaign is not None and campaign.state != "complete" else None


def _measure(
    head: CampaignHead,
    store: Store,
    files: dict[Format, Path],
    hosts: HostsEngine | None,
    resume: bool,
    allowed: float | None = None,
    to_wait: float | None = None,
) -> None:
    with _written_if_it_fails(head, store, files):
        runner = CampaignRunner(
            head,
            store,
            hosts or LocalEngine(),
            note,
            lambda: Progress(sys.stderr, reword=with_store),
            site=hosts or this_machine(),
        )
        rows = runner.resume(allowed, to_wait) if resume else runner.start()
    write_campaign(store, head.id, files, words=with_store)
    show_campaign(store, head.id, files.get("html"))
    _refuse_missing(head, store, rows)


@contextlib.contextmanager
def _written_if_it_fails(
    head: CampaignHead, store: Store, files: dict[Format, Path]
) -> Iterator[None]:
    """Write what there is of a campaign if an error ends this."""
    try:
        yield
    except ConcurveError:
        with written_if_possible():
            if any(store.has_trials(row.run) for row in store.members(head.id) if row.run):
                write_campaign(store, head.id, files, words=with_store)
        raise


def _refuse_missing(head: CampaignHead, store: Store, rows: Sequence[MemberRow]) -> None:
    """Tell a script that studies are missing, or that the program failed in some of their cells:
    the answers are without them.

    Raises:
        CampaignError: so it is.
    """
    missing = [row for row in rows if row.state != "complete"]
    if missing:
        names = ", ".join(f"{row.name} ({row.state})" for row in missing)
        raise CampaignError(
            f"campaign {head.id}: {words.count_of(len(missing), len(rows), 'study')} "
            f"{words.verb(len(missing))} missing: {names}",
            f"the remedy that each of them names above; then concurve resume {head.id}",
        )
    counted = [
        (row.name, *failed_cells(decode_head(store.run(row.run)), store)) for row in rows if row.run
    ]
    failed = [
        f"{name} ({words.count_of(len(cells), total, 'cell')})"
        for name, cells, total in counted
        if cells
    ]
    if failed:
        raise CampaignError(
            f"campaign {head.id}: cells of {words.count_of(len(failed), len(rows), 'study')} "
            f"failed: {', '.join(failed)}",
            f"concurve show {head.id} says why; correct it, and start a new campaign",
        )

"""``--dry-run``: what would be run, in order, and how long it will take."""

from __future__ import annotations

from collections.abc import Sequence

from concurve import words
from concurve.cli.streams import tell, tell_beside
from concurve.definition.campaign import Campaign
from concurve.definition.inventory import Inventory
from concurve.definition.measured import better_of
from concurve.definition.readiness import unawaited_before
from concurve.definition.study import Study, choose_work
from concurve.engine.local import LocalEngine
from concurve.host.machine import allowed_cpus
from concurve.measuring.heads import with_attached
from concurve.measuring.launches import check_plan
from concurve.measuring.packaged import command
from concurve.planning.forecast import Forecast, forecast, shortfall, trials_that_fit
from concurve.planning.granted import granted
from concurve.planning.plan import Machine, Plan, describe, make_plan, shell_line, trial_spec
from concurve.planning.second_stage import precision_of
from concurve.store import Store
from concurve.wire.spec import Controls, TrialSpec

#: More CPUs than a role asks for: of a host that was not asked.
_CPUS_MOST = 8192

#: The spread of trials that the dry run assumes, as the share of a standard deviation.
ASSUMED_SPREAD = 0.02


def print_plan(
    study: Study,
    effort: str,
    seed: int,
    store: Store,
    inventory: Inventory | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Print the cells, the trials, the time and the commands of the first block, with what the
    run would say before it, the ``notes``, too. No host is asked:
    its programs are taken to be where those of this machine are, and it is taken to grant what a
    level asks for. What this machine cannot run is refused without a plan, as a run refuses it.

    Raises:
        StudyError, HostError: see :func:`~concurve.measuring.launches.check_plan`.
    """
    cpus, unasked = allowed_cpus(), _unasked(inventory)
    study, left_out = granted(with_attached(study), effort, cpus, command, inventory, unasked)
    plan = make_plan(study, effort, seed, inventory)
    if inventory is None:
        check_plan(plan, LocalEngine(), cpus)
    expected = forecast(plan, store)
    specs = {
        index: trial_spec(plan, plan.cells[index], "dry-run", cpus, command, machines=unasked)
        for index in plan.order(0)
    }
    tell(f"study   {study.name} (effort {effort}, seed {seed})")
    tell_beside("trials  ", _trials(plan))
    tell_beside("time    ", _time(plan, expected))
    tell_beside("precision  ", _precision(plan, expected))
    if short := shortfall(plan, expected):
        tell_beside("note    ", short)
    if waits_for_none := unawaited_before(study):
        tell_beside("note    ", waits_for_none)
    for text in notes:
        tell_beside("note    ", text)
    tell_beside("figure  ", _figure(study))
    tell_beside("base    ", "; ".join(_bases(plan)))
    for item in left_out:
        tell_beside("left out  ", f"{item.factor}={item.level}: {item.says}")
    if names := [name for name in unasked if any(_runs_on(spec, name) for spec in specs.values())]:
        tell_beside(
            "CPUs    ",
            f"those of {words.listed(names)} are not known before a run asks: levels that follow "
            "from CPUs, such as 1.. or 50%, are those of this machine here",
        )
    tell("order of the first block:")
    for index, spec in specs.items():
        tell(f"  {describe(plan.cells[index].parameters)}")
        for role in spec.roles:
            controls = _controls(role.controls, is_asked=role.host not in unasked)
            where = f"{role.name} on {role.host}" if role.host else role.name
            tell(f"    {where}: {shell_line(role)}{f'  [{controls}]' if controls else ''}")


def print_campaign_plan(
    campaign: Campaign, effort: str, seed: int, store: Store, inventory: Inventory | None = None
) -> None:
    """Print the cells, the trials and the time of each study, and the time of all."""
    total = len(campaign.studies)
    counted = words.count(total, "study")
    tell(f"campaign {campaign.name}: {counted} (effort {effort}, seed {seed})")
    plans = [make_plan(member.study, effort, seed, inventory) for member in campaign.studies]
    for member, plan in zip(campaign.studies, plans, strict=True):
        expected = forecast(plan, store)
        case = member.study.test_case
        tell_beside(f"{member.name}  ", case.objective if case else member.study.question)
        tell_beside("  trials  ", _trials(plan))
        tell_beside("  time    ", _time(plan, expected))
        tell_beside("  precision  ", _precision(plan, expected))
    tell_beside("in all    ", _time_in_all(plans, store))


def _time_in_all(plans: list[Plan], store: Store) -> str:
    """The time that earlier runs took, and the allowances of the studies without an earlier run."""
    known = [(plan, forecast(plan, store)) for plan in plans]
    pilots = sum(expected.pilot_seconds for _, expected in known if expected is not None)
    most = sum(
        plan.rules.time_allowed_seconds if expected is None else expected.longest_seconds
        for plan, expected in known
    )
    unknown = sum(expected is None for _, expected in known)
    about = f"about {words.duration(pilots)},  " if unknown < len(plans) else ""
    apart = (
        f"and {words.count(unknown, 'study')} without an earlier run, " if about and unknown else ""
    )
    return f"{about}{apart}at most {words.duration(most)}"


def _unasked(inventory: Inventory | None) -> dict[str, Machine]:
    """The hosts whose CPUs no file names, with more than any machine has."""
    hosts = () if inventory is None else inventory.hosts
    return {it.name: Machine(range(_CPUS_MOST), command) for it in hosts if not it.cpus}


def _runs_on(spec: TrialSpec, host: str) -> bool:
    return any(role.host == host for role in spec.roles)


def _controls(controls: Controls, is_asked: bool = True) -> str:
    shown = []
    if controls.cpus is not None and not is_asked:
        # Which ones these are is not known either.
        count = len(controls.cpus)
        shown.append(f"{words.count(count, 'CPU')}" if count < _CPUS_MOST // 2 else "its CPUs")
    elif controls.cpus is not None:
        shown.append(f"cpus={','.join(map(str, controls.cpus))}")
    if controls.nice is not None:
        shown.append(f"nice={controls.nice}")
    if controls.policy is not None:
        priority = f":{controls.policy.priority}" if controls.policy.priority else ""
        shown.append(f"policy={controls.policy.class_}{priority}")
    return " ".join(shown)


def _figure(study: Study) -> str:
    """The figure by which a setting is recommended, and under what."""
    better = better_of(study, study.primary)
    facts = [study.primary_unit, "" if better == "neither" else f"{better} is better"]
    said = f"{study.primary} ({', '.join(filter(None, facts))})".removesuffix(" ()")
    work = choose_work(study)
    workers = f"; {work} counts workers" if work else ""
    under = f"; under each {' and '.join(study.conditions)}" if study.conditions else ""
    return f"{said}{workers}{under}"


def _bases(plan: Plan) -> list[str]:
    bases = sorted({cell.base for cell in plan.cells})
    return [describe(plan.cells[base].parameters) for base in bases]


def _trials(plan: Plan) -> str:
    rules, cells = plan.rules, len(plan.cells)
    further = ""
    if rules.most > rules.repeats_max:
        further = f"; to {rules.most} each if it takes them to tell which setting to use"
    least, most = rules.repeats_min, rules.repeats_max
    each, every = f"{least} to {most}", f"{cells * least} to {cells * most}"
    if least == most:
        each, every = f"{least} each", f"{cells * least}"
    return f"{words.count(cells, 'cell')} × {each} = {every}{further}"


def _time(plan: Plan, expected: Forecast | None) -> str:
    allowed = words.duration(plan.rules.time_allowed_seconds)
    if expected is not None:
        about = min(expected.pilot_seconds, plan.rules.time_allowed_seconds)
        return (
            f"about {words.duration(about)}, at most "
            f"{words.duration(expected.longest_seconds)} (as run {expected.run} took; "
            f"allowance {allowed})"
        )
    return f"not known before the first block has run; at most {allowed} by the allowance"


def _precision(plan: Plan, expected: Forecast | None) -> str:
    """What precision the allowance buys: as trials spread in an earlier run, else for an assumed
    spread."""
    rules = plan.rules
    if expected is None:
        trials = rules.repeats_max
        each = rules.time_allowed_seconds / (trials * len(plan.cells))
        takes = f"if one takes {words.duration(each)} or less"
        bought = f"{_that_fit(trials)} in the allowance {takes}"
    else:
        trials, is_capped = trials_that_fit(plan, expected)
        if not trials:
            return "none: not even one trial of each cell fits in the allowance"
        limit = "the cap; the allowance has room for more" if is_capped else "by that run's times"
        bought = f"{_that_fit(trials)} in the allowance ({limit})"
    spread, why = (
        ASSUMED_SPREAD,
        f" if trials spread by {ASSUMED_SPREAD * 100:.0f} % (an assumption)",
    )
    if expected is not None and expected.spread is not None:
        spread, why = expected.spread, f", as trials of run {expected.run} spread"
    reached = precision_of(trials, spread)
    if reached is None:
        return f"{bought}: no interval, which takes two"
    digits = 1 if reached < 0.1 else 0
    return f"{bought}: about ±{reached * 100:.{digits}f} %{why}"


def _that_fit(trials: int) -> str:
    return "1 trial a cell fits" if trials == 1 else f"{trials} trials a cell fit"

"""``--dry-run``: what would be run, in order, and how long it will take."""

from __future__ import annotations

from concurve.definition.campaign import Campaign
from concurve.definition.study import Study
from concurve.definition.units import format_duration
from concurve.host.machine import allowed_cpus
from concurve.measuring.packaged import command
from concurve.planning.forecast import forecast
from concurve.planning.granted import granted
from concurve.planning.plan import Plan, describe, make_plan, shell_line, trial_spec
from concurve.store import Store
from concurve.wire.spec import Controls


def print_plan(study: Study, effort: str, seed: int, store: Store) -> None:
    """Print the cells, the trials, the time and the commands of the first block."""
    cpus = allowed_cpus()
    study, left_out = granted(study, effort, cpus, command)
    plan = make_plan(study, effort, seed)
    rules, cells = plan.rules, len(plan.cells)
    specs = {
        index: trial_spec(plan, plan.cells[index], "dry-run", cpus, command)
        for index in plan.order(0)
    }
    print(f"study   {study.name} (effort {effort}, seed {seed})")
    print(
        f"trials  {cells} cells × {rules.repeats_min} to {rules.repeats_max} = "
        f"{cells * rules.repeats_min} to {cells * rules.repeats_max}"
    )
    print(f"time    {_time(plan, store)}")
    print(f"base    {'; '.join(_bases(plan))}")
    for item in left_out:
        print(f"left out  {item.factor}={item.level}: {item.says}")
    print("order of the first block:")
    for index, spec in specs.items():
        print(f"  {describe(plan.cells[index].parameters)}")
        for role in spec.roles:
            controls = _controls(role.controls)
            print(f"    {role.name}: {shell_line(role)}{f'  [{controls}]' if controls else ''}")


def print_campaign_plan(campaign: Campaign, effort: str, seed: int, store: Store) -> None:
    """Print the cells, the trials and the time of each study, and the time of all."""
    total = len(campaign.studies)
    counted = "1 study" if total == 1 else f"{total} studies"
    print(f"campaign {campaign.name}: {counted} (effort {effort}, seed {seed})")
    plans = [make_plan(member.study, effort, seed) for member in campaign.studies]
    for member, plan in zip(campaign.studies, plans, strict=True):
        rules, cells = plan.rules, len(plan.cells)
        case = member.study.test_case
        print(f"{member.name}  {case.objective if case else member.study.question}")
        print(
            f"  trials  {cells} cells × {rules.repeats_min} to {rules.repeats_max} = "
            f"{cells * rules.repeats_min} to {cells * rules.repeats_max}"
        )
        print(f"  time    {_time(plan, store)}")
    print(f"in all    {_time_in_all(plans, store)}")


def _time_in_all(plans: list[Plan], store: Store) -> str:
    """The time that earlier runs took, and the allowances of the studies without an earlier run."""
    known = [(plan, forecast(plan, store)) for plan in plans]
    pilots = sum(expected.pilot_seconds for _, expected in known if expected is not None)
    most = sum(
        plan.rules.time_allowed_seconds if expected is None else expected.longest_seconds
        for plan, expected in known
    )
    unknown = sum(expected is None for _, expected in known)
    about = f"about {format_duration(pilots)},  " if unknown < len(plans) else ""
    apart = f"and {unknown} studies without an earlier run, " if about and unknown else ""
    return f"{about}{apart}at most {format_duration(most)}"


def _controls(controls: Controls) -> str:
    shown = []
    if controls.cpus is not None:
        shown.append(f"cpus={','.join(map(str, controls.cpus))}")
    if controls.nice is not None:
        shown.append(f"nice={controls.nice}")
    if controls.policy is not None:
        priority = f":{controls.policy.priority}" if controls.policy.priority else ""
        shown.append(f"policy={controls.policy.class_}{priority}")
    return " ".join(shown)


def _bases(plan: Plan) -> list[str]:
    bases = sorted({cell.base for cell in plan.cells})
    return [describe(plan.cells[base].parameters) for base in bases]


def _time(plan: Plan, store: Store) -> str:
    expected = forecast(plan, store)
    allowed = format_duration(plan.rules.time_allowed_seconds)
    if expected is not None:
        return (
            f"about {format_duration(expected.pilot_seconds)}, at most "
            f"{format_duration(expected.longest_seconds)} (as run {expected.run} took; "
            f"allowance {allowed})"
        )
    if plan.rules.timeout_seconds is not None:
        longest = plan.rules.timeout_seconds * len(plan.cells) * plan.rules.repeats_min
        return (
            f"not known before the first block; at most {format_duration(longest)} for the pilot "
            f"by --timeout, {allowed} in all by the allowance"
        )
    return f"not known before the first block has run; at most {allowed} by the allowance"

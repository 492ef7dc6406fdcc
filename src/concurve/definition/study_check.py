"""The checks of a study that do not depend on the machine: each error has a place and a remedy."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec

from concurve.definition.attaching import CONTAINER_ID, parse_attach
from concurve.definition.extracting import misread
from concurve.definition.failures import WORDS
from concurve.definition.indicator_names import IndicatorName, split_name
from concurve.definition.inventory import ANY, EACH, HOST_PREFIX, host_names, is_each
from concurve.definition.level_parts import check_lists, check_parts, part_names
from concurve.definition.measured import MEASURED
from concurve.definition.origins import Origins
from concurve.definition.patterns import PER, UNIT, compiled, group_can_be
from concurve.definition.starters import container_of
from concurve.definition.study import (
    BUILT_IN,
    EFFORTS,
    OF_TRIAL,
    Extract,
    Role,
    Study,
    Text,
    arguments,
    choose_work,
    single_texts,
    texts,
    unused_factors,
)
from concurve.definition.templates import NAME, check_placeholders, placeholders
from concurve.definition.units import base_unit, converted_unit, is_rate, only_time
from concurve.errors import StudyError
from concurve.terms import Level
from concurve.words import listed, meant

#: Runs are stored and requested under this name.
_STUDY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")

#: More trials of one cell are taken as a typing error.
REPEATS_MOST = 1_000_000


def check(study: Study, where: Origins) -> None:
    """Refuse a study that no machine can run.

    ``where`` names the file of each part, or the command line.

    Raises:
        StudyError: names the place and the remedy.
    """
    _check_encoding(study, where)
    _check_roles_of_extracts(study, where)
    _check_roles_of_indicators(study, where)
    _check_failures(study, where)
    _check_names(study, where)
    _check_hosts(study, where)
    known = [factor.name for factor in study.factors] + list(BUILT_IN)
    if HOST_PREFIX.removesuffix(".") not in known:
        known += [HOST_PREFIX + name for name in host_names(study)]
    check_parts(study.level_parts, _all_levels(study), where)
    for item in texts(study):
        names = known + part_names(study.level_parts)
        check_placeholders(item.text, names, _place(item, where), where.parameter)
    for hook, text in study.hooks.texts().items():
        for name in set(OF_TRIAL) & set(placeholders(text)):
            raise StudyError(
                f"{where.of('hooks', hook)}: {where.hook(hook)}: "
                f"{{{name}}} has a value in the roles of a trial only",
                "put it into the command of a role",
            )
    for found, lists_allowed in ((arguments(study), True), (single_texts(study), False)):
        placed = [(_place(item, where), item.text) for item in found]
        check_lists(study.level_parts, placed, arguments=lists_allowed)
    _check_extracts(study, where)
    _check_tools(study, where)
    _check_efforts(study, where)
    _check_roles(study, where)
    _check_containers(study, where)
    _check_purposes(study, where)
    _check_work_and_base(study, where)
    _check_conditions(study, where)
    _check_optional(study, where)
    _check_used(study, where)


def _place(item: Text, where: Origins) -> str:
    place = where.hook(item.name) if item.table == "hooks" else item.place
    return f"{where.of(item.table, item.name)}: {place}"


def with_rules(study: Study, given: dict[str, Any]) -> Study:
    """The study with these fields of its rules replaced, at every effort."""
    efforts = {
        name: msgspec.structs.replace(effort, rules=msgspec.structs.replace(effort.rules, **given))
        for name, effort in study.efforts.items()
    }
    changed = msgspec.structs.replace(study, efforts=efforts)
    check(changed, Origins("command line"))
    return changed


def _all_levels(study: Study) -> dict[str, list[Level]]:
    """The levels of each factor at any effort; the efforts themselves are one, too."""
    levels = {factor.name: list(factor.levels) for factor in study.factors}
    for effort in study.efforts.values():
        for name, own in effort.factors.items():
            known = levels.setdefault(name, [])
            known += [level for level in own if level not in known]
    return {**levels, "effort": list(EFFORTS), **{name: [] for name in OF_TRIAL}}


def _check_names(study: Study, where: Origins) -> None:
    if not _STUDY_NAME.fullmatch(study.name):
        raise StudyError(f"{where}: study {study.name!r}: not a name", "letters, digits, _ and -")
    for kind, table, names in (
        ("factor", "factors", [factor.name for factor in study.factors]),
        ("role", "roles", [role.name for role in study.roles]),
        (
            "extracted figure",
            "indicators",
            [_own_name(item.name, study) for item in study.extracts],
        ),
        ("indicator", "indicators", [_own_name(item.name, study) for item in study.indicators]),
        ("claim", "claims", [claim.id for claim in study.claims]),
    ):
        for name in names:
            file = where.of(table, name)
            if not NAME.fullmatch(name):
                raise StudyError(
                    f"{file}: {kind} {name!r}: not a name", "letters, digits, _ and -, no blanks"
                )
            if names.count(name) > 1:
                raise StudyError(f"{file}: {kind} {name!r} is named twice", "one name for each")
    for name in BUILT_IN:
        if name in [factor.name for factor in study.factors]:
            raise StudyError(f"{where}: factor {name!r} is a built-in name", "another name")
    _check_not_measured(study, where)


def _check_not_measured(study: Study, where: Origins) -> None:
    """Refuse a factor with the name of a figure: tables, exports and claims name both."""
    asked = [extract.name for extract in study.extracts]
    asked += [indicator.name for indicator in study.indicators]
    for factor in study.factors:
        if factor.name in MEASURED or factor.name in asked:
            what = "measured of every program" if factor.name in MEASURED else "asked for, too"
            raise StudyError(
                f"{where.of('factors', factor.name)}: factor {factor.name!r} has the name of an "
                f"indicator, which is {what}",
                f"another name, for example {factor.name}_level",
            )


def _check_failures(study: Study, where: Origins) -> None:
    for item in study.indicators:
        if item.failures and not WORDS.fullmatch(item.failures):
            raise StudyError(
                f"{where.of('indicators', item.name)}: indicator {item.name}: "
                f"failures {item.failures!r}",
                '"among operations", "beside operations" if that count is without them, "share", '
                'or "expected" for what is no failure of this study',
            )


def _own_name(indicator: str, study: Study) -> str:
    """``load.latency_ns_p99`` is an indicator of the role ``load``."""
    role, name = split_name(indicator)
    known = role in [item.name for item in study.roles] and NAME.fullmatch(name)
    return f"{role}-{name}" if known else indicator


def _check_encoding(study: Study, where: Origins) -> None:
    """Refuse texts that are not UTF-8: the spec is JSON and cannot hold them."""
    levels = ((f"factor {f.name}", level) for f in study.factors for level in f.levels)
    found = ((item.place, item.text) for item in texts(study))
    for place, text in [("name", study.name), *found, *levels]:
        if not _is_utf8(str(text)):
            raise StudyError(f"{where}: {place}: {text!r} is not UTF-8", "a script that holds it")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_roles_of_extracts(study: Study, where: Origins) -> None:
    roles = {role.name: role for role in study.roles}
    for extract in study.extracts:
        place = _extract_place(extract, where)
        if extract.role and extract.role not in roles:
            raise StudyError(f"{place}: no role {extract.role!r}", meant(extract.role, list(roles)))
        if extract.role and (
            roles[extract.role].copies != "1" or is_each(roles[extract.role].host)
        ):
            raise StudyError(
                f"{place}: role {extract.role} starts several copies, each with an output",
                "a role of one copy",
            )


def _check_roles_of_indicators(study: Study, where: Origins) -> None:
    """Refuse an indicator whose name begins with a role that the study does not have."""
    roles = [role.name for role in study.roles]
    for item in study.indicators:
        role = split_name(item.name).role
        if role and role not in roles:
            raise StudyError(
                f"{where.of('indicators', item.name)}: indicator {item.name}: no role {role!r}",
                meant(role, roles),
            )


def _check_hosts(study: Study, where: Origins) -> None:
    """Refuse what can be no name or label of a host, and a factor that its placeholder names."""
    for role in study.roles:
        place = f"{where.of('roles', role.name)}: role {role.name}: host {role.host!r}"
        group, colon, label = role.host.partition(":")
        name = label if group in (EACH, ANY) and colon else role.host
        if role.host and not NAME.fullmatch(name):
            raise StudyError(
                f"{place}: neither a name, nor a label, nor {EACH}, nor {ANY}",
                f'host = "server"; "{EACH}:load" for a copy on each host with that label, '
                f'"{ANY}:load" for one of them',
            )
        if role.name == study.target and is_each(role.host):
            raise StudyError(
                f"{place}: the measured role has one copy", "one host, or another [protocol] target"
            )
    prefix = HOST_PREFIX.removesuffix(".")
    uses_hosts = any(role.host for role in study.roles)
    if uses_hosts and prefix in [factor.name for factor in study.factors]:
        raise StudyError(
            f"{where.of('factors', prefix)}: factor {prefix!r}: "
            f"roles have hosts, whose addresses are {{{HOST_PREFIX}NAME}}",
            "another name for the factor",
        )


def _check_extracts(study: Study, where: Origins) -> None:
    for extract in study.extracts:
        place = _extract_place(extract, where)
        try:
            expression = compiled(extract.pattern)
        except StudyError as error:
            raise StudyError(f"{place}: {error.what}", error.remedy) from error
        names = expression.groupindex
        units = sum(name.startswith(UNIT) for name in names)
        counts = sum(PER.fullmatch(name) is not None for name in names)
        if expression.groups - units - counts < 1:
            raise StudyError(
                f"{place}: '{extract.pattern}' has no group for the figure",
                r"parentheses around the figure: 'took (\d+) ms'",
            )
        if units:
            _check_unit(extract, place)


def _check_tools(study: Study, where: Origins) -> None:
    """Refuse to read what one tool prints by the figures of another."""
    roles = {role.name: role for role in study.roles}
    for extract in study.extracts:
        role = roles.get(extract.role or study.target)
        found = None if role is None else misread(extract, role.command)
        if found is None:
            continue  # a measured role that is none is told with the roles
        meant_by, program, read_by = found
        names = [str(IndicatorName(extract.role, name)) for name in read_by]
        option = "--extract {}" if where.is_command_line else 'tool = "{}"'
        raise StudyError(
            f"{_extract_place(extract, where)}: this figure is printed by "
            f"{listed(meant_by, 'or')}, and the command starts {program}",
            listed([option.format(name) for name in names], "or"),
        )


def _check_unit(extract: Extract, place: str) -> None:
    """Refuse a unit that is surely not that of the figure, since the group for the unit converts
    it."""
    can_be = partial(group_can_be, extract.pattern, UNIT)
    if is_rate("", extract.unit) and only_time(can_be):
        raise StudyError(
            f"{place}: the group {UNIT} of its pattern holds a time, and its unit "
            f"{extract.unit} is a rate: the figure would be multiplied by that time",
            f"the group around all of the unit, (?P<{UNIT}>…/s), and {base_unit(extract.unit)} as "
            "its unit",
        )
    base = converted_unit(extract.unit, can_be)
    if base != extract.unit:
        raise StudyError(
            f"{place}: the group {UNIT} of its pattern converts the figure to {base}, and its "
            f"unit says {extract.unit}",
            f"{base} as its unit; or no group {UNIT}, if it is printed in {extract.unit} alone",
        )


def _extract_place(extract: Extract, where: Origins) -> str:
    option = "--extract" if where.is_command_line else "indicators"
    return f"{where.of('indicators', extract.name)}: {option} {extract.name}"


def why_no_repeats(low: int, high: int) -> str:
    """Why a least and a greatest number of trials do not go together; empty where they do."""
    if low == 1 < high:
        return "the spread of the first trials sets how many follow, and one trial has none"
    return ""


def _check_efforts(study: Study, where: Origins) -> None:
    names = [factor.name for factor in study.factors]
    for effort_name, effort in study.efforts.items():
        rules, place = effort.rules, f"{where}: effort {effort_name}"
        if not 1 <= rules.repeats_min <= rules.repeats_max:
            raise StudyError(
                f"{place}: repeats {rules.repeats_min}..{rules.repeats_max}",
                "at least 1, and the least not above the greatest: 5..30",
            )
        if reason := why_no_repeats(rules.repeats_min, rules.repeats_max):
            raise StudyError(
                f"{place}: repeats {rules.repeats_min}..{rules.repeats_max}: {reason}",
                f"repeats = [2, {rules.repeats_max}], or [1, 1] for exactly one",
            )
        if rules.repeats_max > REPEATS_MOST:
            raise StudyError(
                f"{place}: repeats: {rules.repeats_max} trials of a cell",
                f"at most {REPEATS_MOST}: 5..30",
            )
        if not 0 < rules.precision < 1:
            raise StudyError(
                f"{place}: precision {rules.precision} is not between 0 and 1",
                "a share such as 0.02",
            )
        for name in effort.factors:
            if name not in names:
                raise StudyError(
                    f"{place}: factor {name!r} is not in the study", meant(name, names)
                )


def _check_containers(study: Study, where: Origins) -> None:
    """Refuse a program that is started in an attached container: its accounts would be those of the
    server, since both are of one cgroup."""
    attached = [parse_attach(role.attach, role.name) for role in study.roles if role.attach]
    names = [name for kind, name in attached if kind == "container"]
    for role in study.roles:
        entered = container_of(role.command)
        if any(_is_same_container(entered, name) for name in names):
            raise StudyError(
                f"{where.of('roles', role.name)}: role {role.name} is started in container "
                f"{entered}, which is attached: what it uses would be counted as the server's",
                "the program outside of the container, by the address that the server listens at; "
                f"or in another one (docker run --network container:{entered} …)",
            )


def _is_same_container(name: str, other: str) -> bool:
    """By their names, or by the begins of their identities."""
    if not all(map(CONTAINER_ID.fullmatch, (name, other))):
        return name == other
    return name.startswith(other) or other.startswith(name)


def _check_roles(study: Study, where: Origins) -> None:
    names = [role.name for role in study.roles]
    for role in study.roles:
        if role.attach is None and not role.program and not any(role.command[:1]):
            raise StudyError(
                f"{where.of('roles', role.name)}: role {role.name} has no command",
                "command or program",
            )
        for other in role.after:
            _check_after(role, other, study.roles[: names.index(role.name)], names, where)
    if not any(role.end == "exit" for role in study.roles):
        raise StudyError(
            f"{where}: every role serves, so a trial would never end",
            'end = "exit" for the role that decides it',
        )
    if study.target not in names:
        raise StudyError(
            f"{where.of('protocol', 'target')}: the study has no role {study.target!r} to measure",
            f"[protocol] target: {meant(study.target, names)}",
        )


def _check_after(
    role: Role, other: str, earlier: tuple[Role, ...], names: list[str], where: Origins
) -> None:
    """Refuse ``after`` unless the other role is listed earlier and ends on its own."""
    place = f"{where.of('roles', role.name)}: role {role.name} waits for {other!r}"
    if other == role.name:
        raise StudyError(f"{place}, which is itself", "the name of another role, or no after")
    if other not in names:
        raise StudyError(place, meant(other, names))
    ends = {item.name: item.end for item in earlier}
    if other not in ends:
        raise StudyError(f"{place}, which is listed later", f"[[roles]] {other} before {role.name}")
    if ends[other] == "serve":
        raise StudyError(
            f"{place}, which serves and so does not exit before it",
            f'after is for roles with end = "exit"; to wait until {other} is up, give it '
            'ready = "report" and list it before',
        )


def _check_purposes(study: Study, where: Origins) -> None:
    """Refuse purposes that a role cannot have."""
    ends = {"server": "serve", "load": "exit"}
    for role in study.roles:
        place = f"{where.of('roles', role.name)}: role {role.name}: purpose {role.purpose!r}"
        end = ends.get(role.purpose, role.end)
        if end != role.end:
            raise StudyError(
                f'{place}: it has end = "{role.end}"', f'end = "{end}", or another purpose'
            )
        if role.name == study.target and role.purpose in ("setup", "background"):
            raise StudyError(
                f"{place}: it is the measured role", "another [protocol] target, or no purpose"
            )
    servers = [role.name for role in study.roles if role.purpose == "server"]
    if len(servers) > 1:
        raise StudyError(
            f"{where.of('roles', servers[1])}: two roles with purpose 'server': "
            f"{' and '.join(servers)}",
            "the one that does the operations which are measured",
        )


def _check_work_and_base(study: Study, where: Origins) -> None:
    factors = {factor.name: factor.levels for factor in study.factors}
    if study.work:
        if study.work not in factors:
            raise StudyError(
                f"{where.of('protocol', 'work')}: work {study.work!r} is no factor",
                meant(study.work, list(factors)),
            )
        if not all(isinstance(level, int | float) for level in factors[study.work]):
            raise StudyError(
                f"{where.of('protocol', 'work')}: "
                f"work {study.work!r} has levels that are no numbers",
                "a factor that counts threads, sessions or processes",
            )
    for name, level in study.base.items():
        if name not in factors:
            raise StudyError(
                f"{where.of('protocol', 'base')}: base {name!r} is no factor",
                meant(name, list(factors)),
            )
        if level not in factors[name]:
            raise StudyError(
                f"{where.of('protocol', 'base')}: base {name}={level} is not among the levels",
                meant(str(level), map(str, factors[name])),
            )


def _check_used(study: Study, where: Origins) -> None:
    """Refuse a factor that is varied and that nothing uses: its settings are one and the same, and
    whatever tells them apart is chance (decision 73)."""
    varied = [name for name, levels in _all_levels(study).items() if len(levels) > 1]
    for name in unused_factors(study):
        if name not in varied:
            continue
        factor = f"-P {name}" if where.is_command_line else f"factor {name!r}"
        raise StudyError(
            f"{where.of('factors', name)}: {factor}: no command, environment, control or hook "
            f"uses {{{name}}}, so varying it changes nothing",
            f"{{{name}}} in place of {written}, which is passed as it stands"
            if (written := _written_otherwise(study, name))
            else f"{_for_attached(study, where)}{{{name}}} where its level belongs, as in ./mine "
            f"--{name} {{{name}}}; to compare a program with itself on purpose: env "
            f"AA={{{name}}} ./mine",
        )


def _written_otherwise(study: Study, name: str) -> str:
    """How a command or its environment writes the level of a factor in the way of other tools:
    ``<threads>``, ``%threads%``, ``@threads@``, ``{{threads}}``, ``$threads`` where no shell reads
    it; empty if none does."""
    known = re.escape(name)
    forms = (
        rf"<{known}>|%{known}%|@{known}@|%\({known}\)[sd]|\{{\{{{known}\}}\}}|"
        rf"\$\{{{known}\}}|\${known}\b"
    )
    texts = (text for role in study.roles for text in (*role.command, *role.env.values()))
    return next((found[0] for text in texts if (found := re.search(forms, text))), "")


def _for_attached(study: Study, where: Origins) -> str:
    """How a level reaches a process that runs already, which no command starts."""
    if all(role.attach is None for role in study.roles):
        return ""
    return f"{where.hook('prepare')} with a command that sets it in the process that runs, or "


def _check_conditions(study: Study, where: Origins) -> None:
    names = [factor.name for factor in study.factors]
    for name in study.conditions:
        if name not in names:
            raise StudyError(
                f"{where.of('protocol', 'conditions')}: conditions: {name!r} is no factor",
                meant(name, names),
            )
        if name == choose_work(study):
            raise StudyError(
                f"{where.of('protocol', 'conditions')}: "
                f"conditions: {name!r} is the work factor: its levels are chosen",
                "name another work factor, or remove it from conditions",
            )


def _check_optional(study: Study, where: Origins) -> None:
    known = _all_levels(study)
    for factor, levels in study.optional.items():
        place = f"{where.of('protocol', 'optional')}: optional: {factor}"
        if factor not in [item.name for item in study.factors]:
            raise StudyError(f"{place} is no factor", meant(factor, list(known)))
        for level in levels:
            if level not in known[factor]:
                raise StudyError(
                    f"{place}: {level!r} is no level",
                    meant(str(level), map(str, known[factor])),
                )
    for factor in study.compares:
        if factor not in study.optional:
            raise StudyError(
                f"{where.of('protocol', 'compares')}: compares: {factor!r} has no optional levels",
                meant(factor, list(study.optional), "a factor that optional names"),
            )

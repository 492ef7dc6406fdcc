"""A command line → :class:`~concurve.definition.study.Study`: what ``concurve sweep`` measures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from concurve.definition.beside_line import Beside, beside_role
from concurve.definition.controls import ControlsTemplate
from concurve.definition.extracting import (
    Extraction,
    parse_extract,
    parse_named_direction,
    primary_of,
)
from concurve.definition.indicators_meant import is_load, known_before, names_meant, rate_of_load
from concurve.definition.levels import levels_meant, parse_levels
from concurve.definition.load_commands import with_load_commands
from concurve.definition.measured import MEASURED
from concurve.definition.origins import COMMAND_LINE, Origins
from concurve.definition.starters import started
from concurve.definition.study import (
    DEFAULT_RULES,
    EFFORTS,
    Effort,
    Factor,
    Hooks,
    Indicator,
    Role,
    Study,
)
from concurve.definition.study_check import check, why_no_repeats
from concurve.definition.sweep_factors import NONE, roles_of
from concurve.definition.templates import placeholders
from concurve.definition.units import parse_duration, parse_share
from concurve.errors import StudyError
from concurve.terms import Level, split_levels
from concurve.words import did_you_mean, listed, meant, nearest, one_of

#: What ``--work`` may also say: each worker brings its own work, or all cells do the same.
AMOUNTS: tuple[Literal["fixed", "scales"], ...] = ("fixed", "scales")

#: Programs whose first argument, if it is no option, names what they run.
_INTERPRETER = re.compile(r"python[\d.]*|pypy[\d.]*|(ba|da|k|z)?sh|perl|ruby|node|Rscript")

_WALL = Indicator(name="wall_seconds", better="lower", unit="s")
_RATE = Indicator(name="rate_per_second", better="higher", unit="1/s")

#: From here on two names differ by a slip of the fingers.
_SLIP = 0.8


def sweep_study(
    command: Sequence[str],
    parameters: Sequence[tuple[str, str]],
    cpus: int,
    *,
    controls: ControlsTemplate | None = None,
    env: Mapping[str, str] | None = None,
    hooks: Hooks | None = None,
    background: Sequence[str] = (),
    beside: Beside | None = None,
    extracts: Sequence[str] = (),
    primary: str | None = None,
    work: str | None = None,
    work_amount: Literal["fixed", "scales"] | None = None,
    conditions: Sequence[str] = (),
    base: str | Mapping[str, Level] | None = None,
    rules: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Study:
    """A study of one command over a full factorial of parameters.

    ``cpus`` is what levels such as ``50%`` refer to; ``work_amount`` says whether each worker
    brings its own work or all cells do the same; ``rules`` overrides fields of
    :class:`~concurve.definition.study.Rules` in every effort. The texts are those of the options of
    ``concurve sweep``.

    Raises:
        StudyError: anything that cannot be run as written.
    """
    if not command:
        raise StudyError("no command to measure", "concurve sweep -P threads 1,2,4 -- ./mine …")
    _refuse_twice(parameters)
    program = _program(command)
    server = None if beside is None else beside_role(beside)
    # A client's time is that of the server's work, so it has the name that says so.
    target = "target" if server is None else "client"
    if server is not None and server.command and not server.program:
        _refuse_for_client_alone(server, command, controls, env or {})
    found = [item for text in extracts for item in parse_extract(text, target)]
    factors = tuple(
        Factor(name=factor, levels=parse_levels(levels, cpus, f"-P {factor}"))
        for factor, levels in parameters
    )
    study = Study(
        name=name or f"sweep-{re.sub(r'[^A-Za-z0-9_-]+', '-', program).strip('-') or 'command'}",
        question=_question(program if server is None else _served(server), factors),
        factors=factors,
        roles=(
            *([] if server is None else [server]),
            *(_background(text, number) for number, text in enumerate(background)),
            Role(
                name=target,
                command=tuple(command),
                env=dict(env or {}),
                controls=controls or ControlsTemplate(),
            ),
        ),
        efforts={
            effort: Effort(rules=msgspec.structs.replace(DEFAULT_RULES[effort], **(rules or {})))
            for effort in EFFORTS
        },
        hooks=hooks or Hooks(),
        extracts=tuple(item.extract for item in found),
        indicators=_indicators(found, primary, work_amount, started(command)),
        work_amount=work_amount or "unknown",
        target=target,
        base=parse_base(base, {factor.name: factor.levels for factor in factors}),
    )
    study = with_load_commands(study)
    roles = roles_of(study, work, conditions, cpus)
    counted = roles.work if roles.work or work == NONE else None
    study = msgspec.structs.replace(study, work=counted, conditions=roles.conditions)
    check(study, Origins(COMMAND_LINE))
    return study


def _program(command: Sequence[str]) -> str:
    """The name of the program that a command line measures: of a script, not of its interpreter,
    and of what ``taskset`` and the like start. Runs of two scripts are no history of one."""
    words = started(command)
    if _JAVA.fullmatch(Path(words[0]).name) and (main := _main_of(words[1:])):
        return main
    is_script = len(words) > 1 and words[1][:1] not in ("", "-", "{")
    if is_script and _INTERPRETER.fullmatch(Path(words[0]).name):
        words = words[1:]
    program = Path(words[0]).name
    return "concurve load" if is_load(words) else program


#: The launcher of Java, and those of its options whose value is the next word.
_JAVA = re.compile(r"java[0-9.]*")
_OF_JAVA = frozenset((
    "-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path",
    "--add-modules", "--add-exports", "--add-opens", "--add-reads", "--limit-modules",
    "--patch-module", "--enable-native-access", "--source", "-d", "--describe-module",
))  # fmt: skip


def _main_of(words: Sequence[str]) -> str:
    """What Java is to run, by the words behind its name: a class, a jar without its ending, or a
    source file; empty where that is not seen."""
    rest = iter(words)
    for word in rest:
        if word in _OF_JAVA:
            next(rest, None)
        elif word in ("-jar", "-m", "--module"):
            main = Path(next(rest, "")).name
            return main.removesuffix(".jar")
        elif word[:1] not in ("-", "@"):
            return "" if word[:1] in ("", "{") else Path(word).name
    return ""


def _served(server: Role) -> str:
    """The server beside a client, which is what a question is about: the client only asks it."""
    is_started = server.command and not server.program and server.attach is None
    return _program(server.command) if is_started else "the server"


def _question(program: str, factors: Sequence[Factor]) -> str:
    """What a sweep asks. A placeholder in the program's name is a gap, and with levels that are
    words nothing scales."""
    shown = re.sub(r"\{[^{}]*\}", "…", program)
    if not re.search(r"\w", shown):
        shown = "the program"
    if not factors:
        return f"How fast is {shown}?"
    names = " and ".join(factor.name for factor in factors)
    has_numbers = any(not isinstance(level, str) for item in factors for level in item.levels)
    return f"How does {shown} {'scale with' if has_numbers else 'depend on'} {names}?"


def _refuse_twice(parameters: Sequence[tuple[str, str]]) -> None:
    """Refuse a parameter that is given more than once.

    Raises:
        StudyError: there is one.
    """
    names = [name for name, _ in parameters]
    for name in names:
        if names.count(name) > 1:
            levels = ",".join(text for other, text in parameters if other == name)
            raise StudyError(f"-P {name} is given more than once", f"-P {name} {levels}")


def _refuse_for_client_alone(
    server: Role,
    command: Sequence[str],
    controls: ControlsTemplate | None,
    env: Mapping[str, str],
) -> None:
    """Refuse a parameter that varies nothing but the environment or the controls of the client:
    who starts a server beside it means the server.

    Raises:
        StudyError: there is one.
    """
    named = {name for word in (*server.command, *command) for name in placeholders(word)}
    given = {f"--env {name}": text for name, text in env.items()}
    if controls is not None:
        names = ("cpus", "nice", "policy")
        given |= {f"--{name}": str(getattr(controls, name) or "") for name in names}
    for option, text in given.items():
        for name in sorted(set(placeholders(text)) - named):
            raise StudyError(
                f"{option} varies {{{name}}} for the command after --, and not for --server",
                f"--server 'env NAME={{{name}}} taskset -c 0-1 nice -n 5 ./serve …', or the same "
                "after -- for that command alone",
            )


def _indicators(
    found: Sequence[Extraction],
    primary: str | None,
    work_amount: str | None,
    command: Sequence[str],
) -> tuple[Indicator, ...]:
    """The indicators of a sweep, the primary one first: the one that is named, else the primary
    figure of a tool, else the first throughput that is extracted, else the rate of our load
    generator or of the operations that are counted, else the wall time."""
    extracted = [item.indicator for item in found]
    if primary is not None:
        first = _named_primary(primary, extracted, command)
    elif name := primary_of(found):
        first = next(item for item in extracted if item.name == name)
    elif name := rate_of_load(command):
        first = msgspec.structs.replace(_RATE, name=name)
    elif work_amount == "scales" or any(item.name == "operations" for item in extracted):
        first = _RATE
    else:
        first = _WALL
    return (first, *(item for item in (_WALL, *extracted) if item.name != first.name))


def _named_primary(text: str, extracted: Sequence[Indicator], command: Sequence[str]) -> Indicator:
    name, better = parse_named_direction(text)
    bare, colon, word = name.rpartition(":")
    if colon and better == "neither":
        raise StudyError(
            f"--primary {text!r}: {word!r} is no direction: higher, lower",
            f"--primary {bare}:higher where more is better, or --primary {bare}:lower",
        )
    measured = MEASURED.get(name)
    known = next((item for item in extracted if item.name == name), None)
    if known is None and measured is not None:
        known = Indicator(name=name, unit=measured.unit, better=measured.better)
    if known is None:
        _refuse_misspelt(name, [item.name for item in extracted])
    known = known or Indicator(name=name)
    if better != "neither":
        known = msgspec.structs.replace(known, better=better)
    if known.better == "neither":
        near = [other for other in names_meant(name, known_before(command)) if other != name]
        else_named = f"{did_you_mean(*near)} Else " if near else ""
        raise StudyError(
            f"--primary {text!r}: whether higher or lower is better is not known",
            f"{else_named}--primary {name}:higher, or --primary {name}:lower",
        )
    return known


def _refuse_misspelt(name: str, extracted: Sequence[str]) -> None:
    """Refuse a name that is a slip of the fingers away from a figure that is extracted. Any other
    may be reported by the program, ``gpu_seconds`` too. p95 beside p99 is another figure.

    Raises:
        StudyError: it is one.
    """
    alike = [other for other in extracted if _letters(other) != _letters(name)]
    near = nearest(name, alike, _SLIP)
    if near is not None:
        others = [item for item in extracted if item != near]
        others_said = f" Others that are extracted: {', '.join(others)}." if others else ""
        raise StudyError(
            f"--primary: no figure {name!r} is extracted",
            f"{did_you_mean(near)}{others_said}",
        )


def _letters(name: str) -> str:
    return re.sub(r"\d", "", name)


def split_work(
    texts: Sequence[str], parameters: Sequence[str]
) -> tuple[str | None, Literal["fixed", "scales"] | None]:
    """The texts of ``--work`` as the parameter that counts workers, and the amount of work. A
    parameter that is called as an amount is a parameter.

    Raises:
        StudyError: two texts of the same kind.
    """
    amounts = [amount for amount in AMOUNTS if amount in texts and amount not in parameters]
    names = [text for text in texts if text not in amounts]
    for given in (names, amounts):
        if len(given) > 1:
            raise StudyError(
                f"--work {' and --work '.join(given)}: only one of them can be true",
                "one parameter, and scales or fixed",
            )
    return names[0] if names else None, amounts[0] if amounts else None


def parse_environment(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` texts as a mapping.

    Raises:
        StudyError: no equals sign, no name, or a name twice.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise StudyError(f"--env {text!r}: not NAME=VALUE", "--env OMP_NUM_THREADS={threads}")
        if name in pairs:
            raise StudyError(f"--env {name} is given more than once", f"one --env {name}=VALUE")
        pairs[name] = value
    return pairs


def parse_base(
    given: str | Mapping[str, Level] | None,
    factors: Mapping[str, Sequence[Level]],
    option: str = "--base",
) -> dict[str, Level]:
    """``threads=1,cpus=1``, or the same as a mapping, as levels of the factors; ``\\,`` is a comma
    inside of a level. Of a single factor with several levels a level that is a name is enough:
    ``old``. ``option`` is what messages call it.

    Raises:
        StudyError: not that form, or a level that the factor does not have.
    """
    if isinstance(given, Mapping):
        return levels_meant(given, factors)
    base: dict[str, Level] = {}
    for part in filter(None, split_levels(given or "")):
        name, equals, value = part.partition("=")
        if not equals and part in _names_alone(factors):
            (name,) = _varied(factors)
            equals, value = "=", part
        levels = {str(level): level for level in factors.get(name, ())}
        if not equals or value not in levels:
            known = "; ".join(f"{k} is {one_of([*map(str, v)])}" for k, v in factors.items())
            having = [k for k, v in factors.items() if not equals and part in map(str, v)]
            if having:
                known = listed([f"{option} {k}={part}" for k in having], "or")
            raise StudyError(
                f"{option} {part!r}: not a factor with one of its levels",
                meant(value, levels, known) if levels else meant(name, factors, known),
            )
        base[name] = levels[value]
    return base


def _varied(factors: Mapping[str, Sequence[Level]]) -> list[str]:
    return [name for name, levels in factors.items() if len(levels) > 1]


def _names_alone(factors: Mapping[str, Sequence[Level]]) -> Sequence[Level]:
    """The levels of the only factor with several, if they are names; else none."""
    varied = _varied(factors)
    levels = factors[varied[0]] if len(varied) == 1 else ()
    return levels if all(isinstance(level, str) for level in levels) else ()


def parse_repeats(text: str) -> tuple[int, int]:
    """``5..30`` or ``10`` as the least and the greatest number of trials a cell.

    Raises:
        StudyError: not that form.
    """
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text.strip())
    if not match or int(match[1]) < 1 or int(match[2] or match[1]) < int(match[1]):
        numbers = sorted(number for item in re.findall(r"\d+", text) if (number := int(item)))
        is_range = re.fullmatch(r"\s*\d+\s*(?:\W+|to)\s*\d+\s*", text) and len(numbers) == 2
        meant_by = "..".join(map(str, numbers)) if is_range else "5..30, or 10 for exactly ten"
        raise StudyError(f"--repeats {text!r}: not MIN..MAX from 1 on", meant_by)
    low, high = int(match[1]), int(match[2] or match[1])
    if reason := why_no_repeats(low, high):
        raise StudyError(f"--repeats {text}: {reason}", f"2..{high}, or 1 for exactly one")
    return low, high


def rules_from_options(
    repeats: str | None, precision: str | None, timeout: str | None, max_time: str | None
) -> dict[str, Any]:
    """The fields of :class:`~concurve.definition.study.Rules` that options set.

    Raises:
        StudyError: a malformed option.
    """
    rules: dict[str, Any] = {}
    if repeats is not None:
        rules["repeats_min"], rules["repeats_max"] = parse_repeats(repeats)
        rules["choosing_max"] = 0
    if precision is not None:
        rules["precision"] = parse_share(precision, "--precision")
    if timeout is not None:
        rules["timeout_seconds"] = parse_duration(timeout, "--timeout")
    if max_time is not None:
        rules["time_allowed_seconds"] = parse_duration(max_time, "--max-time")
    return rules


_BACKGROUND_KEYS = ("nice", "cpus", "policy")


def _background(text: str, number: int) -> Role:
    """``2@nice=5,cpus=0-1``: busy competitors of the target."""
    count, _, settings = text.partition("@")
    controls: dict[str, str] = {}
    key = ""
    for part in filter(None, settings.split(",")):
        name, equals, value = part.partition("=")
        if equals and name in _BACKGROUND_KEYS:
            key, controls[name] = name, value
        elif not equals and key == "cpus":
            controls["cpus"] += f",{part}"
        else:
            raise StudyError(
                f"--background {text!r}: {part!r} is no setting", "2, or 2@nice=5,cpus=0-1"
            )
    if not re.fullmatch(r"\d+|\{[A-Za-z_][\w-]*\}", count.strip()):
        raise StudyError(f"--background {text!r}: no number of competitors", "2@nice=5,cpus=0-1")
    return Role(
        name="background" if number == 0 else f"background{number + 1}",
        program="targets",
        command=("busy", "--threads", "1", "--until-stopped"),
        controls=ControlsTemplate(**controls),
        end="serve",
        ready="report",
        copies=count.strip(),
    )

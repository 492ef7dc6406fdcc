"""What a study sees in the command line of a load.

``--command 'GET user:{n}'``: the load generator fills in the placeholders of the commands that it
sends itself, a key or a number for each request. They look like those of a study, whose parameters
come first. ``--rate {rate}``: the rate is asked for, and not chosen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from concurve.definition.indicators_meant import is_load
from concurve.definition.starters import started
from concurve.definition.study import Role, Study
from concurve.definition.templates import escape, placeholders

#: The packaged program, the option whose value is a command, and that whose value is a rate.
_LOAD, _COMMAND, _RATE = "load", "--command", "--rate"

#: What the load generator replaces in a command; ``{n:8}`` is no placeholder of a study.
OF_LOAD = ("key", "n", "value", "session", "count", "run")


def with_load_commands(study: Study) -> Study:
    """The study with the placeholders of the load generator escaped in the commands of its loads,
    so that they reach it as they are, except those that a parameter has the name of."""
    parameters = {factor.name for factor in study.factors}
    own = [name for name in OF_LOAD if name not in parameters]
    roles = tuple(_escaped(role, own) for role in study.roles)
    return msgspec.structs.replace(study, roles=roles)


def load_commands_before(study: Study) -> str:
    """What to say before a run whose parameters replace placeholders of the load generator; empty
    where none does."""
    used = _placeholders_in(study, _COMMAND)
    found = [factor.name for factor in study.factors if factor.name in used.intersection(OF_LOAD)]
    return "; ".join(
        f"{{{name}}} in a {_COMMAND} is the parameter {name}, and {{{{{name}}}}} the load's own"
        for name in found
    )


def asked_rates(study: Study) -> list[str]:
    """The factors that say at which rate a load sends: ``--rate {rate}``, ``--rate {percent}%``."""
    used = _placeholders_in(study, _RATE)
    return [factor.name for factor in study.factors if factor.name in used]


def _placeholders_in(study: Study, option: str) -> set[str]:
    given = [role.command[at] for role in study.roles for at in _places(role, option)]
    return {name for text in given for name in placeholders(text)}


def _escaped(role: Role, names: Sequence[str]) -> Role:
    words = list(role.command)
    for at in _places(role, _COMMAND):
        words[at] = escape(words[at], names)
    return msgspec.structs.replace(role, command=tuple(words))


def _places(role: Role, option: str) -> list[int]:
    """The places of the values of an option in the command line of a role, if it is a load."""
    words = role.command
    if role.program != _LOAD and not is_load(started(words)):
        return []
    return [
        at
        for at, word in enumerate(words)
        if word.startswith(f"{option}=") or (at and words[at - 1] == option)
    ]

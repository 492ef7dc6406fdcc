"""A study without its secrets: references stand for them (:mod:`concurve.secrets`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

import msgspec

from concurve.definition.study import Factor, Hooks, Role, Study
from concurve.definition.templates import Value
from concurve.errors import StudyError
from concurve.secrets import KNOWN, Secrets, references
from concurve.secrets.known import CHARS_MIN
from concurve.terms import Level


def hidden(study: Study, marked: Collection[str] = (), known: Secrets = KNOWN) -> Study:
    """The study with references in place of what is secret in its commands, environments, hooks
    and levels; every level of the factors that are ``marked`` is.

    Raises:
        StudyError: such a level is too short to be found.
    """
    # Twice: a text may hold a value that is known as a secret by a later text.
    return _hidden_once(_hidden_once(study, marked, known), marked, known)


def _hidden_once(study: Study, marked: Collection[str], known: Secrets) -> Study:
    hiding = _Hiding(known, frozenset(marked))
    return msgspec.structs.replace(
        study,
        question=known.hide(study.question),
        factors=tuple(
            Factor(name=factor.name, levels=hiding.levels(factor.name, factor.levels))
            for factor in study.factors
        ),
        efforts={
            name: msgspec.structs.replace(effort, factors=hiding.by_factor(effort.factors))
            for name, effort in study.efforts.items()
        },
        base={name: hiding.level(name, level) for name, level in study.base.items()},
        optional=hiding.by_factor(study.optional),
        level_parts={
            factor: {
                str(hiding.level(factor, level)): {
                    name: hiding.value(value) for name, value in parts.items()
                }
                for level, parts in levels.items()
            }
            for factor, levels in study.level_parts.items()
        },
        roles=tuple(map(hiding.role, study.roles)),
        hooks=Hooks(**{
            name: known.hide_likely(text) for name, text in study.hooks.texts().items()
        }),
        extracts=tuple(
            msgspec.structs.replace(extract, pattern=known.hide(extract.pattern))
            for extract in study.extracts
        ),
    )  # fmt: skip


def check_marked(marks: Sequence[str], factors: Collection[str]) -> list[str]:
    """What ``--secret`` names must be there; those of the names that are factors.

    Raises:
        StudyError: a name is neither a variable that is set nor a factor, or a value is so short
            that it would be found everywhere.
    """
    for text in marks:
        name, equals, value = text.partition("=")
        shown = value or os.environ.get(name, "")
        if not name.isidentifier():
            raise StudyError("--secret: no name of a variable or of a parameter", "--secret NAME")
        if not equals and name not in factors and not shown:
            raise StudyError(
                f"--secret {name}: neither a variable of the environment that is set, nor a "
                "parameter",
                f"export {name}=… before; or --secret NAME=TEXT for a text of the command",
            )
        if name not in factors and len(shown) < CHARS_MIN and not references(shown):
            raise StudyError(
                f"--secret {name}: a text of fewer than {CHARS_MIN} characters would be found "
                "everywhere",
                "a longer one",
            )
    return [name for name in marks if name in factors]


def secrets_of(study: Study) -> list[str]:
    """The names of the secrets that the trials of a study need."""
    return references(msgspec.json.encode(study).decode())


class _Hiding:
    def __init__(self, known: Secrets, marked: frozenset[str]) -> None:
        self._known = known
        self._marked = marked

    def role(self, role: Role) -> Role:
        """The role with references in its texts."""
        known = self._known
        words = known.hide_words((*role.prefix, *role.command))
        probe = role.ready_probe
        if probe is not None:
            probe = msgspec.structs.replace(
                probe,
                tcp=None if probe.tcp is None else known.hide(probe.tcp),
                line=None if probe.line is None else known.hide(probe.line),
                command=None if probe.command is None else known.hide_words(probe.command),
            )
        asked = known.password_of((*words, *((probe and probe.command) or ())))
        return msgspec.structs.replace(
            role,
            prefix=words[: len(role.prefix)],
            command=words[len(role.prefix) :],
            jvm=known.hide_words(role.jvm),
            env={
                **asked,
                **{name: known.hide_variable(name, value) for name, value in role.env.items()},
            },
            cwd=None if role.cwd is None else known.hide(role.cwd),
            ready_probe=probe,
        )

    def by_factor(self, given: Mapping[str, tuple[Level, ...]]) -> dict[str, tuple[Level, ...]]:
        """Levels by their factors."""
        return {name: self.levels(name, levels) for name, levels in given.items()}

    def levels(self, factor: str, levels: tuple[Level, ...]) -> tuple[Level, ...]:
        """The levels of a factor."""
        return tuple(self.level(factor, level) for level in levels)

    def level(self, factor: str, level: Level) -> Level:
        """A level of a factor."""
        if factor in self._marked and not references(str(level)):
            if len(str(level)) < CHARS_MIN:
                raise StudyError(
                    f"--secret {factor}: a level of fewer than {CHARS_MIN} characters would be "
                    "found everywhere",
                    "longer levels, or no --secret for them",
                )
            return self._known.add(factor.upper(), str(level))
        return self._known.hide_likely(level) if isinstance(level, str) else level

    def value(self, value: Value) -> Value:
        """A part of a level."""
        if isinstance(value, str):
            return self._known.hide_likely(value)
        return self._known.hide_words(value) if isinstance(value, tuple) else value

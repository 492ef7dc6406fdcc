"""Levels that a hook was to set, and by what it printed did not. Pure.

Such levels are one setting: what differs between their cells is chance, or their order.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from concurve import words
from concurve.definition.study import Hooks
from concurve.definition.study import texts as every_text
from concurve.definition.templates import placeholders
from concurve.findings.best import BestFinding
from concurve.planning.plan import Plan
from concurve.readings.hook_outputs import hooks_said
from concurve.wire.record import TrialRecord

#: The hooks that run before what is measured: only these can set a level.
_BEFORE = ("setup", "prepare")


class Unset(NamedTuple):
    """The ``factors`` whose levels were probably not set, by the ``hooks`` that told of an error,
    which is what they ``said``."""

    factors: tuple[str, ...]
    hooks: frozenset[str]
    said: str

    @property
    def doubt(self) -> str:
        """Why no setting is recommended."""
        were = words.verb(len(self.factors), "was", "were")
        return f"{words.listed(self.factors)} {were} probably not set"

    @property
    def answer(self) -> str:
        """The same as the first answer of a run, with how it is known."""
        its = "its" if len(self.factors) == 1 else "their"
        return (
            f"{self.doubt}, so that {its} levels were alike, and none of them is recommended: "
            f"{self.said} and exited with 0."
        )

    def concerns(self, found: BestFinding) -> bool:
        """Are the settings that it compares such levels?"""
        return not set(self.factors).isdisjoint(found.factors)


def unset_of(plan: Plan, first: TrialRecord | None) -> Unset | None:
    """The factors that vary, and that only a hook of the first trial was to set which told of an
    error and exited with 0; ``None`` where there is none. What a command, its environment or its
    controls name as well reaches the program there. The hooks of the first trial and the setup of
    all cells stand for those of the others, which ran the same commands."""
    told = {} if first is None else hooks_said(first)
    texts = plan.study.hooks.texts()
    without_hooks = msgspec.structs.replace(plan.study, hooks=Hooks())
    elsewhere = {
        _factor(it) for text in every_text(without_hooks) for it in placeholders(text.text)
    }
    varied = [
        name
        for name in plan.cells[0].parameters
        if len({cell.parameters[name] for cell in plan.cells}) > 1 and name not in elsewhere
    ]
    factors: dict[str, None] = {}
    hooks = [name for name in _BEFORE if name in told and name in texts]
    setting = []
    for hook in hooks:
        used = {_factor(name) for name in placeholders(texts[hook])}
        if found := [name for name in varied if name in used]:
            factors |= dict.fromkeys(found)
            setting.append(hook)
    if not factors:
        return None
    said = words.listed([told[hook] for hook in setting])
    return Unset(tuple(factors), frozenset(setting), said)


def _factor(placeholder: str) -> str:
    """The factor of a placeholder, which may name a part of its level."""
    return placeholder.partition(".")[0]

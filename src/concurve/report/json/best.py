"""The best settings: over all cells, and in groups of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from concurve.fields import about
from concurve.findings.best import BestFinding
from concurve.findings.run import Findings
from concurve.terms import Level

#: A bare level where one factor varies, else the level of each.
Setting = Level | dict[str, Level]

_USE = (
    "The one setting to use, as every view names it: the recommended one, else the smallest of a "
    "few that are not told apart, if it seems no more than 5 % behind; left out where there is "
    "none."
)
_NOT_TOLD = "The other settings that are not told from the best, where one is to be used."


class Undisturbed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is found among the settings that are not in doubt, where nothing is recommended since
    others are."""

    levels: Annotated[
        list[Setting],
        about("Those that cannot be distinguished from the best of them (95 %).", minItems=1),
    ]
    in_doubt: Annotated[
        list[Setting],
        about("The settings in doubt, which are not compared: any may be better.", minItems=1),
    ]
    recommended: Annotated[
        Setting | msgspec.UnsetType,
        about("The smallest that is shown to be as good as the best of them."),
    ] = msgspec.UNSET
    use: Annotated[Setting | msgspec.UnsetType, about(_USE)] = msgspec.UNSET
    not_told_from: Annotated[list[Setting], about(_NOT_TOLD)] = []


class BestSet(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings are bare levels where one factor varies, else objects of levels."""

    indicator: str
    factors: Annotated[tuple[str, ...], about("The factors that vary.")]
    levels: Annotated[
        list[Setting],
        about("The settings that cannot be distinguished from the best (95 %).", minItems=1),
    ]
    leader: Annotated[Setting, about("The setting with the best figure.")]
    compared: Annotated[int, about(minimum=2)]
    recommended: Annotated[
        Setting | msgspec.UnsetType,
        about("The smallest that is shown to be as good as the best; left out where none is."),
    ] = msgspec.UNSET
    use: Annotated[Setting | msgspec.UnsetType, about(_USE)] = msgspec.UNSET
    not_told_from: Annotated[list[Setting], about(_NOT_TOLD)] = []
    group: Annotated[
        dict[str, Level] | msgspec.UnsetType, about("Levels that the compared cells share.")
    ] = msgspec.UNSET
    decide: Annotated[str, about("What would decide which setting is best.")] = ""
    trials: Annotated[int | None, about("Trials of each setting that would decide.")] = None
    new_run: Annotated[
        str | msgspec.UnsetType,
        about("The options of concurve run run:ID for a new run that would decide."),
    ] = msgspec.UNSET
    doubt: Annotated[str, about("Why nothing is recommended.")] = ""
    undisturbed: Annotated[
        Undisturbed | msgspec.UnsetType,
        about("What is found among the settings not in doubt, where others are."),
    ] = msgspec.UNSET


class Best(BestSet, frozen=True, omit_defaults=True):
    """The best settings of all cells, with those of each group."""

    groups: list[BestSet] = []


def best_overall(findings: Findings) -> Best | msgspec.UnsetType:
    """The best settings over all cells, and those of each group; absent if the run has none."""
    whole = findings.best_overall
    if whole is None:
        return msgspec.UNSET
    groups = [BestSet(**_best_set(item), group=item.group) for item in findings.best if item.group]
    return Best(**_best_set(whole), groups=groups)


def best_by_condition(findings: Findings) -> list[BestSet] | msgspec.UnsetType:
    """The best settings for each combination of conditions; absent if the study has no
    conditions."""
    if findings.best_overall is not None or not findings.best:
        return msgspec.UNSET
    return [BestSet(**_best_set(item), group=item.group) for item in findings.best]


def _best_set(item: BestFinding) -> dict[str, Any]:
    return {
        "indicator": item.indicator,
        "factors": item.factors,
        "levels": [_setting(setting) for setting in item.settings],
        "recommended": msgspec.UNSET if item.recommended is None else _setting(item.recommended),
        **_to_use(item),
        "leader": _setting(item.leader),
        "compared": item.compared,
        "decide": item.decide,
        "trials": item.trials,
        "new_run": msgspec.UNSET if item.new_run is None else item.new_run.options,
        "doubt": item.doubt,
        "undisturbed": _undisturbed(item),
    }


def _undisturbed(item: BestFinding) -> Undisturbed | msgspec.UnsetType:
    found = item.undisturbed
    if found is None:
        return msgspec.UNSET
    chosen = found.best.recommended
    return Undisturbed(
        levels=[_setting(setting) for setting in found.best.settings],
        in_doubt=[_setting(setting) for setting in found.doubted],
        recommended=msgspec.UNSET if chosen is None else _setting(chosen),
        **_to_use(found.best),
    )


def _to_use(item: BestFinding) -> dict[str, Any]:
    return {
        "use": msgspec.UNSET if item.use is None else _setting(item.use),
        "not_told_from": [_setting(setting) for setting in item.not_told_from],
    }


def _setting(setting: dict[str, Level]) -> Setting:
    return next(iter(setting.values())) if len(setting) == 1 else setting

"""The indicators of a run: first those of the laboratory, then those that programs report."""

from __future__ import annotations

import msgspec

from concurve.analysis.run.tables import Table
from concurve.definition.indicator_names import split_name
from concurve.definition.measured import INDICATORS, MEASURED, OF_ROLE, OF_RUNS, fairness_info
from concurve.definition.purposes import purposes_of
from concurve.planning.plan import Plan
from concurve.readings.copies import copied_roles
from concurve.readings.measures import cpu_info, measure
from concurve.readings.operations import Asked
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo, label_of
from concurve.wire.record import TrialRecord


def indicator_infos(
    head: RunHead, plan: Plan, first: TrialRecord | None, tables: list[Table]
) -> tuple[IndicatorInfo, ...]:
    """Descriptions of all indicators of a run: those of the laboratory, then the reported ones."""
    own = {info.name: info for info in INDICATORS}
    purposes = purposes_of(head.study)
    client = purposes.measured if purposes.measured in purposes.clients else ""
    names = dict.fromkeys(name for table in tables for name in table.every)
    units: dict[str, str] = {}
    if first is not None:
        wanted = Asked(purposes, copied=copied_roles(head.study))
        units = measure(first, wanted).units
    for extract in head.study.extracts:
        units[extract.name] = extract.unit
    of_runs = {} if "seconds_per_operation" in names else OF_RUNS
    declared = {item.name: item for item in head.study.indicators}
    infos = []
    for name in [*own, *(name for name in names if name not in own)]:
        base = of_runs.get(name) or MEASURED.get(name) or cpu_info(name)
        base = base or _of_role(name, own)
        if client and name in OF_ROLE:
            base = _labelled(MEASURED[name], client, name)
        if base is None and name not in units:
            base = fairness_info(name)
        asked = declared.get(name)
        unit = (asked and asked.unit) or units.get(name) or (base.unit if base else "")
        infos.append(
            IndicatorInfo(
                name=name,
                label=(asked and asked.label) or (base.label if base else label_of(name, unit)),
                unit=unit,
                better=asked.better
                if asked and asked.better != "neither"
                else (base.better if base else "neither"),
                note=base.note if base else "reported by the program",
                is_reported=base is None,
            )
        )
    return tuple(infos)


def _of_role(name: str, own: dict[str, IndicatorInfo]) -> IndicatorInfo | None:
    """``load.cpu_seconds`` is described like ``cpu_seconds``."""
    role, plain = split_name(name)
    base = own.get(plain)
    if not role or base is None:
        return None
    return _labelled(base, role, name)


def _labelled(base: IndicatorInfo, role: str, name: str) -> IndicatorInfo:
    return msgspec.structs.replace(base, name=name, label=f"{role}: {base.label}")

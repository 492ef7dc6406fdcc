"""The JSON export: everything that a run found, and every raw trial behind it.

The format is described in ``schema/export.schema.json`` and kept stable: fields are added,
never changed or removed, as long as ``format`` stays the same.

History of the format (``FORMAT``):

- 1 (2026-11): first version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec

from concurve.fields import about
from concurve.findings.fit import Expectation
from concurve.findings.run import Finding, Findings, LevelChange, Report
from concurve.findings.scaling import ScalingFinding
from concurve.report.json.best import Best, BestSet, best_by_condition, best_overall
from concurve.report.json.cells import Cell, Trial, cell_of
from concurve.report.json.claims import (
    AssumedRatioEntry,
    Claim,
    DependenceEntry,
    Published,
    assumed_ratio_of,
    claim_of,
    dependence_of,
    published_figures,
)
from concurve.report.json.explanation import to_json as explanation_to_json
from concurve.report.json.facts import Fact, facts_of
from concurve.report.json.fit import fit_export
from concurve.report.json.run import Run, run_of

FORMAT = 1

FittedGroup = Annotated[
    dict[str, Any],
    about(
        "As concurve fit --json prints it (fit.schema.json), with the group; a group that could "
        "not be fitted has the reason instead.",
        required=["parameters", "indicator"],
        properties={
            "parameters": {
                "description": "Levels that the cells of the group share.",
                "type": "object",
                "additionalProperties": {"type": ["integer", "number", "string"]},
            },
            "indicator": {"description": "Name of the throughput.", "type": "string"},
            "reason": {"type": "string"},
            "models": {"type": "array", "items": {"type": "object"}, "minItems": 1},
            "chosen": {"type": "string"},
            "answers": {"type": "array", "items": {"type": "string"}},
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
        oneOf=[
            {"required": ["reason"]},
            {"required": ["models", "chosen", "answers", "warnings"]},
        ],
    ),
]

RawTrial = tuple[int, int, int, bool, str | None, bytes]
"""Index of the cell, block, attempt, whether it was used, cause of a reject, record as stored."""


class Export(msgspec.Struct, frozen=True):
    """Written by ``concurve export`` and ``--export-json``. A figure that is missing is left out
    and ``absent`` gives the reason; numbers are always finite."""

    format: Annotated[int, about(const=FORMAT)]
    run: Run
    cells: list[Cell]
    findings: tuple[Finding, ...]
    claims: list[Claim]
    dependences: Annotated[
        list[DependenceEntry] | msgspec.UnsetType,
        about(
            "For a simulation: how the ratio of each claim depends on each assumption alone, as "
            "the geometric mean over all settings of the others, and divided by that at its first "
            "level. Left out for other studies, and if no assumption has several levels.",
            minItems=1,
        ),
    ]
    assumed_ratios: Annotated[
        list[AssumedRatioEntry] | msgspec.UnsetType,
        about(
            "For a simulation: the ratio of each level of a compared factor to that which the "
            "claims compare it with, at each level of each assumption, as the geometric mean over "
            "all settings of the others. Left out as dependences are.",
            minItems=1,
        ),
    ]
    best: Annotated[
        Best | msgspec.UnsetType,
        about(
            "Which settings cannot be distinguished from the best, over all cells, and for each "
            "group of cells that differ in the work factor only. Left out if fewer "
            "than two cells have the indicator, or if it has no better direction."
        ),
    ]
    best_by_condition: Annotated[
        list[BestSet] | msgspec.UnsetType,
        about(
            "Instead of best where the study has conditions whose levels differ: the best settings "
            "for each combination of these, and for each group of cells that differ in the work "
            "factor only.",
            minItems=1,
        ),
    ]
    models: Annotated[
        list[FittedGroup] | msgspec.UnsetType,
        about(
            "Scaling models fitted to the throughput over the work factor, for each group of cells "
            "that differ in that factor only. Left out if the caller asked for none (show --json "
            "without --models), or if no numeric factor of three levels counts as concurrency.",
            minItems=1,
        ),
    ]
    level_change: Annotated[
        LevelChange | msgspec.UnsetType,
        about(
            "A change in time that all cells share: the index of the first block after it, and the "
            "factor on the primary indicator. Left out if none was found."
        ),
    ]
    drift: Annotated[
        float | msgspec.UnsetType,
        about(
            "By which share the highest block lies above the lowest one, by the primary indicator, "
            "where the level that all cells share wandered. Left out if that is not shown."
        ),
    ]
    published: Annotated[
        list[Published] | msgspec.UnsetType,
        about("Left out where the study has no published figures."),
    ]
    explanation: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        about(
            "What limits each cell, as concurve explain --json prints it (explain.schema.json). "
            "Left out by show --json, where no trial is in use or there are more than 5,000, and "
            "where the primary indicator has no better direction.",
            type="object",
            required=["format", "run", "study", "operation", "cells", "missing", "notes"],
        ),
    ]
    facts: Annotated[
        list[Fact] | msgspec.UnsetType,
        about(
            "Facts that the measured program reported on the report channel, by value, read from "
            "one trial of each cell. Left out by show --json, and if the program reported none.",
            minItems=1,
        ),
    ]


def to_json(report: Report, raw_trials: Iterable[RawTrial] = ()) -> bytes:
    """The whole run as JSON. Records are embedded as they were stored, without parsing them."""
    explained, facts = _explanation(report), facts_of(report) or msgspec.UNSET
    return _export(report, report.scaling, explained, facts, raw_trials)


def figures_to_json(findings: Findings, scaling: Sequence[ScalingFinding] = ()) -> bytes:
    """The figures of a run as JSON, with scaling models where they were asked for: without its raw
    trials, and without what its records say."""
    return _export(findings, scaling, msgspec.UNSET, msgspec.UNSET, ())


def _export(
    findings: Findings,
    scaling: Sequence[ScalingFinding],
    explanation: msgspec.Raw | msgspec.UnsetType,
    facts: list[Fact] | msgspec.UnsetType,
    raw_trials: Iterable[RawTrial],
) -> bytes:
    trials: dict[int, list[Trial]] = {}
    for cell, block, attempt, used, cause, record in raw_trials:
        item = Trial(block, attempt, used, msgspec.Raw(record), cause)
        trials.setdefault(cell, []).append(item)
    export = Export(
        FORMAT,
        run_of(findings),
        [cell_of(cell, trials.get(cell.index, [])) for cell in findings.cells],
        findings.sentences,
        [claim_of(claim) for claim in findings.claims],
        [dependence_of(item) for item in findings.dependences] or msgspec.UNSET,
        [assumed_ratio_of(item) for item in findings.assumed_ratios] or msgspec.UNSET,
        best_overall(findings),
        best_by_condition(findings),
        _models(scaling),
        findings.level_change or msgspec.UNSET,
        findings.drift or msgspec.UNSET,
        published_figures(findings) or msgspec.UNSET,
        explanation,
        facts,
    )
    return msgspec.json.encode(export)


def _models(scaling: Sequence[ScalingFinding]) -> list[dict[str, Any]] | msgspec.UnsetType:
    """Fits in the form of ``concurve fit --json``, each with its group; absent where none was
    asked for or none is possible. A group without a fit has the reason instead."""
    if not scaling:
        return msgspec.UNSET
    found = []
    for item in scaling:
        which = {"parameters": item.group, "indicator": item.indicator}
        if item.fit is None:
            found.append({**which, "reason": item.reason})
            continue
        expected = item.expected
        known = [Expectation(n=expected.n, figure=expected.throughput)] if expected else []
        fitted = fit_export(item.fit, item.work, item.indicator, known, item.notes)
        found.append({**which, **msgspec.to_builtins(fitted), "answers": item.answers})
    return found


def _explanation(report: Report) -> msgspec.Raw | msgspec.UnsetType:
    """What limits each cell in the form of ``concurve explain --json``; absent where there is
    none."""
    if report.explanation is None:
        return msgspec.UNSET
    return msgspec.Raw(explanation_to_json(report.explanation))

"""A campaign as JSON: ``schema/campaign.schema.json`` describes it.

History of the format (``FORMAT``): 1 (2026-11) first version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from concurve.findings.campaign import CampaignFindings, StudyFindings
from concurve.report.json import RawTrial, to_json

FORMAT = 1


def to_campaign_json(
    findings: CampaignFindings, raw_trials: Mapping[str, Iterable[RawTrial]] | None = None
) -> bytes:
    """The whole campaign; each study's ``run`` is the export of its run (with its raw trials,
    where ``raw_trials`` has them by the run's id)."""
    raw = raw_trials or {}
    return msgspec.json.encode(
        {
            "format": FORMAT,
            "campaign": {
                **msgspec.to_builtins(findings.campaign),
                "trials": findings.trials,
                "duration_seconds": findings.duration_seconds,
            },
            "summary": findings.summary,
            "verdicts": findings.verdicts,
            "agreements": findings.agreements,
            "studies": [_study(study, raw) for study in findings.studies],
            "deviations": findings.deviations,
            "glossary": findings.glossary,
            "machine": findings.machine,
        }
    )


def _study(study: StudyFindings, raw: Mapping[str, Iterable[RawTrial]]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": study.name,
        "question": study.question,
        "state": study.state,
        "reason": study.reason,
        "verdicts": study.verdicts,
        "agreements": study.agreements,
    }
    if study.test_case is not None:
        fields["test_case"] = study.test_case
    if study.procedure is not None:
        fields["procedure"] = study.procedure
    if study.run is not None:
        fields["run"] = msgspec.Raw(to_json(study.run, raw.get(study.run.run.id, ())))
    return fields

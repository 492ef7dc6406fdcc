"""Where the studies of a campaign departed from its procedure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from concurve.findings.campaign import Deviation, StudyFindings
from concurve.findings.run import Findings, TrialFindings
from concurve.host.machine_check import inspect
from concurve.host.same_machine import machine_differences


def missing(study: StudyFindings[TrialFindings]) -> str:
    """What became of a study that is not complete."""
    words = {"planned": "has not begun", "begun": "is not finished", "failed": "failed",
             "not run": "was not run"}  # fmt: skip
    reason = f": {study.reason}" if study.reason else ""
    return f"{study.name} {words.get(study.state, study.state)}{reason}"


def deviations(
    studies: Sequence[StudyFindings[TrialFindings]], machine: Mapping[str, Any]
) -> Iterator[Deviation]:
    """Of each study, then of the machine."""
    for study in studies:
        if study.state != "complete":
            yield Deviation(study=study.name, kind="missing", says=missing(study))
        if study.run is not None:
            yield from _of_run(study.name, study.run)
    for item in inspect(dict(machine), {}) if machine else ():
        if item.mark == "!!":
            says = f"{item.name}: {item.says}. {item.remedy}"
            yield Deviation(study="", kind="machine", says=says)
    yield from _other_machines([study for study in studies if study.run is not None])


def _of_run(name: str, run: Findings) -> Iterator[Deviation]:
    for finding in run.sentences:
        if finding.kind == "warning":
            yield Deviation(study=name, kind="warning", says=finding.sentence)
    causes = Counter(reject.cause for reject in run.rejects if not reject.used)
    if causes:
        counted = ", ".join(f"{cause} {number}" for cause, number in causes.most_common())
        says = f"{causes.total()} of {run.run.trials} trials rejected and redone: {counted}."
        yield Deviation(study=name, kind="rejected", says=says)
    for claim in run.claims:
        if claim.verdict == "not testable here":
            says = f"Claim {claim.id} could not be tested: {claim.reason}."
            yield Deviation(study=name, kind="not testable", says=says)


def _other_machines(studies: Sequence[StudyFindings[TrialFindings]]) -> Iterator[Deviation]:
    """A campaign may be resumed after a change of the machine."""
    for study in studies[1:]:
        assert study.run is not None and studies[0].run is not None
        changed = machine_differences(studies[0].run.machine, study.run.machine)
        if changed:
            says = f"Not the machine of {studies[0].name}: {'; '.join(changed)}."
            yield Deviation(study=study.name, kind="machine", says=says)

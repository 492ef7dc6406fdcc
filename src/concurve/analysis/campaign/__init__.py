"""The runs of a campaign → :class:`~concurve.findings.campaign.CampaignFindings`.

``summary`` says what matters, ``deviations`` where a study departed from the procedure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_args

from concurve.analysis.campaign.answers import answers
from concurve.analysis.campaign.deviations import deviations
from concurve.analysis.campaign.summary import summary, summed
from concurve.definition.study import Rules
from concurve.errors import StoreError
from concurve.findings.campaign import (
    CampaignFindings,
    CampaignInfo,
    Procedure,
    RunT_co,
    StudyFindings,
)
from concurve.findings.claims import VerdictName
from concurve.findings.run import Findings
from concurve.store import Store
from concurve.store.campaign_head import CampaignHead, decode_campaign
from concurve.store.rows import CampaignRow, MemberRow, RunRow
from concurve.store.run_head import decode_head


def campaign_findings(
    store: Store, row: CampaignRow, read: Callable[[RunRow], RunT_co]
) -> CampaignFindings[RunT_co]:
    """Everything that the views of a campaign show; ``read`` says what a run says: its
    figures, or its whole report."""
    head = decode_campaign(row)
    runs = {run.id: run for run in store.runs()}
    members = store.members(row.id)
    head.check_members(members)
    studies = tuple(_study(head, member, runs.get(member.run), read) for member in members)
    found = [study.run for study in studies if study.run is not None]
    machine = found[0].machine if found else {}
    said = answers(head.campaign, studies)
    return CampaignFindings(
        campaign=_info(head, row),
        texts=head.campaign.texts,
        glossary=head.campaign.glossary,
        answers=said.said,
        answered_by=said.study,
        summary=tuple(summary(head, studies, machine)),
        studies=studies,
        deviations=tuple(deviations(studies, machine)),
        machine=machine,
        trials=sum(run.run.trials for run in found),
        duration_seconds=sum(run.run.duration_seconds for run in found),
        verdicts=summed(study.verdicts for study in studies),
        agreements=summed(study.agreements for study in studies),
    )


def _info(head: CampaignHead, row: CampaignRow) -> CampaignInfo:
    campaign = head.campaign
    return CampaignInfo(
        id=head.id,
        name=campaign.name,
        title=campaign.title,
        question=campaign.question,
        source=campaign.source,
        effort=head.effort,
        seed=head.seed,
        started=head.started,
        state=row.state,  # type: ignore[arg-type]
        reason=row.reason,
        again=head.again,
        version=head.version,
    )


def _study(
    head: CampaignHead, member: MemberRow, row: RunRow | None, read: Callable[[RunRow], RunT_co]
) -> StudyFindings[RunT_co]:
    if not 0 <= member.position < len(head.campaign.studies):
        raise StoreError(
            f"campaign {head.id} has no study at position {member.position}, which is stored for "
            f"{member.name!r}",
            "was the store cut or edited? A backup of it",
        )
    study = head.campaign.studies[member.position].study
    run = None if row is None else read(row)
    return StudyFindings(
        name=member.name,
        question=study.question,
        test_case=study.test_case,
        state=member.state,  # type: ignore[arg-type]
        reason=member.reason,
        run=run,
        procedure=None if row is None or run is None else _procedure(decode_head(row).rules, run),
        verdicts=_verdicts(run) if run else {},
        agreements=summed(table.counts() for table in run.published) if run else {},
    )


def _verdicts(run: Findings) -> dict[VerdictName, int]:
    """How many claims have each verdict, always in the same order."""
    found = Counter(claim.verdict for claim in run.claims)
    return {name: found[name] for name in get_args(VerdictName) if found[name]}


def _procedure(rules: Rules, run: Findings) -> Procedure:
    return Procedure(
        cells=len(run.cells),
        blocks=max((cell.trials for cell in run.cells), default=0),
        repeats_min=rules.repeats_min,
        repeats_max=rules.repeats_max,
        precision=rules.precision,
        redo_max=rules.redo_max,
        redo_share=rules.redo_share,
        time_allowed_seconds=rules.time_allowed_seconds,
        timeout_seconds=rules.timeout_seconds,
        trials=run.run.trials,
        rejected=run.run.rejected,
        duration_seconds=run.run.duration_seconds,
        stopped=dict(Counter(cell.stop_reason or cell.status for cell in run.cells)),
    )

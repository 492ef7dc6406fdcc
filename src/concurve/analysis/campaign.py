"""The runs of a campaign → :class:`~concurve.findings.CampaignFindings`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec

from concurve.analysis.run import findings_of
from concurve.definition.study import Claim, Rules
from concurve.definition.units import format_duration
from concurve.findings import (
    Agreement,
    CampaignFindings,
    CampaignInfo,
    ClaimFinding,
    Deviation,
    Explanation,
    Finding,
    Findings,
    Procedure,
    StudyFindings,
    VerdictName,
)
from concurve.host.machine_check import inspect
from concurve.host.same_machine import machine_differences
from concurve.measuring.campaign_head import CampaignHead, decode_campaign
from concurve.measuring.run_head import decode_head
from concurve.store import CampaignRow, MemberRow, RunRow, Store

#: Refuted claims of a study that the summary names one by one.
REFUTED_NAMED = 2

#: Verdicts on published figures that were held against ours.
JUDGED: tuple[Agreement, ...] = ("agrees", "differs", "undecided")

K = TypeVar("K", bound=str)


def campaign_findings(store: Store, row: CampaignRow, dots: bool = True) -> CampaignFindings:
    """Everything that the views of a campaign show; without ``dots`` as
    :func:`concurve.analysis.run.findings_of`."""
    head = decode_campaign(row)
    runs = {run.id: run for run in store.runs()}
    studies = tuple(
        _study(store, head, member, runs.get(member.run), dots) for member in store.members(row.id)
    )
    found = [study.run for study in studies if study.run is not None]
    machine = found[0].machine if found else {}
    return CampaignFindings(
        campaign=_info(head, row),
        texts=head.campaign.texts,
        glossary=head.campaign.glossary,
        summary=tuple(_summary(head, studies, machine)),
        studies=studies,
        deviations=tuple(_deviations(studies, machine)),
        machine=machine,
        trials=sum(run.run.trials for run in found),
        duration_seconds=sum(run.run.duration_seconds for run in found),
        verdicts=_summed(study.verdicts for study in studies),
        agreements=_summed(study.agreements for study in studies),
    )


def with_each_run(
    findings: CampaignFindings, change: Callable[[Findings], Findings]
) -> CampaignFindings:
    """The campaign with each of its runs changed."""
    studies = tuple(
        study if study.run is None else msgspec.structs.replace(study, run=change(study.run))
        for study in findings.studies
    )
    return msgspec.structs.replace(findings, studies=studies)


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
    store: Store, head: CampaignHead, member: MemberRow, row: RunRow | None, dots: bool
) -> StudyFindings:
    study = head.campaign.studies[member.position].study
    run = None if row is None else findings_of(store, row, dots=dots)
    return StudyFindings(
        name=member.name,
        question=study.question,
        test_case=study.test_case,
        state=member.state,  # type: ignore[arg-type]
        reason=member.reason,
        run=run,
        procedure=None if row is None or run is None else _procedure(decode_head(row).rules, run),
        verdicts=_verdicts(run) if run else {},
        agreements=_summed(table.counts() for table in run.published) if run else {},
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


def _summed(counts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    total: Counter[K] = Counter()
    for some in counts:
        total.update(some)
    return dict(total)


# -- the summary ----------------------------------------------------------------------------


def _summary(
    head: CampaignHead, studies: Sequence[StudyFindings], machine: Mapping[str, Any]
) -> Iterator[Finding]:
    """What a reader with a minute needs: how much was done, what holds, what does not."""
    yield Finding(kind="answer", sentence=_done(studies, machine))
    claims = _summed(study.verdicts for study in studies)
    if claims:
        yield Finding(kind="answer", sentence=_claims(claims, _told(head, studies)))
    yield from _refuted(head, studies)
    figures = _summed(study.agreements for study in studies)
    if figures:
        yield Finding(kind="answer", sentence=_figures(figures))
    for study in studies:
        if study.state != "complete":
            yield Finding(kind="warning", sentence=_missing(study))
    yield from _doubtful([study.run for study in studies if study.run is not None])


def _done(studies: Sequence[StudyFindings], machine: Mapping[str, Any]) -> str:
    runs = [study.run.run for study in studies if study.run is not None]
    done = sum(study.state == "complete" for study in studies)
    trials, seconds = sum(run.trials for run in runs), sum(run.duration_seconds for run in runs)
    where = f" on {machine['cpu_model']}" if machine.get("cpu_model") else ""
    allowed = machine.get("cpus_allowed")
    cpus = f" ({len(allowed)} CPU{'s' * (len(allowed) != 1)})" if allowed else ""
    return (
        f"{done} of {len(studies)} studies are done: {trials:,} trials in "
        f"{format_duration(seconds)}{where}{cpus}."
    )


def _told(head: CampaignHead, studies: Sequence[StudyFindings]) -> int:
    """The claims of the studies that have a run; each may be tested in several settings."""
    members = zip(head.campaign.studies, studies, strict=True)
    return sum(len(member.study.claims) for member, study in members if study.run is not None)


def _claims(counts: Mapping[VerdictName, int], claims: int) -> str:
    total = sum(counts.values())
    tested = f", tested in {total} settings," if total != claims else ""
    return (
        f"Of the {claims} claims of the source{tested} {counts.get('supported', 0)} are supported, "
        f"{counts.get('refuted', 0)} refuted, {counts.get('undecided', 0)} undecided and "
        f"{counts.get('not testable here', 0)} not testable here."
    )


def _refuted(head: CampaignHead, studies: Sequence[StudyFindings]) -> Iterator[Finding]:
    """The claims that were refuted, some of each study; the others are counted."""
    left_out = 0
    for member, study in zip(head.campaign.studies, studies, strict=True):
        refuted = []
        for claim in member.study.claims:
            verdicts = [found.verdict for found in _of_claim(claim, study)]
            if "refuted" in verdicts:
                where = f" (in {verdicts.count('refuted')} of {len(verdicts)} settings)"
                refuted.append(f"{claim.says}{where if len(verdicts) > 1 else ''}")
        for says in refuted[:REFUTED_NAMED]:
            yield Finding(kind="note", sentence=f"Refuted, {_name(study)}: {says}")
        left_out += len(refuted[REFUTED_NAMED:])
    if left_out:
        yield Finding(
            kind="note", sentence=f"Refuted, and not named here: {left_out} more; see the results."
        )


def _name(study: StudyFindings) -> str:
    """``test case 9``, or the study's folder."""
    name = study.test_case.name if study.test_case is not None else study.name
    return name[:1].lower() + name[1:] if name.startswith("Test ") else name


def _of_claim(claim: Claim, study: StudyFindings) -> Iterator[ClaimFinding]:
    """What the study's run says of a claim, in every setting that it is tested in."""
    for found in study.run.claims if study.run is not None else ():
        if found.says == claim.says or found.says.startswith(f"{claim.says} ["):
            yield found


def _figures(counts: Mapping[Agreement, int]) -> str:
    judged = sum(counts.get(name, 0) for name in JUDGED)
    aside = counts.get("not comparable", 0) + counts.get("base", 0)
    return (
        f"Of {judged} published figures that can be held against ours, relative to their base, "
        f"{counts.get('agrees', 0)} agree, {counts.get('differs', 0)} differ and "
        f"{counts.get('undecided', 0)} are undecided; {aside} more are bases or cannot be compared."
    )


def _doubtful(runs: Sequence[Findings]) -> Iterator[Finding]:
    """A machine that was not quiet casts doubt on the whole."""
    doubtful = sum(reject.used for run in runs for reject in run.rejects)
    if doubtful:
        trials = sum(run.run.trials for run in runs)
        withheld = sum(bool(claim.doubt) for run in runs for claim in run.claims)
        says = (
            f"The machine was not quiet: {doubtful:,} of {trials:,} trials are in use with a "
            f"doubt; verdicts on claims are withheld in {withheld:,} settings, where the quiet "
            "trials alone do not give them. The deviations name the studies."
        )
        yield Finding(kind="warning", sentence=says)


def with_causes(findings: CampaignFindings) -> CampaignFindings:
    """The campaign with a line of the summary for each study whose records were explained."""
    told = [
        Finding(
            kind="note", sentence=f"What limits {_name(study)}: {_causes(study.run.explanation)}"
        )
        for study in findings.studies
        if study.run is not None and study.run.explanation is not None
    ]
    kept = [item for item in findings.summary if item not in told]
    place = next((n for n, item in enumerate(kept) if item.kind == "warning"), len(kept))
    return msgspec.structs.replace(findings, summary=(*kept[:place], *told, *kept[place:]))


def _causes(explanation: Explanation) -> str:
    """``cpu in 40 of 64 cells, lock in 20; in the others nothing is found.``"""
    cells = [cell.cause for cell in explanation.cells if cell.trials]
    found = Counter(cause for cause in cells if cause != "none").most_common()
    if not found:
        return f"nothing is found in its {len(cells)} cells."
    (first, most), *rest = found
    told = ", ".join(
        [f"{first} in {most} of {len(cells)} cells", *(f"{name} in {n}" for name, n in rest)]
    )
    others = len(cells) - sum(number for _, number in found)
    return f"{told}; in the other {others} nothing is found." if others else f"{told}."


def _missing(study: StudyFindings) -> str:
    words = {"planned": "has not begun", "begun": "is not finished", "failed": "failed",
             "not run": "was not run"}  # fmt: skip
    reason = f": {study.reason}" if study.reason else ""
    return f"{study.name} {words.get(study.state, study.state)}{reason}"


# -- what did not go as the procedure wants it ----------------------------------------------


def _deviations(
    studies: Sequence[StudyFindings], machine: Mapping[str, Any]
) -> Iterator[Deviation]:
    for study in studies:
        if study.state != "complete":
            yield Deviation(study=study.name, kind="missing", says=_missing(study))
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
        told = ", ".join(f"{cause} {number}" for cause, number in causes.most_common())
        says = f"{causes.total()} of {run.run.trials} trials rejected and redone: {told}."
        yield Deviation(study=name, kind="rejected", says=says)
    for claim in run.claims:
        if claim.verdict == "not testable here":
            says = f"Claim {claim.id} could not be tested: {claim.reason}."
            yield Deviation(study=name, kind="not testable", says=says)


def _other_machines(studies: Sequence[StudyFindings]) -> Iterator[Deviation]:
    """A campaign may be resumed after a change of the machine."""
    for study in studies[1:]:
        assert study.run is not None and studies[0].run is not None
        changed = machine_differences(studies[0].run.machine, study.run.machine)
        if changed:
            says = f"Not the machine of {studies[0].name}: {'; '.join(changed)}."
            yield Deviation(study=study.name, kind="machine", says=says)

"""The summary of a campaign, to be read in a minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from concurve.analysis.campaign.deviations import missing
from concurve.definition.study import Claim
from concurve.definition.units import format_count, format_duration
from concurve.findings.campaign import StudyFindings
from concurve.findings.claims import ClaimFinding, VerdictName
from concurve.findings.explanation import Explanation
from concurve.findings.published import Agreement
from concurve.findings.run import Finding, Findings, Report
from concurve.store.campaign_head import CampaignHead

#: The summary names at most this many refuted claims of a study.
REFUTED_NAMED = 2
#: Verdicts on published figures that were held against ours.
JUDGED: tuple[Agreement, ...] = ("agrees", "differs", "undecided")
K = TypeVar("K", bound=str)


def summed(counts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    """The sum of counts, by name."""
    total: Counter[K] = Counter()
    for some in counts:
        total.update(some)
    return dict(total)


def summary(
    head: CampaignHead, studies: Sequence[StudyFindings[Findings]], machine: Mapping[str, Any]
) -> Iterator[Finding]:
    """The summary: how much was done, which claims hold, and which do not."""
    yield Finding(kind="answer", sentence=_done(studies, machine))
    claims = summed(study.verdicts for study in studies)
    if claims:
        yield Finding(kind="answer", sentence=_claims(claims, _claims_with_run(head, studies)))
    yield from _refuted(head, studies)
    figures = summed(study.agreements for study in studies)
    if figures:
        yield Finding(kind="answer", sentence=_figures(figures))
    yield from _limits(studies)
    for study in studies:
        if study.state != "complete":
            yield Finding(kind="warning", sentence=missing(study))
    yield from _skipped(studies)
    yield from _doubtful([study.run for study in studies if study.run is not None])


def _done(studies: Sequence[StudyFindings[Findings]], machine: Mapping[str, Any]) -> str:
    runs = [study.run.run for study in studies if study.run is not None]
    done = sum(study.state == "complete" for study in studies)
    trials, seconds = sum(run.trials for run in runs), sum(run.duration_seconds for run in runs)
    where = f" on {machine['cpu_model']}" if machine.get("cpu_model") else ""
    allowed = machine.get("cpus_allowed")
    cpus = f" ({len(allowed)} CPU{'s' * (len(allowed) != 1)})" if allowed else ""
    return (
        f"{done} of {len(studies)} studies are done: "
        f"{format_count(trials, 'trial')} in {format_duration(seconds)}{where}{cpus}."
    )


def _claims_with_run(head: CampaignHead, studies: Sequence[StudyFindings[Findings]]) -> int:
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


def _refuted(head: CampaignHead, studies: Sequence[StudyFindings[Findings]]) -> Iterator[Finding]:
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
            yield Finding(kind="note", sentence=f"Refuted, {name_of(study)}: {says}")
        left_out += len(refuted[REFUTED_NAMED:])
    if left_out:
        yield Finding(kind="note", sentence=f"{left_out} more claims are refuted; see the results.")


def name_of(study: StudyFindings[Findings]) -> str:
    """``test case 9``, or the study's folder."""
    name = study.test_case.name if study.test_case is not None else study.name
    return name[:1].lower() + name[1:] if name.startswith("Test ") else name


def _of_claim(claim: Claim, study: StudyFindings[Findings]) -> Iterator[ClaimFinding]:
    """What the study's run says of a claim, in every setting that it is tested in."""
    for found in study.run.claims if study.run is not None else ():
        if found.claim == claim.id:
            yield found


def _figures(counts: Mapping[Agreement, int]) -> str:
    judged = sum(counts.get(name, 0) for name in JUDGED)
    aside = counts.get("not comparable", 0) + counts.get("base", 0)
    if not judged:
        return f"None of the {aside} published figures can be held against ours."
    return (
        f"Of {judged} published figures that can be held against ours, relative to their base, "
        f"{counts.get('agrees', 0)} agree, {counts.get('differs', 0)} differ and "
        f"{counts.get('undecided', 0)} are undecided; {aside} more are bases or cannot be compared."
    )


def _limits(studies: Sequence[StudyFindings[Findings]]) -> Iterator[Finding]:
    """What limits the studies whose records were read and explained."""
    for study in studies:
        if isinstance(study.run, Report) and study.run.explanation is not None:
            says = f"What limits {name_of(study)}: {causes(study.run.explanation)}"
            yield Finding(kind="note", sentence=says)


def _skipped(studies: Sequence[StudyFindings[Findings]]) -> Iterator[Finding]:
    """Cells that errors took out, in studies that are complete all the same."""
    for study in studies:
        cells = study.run.cells if study.run is not None else ()
        skipped = [cell for cell in cells if cell.status == "skipped"]
        if skipped:
            says = (
                f"{name_of(study)}: {len(skipped)} of {format_count(len(cells), 'cell')} "
                f"{'was' if len(skipped) == 1 else 'were'} skipped after errors; the first: "
                f"{skipped[0].note}."
            )
            yield Finding(kind="warning", sentence=says[:1].upper() + says[1:])


def _doubtful(runs: Sequence[Findings]) -> Iterator[Finding]:
    """A warning if trials are used although the machine was not quiet."""
    doubtful = sum(reject.used for run in runs for reject in run.rejects)
    if doubtful:
        trials = sum(run.run.trials for run in runs)
        withheld = sum(bool(claim.doubt) for run in runs for claim in run.claims)
        without = (
            f"; verdicts on claims are withheld in {format_count(withheld, 'setting')}, where the "
            "quiet trials alone do not give them"
        )
        says = (
            f"The machine was not quiet: {doubtful:,} of {format_count(trials, 'trial')} are in "
            f"use with a doubt{without if withheld else ''}. The deviations name the studies."
        )
        yield Finding(kind="warning", sentence=says)


def causes(explanation: Explanation) -> str:
    """``cpu in 40 of 64 cells, lock in 20; in the others nothing is found.``"""
    cells = [cell.cause for cell in explanation.cells if cell.trials]
    found = Counter(cause for cause in cells if cause != "none").most_common()
    if not found:
        return f"nothing is found in its {len(cells)} cells."
    (first, most), *rest = found
    counted = ", ".join(
        [f"{first} in {most} of {len(cells)} cells", *(f"{name} in {n}" for name, n in rest)]
    )
    others = len(cells) - sum(number for _, number in found)
    return f"{counted}; in the other {others} nothing is found." if others else f"{counted}."

"""The summary of a campaign, to be read in a minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from concurve import words
from concurve.analysis.campaign.deviations import missing
from concurve.definition.study import Claim
from concurve.findings.campaign import StudyFindings
from concurve.findings.claims import ClaimFinding, VerdictName
from concurve.findings.counts import count_trials
from concurve.findings.explanation import Explanation
from concurve.findings.published import Agreement
from concurve.findings.run import Finding, Findings, Report, TrialFindings
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
    head: CampaignHead, studies: Sequence[StudyFindings[TrialFindings]], machine: Mapping[str, Any]
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


def _done(studies: Sequence[StudyFindings[TrialFindings]], machine: Mapping[str, Any]) -> str:
    runs = [study.run.run for study in studies if study.run is not None]
    done = sum(study.state == "complete" for study in studies)
    trials, seconds = sum(run.trials for run in runs), sum(run.duration_seconds for run in runs)
    where = f" on {machine['cpu_model']}" if machine.get("cpu_model") else ""
    allowed = machine.get("cpus_allowed")
    cpus = f" ({words.count(len(allowed), 'CPU')})" if allowed else ""
    return (
        f"{words.count_of(done, len(studies), 'study')} {words.verb(done)} done: "
        f"{words.count(trials, 'trial')} in {words.duration(seconds)}{where}{cpus}."
    )


def _claims_with_run(head: CampaignHead, studies: Sequence[StudyFindings[TrialFindings]]) -> int:
    """The claims of the studies that have a run; each may be tested in several settings."""
    members = zip(head.campaign.studies, studies, strict=True)
    return sum(len(member.study.claims) for member, study in members if study.run is not None)


def _claims(counts: Mapping[VerdictName, int], claims: int) -> str:
    total = sum(counts.values())
    tested = f", tested in {words.count(total, 'setting')}," if total != claims else ""
    supported = counts.get("supported", 0)
    without = counts.get("cannot be decided", 0)
    more = f"; {without} cannot be decided by what was run" if without else ""
    of = "Of the claim" if claims == 1 else f"Of the {claims} claims"
    return (
        f"{of} of the source{tested} {supported} {words.verb(supported)} supported, "
        f"{counts.get('refuted', 0)} refuted, {counts.get('undecided', 0)} undecided and "
        f"{counts.get('not testable here', 0)} not testable here{more}."
    )


def _refuted(
    head: CampaignHead, studies: Sequence[StudyFindings[TrialFindings]]
) -> Iterator[Finding]:
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
        more = words.count(left_out, "more claim")
        text = f"{more} {words.verb(left_out)} refuted; see the results."
        yield Finding(kind="note", sentence=text)


def name_of(study: StudyFindings[TrialFindings]) -> str:
    """``test case 9``, or the study's folder."""
    name = study.test_case.name if study.test_case is not None else study.name
    return name[:1].lower() + name[1:] if name.startswith("Test ") else name


def _of_claim(claim: Claim, study: StudyFindings[TrialFindings]) -> Iterator[ClaimFinding]:
    """What the study's run says of a claim, in every setting that it is tested in."""
    for found in study.run.claims if study.run is not None else ():
        if found.claim == claim.id:
            yield found


def _figures(counts: Mapping[Agreement, int]) -> str:
    judged = sum(counts.get(name, 0) for name in JUDGED)
    aside = counts.get("not comparable", 0) + counts.get("base", 0)
    if not judged:
        if aside == 1:
            return "The published figure cannot be held against ours."
        return f"None of the {aside} published figures can be held against ours."
    agree, differ, undecided = (counts.get(name, 0) for name in JUDGED)
    more = "one more is a base" if aside == 1 else f"{aside:,} more are bases"
    return (
        f"Of {words.count(judged, 'published figure')} that can be held against ours, relative to "
        f"the base, {agree} {words.verb(agree, 'agrees', 'agree')}, "
        f"{differ} {words.verb(differ, 'differs', 'differ')} and "
        f"{undecided} {words.verb(undecided)} undecided; {more} or cannot be compared."
    )


def _limits(studies: Sequence[StudyFindings[TrialFindings]]) -> Iterator[Finding]:
    """What limits the studies whose records were read and explained."""
    for study in studies:
        if isinstance(study.run, Report) and study.run.explanation is not None:
            says = f"What limits {name_of(study)}: {causes(study.run.explanation)}"
            yield Finding(kind="note", sentence=says)


def _skipped(studies: Sequence[StudyFindings[TrialFindings]]) -> Iterator[Finding]:
    """Cells that errors took out, in studies that are complete all the same."""
    for study in studies:
        cells = study.run.cells if study.run is not None else ()
        skipped = [cell for cell in cells if cell.status == "skipped"]
        if skipped:
            says = (
                f"{name_of(study)}: {len(skipped)} of {words.count(len(cells), 'cell')} "
                f"{words.verb(len(skipped), 'was', 'were')} skipped after errors; the first: "
                f"{skipped[0].note}."
            )
            yield Finding(kind="warning", sentence=says[:1].upper() + says[1:])


def _doubtful(runs: Sequence[Findings]) -> Iterator[Finding]:
    """A warning if trials are used although the machine was not quiet."""
    counts = [count_trials(run.run.trials, run.rejects, run.cells) for run in runs]
    doubtful = sum(count.doubted for count in counts)
    if doubtful:
        trials = sum(count.in_use for count in counts)
        withheld = sum(bool(claim.doubt) for run in runs for claim in run.claims)
        without = (
            f"; verdicts on claims are withheld in {words.count(withheld, 'setting')}, where the "
            "quiet trials alone do not give them"
        )
        says = (
            f"The machine was not quiet: {words.count_of(doubtful, trials, 'trial')} "
            f"{words.verb(doubtful)} in use with a doubt{without if withheld else ''}. The "
            "deviations name the studies."
        )
        yield Finding(kind="warning", sentence=says)


def causes(explanation: Explanation) -> str:
    """``cpu in 40 of 64 cells, lock in 20; in the others nothing is found.``"""
    told = (cell for cell in explanation.cells if cell.trials)
    cells = ["cpu" if cell.is_at_ceiling else cell.told_cause for cell in told]
    found = Counter(cause for cause in cells if cause != "none").most_common()
    if not found:
        where = "its cell" if len(cells) == 1 else f"its {len(cells)} cells"
        return f"nothing is found in {where}."
    (first, most), *rest = found
    counted = ", ".join(
        [
            f"{first} in {words.count_of(most, len(cells), 'cell')}",
            *(f"{name} in {n}" for name, n in rest),
        ]
    )
    others = len(cells) - sum(number for _, number in found)
    rest_of = "the other" if others == 1 else f"the other {others}"
    return f"{counted}; in {rest_of} nothing is found." if others else f"{counted}."

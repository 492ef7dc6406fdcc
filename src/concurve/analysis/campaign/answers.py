"""What the studies of a campaign say to its question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve.analysis.campaign.summary import name_of
from concurve.findings.campaign import StudyFindings
from concurve.findings.run import Finding, Findings

#: The first study answers in so many sentences, each further one in one.
OF_THE_FIRST = 4
#: So many studies are quoted.
STUDIES_QUOTED = 6


def answers(studies: Sequence[StudyFindings[Findings]]) -> Iterator[Finding]:
    """The answers of the first study that has some: its first sentence is that of the campaign. On
    what it hangs is said by its others, and by the first one of each further study."""
    said = [(study, _answers(study)) for study in studies]
    said = [(study, found) for study, found in said if found]
    if not said:
        why = "none of its studies has an answer yet"
        yield Finding(kind="warning", sentence=f"The question cannot be answered: {why}.")
        return
    (_, first), *others = said
    yield from first[:OF_THE_FIRST]
    for study, found in others[: STUDIES_QUOTED - 1]:
        name = name_of(study)
        lead = f"{name[:1].upper()}{name[1:]}"
        yield Finding(kind="answer", sentence=f"{lead}: {found[0].sentence}")


def _answers(study: StudyFindings[Findings]) -> list[Finding]:
    found = study.run.sentences if study.run is not None else ()
    return [item for item in found if item.kind == "answer"]

"""That a program ends only when it looks whether it is done, so that its times come in steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from concurve import words
from concurve.analysis.run.resolutions import looks_of
from concurve.analysis.run.tables import Table
from concurve.definition.study import Study
from concurve.findings.run import Finding


def look_sentences(
    study: Study, tables: Sequence[Table], names: Collection[str]
) -> Iterator[Finding]:
    """A warning for each role whose times one of these indicators is, or is made of. None of a
    simulation, whose times are exact."""
    if study.simulation:
        return
    found: dict[str, float] = {}
    for name in names:
        role = name.rpartition(".")[0]
        found[role] = max(found.get(role, 0.0), looks_of(tables, name))
    for role, step in found.items():
        if step:
            yield Finding(
                kind="warning",
                sentence=(
                    f"{f'Role {role}' if role else 'The program'} seems to look only every "
                    f"{words.duration(step)} whether it is done: its times, and rates by them, are "
                    "no more exact than that. Give each trial more work."
                ),
            )

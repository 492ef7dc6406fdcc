"""What speaks against a comparison: other machines, other studies, runs that are not whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve.errors import ComparisonError
from concurve.findings.run import Findings
from concurve.host.same_machine import is_same_machine, machine_differences


def machines(runs: Sequence[Findings], across: bool) -> Iterator[str]:
    """Other hardware is refused unless asked for; other settings of one machine are a warning."""
    first = runs[0]
    for run in runs[1:]:
        differences = machine_differences(first.machine, run.machine)
        listed = "; ".join(differences)
        if not is_same_machine(first.machine, run.machine):
            if not across:
                raise ComparisonError(
                    f"runs {first.run.id} and {run.run.id} are of different machines: {listed}",
                    "--across-machines, if that is what you want to compare",
                )
            yield f"{first.run.id} and {run.run.id} are of different machines: {listed}"
        elif differences:
            yield f"the machine was not the same in {first.run.id} and {run.run.id}: {listed}"


def studies(base: Findings, new: Findings) -> Iterator[str]:
    """Are they runs of one study?"""
    if base.run.study != new.run.study:
        yield f"different studies: {base.run.study} and {new.run.study}"


def sessions(base: Sequence[Findings], new: Sequence[Findings]) -> Iterator[str]:
    """Are there several runs on one side alone?"""
    if (len(base) == 1) != (len(new) == 1):
        yield "one run against several: how runs of the former vary is not known"


def states(runs: Sequence[Findings]) -> list[str]:
    """Runs that are not complete, or have trials in doubt."""
    found = []
    for run in runs:
        if run.run.state != "complete":
            found.append(f"run {run.run.id} is {run.run.state}, with {run.run.trials} trials")
        doubtful = sum(reject.used for reject in run.rejects)
        if doubtful:
            found.append(f"run {run.run.id}: {doubtful} trials are in use with a doubt")
    return found

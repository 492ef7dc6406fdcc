"""``concurve studies``: what is packaged."""

from __future__ import annotations

import click

HELP = """List the packaged studies.

\b
Example:
  concurve studies
"""


@click.command("studies", help=HELP)
def verb() -> None:
    """Print each packaged study with its question."""
    from concurve.catalogue import entries, find_study
    from concurve.machine import allowed_cpus

    for entry in entries():
        study = find_study(entry.name, len(allowed_cpus()))
        print(entry.name)
        print(f"  {study.question}")
        print(f"  factors: {', '.join(factor.name for factor in study.factors)}")
        if study.source:
            print(f"  source:  {study.source}")

"""``concurve run``: a packaged study, or one from a file."""

from __future__ import annotations

from typing import Any

import click

from concurve.cli import options

HELP = """Run a packaged study, or one from a TOML file.

\b
Examples:
  concurve run thread-scaling --effort quick
  concurve run my-study.toml --export-html report.html

concurve studies lists the packaged ones.
"""


@click.command("run", help=HELP)
@click.argument("study", metavar="STUDY|FILE.toml")
@options.protocol
@options.exports
@options.db
def verb(study: str, **common: Any) -> None:
    """Find the study and measure it."""
    from concurve.catalogue import find_study
    from concurve.cli.measuring import Choices, measure_study
    from concurve.machine import allowed_cpus

    measure_study(find_study(study, len(allowed_cpus())), Choices(**common))

"""``concurve run``: a packaged study or campaign, or one from a file."""

from __future__ import annotations

from typing import Any

import click

from concurve.cli import completing, options

HELP = """Run a packaged study or campaign, or one from a TOML file.

\b
Examples:
  concurve run thread-scaling --effort quick
  concurve run my-study.toml --export-html report.html
  concurve run java-threads --effort quick --only tc02,tc09

concurve studies lists the packaged ones. The options of the protocol hold for each study of a
campaign.
"""


@click.command("run", help=HELP)
@click.argument("study", metavar="STUDY|CAMPAIGN|FILE.toml", shell_complete=completing.studies)
@click.option("--only", metavar="NAME,..", help="Of a campaign: these studies, in its own order.")
@click.option(
    "--java",
    metavar="PATH|VERSION",
    help="Java for the roles that need one: a java, its JDK's folder, 17, or 21+ for that or a "
    "newer one (default: CONCURVE_JAVA, JAVA_HOME, PATH, /usr/lib/jvm).",
)
@options.protocol
@options.exports
@options.db
def verb(study: str, only: str | None, **common: Any) -> None:
    """Find the study or the campaign and measure it."""
    from concurve.cli.campaigning import measure_campaign
    from concurve.cli.measuring import Choices, measure_study
    from concurve.definition.campaign import Campaign
    from concurve.definition.catalogue import find
    from concurve.errors import StudyError
    from concurve.host.machine import allowed_cpus

    found = find(study, len(allowed_cpus()))
    if isinstance(found, Campaign):
        names = None if only is None else [name.strip() for name in only.split(",")]
        measure_campaign(found, names, Choices(**common))
    elif only is not None:
        raise StudyError(f"--only is for campaigns, {study} is one study", "no --only")
    else:
        measure_study(found, Choices(**common))

"""``concurve studies``: what is packaged."""

from __future__ import annotations

import click

HELP = """List the packaged studies and campaigns.

\b
Example:
  concurve studies
"""


@click.command("studies", help=HELP)
def verb() -> None:
    """Print each packaged study with its question, and each campaign with its studies."""
    from concurve.definition.campaign_file import load_campaign
    from concurve.definition.catalogue import campaigns, entries, find_study
    from concurve.definition.study_file import CAMPAIGN_NAME
    from concurve.host.machine import allowed_cpus

    for entry in entries():
        study = find_study(entry.name, len(allowed_cpus()))
        print(entry.name)
        print(f"  {study.question}")
        print(f"  factors: {', '.join(factor.name for factor in study.factors)}")
        if study.source:
            print(f"  source:  {study.source}")
    for entry in campaigns():
        campaign = load_campaign(entry.folder / CAMPAIGN_NAME, len(allowed_cpus()))
        print(entry.name)
        print(f"  {campaign.question}")
        for member in campaign.studies:
            case = member.study.test_case
            print(f"  {member.name}: {case.objective if case else member.study.question}")
        if campaign.source:
            print(f"  source:  {campaign.source}")

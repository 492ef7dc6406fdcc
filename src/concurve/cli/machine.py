"""``concurve machine``: what this host is and what it grants."""

from __future__ import annotations

import click

HELP = """Describe this host and what it grants.

\b
Example:
  concurve machine check
"""

CHECK_HELP = """Check what makes figures of this machine doubtful, and name the remedy.

\b
Examples:
  concurve machine check
  concurve machine check --json
"""


@click.group("machine", help=HELP)
def verb() -> None:
    """Group of verbs about the host."""


@verb.command(
    "check", help=CHECK_HELP, short_help="Check what makes figures of this machine doubtful."
)
@click.option("--json", is_flag=True, help="Print the facts as JSON.")
def check(json: bool) -> None:
    """Print what was found, one line each."""
    import msgspec

    from concurve.cli.streams import tell
    from concurve.engine.local import LocalEngine
    from concurve.host.machine import describe_machine
    from concurve.host.machine_check import inspect

    facts, probes = describe_machine(), LocalEngine().probes()
    if json:
        both = msgspec.json.encode({"machine": facts, "probes": probes})
        print(msgspec.json.format(both).decode())
        return
    for item in inspect(facts, probes):
        tell(f"{item.mark}  {item.name:<24} {item.says}")
        if item.remedy:
            tell(f"    {'':<24}→ {item.remedy}")

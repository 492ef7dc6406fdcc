"""``concurve doctor``: what this machine grants, what disturbs it, and how to quieten it."""

from __future__ import annotations

import click

HELP = """Say what this machine grants to measurements, and how to quieten it.

\b
Example:
  concurve doctor

Looks at the machine for two seconds, changes nothing, and prints the command for each remedy.
concurve machine check judges its CPUs and settings; with --json it prints all that is known.
"""


@click.command(
    "doctor", help=HELP, short_help="Say what this machine grants, and how to quieten it."
)
def verb() -> None:
    """Print what was found, with the command for each remedy."""
    from concurve.cli.machine import load_item, present_load, print_items
    from concurve.cli.streams import tell, tell_beside
    from concurve.engine.local import LocalEngine
    from concurve.host import doctor, native
    from concurve.host.machine import describe_machine
    from concurve.host.machine_check import sources

    facts = describe_machine()
    quiet = [load_item(*present_load()), *doctor.quieting(facts)]
    granted = doctor.grants(facts, runner=native.runner())
    tell_beside("What matters most  ", doctor.foremost([*quiet, *granted]))
    tell("How quiet it is, and how to quieten it")
    print_items(quiet)
    tell("What it grants")
    print_items([*granted, *sources(LocalEngine().probes())])
    tell("its CPUs and settings, judged: concurve machine check")

"""``concurve machine``: what this host is and what it grants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from concurve.host.load import Load
    from concurve.host.machine_check import Item

#: How long the load is looked at, here and by ``concurve doctor``.
LOOK_SECONDS = 2.0
#: In so many parts, which show whether load comes in bursts.
LOOK_PARTS = 8

HELP = """Describe this host and what it grants, and undo what killed runs have left.

\b
Examples:
  concurve machine check
  concurve machine repair
"""

CHECK_HELP = """Check what makes figures of this machine doubtful, and name the remedy.

\b
Examples:
  concurve machine check
  concurve machine check --json

Looks at the load for two seconds, as concurve doctor does, which also says how to quieten the
machine, and what it grants. Load in bursts may show in one look, and not in the next.
"""


REPAIR_HELP = """Show what killed runs have left on this machine, and undo it: mounts, loop
devices, and settings of disks.

\b
Examples:
  concurve machine repair --dry-run
  concurve machine repair

A run whose study has a volume does the same before its first trial; other runs leave it alone.
"""


@click.group("machine", help=HELP, short_help="Describe this host, and undo what killed runs left.")
def verb() -> None:
    """Group of verbs about the host."""


@verb.command(
    "check", help=CHECK_HELP, short_help="Check what makes figures of this machine doubtful."
)
@click.option("--json", is_flag=True, help="Print the facts as JSON.")
def check(json: bool) -> None:
    """Print what was found, one line each; the load of the machine over two seconds."""
    import msgspec

    from concurve.cli.streams import tell
    from concurve.engine.local import LocalEngine
    from concurve.host.machine import describe_machine
    from concurve.host.machine_check import doubts

    facts = describe_machine()
    load, parts = present_load()
    if json:
        probes = LocalEngine().probes()
        found = {"machine": facts, "load": load._asdict(), "probes": probes}
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    print_items([load_item(load, parts), *doubts(facts)])
    tell("how to quieten it, and what it grants: concurve doctor")


def present_load() -> tuple[Load, list[Load]]:
    """The load of the machine now, and in each part of the time of the look."""
    import time

    from concurve.host.load import loads_over

    return loads_over(LOOK_SECONDS, LOOK_PARTS, time.sleep)


def load_item(load: Load, parts: Sequence[Load] = ()) -> Item:
    """The present load, judged as a trial under it would be; ``parts`` of the look show bursts."""
    from concurve import words
    from concurve.host.machine_check import Item
    from concurve.measuring.quiet import disturbance, end_these, is_in_bursts, is_quiet, yields

    if says := disturbance(load):
        end = end_these(load, ", or ")
        if runs := sorted({it.run for it in load.seen if it.run is not None}):
            pids = words.listed([f"pid {run}" for run in runs])
            whom = words.verb(len(runs), "that concurve run", "those concurve runs")
            remedy = f"{end}wait for {whom} ({pids}): `concurve sweep --wait-quiet 30m …`"
        elif end and is_in_bursts(load, parts):
            named = load.seen[0]
            remedy = end_these(
                load, f"; {named.name} (pid {named.pid}) runs in bursts: waiting hardly helps"
            )
        else:
            remedy = f"{end}wait: `concurve sweep --wait-quiet 5m …`"
        if yields(load):
            remedy = (
                "none for a program with a CPU for each of its threads: these have the lowest "
                f"priority already; for more threads, or a server and its load: {remedy}"
            )
        return Item("!!", "load now", says.what, remedy)
    said = f"other processes use {load.foreign * 100:.1f} % of the CPU time"
    if all(map(is_quiet, parts)):
        return Item("ok", "load now", said)
    # Quiet on the whole: the next look may show it otherwise, and so does a short trial.
    most = max(max(part.foreign, part.steal) for part in parts)
    return Item(
        "--",
        "load now",
        f"{said} in {LOOK_SECONDS:g} s, but they or the hypervisor up to {most * 100:.0f} % for "
        f"{LOOK_SECONDS / LOOK_PARTS:g} s of these: another look may see more, or none of it",
    )


def print_items(items: list[Item]) -> None:
    """A line for each item, and one for its remedy."""
    from concurve.cli.streams import tell_beside, tell_remedy

    for item in items:
        head = f"{item.mark}  {item.name:<24} "
        tell_beside(head, item.says)
        if item.remedy:
            tell_remedy(item.remedy, len(head))


@verb.command("repair", help=REPAIR_HELP, short_help="Undo what killed runs have left.")
@click.option("--dry-run", is_flag=True, help="Show what is left, and undo nothing.")
def repair(dry_run: bool) -> None:
    """Print what killed runs have left, and undo it."""
    import os

    from concurve.attendants import volumes
    from concurve.cli.showing import note
    from concurve.cli.streams import tell
    from concurve.errors import HostError

    if os.geteuid() != 0:
        raise HostError("only root sees what a killed run has left of its volumes", "run as root")
    left = volumes.left()
    if not left:
        tell("nothing is left")
        return
    for item in left:
        tell(f"a volume of a killed run ({item.path or 'its journal is lost'}):")
        for line in (item.damage, *(step.says for step in item.steps)):
            if line:
                tell(f"  {line}")
    if not dry_run:
        volumes.repair_all(note)
        tell("undone")

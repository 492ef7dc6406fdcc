"""``concurve hosts``: the machines that measurements may use, and the Ray that connects them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from concurve.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from concurve.definition.inventory import Inventory
    from concurve.hosts.commands import Step
    from concurve.hosts.engine import HostsEngine

#: The file of hosts where none is named.
FILE = Path("hosts.toml")

HELP = """List the hosts of a file and what each grants, and start and stop Ray on them.

\b
Examples:
  concurve hosts list
  concurve hosts list lab.toml --offline
  concurve hosts up lab.toml --dry-run
  concurve hosts down lab.toml
"""

LIST_HELP = """List the hosts of a file, with what each of them grants, how far its clock is from
ours, and how long a question takes. Ray must run on them.

\b
Examples:
  concurve hosts list
  concurve hosts list lab.toml --offline
  concurve hosts list --ray 10.0.0.11:6379
"""

UP_HELP = """Start Ray on the hosts of a file, through OpenSSH, with token authentication.

\b
Examples:
  concurve hosts up --dry-run
  concurve hosts up lab.toml
"""

DOWN_HELP = """Stop the Ray that concurve started on the hosts of a file; another Ray there goes on.

\b
Examples:
  concurve hosts down --dry-run
  concurve hosts down lab.toml
"""

_file = click.argument("file", metavar="[FILE.toml]", default=FILE, type=options.FILE_TYPE)
_dry_run = click.option("--dry-run", is_flag=True, help="Print every command; run nothing.")


@click.group("hosts", help=HELP, short_help="List hosts and what they grant; start and stop Ray.")
def verb() -> None:
    """Group of verbs about hosts."""


@verb.command("list", help=LIST_HELP, short_help="List hosts and what they grant.")
@_file
@click.option("--offline", is_flag=True, help="Only what the file says; ask no host.")
@click.option("--ray", metavar="ADDRESS", help="The nodes of this Ray cluster, without a file.")
def list_hosts(file: Path, offline: bool, ray: str | None) -> None:
    """Print the hosts, and what they answer."""
    from concurve.cli.measuring import inventory_of
    from concurve.hosts.ray_cluster import connected

    inventory = inventory_of(file, ray)
    _print_file(inventory)
    if offline:
        return
    with connected(inventory, inventory.hosts) as engine:
        _print_answers(engine)


@verb.command("up", help=UP_HELP, short_help="Start Ray on the hosts.")
@_file
@_dry_run
def up(file: Path, dry_run: bool) -> None:
    """Start Ray, in stages."""
    from concurve.definition.hosts_file import load_hosts
    from concurve.hosts import commands

    _run(commands.up(load_hosts(file)), dry_run)


@verb.command("down", help=DOWN_HELP, short_help="Stop Ray on the hosts.")
@_file
@_dry_run
def down(file: Path, dry_run: bool) -> None:
    """Stop Ray, the head last."""
    from concurve.definition.hosts_file import load_hosts
    from concurve.hosts import commands

    _run(commands.down(load_hosts(file)), dry_run)


def _run(stages: Sequence[Sequence[Step]], dry_run: bool) -> None:
    """Run the stages, or print their commands."""
    from concurve.cli.streams import tell
    from concurve.hosts import commands

    for stage in stages:
        if dry_run:
            for step in stage:
                tell(f"{step.host}: {step.says}\n  {step.line}")
            continue
        commands.run(stage)
        for step in stage:
            if not step.is_check:
                tell(f"{step.host}: {step.says}: done")


def _print_file(inventory: Inventory) -> None:
    from concurve.cli.streams import tell

    cluster = inventory.cluster
    tell(f"Ray's head on {cluster.head}, port {cluster.port}")
    for host in inventory.hosts:
        facts = [host.address]
        if host.labels:
            facts.append(f"labels {', '.join(host.labels)}")
        if host.cpus:
            facts.append(f"measures on CPUs {_cpus(host.cpus)}")
        if host.housekeeping:
            facts.append(f"daemons on CPUs {_cpus(host.housekeeping)}")
        tell(f"{host.name}: {'; '.join(facts)}")


def _print_answers(engine: HostsEngine) -> None:
    """What each host grants, as ``concurve machine check`` says it, and its clock."""
    from concurve.cli.machine import print_items
    from concurve.cli.streams import tell
    from concurve.host.machine_check import inspect

    for name, host in engine.hosts.items():
        found, offset = host.description, host.offset()
        tell(f"{name}: concurve {found.version}, Python {found.python}")
        tell(
            f"  clock: {offset.ns / 1e6:+.3f} ms from ours, ±{offset.error_ns / 1e6:.3f} ms "
            f"(shortest round trip {host.round_trip_ns / 1e6:.3f} ms)"
        )
        print_items(inspect(found.machine, found.probes))


def _cpus(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))

"""``concurve hosts``: the machines that measurements may use, and the Ray that connects them."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from concurve.cli import options
from concurve.cli.streams import tell
from concurve.errors import BusyError, ConcurveError, HostError, RunError
from concurve.words import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from concurve.definition.inventory import Inventory
    from concurve.hosts.commands import Step
    from concurve.hosts.host import ConnectedHost

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
    from concurve.hosts.ray_cluster import each_connected

    inventory = inventory_of(file, ray)
    _print_file(inventory)
    if offline:
        return
    lost = []
    for name, found in each_connected(inventory):
        try:
            if isinstance(found, ConcurveError):
                raise found
            _print_answers(name, found)
        except (HostError, RunError) as error:
            _tell_of_failure(name, error)
            lost.append((name, error))
    if lost:
        raise HostError(f"no answer of {listed([name for name, _ in lost])}", lost[0][1].remedy)


@verb.command("up", help=UP_HELP, short_help="Start Ray on the hosts.")
@_file
@_dry_run
def up(file: Path, dry_run: bool) -> None:
    """Start Ray, in stages."""
    from concurve.cli.showing import note
    from concurve.definition.hosts_file import load_hosts
    from concurve.hosts import commands
    from concurve.hosts.names import check_names

    inventory = load_hosts(file)
    if dry_run:
        _print_steps(commands.up(inventory))
        return
    check_names(inventory)
    begun: list[str] = []
    try:
        for stage in commands.up(inventory):
            begun += [step.host for step in stage if step.is_start]
            commands.run(stage)
            for step in stage:
                if not step.is_check:
                    tell(f"{step.host}: {step.says}: done")
    except BaseException:
        if begun:
            down = f"concurve hosts down {quote(str(file))}"
            note(f"Ray may run on {listed(begun)} now: {down} stops it")
        raise


@verb.command("down", help=DOWN_HELP, short_help="Stop Ray on the hosts.")
@_file
@_dry_run
@click.option("--force", is_flag=True, help="Also under a measurement that runs there: it fails.")
def down(file: Path, dry_run: bool, force: bool) -> None:
    """Stop Ray, the head last; where a host cannot be reached, that of the others."""
    from concurve.definition.hosts_file import load_hosts
    from concurve.hosts import commands

    inventory = load_hosts(file)
    if dry_run:
        looks = [] if force else [commands.looks(inventory)]
        _print_steps([*looks, *commands.down(inventory)])
        return
    if not force:
        _refuse_busy(commands.looks(inventory), file)
    failed = []
    for stage in commands.down(inventory):
        for step, found in zip(stage, commands.run_each(stage), strict=True):
            if isinstance(found, HostError):
                _tell_of_failure(step.host, found)
                failed.append((step.host, found))
            else:
                tell(f"{step.host}: Ray: {found.strip()}")
    if failed:
        names = listed([name for name, _ in failed])
        raise HostError(f"Ray was not stopped on {names}", failed[0][1].remedy)


def _refuse_busy(looks: Sequence[Step], file: Path) -> None:
    """Refuse to stop a Ray by which something is measured. Whether a host can be reached is seen
    when it is stopped."""
    from concurve.hosts import commands

    for step, found in zip(looks, commands.run_each(looks), strict=True):
        if not isinstance(found, HostError) and (who := found.strip()):
            raise BusyError(
                f"host {step.host}: a measurement runs there: {who}",
                f"wait until it is done; concurve hosts down {quote(str(file))} --force ends it: "
                "the trial that runs is lost, and concurve resume goes on after it",
            )


def _print_steps(stages: Sequence[Sequence[Step]]) -> None:
    for stage in stages:
        for step in stage:
            tell(f"{step.host}: {step.says}\n  {step.line}")


def _tell_of_failure(name: str, error: ConcurveError) -> None:
    """Name a host and why it did not answer, without the remedy, which is told once."""
    what = error.what.removeprefix(f"host {name}: ")
    tell(what if what.startswith(f"host {name}") else f"{name}: {what}")


def _print_file(inventory: Inventory) -> None:
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


def _print_answers(name: str, host: ConnectedHost) -> None:
    """What a host grants, as ``concurve machine check`` says it, and its clock."""
    from concurve.cli.machine import print_items
    from concurve.host.machine_check import inspect

    found = host.description
    tell(f"{name}: OK: concurve {found.version}, Python {found.python}")
    if found.busy:
        tell(f"  busy: a measurement runs there: {found.busy}; its clock is not compared meanwhile")
    else:
        offset = host.offset()
        tell(
            f"  clock: {offset.ns / 1e6:+.3f} ms from ours, ±{offset.error_ns / 1e6:.3f} ms "
            f"(shortest round trip {host.round_trip_ns / 1e6:.3f} ms)"
        )
    print_items(inspect(found.machine, found.probes))


def _cpus(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))

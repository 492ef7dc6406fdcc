"""``concurve monitor``: what a running reference server does with its time."""

from __future__ import annotations

import sys
import time

import click

HELP = """Say what a running concurve-server did over an interval.

\b
Examples:
  concurve monitor 127.0.0.1:7379
  concurve monitor 127.0.0.1:7379 --interval 2s --count 5
  concurve monitor :7379 --json

It shows each engine's time by its own clock and by the kernel's account, what was done for each
second of CPU time, the statement cache, and the latches with their contention. Ctrl-C ends an
interval early and shows it.
"""


@click.command("monitor", help=HELP, short_help="Say what a running concurve-server does.")
@click.argument("place", metavar="HOST:PORT")
@click.option("--interval", metavar="TIME", default="10s", show_default=True, help="How long.")
@click.option(
    "--count", type=click.IntRange(min=1), default=1, show_default=True, help="How many intervals."
)
@click.option(
    "--password-from", metavar="VARIABLE", help="Environment variable with the server's password."
)
@click.option("--json", is_flag=True, help="Print a line of JSON for each interval.")
def verb(place: str, interval: str, count: int, password_from: str | None, json: bool) -> None:
    """Print ``count`` intervals, each as soon as it is over."""
    import msgspec

    from concurve.cli.streams import tell_json
    from concurve.definition.units import parse_duration
    from concurve.monitor.asking import address_of, watching
    from concurve.monitor.interval import between
    from concurve.monitor.show import lines
    from concurve.report.console import fit_encoding
    from concurve.secrets import KNOWN

    host, port = address_of(place)
    length = parse_duration(interval, "--interval")
    password = None if password_from is None else KNOWN.password_from(password_from)
    with watching(host, port) as server:
        if password is not None:
            server.log_in(password)
        before = server.read()
        for number in range(count):
            stopped = _wait(length)
            after = server.read()
            found = between(before, after, server.place)
            if json:
                tell_json(msgspec.json.encode(found))
            else:
                text = "\n".join(lines(found, server.place))
                print(fit_encoding(f"{chr(10) if number else ''}{text}", sys.stdout), flush=True)
            if stopped:
                raise KeyboardInterrupt
            before = after


def _wait(length: float) -> bool:
    """Wait so many seconds; ``True`` if Ctrl-C ended the wait early."""
    try:
        time.sleep(length)
    except KeyboardInterrupt:
        return True
    return False

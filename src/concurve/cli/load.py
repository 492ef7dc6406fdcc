"""``concurve load``: load on a server, by hand."""

from __future__ import annotations

import os
import sys

import click

HELP = """Put load on a server, and say how it answered.

\b
Examples:
  concurve load redis://127.0.0.1:6379 --sessions 50 --duration 10s
  concurve load redis://127.0.0.1:6379 --mix get=80,set=20 --rate 20000
  concurve load redis://127.0.0.1:6379 --slo p99=2ms,errors=0.1%
  concurve load redis://127.0.0.1:6379 --slo p99=2ms --rate 20000   # exit code 0, 10 or 11
  concurve load sqlite:bank.db --workload tpcb-rw3 --init --verify
  concurve load redis://127.0.0.1:6379 --duration 10s --attach 4711

--attach PID, unit:NAME or container:NAME also tells the CPU time and the threads of a server that
runs on this machine; nothing is done to it. --secret NAME hides the value of this environment
variable, and --secret NAME=TEXT this text, in all that is printed. All other arguments go to the
program concurve-load, which studies use as well: concurve load --help shows them.
"""


@click.command(
    "load",
    help=HELP,
    short_help="Put load on a server, and say how it answered.",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def verb(arguments: tuple[str, ...]) -> None:
    """Become the load generator: signals, the terminal and the exit code are its own."""
    from concurve.cli.hiding import check_marked
    from concurve.cli.load_attached import load_attached, take_attach
    from concurve.cli.load_hidden import load_hidden, take_secrets
    from concurve.host.native import binary
    from concurve.measuring.packaged import PROGRAMS
    from concurve.secrets import KNOWN

    program = binary(PROGRAMS["load"])
    secrets, rest = take_secrets(arguments)
    check_marked(secrets, ())
    attach, rest = take_attach(rest)
    if attach is not None:
        sys.exit(load_attached(str(program), rest, attach))
    revealed = [KNOWN.reveal(argument) for argument in rest]
    if secrets or revealed != list(rest):
        sys.exit(load_hidden(str(program), revealed))
    sys.stdout.flush()
    os.execv(program, ["concurve load", *revealed])

"""``concurve load``: load on a server, by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from concurve.measuring.attached_load import Loaded

HELP = """Put load on a server, and say how it answered.

\b
Examples:
  concurve load redis://127.0.0.1:6379 --sessions 50 --duration 10s
  concurve load redis://127.0.0.1:6379 --mix get=80,set=20 --rate 20000
  concurve load redis://127.0.0.1:6379 --rate 50% --duration 10s
  concurve load redis://127.0.0.1:6379 --slo p99=2ms,errors=0.1%
  concurve load redis://127.0.0.1:6379 --slo p99=2ms --rate 20000   # exit code 0, 10 or 11
  concurve load sqlite:bank.db --workload tpcb-rw3 --init --verify
  concurve load redis://127.0.0.1:6379 --duration 10s --attach 4711

--attach PID, unit:NAME or container:NAME also tells the CPU time and the threads of a server that
runs on this machine; nothing is done to it. --secret NAME hides the value of this environment
variable, and --secret NAME=TEXT this text, in all that is printed. All other arguments go to the
program concurve-load, which studies use as well: concurve load --help shows all of them.
"""


_ATTACH = "--attach"
#: The option of the load generator with which standard output is JSON.
_JSON = "--json"

#: What ``concurve load --help`` says beside what its program says of its own options.
_OWN_HELP = """
Options of concurve load:
      --attach <PID|unit:NAME|container:NAME>
          Tell the CPU time and the threads of a server that runs here, too;
          nothing is done to it
      --secret <NAME|NAME=TEXT>
          Hide the value of this environment variable, or this text, in all that
          is printed
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
    from concurve.cli.load_hidden import load_hidden
    from concurve.cli.slips import refuse_of_load
    from concurve.definition.hiding import check_marked
    from concurve.host.native import binary
    from concurve.measuring.packaged import PROGRAMS
    from concurve.secrets import CALLED, KNOWN, NAMING_OPTIONS

    program = binary(PROGRAMS["load"])
    (secret,) = NAMING_OPTIONS
    if _HELP & set(arguments):
        sys.stdout.write(_help(str(program), arguments))
        return
    refuse_of_load(arguments)
    secrets, rest = _take(secret, arguments)
    check_marked(secrets, ())
    attach, rest = take_attach(rest)
    if attach is not None:
        sys.exit(_attached(str(program), rest, attach))
    revealed = [KNOWN.reveal(argument) for argument in rest]
    if secrets or revealed != list(rest):
        sys.exit(load_hidden(str(program), revealed, is_json=_JSON in rest))
    sys.stdout.flush()
    os.execve(program, ["concurve load", *revealed], {**os.environ, **CALLED})


#: The options of the program that print its help.
_HELP = {"-h", "--help"}


def _help(program: str, arguments: Sequence[str]) -> str:
    """What the program says of its options, under the name by which it was called, and ours."""
    import subprocess

    option = next(argument for argument in arguments if argument in _HELP)
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    return done.stdout.replace("concurve-load", "concurve load").rstrip() + "\n" + _OWN_HELP


def take_attach(arguments: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The value of ``--attach``, and the arguments without it.

    Raises:
        StudyError: no value, two of them, or an option in the place of one.
    """
    from concurve.errors import StudyError

    found, rest = _take(_ATTACH, arguments)
    if taken := next((value for value in found if value.startswith("-")), None):
        raise StudyError(f"{_ATTACH} took '{taken}' as its value", f"{_ATTACH} PID {taken}")
    if len(found) > 1 or found == [""]:
        raise StudyError(f"{_ATTACH} takes one process", f"{_ATTACH} 4711, or unit:NAME")
    return (found[0] if found else None), rest


def _take(option: str, arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The values of an option that the load generator does not know, and the other arguments."""
    found: list[str] = []
    rest: list[str] = []
    given = iter(arguments)
    for argument in given:
        if argument == option:
            found.append(next(given, ""))
        elif argument.startswith(f"{option}="):
            found.append(argument.partition("=")[2])
        else:
            rest.append(argument)
    return found, tuple(rest)


def _attached(program: str, arguments: Sequence[str], attach: str) -> int:
    """Load the server, print who disturbed the load, its figures, what the server used and at last
    what failed, and give the exit code of the load. Standard output that is JSON stays so: what the
    server used is a key of it.

    Raises:
        HostError: there is no such process, or it ended meanwhile.
        StudyError: the text names no process.
    """
    from concurve.engine.local import LocalEngine
    from concurve.errors import HostError
    from concurve.measuring.attached_load import load_attached

    done = load_attached(LocalEngine(), program, arguments, attach, _ATTACH)
    try:
        _show(done, is_json=_JSON in arguments)
        sys.stdout.flush()
    finally:
        # What failed stands below the figures, and is told where they cannot be written as well.
        sys.stderr.write(done.stderr)
    if done.server_ended:
        raise HostError(f"{_ATTACH} {attach}: {done.server_ended}", "the process that runs now")
    return done.code


def _show(done: Loaded, is_json: bool) -> None:
    """Print who disturbed the load, its figures, and what the server used."""
    from concurve.cli.streams import say, tell, tell_json
    from concurve.measuring.attached_load import server_lines, with_server

    note = say if is_json else tell
    if done.disturbed and done.server:  # else nothing was measured
        note(f"in doubt: the machine was busy: {done.disturbed}")
    cpus, whole = os.cpu_count() or 1, None
    if is_json and done.server:
        whole = with_server(done.stdout, done.server, done.disturbed, cpus)
    if is_json and done.stdout:
        tell_json((whole or done.stdout).encode())
    else:
        sys.stdout.write(done.stdout)
    if done.server and not done.server_ended and not whole:
        for line in server_lines(done.server, done.load, cpus, done.disturbed):
            note(line)

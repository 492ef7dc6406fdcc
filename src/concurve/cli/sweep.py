"""``concurve sweep``: any command over levels of its parameters."""

from __future__ import annotations

from typing import Any

import click

from concurve.cli import options

HELP = """Measure a command over all combinations of its parameters' levels.

\b
Examples:
  concurve sweep -P threads 1,2,4,8 -- ./renderer --threads {threads}
  concurve sweep -P n 1..64*2 -P cpus 1,2 --cpus {cpus} -- ./mine {n}
  concurve sweep -P n 50%,100% --extract 'rate=(\\d+) req/s:1/s' -- ./bench {n}
  concurve sweep -P w 1,2,4 --server './serve -p {free_port} -w {w}'
      --ready tcp:{free_port} -- ./client 127.0.0.1:{free_port}
  concurve sweep -P c 1,8,64 --attach 4711 -- redis-benchmark -c {c}

{NAME} in the command, in --cpus, --nice, --policy, --env, --background, --server, --ready and
the hooks is replaced by the level of parameter NAME; {{NAME}} stands for the literal text. Trials
run in fresh processes, interleaved in randomised blocks; every trial is stored before the next.
"""


@click.command(
    "sweep",
    help=HELP,
    short_help="Measure any command over levels of its parameters.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND [ARGUMENT]...")
@click.option(
    "-P",
    "--parameter",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME LEVELS",
    help="A parameter and its levels: 1,2,4 or 1..16 or 1..64*2 or 50%,100%. Repeatable: all "
    "combinations.",
)
@click.option(
    "--cpus",
    metavar="N|LIST",
    help="CPUs the command may use: a count, a list 0,1 or 2-3, or {cpus}.",
)
@click.option("--nice", metavar="N", help="Nice value, -20 to 19.")
@click.option(
    "--policy",
    metavar="CLASS",
    help="Scheduling policy: other, batch, idle, fifo:P or rr:P.",
)
@click.option(
    "--env", multiple=True, metavar="NAME=VALUE", help="Environment variable. Repeatable."
)
@click.option(
    "--setup", metavar="CMD", help="Shell command once for each cell, before the first trial."
)
@click.option("--prepare", metavar="CMD", help="Shell command before each trial.")
@click.option("--conclude", metavar="CMD", help="Shell command after each trial.")
@click.option(
    "--cleanup", metavar="CMD", help="Shell command once for each cell, after the last trial."
)
@click.option(
    "--check",
    metavar="CMD",
    help="Validator of each trial, fed its output: 0 accept, 1 redo, 2 give up.",
)
@click.option(
    "--background",
    multiple=True,
    metavar="N[@nice=..,cpus=..]",
    help="Busy competitors beside the command. Repeatable.",
)
@click.option(
    "--server",
    metavar="CMD|URL",
    help="A server beside the command: a command that each trial starts, or the URL of one "
    "elsewhere.",
)
@click.option(
    "--ready",
    metavar="HOW",
    help="When the server is ready: tcp:PORT, tcp:HOST:PORT, line:REGEX of its output, "
    "command:CMD that exits with 0, report, or launch.",
)
@click.option(
    "--ready-within", metavar="TIME", help="Limit until the server is ready (default: 60s)."
)
@click.option(
    "--attach",
    metavar="PID|unit:NAME|container:NAME",
    help="A server that runs already: its CPU time, threads and waits are accounted, and nothing "
    "is done to it.",
)
@click.option(
    "--counters",
    metavar="URL|command:CMD",
    help="Counters of a server elsewhere, in Prometheus' text format.",
)
@click.option(
    "--extract",
    "extracts",
    multiple=True,
    metavar="NAME=REGEX[:unit]",
    help="Read a figure out of the output (group 1). Repeatable.",
)
@click.option(
    "--work",
    metavar="NAME",
    help="Parameter that counts as concurrency (default: threads and the like, or the only one).",
)
@click.option(
    "--base",
    metavar="NAME=LEVEL,..",
    help="Levels of the base cell (default: the lowest concurrency).",
)
@click.option("--name", metavar="NAME", help="Name under which the run is stored.")
@options.protocol
@options.exports
@options.db
def verb(
    command: tuple[str, ...],
    parameters: tuple[tuple[str, str], ...],
    cpus: str | None,
    nice: str | None,
    policy: str | None,
    env: tuple[str, ...],
    setup: str | None,
    prepare: str | None,
    conclude: str | None,
    cleanup: str | None,
    check: str | None,
    background: tuple[str, ...],
    server: str | None,
    ready: str | None,
    ready_within: str | None,
    attach: str | None,
    counters: str | None,
    extracts: tuple[str, ...],
    work: str | None,
    base: str | None,
    name: str | None,
    **common: Any,
) -> None:
    """Build the study and measure it."""
    from concurve.cli.measuring import Choices, measure_study
    from concurve.definition import study_line
    from concurve.definition.beside_line import Beside
    from concurve.definition.controls import ControlsTemplate
    from concurve.definition.study import Hooks
    from concurve.host.machine import allowed_cpus

    study = study_line.sweep_study(
        command,
        parameters,
        len(allowed_cpus()),
        controls=ControlsTemplate(cpus=cpus, nice=nice, policy=policy),
        env=study_line.parse_environment(env),
        hooks=Hooks(setup=setup, prepare=prepare, conclude=conclude, cleanup=cleanup, check=check),
        background=background,
        beside=Beside(
            server=server,
            ready=ready,
            ready_within=ready_within,
            attach=attach,
            counters=counters,
        ),
        extracts=extracts,
        work=work,
        base_text=base,
        name=name,
    )
    measure_study(study, Choices(**common))

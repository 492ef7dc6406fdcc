"""``concurve web``: the laboratory in a browser."""

from __future__ import annotations

import click

from concurve.cli import options

HELP = """Show the laboratory in a browser: runs while they run, new ones, comparisons, histories.

\b
Examples:
  concurve web
  concurve web --port 0 --open
  concurve web --bind 0.0.0.0 --host lab.example.org

It prints an address with a token: whoever has it may start any command as this user. It listens to
loopback unless --bind says otherwise; nothing is encrypted, so elsewhere use a tunnel. Runs are
processes of their own, and go on when it ends. Ctrl-C ends it.
"""


@click.command("web", help=HELP, short_help="Show the laboratory in a browser.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8377,
    show_default=True,
    help="Port to listen to; 0: a free one.",
)
@click.option(
    "--bind",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen to.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another name by which browsers may ask for this server. Repeatable.",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the address in a browser.")
@options.db
def verb(port: int, bind: str, hosts: tuple[str, ...], is_opened: bool, db: str | None) -> None:
    """Serve until a signal ends it."""
    import contextlib
    import sys

    from concurve.cli.showing import note
    from concurve.cli.streams import tell
    from concurve.store import Store
    from concurve.web.opening import opening
    from concurve.web.server import listen, names_of, serve

    names = names_of(bind, hosts)
    Store(db).close()  # what is wrong with the store is said here, not in a browser
    listening = listen(bind, port)

    with opening() if is_opened else contextlib.nullcontext() as open_address:

        def announce(address: str) -> None:
            tell(address)
            sys.stdout.flush()
            if open_address is not None:
                open_address(address)

        for what in serve(db, listening, names, announce):
            note(f"{what} goes on; concurve runs shows it")

"""The command line: one module a verb; argv → one call; the only place that prints errors and
exits."""

from __future__ import annotations

import gc
import importlib
import io
import signal
import sys
from collections.abc import Sequence

import click

from concurve.cli.streams import (
    OutputError,
    exit_code_of,
    name_store,
    say,
    take_over_streams,
)
from concurve.errors import ConcurveError
from concurve.interruption import handled, interrupt
from concurve.version import __version__

HELP = """Measure how a program scales, and how sure that is.

\b
Examples:
  concurve sweep -P threads 1,2,4,8 -- ./renderer --threads {threads}
  concurve run thread-scaling --effort quick
  concurve show last
"""

#: The verbs, each a module of its name here, in the order in which one needs them.
VERBS = (
    "sweep", "run", "resume", "studies", "runs", "show", "explain", "report", "compare", "history",
    "export", "fit", "load", "monitor", "web", "machine", "hosts", "doctor", "completion",
)  # fmt: skip

#: Analysis of 100,000 trials allocates objects that live to its end: with Python's own thresholds,
#: (700, 10, 10), a quarter of its time is the garbage collector scanning them. Set for the command
#: alone, because the collector belongs to the process: a caller of the Python API keeps its own.
_GC_THRESHOLDS = (50_000, 10, 10)
#: The same of a view, which ends before it could leave much garbage.
_GC_THRESHOLDS_OF_VIEW = (300_000, 10, 10)
_VIEW = "show"

_HELP = "--help"

#: Names whose likeness to what was typed differs by no more are equally near.
_AS_NEAR = 0.05


class _Verbs(click.Group):
    """Imports a verb when it is called: each needs other parts of the laboratory."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # All for an unknown one: click then names the nearest.
        for name in (cmd_name,) if cmd_name in VERBS else VERBS:
            self.commands[name] = importlib.import_module(f"concurve.cli.{name}").verb
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, words = super().resolve_command(ctx, args)
        if command is not None:
            from concurve.cli.repeated import refuse_repeated

            refuse_repeated(ctx, command, words)
        return name, command, words


@click.group(
    "concurve", cls=_Verbs, help=HELP, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="concurve %(version)s")
def app() -> None:
    """Group of all verbs."""


def main() -> None:
    """Entry point of the ``concurve`` command."""
    try:
        _end_in_order()
        take_over_streams()
        is_view = sys.argv[1:2] == [_VIEW]
        gc.set_threshold(*(_GC_THRESHOLDS_OF_VIEW if is_view else _GC_THRESHOLDS))
        with handled():
            code = _run()
        sys.stdout.flush()
        if is_view:
            # When the interpreter ends, the collector looks at all that is left, twice: of a
            # hundred thousand trials for nearly a tenth of a second. It leaves out what is frozen.
            gc.freeze()
    except OutputError as error:
        code = exit_code_of(error)
    except KeyboardInterrupt:  # before the verb began, or once more when it had ended
        code = 130
    sys.stderr.flush()
    if "concurve.hosts.leaving" in sys.modules:
        from concurve.hosts.leaving import end_if_waited_for

        end_if_waited_for(code)
    if code:
        sys.exit(code)


def _run() -> int:
    """Run the verb; the exit code. Errors are said."""
    name_store(None)
    try:
        _hide_secrets()
        app(standalone_mode=False)
    except OutputError:
        raise
    except click.ClickException as error:
        if isinstance(error, click.UsageError):
            error = _with_meant(error)
        shown = io.StringIO()
        error.show(file=shown)
        say(shown.getvalue().rstrip())
        return error.exit_code
    except ConcurveError as error:
        say(f"concurve: {error}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("concurve: stopped")
        return 130
    except SystemExit as ended:  # of a verb with an exit code of its own; its output may yet fail
        return ended.code if isinstance(ended.code, int) else 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"concurve: {where}{error.strerror or error}\n  try: more space, or another place")
        return 1
    return 0


def _with_meant(error: click.UsageError) -> click.UsageError:
    """The error with what is meant, if that is known, or with the nearest options."""
    from concurve.cli.slips import as_meant

    if known := as_meant(error):
        return known
    if not isinstance(error, click.NoSuchOption):
        return error
    near = _nearest(error.option_name, error.possibilities or ())
    return click.NoSuchOption(error.option_name, error.message, near, error.ctx)


def _nearest(name: str, options: Sequence[str]) -> list[str]:
    """The options that are about as near to a name as the nearest: click names all that have a few
    letters in common."""
    from difflib import SequenceMatcher

    near = {option: SequenceMatcher(None, name, option).ratio() for option in options}
    if max(near, key=lambda option: near[option], default="") == _HELP and name[2:3] != "h":
        return []  # click finds a few letters of nearly any name in it
    return [it for it in options if near[it] >= max(near.values(), default=0.0) - _AS_NEAR]


def _hide_secrets() -> None:
    """Take the secrets out of the command line. Without a verb there are none."""
    if sys.argv[1:2] and sys.argv[1] in VERBS:
        from concurve.cli.hiding import hide_secrets

        hide_secrets(sys.argv[1])


def _end_in_order() -> None:
    """Let the signals that end a process stop a run in order, as Ctrl-C does; one that the caller
    ignores, as nohup does, stays ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)

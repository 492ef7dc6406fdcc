"""The command line: one module a verb; argv → one call; the only place that prints errors and
exits."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
from types import FrameType

import click

from concurve.errors import ConcurveError
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
    "export", "fit", "load", "monitor", "machine", "completion",
)  # fmt: skip

#: Analysis of 100,000 trials allocates objects that live to its end: with Python's own thresholds,
#: (700, 10, 10), a quarter of its time is the garbage collector scanning them. Set for the command
#: alone, because the collector belongs to the process: a caller of the Python API keeps its own.
_GC_THRESHOLDS = (50_000, 10, 10)

#: Errors of a full disk on standard output. Modules that write files name the file themselves.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Verbs(click.Group):
    """Imports a verb when it is called: each needs other parts of the laboratory."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # All for an unknown one: click then names the nearest.
        for name in (cmd_name,) if cmd_name in VERBS else VERBS:
            self.commands[name] = importlib.import_module(f"concurve.cli.{name}").verb
        return super().get_command(ctx, cmd_name)


@click.group(
    "concurve", cls=_Verbs, help=HELP, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="concurve %(version)s")
def app() -> None:
    """Group of all verbs."""


def main() -> None:
    """Entry point of the ``concurve`` command."""
    signal.signal(signal.SIGTERM, _interrupt)
    _replace_closed_streams()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        app(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ConcurveError as error:
        print(f"concurve: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        print("concurve: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe: print nothing.
        _write_no_more()
        sys.exit(141)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _write_no_more()
        print(
            f"concurve: standard output cannot be written: {error.strerror}\n  try: more space",
            file=sys.stderr,
        )
        sys.exit(1)


def _replace_closed_streams() -> None:
    """What the caller has closed (``>&-``) is read from and written to nowhere: Python sets such a
    stream to ``None``, and whatever is opened next would get its descriptor."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != descriptor:
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def _write_no_more() -> None:
    """Keep Python from flushing the rest at its exit, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt

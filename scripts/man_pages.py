"""Write the manual pages of the command line, one for each verb, from its definition.

Usage: man_pages.py FOLDER
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from concurve.cli.grouped import Grouped

#: In help texts, the paragraph after it keeps its line breaks (click's convention).
_VERBATIM = "\b"


def pages(command: click.Command, name: str, version: str) -> dict[str, str]:
    """The manual pages of a command and of all its verbs: file name (``concurve-sweep.1``) → text
    in the macros of man(7)."""
    return dict(_pages(_context(command, name, None), version))


def _pages(context: click.Context, version: str) -> Iterator[tuple[str, str]]:
    yield f"{_title(context)}.1", "\n".join(_page(context, version)) + "\n"
    for verb in _verbs(context):
        yield from _pages(verb, version)


def _page(context: click.Context, version: str) -> Iterator[str]:
    """The lines of one page."""
    command = context.command
    yield f'.TH "{_escape(_title(context).upper())}" 1 "" "concurve {version}" "User Commands"'
    # A word that is broken is not found by who searches for it, and options are no words to break.
    yield ".nh"
    yield ".SH NAME"
    yield f"{_escape(_title(context))} \\- {_escape(_summary(context).rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {_escape(context.command_path)}"
    yield _escape(" ".join(command.collect_usage_pieces(context)))
    yield ".SH DESCRIPTION"
    yield from _description(command.help or "")
    yield ".SH OPTIONS"
    if isinstance(command, Grouped):
        for heading, parameters in command.grouped(context):
            yield f".SS {_escape(heading.capitalize())}"
            yield from _options(parameters, context)
    else:
        yield from _options(command.get_params(context), context)
    verbs = _verbs(context)
    if verbs:
        yield ".SH COMMANDS"
    for verb in verbs:
        yield from (".TP", f"\\fB{_escape(_title(verb))}\\fR(1)", _escape(_summary(verb)))
    if context.parent:
        yield ".SH SEE ALSO"
        yield f"\\fB{_escape(_title(context.parent))}\\fR(1)"


def _options(parameters: Iterable[click.Parameter], context: click.Context) -> Iterator[str]:
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record and isinstance(parameter, click.Option):
            yield from (".TP", f"\\fB{_escape(record[0])}\\fR", _escape(record[1]))


def _description(text: str) -> Iterator[str]:
    """A help text: paragraphs between empty lines; those marked as verbatim keep their lines."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = paragraph.splitlines()
        verbatim = lines[0].strip() == _VERBATIM
        yield ".PP"
        yield from [".nf", *map(_escape, lines[1:]), ".fi"] if verbatim else map(_escape, lines)


def _escape(text: str) -> str:
    """Text as troff takes it literally: no escapes, no hyphens for minus, no requests."""
    literal = " ".join(text.splitlines()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{literal}" if literal.startswith((".", "'")) else literal


def _title(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _summary(context: click.Context) -> str:
    return context.command.get_short_help_str(limit=sys.maxsize)


def _verbs(context: click.Context) -> list[click.Context]:
    """A context for each verb of a group that is not hidden."""
    if not isinstance(context.command, click.Group):
        return []
    group = context.command
    verbs = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [
        _context(verb, name, context)
        for name, verb in verbs
        if verb is not None and not verb.hidden
    ]


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(command, parent=parent, info_name=name, **command.context_settings)


def main() -> None:
    """Write every page into the folder named as the only argument."""
    from concurve.cli import app
    from concurve.version import __version__

    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(app, "concurve", __version__).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

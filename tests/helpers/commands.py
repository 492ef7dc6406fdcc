"""The ``concurve`` command lines that documents and scripts show, and whether they parse."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Sequence

import click

from concurve.cli import app

_CODE_BLOCK = re.compile(r"^( *)```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\s*(?:\$ )?(concurve (?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)


def code_blocks(page: str) -> str:
    """The blocks of code of a Markdown page."""
    return "\n".join(match[2] for match in _CODE_BLOCK.finditer(page))


def command_lines(code: str) -> Iterator[list[str]]:
    """The words of each command line that begins with ``concurve``, to the first operator of the
    shell."""
    for match in _COMMAND.finditer(code):
        code = re.sub(r"\s\d(?=>)", " ", match[1].replace("\\\n", " "))  # 2>/dev/null
        lexer = shlex.shlex(code, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("();<>|&"):
                break
            words.append(word)
        yield words


def parse(words: Sequence[str]) -> None:
    """Parse a command line, and do nothing.

    Raises:
        click.ClickException: there is no such verb or option.
    """
    command: click.Command = app
    context, rest = click.Context(app, info_name=words[0]), list(words[1:])
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:
            raise click.UsageError(f"there is no verb {rest[0]}", context)
        command, rest = found, rest[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    with contextlib.suppress(click.exceptions.Exit):  # --help, --version
        command.make_context(command.name, rest)

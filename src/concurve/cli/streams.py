"""Standard output and error of the command, whatever became of them: closed, full, or without a
reader. What goes to standard error never ends a command; what goes to standard output does, with an
exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

#: The exit code of a command whose reader has gone (128 + SIGPIPE), as shells show it.
EXIT_NO_READER = 141


#: What hides secrets in all that is printed, and in JSON; set by :func:`hide_in_output`.
_hide: list[Callable[[str], str]] = []
_hide_json: list[Callable[[bytes], bytes]] = []


#: The store that was given by ``--db``; set by :func:`name_store`.
_store: list[str] = []


class OutputError(Exception):
    """Standard output cannot be written. No ``OSError``, since click ends those of a pipe itself,
    with the exit code 1."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror)
        self.errno = cause.errno


class _Stream:
    """A standard stream; what it does not define itself is that of the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        if text == "":  # click tries it, to see whether the stream takes text, and forgets errors
            return 0
        try:
            return self._stream.write(_hidden(text))
        except OSError as error:
            self._failed(error)
        return len(text)

    def flush(self) -> None:
        """Write what is still in memory."""
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        _write_no_more(self._stream)


class _Output(_Stream):
    def _failed(self, error: OSError) -> None:
        super()._failed(error)
        raise OutputError(error) from error


def take_over_streams() -> None:
    """Replace what the caller has closed, and guard what may fail later."""
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # A file's name need not be text in any encoding: it is printed as the bytes that it is.
        sys.stdout.reconfigure(errors="surrogateescape")
    for name, kind in (("stdout", _Output), ("stderr", _Stream)):
        if not isinstance(getattr(sys, name), _Stream):
            setattr(sys, name, kind(getattr(sys, name)))


def hide_in_output(hide: Callable[[str], str], hide_json: Callable[[bytes], bytes]) -> None:
    """Print every text as ``hide`` returns it, and JSON as ``hide_json`` does. Only verbs that may
    meet secrets pay for it."""
    _hide[:] = [hide]
    _hide_json[:] = [hide_json]


def name_store(place: str | None) -> None:
    """Name this store in the commands of all messages and reports; ``None`` is the default one,
    which no command need name."""
    _store[:] = [place] if place else []


def with_store(text: str) -> str:
    """The text with the store that was given in each of its commands."""
    if not _store:
        return text
    from concurve.report.store_words import command_words

    return command_words(text, _store[0])


def tell_bytes(content: bytes) -> None:
    """Print a result as it is, but for its secrets."""
    tell_hidden(_hidden_bytes(content))


def tell_json(content: bytes) -> None:
    """Print JSON, and end its line. Secrets are hidden in its texts alone: it stays JSON where one
    of them is the same as a number."""
    hidden = _hide_json[0](content) if _hide_json else content
    tell_hidden(hidden if hidden.endswith(b"\n") else hidden + b"\n")


def tell_hidden(content: bytes) -> None:
    """Print a result in which secrets are hidden already."""
    try:
        sys.stdout.flush()  # what was printed before it
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except OSError as error:
        _write_no_more(sys.stdout)
        raise OutputError(error) from error


def tell(text: str) -> None:
    """Print lines of a result, without characters that would steer a terminal."""
    from concurve.report.console import fit_encoding
    from concurve.report.format import clean_lines

    print(fit_encoding(clean_lines(text), sys.stdout))


def tell_beside(head: str, text: str) -> None:
    """Print a line of a result; a terminal shows it in its width, with the text beside its head. In
    a file or a pipe no line is broken."""
    from concurve.report.console import beside, print_lines
    from concurve.report.format import clean_lines

    if sys.stdout.isatty():
        print_lines(lambda width: beside(head, clean_lines(text), width))
    else:
        tell(f"{head}{text}")


def tell_remedy(text: str, room: int) -> None:
    """Print what to do about the line before, after an arrow under its text, which begins in the
    column ``room``, or further left where a terminal is narrow. A terminal shows it in its width,
    and its commands as they can be copied."""
    from concurve.report.console import Line, print_lines, with_commands
    from concurve.report.format import clean_lines

    if not sys.stdout.isatty():
        tell(f"{' ' * (room - 1)}→ {text}")
        return

    def lines(width: int) -> Iterator[Line]:
        indent = min(room - 1, width // 4) + len("→ ")
        for index, line in enumerate(with_commands(clean_lines(text), width, " " * indent)):
            arrow = f"{'→ ':>{indent}}{line.plain[indent:]}"
            yield line if index else Line(arrow, line.style)

    print_lines(lines)


def say(text: str) -> None:
    """Print lines for people to standard error, with the store that was given in their commands,
    and without characters that would steer a terminal."""
    from concurve.report.format import clean_lines

    print(clean_lines(with_store(text)), file=sys.stderr)


def exit_code_of(error: OutputError) -> int:
    """Say why standard output cannot be written; the exit code. A reader that has gone, such as
    head, is no error to speak of."""
    if error.errno == errno.EPIPE:
        return EXIT_NO_READER
    say(f"concurve: standard output cannot be written: {error}\n  try: more space")
    return 1


def _hidden(text: str) -> str:
    return _hide[0](text) if _hide else text


def _hidden_bytes(content: bytes) -> bytes:
    if not _hide:
        return content
    text = content.decode(errors="surrogateescape")
    return _hide[0](text).encode(errors="surrogateescape")


def _write_no_more(stream: TextIO) -> None:
    """Keep Python from writing the rest again, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


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

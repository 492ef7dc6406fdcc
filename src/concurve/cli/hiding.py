"""Hides the secrets of this process's command line before anything reads it: from then on its words
hold references (:mod:`concurve.secrets`), and all that is printed goes through the same.

Other users see the words of a command line, too, so those of this process are overwritten.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from concurve.cli.streams import hide_in_output
from concurve.secrets import KNOWN
from concurve.secrets.command_line import hide_words

#: The verbs that read a store or start programs.
VERBS = frozenset({
    "sweep", "run", "resume", "runs", "show", "explain", "report", "compare", "history", "export",
    "load", "monitor", "web",
})  # fmt: skip


def hide_secrets(verb: str) -> None:
    """Hide what is secret in the command line and the environment, if this verb may meet any."""
    if verb not in VERBS:
        return
    hide_in_output(KNOWN.hide, KNOWN.hide_printed_json)
    given = sys.argv[1:]
    hidden = hide_words(given, os.environ, KNOWN)
    sys.argv[1:] = hidden
    shown = [word for word, other in zip(given, hidden, strict=True) if word != other]
    if shown:
        _overwrite_own_words(shown)


def _overwrite_own_words(shown: Sequence[str]) -> None:
    """Overwrite these words where the kernel shows them to others, in ``/proc/PID/cmdline``. Where
    that cannot be done, they stay as whoever typed them has shown them already."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # proc(5): fields 48 and 49 are the place of the words in this process's memory.
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        begin, end = int(fields[45]), int(fields[46])
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(begin)
            there = memory.read(end - begin)
            for word in shown:
                raw = os.fsencode(word)
                for at in _places(there, raw):
                    memory.seek(begin + at)
                    memory.write(b"*" * len(raw))


def _places(text: bytes, part: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))

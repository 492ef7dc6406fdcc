"""Run the commands of docs/transcripts.md, and write what they print under them.

    write_transcripts.py [NAME …]    all transcripts, or those of these names

A transcript stands between two markers:

    <!-- transcript NAME -->
    ```console
    $ command
    what it printed
    ```
    <!-- end of NAME -->

Its commands run in one shell, in an empty folder with a link to the examples and a store of its
own. If one of them fails, the page is left as it is. Needs what the commands need: concurve beside
this Python or on the PATH, and Redis and a JDK for some. Only the transcript ``clone`` builds
anything, and needs the network.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.host.orphans import end_marked

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "transcripts.md"

#: Every process of a transcript inherits it.
MARK = "CONCURVE_TRANSCRIPT"

#: Wide enough for the tables, and narrow enough for a page.
COLUMNS = "100"

_TRANSCRIPT = re.compile(
    r"<!-- transcript (?P<name>[\w-]+) -->\n```console\n(?P<body>.*?)```\n<!-- end of (?P=name)"
    r"(?:; [^>]*)? -->",
    re.DOTALL,
)
_MARKER = re.compile(r"<!-- (?:transcript|end of) [\w-]+")


class Transcript(NamedTuple):
    """A transcript as it stands in a page: its name, its commands, and where it begins and ends."""

    name: str
    commands: tuple[str, ...]
    begin: int
    end: int


class FailedError(Exception):
    """A command of a transcript failed."""


def transcripts(page: str) -> list[Transcript]:
    """The transcripts of a page.

    Raises:
        ValueError: a marker without its counterpart, or a transcript without a command.
    """
    found = [
        Transcript(match["name"], commands_of(match["body"]), match.start(), match.end())
        for match in _TRANSCRIPT.finditer(page)
    ]
    markers = len(_MARKER.findall(page))
    if markers != 2 * len(found):
        raise ValueError(f"{markers} markers, and {len(found)} whole transcripts")
    for item in found:
        if not item.commands:
            raise ValueError(f"transcript {item.name}: no command, which begins with '$ '")
    if len({item.name for item in found}) < len(found):
        raise ValueError("two transcripts have one name")
    return found


def commands_of(body: str) -> tuple[str, ...]:
    """The commands of a transcript, without what they printed."""
    return tuple(line[2:] for line in body.splitlines() if line.startswith("$ "))


def shown(name: str, commands: Sequence[str], printed: Sequence[str], seconds: float) -> str:
    """A transcript with what its commands printed."""
    lines: list[str] = []
    for command, output in zip(commands, printed, strict=True):
        lines += [f"$ {command}", *output.rstrip().splitlines()]
    body = "\n".join(line.rstrip() for line in lines)
    took = f"took {seconds:.0f} s on {len(os.sched_getaffinity(0))} CPUs"
    return f"<!-- transcript {name} -->\n```console\n{body}\n```\n<!-- end of {name}; {took} -->"


def run(commands: Sequence[str]) -> tuple[list[str], float]:
    """What each command prints to standard output, and how long all took in seconds.

    Raises:
        FailedError: a command failed.
    """
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="concurve-transcript-") as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        script = "\n".join(f"{command}\nprintf '\\n%s %s\\n' {mark} $?" for command in commands)
        begin = time.monotonic()
        try:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=folder, env=_environment(folder, mark), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
        finally:
            end_marked(MARK, mark)
        seconds = time.monotonic() - begin
        parts = re.split(rf"\n?{mark} (\d+)\n", done.stdout)
        printed, codes = parts[0:-1:2], parts[1::2]
        for command, code in zip(commands, codes, strict=False):
            if code != "0":
                raise FailedError(f"exit code {code}: {command}")
        if len(codes) < len(commands):
            raise FailedError(f"the shell ended within: {commands[len(codes)]}")
        plain = (text.replace(f"{folder}/", "").replace(str(folder), "~") for text in printed)
        return [text.lstrip("\n") for text in plain], seconds


def _environment(folder: Path, mark: str) -> dict[str, str]:
    beside = Path(sys.executable).parent
    own = {
        "PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "CONCURVE_DB": str(folder / "concurve.db"),
        "CHECKOUT": str(ROOT),
        "COLUMNS": COLUMNS,
        "LC_ALL": "C.UTF-8",
        MARK: mark,
    }
    return {**os.environ, **own}


def main(names: Sequence[str]) -> int:
    """Write the transcripts of these names, or all, one after the other."""
    known = [item.name for item in transcripts(PAGE.read_text(encoding="utf-8"))]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no transcript {', '.join(unknown)}; one of {', '.join(known)}", file=sys.stderr)
        return 2
    failed = 0
    for name in names or known:
        page = PAGE.read_text(encoding="utf-8")
        (item,) = (item for item in transcripts(page) if item.name == name)
        print(f"== {name}: {'; '.join(map(shlex.quote, item.commands))}", file=sys.stderr)
        try:
            printed, seconds = run(item.commands)
        except FailedError as error:
            print(f"{name}: {error}; the page is left as it is", file=sys.stderr)
            failed = 1
            continue
        text = shown(name, item.commands, printed, seconds)
        PAGE.write_text(page[: item.begin] + text + page[item.end :], encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The examples: what each of them answers on the machine as it is, and beside busy processes.

At its end it prints the verdicts as a table, which can stand in the documentation.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from measuring.figures import Bound, Figure
from measuring.running import ROOT, busy_processes
from measuring.showing import alone

from concurve.estimate import Estimate
from concurve.host.machine import allowed_cpus

FOLDER = ROOT / "examples"

RIGHT, WITHHELD, WRONG, SKIPPED, FAILED = "right", "cannot be said", "WRONG", "skipped", "failed"

#: What an example prints at the beginning of a line, the worst last.
_VERDICTS = (RIGHT, WITHHELD, WRONG)

#: The exit code of an example whose program is missing.
_MISSING = 77

#: An example measures for three minutes at most; a busy machine takes longer for all around it.
SECONDS_MAX = 840.0

#: What a cell of the table holds of a reason.
_SAID = 160


class Answer(NamedTuple):
    """The worst verdict of an example, why, and all that it printed."""

    kind: str
    says: str
    printed: str = ""


def figures(quick: bool) -> Iterator[Figure]:
    """All examples as the machine is, then all beside twice as many busy processes as CPUs."""
    count = 2 * len(allowed_cpus())
    alone_, beside = "as the machine is", f"beside {count} busy processes"
    if quick:
        for where in (alone_, beside):
            missing = "takes half an hour, left out of a quick run"
            yield Figure(f"wrong examples {where}", "each judges itself", missing=missing)
        return
    found = {}
    found[alone_] = _all(is_quiet=True)
    yield from _figures(alone_, found[alone_])
    with busy_processes(count):
        found[beside] = _all(is_quiet=False)
    yield from _figures(beside, found[beside])
    print(f"\n{table(found)}\n", flush=True)


def scripts(folder: Path | None = None) -> list[Path]:
    """The examples, in the order of their names."""
    return sorted((folder or FOLDER).glob("*/run.*"))


def answer_of(script: Path, is_quiet: bool) -> Answer:
    """What an example answers. ``is_quiet``: it may withhold an answer only for a trial in
    doubt."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": "/tmp",  # other users' servers go there, and not into a folder of ours
        "EXAMPLE_QUIET": "1" if is_quiet else "",
    }
    with tempfile.TemporaryDirectory() as folder:
        running = subprocess.Popen(
            [script], env=environment, cwd=folder, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            printed, _ = running.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            _end(running)
            return Answer(FAILED, f"it did not end within {SECONDS_MAX:g} s")
    return verdict_of(printed, running.returncode)


def _end(running: subprocess.Popen[str]) -> None:
    """End an example and what it started; it gets half a minute for its servers."""
    for way, seconds in ((signal.SIGTERM, 30), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(running.pid, way)
        with suppress(subprocess.TimeoutExpired):
            running.communicate(timeout=seconds)
            return


def verdict_of(printed: str, exit_code: int) -> Answer:
    """The worst of the verdicts that an example printed."""
    lines = printed.strip().splitlines() or [""]
    if exit_code == _MISSING:
        return Answer(SKIPPED, lines[-1].removeprefix(f"{SKIPPED}: "), printed)
    said = [
        (_VERDICTS.index(kind), rest)
        for kind, colon, rest in (line.partition(": ") for line in lines)
        if colon and kind in _VERDICTS
    ]
    worst, says = max(said, key=lambda item: item[0], default=(0, ""))
    if not said or (exit_code != 0) != (_VERDICTS[worst] == WRONG):
        return Answer(FAILED, f"exit code {exit_code}: {lines[-1]}", printed)
    return Answer(_VERDICTS[worst], says, printed)


def _all(is_quiet: bool) -> dict[str, Answer]:
    return {script.parent.name: answer_of(script, is_quiet) for script in scripts()}


def _figures(where: str, answers: Mapping[str, Answer]) -> Iterator[Figure]:
    """How many answers are wrong, and each example that could not be asked."""
    counts = Counter(answer.kind for answer in answers.values())
    asked = len(answers) - counts[SKIPPED]
    wrong = counts[WRONG] + counts[FAILED]
    said = f"of {asked} examples {counts[RIGHT]} are right, {counts[WITHHELD]} cannot be said"
    yield Figure(f"wrong examples {where}", said, Estimate(value=wrong, n=asked), Bound(high=0))
    for name, answer in answers.items():
        if answer.kind == SKIPPED:
            yield Figure(f"… {name}", "what it needs is missing", missing=answer.says)


def table(found: Mapping[str, Mapping[str, Answer]]) -> str:
    """The verdicts as Markdown: a row an example, a column a state of the machine."""
    names = dict.fromkeys(name for answers in found.values() for name in answers)
    rows = [[name, *(_cell(answers[name]) for answers in found.values())] for name in names]
    head: Sequence[str] = ["example", *found]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _cell(answer: Answer) -> str:
    if answer.kind == RIGHT:
        return RIGHT
    says = answer.says if len(answer.says) <= _SAID else f"{answer.says[:_SAID].rstrip()} …"
    return f"{answer.kind}: {says}".replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))

"""The other tools that ours are compared with."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measuring.figures import MissingToolError
from measuring.running import output_of


def require(tool: str, package: str) -> str:
    """Path of a tool.

    Raises:
        MissingToolError: it is not installed.
    """
    path = shutil.which(tool)
    if path is None:
        raise MissingToolError(f"{tool} is missing (apt-get install {package})")
    return path


def hyperfine(argv: Sequence[str], runs: int = 1, stdin: str | None = None) -> dict[str, float]:
    """``wall`` and ``user`` seconds of ``hyperfine -N``: the median and (user) the mean of its
    runs. ``stdin`` is a file that each run reads.

    Raises:
        MissingToolError: hyperfine is not installed, or has no ``--input``.
    """
    tool = require("hyperfine", "hyperfine")
    if stdin and "--input" not in output_of([tool, "--help"]):
        raise MissingToolError("this hyperfine has no --input (1.16 or newer has)")
    fed = ["--input", stdin] if stdin else []
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        output_of(
            [tool, "-N", "--style", "none", "--warmup", "0", "--runs", str(runs),
             *fed, "--export-json", file.name, shlex.join(argv)]
        )  # fmt: skip
        result = json.loads(Path(file.name).read_text())["results"][0]
    return {"wall": result["median"], "user": result["user"]}


def perf_stat(argv: Sequence[str]) -> dict[str, float]:
    """``wall`` and ``user`` seconds of one run under ``perf stat``, no counters asked for.

    Raises:
        MissingToolError: perf is not installed, or does not know these events.
    """
    tool = require("perf", "linux-perf")
    with tempfile.NamedTemporaryFile() as file:
        output_of(
            [tool, "stat", "-x,", "-o", file.name, "-e", "duration_time,user_time", "--", *argv]
        )
        text = Path(file.name).read_text()
    return parse_perf_stat(text)


def parse_perf_stat(text: str) -> dict[str, float]:
    """The two times in the output of ``perf stat -x,``: value, unit, event, …

    Raises:
        MissingToolError: this perf gives no such times.
    """
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")]
    times = {row[2]: row[0] for row in rows if len(row) > 2}
    try:
        return {"wall": int(times["duration_time"]) / 1e9, "user": int(times["user_time"]) / 1e9}
    except (KeyError, ValueError):
        raise MissingToolError("this perf has no event user_time (5.19 or newer has)") from None

#!/usr/bin/env python3
"""A sweep from Python, and its figures as data frames.

Question:     Do threads make pure Python code faster?
Needs:        the package concurve in this Python, and a Python with a global interpreter lock
Right answer: No: one thread, by wall time. The frames hold one row a cell and one row a trial, each
              figure within its interval.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREADS = [1, 2, 4]

try:
    import pandas as pd

    import concurve
except ImportError as missing:
    print(f"skipped: {missing}; the Python of concurve has it, in a checkout .venv/bin/python")
    sys.exit(77)


def problems(cells: pd.DataFrame, trials: pd.DataFrame) -> Iterator[str]:
    """What is wrong with the frames."""
    if list(cells["threads"]) != THREADS:
        yield f"a row for each of {THREADS} threads, not {list(cells['threads'])}"
    known = cells.dropna(subset=["wall_seconds_low", "wall_seconds_high"])
    inside = known["wall_seconds"].between(known["wall_seconds_low"], known["wall_seconds_high"])
    if not inside.all():
        yield "a figure lies outside of its interval"
    counted = trials[trials["used"]].groupby("threads").size()
    for threads, count in zip(cells["threads"], cells["trials"], strict=True):
        if counted.get(threads, 0) != count:
            yield f"{count} trials of {threads} threads, and {counted.get(threads, 0)} rows"


def main(folder: Path) -> int:
    """Measure, look at the frames, and judge them and the recommendation."""
    db = str(folder / "concurve.db")
    run = concurve.sweep(
        [sys.executable, str(HERE / "threads.py"), "{threads}"],
        {"threads": THREADS},
        effort="quick",
        max_time="90s",
        db=db,
    )
    cells, trials = run.frame(), run.trials()
    columns = ["threads", "wall_seconds", "wall_seconds_low", "wall_seconds_high", "speedup"]
    print(cells[[name for name in columns if name in cells]].to_string(index=False))
    print(trials.groupby("threads")["wall_seconds"].describe().to_string())
    run.write(folder / "report.html")
    wrong = list(problems(cells, trials))
    for problem in wrong:
        print(f"WRONG: {problem}")
    quiet = ["--quiet"] if os.environ.get("EXAMPLE_QUIET") else []
    check = [sys.executable, str(HERE.parent / "check.py"), *quiet, "best", run.id]
    asked = ["--by", "wall_seconds", "--right", "1"]
    judged = subprocess.run([*check, *asked], env={**os.environ, "CONCURVE_DB": db}, check=False)
    return 1 if wrong else judged.returncode


# Concurve imports this file nowhere, but multiprocessing would: work stands below this line.
if __name__ == "__main__":
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        print("skipped: this Python has no global interpreter lock")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="concurve-example-") as name:
        code = main(Path(name))
    sys.exit(code)

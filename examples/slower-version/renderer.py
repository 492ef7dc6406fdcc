"""A program in two versions, of which the new one does 4 % more: ``renderer.py old|new``."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

STEPS = {"old": 10_000_000, "new": 10_400_000}


def say(**line: Any) -> None:
    """Report a line to Concurve; nothing if the program runs without it."""
    if "CONCURVE_REPORT" in os.environ:
        os.write(int(os.environ["CONCURVE_REPORT"]), (json.dumps(line) + "\n").encode())


def main(version: str) -> None:
    """Compute in the measured phase: the start of Python does not count."""
    say(phase="measure", edge="begin")
    total = 0
    for step in range(STEPS[version]):
        total += step
    say(phase="measure", edge="end")
    print(total)


if __name__ == "__main__":
    main(sys.argv[1])

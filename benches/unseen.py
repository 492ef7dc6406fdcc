#!/usr/bin/env python3
"""How often what is printed holds the truth under a second and a third catalogue of noises.

.venv/bin/python benches/unseen.py                        # all of them, minutes
.venv/bin/python benches/unseen.py --runs 100 --only "modes that last"

The noises (unseen_noises.py and shared_machine_noises.py of tests/helpers) were written down before
they were simulated. Exits with 1 where a row misses a bound by more than chance.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from coverage_tables import unseen


def main() -> int:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=300, help="simulated runs of each row")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    options = parser.parse_args()
    print(unseen.HEADING)
    missed = 0
    for row, tally in unseen.tallies(options.runs, options.seed, options.only):
        print(unseen.line(row, tally), flush=True)
        missed += bool(unseen.misses(row, tally))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""How often the search for a rate under objectives holds the true rate, by kind of server."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

from measuring.figures import Bound, Figure, MissingToolError
from measuring.tools import require

from concurve.estimate import Estimate

ROOT = Path(__file__).resolve().parents[1]
SEARCHES = 400
HELD = 90.0
"""Percent of the answers whose 95 % interval holds the true rate, at least."""
ANSWERS_MIN = 40
"""Fewer answers than these say nothing about their coverage."""
SEED_MAX = 2**40
ROW = re.compile(r"^(?P<name>.{50})(?P<numbers>(?: +-?[\d.]+){7})$")


def figures(quick: bool) -> Iterator[Figure]:
    """Simulated searches of concurve-load, from the tests of its crate, with seeds that nobody has
    seen, or those from CONCURVE_SEED on; `*` is a server of the second set that judges."""
    try:
        cargo = require("cargo", "cargo")
    except MissingToolError as error:
        yield Figure("rate under objectives", "simulated servers", missing=str(error))
        return
    searches = 20 if quick else SEARCHES
    seed = os.environ.get("CONCURVE_SEED") or str(secrets.randbelow(SEED_MAX))
    print(f"CONCURVE_SEED={seed}")
    done = subprocess.run(
        [cargo, "test", "--profile", "checked", "-p", "concurve-load", "--lib",
         "coverage_by_server", "--", "--ignored", "--nocapture"],
        cwd=ROOT, env={
            **os.environ, "CONCURVE_SEARCHES": str(searches), "CONCURVE_SEED": seed,
        },
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    print(done.stdout)
    for line in done.stdout.splitlines():
        found = ROW.match(line)
        if found is None:
            continue
        holds, answers_hold, _, _, refused, width, _ = map(float, found["numbers"].split())
        answers = round(searches * (1 - refused / 100))
        judged = answers_hold if answers >= ANSWERS_MIN else holds
        yield Figure(
            f"--slo interval holds: {found['name'].strip()}",
            f"percent of {searches} searches; {refused:.0f} % refused, mean width {width:.0f} %",
            Estimate(value=judged),
            Bound(low=HELD),
        )

"""Shell commands around trials: setup, prepare, conclude, cleanup, and the validator."""

from __future__ import annotations

import os
import subprocess

from concurve.definition.templates import render
from concurve.errors import RunError
from concurve.planning.plan import Cell, Plan, describe


def run_hook(plan: Plan, name: str, cell: Cell) -> None:
    """Run one hook for a cell, if the study has it.

    Raises:
        RunError: it exited with another code than 0.
    """
    text = plan.study.hooks.texts().get(name)
    if not text:
        return
    done = shell(plan, text, cell)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-300:] or "it said nothing"
        raise RunError(
            f"{describe(cell.parameters)}: --{name} failed with {done.returncode}: {said}",
            "correct it, then concurve resume last",
        )


def shell(
    plan: Plan, text: str, cell: Cell, stdin: str = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a hook's text in ``/bin/sh`` with the cell's parameters filled in."""
    return subprocess.run(
        ["/bin/sh", "-c", render(text, plan.values(cell))],
        input=stdin,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, **(env or {})},
        check=False,
    )

"""Figures that a program printed, by patterns."""

from __future__ import annotations

import re

from concurve.definition.study import Extract
from concurve.wire.record import RoleRecord


class MissedExtractError(Exception):
    """An ``--extract`` pattern matched nothing in a trial's output."""

    def __init__(self, extract: Extract, excerpt: str) -> None:
        self.extract = extract
        self.excerpt = excerpt
        super().__init__(extract.name)


def extracted(extract: Extract, role: RoleRecord) -> float:
    """Group 1 of the last match in standard output, else in standard error.

    Raises:
        MissedExtractError: no match, or the group is no number.
    """
    pattern = re.compile(extract.pattern, re.MULTILINE)
    for output in (role.stdout, role.stderr):
        matches = pattern.findall(output.text())
        if matches:
            last = matches[-1] if isinstance(matches[-1], str) else matches[-1][0]
            try:
                return float(last.replace(",", ""))
            except ValueError:
                break
    text = role.stdout.text().strip() or role.stderr.text().strip()
    raise MissedExtractError(extract, text[-200:])

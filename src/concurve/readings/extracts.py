"""Figures that a program printed, by patterns."""

from __future__ import annotations

import math
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
        MissedExtractError: no match, or the group is no finite number.
    """
    pattern = re.compile(extract.pattern, re.MULTILINE)
    for output in (role.stdout, role.stderr):
        # An empty group is no figure: (.*) also matches the empty text at the end.
        found = [match[1] for match in pattern.finditer(output.text()) if match[1]]
        if found:
            figure = _number(found[-1])
            if figure is not None:
                return figure
            break
    text = role.stdout.text().strip() or role.stderr.text().strip()
    raise MissedExtractError(extract, text[-200:])


def _number(text: str) -> float | None:
    try:
        figure = float(text.replace(",", ""))
    except ValueError:
        return None
    return figure if math.isfinite(figure) else None

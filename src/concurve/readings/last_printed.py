"""What the programs of a stopped trial printed last: often it says what they waited for. Pure."""

from __future__ import annotations

import re

from concurve.wire.record import RoleRecord, TrialRecord

#: What says why a program waits goes before what it printed after that.
_WHY = re.compile(
    r"refused|denied|could not connect|cannot connect|can't connect|no route|unreachable"
    r"|timed out|no such|fatal|\berror\b",
    re.I,
)
#: So much of a line is quoted.
_LINE_CHARS = 200


def last_printed(record: TrialRecord, target: str) -> str:
    """A clause on the last line that says why, else the last one, of the role that the record
    blames, else of ``target``, else of one that had to be killed; of standard error before standard
    output. Empty where none printed."""
    blamed = [record.role(name) for name in (record.outcome.role or "", target)]
    for role in (*blamed, *(role for role in record.roles if role.ended_by == "killed")):
        if role is not None and (said := _said(role)):
            who = "the program" if len(record.roles) == 1 else f"role {role.name}"
            return f"{who} {said}"
    return ""


def _said(role: RoleRecord) -> str:
    """What it printed, as a clause."""
    for text in (role.stderr.text(), role.stdout.text()):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            why = next((line for line in reversed(lines) if _WHY.search(line)), lines[-1])
            often = "last printed" if why == lines[-1] else "printed"
            return f"{often} {why[:_LINE_CHARS]!r}"
    return ""

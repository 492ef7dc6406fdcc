"""What the programs of a stopped trial printed last: often it says what they waited for. Pure."""

from __future__ import annotations

from concurve.wire.record import RoleRecord, TrialRecord

#: So much of a line is quoted.
_LINE_CHARS = 200


def last_printed(record: TrialRecord, target: str) -> str:
    """A clause on the last line of the role that the record blames, else of ``target``, else of one
    that had to be killed; of standard error before standard output. Empty where none printed."""
    blamed = [record.role(name) for name in (record.outcome.role or "", target)]
    for role in (*blamed, *(role for role in record.roles if role.ended_by == "killed")):
        if role is not None and (line := _last_line(role)):
            who = "the program" if len(record.roles) == 1 else f"role {role.name}"
            return f"{who} last printed {line!r}"
    return ""


def _last_line(role: RoleRecord) -> str:
    for text in (role.stderr.text(), role.stdout.text()):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            return lines[-1][:_LINE_CHARS]
    return ""

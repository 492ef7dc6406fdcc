"""What the hooks of a study printed beside a trial. Pure.

A hook that exits with 0 has done its work as far as anybody knows. Many programs print an error and
exit with 0 all the same (``redis-cli``, ``curl``, the first part of a pipe): then the levels of a
factor that it sets are one setting.
"""

from __future__ import annotations

import re

from concurve.wire.record import HookRecord, TrialRecord

#: So much of a line is quoted.
_LINE_CHARS = 200

#: Words by which a line tells of something that went wrong.
_WRONG = re.compile(
    r"(?<![-\w])(\w*errors?|err|fail(ed|ures?|s)?|fatal|denied|refused|cannot|can't"
    r"|could ?n[o']t|unable"
    r"|not (found|permitted|allowed|recognized|supported)|unknown|invalid|illegal|no such"
    r"|unrecognized|traceback|exception|timed out)\b|^\s*usage:",
    re.I,
)
#: Nothing went wrong: ``0 errors``, ``failed=0``.
_NONE = re.compile(
    r"\b(no|0|without) (\w+ )?(errors?|fail(ed|ures?))\b"
    r"|\b(\w*errors?|fail(ed|ures?))\s*[=:]\s*0\b",
    re.I,
)


def telling_line(said: HookRecord) -> str:
    """The first line that tells of something that went wrong, of standard error before standard
    output; empty without one."""
    for text in (said.stderr.text(), said.stdout.text()):
        for line in text.splitlines():
            if _WRONG.search(_NONE.sub("", line)):
                return line.strip()[:_LINE_CHARS]
    return ""


def hooks_said(record: TrialRecord) -> dict[str, str]:
    """What went wrong in hooks that exited with 0, one clause a hook: ``the hook prepare printed
    'ERR unknown option'``, by its name; a hook that ran for several cells is named once."""
    told: dict[str, str] = {}
    for said in record.hooks:
        if line := telling_line(said):
            told.setdefault(said.hook, f"the hook {said.hook} printed {line!r}")
    return told

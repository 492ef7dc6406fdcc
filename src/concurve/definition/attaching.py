"""Which processes an attached role has, as a text: ``4711``, ``unit:redis.service``,
``container:cache``."""

from __future__ import annotations

import re
from typing import NamedTuple

from concurve.definition.study import Role
from concurve.errors import StudyError

REMEDY = "the number of a process, unit:NAME or container:NAME"

KINDS = ("process", "unit", "container")

#: The identity of a container, or its begin.
CONTAINER_ID = re.compile(r"[0-9a-f]{12,64}")


class Attachment(NamedTuple):
    """What is attached: its kind, one of :data:`KINDS`, and its number or name."""

    kind: str
    name: str


def parse_attach(text: str, where: str) -> Attachment:
    """What a text asks to attach.

    Raises:
        StudyError: names ``where`` and the remedy.
    """
    text = text.strip()
    if not text:
        raise StudyError(
            f"{where}: attach is empty", f"did the command in $(...) fail? It takes {REMEDY}"
        )
    if re.fullmatch(r"[0-9]{1,10}", text) and int(text) > 0:
        return Attachment("process", str(int(text)))
    kind, colon, name = text.partition(":")
    if colon and kind in KINDS[1:] and re.fullmatch(r"[A-Za-z0-9@._\\-]+", name):
        return Attachment(kind, name)
    if "{" in text:
        raise StudyError(
            f"{where}: attach {text!r}: what is attached is the same in all cells",
            "a run for each process, and concurve compare",
        )
    raise StudyError(f"{where}: attach {text!r} names no process", REMEDY)


def attached_role(name: str, attach: str, where: str) -> Role:
    """A role whose processes run already.

    Raises:
        StudyError: the text names no process; ``where`` names it.
    """
    parse_attach(attach, where)
    return Role(name=name, command=(), attach=attach, end="serve")

"""The names of indicators of other roles than the measured one: ``ROLE.NAME``."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class IndicatorName(NamedTuple):
    """A name in its parts; ``role`` is empty for a figure of the measured role."""

    role: str
    own: str

    def __str__(self) -> str:
        return f"{self.role}.{self.own}" if self.role else self.own


def split_name(text: str) -> IndicatorName:
    """``load.tps`` as ``load`` and ``tps``; a name without a dot has no role. No role has a dot in
    its name, so the first one separates."""
    role, dot, own = text.partition(".")
    return IndicatorName(role, own) if dot else IndicatorName("", text)


def role_of(text: str, roles: Collection[str]) -> str:
    """The role that a name begins with, if it is one of these; empty for the measured one."""
    role = split_name(text).role
    return role if role in roles else ""

"""A campaign: studies that answer one question together, and the texts of its report. Data."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import msgspec

from concurve.errors import StudyError
from concurve.study import Study


class Texts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the report says besides the figures. Paragraphs are parted by an empty line; lines
    that begin with ``-`` are a list."""

    introduction: str = ""
    scope: str = ""
    platform: str = ""
    procedure: str = ""
    deviations: str = ""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A study of a campaign under the name of its folder."""

    name: str
    study: Study


class Campaign(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One campaign, whole: its studies in the order in which they run."""

    name: str
    question: str
    studies: tuple[Member, ...]
    title: str = ""
    source: str = ""
    texts: Texts = Texts()
    glossary: dict[str, str] = {}


def only(campaign: Campaign, names: Sequence[str]) -> Campaign:
    """The campaign with the named studies only, in its own order, each once.

    Raises:
        StudyError: a name that is none of its studies', with the nearest one.
    """
    known = [member.name for member in campaign.studies]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise StudyError(
                f"--only: {campaign.name} has no study {name!r}",
                f"did you mean {near[0]!r}?" if near else f"some of {','.join(known)}",
            )
    if not names:
        raise StudyError("--only: no study is named", f"some of {','.join(known)}")
    chosen = tuple(member for member in campaign.studies if member.name in names)
    return msgspec.structs.replace(campaign, studies=chosen)

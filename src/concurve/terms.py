"""Types that definitions and findings share: levels and factors, indicators, test cases, and the
texts of a campaign's author."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = int | float | str


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A factor with its levels in order; ``work`` marks the one that counts as concurrency."""

    name: str
    levels: tuple[Level, ...]
    work: bool = False


class IndicatorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an indicator is: its unit, its better direction and how to call it."""

    name: str
    label: str
    unit: str = ""
    better: Literal["lower", "higher", "neither"] = "neither"
    note: str = ""


class TestCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a test document says of a study (document 002, §7.3): the test case's number and area,
    the ``goal`` of the design that it serves, its objective, the results expected, the conditions,
    the indicators and the steps."""

    __test__ = False  # not one of pytest's

    id: str
    objective: str
    area: str = ""
    goal: str = ""
    expected: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What to call it: ``Test case 9`` where its id is a bare number."""
        return f"Test case {self.id}" if self.id[:1].isdigit() else self.id


class CampaignTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What the campaign's author says in its report. Paragraphs are parted by an empty line;
    lines that begin with ``-`` are a list."""

    introduction: str = ""
    scope: str = ""
    platform: str = ""
    procedure: str = ""
    deviations: str = ""

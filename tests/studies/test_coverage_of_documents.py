"""The page on the documents names studies, claims and indicators that exist, and every claim."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from concurve.definition import catalogue
from concurve.definition.campaign import Campaign
from concurve.definition.claim_kinds import parse_test
from concurve.definition.study import Study
from tests.helpers.packaged import find

PAGE = Path(__file__).parents[2] / "docs" / "coverage-of-documents.md"

COLUMNS = ["place", "the document", "study", "claims", "indicators", "not here, because"]


class Row(NamedTuple):
    """A row of a table: the number of its line, what its cells name in code, and its last cell."""

    line: int
    document: str
    studies: Sequence[str]
    claims: Sequence[str]
    indicators: Sequence[str]
    reason: str


def rows_of(text: str) -> list[Row]:
    """The rows of all tables of a page."""
    found: list[Row] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|") or line.startswith("|--"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        assert len(cells) == len(COLUMNS), f"line {number}: {len(cells)} cells"
        if cells != COLUMNS:
            studies, claims, indicators = (re.findall(r"`([^`]+)`", cell) for cell in cells[2:5])
            document = cells[1] or cells[0]
            found.append(Row(number, document, studies, claims, indicators, cells[5]))
    return found


def packaged() -> dict[str, list[Study]]:
    """The studies that a name stands for: one, or all of a campaign."""
    found: dict[str, list[Study]] = {}
    for name, _ in catalogue.entries():
        study = find(name, 8)
        assert isinstance(study, Study)
        found[name] = [study]
    for name, _ in catalogue.campaigns():
        campaign = find(name, 8)
        assert isinstance(campaign, Campaign)
        found[name] = [member.study for member in campaign.studies]
        found |= {f"{name}/{member.name}": [member.study] for member in campaign.studies}
    return found


ROWS = rows_of(PAGE.read_text(encoding="utf-8"))
PACKAGED = packaged()


def known(row: Row) -> tuple[set[str], set[str]]:
    """The claims and the indicators of the studies that a row names."""
    studies = [study for name in row.studies for study in PACKAGED[name]]
    claims = {claim.id for study in studies for claim in study.claims}
    asked = {indicator.name for study in studies for indicator in study.indicators}
    judged = {parse_test(claim, claim.id).indicator for study in studies for claim in study.claims}
    return claims, asked | judged


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line {row.line}")
def test_what_a_row_names_is_there(row: Row) -> None:
    assert [name for name in row.studies if name not in PACKAGED] == []
    claims, indicators = known(row)
    assert [name for name in row.claims if not fnmatch.filter(claims, name)] == []
    assert [name for name in row.indicators if name not in indicators] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line {row.line}")
def test_a_row_says_where_it_is_or_why_not(row: Row) -> None:
    assert row.document
    assert row.studies or row.reason
    assert row.studies or not (row.claims or row.indicators)


def test_every_claim_of_a_packaged_study_is_named() -> None:
    missing = {
        (name, claim.id)
        for name, studies in PACKAGED.items()
        if len(studies) == 1
        for claim in studies[0].claims
        if not any(
            fnmatch.fnmatch(claim.id, pattern)
            for row in ROWS
            if name in row.studies or name.partition("/")[0] in row.studies
            for pattern in row.claims
        )
    }
    assert missing == set()


def test_each_document_has_a_table() -> None:
    headings = re.findall(r"^## (\d{3}): ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["000", "001", "002", "003", "004"]


def test_a_row_that_lacks_a_cell_is_found() -> None:
    whole = "| §1 | it | `a/b` | `c-*`, `d` | `e` | |"
    assert rows_of(whole) == [Row(1, "it", ["a/b"], ["c-*", "d"], ["e"], "")]
    with pytest.raises(AssertionError, match="line 1: 4 cells"):
        rows_of("| §1 | it | `a` | `c` |")

"""Headings of studies: as the whole study has them, and what a file without one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from concurve.definition import study_files
from concurve.definition.campaign import Campaign
from concurve.definition.catalogue import Entry, campaigns, entries, find
from concurve.definition.headings import StudyHeading, campaign_heading, study_heading
from concurve.definition.study import Study
from concurve.definition.toml_file import parse_toml
from concurve.errors import StudyError


def heading_of(study: Study) -> StudyHeading:
    return StudyHeading(
        name=study.name,
        question=study.question,
        source=study.source,
        factors=tuple(factor.name for factor in study.factors),
        objective=study.test_case.objective if study.test_case else "",
    )


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_a_packaged_study_has_the_heading_of_the_whole_study(entry: Entry) -> None:
    study = find(entry.name, 2)
    assert isinstance(study, Study)
    assert study_heading(entry.folder / "study.toml") == heading_of(study)


@pytest.mark.parametrize("entry", campaigns(), ids=lambda entry: entry.name)
def test_a_packaged_campaign_has_the_headings_of_its_whole_studies(entry: Entry) -> None:
    campaign, heading = find(entry.name, 2), campaign_heading(entry.folder)
    assert isinstance(campaign, Campaign)
    assert (heading.question, heading.source) == (campaign.question, campaign.source)
    assert heading.studies == {it.name: heading_of(it.study) for it in campaign.studies}


def test_a_heading_is_taken_over_from_the_file_that_is_extended(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared.toml", tmp_path / "study.toml"
    shared.write_text('[study]\nname = "far"\nquestion = "How?"\n[factors]\nthreads = [1, 2]\n')
    own.write_text('extends = "shared.toml"\n[study]\nname = "near"\n')
    assert study_heading(own) == StudyHeading("near", "How?", "", ("threads",), "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[study]\nname = "a"\n[factors]\n', "study: Object missing required field 'question'"),
        ('[study]\nname = "a"\nquestion = 3\n[factors]\n', "study, question: expected a string"),
        ("[study", "not TOML"),
    ],
)
def test_a_file_without_a_heading_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(StudyError) as refused:
        study_heading(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert said.lower().replace("object", "table") in str(refused.value).lower()


def test_a_file_that_several_studies_extend_is_parsed_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parsed: list[str] = []

    def counted(text: str, where: str) -> dict[str, Any]:
        parsed.append(where)
        return parse_toml(text, where)

    monkeypatch.setattr(study_files, "parse_toml", counted)
    shared = tmp_path / "shared.toml"
    shared.write_text('[study]\nquestion = "How?"\n[factors]\nthreads = [1, 2]\n')
    for name in "ab":
        own = tmp_path / f"{name}.toml"
        own.write_text(f'extends = "shared.toml"\n[study]\nname = "{name}"\n')
        assert study_heading(own).question == "How?"
    assert parsed.count(str(shared)) == 1
    shared.write_text(shared.read_text().replace("How?", "Why?"))
    assert study_heading(own).question == "Why?", "what is kept is that of this text alone"

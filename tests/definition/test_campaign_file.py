"""Campaign files, test cases and published figures: what is read, and each refusal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.definition import campaign_file
from concurve.definition.campaign import Answer, Campaign, at_effort, only
from concurve.definition.campaign_file import load_campaign
from concurve.definition.catalogue import campaigns, find, find_study
from concurve.definition.copying import copy_packaged
from concurve.definition.published import PublishedFigure, load_published
from concurve.definition.study import Study
from concurve.definition.study_file import load_study
from concurve.errors import StudyError
from concurve.terms import CampaignTexts, Goal, Reference
from concurve.terms import TestCase as Case
from tests.helpers.campaigns import CAMPAIGN, PUBLISHED, STUDY, write_campaign

HEADING = "table,figure_row,figure_column,value,unit,indicator,parameters,base,compare\n"


def figures(folder: Path, rows: str, heading: str = HEADING) -> tuple[PublishedFigure, ...]:
    path = folder / "published.csv"
    path.write_text(heading + rows)
    return load_published(path)[""]


def refusal(folder: Path, rows: str, heading: str = HEADING) -> StudyError:
    with pytest.raises(StudyError) as refused:
        figures(folder, rows, heading)
    return refused.value


def test_a_campaign_reaches_every_field(tmp_path: Path) -> None:
    campaign = load_campaign(write_campaign(tmp_path), 2)
    assert (campaign.name, campaign.title) == ("small-campaign", "A small campaign")
    assert [member.name for member in campaign.studies] == ["tc01", "tc02"]
    assert campaign.texts.introduction == "Why this | is asked."
    assert campaign.glossary == {"CAS": "compare and swap"}
    study = campaign.studies[0].study
    assert study.test_case == Case(
        id="Test case 1",
        area="Hardware",
        goal="T1",
        objective="Find how far tc01 scales.",
        expected=("a factor", "no more"),
        conditions=("a machine with two CPUs",),
        indicators=("computation time",),
        steps=("run it", "write it down"),
    )
    assert len(study.published) == 7
    assert campaign.studies[1].study.published == ()


TABLES = """
[[goal]]
id = "T1"
says = "How far it scales."
priority = "must"

[[goal]]
id = "T2"
says = "How far another one does."

[[measure]]
name = "computation time"
meaning = "From the first to the last."
source = "a stopwatch"
here = "the report channel"

[[measure]]
name = "run time"
meaning = "All of it."
left-out = "It holds the start-up."

[[reference]]
id = "SDD"
says = "The design"
"""


def test_a_campaign_has_goals_measures_and_references(tmp_path: Path) -> None:
    texts = load_campaign(write_campaign(tmp_path, campaign=CAMPAIGN + TABLES), 2).texts
    assert texts.goals == (
        Goal(id="T1", says="How far it scales.", priority="must"),
        Goal(id="T2", says="How far another one does."),
    )
    assert [(item.name, item.here, item.left_out) for item in texts.measures] == [
        ("computation time", "the report channel", ""),
        ("run time", "", "It holds the start-up."),
    ]
    assert texts.references == (Reference(id="SDD", says="The design"),)
    assert msgspec.json.decode(msgspec.json.encode(texts), type=CampaignTexts) == texts


@pytest.mark.parametrize(
    ("change", "what", "remedy"),
    [
        (('id = "T2"', 'id = "T1"'), "goal, id 'T1': appears twice", "once"),
        (('id = "T2"', 'id = "T20"'), "goal 'T2' is no goal of campaign.toml", "'T20'"),
        (('priority = "must"', 'priority = "shall"'), "'shall'", "one of must, can"),
        (('priority = "must"', 'prio = "must"'), "unknown key 'prio'", "'priority'"),
        (("left-out", "left_out"), "unknown key 'left_out'", "'left-out'"),
    ],
)
def test_a_malformed_goal_or_measure_is_refused(
    tmp_path: Path, change: tuple[str, str], what: str, remedy: str
) -> None:
    path = write_campaign(tmp_path, campaign=CAMPAIGN + TABLES.replace(*change))
    with pytest.raises(StudyError) as refused:
        load_campaign(path, 2)
    assert what in refused.value.what
    assert remedy in refused.value.remedy


def test_an_effort_may_do_with_some_of_the_studies(tmp_path: Path) -> None:
    text = CAMPAIGN + '\n[effort.quick]\nstudies = ["tc02"]\n'
    campaign = load_campaign(write_campaign(tmp_path, campaign=text), 2)
    assert [member.name for member in at_effort(campaign, "quick").studies] == ["tc02"]
    assert at_effort(campaign, "normal") == campaign


def test_a_stored_study_keeps_its_test_case_and_figures(tmp_path: Path) -> None:
    study = load_campaign(write_campaign(tmp_path), 2).studies[0].study
    assert msgspec.json.decode(msgspec.json.encode(study), type=Study) == study


def test_a_study_of_a_campaign_alone_has_its_figures(tmp_path: Path) -> None:
    write_campaign(tmp_path)
    study = find_study(str(tmp_path / "tc01" / "study.toml"), 2)
    assert {figure.table for figure in study.published} == {"11", "12"}


def test_a_study_has_the_figures_in_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(name="x", number=1, command="true"))
    figures(tmp_path, "1,r,c,3.5,s,wall_seconds,cpus=1;threads=1,,\n")
    assert load_study(tmp_path / "study.toml", 2).published[0].value == 3.5


@pytest.mark.parametrize(
    ("change", "what", "remedy"),
    [
        (("[texts]", "[text]"), "unknown key 'text'", "'texts'"),
        (("introduction", "introductoin"), "unknown key 'introductoin'", "'introduction'"),
        (('["tc01", "tc02"]', "[]"), "studies: none", "folders"),
        (('["tc01", "tc02"]', '["tc01", "tc1"]'), "'tc1' has no", "'tc01'"),
        (('["tc01", "tc02"]', '["tc01", "tc01"]'), "'tc01' appears twice", "once"),
        (('["tc01", "tc02"]', '["../tc01"]'), "is no name of a folder", "letters"),
        (('["tc01", "tc02"]', '["tc02"]'), "test_case 'tc01' is no study", "tc02"),
        (('"small-campaign"', '"small campaign"'), "not a name", "letters"),
        (("[glossary]", '[effort.quik]\nstudies = ["tc01"]\n[glossary]'), "'quik'", "quick"),
        (("[glossary]", "[effort.quick]\nstudies = []\n[glossary]"), "quick, studies: none", "one"),
        (("[glossary]", '[effort.quick]\nstudies = ["tc1"]\n[glossary]'), "'tc1' is none", "tc01"),
        (("[glossary]", '[effort.quick]\nstudy = ["tc1"]\n[glossary]'), "'study'", "'studies'"),
        (('question = "How does it scale?"\n', ""), "missing required field 'question'", "docs/"),
    ],
)
def test_a_malformed_campaign_is_refused_with_file_key_and_remedy(
    tmp_path: Path, change: tuple[str, str], what: str, remedy: str
) -> None:
    path = write_campaign(tmp_path, campaign=CAMPAIGN.replace(*change))
    with pytest.raises(StudyError) as refused:
        load_campaign(path, 2)
    assert what in refused.value.what
    assert str(tmp_path) in refused.value.what
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("change", "what", "remedy"),
    [
        (('objective = "Find how far {name} scales."', ""), "'objective'", "docs/studies.md"),
        (('id = "Test case {number}"', 'id = " "'), "test_case, id: empty", "words"),
        (("expected = [", "expcted = ["), "test_case: unknown key 'expcted'", "'expected'"),
        (('steps = ["run it", "write it down"]', 'steps = "run it"'), "steps", "type"),
    ],
)
def test_a_malformed_test_case_is_refused(
    tmp_path: Path, change: tuple[str, str], what: str, remedy: str
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace(*change).format(name="x", number=1, command="true"))
    with pytest.raises(StudyError) as refused:
        load_study(path, 2)
    assert what in refused.value.what
    assert str(path) in refused.value.what
    assert remedy in refused.value.remedy


ANSWER = """
[[answer]]
study = "tc01"
factor = "threads"
by = "wall_seconds"
where = { cpus = 2 }
names = { 1 = "one thread", 2 = "two threads" }
claims = ["halves"]

[[answer]]
study = "tc02"
"""


def test_a_campaign_says_what_answers_its_question(tmp_path: Path) -> None:
    campaign = load_campaign(write_campaign(tmp_path, campaign=CAMPAIGN + ANSWER), 2)
    assert campaign.answer == (
        Answer(
            study="tc01",
            factor="threads",
            by="wall_seconds",
            where={"cpus": 2},
            names={"1": "one thread", "2": "two threads"},
            claims=("halves",),
        ),
        Answer(study="tc02"),
    )


@pytest.mark.parametrize(
    ("old", "new", "what", "remedy"),
    [
        ('study = "tc01"', 'study = "tc1"', "answer 1, study: 'tc1' is not a study", "tc01"),
        ('factor = "threads"', 'factor = "thread"', "answer 1, factor: 'thread'", "threads"),
        ('factor = "threads"\n', "", "answer 1, by: there is no factor", "leave it out"),
        ('by = "wall_seconds"', 'by = "wall"', "answer 1, by: 'wall'", "wall_seconds"),
        ("cpus = 2 }", "cpus = 3 }", "answer 1, where.cpus: '3'", "one of 1, 2"),
        ("cpus = 2 }", "cpu = 2 }", "answer 1, where: 'cpu'", "cpus"),
        ("cpus = 2 }", "threads = 2 }", "is the factor whose levels are compared", "other factors"),
        ("names = { 1 =", "names = { 3 =", "answer 1, names: '3' is not a level", "one of 1, 2"),
        ('"halves"', '"halve"', "answer 1, claims: 'halve'", "halves"),
        ("names =", "name =", "unknown key 'name'", "names"),
    ],
)
def test_an_answer_that_its_study_cannot_give_is_refused(
    tmp_path: Path, old: str, new: str, what: str, remedy: str
) -> None:
    path = write_campaign(tmp_path, campaign=CAMPAIGN + ANSWER.replace(old, new, 1))
    with pytest.raises(StudyError) as refused:
        load_campaign(path, 2)
    assert what in refused.value.what
    assert str(path) in refused.value.what
    assert remedy in refused.value.remedy


def test_an_indicator_without_a_direction_decides_nothing(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, campaign=CAMPAIGN + ANSWER)
    study = tmp_path / "tc01" / "study.toml"
    study.write_text(study.read_text().replace('better = "lower"\n', "", 1))
    with pytest.raises(StudyError, match="whether higher or lower wall_seconds is better"):
        load_campaign(path, 2)


def test_every_packaged_campaign_says_what_answers_it() -> None:
    for entry in campaigns():
        campaign = find(entry.name, 2)
        assert isinstance(campaign, Campaign)
        assert campaign.answer, entry.name
        assert campaign.answer[0].factor, "one thing is chosen among others"


def test_two_studies_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write_campaign(tmp_path)
    (tmp_path / "tc02" / "study.toml").write_text((tmp_path / "tc01" / "study.toml").read_text())
    with pytest.raises(StudyError, match="name 'small-tc01' is that of tc01 too"):
        load_campaign(path, 2)


def test_figures_of_an_unknown_factor_are_refused(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, published=PUBLISHED.replace("threads=2,cpus=1", "cpu=2,cpus=1"))
    with pytest.raises(StudyError, match="table 11, Factor, 2 threads: 'cpu' is no factor"):
        load_campaign(path, 2)


def test_bases_are_the_named_one_or_the_first_of_table_and_indicator(tmp_path: Path) -> None:
    found = figures(
        tmp_path,
        "1,r,a,10,s,wall_seconds,n=1,,\n"
        "1,r,b,5.0,s,wall_seconds,n=2,,\n"
        "1,k,a,7,count,switches,n=1;m=x,,\n"
        "1,k,b,21,count,switches,n=2;m=x,n=1,\n"
        "1,f,b,1.95,factor,wall_seconds,n=2,n=1,\n"
        "2,r,c,40,s,wall_seconds,n=4,n=1,\n"
        "2,p,c,2572,,,,,\n",
    )
    assert [figure.compare for figure in found] == [
        "ratio", "ratio", "ratio", "ratio", "factor", "ratio", "none"
    ]  # fmt: skip
    assert [figure.base_parameters for figure in found[:6]] == [
        {"n": 1}, {"n": 1}, {"n": 1, "m": "x"}, {"n": 1, "m": "x"}, {"n": 1}, {"n": 1}
    ]  # fmt: skip
    assert [figure.base_value for figure in found[:6]] == [10, 10, 7, 7, None, 10]


def test_values_keep_their_print_and_rounding(tmp_path: Path) -> None:
    found = figures(tmp_path, "1,r,a,35.72,s,,,,\n1,r,b,1:09,s,,,,\n1,r,c,7146,,,,,\n")
    assert [(figure.value, figure.rounding) for figure in found] == [
        (35.72, pytest.approx(0.005)), (69, 0.5), (7146, 0.5)
    ]  # fmt: skip
    assert found[1].printed == "1:09"


@pytest.mark.parametrize(
    ("rows", "what", "remedy"),
    [
        ("1,r,a,ohne,s,,,,\n", "line 2: value 'ohne' is no number", "1:09"),
        ("1,r,,3,s,,,,\n", "line 2: figure_column is empty", "prints"),
        ("1,r,a,3,s\n", "line 2: fewer fields", "quotes"),
        ("1,r,a,3,s,w,cpus,,\n", "line 2: parameters: 'cpus' is no NAME=LEVEL", "threads=1"),
        ("1,r,a,3,s,w,n=1;n=2,,\n", "line 2: parameters: n appears twice", "once"),
        ("1,r,a,3,s,w,n=1,,same\n", "line 2: compare 'same'", "ratio"),
        ("1,r,a,3,s,,,,ratio\n", "line 2: compare 'ratio' without", "none"),
        ("1,r,a,3,s,w,n=2,n=1,\n", "line 2: no published w at the base n=1", "none"),
    ],
)
def test_a_malformed_figure_is_refused_with_its_line(
    tmp_path: Path, rows: str, what: str, remedy: str
) -> None:
    refused = refusal(tmp_path, rows)
    assert what in refused.what
    assert "published.csv" in refused.what
    assert remedy in refused.remedy


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    row = "t1,r,c,{},s,wall_seconds,threads=1,,\n"
    assert [f.value for f in figures(tmp_path, row.format(4))] == [4]
    refusal(tmp_path, row.format("x"))
    assert [f.value for f in figures(tmp_path, row.format(5))] == [5]


def test_a_figure_may_name_its_tolerance(tmp_path: Path) -> None:
    heading = HEADING.replace("compare", "compare,tolerance")
    refused = refusal(tmp_path, "1,r,a,3,s,,,,,a lot\n", heading)
    assert "line 2: tolerance 'a lot' is no share" in refused.what
    assert "0.01" in refused.remedy
    assert "tolerance '1.5'" in refusal(tmp_path, "1,r,a,3,s,,,,,1.5\n", heading).what


def test_columns_that_are_missing_or_unknown_are_refused(tmp_path: Path) -> None:
    assert "no column 'value'" in refusal(tmp_path, "", HEADING.replace("value,", "")).what
    refused = refusal(tmp_path, "", HEADING.replace("base", "basis"))
    assert "unknown column 'basis'" in refused.what
    assert "'base'" in refused.remedy


def test_only_keeps_the_campaigns_order_and_each_study_once(tmp_path: Path) -> None:
    campaign = load_campaign(write_campaign(tmp_path), 2)
    assert [m.name for m in only(campaign, ["tc02", "tc01", "tc02"]).studies] == ["tc01", "tc02"]
    with pytest.raises(StudyError) as refused:
        only(campaign, ["tc01", "tc2"])
    assert "no study 'tc2'" in refused.value.what
    assert "'tc02'" in refused.value.remedy
    with pytest.raises(StudyError, match="no study ''"):
        only(campaign, [""])


def test_a_campaign_file_is_found_and_is_no_study(tmp_path: Path) -> None:
    path = str(write_campaign(tmp_path))
    assert not isinstance(find(path, 2), Study)
    with pytest.raises(StudyError, match="is a campaign of 2 studies"):
        find_study(path, 2)


@pytest.mark.parametrize("entry", campaigns(), ids=lambda entry: entry.name)
def test_packaged_campaigns_say_what_a_test_document_demands(entry: object) -> None:
    campaign = find(entry.name, 2)  # type: ignore[attr-defined]
    assert not isinstance(campaign, Study)
    for member in campaign.studies:
        case = member.study.test_case
        assert case is not None, member.name
        for field in ("goal", "expected", "conditions", "indicators", "steps"):
            assert getattr(case, field), f"{member.name}: {field}"


def test_a_copied_campaign_keeps_what_answers_it(tmp_path: Path) -> None:
    copied = load_campaign(copy_packaged("kernel-mode", tmp_path / "own"), 2)
    packaged = find("kernel-mode", 2)
    assert isinstance(packaged, Campaign)
    assert copied.answer == packaged.answer != ()


def test_a_study_of_a_campaign_is_found_without_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    def load(path: Path, cpus: int) -> Study:
        loaded.append(path.parent.name)
        return load_study(path, cpus)

    monkeypatch.setattr(campaign_file, "load_study", load)
    assert find_study("java-threads/tc09", 2).name == "java-threads-tc09"
    assert loaded == ["tc09"]


def test_a_slip_in_the_name_of_a_campaign_is_named_with_the_study() -> None:
    with pytest.raises(StudyError) as error:
        find("java-thread/tc09", 2)
    assert "did you mean 'java-threads/tc09'?" in str(error.value)
    with pytest.raises(StudyError) as error:
        find("mine/study", 2)
    assert "whose name ends with .toml" in str(error.value)

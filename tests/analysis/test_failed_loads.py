"""A load that only gets errors is no good rate: of tools, of one's own figures, of our load."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.analysis.run import trial_findings_of
from concurve.analysis.run.failures import FailedLoad, failure_sentences, not_compared
from concurve.analysis.scaling import scaling_of
from concurve.columns import read_table
from concurve.definition.failures import FailureCount, default_failures, failure_counts
from concurve.definition.programs import programs
from concurve.definition.study import Claim, Indicator, Role
from concurve.definition.study_file import parse_study
from concurve.definition.study_line import sweep_study
from concurve.errors import RunError, StudyError
from concurve.findings.run import TrialFindings
from concurve.planning.plan import make_plan
from concurve.report.csv import cells, trials
from concurve.store import Store
from tests.helpers.meant import TPS, Case, run_of, run_study, study_of

FILE = """
[study]
name = "small"
question = "How?"
[factors]
n = [1, 2]
[[roles]]
name = "target"
command = ["./mine", "{n}"]
"""


def wrk(failed_of: dict[int, float], *, socket_errors: int = 0) -> Case:
    """wrk for two seconds, with this share of errors at each number of connections."""

    def prints(n: int, wall: float, noise: float) -> str:
        done = round(2 * TPS[n] * noise)
        failed = round(failed_of.get(n, 0) * done)
        lines = [f"  {done} requests in 2.00s, 4.54MB read"]
        if socket_errors:
            lines.append(f"  Socket errors: connect 0, read {socket_errors}, write 0, timeout 0")
        if failed:
            lines.append(f"  Non-2xx or 3xx responses: {failed}")
        return "\n".join([*lines, f"Requests/sec:  {done / 2:.2f}\n"])

    return Case("wrk", lambda n: 2.0, prints, {"extracts": ("wrk",)}, levels="1,2,4,8")


def found(case: Case, tmp_path: Path, *, expected: bool = False) -> TrialFindings:
    tmp_path.mkdir(exist_ok=True)
    study = study_of(case)
    if expected:
        indicators = (
            msgspec.structs.replace(item, failures="expected" if item.failures else "")
            for item in study.indicators
        )
        study = msgspec.structs.replace(study, indicators=tuple(indicators))
    return run_study(study, case, Store(str(tmp_path / "s.db")))


def found_where_all_fails(case: Case, tmp_path: Path) -> TrialFindings:
    """What the first block says, after which the run ends with the reason."""
    tmp_path.mkdir(exist_ok=True)
    store = Store(str(tmp_path / "s.db"))
    with pytest.raises(RunError, match=r"n=\d: .*(nothing succeeded|all failed)"):
        run_of(case, store)
    row = store.find_run("last")
    findings = trial_findings_of(store, row)
    assert (row.state, store.count(row.id)) == ("failed", len(findings.cells))
    return findings


def said(findings: TrialFindings, kind: str) -> list[str]:
    return [item.sentence for item in findings.sentences if item.kind == kind]


def test_a_load_of_errors_alone_recommends_nothing(tmp_path: Path) -> None:
    findings = found_where_all_fails(wrk(dict.fromkeys(TPS, 1.0)), tmp_path)
    answers = said(findings, "answer")
    assert len(answers) == 1, answers
    assert answers[0].startswith("Failed responses: all ") and "with n=1" in answers[0]
    assert "no setting is recommended" in answers[0]
    assert findings.best == ()
    assert all("speedup" not in cell.indicators for cell in findings.cells)
    assert all("failed" in cell.absent["speedup"] for cell in findings.cells)


def test_a_run_that_ends_for_failures_quotes_what_the_program_printed_of_them(
    tmp_path: Path,
) -> None:
    with pytest.raises(RunError, match=r"printed 'Non-2xx or 3xx responses: [0-9]+'"):
        run_of(wrk(dict.fromkeys(TPS, 1.0)), Store(str(tmp_path / "a.db")))
    errors = Case(
        "wrk",
        lambda n: 2.0,
        lambda n, wall, noise: (
            "  0 requests in 2.00s, 0.00B read\n"
            "  Socket errors: connect 64, read 0, write 0, timeout 0\nRequests/sec:  0.00\n"
        ),
        {"extracts": ("wrk",)},
        levels="1,2",
    )
    with pytest.raises(RunError, match="printed 'Socket errors: connect 64, read 0"):
        run_of(errors, Store(str(tmp_path / "b.db")))


def test_a_setting_whose_load_failed_is_not_recommended(tmp_path: Path) -> None:
    findings = found(wrk({8: 0.5}), tmp_path)
    first, *others = said(findings, "answer")
    assert first.startswith("Failed responses: ") and "(50 %) with n=8" in first
    assert "This setting is not compared with the others" in first
    assert any("4" in answer for answer in others), "the others are compared"
    assert findings.best_overall is not None
    assert findings.best_overall.recommended == {"n": 4}


def test_models_leave_out_the_levels_whose_load_failed(tmp_path: Path) -> None:
    (sound,) = scaling_of(found(wrk({}), tmp_path))
    (model,) = scaling_of(found(wrk({8: 0.5}), tmp_path))
    assert sound.fit is not None and sound.fit.levels == (1.0, 2.0, 4.0, 8.0)
    assert model.fit is not None and model.fit.levels == (1.0, 2.0, 4.0)
    assert model.answers[-1] == "n=8 is left out: its load failed."
    assert not [text for text in sound.answers if "failed" in text]


def test_models_without_enough_sound_levels_say_why(tmp_path: Path) -> None:
    (model,) = scaling_of(found(wrk({4: 0.5, 8: 1.0}), tmp_path))
    assert model.fit is None
    assert model.reason.endswith(". n=4 and n=8 are left out: their load failed")
    (model,) = scaling_of(found_where_all_fails(wrk(dict.fromkeys(TPS, 1.0)), tmp_path / "all"))
    assert model.fit is None and model.reason == "the load failed at all levels"


def test_exported_rows_of_a_failed_load_are_not_fitted(tmp_path: Path) -> None:
    findings = found(wrk({8: 0.5}), tmp_path)
    for number, text in enumerate((cells(findings), trials(findings))):
        file = tmp_path / f"{number}.csv"
        file.write_text(text, encoding="utf-8")
        table = read_table(file, ["n", "requests_per_second"])
        assert set(table.columns["n"]) == {1.0, 2.0, 4.0}
        assert "of levels whose load failed" in "\n".join(table.said)


def test_a_reader_is_told_the_limit_of_a_load_that_did_not_fail(tmp_path: Path) -> None:
    told = found(wrk({8: 0.5}), tmp_path).cell_to_explain
    assert told is not None and told.parameters == {"n": 4}


def test_few_failures_are_a_warning_alone(tmp_path: Path) -> None:
    findings = found(wrk({2: 0.001}), tmp_path)
    assert findings.best_overall is not None
    assert findings.best_overall.recommended == {"n": 8}
    assert "Failed responses" not in " ".join(said(findings, "answer"))
    first = said(findings, "warning")[0]
    assert first.startswith("Failed responses: ") and "(0.10 %) with n=2" in first


def test_trials_in_which_nothing_failed_count_too(tmp_path: Path) -> None:
    """wrk prints no line of errors where there were none."""
    case = wrk({})
    plain = case.prints
    calls = {8: 0}

    def sometimes(n: int, wall: float, noise: float) -> str:
        text = plain(n, wall, noise)
        if n != 8:
            return text
        calls[8] += 1
        return text if calls[8] > 1 else f"{text}  Non-2xx or 3xx responses: 38000\n"

    findings = found(case._replace(prints=sometimes), tmp_path)
    (warning,) = (text for text in said(findings, "warning") if "Failed responses" in text)
    assert "38,000 of " in warning, "a third of one trial, and less than a tenth of all"


def test_nothing_is_said_where_nothing_failed(tmp_path: Path) -> None:
    findings = found(wrk({}), tmp_path)
    assert not [item for item in findings.sentences if "ailed" in item.sentence]


def test_what_is_counted_beside_the_operations_is_added_to_them(tmp_path: Path) -> None:
    findings = found(wrk({}, socket_errors=10**9), tmp_path)
    assert "Socket errors: " in said(findings, "answer")[0]
    assert findings.best == ()


@pytest.mark.parametrize(
    ("extract", "text"),
    [
        (r"bad=bad ([0-9]+)::failures", "done {done}\nbad {done}\nrate {rate:.1f}\n"),
        (r"bad=bad ([0-9.]+)%:%:failures", "done {done}\nbad 100%\nrate {rate:.1f}\n"),
    ],
)
def test_a_figure_of_ones_own_counts_failures(extract: str, text: str, tmp_path: Path) -> None:
    def prints(n: int, wall: float, noise: float) -> str:
        return text.format(done=round(2 * TPS[n] * noise), rate=TPS[n] * noise)

    options = {"extracts": (r"rate=rate ([0-9.]+):1/s:higher", r"operations=done (\d+)", extract)}
    findings = found_where_all_fails(Case("own", lambda n: 2.0, prints, options), tmp_path)
    assert said(findings, "answer")[0].startswith("Bad: ")
    assert findings.best == ()


def test_failures_of_which_no_total_is_known_are_a_warning(tmp_path: Path) -> None:
    def prints(n: int, wall: float, noise: float) -> str:
        return f"bad 3\nrate {TPS[n] * noise:.1f}\n"

    options = {"extracts": (r"rate=rate ([0-9.]+):1/s:higher", r"bad=bad (\d+)::failures")}
    findings = found(Case("own", lambda n: 2.0, prints, options), tmp_path)
    assert said(findings, "warning")[0].startswith("Bad: ")
    assert findings.best_overall is not None


def test_our_load_says_what_counts_failures() -> None:
    study = sweep_study(["true", "{n}"], [("n", "1,2")], 2)
    load = Role(name="load", program="load", command=())
    counts = failure_counts(msgspec.structs.replace(study, roles=(load, *study.roles)))
    assert FailureCount("load.errors", "beside", "load.operations") in counts
    assert not any(count.name == "load.refused" for count in counts), "an answer, by load.md"
    assert FailureCount("load.unanswered", "among", "load.due") in counts
    alone = msgspec.structs.replace(study, roles=(load,), target="load")
    assert FailureCount("unanswered", "among", "due") in failure_counts(alone)


LOAD = """
[[roles]]
name = "load"
program = "load"
arguments = ["127.0.0.1:1"]
"""


def test_a_study_says_which_failures_it_expects() -> None:
    """Such as requests for keys that are not there."""
    alike = FILE + LOAD + '\n[[indicators]]\nuse = ["wall_seconds"]\n'
    counted = failure_counts(parse_study(alike, 2, "here"))
    assert FailureCount("load.errors", "beside", "load.operations") in counted
    for entry in (
        'use = ["load.errors", "load.operations"]\nfailures = "expected"',
        'name = "load.errors"\nfailures = "expected"',
    ):
        study = parse_study(f"{alike}[[indicators]]\n{entry}\n", 2, "here")
        left = failure_counts(study)
        assert [it.name for it in left] == [it.name for it in counted if it.name != "load.errors"]
        assert {it.failures for it in study.indicators} == {"", "expected"}


def test_who_wrote_the_study_is_told_how_to_expect_them() -> None:
    study = parse_study(f'{FILE}{LOAD}\n[[indicators]]\nuse = ["load.errors"]\n', 2, "here")
    plan = make_plan(study, "quick", 1)
    load = FailedLoad(0, "load.errors", 40, 100, 0.4)
    (found,) = failure_sentences(plan, [load], ())
    assert 'if the study expects that: use = ["load.errors"], failures = "expected".' in (
        found.sentence
    )
    tool = parse_study(f'{FILE}\n[[indicators]]\ntool = "wrk"\n', 2, "here")
    (found,) = failure_sentences(
        make_plan(tool, "quick", 1), [load._replace(indicator="failed_responses")], ()
    )
    assert "expects" not in found.sentence


def test_a_study_expects_what_a_tool_counts_as_failed(tmp_path: Path) -> None:
    tool = FILE + '\n[[indicators]]\ntool = "wrk"\n'
    assert len(failure_counts(parse_study(tool, 2, "here"))) == 2
    study = parse_study(f'{tool}failures = "expected"\n', 2, "here")
    assert failure_counts(study) == []


def test_loads_whose_failures_are_expected_are_compared(tmp_path: Path) -> None:
    case = wrk({4: 0.5, 8: 0.9})
    findings = found(case, tmp_path)
    assert findings.best_overall is not None and findings.best_overall.recommended != {"n": 8}
    expected = found(case, tmp_path / "other", expected=True)
    assert expected.best_overall is not None and expected.best_overall.recommended == {"n": 8}
    assert not [item for item in expected.sentences if "ailed" in item.sentence]
    assert all(cell.load_failed == "" for cell in expected.cells)
    assert all("failed_responses" in expected.cells[n].indicators for n in (2, 3)), "still counted"


@pytest.mark.parametrize(
    ("entry", "says", "remedy"),
    [
        ('use = ["wall_seconds"]\nfailures = "share"', "'failures' beside use", '"expected"'),
        ('tool = "wrk"\nfailures = "share"', "'failures' beside tool", '"expected"'),
        ('use = ["wall_seconds"]\nunit = "s"', "'unit' beside use", "of its own"),
    ],
)
def test_nothing_else_stands_beside_use_and_tool(entry: str, says: str, remedy: str) -> None:
    with pytest.raises(StudyError, match=says) as refused:
        parse_study(f"{FILE}[[indicators]]\n{entry}\n", 2, "here")
    assert remedy in refused.value.remedy


def test_what_failures_are_among_is_reported_by_the_program() -> None:
    for table in programs().values():
        study = sweep_study(["true", "{n}"], [("n", "1,2")], 2)
        indicators = tuple(
            Indicator(name=name, failures=text.failures) for name, text in table.indicators.items()
        )
        for count in failure_counts(msgspec.structs.replace(study, indicators=indicators)):
            assert count.how == "share" or count.of in table.indicators


def test_a_study_file_says_it_and_is_refused_other_words() -> None:
    text = FILE + ('\n[[indicators]]\nname = "bad"\npattern = "bad ([0-9]+)"\nfailures = "WORDS"\n')
    study = parse_study(text.replace("WORDS", "beside operations"), 2, "here")
    assert failure_counts(study) == [FailureCount("bad", "beside", "operations")]
    with pytest.raises(StudyError, match="failures 'some'"):
        parse_study(text.replace("WORDS", "some"), 2, "here")


def test_what_failed_of_the_same_operations_counts_together() -> None:
    """Nine of a hundred answers were errors, and nine connections broke beside them."""
    loads = [
        FailedLoad(0, "failed_responses", 9, 100, 0.09, "operations", 100),
        FailedLoad(0, "socket_errors", 9, 109, 9 / 109, "operations", 100),
        FailedLoad(1, "failed_responses", 9, 100, 0.09, "operations", 100),
        FailedLoad(1, "unanswered", 9, 100, 0.09, "due", 100),
    ]
    failed = not_compared(loads, ())
    assert list(failed) == [0]
    assert "failed_responses" in failed[0] and "socket_errors" in failed[0]


def test_a_count_without_a_unit_is_no_share() -> None:
    assert default_failures("1") == default_failures("") == "among operations"
    assert default_failures("%") == "share"


def test_no_claim_is_judged_by_a_load_that_failed(tmp_path: Path) -> None:
    """Errors come faster than answers, so the claim would be supported."""
    claim = Claim(
        id="more", says="Eight are better than one.", kind="ratio",
        test={"of": {"n": 8}, "over": {"n": 1}, "indicator": "requests_per_second",
              "at_least": 1.0},
    )  # fmt: skip
    for share, verdict in ((0.0, "supported"), (0.5, "not testable here")):
        case = wrk({8: share})
        study = msgspec.structs.replace(study_of(case), claims=(claim,))
        (found,) = run_study(study, case, Store(str(tmp_path / f"{share}.db"))).claims
        assert found.verdict == verdict, found
        assert ("its load failed" in found.reason) == (share > 0)

"""Which figure a setting is recommended by, judged by planted programs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.analysis.ground import undirected_before
from concurve.analysis.run import findings_of
from concurve.analysis.scaling import scaling_of, throughput_of
from concurve.definition.extracting import parse_extract
from concurve.definition.study import Indicator, Role
from concurve.definition.study_line import sweep_study
from concurve.errors import RunError
from concurve.store import Store
from concurve.store.run_head import decode_head
from tests.helpers.meant import CASES, TPS, Case, run_of, run_study, study_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_question_that_was_meant_is_answered(case: Case, store: Store) -> None:
    found = run_of(case, store, seed=2)
    said = " ".join(item.sentence for item in found.sentences)
    best = found.best_overall
    assert best is not None
    if case.run:
        assert not best.doubt, said
        assert best.named["n"] in case.run, said
    else:
        assert best.doubt and "No setting is recommended" in said
        assert "Run n=" not in said
        assert all("speedup" not in cell.indicators for cell in found.cells)
    for part in case.says:
        assert part in said


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def test_the_direction_may_be_said_afterwards(store: Store) -> None:
    """What the run advises for itself is what helps."""
    found = run_of(case_of("fixed time, no direction"), store)
    row = store.find_run(found.run.id)
    best = findings_of(store, row, "tps:higher").best_overall
    assert best is not None and not best.doubt
    assert (best.indicator, best.recommended) == ("tps", {"n": 8})
    lower = findings_of(store, row, "tps:lower").best_overall
    assert lower is not None and lower.recommended == {"n": 1}
    with pytest.raises(RunError, match="whether higher or lower tps is better") as refused:
        findings_of(store, row, "tps")
    assert "--best-by tps:higher" in refused.value.remedy
    with pytest.raises(RunError, match="'up' is no direction") as refused:
        findings_of(store, row, "tps:up")
    assert "--best-by tps:higher" in refused.value.remedy


def test_a_fixed_wall_time_decides_not_even_where_it_is_asked_for(store: Store) -> None:
    for name in ("fixed time", "fixed time, operations extracted"):
        found = run_of(case_of(name), store)
        for asked in ("wall_seconds", "wall_seconds:lower", "run_seconds"):
            best = findings_of(store, store.find_run(found.run.id), asked).best_overall
            assert best is not None and best.doubt, (name, asked)


def test_speed_up_is_that_of_the_throughput_where_time_is_fixed(store: Store) -> None:
    found = run_of(case_of("fixed time"), store)
    speedup = found.cells[3].indicators["speedup"]
    assert speedup.value == pytest.approx(TPS[8] / TPS[1], rel=0.03)
    said = " ".join(item.sentence for item in found.sentences)
    assert "by wall time" not in said, "nothing is said by a time that is fixed"


def test_operations_that_are_extracted_and_the_recommendation_agree(store: Store) -> None:
    found = run_of(case_of("fixed time, operations extracted"), store)
    best = found.best_overall
    assert best is not None and best.indicator == "rate_per_second"
    fastest = max(found.cells, key=lambda cell: cell.indicators["speedup"].value)
    assert best.leader == fastest.parameters


def test_a_study_file_says_itself_that_its_work_is_fixed(store: Store) -> None:
    """Its author has chosen the indicator; only what was counted or printed may object."""
    case = case_of("the work grows on enough CPUs")
    study = msgspec.structs.replace(study_of(case), work_amount="")
    found = run_study(study, case, store)
    assert found.best_overall is not None and not found.best_overall.doubt


def test_figures_of_another_role_compare_the_settings(store: Store) -> None:
    """The server is measured, and its client prints the throughput."""
    case = case_of("fixed time")
    client = Role(name="client", command=("true", "{n}"))
    extract = parse_extract(r"client.tps=tps = ([0-9.]+):1/s:higher")[0]
    study = study_of(case._replace(options={}))
    study = msgspec.structs.replace(
        study,
        roles=(*study.roles, client),
        extracts=(extract.extract,),
        indicators=(*study.indicators, extract.indicator),
    )
    best = run_study(study, case, store).best_overall
    assert best is not None and (best.indicator, best.recommended) == ("client.tps", {"n": 8})


def test_settings_are_recommended_under_each_condition(store: Store) -> None:
    """Modes are met, not chosen: nobody is told to run in mode lock."""
    case = Case("two modes", lambda n: 1.0 / n, levels="1,2,4")
    study = sweep_study(
        ["true", "{mode}", "{n}"], [("n", "1,2,4"), ("mode", "cpu,lock")], 2, **case.options
    )
    found = run_study(study, case, store)
    assert [best.group for best in found.best] == [{"mode": "cpu"}, {"mode": "lock"}]
    assert all(best.recommended == {"n": 4} for best in found.best)
    said = " ".join(item.sentence for item in found.sentences)
    assert "Run n=1 mode" not in said and "Over all cells" not in said


def test_units_of_work_are_named_where_the_work_scales(store: Store) -> None:
    found = run_of(case_of("the work grows, and that is said"), store)
    assert any(
        "one unit of work, since the work scales" in item.sentence for item in found.sentences
    )
    cells = {cell.parameters["n"]: cell.indicators["speedup"].value for cell in found.cells}
    assert cells[2] == pytest.approx(2, rel=0.02) and cells[8] == pytest.approx(2, rel=0.02)


def test_a_study_file_is_told_of_its_keys_and_a_sweep_of_its_options(store: Store) -> None:
    case = case_of("fixed time, no direction")
    filed = msgspec.structs.replace(study_of(case), work_amount="", name="filed")
    said = " ".join(item.sentence for item in run_study(filed, case, store).sentences)
    assert 'better = "higher" (or "lower") in the entry tps of [[indicators]]' in said
    assert 'work_amount = "fixed" in [protocol]' in said
    assert "--extract" not in said and "--work" not in said
    swept = " ".join(item.sentence for item in run_of(case, store).sentences)
    assert "--extract" in swept and "[[indicators]]" not in swept
    fixed = msgspec.structs.replace(study_of(case), work_amount="fixed", name="fixed",
                                    indicators=(Indicator(name="tps"),))  # fmt: skip
    swept = " ".join(item.sentence for item in run_study(fixed, case, store).sentences)
    assert "--extract" in swept and "[[indicators]]" not in swept, "a sweep says it, too"


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("fixed time", {}, "tps"),
        ("fixed time", {"primary": "wall_seconds"}, "tps"),
        ("fixed time", {"primary": "latency:lower"}, "tps"),
        ("fixed time, no direction", {}, ""),
        ("fixed time, the latency alone", {}, ""),
        ("fixed time, operations extracted", {}, "rate_per_second"),
        ("fixed work that scales", {}, "rate_per_second"),
    ],
)
def test_models_are_fitted_to_what_compares_the_cells(
    name: str, options: dict[str, str], expected: str, store: Store
) -> None:
    """Never to a wall time that the program fixes."""
    case = case_of(name)
    extracts = case.options.get("extracts", ())
    if options.get("primary") == "latency:lower":
        extracts = (*extracts, r"latency=average = ([0-9.]+) ms:ms")
    given = {**case.options, **options, "extracts": extracts}
    found = run_of(case._replace(options=given), store)
    assert throughput_of(found) == expected
    if not expected:
        [refused] = scaling_of(found)
        assert refused.fit is None and "no throughput is known" in refused.reason


@pytest.mark.parametrize(
    ("extracts", "primary"),
    [
        (("wrk",), "requests_per_second"),
        (("wrk",), "rate_per_second"),
        ((r"operations=(\d+) requests in ", r"tps=sec\: ([0-9.]+):1/s:higher"), "tps"),
    ],
)
def test_the_primary_figure_wins_over_the_operations_that_are_counted(
    extracts: tuple[str, ...], primary: str, store: Store
) -> None:
    def prints(n: int, wall: float, noise: float) -> str:
        done = round(2 * TPS[n] * noise)
        return f"  {done} requests in 2.00s, 4MB read\nRequests/sec: {done / wall:.1f}\n"

    options = {"extracts": extracts, "primary": primary}
    found = run_of(Case("wrk", lambda n: 2.0, prints, options), store)
    assert found.primary == primary == found.throughput
    assert "operations" in found.cells[0].indicators
    said = " ".join(item.sentence for item in found.sentences)
    assert "time per operation" not in said, said
    assert found.cells[3].indicators["speedup"].value == pytest.approx(TPS[8] / TPS[1], rel=0.03)
    assert found.best_overall is not None and found.best_overall.recommended == {"n": 8}


@pytest.mark.parametrize("wall_cv", [0.001, 0.05])
def test_a_known_tool_of_which_nothing_is_read_is_not_ranked_by_its_fixed_time(
    wall_cv: float, store: Store
) -> None:
    case = Case("wrk", lambda n: 2.0, wall_cv=wall_cv)
    study = sweep_study(["wrk", "-d2s", "{n}"], [("n", case.levels)], 2)
    found = run_study(study, case, store)
    said = " ".join(item.sentence for item in found.sentences)
    assert (
        "No setting is recommended: the tool wrk seems to run for a fixed time (2.0 s in every"
        in said
    )
    assert "--extract wrk" in said and "--work fixed" in said
    assert "× as fast" not in said
    assert all("speedup" not in cell.indicators for cell in found.cells)
    fixed = msgspec.structs.replace(study, work_amount="fixed", name="fixed")
    best = run_study(fixed, case, store).best_overall
    assert best is not None and (best.is_open or best.recommended), "by its time, whatever it says"


def test_a_test_of_a_tool_that_may_print_no_rate_is_not_ranked_by_its_fixed_time_either(
    store: Store,
) -> None:
    case = Case("threads", lambda n: 10.0)
    study = sweep_study(["sysbench", "threads", "run", "--threads", "{n}"], [("n", case.levels)], 2)
    found = run_study(study, case, store)
    said = " ".join(item.sentence for item in found.sentences)
    assert "No setting is recommended: the tool sysbench seems to run for a fixed time" in said
    assert "--extract 'rate=PATTERN" in said and "--extract sysbench" not in said


def test_what_a_load_is_asked_for_comes_before_the_time_that_it_was_given(store: Store) -> None:
    """The rate and its latencies first, the wall time of a fixed duration last."""

    def prints(n: int, wall: float, noise: float) -> str:
        done = round(2 * TPS[n] * noise)
        return f"p50 {n * noise} ms\np99 {2 * n * noise} ms\ndone {done}\n"

    figures = (r"operations=done (\d+)", r"latency_s_p50=p50 ([0-9.]+) ms:ms:lower",
               r"latency_s_p99=p99 ([0-9.]+) ms:ms:lower")  # fmt: skip
    found = run_of(Case("load", lambda n: 2.0, prints, {"extracts": figures}), store)
    names = found.names_in_order()
    assert names[0] == "rate_per_second"
    first = [name for name in names[1:] if name not in ("operations", "speedup")]
    assert first[:2] == ["latency_s_p50", "latency_s_p99"]
    assert names.index("latency_s_p50") < names.index("speedup")
    assert names.index("wall_seconds") > names.index("cpu_seconds")


def test_a_figure_without_a_direction_says_what_is_missing(store: Store) -> None:
    """In a study from a file, where nothing else tells of the direction."""
    case = Case("score", lambda n: 2.0 / n, lambda n, wall, noise: f"score {n}\n",
                {"extracts": (r"score=score (\d+)",)})  # fmt: skip
    study = msgspec.structs.replace(
        study_of(case), work_amount="fixed", name="filed", indicators=(Indicator(name="score"),)
    )
    found = run_study(study, case, store)
    answer = next(item.sentence for item in found.sentences if item.kind == "answer")
    head = decode_head(store.find_run(found.run.id))
    assert "whether higher or lower score is better is not known" in answer
    assert f"concurve show {found.run.id} --best-by score:higher (or :lower)" in answer
    for said in (answer, undirected_before(head.study, head.effort, is_sweep=False)):
        assert 'better = "higher" (or "lower") in the entry score of [[indicators]]' in said
    up = msgspec.structs.replace(
        study, name="up", indicators=(Indicator(name="score", better="higher"),)
    )
    told = run_study(up, case, store)
    assert told.best_overall is not None
    assert not any("is not known" in item.sentence for item in told.sentences)
    assert undirected_before(up, "quick", is_sweep=False) == ""


def test_that_no_setting_is_faster_is_said_once() -> None:
    """A rate that no level moves: that none is faster, and that none is better, is the same."""
    case = Case("a rate that no level moves", lambda n: 1.0,
                lambda n, wall, noise: f"rate {1000 / wall:.1f}\n",
                {"extracts": (r"r=rate (\S+):1/s:higher",), "primary": "r"}, levels="1,2",
                wall_cv=0.01)  # fmt: skip
    (answer,) = (it.sentence for it in run_of(case, Store()).sentences if it.kind == "answer")
    assert answer.startswith("No setting is significantly faster than n=1. Use n=1")
    assert "not significantly better" not in answer

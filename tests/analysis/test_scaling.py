"""Scaling models fitted to a run, and what the views make of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from click.testing import CliRunner

from concurve.analysis.fit import Numbers, fit_numbers
from concurve.analysis.granted import Pool, granted_cpus
from concurve.analysis.run import stored_run
from concurve.analysis.scaling import scaling_of, throughput_of
from concurve.cli import app
from concurve.definition.controls import ControlsTemplate
from concurve.definition.measured import INDICATORS
from concurve.exports import export_run, render
from concurve.findings.explanation import Cause, CellExplanation, Explanation, Limit
from concurve.findings.run import LEVELS_OF_A_CURVE, Report
from concurve.findings.scaling import ScalingFinding
from concurve.models import fit_all, predict
from concurve.models.curve import LEVELS_MIN
from concurve.report.charts import charts
from concurve.report.charts.fit import fit_chart
from concurve.report.html import to_html
from concurve.report.markdown import to_markdown
from concurve.report.sections.run import Topic, brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.store import Store
from tests.helpers.made import made_run

pytestmark = pytest.mark.usefixtures("empty_charts", "fits_once")

SCHEMAS = Path(__file__).parents[2] / "schema"
LEVELS = (1, 2, 4, 8, 12, 16, 24, 32)
ALPHA, BETA = 0.05, 0.002


def seconds(threads: str, sync: str = "none") -> float:
    """The USL, with three times the contention under a lock."""
    n, alpha = float(threads), ALPHA * (3 if sync == "lock" else 1)
    return 2 * (1 + alpha * (n - 1) + BETA * n * (n - 1)) / n


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("scaling")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCURVE_LOCK", str(folder / "lock"))
        yield Store(str(folder / "store.db"))


def with_models(report: Report) -> Report:
    return msgspec.structs.replace(report, scaling=scaling_of(report))


@pytest.fixture(scope="module")
def one(store: Store) -> Report:
    return with_models(made_run(store, seconds, seed=1, cv=0.02, name="one", threads=LEVELS))


@pytest.fixture(scope="module")
def two(store: Store) -> Report:
    run = made_run(
        store, seconds, seed=2, cv=0.02, name="two", threads=LEVELS, sync=("none", "lock")
    )
    return with_models(run)


def only(findings: Report) -> ScalingFinding:
    [item] = findings.scaling
    assert item.fit is not None
    return item


def test_the_fit_is_that_of_every_trial(one: Report) -> None:
    item = only(one)
    assert item.fit is not None and item.indicator == "rate_per_second"
    rates = one.columns("rate_per_second")
    n = [level for cell in one.cells for level in [cell.parameters["threads"]] * cell.trials]
    x = [value for cell in one.cells for value in rates[cell.index]]
    same = fit_all([float(level) for level in n], x)
    assert item.fit.chosen == same.chosen == "usl"
    assert item.fit.trials == len(x) == 40
    assert item.fit.best.parameters["alpha"].low == same.best.parameters["alpha"].low
    assert item.fit.best.parameters["beta"].value == pytest.approx(BETA, rel=0.2)


def test_each_group_has_its_own(two: Report) -> None:
    assert [item.group for item in two.scaling] == [{"sync": "none"}, {"sync": "lock"}]
    alphas = [item.fit.model("usl").parameters["alpha"].value for item in two.scaling if item.fit]
    assert alphas == pytest.approx([ALPHA, 3 * ALPHA], rel=0.3)


def test_curves_go_on_to_twice_the_levels_and_widen(one: Report) -> None:
    item = only(one)
    rate = item.curves["rate_per_second"]
    inside = [point for point in rate if not point.beyond]
    ahead = [point for point in rate if point.beyond]
    assert inside[0].n == 1 and inside[-1].n == ahead[0].n == 32 and ahead[-1].n == 64
    widths = [point.high / point.low for point in ahead]
    assert widths == sorted(widths) and widths[-1] > 1.2 * widths[0]
    assert item.fit is not None
    [expected] = predict(item.fit, [64])
    assert (ahead[-1].low, ahead[-1].high) == (expected.throughput.low, expected.throughput.high)


def test_time_and_speed_up_follow_from_the_rate_where_the_work_is_the_same(one: Report) -> None:
    curves = only(one).curves
    base = one.cells[0].indicators["wall_seconds"].value
    for rate, wall, speedup in zip(
        curves["rate_per_second"], curves["wall_seconds"], curves["speedup"], strict=True
    ):
        assert wall.value == pytest.approx(1 / rate.value)
        assert wall.low <= wall.value <= wall.high or not wall.beyond
        assert wall.low == pytest.approx(1 / rate.high)
        assert speedup.value == pytest.approx(base / wall.value)


def test_work_that_differs_has_the_rate_s_curve_and_chart_only(one: Report) -> None:
    """A program that reports operations: twice the trial, twice the work."""
    dots = tuple(
        msgspec.structs.replace(
            dot,
            values=dot.values
            | {"rate_per_second": dot.values["rate_per_second"] * (1 + dot.block)},
        )
        for dot in one.dots
    )
    found = with_models(msgspec.structs.replace(one, dots=dots, scaling=()))
    assert set(only(found).curves) == {"rate_per_second"}
    drawn = {chart.name: chart.spec.to_dict() for chart in charts(found)}
    assert "rate-per-second-by-threads" in drawn
    assert "over all models" not in json.dumps(drawn["wall-seconds-by-threads"])
    assert "over all models" in json.dumps(drawn["rate-per-second-by-threads"])


def test_a_primary_rate_is_the_throughput() -> None:
    """More of it is better, and it is no share of anything."""
    from tests.report import samples

    findings = samples.thread_scaling()
    assert throughput_of(findings) == "rate_per_second"
    names = {"tps": "tps", "speedup": "rate_per_second", "shares_jain": "rate_per_second"}
    for name, expected in names.items():
        info = msgspec.structs.replace(INDICATORS[0], name=name, unit="", better="higher")
        primary = msgspec.structs.replace(findings, primary=name, indicators=(info,))
        assert throughput_of(primary) == expected


@pytest.mark.parametrize(
    "factors", [{"threads": (1, 2)}, {"sync": ("none", "lock", "cas")}], ids=["two levels", "words"]
)
def test_without_three_numeric_levels_there_are_no_models(
    store: Store, factors: dict[str, Any]
) -> None:
    findings = with_models(made_run(store, lambda _: 1.0, seed=3, name="none", **factors))
    assert findings.scaling == ()
    assert "models" not in json.loads(render(findings, "json"))
    document = run_document(findings)
    assert "Scaling models" not in to_html(document) + to_markdown(document)


def test_a_group_that_cannot_be_fitted_says_why(two: Report, store: Store) -> None:
    cells = tuple(
        msgspec.structs.replace(cell, status="skipped")
        if cell.parameters["sync"] == "lock" and int(cell.parameters["threads"]) > 2
        else cell
        for cell in two.cells
    )
    found = msgspec.structs.replace(two, cells=cells, scaling=())
    found = msgspec.structs.replace(found, scaling=scaling_of(found))
    good, bad = found.scaling
    assert good.fit is not None and bad.fit is None
    assert "at least 3 different numbers of workers; there are 2" in bad.reason
    document = run_document(found)
    assert "No model fitted" in to_html(document) and "No model fitted" in to_markdown(document)
    models = json.loads(render(found, "json"))["models"]
    assert models[1]["reason"] == bad.reason
    validate(render(found, "json"))


def validate(export: bytes) -> list[dict[str, Any]]:
    """The export's models, each in the form of ``fit --json``."""
    found = json.loads(export)
    schema = json.loads((SCHEMAS / "export.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(found)
    of_fit = json.loads((SCHEMAS / "fit.schema.json").read_text())
    for item in found["models"]:
        if "reason" not in item:
            jsonschema.Draft202012Validator(of_fit).validate(item)
    return list(found["models"])


def test_json(two: Report, store: Store) -> None:
    none, lock = validate(export_run(store, store.find_run(two.run.id), "json"))
    assert (none["parameters"], lock["parameters"]) == ({"sync": "none"}, {"sync": "lock"})
    assert none["columns"] == {"n": "threads", "x": "rate_per_second"}
    assert [item["n"] for item in none["predictions"]] == [64]
    usl = next(item for item in none["models"] if item["name"] == "usl")
    assert usl["parameters"]["alpha"]["low"] < ALPHA < usl["parameters"]["alpha"]["high"]
    assert none["answers"][0].startswith("USL: α = ")


def test_words(one: Report) -> None:
    answers = " ".join(only(one).answers)
    assert answers.startswith("USL: α = 0.0")
    assert "β = 0.00" in answers and "Peak at N = 2" in answers
    assert "At threads=64, twice the greatest level measured" in answers
    assert "further out any prediction is a guess" in answers
    for page in (to_html(run_document(one)), to_markdown(run_document(one)).replace("\\", "")):
        assert "Scaling models" in page
        assert "Peak at N = 2" in page


def test_superlinear_and_no_peak_are_said(store: Store) -> None:
    def cached(threads: str) -> float:
        n = float(threads)
        return (1 - 0.02 * (n - 1)) / n

    run = made_run(store, cached, seed=4, name="cached", threads=(1, 2, 4, 8, 16))
    assert "Superlinear: α = -0.0" in " ".join(only(with_models(run)).answers)

    def amdahl(threads: str) -> float:
        n = float(threads)
        return (1 + 0.1 * (n - 1)) / n

    run = made_run(store, amdahl, seed=5, cv=0.001, name="amdahl", threads=(1, 2, 4, 8, 16))
    item = only(with_models(run))
    assert item.fit is not None
    peak = item.fit.model("usl").peak
    assert peak is None or not peak.established


def test_charts_draw_the_curve_instead_of_joining_the_points(two: Report) -> None:
    specs = {chart.name: chart.spec.to_dict() for chart in charts(two)}
    for name in ("wall-seconds-by-threads", "speedup-by-threads"):
        rows = (
            next(iter(specs[name]["datasets"].values()))
            if "datasets" in specs[name]
            else (specs[name]["data"]["values"])
        )
        drawn = [row for row in rows if row["kind"] == "curve"]
        assert {row["series"] for row in drawn} == {"sync none", "sync lock"}
        assert max(row["x"] for row in drawn) == 64
        assert not any(row["joined"] for row in rows if row["kind"] == "point")
        assert "sync none: USL" in json.dumps(specs[name], ensure_ascii=False)
    assert "over all models" not in json.dumps(specs["efficiency-by-threads"])


def test_show_fits_only_when_asked(two: Report, store: Store) -> None:
    def show(*options: str) -> str:
        result = CliRunner().invoke(
            app, ["show", two.run.id, "--db", store.url, *options], catch_exceptions=False
        )
        assert result.exit_code == 0, result.output
        return result.output

    assert "scaling models" not in show() and "models" not in json.loads(show("--json"))
    assert "USL: α = " in show("--models")
    assert len(json.loads(show("--json", "--models"))["models"]) == 2


def test_plain_show_imports_no_models(two: Report, store: Store) -> None:
    code = (
        "import sys; from concurve.cli.showing import show_run; from concurve.store import Store; "
        f"show_run(Store({store.url!r}), {two.run.id!r}); "
        "sys.exit(' '.join(m for m in sys.modules "
        "if m in ('concurve.models', 'concurve.analysis.scaling', 'scipy.optimize', 'altair')) "
        "or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_levels_beyond_used_up_cpus_are_no_contention(store: Store) -> None:
    """Workers that compute on four CPUs: perfectly parallel up to these, and no further."""
    run = made_run(
        store,
        lambda threads: 1 / min(float(threads), 4),
        seed=6,
        name="cpus",
        threads=(1, 2, 4, 8, 16),
    )
    found = on_cpus(run, 4)
    [item] = scaling_of(found, own(found, 4))
    assert item.fit is not None and item.fit.levels == (1, 2, 4) and item.expected is None
    text = " ".join(item.answers)
    assert "The 4 CPUs are used up" in text and "Contention limits" not in text
    document = run_document(msgspec.structs.replace(found, scaling=(item,)))
    assert "The 4 CPUs are used up" in to_html(document)
    [one] = scaling_of(found, own(found, 1))
    assert one.fit is None and "The one CPU is used up" in one.reason


def test_cpus_that_strangers_used_up_too_allow_no_more_workers(store: Store) -> None:
    """Four threads use 3 CPUs, and wait for the rest: that others had it is no room for more."""
    run = made_run(
        store, lambda threads: 1 / float(threads), seed=7, name="busy", threads=(1, 2, 4)
    )

    def disturbed(in_doubt: bool) -> Report:
        used = on_cpus(run, 3)
        cells = []
        for cell in used.cells:
            wall = cell.indicators["wall_seconds"]
            figures = {
                **cell.indicators,
                "cpus_used": msgspec.structs.replace(
                    cell.indicators["cpus_used"], in_doubt=in_doubt
                ),
                "run_queue_seconds": msgspec.structs.replace(wall, value=wall.value),
            }
            cells.append(msgspec.structs.replace(cell, indicators=figures))
        return msgspec.structs.replace(used, cells=tuple(cells))

    [doubted] = scaling_of(disturbed(True), own(run, 4))
    assert doubted.expected is None and "used up at N = 4" in " ".join(doubted.answers)
    [quiet] = scaling_of(disturbed(False), own(run, 4))
    said = " ".join(quiet.answers)
    assert "used up at N = 4" not in said and "the 4 CPUs are used up at a throughput of" in said


#: What a curve alone cannot tell: causes, and that there are none.
CAUSES = re.compile(r"\blimits\b|no limit|\b(lock|locks|disk|device|client)\b|Contention limits")


def on_cpus(run: Report, cpus: float) -> Report:
    """The run with as many CPUs in use as threads, up to so many."""
    cells = tuple(
        msgspec.structs.replace(
            cell,
            indicators={
                **cell.indicators,
                "cpus_used": msgspec.structs.replace(
                    cell.indicators["wall_seconds"],
                    value=min(float(cell.parameters["threads"]), cpus),
                ),
            },
        )
        for cell in run.cells
    )
    return msgspec.structs.replace(run, cells=cells)


def own(run: Report, cpus: float) -> dict[int, tuple[Pool, ...]]:
    """So many CPUs for the measured role of each cell."""
    return {cell.index: (Pool(("",), cpus),) for cell in run.cells}


def explained(run: Report, cause: Cause, evidence: str) -> Report:
    """The run with one cause for all its cells."""
    cells = tuple(
        CellExplanation(
            parameters=cell.parameters, cause=cause, evidence=evidence, index=cell.index
        )
        for cell in run.cells
    )
    explanation = Explanation(
        run=run.run.id,
        study="planted",
        factors=("threads",),
        work="threads",
        operation="of fixed work",
        cells=cells,
    )
    return msgspec.structs.replace(run, explanation=explanation)


@pytest.mark.parametrize(
    ("cause", "evidence", "bend"),
    [
        ("cpu", "the CPUs are used up", lambda n: min(n, 12.0)),
        ("io", "threads wait for the disk", lambda n: n / (1 + 0.1 * (n - 1))),
        ("lock", "threads wait for a lock", lambda n: n / (1 + 0.02 * (n - 1) + 0.002 * n * n)),
        ("coherency", "memory is shared", lambda n: n),
    ],
)
def test_models_name_no_cause_beside_that_of_the_cells(
    store: Store, cause: Cause, evidence: str, bend: Callable[[float], float]
) -> None:
    run = made_run(
        store,
        lambda threads: 1 / bend(float(threads)),
        seed=7,
        cv=0.01,
        name=f"planted-{cause}",
        threads=LEVELS,
    )
    report = explained(with_models(run), cause, evidence)
    said = " ".join(only(report).answers)
    assert not CAUSES.search(said), said
    text = to_markdown(run_document(report))
    assert "The causes are named under" in text and evidence in text


@pytest.mark.parametrize(
    ("cause", "limit", "named"),
    [
        ("cpu", "redis-server", "one busy thread (redis-server)"),
        ("stage", "", "one stage for which the others wait"),
        ("quota", "", "a quota of CPU time"),
        ("lock", "", ""),
    ],
)
def test_a_prediction_says_what_it_does_not_know(
    one: Report, cause: Cause, limit: str, named: str
) -> None:
    """A model sees no ceiling that no level has reached yet."""
    report = explained(one, cause, "evidence")
    assert report.explanation is not None
    cells = [msgspec.structs.replace(cell, limit=limit) for cell in report.explanation.cells]
    explanation = msgspec.structs.replace(report.explanation, cells=tuple(cells))
    report = msgspec.structs.replace(report, explanation=explanation)
    full = to_markdown(run_document(report))
    limits = (Limit({}, cells[-1]),)
    brief = brief_run_document(report, report.scaling, topics=[Topic.MODELS], limits=limits)
    short = lines(brief, 80)
    said = f"No model knows what limits threads=32: {named}."
    for text in (full, " ".join(" ".join(str(line.plain) for line in short).split())):
        assert (said in text) if named else ("No model knows" not in text)


def test_nothing_is_predicted_beyond_cpus_that_the_last_level_uses_up(store: Store) -> None:
    """A straight line up to four threads on four CPUs says nothing about eight."""
    run = made_run(
        store,
        lambda threads: 1 / float(threads),
        seed=8,
        cv=0.01,
        name="full",
        threads=(1, 2, 3, 4),
    )
    found = on_cpus(run, 4)
    [item] = scaling_of(found, own(found, 4))
    assert item.fit is not None and item.fit.levels == (1, 2, 3, 4) and item.expected is None
    said = " ".join(item.answers)
    assert "The 4 CPUs are used up at N = 4" in said and "is expected" not in said
    assert not any(point.beyond for point in item.curves["rate_per_second"])
    [free] = scaling_of(found, own(found, 16))
    assert free.expected is not None and "used up" not in " ".join(free.answers)


def with_figures(run: Report, figures: Callable[[float], dict[str, float]]) -> Report:
    """The run with further figures of each cell, by its number of threads."""
    cells = []
    for cell in run.cells:
        like = cell.indicators["wall_seconds"]
        further = {
            name: msgspec.structs.replace(like, value=value)
            for name, value in figures(float(cell.parameters["threads"])).items()
        }
        cells.append(msgspec.structs.replace(cell, indicators={**cell.indicators, **further}))
    return msgspec.structs.replace(run, cells=tuple(cells))


def test_nothing_is_predicted_beyond_what_the_cpus_can_reach(store: Store) -> None:
    """Threads that compute on 8 CPUs: what three of them show holds up to eight, not beyond."""
    run = made_run(
        store, lambda n: 1 / float(n), seed=11, cv=0.01, name="ahead", threads=(1, 2, 4, 6)
    )
    used = with_figures(run, lambda n: {"cpus_used": n})
    [item] = scaling_of(used, own(used, 8))
    said = " ".join(item.answers)
    assert item.expected is None and "is expected" not in said
    assert re.search(
        r"Nothing is predicted at threads=12: by the CPU use at threads=6 \(6\), the 8 CPUs are "
        r"used up at a throughput of about (7\.9\d?|8(\.0\d?)?) 1/s\.",
        said,
    )
    beyond = [point for point in item.curves["rate_per_second"] if point.beyond]
    assert beyond and max(point.value for point in beyond) <= 8.3
    # Workers that sleep, or a machine with room for twice as many, leave the prediction.
    for free, cpus in ((used, 16.0), (with_figures(run, lambda n: {"cpus_used": n / 20}), 8.0)):
        [item] = scaling_of(free, own(free, cpus))
        assert item.expected is not None and item.expected.n == 12
    # One thread that is busy beside all the throughput is none that it needs more of.
    busy = with_figures(run, lambda n: {"cpus_used": 1 + n / 10})
    [item] = scaling_of(busy, own(busy, 3))
    assert item.expected is not None


def test_roles_that_share_the_cpus_use_them_up_together(store: Store) -> None:
    run = made_run(
        store,
        lambda n: 1 / min(float(n), 1.9),
        seed=12,
        cv=0.01,
        name="shared",
        threads=(1, 2, 4),
    )
    found = with_figures(
        run, lambda n: {"cpus_used": 0.2 * min(n, 2), "server.cpus_used": 0.8 * min(n, 2)}
    )
    shared = {cell.index: (Pool(("", "server"), 2),) for cell in run.cells}
    [item] = scaling_of(found, shared)
    # Levels beyond are not set apart: who is asked for need not be who computes.
    assert item.fit is not None and item.fit.levels == (1, 2, 4) and item.expected is None
    assert (
        "The 2 CPUs that all roles share are used up at threads=4 (2 in use): nothing is predicted "
        "beyond." in item.answers
    )
    [free] = scaling_of(found, {cell.index: (Pool(("", "server"), 8),) for cell in run.cells})
    assert free.expected is not None


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (1.46, "are used up by others too at threads=4 (1.46 in use, and more waited for while "
               "others had them): nothing is predicted beyond."),
        (1.9, "are used up at threads=4 (1.9 in use): nothing is predicted beyond."),
    ],
)  # fmt: skip
def test_what_others_had_of_the_cpus_is_not_the_roles_own(
    store: Store, own: float, said: str
) -> None:
    """A mutex limits the server, and strangers have what it waits for."""
    run = made_run(
        store,
        lambda n: 1 / min(float(n), 1.9),
        seed=12,
        cv=0.01,
        name="beside",
        threads=(1, 2, 4),
    )
    used = with_figures(
        run,
        lambda n: {
            "cpus_used": 0.1 * min(n, 2),
            "server.cpus_used": (own - 0.2) / 2 * min(n, 2),
            "server.wall_seconds": 1.0,
            "server.run_queue_seconds": 0.35 * min(n, 2),
        },
    )
    disturbed = [
        msgspec.structs.replace(
            cell,
            indicators={
                name: msgspec.structs.replace(it, in_doubt=name == "server.cpus_used")
                for name, it in cell.indicators.items()
            },
        )
        for cell in used.cells
    ]
    found = msgspec.structs.replace(used, cells=tuple(disturbed))
    shared = {cell.index: (Pool(("", "server"), 2),) for cell in run.cells}
    [item] = scaling_of(found, shared)
    assert f"The 2 CPUs that all roles share {said}" in item.answers


def test_the_only_thread_of_a_server_is_a_ceiling(store: Store) -> None:
    run = made_run(
        store,
        lambda n: 1 / min(float(n), 2.5),
        seed=13,
        cv=0.01,
        name="thread",
        threads=(1, 2, 4),
    )
    shared = {cell.index: (Pool(("", "server"), 8),) for cell in run.cells}

    def served(threads: float) -> Report:
        return with_figures(
            run,
            lambda n: {
                "cpus_used": 0.1,
                "server.cpus_used": 0.38 * min(n, 2.5),
                "server.threads_peak": threads,
            },
        )

    [item] = scaling_of(served(1), shared)
    assert item.expected is None
    assert (
        "The one thread of server is used up at threads=4 (0.95 in use): nothing is predicted "
        "beyond." in item.answers
    )
    [item] = scaling_of(served(4), shared)
    assert item.expected is not None


def test_the_cpus_of_a_run_are_those_of_its_roles(store: Store) -> None:
    """By affinity, by the quota of the laboratory, and by what the runtime of Go was told."""
    machine: dict[str, Any] = {
        "cpus_allowed": [0, 1, 2, 3],
        "topology": {"cpus": 4},
        "cgroup": {"cpus": 2.5},
    }
    run = made_run(store, seconds, seed=14, name="pools", machine=machine, threads=(1, 2, 4))
    stored = stored_run(store, store.find_run(run.run.id))
    assert set(granted_cpus(stored.head, stored.plan).values()) == {(Pool(("",), 2.5),)}

    def pools(*roles: dict[str, Any], quota: float | str = "none") -> tuple[Pool, ...]:
        [own_role] = stored.head.study.roles
        study = msgspec.structs.replace(
            stored.head.study,
            roles=tuple(msgspec.structs.replace(own_role, **changes) for changes in roles),
        )
        told = {**machine, "cgroup": {"cpus": quota}}
        head = msgspec.structs.replace(stored.head, study=study, machine=told)
        return granted_cpus(head, stored.plan)[2]

    on_one, elsewhere = ControlsTemplate(cpus="0-0"), ControlsTemplate(cpus="spare")
    assert pools({}) == (Pool(("",), 4),)
    assert pools({"env": {"GOMAXPROCS": "2"}}) == (Pool(("",), 2),)
    assert pools({"command": ("env", "GOMAXPROCS={threads}", "serve")}) == (Pool(("",), 4),)
    assert pools({}, {"name": "server"}) == (Pool(("", "server"), 4),)
    assert pools({}, {"name": "server"}, quota=1.5) == (Pool(("", "server"), 1.5),)
    assert pools({"controls": elsewhere}, {"name": "server", "controls": on_one}) == (
        Pool(("",), 3),
        Pool(("server",), 1),
        Pool(("", "server"), 4),
    )


def test_a_curve_of_figures_in_doubt_says_so(store: Store, one: Report) -> None:
    stolen = made_run(
        store, seconds, seed=9, cv=0.02, name="stolen", steal=lambda _: 10**12, threads=(1, 2, 4)
    )
    said = only(with_models(stolen)).warnings[0]
    assert said.startswith(
        "All 3 levels of threads are in doubt, because the machine was not quiet"
    )
    some = made_run(
        store, seconds, seed=10, cv=0.02, name="some", threads=(1, 2, 4),
        steal=lambda spec: 10**12 if spec.roles[0].argv[1] == "4" else 0,
    )  # fmt: skip
    said = only(with_models(some)).warnings[0]
    assert said.startswith("1 of 3 levels of threads is in doubt, because ")
    assert not any("in doubt" in text for text in only(one).warnings)


def test_the_levels_that_a_view_asks_for_are_those_of_a_curve() -> None:
    assert LEVELS_OF_A_CURVE == LEVELS_MIN


def test_where_the_curve_ends_nothing_is_predicted_and_the_answer_says_why(store: Store) -> None:
    """Superlinear: by the law that is chosen throughput has no value from N = 23.2 on."""

    def superlinear(threads: str) -> float:
        return (1 - 0.045 * (float(threads) - 1)) / float(threads)

    levels = (1, 2, 4, 8, 12, 16)
    run = made_run(store, superlinear, seed=9, cv=0.01, name="superlinear", threads=levels)
    [item] = scaling_of(run)
    assert item.fit is not None and item.fit.chosen == "amdahl" and item.expected is None
    why = "by Amdahl, the model that is chosen, throughput would grow beyond all bounds on the way."
    assert f"Nothing is predicted at N = 32: {why}" in item.answers
    beyond = [point.n for point in item.curves["rate_per_second"] if point.beyond]
    assert beyond[0] == 16 and 20 < beyond[-1] < 24
    n = [float(level) for level in levels]
    numbers = Numbers(n, [1 / superlinear(str(level)) for level in n], "threads", "rps")
    found = fit_numbers(numbers, [20.0, 32.0], absolute=False, confidence=0.95)
    assert [expected.n for expected in found.expectations] == [20]
    assert f"Nothing is predicted at N = 32: {why}" in found.result.answers
    assert max(expected.n for expected in found.expected) == pytest.approx(20)


def test_the_line_of_a_fit_ends_before_a_gap_of_the_chosen_model() -> None:
    """By the USL that is chosen throughput has no value from N = 9 to 11, and has one beyond."""
    numbers = Numbers([1, 2, 4, 6, 8], [1, 2.51, 8.8, 29.3, 176], "threads", "rps")
    found = fit_numbers(numbers, [8.5, 16.0, 20.0], absolute=False, confidence=0.95)
    assert found.result.chosen == "usl"
    assert [expected.n for expected in found.expectations] == [8.5]
    assert any(text.startswith("Nothing is predicted at N = 16 and 20: by ")
               for text in found.result.answers)  # fmt: skip
    assert max(n for n, _ in found.chosen) == max(it.n for it in found.expected) == 8.5


def test_the_line_of_a_fit_does_not_cross_a_gap_within_the_levels() -> None:
    levels = [1.0, 2.0, 4.0, 6.0, 8.0, 16.0]
    numbers = Numbers(levels, [1, 2.51, 8.8, 29.3, 176, 50.2], "threads", "rps")
    found = fit_numbers(numbers, [], absolute=False, confidence=0.95)
    drawn = fit_chart(found).draw().to_dict()
    (line,) = (layer for layer in drawn["layer"] if "detail" in layer["encoding"])
    assert line["encoding"]["detail"]["field"] == "piece"
    chosen = [row for row in drawn["data"]["values"] if row["kind"] == "chosen"]
    pieces = [[row["n"] for row in own] for _, own in groupby(chosen, lambda row: row["piece"])]
    assert len(pieces) == 2 and max(pieces[0]) < 9.1 and min(pieces[1]) > 10.9

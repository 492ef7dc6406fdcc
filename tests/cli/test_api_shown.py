"""What Python returns, as a text, in a notebook, and as a data frame."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

import concurve
from concurve.cli import app
from concurve.errors import RunError
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.report.python_words import python_words
from concurve.report.sections.best import best_document, doubt_sentences
from concurve.results import Shown
from tests.helpers.fakes import FakeEngine

HOSTILE = "<script>alert(1)</script>&\x1b[31m"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")

Measure = Callable[..., concurve.Run]


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Sweeps a command whose wall time is 1 s over its first parameter, at most."""

    def measured(stolen: int = 0, noise: float = 0.01, **parameters: Any) -> concurve.Run:
        engine = FakeEngine(
            lambda spec, rng: rng.lognormvariate(0, noise) / float(spec.roles[0].argv[1]),
            steal_of=lambda spec: stolen,
        )
        monkeypatch.setattr("concurve.api.LocalEngine", lambda: engine)
        given = parameters or {"n": [1, 2, 4]}
        command = ["true", *(f"{{{name}}}" for name in given)]
        return concurve.sweep(command, given, work="n", repeats=5, seed=1)

    return measured


@pytest.fixture
def every(measure: Measure) -> Callable[[], Iterator[Shown]]:
    """One of each that is returned, of a run with hostile names."""

    def made() -> Iterator[Shown]:
        run = measure(n=[1, 2, 4, 8], version=[HOSTILE, "new"])
        best = run.best(where={"version": HOSTILE})
        assert best is not None
        yield best
        yield run.findings
        yield run.findings.best[0]
        yield run.compare_levels("version", HOSTILE, "new")
        yield concurve.compare(run, measure(n=[1, 2, 4, 8], version=[HOSTILE, "new"]))
        yield run.explain()
        yield from run.models()
        yield concurve.history(run.findings.run.study)
        yield concurve.fit([1, 2, 4, 8], [100.0, 190.0, 340.0, 520.0], predict=[16])

    return made


def test_a_run_prints_as_the_command_line_shows_it(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else there is it says in words of Python."""
    run = measure()
    for width in ("80", "130"):
        monkeypatch.setenv("COLUMNS", width)
        shown = CliRunner().invoke(app, ["show", run.id], catch_exceptions=False).output
        left_out = re.compile(r"\n(?:not shown: |\d+ more figures)")
        answer, rest = left_out.split(str(run))
        assert answer == left_out.split(shown)[0]
        assert " (run.frame())\n" in rest
        assert rest.endswith('\nmore: run.models(), run.write("report.html")')
        assert max(map(cell_len, str(run).splitlines())) <= int(width)
    assert repr(run) == f"<concurve.Run {run.id}>"


def test_a_notebook_shows_the_answer_the_chart_and_the_figures(measure: Measure) -> None:
    run = measure()
    shown = run._repr_html_()
    answer = next(item.sentence for item in run.findings.sentences if item.kind == "answer")
    assert answer in shown
    assert "How sure it is" in shown and "Medians of 5 trials a cell" in shown
    assert shown.count("<svg") == 1 and shown.count("<table") == 1
    assert ">wall time" in shown and shown.count("<tr") == 1 + 3
    assert len(shown.encode()) < 40_000


def test_an_output_is_for_itself(every: Callable[[], Iterator[Shown]]) -> None:
    """It asks nothing of a network, runs no script, and takes no place in the page."""
    items: list[Any] = list(every())
    run = concurve.load()
    for item in (*items, run, run.chart()):
        shown = item._repr_html_()
        assert "<script" not in shown and "\x1b" not in shown
        assert not re.search(r"\b(?:src|href|action)=", shown)
        assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")
        assert "@import" not in shown and "url(" not in re.sub(r"url\(#c", "", shown)
        assert all(found.startswith("c") for found in re.findall(r'\bid="([^"]*)"', shown))
        rules = re.sub(r"/\*.*?\*/", "", shown[shown.index("<style>") : shown.index("</style>")])
        selectors = [text for text in re.findall(r"([^{}]+)\{", rules) if "@media" not in text]
        assert len(selectors) > 20
        assert all("concurve" in part for text in selectors for part in text.split("}"))


def test_pictures_of_two_outputs_share_no_identifier(measure: Measure) -> None:
    run = measure()
    found = [
        set(re.findall(r'\bid="([^"]*)"', run.chart(name)._repr_html_()))
        for name in ("wall_seconds", "speedup")
    ]
    assert all(found) and not found[0] & found[1]


def test_each_result_prints_shortly_and_is_a_frame(every: Callable[[], Iterator[Shown]]) -> None:
    for item in every():
        assert repr(item).startswith(f"<concurve.{type(item).__name__}: ")
        assert len(repr(item)) < 200 and "\n" not in repr(item) and "\x1b" not in repr(item)
        assert max(map(cell_len, str(item).splitlines())) <= 80 and "\x1b" not in str(item)
        assert "Struct" not in str(item) and f"{type(item).__name__}(" not in str(item)
        assert len(item.frame()) > 0, item
        assert item.frame().columns.is_unique


def test_frames_hold_the_figures(measure: Measure) -> None:
    run = measure(n=[1, 2, 4], version=["old", "new"])
    compared = run.compare_levels("version", "old", "new")
    frame = compared.frame()
    assert list(frame["n"]) == [1, 2, 4]
    assert list(frame["ratio"]) == [cell.ratio.value for cell in compared.cells if cell.ratio]
    assert (frame["ratio_low"] <= frame["ratio_high"]).all()
    assert list(frame["verdict"]) == [cell.verdict for cell in compared.cells]
    best = run.best(where={"version": "new"})
    assert best is not None
    assert best.frame().loc[lambda rows: rows["recommended"], "n"].to_list() == [4]
    assert best.frame()["wall_seconds"].between(0.2, 0.3).all()
    assert run.explain().frame()["share"].isna().all()
    assert run.explain().frame()["share"].dtype == float, "what is missing is NaN, not None"
    points = concurve.history(run.findings.run.study).frame()
    assert set(points["run"]) == {run.id} and len(points) == 6


def test_a_parameter_with_the_name_of_a_column_stays(measure: Measure) -> None:
    run = measure(n=[1, 2], verdict=["a", "b"])
    frame = concurve.compare(run, measure(n=[1, 2], verdict=["a", "b"])).frame()
    assert list(frame["parameter_verdict"]) == ["a", "b", "a", "b"]
    assert "parameter_verdict" not in run.frame()


def test_a_doubt_says_what_the_figures_point_to_and_what_to_do(measure: Measure) -> None:
    run = measure(stolen=10**9)
    best = run.best()
    assert best is not None and best.recommended is None
    assert best.doubt.startswith("The machine was not quiet, and 3 settings have too few")
    assert re.search(r"n=4 seems best: wall time 2\d\d ms \[2\d\d, 2\d\d\]", best.doubt)
    assert 'wait_quiet="5m"' in best.doubt
    assert best.doubt in " ".join(str(best).split())
    assert not best.frame()["recommended"].any()
    assert run.findings.best[0].doubt == best.doubt
    assert "The figures point to n=4" in run._repr_html_()
    sure = measure().best()
    assert sure is not None and sure.doubt == "" and str(sure).startswith("Use n=4")


def test_a_doubt_says_that_the_trials_do_not_decide_and_how_many_would(measure: Measure) -> None:
    run = measure(noise=0.15, n=[100, 101, 102])
    best = run.best()
    assert best is not None and best.recommended is None and best.is_open
    assert re.fullmatch(
        r"The trials do not decide\. n=10\d seems best: wall time \S+ ms \[\S+, \S+\]; "
        r"n=10\d and n=10\d may be as good\. About \d+ trials of each would decide"
        r" \(about .*\)\.",
        best.doubt,
    ), best.doubt
    assert str(best).startswith("No setting is recommended by wall time")
    assert best.doubt in " ".join(str(best).split())
    compared = run.compare_levels("n", best.leader["n"], best.as_good[0]["n"])
    assert compared.cells[0].verdict == "undecided"


def test_of_a_few_that_are_not_told_apart_every_view_names_the_same_one(
    measure: Measure, tmp_path: Path
) -> None:
    run = measure(noise=0.15, n=[1, 100, 102])
    best = run.best()
    assert best is not None and best.recommended is None and best.first == {"n": 100}
    assert best.use == {"n": 100} and best.not_told_from == ({"n": 102},)
    told = re.search(
        r" Use n=100: n=102 is not shown to be better (\(0\.\d+× to 1\.\d+×\))\. About \d+ trials ",
        best.doubt,
    )
    assert told is not None, best.doubt
    assert str(best).startswith("Use n=100, by wall time") and "to use" in str(best)
    assert best.frame().loc[lambda rows: rows["use"], "n"].to_list() == [100]
    assert not best.frame()["recommended"].any()
    for view in (str(run), run._repr_html_(), run.write(tmp_path / "run.md").read_text()):
        shown = " ".join(view.split())
        assert f"Use n=100: n=102 is not shown to be faster {told[1]}" in shown
    export = json.loads(run.write(tmp_path / "run.json").read_bytes())["best"]
    assert "recommended" not in export
    assert export["use"] == 100 and export["not_told_from"] == [102]


def test_of_a_few_of_which_the_smallest_seems_far_behind_none_is_the_one_to_use() -> None:
    apart = BestFinding(
        indicator="wall_seconds", label="wall time", group={}, factors=("n",),
        settings=({"n": 2}, {"n": 4}), leader={"n": 4}, compared=3, is_open=True,
        doubt="the trials do not decide", first={"n": 2},
        to_first=Estimate(value=1.08, low=0.99, high=1.2),
    )  # fmt: skip
    assert apart.use is None and apart.not_told_from == ()
    document = best_document(apart, (None, None))
    assert document.title == "No setting is recommended by wall time"
    assert "Use n=2 or n=4. n=4 is 0.99× to 1.20× as good as n=2." in doubt_sentences(
        apart, None, ""
    )


def test_a_run_without_a_figure_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(FakeEngine):
        def run(self, spec: Any) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr("concurve.api.LocalEngine", Stopped)
    with contextlib.suppress(concurve.ConcurveError):
        concurve.sweep(["true", "{n}"], {"n": [1, 2]}, repeats=2)
    run = concurve.load()
    assert "No trial gave a figure" in run._repr_html_() and "<svg" not in run._repr_html_()
    assert "interrupted" in str(run)
    with pytest.raises(RunError, match="no trial has the indicator 'wall_seconds'"):
        run.chart()


def test_a_run_of_many_cells_is_a_small_output(measure: Measure) -> None:
    run = measure(n=list(range(1, 7)), word=[f"{HOSTILE}{n}" for n in range(40)])
    shown = run._repr_html_()
    assert len(shown.encode()) < 150_000
    assert shown.count("<tr") == 1 + 20 and "220 more cells" in shown
    assert "too large here" in shown and "<svg" not in shown
    assert "<svg" in run.chart()._repr_html_(), "who asks for the chart gets it"


def test_a_chart_is_saved_and_is_altair_s(measure: Measure, tmp_path: Path) -> None:
    run = measure()
    assert run.chart("wall_seconds").save(tmp_path / "a.svg").read_text().startswith("<svg")
    assert run.chart().save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert run.chart().altair.properties(width=700).to_dict()["width"] == 700
    assert run.chart()._repr_svg_().startswith("<svg")
    assert repr(run.chart("wall_seconds")) == "<concurve.Chart: Wall time against n>"
    with pytest.raises(concurve.ConcurveError, match=r"no format for the ending '\.pdf'"):
        run.chart().save(tmp_path / "a.pdf")
    with pytest.raises(concurve.ConcurveError, match="indicator 'wall_second'") as refused:
        run.chart("wall_second")
    assert "'wall_seconds'" in refused.value.remedy
    with pytest.raises(concurve.ConcurveError, match="chart has no parameter 'name'"):
        run.chart(name="wall_seconds")  # type: ignore[call-arg]


#: The beginning of a page, the scheme of the system, and whether the page is dark.
PAGES = (
    ("<body>", "light", False),
    ("<body>", "dark", True),
    ('<body data-jp-theme-light="true">', "dark", False),
    ('<body data-jp-theme-light="false">', "light", True),
    ('<body class="vscode-light">', "dark", False),
    ('<body class="vscode-dark">', "light", True),
    ('<html theme="dark"><body>', "light", True),
    ('<html data-theme="light"><body>', "dark", False),
)


@pytest.mark.real
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
def test_an_output_is_as_dark_as_its_notebook(measure: Measure) -> None:
    from playwright.sync_api import sync_playwright

    shown = measure()._repr_html_()
    style = "(item, names) => names.map(name => getComputedStyle(item)[name])"
    light = ["rgb(255, 255, 255)", "rgb(34, 36, 40)", "rgb(95, 100, 112)"]
    dark = ["rgb(23, 24, 28)", "rgb(232, 233, 237)", "rgb(163, 168, 180)"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            for page, scheme, is_dark in PAGES:
                tab = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
                tab.set_content(f"<!doctype html>{page}{shown}")
                found = tab.eval_on_selector(".concurve", style, ["backgroundColor", "color"])
                found += tab.eval_on_selector(".concurve .chart text", style, ["fill"])
                assert found == (dark if is_dark else light), (page, scheme)
        finally:
            browser.close()


def test_advice_names_parameters_of_python(measure: Measure) -> None:
    """Options belong to the command line; a whole command is one for a shell."""
    run = measure(stolen=10**9, n=[1, 2, 4], version=["old", "new"])
    compared = run.compare_levels("version", "old", "new")
    shown: list[Any] = [
        run,
        compared,
        run.best(where={"version": "old"}),
        run.findings,
        run.explain(),
    ]
    for item in shown:
        for text in (str(item), re.sub(r"<[^>]*>", "", item._repr_html_())):
            plain = " ".join(text.split())
            for option in (
                "--wait-quiet",
                "--in-doubt",
                "--repeats",
                "--effect",
                "more warning: --",
            ):
                assert option not in plain, option
            assert not re.search("concurve (show|resume|export|explain|compare)", plain), plain
    assert 'wait_quiet="5m"' in " ".join(str(run).split())
    assert "in_doubt=True judges by these trials" in " ".join(str(compared).split())
    # What the command line prints of the same run.
    printed = CliRunner().invoke(app, ["show", run.id], catch_exceptions=False).output
    assert "--wait-quiet 5m" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Run again: --wait-quiet 5m; concurve doctor says why.",
            'Run again: wait_quiet="5m"; concurve doctor says why.',
        ),
        (
            "-P n 2,4 --repeats 20..20 in a new run",
            'parameters={"n": "2,4"}, repeats="20..20" in a new run',
        ),
        ("--repeats 20..20 in a new run", 'repeats="20..20" in a new run'),
        ("a greater --effect", "a greater effect"),
        ("2 more warnings: --all", '2 more warnings: run.write("report.html")'),
        ("concurve doctor says it. --in-doubt", "concurve doctor says it. in_doubt=True"),
        (
            "concurve resume 1 --max-time 5s goes on",
            'concurve.load("1").resume(max_time="5s") goes on',
        ),
        ("concurve resume last --db a.db", 'concurve.load(db="a.db").resume()'),
        ("concurve resume last --db '/a b/x.db'.", 'concurve.load(db="/a b/x.db").resume().'),
        (
            "then concurve resume 2026-1, or a new run",
            'then concurve.load("2026-1").resume(), or a new run',
        ),
        (
            "concurve show 2026-1 --claims (2 supported), --published, --models, --all",
            "run.findings.claims (2 supported), run.findings.published, run.models(), "
            'run.write("report.html")',
        ),
        (
            "concurve show 2026-1 --claims, --figures, --all",
            'run.findings.claims, run.frame(), run.write("report.html")',
        ),
        (
            "For this run: concurve show 2026-1 --best-by tps:higher (or :lower).",
            'For this run: run.best("tps:higher") (or :lower).',
        ),
        (
            "concurve show 2026-1; run the command by hand",
            'print(concurve.load("2026-1")); run the command by hand',
        ),
        ("9 more: concurve export 2026-1 --format csv", "9 more: run.frame()"),
        ("9 more (concurve show 2026-1 --figures)", "9 more (run.frame())"),
        ("(concurve explain 2026-1 --json)", "(speedup_lost of its cells)"),
        ("concurve explain 2026-1 does so.", "run.explain() does so."),
        (
            "concurve explain 2026-1 --confirm --at n=4 records",
            "concurve explain 2026-1 --confirm --at n=4 records",
        ),
        ("concurve runs lists them", "concurve.runs() lists them"),
        (
            "a run for each process, and concurve compare",
            "a run for each process, and concurve.compare",
        ),
        (
            "concurve sweep and concurve run make one; --db",
            "concurve.sweep and concurve.run make one; db",
        ),
        ("(concurve sweep --help)", "(help(concurve.sweep))"),
        (
            "then: concurve compare RUN1 RUN2 (the ids that concurve runs lists).",
            "then: concurve.compare(RUN1, RUN2) (the ids that concurve.runs() lists).",
        ),
        (
            "would decide: --repeats 88..88 --max-time 7m in a new run.",
            'would decide: repeats="88..88", max_time="7m" in a new run.',
        ),
        ("the flag '--effect' is not known", "the flag '--effect' is not known"),
        ("--mine 5 is an option of the program", "--mine 5 is an option of the program"),
    ],
)
def test_an_option_is_a_parameter_in_python(text: str, words: str) -> None:
    assert python_words(text) == words

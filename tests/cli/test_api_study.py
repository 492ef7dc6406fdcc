"""The same question, asked from Python and on the command line, is stored as the same study."""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import concurve
from concurve.cli import app
from concurve.definition.study import Hooks, Study
from concurve.measuring.quiet import Asked, Tell
from concurve.store import Store
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import Waiting
from concurve.wire.spec import Attach, TrialSpec
from tests.helpers.fakes import FakeEngine

PRINTED = "tps = 100 (without initial connection time)\nrss 5\n"
DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"

FILE = """
[study]
name = "own"
question = "How fast?"
[factors]
n = [1, 2, 4]
[[roles]]
name = "server"
command = ["true", "--port", "{free_port}"]
end = "serve"
ready = "tcp:{free_port}"
[[roles]]
name = "target"
command = ["true", "127.0.0.1:{free_port}", "{n}"]
"""


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Trials are made up, and everything happens in this folder."""
    monkeypatch.chdir(tmp_path)
    for module in ("concurve.api", "concurve.cli.measuring"):
        monkeypatch.setattr(f"{module}.LocalEngine", lambda: FakeEngine(stdout=PRINTED))
    (tmp_path / "own.toml").write_text(FILE)


def typed(folder: Path, *arguments: str) -> RunHead:
    """The head of what the command line stored."""
    db = str(folder / "typed.db")
    verb, *rest = arguments
    done = CliRunner().invoke(
        app, [verb, "--db", db, "--repeats", "1", "--seed", "1", *rest], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return head_of(db)


def called(
    folder: Path, function: Callable[..., concurve.Run], *given: Any, **more: Any
) -> RunHead:
    db = str(folder / "called.db")
    function(*given, db=db, repeats=1, seed=1, **more)
    return head_of(db)


def head_of(db: str) -> RunHead:
    store = Store.existing(db)
    return decode_head(store.find_run("last"))


SWEEPS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": ([], {}),
    "a tool": (["--extract", "pgbench"], {"extracts": ["pgbench"]}),
    "controls": (
        ["--cpus", "1", "--nice", "5", "--policy", "batch", "--env", "A={n}"],
        {"cpus": 1, "nice": 5, "policy": "batch", "env": {"A": "{n}"}},
    ),
    "the parameters' parts": (
        ["--work", "n", "--work", "scales", "--condition", "none", "--base", "n=2", "--name",
         "mine"],
        {"work": "n", "work_amount": "scales", "conditions": ["none"], "base": {"n": 2},
         "name": "mine"},
    ),
    "a primary figure": (
        ["--extract", r"rss=rss (\d+):MB", "--primary", "rss:lower"],
        {"extracts": [r"rss=rss (\d+):MB"], "primary": "rss:lower"},
    ),
    "a server that is started": (
        ["--server", "./serve -p {free_port} 'a b'", "--ready", "tcp:{free_port}", "--ready-within",
         "5s", "--extract", r"server.rss=rss (\d+)::lower"],
        {"server": ["./serve", "-p", "{free_port}", "a b"], "ready": "tcp:{free_port}",
         "ready_within": "5s", "extracts": [r"server.rss=rss (\d+)::lower"]},
    ),
    "a server by its line": (
        ["--server", "./serve", "--ready", r"line:port \d+"],
        {"server": "./serve", "ready": r"line:port \d+"},
    ),
    "an attached server": (["--attach", str(os.getpid())], {"attach": os.getpid()}),
    "a server elsewhere": (
        ["--server", "redis://db1", "--counters", "http://db1/metrics"],
        {"server": "redis://db1", "counters": "http://db1/metrics"},
    ),
    "counters of a command": (
        ["--server", "redis://db1", "--counters", "command:./c 'x y'"],
        {"server": "redis://db1", "counters": ["./c", "x y"]},
    ),
    "hooks and limits": (
        ["--prepare", "true", "--precision", "10%", "--timeout", "90s", "--max-time", "5m",
         "--effort", "quick"],
        {"hooks": Hooks(prepare="true"), "precision": "10%", "timeout": "90s", "max_time": "5m",
         "effort": "quick"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_is_the_same_study(name: str, tmp_path: Path) -> None:
    options, keywords = SWEEPS[name]
    by_line = typed(tmp_path, "sweep", "-P", "n", "1,2", *options, "--", "true", "{n}")
    by_call = called(tmp_path, concurve.sweep, ["true", "{n}"], {"n": [1, 2]}, **keywords)
    assert by_call.study == by_line.study
    assert (by_call.effort, by_call.rules) == (by_line.effort, by_line.rules)


RUNS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "as it is": ([], {}),
    "other levels": (["--set", "n=1,8"], {"levels": {"n": [1, 8]}}),
    "another program": (
        ["--target", "true {n} 'a b'", "--set", "n=1,2"],
        {"target": ["true", "{n}", "a b"], "levels": {"n": "1,2"}},
    ),
    "an attached server": (
        ["--attach", str(os.getpid()), "--server", "redis://127.0.0.1:6379"],
        {"attach": os.getpid(), "server": "redis://127.0.0.1:6379"},
    ),
    "a server with a password": (
        [
            "--attach",
            str(os.getpid()),
            "--server",
            "redis://127.0.0.1:6379",
            "--password-from",
            "DB_PASSWORD",
        ],
        {"attach": os.getpid(), "server": "redis://127.0.0.1:6379", "password_from": "DB_PASSWORD"},
    ),
    "a server elsewhere": (
        ["--server", "redis://db1", "--counters", "http://db1/m"],
        {"server": "redis://db1", "counters": "http://db1/m"},
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_study_on_one_s_own_system_is_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "Sesam-Open-1")
    options, keywords = RUNS[name]
    by_line = typed(tmp_path, "run", "own.toml", *options)
    by_call = called(tmp_path, concurve.run, "own.toml", **keywords)
    assert by_call.study == by_line.study and isinstance(by_call.study, Study)


def test_a_password_that_the_environment_does_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DB_PASSWORD", raising=False)
    for named, shown in (("DB_PASSWORD", "DB_PASSWORD"), ("Sesam-Open-1", "…")):
        with pytest.raises(concurve.ConcurveError) as refused:
            concurve.run("own.toml", server="redis://db1", password_from=named)
        assert f"password_from {shown}: this environment variable is not" in refused.value.what
        assert "Sesam" not in str(refused.value)


def test_what_runs_elsewhere_is_known_by_its_address(tmp_path: Path) -> None:
    """Not by the program of ours that reads its counters."""
    head = called(tmp_path, concurve.sweep, ["true", "{n}"], {"n": [1]}, server="redis://db1")
    assert head.programs["server"] == {"remote": "redis://db1"}
    assert "path" in head.programs["client"]


@pytest.mark.parametrize(
    ("keywords", "says", "remedy"),
    [
        ({"extracts": ["rate"]}, "extracts 'rate': neither NAME=REGEX nor a tool", "extracts '"),
        ({"extracts": ["x=("]}, "extracts x: '(' is no regular expression", "for example"),
        ({"primary": "tps"}, "primary 'tps': whether higher or lower", "primary tps:higher"),
        ({"work": "m"}, "work 'm' is no factor", "n"),
        ({"base": {"n": 7}}, "base n=7 is not among the levels", "1, 2"),
        ({"base": {"m": 7}}, "base 'm' is no factor", "n"),
        ({"repeats": "five"}, "repeats 'five': not MIN..MAX", "5..30"),
        ({"max_time": "soon"}, "max_time: 'soon' is not a duration", "a number with a unit"),
        ({"attach": "redis"}, "attach 'redis' names no process", "unit:NAME"),
        ({"server": "./serve"}, "server './serve': when is it ready", "ready tcp:PORT"),
        ({"server": "./s", "ready": "soon"}, "ready: 'soon' does not say when", "tcp:PORT"),
        ({"ready": "launch"}, "ready without server", "no ready"),
        ({"counters": "http://a"}, "counters without server", "no counters"),
        ({"server": [], "ready": "launch"}, "server: an empty command", "./serve"),
        ({"env": {"A": "{m}"}}, "placeholder {m} has no parameter", '{"m": LEVELS} to parameters'),
        ({"hooks": Hooks(check="{m}")}, "Hooks(check=…): placeholder {m}", "parameters"),
        ({"background": ["many"]}, "background 'many': no number of competitors", "2@nice=5"),
    ],
)
def test_errors_speak_python(keywords: dict[str, Any], says: str, remedy: str) -> None:
    with pytest.raises(concurve.ConcurveError) as refused:
        concurve.sweep(["true", "{n}"], {"n": [1, 2]}, **keywords)
    assert says in refused.value.what and remedy in refused.value.remedy
    assert refused.value.what in str(refused.value)
    outside = re.sub(r"'[^']*'|\"[^\"]*\"", "", str(refused.value))
    assert "--" not in outside and "command line" not in outside


def test_a_setting_is_best_by_a_figure_that_is_named(tmp_path: Path) -> None:
    run = concurve.sweep(
        ["true", "{n}"], {"n": [1, 2]}, extracts=[r"rss=rss (\d+)"], repeats=2, seed=1
    )
    assert run.best("rss:lower") is not None
    with pytest.raises(concurve.ConcurveError) as refused:
        run.best("rss")
    assert 'best("rss:higher")' in refused.value.remedy


def test_a_sweep_is_told_of_its_options_also_where_its_work_is_known() -> None:
    run = concurve.sweep(["true", "{n}"], {"n": [1, 2]}, work_amount="fixed", repeats=2, seed=1)
    assert run.findings.run.is_sweep


def test_settings_under_conditions_are_asked_for_by_their_levels() -> None:
    run = concurve.sweep(
        ["true", "{n}", "{mode}"],
        {"n": [1, 2], "mode": ["zlib", "lzma"]},
        conditions=["mode"],
        repeats=2,
        seed=1,
    )
    for indicator in ("", "cpu_seconds"):
        with pytest.raises(concurve.ConcurveError, match="compared under 2 conditions") as refused:
            run.best(indicator)
        assert "where={'mode': 'zlib'})" in refused.value.remedy
        assert "run.findings.best" in refused.value.remedy
        found = run.best(indicator, where={"mode": "lzma"})
        assert found is not None and found.group == {"mode": "lzma"}
    with pytest.raises(concurve.ConcurveError, match="'gzip'} is none of them"):
        run.best(where={"mode": "gzip"})
    with pytest.raises(concurve.ConcurveError) as refused:
        run.best(mode="zlib")  # type: ignore[call-arg]
    assert "where={'mode': LEVEL}" in refused.value.remedy
    assert concurve.sweep(["true", "{n}"], {"n": [1]}, repeats=2).best() is None


def test_a_command_that_is_a_text_is_shown_as_the_list_that_runs() -> None:
    with pytest.raises(concurve.ConcurveError) as refused:
        concurve.sweep("python3 press.py {n} 'a b'", {"n": [1, 2]})
    assert refused.value.remedy == "['python3', 'press.py', '{n}', 'a b']"


def test_the_columns_of_a_frame_do_not_depend_on_how_much_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also before the first trial has ended."""

    def frame(trials: int) -> list[str]:
        made = iter(range(trials))

        class Stopped(FakeEngine):
            def run(self, spec: TrialSpec) -> bytes:
                if next(made, None) is None:
                    raise KeyboardInterrupt
                return super().run(spec)

        monkeypatch.setattr("concurve.api.LocalEngine", lambda: Stopped(stdout=PRINTED))
        with contextlib.suppress(concurve.ConcurveError):
            concurve.sweep(["true", "{n}"], {"n": [1, 2]}, extracts=["pgbench"], repeats=2)
        return sorted(concurve.load("last").frame().columns)

    assert frame(0) == frame(1) == frame(4)
    assert {"wall_seconds", "wall_seconds_low", "speedup", "tps"} <= set(frame(0))


def test_the_examples_of_the_document_fit_the_interface() -> None:
    """Each call in its examples has parameters that exist."""
    functions = {
        name: getattr(concurve, name)
        for name in concurve.__all__
        if name.islower() and name[0] != "_"
    }
    methods = {
        name: value for name, value in vars(concurve.Run).items() if inspect.isfunction(value)
    }
    found: set[str] = set()
    for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL):
        for call in (node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)):
            if not isinstance(call.func, ast.Attribute):
                continue
            name = call.func.attr
            is_module = isinstance(call.func.value, ast.Name) and call.func.value.id == "concurve"
            of = functions if is_module else methods
            if not is_module and name not in of:
                continue
            parameters = inspect.signature(of[name]).parameters
            assert {key.arg for key in call.keywords} <= set(parameters), (name, block)
            found.add(name)
    assert {"sweep", "run", "compare", "fit", "history", "best", "explain", "models"} <= found


def test_the_other_verbs(tmp_path: Path) -> None:
    run = concurve.sweep(["true", "{n}", "{v}"], {"n": [1, 2, 4], "v": ["a", "b"]},
                         work="n", repeats=3, seed=1)  # fmt: skip
    assert [cell.verdict for cell in run.compare_levels("v", "a", "b").cells]
    with pytest.raises(concurve.ConcurveError):
        run.compare_levels("v", "a", "c")
    assert [group.group for group in run.models()] == [{"v": "a"}, {"v": "b"}]
    assert run.resume().id == run.id, "nothing is missing"
    found = concurve.history(run.findings.run.study)
    assert (found.runs, found.indicator.name) == (1, "wall_seconds")
    fit = concurve.fit([1, 2, 4, 8], [100.0, 190.0, 340.0, 520.0], predict=[16])
    assert fit.expectations[0].n == 16
    row = fit.predictions().iloc[0]
    assert row["n"] == 16 and row["value_low"] < row["value"] < row["value_high"]
    assert row["warning"] == fit.expectations[0].warning
    with pytest.raises(concurve.ConcurveError, match="2 numbers of workers and 1 of throughput"):
        concurve.fit([1, 2], [1.0])


def test_a_quiet_machine_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Asked] = []

    @contextlib.contextmanager
    def waits(
        asked: Asked, say: Callable[[str], None], tell: Tell, attached: Sequence[Attach]
    ) -> Iterator[Waiting]:
        waited.append(asked)
        # All of it is over: no trial looks at the real machine.
        yield Waiting(seconds=asked.seconds, before_seconds=asked.seconds, times=1)

    monkeypatch.setattr("concurve.measuring.quiet.quiet_machine", waits)
    concurve.sweep(["true", "{n}"], {"n": [1, 2]}, repeats=1, seed=1, wait_quiet="5m")
    concurve.run("own.toml", repeats=1, seed=1, wait_quiet="10s", measure_anyway=True)
    assert waited == [Asked(300.0), Asked(10.0, measure_anyway=True)]
    stored = concurve.load("last").findings.run.waiting
    assert stored is not None and (stored.seconds, stored.before_seconds) == (10, 10)
    run = concurve.sweep(["true", "{n}"], {"n": [1, 2]}, repeats=1, seed=1)
    run.resume(wait_quiet="7s")
    assert waited[2:] == [], "nothing is left to do"
    with pytest.raises(concurve.ConcurveError, match="measure_anyway=True says"):
        concurve.run("own.toml", measure_anyway=True)
    with pytest.raises(concurve.ConcurveError, match="wait_quiet"):
        concurve.sweep(["true", "{n}"], {"n": [1, 2]}, repeats=1, seed=1, wait_quiet="soon")


@pytest.mark.parametrize(
    ("name", "given", "keyword", "remedy"),
    [
        ("sweep", (["x"], {}), "efort", "did you mean 'effort'?"),
        ("sweep", (["x"], {}), "extract", "did you mean 'extracts'?"),
        ("sweep", (["x"], {}), "prepare", "hooks=concurve.Hooks(prepare=…)"),
        ("run", ("thread-scaling",), "set", "did you mean 'levels'?"),
        ("fit", ([1], [1]), "prediction", "'predict'"),
        ("compare", ("a", "b"), "indicator", "'indicators'"),
        ("load", ("last",), "database", "one of name, db"),
    ],
)
def test_a_keyword_that_a_function_does_not_have_is_named(
    name: str, given: tuple[Any, ...], keyword: str, remedy: str
) -> None:
    with pytest.raises(concurve.ConcurveError, match=f"{name} has no parameter '{keyword}'") as no:
        getattr(concurve, name)(*given, **{keyword: "x"})
    assert remedy in no.value.remedy


def test_python_says_which_direction_of_an_indicator_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concurve.api.LocalEngine", lambda: FakeEngine(lambda spec, rng: 0.1))
    db = str(tmp_path / "s.db")
    run = concurve.sweep(["true", "{n}"], {"n": [1, 2]}, repeats=5, db=db)
    asked = ["threads_peak"]
    with pytest.raises(concurve.ConcurveError, match="no better direction") as refused:
        run.compare_levels("n", 1, 2, indicators=asked)
    assert "better='lower'" in refused.value.remedy or "better lower" in refused.value.remedy
    assert "threads" in str(run.compare_levels("n", 1, 2, indicators=asked, better="lower"))
    again = concurve.sweep(["true", "{n}"], {"n": [1, 2]}, repeats=5, db=db)
    assert "threads" in str(concurve.compare(run, again, indicators=asked, better="lower", db=db))


@pytest.mark.parametrize("progress", [False, True])
def test_python_shows_how_a_run_goes_on_if_it_is_asked_to(
    progress: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("concurve.api.LocalEngine", lambda: FakeEngine(lambda spec, rng: 0.1))
    concurve.sweep(
        ["true", "{n}"], {"n": [1, 2]}, repeats=2, progress=progress, db=str(tmp_path / "s.db")
    )
    assert ("[" in capsys.readouterr().err) is progress

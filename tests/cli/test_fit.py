"""``concurve fit`` from the outside."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from concurve.cli import app, main
from concurve.models import MODELS
from concurve.models.model import Model
from concurve.models.predict import HELD
from concurve.report.charts import image
from tests.models.reference import CURVES, curve

pytestmark = pytest.mark.usefixtures("fits_once")

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "howto" / "add-a-scaling-model.md"
SCHEMA = json.loads((ROOT / "schema" / "fit.schema.json").read_text())
CISCO = str(CURVES / "cisco-mysql.csv")
CISCO_COLUMNS = ("--x", "threads", "--y", "transactions_per_second")


def fit(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["fit", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def fit_json(*arguments: str) -> dict[str, Any]:
    found = json.loads(fit(*arguments, "--json"))
    jsonschema.validate(found, SCHEMA)
    return dict(found)


def refusal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *argv: str) -> str:
    monkeypatch.setattr(sys, "argv", ["concurve", "fit", *argv])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 1
    return capsys.readouterr().err


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "measured.csv"
    file.write_text(text, encoding="utf-8")
    return str(file)


def model_of_the_how_to() -> Model:
    """The model of ``docs/howto/add-a-scaling-model.md``: its first block in Python."""
    text = HOW_TO.read_text(encoding="utf-8")
    source = text.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(compile(source, "usl_cbrt.py", "exec"), names)
    model = names["MODEL"]
    assert isinstance(model, Model)
    return model


def test_table_and_sentences() -> None:
    text = fit(CISCO, *CISCO_COLUMNS, "--predict", "48,100")
    assert "usl_sqrt *" in text
    assert "Peak at N = 38.3 (" in text
    assert "do not contradict: usl, usl_log, usl_sqrt" in " ".join(text.split())
    assert "The curve bends as with coherency" in text
    assert "3.12 times the greatest level measured" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("levels", [(1, 2, 4, 8, 16, 32), (4, 8, 16, 32, 64, 128)])
def test_throughput_that_falls_has_no_peak_below_the_levels(
    levels: tuple[int, ...], tmp_path: Path
) -> None:
    file = written(tmp_path, "n,x\n" + "".join(f"{n},{4000 / n:.3g}\n" for n in levels))
    text = " ".join(fit(file, "--x", "n", "--y", "x").split())
    assert f"Throughput falls from N = {levels[0]} on" in text
    assert "Peak at" not in text and "nan" not in text
    for item in fit_json(file, "--x", "n", "--y", "x")["models"]:
        assert item["peak"] is None or item["peak"]["n"]["low"] >= levels[0]


def test_a_limit_that_the_intervals_do_not_show_is_not_named(tmp_path: Path) -> None:
    rows = "1,1029.7\n2,2122.5\n4,4236.6\n8,7469.7\n16,16435\n32,29302\n"
    text = " ".join(fit(written(tmp_path, "n,x\n" + rows), "--x", "n", "--y", "x").split())
    assert "No limit is shown: contention (α) and coherency (β) may both be 0" in text
    assert "γ/α" not in text and "bends as with" not in text


def test_json() -> None:
    found = fit_json(CISCO, *CISCO_COLUMNS, "--absolute", "--predict", "48", "--predict", "64")
    models = {item["name"]: item for item in found["models"]}
    assert list(models) == list(MODELS)
    promised = {"linear", "amdahl", "amdahl_cap", "usl", "usl_log", "usl_sqrt", "knee"}
    assert models.keys() >= promised, "others read exports by these names"
    usl = models["usl"]
    assert usl["parameters"]["alpha"]["value"] == pytest.approx(0.026715945, rel=1e-4)
    assert usl["peak"]["n"]["value"] == pytest.approx(35.574, rel=1e-4)
    assert models["amdahl"]["peak"] is None
    assert [item["n"] for item in found["predictions"]] == [48, 64]
    assert found["chosen"] in models


def test_the_model_of_the_how_to_is_fitted_and_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of_the_how_to()
    monkeypatch.setitem(MODELS, model.name, model)
    found = fit_json(CISCO, *CISCO_COLUMNS)
    (own,) = (item for item in found["models"] if item["name"] == model.name)
    assert own["parameters"].keys() == {"gamma", "alpha", "beta"} and own["peak"]["established"]


def test_what_is_infinite_is_null() -> None:
    found = fit_json(str(CURVES / "raytracer.csv"), "--x", "processors", "--y", "throughput")
    models = {item["name"]: item for item in found["models"]}
    assert models["usl"]["peak"]["n"]["high"] is None
    assert models["usl"]["peak"]["established"] is False
    assert models["amdahl_cap"]["parameters"]["cap"]["high"] is None


def test_few_levels(tmp_path: Path) -> None:
    found = fit_json(written(tmp_path, "n,x\n1,10\n2,19\n4,35\n"), "--x", "n", "--y", "x")
    assert found["criterion"] == "gcv"
    assert {item["name"] for item in found["left_out"]} >= {"usl", "amdahl_cap"}


def test_times() -> None:
    file = str(CURVES / "java-none.csv")
    found = fit_json(file, "--x", "threads", "--y", "seconds", "--time", "--predict", "4")
    assert found["of"] == "time"
    [prediction] = found["predictions"]
    assert prediction["low"] < prediction["value"] < prediction["high"]
    assert prediction["value"] == pytest.approx(35.4, rel=0.05)


def test_replicates_are_told(tmp_path: Path) -> None:
    n, x = curve("raytracer")
    lines = [f"{a:g};{b * f}" for a, b in zip(n, x, strict=True) for f in (0.99, 1.0, 1.02)]
    file = written(tmp_path, "n;x\n" + "\n".join(lines))
    assert "Rows of the same n are replicates: 33 trials at 11 levels." in " ".join(
        fit(file, "--x", "n", "--y", "x").split()
    )
    assert "pooled over all levels" in fit_json(file, "--x", "n", "--y", "x")["error_model"]


def test_littles_law_gives_the_third(tmp_path: Path) -> None:
    n, x = curve("raytracer")
    rows = [f"{a:g},{b},{a / b}" for a, b in zip(n, x, strict=True)]
    file = written(tmp_path, "n,x,r\n" + "\n".join(rows))
    direct = fit_json(file, "--x", "n", "--y", "x")
    for other in (("--x", "n", "--r", "r"), ("--y", "x", "--r", "r")):
        found = fit_json(file, *other)
        assert found["chosen"] == direct["chosen"]
        assert found["models"][1]["aicc"] == pytest.approx(direct["models"][1]["aicc"])
        assert any("Little's law" in note for note in found["notes"])
    fit_json(file, "--x", "n", "--y", "x", "--r", "r")


def test_standard_input() -> None:
    text = Path(CISCO).read_text(encoding="utf-8")
    result = CliRunner().invoke(app, ["fit", "-", *CISCO_COLUMNS], input=text)
    assert result.exit_code == 0
    assert "usl_sqrt *" in result.output


def test_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_written", lambda spec: spec.to_dict(validate=True))
    file = tmp_path / "curve.svg"
    fit(CISCO, *CISCO_COLUMNS, "--export-svg", str(file), "--predict", "64")
    assert file.read_text(encoding="utf-8").startswith("<svg")


GOOD = "n,x,r\n1,10,0.1\n2,19,0.105\n4,35,0.114\n8,60,0.133\n"


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", ("--x", "n", "--y", "x"), "is empty"),
        ("# only a remark\n\n", ("--x", "n", "--y", "x"), "is empty"),
        ("n,x\n", ("--x", "n", "--y", "x"), "names but no rows"),
        (GOOD, ("--x", "m", "--y", "x"), "no column 'm'"),
        (GOOD, ("--x", "N", "--y", "x"), "did you mean 'n'?"),
        (GOOD, ("--x", "n"), "two columns are needed"),
        (GOOD, ("--x", "n", "--y", "n"), "one column twice"),
        (GOOD, ("--x", "n", "--r", "r", "--time"), "--time goes with --x and --y alone"),
        (GOOD.replace("60", "sixty"), ("--x", "n", "--y", "x"), "line 5, column 'x': 'sixty' is"),
        (GOOD.replace("60", "0"), ("--x", "n", "--y", "x"), "0 is not a finite number above 0"),
        (GOOD.replace("60", "-6"), ("--x", "n", "--y", "x"), "-6 is not a finite number above 0"),
        (GOOD.replace("60", "nan"), ("--x", "n", "--y", "x"), "nan is not a finite number"),
        (GOOD.replace("60", "inf"), ("--x", "n", "--y", "x"), "inf is not a finite number"),
        (GOOD.replace("60", ""), ("--x", "n", "--y", "x"), "no value"),
        (GOOD.replace("8,60", "0,60"), ("--x", "n", "--y", "x"), "0 is not a finite number above"),
        ("n,n\n1,2\n", ("--x", "n", "--y", "x"), "2 columns 'n'"),
        ("n,x\n1,2\n2,3\n2,3\n", ("--x", "n", "--y", "x"), "at least 3 different numbers"),
        (GOOD, ("--x", "n", "--y", "x", "--predict", "many"), "'many' is not a number of workers"),
        (GOOD, ("--x", "n", "--y", "x", "--predict", "-1"), "-1 is not a finite number above 0"),
        (GOOD.replace("0.133", "0.3"), ("--x", "n", "--y", "x", "--r", "r"), "wrong measurement"),
    ],
)
def test_bad_input_is_refused(
    text: str,
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = refusal(capsys, monkeypatch, written(tmp_path, text), *arguments)
    assert message in error
    assert "try:" in error


def test_a_missing_file_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refusal(capsys, monkeypatch, "no-such-file.csv", "--x", "n", "--y", "x")
    assert "no-such-file.csv: No such file" in error


def test_a_file_of_one_column_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refusal(capsys, monkeypatch, written(tmp_path, "n\n1\n2\n"), "--x", "n")
    assert "two columns are needed" in error
    assert "has no other column than n" in " ".join(error.split())


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_rows_say_of_what_they_are_at_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = fit(CISCO, *CISCO_COLUMNS, "--predict", "64").splitlines()
    assert all(len(line) <= width for line in lines)
    assert not [line for line in lines if line.startswith((":", ","))]
    found = fit_json(CISCO, *CISCO_COLUMNS)
    for model in found["models"]:
        for parameter in model["parameters"]:
            rows = [line for line in lines if parameter in line.replace(":", " ").split()]
            assert rows, (model["name"], parameter)


def test_a_narrow_table_names_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    said = fit(CISCO, *CISCO_COLUMNS)
    assert "not shown: " in said and "(--json)" in said


OWN_CELLS = """cell,n,status,trials,set_aside,in_doubt,thr,thr_low,thr_high
0,1,measured,3,0,no,10,9,11
1,2,measured,3,0,no,19,18,20
2,3,skipped,0,0,no,,,
3,4,measured,3,0,no,35,34,36
4,6,measured,3,0,yes,20,10,30
5,8,measured,3,0,no,60,59,61
6,9,measured,3,0,no,,,
"""
OWN_TRIALS = """cell,n,block,attempt,used,set_aside,in_doubt,cause,thr
0,1,0,0,yes,no,no,,10
1,2,0,0,yes,no,no,,19
3,4,0,0,no,no,no,it failed,3
3,4,0,1,yes,no,no,,35
4,6,0,0,yes,no,yes,others took CPU time,20
5,8,0,0,yes,no,no,,60
"""


@pytest.mark.parametrize("table", [OWN_CELLS, OWN_TRIALS])
def test_rows_of_our_own_table_that_do_not_count_are_left_out_and_told(
    table: str, tmp_path: Path
) -> None:
    file = written(tmp_path, table)
    assert fit_json(file, "--x", "n", "--y", "thr")["levels"] == [1, 2, 4, 8]
    said = " ".join(fit(file, "--x", "n", "--y", "thr").split())
    assert "Left out: 1 row" in said
    assert "1 row in doubt (--in-doubt takes them)" in said
    assert "may show the disturbance" not in said
    assert fit_json(file, "--x", "n", "--y", "thr", "--in-doubt")["levels"] == [1, 2, 4, 6, 8]
    taken = " ".join(fit(file, "--x", "n", "--y", "thr", "--in-doubt").split())
    assert "1 of 5 rows is in doubt, because the machine was not quiet" in taken


def test_a_table_of_our_own_with_doubts_alone_says_how_to_take_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, OWN_CELLS.replace(",no,", ",yes,"))
    error = refusal(capsys, monkeypatch, file, "--x", "n", "--y", "thr")
    assert "no row that counts" in error and "--in-doubt" in error


def test_other_tables_may_have_such_columns(tmp_path: Path) -> None:
    file = written(tmp_path, "n,x,in_doubt\n1,10,yes\n2,19,yes\n4,35,no\n")
    assert fit_json(file, "--x", "n", "--y", "x")["levels"] == [1, 2, 4]


@pytest.mark.parametrize(
    "name",
    [
        *("seconds", "wall_seconds", "Time", "latency_ms", "p99 latency", "wallTime", "duration"),
        *(
            "elapsed",
            "makespan",
            "minutes",
            "ms_per_op",
            "seconds_per_operation",
            "wall_s",
            "ms/op",
        ),
    ],
)
def test_times_are_refused_as_a_throughput(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, f"n,{name}\n1,10\n2,5\n4,2.6\n8,1.4\n")
    error = refusal(capsys, monkeypatch, file, "--x", "n", "--y", name)
    assert "by its name that is a time" in error and "--time" in error
    assert fit_json(file, "--x", "n", "--y", name, "--time")["of"] == "time"
    assert fit_json(file, "--x", "n", "--y", name, "--no-time")["of"] == "throughput"


@pytest.mark.parametrize(
    "name", ["requests_per_second", "rate_per_second", "ops/s", "msgs/sec", "timesteps", "rps"]
)
def test_rates_are_no_times(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, GOOD.replace("x", name))
    assert not [w for w in fit_json(file, "--x", "n", "--y", name)["warnings"] if "--time" in w]
    warnings = fit_json(file, "--x", "n", "--y", name, "--time")["warnings"]
    assert "leave out --time" in warnings[0]


@pytest.mark.parametrize("name", ["ops_sec", "MB_sec", "tx_s", "requests_ms"])
def test_a_unit_behind_work_is_asked_about(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, GOOD.replace("x", name))
    warnings = fit_json(file, "--x", "n", "--y", name)["warnings"]
    assert warnings[0].startswith(f"{name} is read as a throughput")
    assert not [
        w for w in fit_json(file, "--x", "n", "--y", name, "--no-time")["warnings"] if "--time" in w
    ]


def test_a_time_is_told_as_a_time(tmp_path: Path) -> None:
    """A peak of the throughput is a least time."""
    levels = (1, 2, 4, 8, 12, 16, 24, 32)
    rows = "".join(f"{n},{(1 + 0.03 * (n - 1) + 0.004 * n * (n - 1)) / n!r}\n" for n in levels)
    text = " ".join(
        fit(written(tmp_path, f"n,s\n{rows}"), "--x", "n", "--y", "s", "--time").split()
    )
    assert re.search(
        r"Peak at N = 15\.\S* \(.*?\)( with a time of 0\.15|\. The shortest time)", text
    )
    assert "a throughput of" not in text and "leave out --time" not in text


def test_a_rate_is_no_time(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD)
    assert "x rises as n grows" in " ".join(fit(file, "--x", "n", "--y", "x", "--time").split())


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        ((10, 5, 2.5, 1.3), True),
        ((10, 6, 4, 4.5), True),
        ((10, 19, 35, 60), False),
        ((10, 9.8, 9.9, 9.7), False),
        ((10, 19, 12, 8), False),
    ],
)
def test_figures_that_fall_as_times_do_are_asked_about_first(
    values: tuple[float, ...], asked: bool, tmp_path: Path
) -> None:
    rows = "".join(f"{n},{x}\n" for n, x in zip((1, 2, 4, 8), values, strict=True))
    file = written(tmp_path, f"n,x\n{rows}")
    said = " ".join(fit(file, "--x", "n", "--y", "x").split())
    assert ("falls as n grows, as a time does" in said) is asked
    if asked:
        assert said.index("add --time") < said.index("peak") < said.index("parameter")
        assert "--time" in fit_json(file, "--x", "n", "--y", "x")["warnings"][0]
        assert "add --time" not in fit(file, "--x", "n", "--y", "x", "--no-time")


def test_a_prediction_beyond_the_cpus_says_when_it_holds(tmp_path: Path) -> None:
    """No level is beyond the CPUs, so none shows whether workers need one each."""
    file = written(tmp_path, "n,x\n1,10\n2,19.5\n3,28.8\n4,38")
    said = "N = 6 is more than the 4 CPUs: the prediction holds only where workers"
    asked = ("--x", "n", "--y", "x", "--predict", "6")
    assert said in " ".join(fit(file, *asked, "--cpus", "4").split())
    assert "more than" not in fit(file, *asked, "--cpus", "8")
    assert "no prediction holds there; --cpus says" in " ".join(fit(file, *asked).split())
    # Here one level is beyond them, and got further: they were not used up.
    assert "is more than" not in fit(file, *asked, "--cpus", "3")


def test_the_prediction_and_the_answer_come_before_the_models(tmp_path: Path) -> None:
    text = fit(CISCO, *CISCO_COLUMNS, "--predict", "64")
    places = [text.index(part) for part in ("expected trans", "The curve bends", "usl_sqrt *")]
    assert places == sorted(places)


def test_what_is_next_to_nothing_has_no_exponent(tmp_path: Path) -> None:
    levels = (1, 2, 4, 8, 16, 32, 64, 128)
    rows = "".join(f"{n},{1000 * n / (1 + 0.05 * (n - 1))!r}\n" for n in levels)
    text = fit(written(tmp_path, f"n,x\n{rows}"), "--x", "n", "--y", "x", "--predict", "200")
    assert not re.search(r"\de-", text), text


def test_levels_are_asked_for_where_levels_are_too_few(tmp_path: Path) -> None:
    def warned(*rows: str) -> str:
        file = written(tmp_path, "\n".join(("n,x", *rows)))
        return " ".join(fit_json(file, "--x", "n", "--y", "x")["warnings"])

    assert "3 levels are too few to choose" in warned("1,10", "2,19", "4,35")
    assert "4 trials at 3 levels are too few to choose" in warned("1,10", "1,9.9", "2,19", "4,35")


def test_the_tutorial_says_of_bands_what_fit_says() -> None:
    tutorial = " ".join((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").split())
    assert HELD in tutorial


def test_how_a_model_was_chosen_is_said(tmp_path: Path) -> None:
    def said(*rates: int) -> str:
        levels = (1, 2, 4, 8, 12, 16, 24, 32)
        rows = "".join(f"{n},{rate}\n" for n, rate in zip(levels, rates, strict=False))
        table = written(tmp_path, f"n,x\n{rows}")
        return " ".join(fit(table, "--x", "n", "--y", "x").split())

    few = said(118, 231, 437, 790)
    assert "is chosen by generalised cross-validation, since the levels are too few for AICc" in few
    assert "The data do not tell it from" in few
    alike = said(100, 181, 307, 470, 540, 580, 630, 640)
    assert re.search(r"usl_sqrt is chosen by AICc: it has \d+ % of the weight \(next: usl, ", alike)
    assert "The data do not tell it from usl and usl_log." in alike
    apart = said(100, 185, 320, 450, 470, 440, 370, 300)
    assert "usl is chosen by AICc" in apart and "The data contradict all others." in apart


def test_the_notes_of_a_curve_of_no_model_do_not_speak_of_models_that_hold(tmp_path: Path) -> None:
    drop = written(tmp_path, "n,x\n" + "".join(f"{n},{n if n <= 8 else 4}\n" for n in range(1, 17)))
    text = " ".join(fit(drop, "--x", "n", "--y", "x").split())
    assert "No model describes this curve" in text
    assert "do not contradict" not in text and "do not tell it from" not in text
    assert "which none of them is" in text
    whole = " ".join(fit(CISCO, *CISCO_COLUMNS).split())
    assert "do not contradict" in whole and "none of them" not in whole

"""The tables that ``concurve fit`` reads, and those that it refuses or asks about."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.columns import read_table
from concurve.errors import ConcurveError
from tests.cli.test_fit import fit, fit_json, refusal, written

pytestmark = pytest.mark.usefixtures("fits_once")

COLUMNS = ("--x", "n", "--y", "x")
CURVE = {1: 1000, 2: 1900, 3: 2700, 4: 3400, 5: 4000, 6: 4500, 7: 4900, 8: 5200}


def read(tmp_path: Path, text: str) -> dict[str, list[float]]:
    return read_table(Path(written(tmp_path, text)), ["n", "x"]).columns


READ = [
    'n,x\n1,"1,000"\n2,"1,900"\n4,"3,400"\n',
    'n,x\n1,1k\n2,1.9k\n4,3.4k\n',
    "n,x\n1,1000 req/s\n2,1900 req/s\n4,3400 req/s\n",
    "n;x\n1;1 k req/s\n2;1.9 k req/s\n4;3.4 k req/s\n",
    "n,x\n1,0.001M\n2,.0019M\n4,0.0034M\n",
    "n\tx\n1\t1ops/ms\n2\t1.9ops/ms\n4\t3.4ops/ms\n",
    "| n | x |\n|--:|:--|\n| 1 | 1,000 |\n| 2 | 1900 |\n| 4 | 3,400 |\n",
    " n | x\n---+------\n 1 | 1000\n 2 | 1900\n 4 | 3400\n",
    "| n | `x` |\n| 1 | **1000** |\n| 2 | 1900 |\n| 4 | 3400 |\n",
    "  n      x\n  1   1000\n  2   1900\n  4   3400\n",
    "n x\n1 1k\n2 1.9k\n4 3.4k\n",
    "n,x,\n1,1000,\n2,1900,,\n4,3400,\n",
]  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_tables_that_are_pasted_are_read(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, text)
    assert found["n"] == [1, 2, 4]
    assert found["x"] == pytest.approx([1000, 1900, 3400])


REFUSED = [
    ("n,x\n1,1,000\n2,1,900\n4,3,400\n", "line 2: 3 cells, but 2 names (n, x)", "1000"),
    ("n,x\n1,500\n2,900\n# more\n4,1,400\n", "line 5: 3 cells", 'Quote them ("1,000")'),
    ("n,x\n1,1.5\n2,1,9\n", "line 3: 3 cells", "1.5 for 1,5"),
    ("n;x\n1;1;2\n", "line 2: 3 cells", "one cell a name"),
    ("n;x\n1;996\n2;1,906\n", "'1,906' may be 1906 or 1.906", "write 1906, or 1.906"),
    ("n;x\n1;996\n2;1,9\n", "'1,9' is not a number", "write 1.9"),
    ("n,x\n1,900\n2,1.9k\n", "'1.9k' is not a number", "where all rows have the same"),
    ("n,x\n1,900/min\n2,1900/min\n", "'900/min' is not a number", "plain numbers"),
    ("n,x\n1,5m\n2,4m\n", "'5m' is not a number", "plain numbers"),
    ("n,x\n1,900%\n2,1900%\n", "'900%' is not a number", "plain numbers"),
    ("n  x\n1  1.2 k\n2  2 k\n", "line 2: 3 cells", "1.2k instead of 1.2 k"),
    ("n  x\n1\n2  2\n", "column 'x': no value", "leave out"),
    ("| m | x |\n|---|---|\n| 1 | 1 |\n", "no column 'n'", "one of m, x"),
]


@pytest.mark.parametrize(("text", "what", "remedy"), REFUSED)
def test_what_is_not_clear_is_refused_with_its_line(
    text: str, what: str, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(ConcurveError) as error:
        read(tmp_path, text)
    assert what in error.value.what
    assert remedy in error.value.remedy


def test_a_unit_of_a_time_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, "n,s\n1,35 ms\n2,20 ms\n4,15 ms\n")
    assert "s is read without its unit: 35 ms as 0.035." in fit(
        file, "--x", "n", "--y", "s", "--time"
    )


def rows_of(*curves: tuple[str, float]) -> str:
    return "".join(f"{n},{x * share},{name}\n" for name, share in curves for n, x in CURVE.items())


@pytest.mark.parametrize(
    "curves",
    [
        (("fast", 1.0), ("slow", 0.5)),
        (("a", 1.0), ("b", 1.0)),
        (("1", 1.0), ("2", 0.5)),
        (("1", 1.0), ("2", 1.0), ("3", 1.3)),
    ],
)
def test_several_curves_are_no_replicates(
    curves: tuple[tuple[str, float], ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = written(tmp_path, f"n,x,mode\n{rows_of(*curves)}")
    first = curves[0][0]
    error = " ".join(refusal(capsys, monkeypatch, file, *COLUMNS).split())
    assert f"has {len(curves)} curves: column 'mode' has the values {first}, " in error
    assert f"--where mode={first} for one of them" in error
    assert fit_json(file, *COLUMNS, "--where", f"mode={first}")["trials"] == len(CURVE)
    all_of_them = fit_json(file, *COLUMNS, "--where", "mode=*")
    assert all_of_them["trials"] == len(curves) * len(CURVE)
    error = " ".join(refusal(capsys, monkeypatch, file, *COLUMNS, "--where", "mode=x").split())
    assert f"no row where mode=x try: mode has {first}, " in error


@pytest.mark.parametrize(
    "rows",
    [
        rows_of(("1", 1.0), ("2", 1.03), ("3", 0.97)),
        "".join(f"{n},{x},run of {n}\n" for n, x in CURVE.items()),
        "".join(f"{n},{x},{n / x}\n" for n, x in CURVE.items()),
    ],
)
def test_other_columns_tell_no_curves_apart(rows: str, tmp_path: Path) -> None:
    assert fit_json(written(tmp_path, f"n,x,other\n{rows}"), *COLUMNS)["levels"] == list(CURVE)


def test_of_a_table_of_our_own_factors_alone_tell_curves_apart(tmp_path: Path) -> None:
    heading = "cell,n,pool,block,attempt,used,set_aside,in_doubt,cause,x,faults\n"
    rows = [
        f"{cell},{n},{pool},{block},0,yes,no,no,,{x * (1 - 0.2 * block)},{block}\n"
        for block in (0, 1)
        for cell, (n, x) in enumerate(CURVE.items())
        for pool in (1, 2)
    ]
    one = [row for row in rows if row.split(",")[2] == "1"]
    assert fit_json(written(tmp_path, heading + "".join(one)), *COLUMNS)["trials"] == 16
    with pytest.raises(ConcurveError, match="2 curves: column 'pool'"):
        read_table(Path(written(tmp_path, heading + "".join(rows))), ["n", "x"], one_curve=True)


def test_where_wants_a_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, f"n,x,mode\n{rows_of(('a', 1.0))}")
    assert "is not COLUMN=VALUE" in refusal(capsys, monkeypatch, file, *COLUMNS, "--where", "a")
    error = refusal(capsys, monkeypatch, file, *COLUMNS, "--where", "mood=a")
    assert "no column 'mood'" in error


DROP = "n,x\n" + "".join(f"{n},{1000 * n if n <= 8 else 4000}\n" for n in range(1, 17))


def test_nothing_is_predicted_where_no_model_describes_the_curve(tmp_path: Path) -> None:
    file = written(tmp_path, DROP)
    text = fit(file, *COLUMNS, "--predict", "8,32")
    assert text.index("No model describes this curve") < text.index("parameter")
    assert "peak N" not in text and "none describes the curve" in text
    asked = " ".join(fit(file, *COLUMNS, "--predict", "8,32,64").split())
    assert "so not at N = 32 and 64." in asked
    found = fit_json(file, *COLUMNS, "--predict", "8,32")
    assert [item["n"] for item in found["predictions"]] == [8]
    assert found["described"] is False


def test_a_collapse_is_fitted_and_told(tmp_path: Path) -> None:
    """Its intervals have infinite ends beside figures next to nothing."""
    rows = ((1, 1000), (2, 2000), (4, 4000), (6, 6000), (8, 3000), (10, 2000), (16, 1000))
    file = written(tmp_path, "n,x\n" + "".join(f"{n},{x}\n" for n, x in rows))
    assert "6,000, at N = 6" in " ".join(fit(file, *COLUMNS).split())


CPUS = {1: 1000, 2: 1990, 4: 3900, 6: 5800, 8: 7600, 9: 7700, 10: 7500}


def test_cpus_that_are_used_up_end_the_predictions_and_not_the_report(tmp_path: Path) -> None:
    file = written(tmp_path, "n,x\n" + "".join(f"{n},{x}\n" for n, x in CPUS.items()))
    text = " ".join(fit(file, *COLUMNS, "--cpus", "8", "--predict", "6,32").split())
    assert "at N = 9 and 10 more workers would share them, and no model is fitted there" in text
    assert "Nothing is predicted beyond N = 8, so not at N = 32." in text
    found = fit_json(file, *COLUMNS, "--cpus", "8", "--predict", "6,32")
    assert [item["n"] for item in found["predictions"]] == [6]


def test_cpus_beyond_which_throughput_grows_were_not_used_up(tmp_path: Path) -> None:
    levels = {**CPUS, 11: 9000, 12: 9100, 16: 9400}
    file = written(tmp_path, "n,x\n" + "".join(f"{n},{x}\n" for n, x in levels.items()))
    text = " ".join(fit(file, *COLUMNS, "--cpus", "8", "--predict", "32").split())
    assert "goes on growing beyond the 8 CPUs: they were not used up, and all levels" in text
    assert "no model is fitted there" not in text
    assert fit_json(file, *COLUMNS, "--cpus", "8")["levels"] == list(levels)


@pytest.mark.parametrize(
    ("name", "cells", "told"),
    [
        ("latency_us", "1.2k 1.3k 1.5k 1.9k", "the unit of its name: 1200 as 0.0012 s"),
        ("ms_per_op", "35 36 38 42", "the unit of its name: 35 as 0.035 s"),
        ("latency_ms_min", "35 36 38 42", "the unit of its name: 35 as 0.035 s"),
        ("aws_s3_latency_ms", "12 13 15 19", "the unit of its name: 12 as 0.012 s"),
        ("us_east_latency_ms", "12 13 15 19", "the unit of its name: 12 as 0.012 s"),
        (
            "ms_of_second_try",
            "12 13 15 19",
            "ms or second by its name, and is read in seconds: 12 "
            "as 12 s. If that is wrong, write the unit into its cells: 12 ms.",
        ),
        ("latency", "35|millis 36|millis 38|millis 42|millis", "unit: 35 millis as 0.035"),
        ("latency_ms", "0.035|s 0.036|s 0.038|s 0.042|s", ""),
        ("latency_ms", "35|ms 36|ms 38|ms 42|ms", "read without its unit: 35 ms as 0.035"),
        ("latencies_min", "35 36 38 42", ""),
    ],
)
def test_the_unit_of_a_response_time(name: str, cells: str, told: str, tmp_path: Path) -> None:
    """A unit of time in the cells counts, else that of the name: once, and also behind a prefix."""
    values = [cell.replace("|", " ") for cell in cells.split()]
    rows = "".join(f"{n},{value}\n" for n, value in zip((1, 2, 4, 8), values, strict=True))
    said = fit(written(tmp_path, f"n,{name}\n{rows}"), "--x", "n", "--r", name)
    found = " ".join(said.split())
    assert told in found
    assert ("the unit of its name" in found) is told.startswith("the unit of its name")


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("1,500.0\n2,900\n4,1500\n", COLUMNS, "its first line holds numbers, not names"),
        ("1,500.0\n2,900\n4,1500\n", COLUMNS, "such as clients,tps"),
        ("workers,rate\n1,10\n2,19\n4,35\n", (), "has the columns workers, rate"),
        ('n,x\n1,"500,0"\n2,900\n4,1500\n', COLUMNS, "write 500.0: a comma is read as"),
        ("n;x\n1;500,0\n2;900\n4;1500\n", COLUMNS, "write 500.0: a comma is read as"),
        ("n,x\n1,500\n2,n/a\n4,1500\n", COLUMNS, "leave out lines without a measurement"),
    ],
)
def test_a_refusal_says_what_to_write(
    text: str,
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    error = refusal(capsys, monkeypatch, written(tmp_path, text), *arguments)
    assert message in " ".join(error.split())


@pytest.mark.parametrize(("trials", "is_told"), [(3, True), (1, False)])
def test_a_table_of_cells_says_that_it_has_no_trials(
    trials: int, is_told: bool, tmp_path: Path
) -> None:
    rows = "".join(
        f"{at},{n},measured,{trials},0,no,{x}\n" for at, (n, x) in enumerate(CURVE.items())
    )
    file = written(tmp_path, f"cell,n,status,trials,set_aside,in_doubt,x\n{rows}")
    said = " ".join(fit(file, *COLUMNS).split())
    assert ("concurve export RUN --format trials has a row a trial" in said) is is_told


def test_a_figure_far_off_withholds_the_prediction(tmp_path: Path) -> None:
    file = written(tmp_path, "n,x\n1,100\n2,195\n4,38.1\n8,700\n12,1000\n16,1250\n")
    text = " ".join(fit(file, *COLUMNS, "--predict", "32").split())
    assert "where its neighbours suggest about 370" in text
    assert "Nothing is predicted beyond N = 16, so not at N = 32." in text
    assert fit_json(file, *COLUMNS, "--predict", "32")["predictions"] == []

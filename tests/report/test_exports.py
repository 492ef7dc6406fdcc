"""JSON against its schema, CSV there and back, Markdown's tables."""

from __future__ import annotations

import csv as standard_csv
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.estimate import Estimate
from concurve.findings.cells import Reject
from concurve.findings.run import TrialFindings
from concurve.report import csv
from concurve.report.format import clean_lines
from concurve.report.json.export import to_json
from concurve.report.markdown import to_markdown
from concurve.report.sections.run import run_document
from concurve.results import frame_of
from tests.report import samples

SCHEMA = Path(__file__).parents[2] / "schema" / "export.schema.json"


def refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} in the export")


def parsed(text: bytes) -> Any:
    return json.loads(text, parse_constant=refuse_constant)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", samples.ALL)
def test_json_fits_its_schema(name: str, validator: jsonschema.Draft202012Validator) -> None:
    findings = samples.ALL[name]()
    export = parsed(to_json(findings))
    validator.validate(export)
    assert [cell["parameters"] for cell in export["cells"]] == [
        cell.parameters for cell in findings.cells
    ]


def test_json_embeds_raw_trials_as_they_were_stored(
    validator: jsonschema.Draft202012Validator,
) -> None:
    record = b'{"format":1,"odd":1.50000,"text":"\\u00e9"}'
    trials = [
        (1, 0, 0, False, "contaminated: steal", record),
        (1, 0, 1, True, None, record),
        (0, 0, 0, True, None, record),
    ]
    text = to_json(samples.thread_scaling(), iter(trials))
    assert text.count(record) == 3
    export = parsed(text)
    validator.validate(export)
    first, second = export["cells"][1]["trials"]
    assert (first["used"], first["reject_cause"]) == (False, "contaminated: steal")
    assert second["used"] and "reject_cause" not in second
    assert len(export["cells"][0]["trials"]) == 1 and not export["cells"][2]["trials"]


def test_json_has_no_number_that_is_not_finite(
    validator: jsonschema.Draft202012Validator,
) -> None:
    findings = samples.single_cell()
    cell = msgspec.structs.replace(
        findings.cells[0],
        indicators={
            "a": Estimate(value=math.nan),
            "b": Estimate(value=1.0, low=-math.inf, high=2.0, stdev=math.nan),
        },
    )
    export = parsed(to_json(msgspec.structs.replace(findings, cells=(cell,))))
    validator.validate(export)
    (shown,) = export["cells"]
    assert "a" in shown["absent"] and "a" not in shown["indicators"]
    assert set(shown["indicators"]["b"]) == {"value", "n", "unit", "confidence"}


def test_the_schema_refuses_what_it_should(validator: jsonschema.Draft202012Validator) -> None:
    export = parsed(to_json(samples.thread_scaling()))
    del export["cells"][0]["indicators"]["wall_seconds"]["high"]
    assert not validator.is_valid(export)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(standard_csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+SUM(A1)", "'+SUM(A1)"),
        ("-O2", "'-O2"),
        ("@here", "'@here"),
        ("\t=1+1", "' =1+1"),
        ("\x1b[31mred", "\N{REPLACEMENT CHARACTER}[31mred"),
        ("-5", "-5"),
        ("+1e3", "+1e3"),
        ("a=b", "a=b"),
    ],
)
def test_a_text_in_csv_is_no_formula_and_steers_nothing(text: str, field: str) -> None:
    findings = samples.thread_scaling()
    parameters = {"=evil": text}
    cells = (msgspec.structs.replace(findings.cells[0], parameters=parameters),)
    heading, row = standard_csv.reader(
        io.StringIO(csv.cells(msgspec.structs.replace(findings, cells=cells)), newline="")
    )
    assert row[heading.index("'=evil")] == field


def test_csv_says_which_figures_are_in_doubt() -> None:
    findings = samples.thread_scaling()
    first, second, *others = findings.cells
    name = findings.primary
    doubted = {**first.indicators, name: first.indicators[name].doubted()}
    first = msgspec.structs.replace(first, indicators=doubted)
    quiet = second.indicators[name]
    second = msgspec.structs.replace(
        second, trials=quiet.n + 3, doubtful=3, set_aside=3, including_doubtful=quiet
    )
    rows = rows_of(csv.cells(msgspec.structs.replace(findings, cells=(first, second, *others))))
    assert [row["in_doubt"] for row in rows] == ["yes", *["no"] * (len(rows) - 1)]
    assert [row["set_aside"] for row in rows] == ["0", "3", *["0"] * (len(rows) - 2)]


def test_csv_of_trials_says_which_are_set_aside_and_in_doubt() -> None:
    findings = samples.thread_scaling()
    dot = next(dot for dot in findings.dots if dot.used)
    aside = msgspec.structs.replace(dot, set_aside=frozenset(dot.values))
    dots = tuple(aside if one is dot else one for one in findings.dots)
    reject = Reject(
        cell=dot.cell, parameters={}, block=dot.block, attempt=dot.attempt,
        cause="foreign_cpu", detail="", used=True,
    )  # fmt: skip
    changed = msgspec.structs.replace(findings, dots=dots, rejects=(reject,))
    rows = rows_of(csv.trials(changed))
    (row,) = [row for row in rows if row["set_aside"] == "yes"]
    assert (row["in_doubt"], row["cause"], row["used"]) == ("yes", "foreign_cpu", "yes")
    assert sum(row["in_doubt"] == "yes" for row in rows) == 1


@pytest.mark.parametrize("name", samples.ALL)
def test_csv_of_cells_comes_back(name: str) -> None:
    findings = samples.ALL[name]()
    rows = rows_of(csv.cells(findings))
    assert len(rows) == len(findings.cells)
    for row, cell in zip(rows, findings.cells, strict=True):
        assert {k: row[k] for k in cell.parameters} == {
            k: clean_lines(str(v)) for k, v in cell.parameters.items()
        }
        assert row["status"] == cell.status
        for indicator, figure in cell.indicators.items():
            assert float(row[indicator]) == figure.value
            assert row[f"{indicator}_low"] == ("" if figure.low is None else repr(figure.low))
        for indicator in cell.absent:
            assert row[indicator] == ""


def test_csv_of_trials_has_each_with_its_cause() -> None:
    findings = samples.troubled()
    rows = rows_of(csv.trials(findings))
    assert len(rows) == len(findings.dots)
    status = {str(cell.index): cell.status for cell in findings.cells}
    assert all(row["status"] == status[row["cell"]] for row in rows)
    assert "skipped" in status.values(), "what fit leaves out"
    (rejected,) = [row for row in rows if row["used"] == "no"]
    assert (rejected["cause"], rejected["wall_seconds"]) == ("contaminated", "1.95")
    assert rejected["cpu_seconds"] == ""


def test_csv_tells_a_parameter_from_a_column_of_its_name() -> None:
    findings = samples.single_cell()
    cell = msgspec.structs.replace(findings.cells[0], parameters={"status": "x", "threads": 1})
    (row,) = rows_of(csv.cells(msgspec.structs.replace(findings, cells=(cell,))))
    assert (row["parameter_status"], row["status"]) == ("x", "ok")


TAKEN = ("trials", "used", "price", "price_low", "indicator_used")


def with_taken_names(findings: TrialFindings) -> TrialFindings:
    """The findings with indicators, and parameters, that have the names of other columns."""
    cells = tuple(
        msgspec.structs.replace(
            cell,
            parameters={**cell.parameters, **dict.fromkeys(TAKEN, 7), "parameter_trials": 8},
            indicators={**cell.indicators, **{name: Estimate(value=5.0) for name in TAKEN}},
        )
        for cell in findings.cells
    )
    dots = tuple(
        msgspec.structs.replace(dot, values={**dot.values, **dict.fromkeys(TAKEN, 5.0)})
        for dot in findings.dots
    )
    return msgspec.structs.replace(findings, cells=cells, dots=dots, extracted=TAKEN)


@pytest.mark.parametrize("rows", [csv.cell_rows, csv.trial_rows])
def test_all_columns_have_names_of_their_own(rows: Callable[[TrialFindings], csv.Rows]) -> None:
    findings = samples.thread_scaling()
    table = rows(with_taken_names(findings))
    assert len(set(table.heading)) == len(table.heading) == len(table.rows[0])
    frame = frame_of(table)
    assert (frame["indicator_used"] == 5.0).all() and (frame["parameter_price"] == 7).all()
    before = rows(findings).heading
    assert before == [name for name in table.heading if name in before], "others keep theirs"


@pytest.mark.parametrize("name", samples.ALL)
def test_markdown_tables_are_rectangular_and_hostile_text_is_inert(name: str) -> None:
    text = to_markdown(run_document(samples.ALL[name]()))
    width = 0
    for line in text.splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        bars = line.replace("\\|", "").count("|")
        assert not width or bars == width, line
        width = bars
    outside_code = text.split("## Run it again")[0]
    assert "<script" not in outside_code.replace("\\<", "")
    assert not re.search(r"(?<!\\)`", outside_code)
    assert "\x1b" not in text


def test_markdown_without_pictures_has_the_figures_of_the_chart_of_the_answer() -> None:
    document = run_document(samples.thread_scaling())
    text = to_markdown(document)
    answer = text.split("## Figures")[0].split("### What limits it")[0]
    rows = [line for line in answer.splitlines() if line.startswith("| ")]
    assert rows[0] == "| cpus | threads | wall time (s) | speed-up |"
    assert len(rows) == 1 + len(samples.thread_scaling().cells)
    assert "same figures" not in text and "small dot" not in text, "of pictures that are not there"
    pictured = to_markdown(
        document, {chart.name: f"{chart.name}.svg" for chart in document.charts()}
    )
    assert pictured.count("![") == len(list(document.charts()))
    assert "| cpus | threads | wall time (s) | speed-up |\n" not in pictured
    assert "small dot" in pictured


def test_markdown_fences_a_command_with_backticks() -> None:
    findings = samples.single_cell()
    run = msgspec.structs.replace(findings.run, again="echo ```; rm")
    text = to_markdown(run_document(msgspec.structs.replace(findings, run=run)))
    assert "````sh\necho ```; rm\n````" in text


def without_details(text: str) -> str:
    """What is open; one inside another goes first."""
    while (
        less := re.sub(r"<details[^>]*>(?:(?!<details).)*?</details>", "", text, flags=re.S)
    ) != text:
        text = less
    return text


@pytest.mark.parametrize("name", samples.ALL)
def test_markdown_folds_what_a_page_folds(name: str) -> None:
    """The answer, what limits it and how sure it is stand open."""
    text = to_markdown(run_document(samples.ALL[name]()))
    assert text.count("<details") == text.count("</details>") == text.count("<summary>") > 0
    opened = without_details(text)
    assert "The answer" in opened and "## Figures" in opened, "as a terminal has them"
    assert "What was rejected" not in opened and "## Run it again" in opened
    for part in re.findall(r"<summary>.*</summary>\n(.)", text):
        assert part == "\n", "GitHub reads Markdown after an empty line alone"

"""A page of many trials is no heavier than what a reader can see of it."""

from __future__ import annotations

from concurve.definition.study import Rules
from concurve.findings.run import Report
from concurve.report.html import to_html
from concurve.report.sections.run import run_document
from concurve.store import Store
from tests.helpers.made import made_run


def made(trials: int) -> Report:
    rules = Rules(repeats_min=trials, repeats_max=trials, time_allowed_seconds=1e9)
    return made_run(Store(), lambda n: 1.0 / float(n), cv=0.05, rules=rules, threads=(1, 2, 4, 8))


def test_trials_add_little_to_a_page() -> None:
    few, many = (len(to_html(run_document(made(trials)))) for trials in (5, 60))
    dots = 4 * 55  # those more in a picture
    pictures = 8  # at most: four charts, with two kinds of axes
    assert many - few < 25 * dots * pictures

"""The campaign of document 001: what each cell runs, what the document says, tiny versions of it,
and the chart of each client's loops."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from concurve.analysis.claims import judge_claims
from concurve.definition import catalogue
from concurve.definition.campaign import Campaign, at_effort
from concurve.exports import export_run
from concurve.findings.workers import CellShares, WorkerShares
from concurve.host.temporary import remove_abandoned
from concurve.planning.plan import make_plan
from concurve.report.charts.image import to_svg
from concurve.report.charts.workers import bars
from concurve.store import Store
from tests.helpers import real
from tests.helpers.columns import column_samples
from tests.helpers.forked import NO_REDO
from tests.helpers.lacking import lacking
from tests.helpers.packaged import find
from tests.helpers.planned import argv, study_of

FOLDER = dict(catalogue.campaigns())["kernel-mode"]

STUDIES = ("modes", "engines", "statements", "disk", "mariadb", "postgresql")
OURS = ("modes", "engines", "statements", "disk")


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    found = find("kernel-mode", 8)
    assert isinstance(found, Campaign)
    return found


def test_quick_needs_nothing_installed_and_three_minutes(campaign: Campaign) -> None:
    assert [member.name for member in campaign.studies] == list(STUDIES)
    quick = at_effort(campaign, "quick")
    assert [member.name for member in quick.studies] == ["modes"]
    assert quick.studies[0].study.effort("quick").rules.time_allowed_seconds < 180


def test_the_modes_differ_by_their_dials_alone(campaign: Campaign) -> None:
    common = {"engines": 2, "idle": "spin:100", "clients": 8}
    threads, processes = (
        argv(study_of(campaign, "modes"), mode=mode, **common) for mode in ("threads", "processes")
    )
    assert threads["load"] == processes["load"]
    own = {"threads", "--execution", "worker", "--io-threads", "1", "--replies", "engine"}
    assert set(threads["target"]) - set(processes["target"]) == own
    assert set(processes["target"]) - set(threads["target"]) == {"processes"}


def test_all_servers_have_the_same_clients_from_the_same_driver(campaign: Campaign) -> None:
    loads = {name: list(argv(study_of(campaign, name), clients=32)["load"]) for name in STUDIES}
    for name, load in loads.items():
        assert load[load.index("--sessions") + 1] == "32"
        assert "--verify" in load
        assert ("--mark-phase" in load) == (name in OURS)
        if "--mark-phase" in load:
            load.remove("--mark-phase")
        if "--new-statements" in load:
            at = load.index("--new-statements")
            assert load[at + 1] == "0"
            del load[at : at + 2]
        del load[1]  # the address
    assert all(load == loads["modes"] for load in loads.values())


def test_new_statements_and_their_cache_are_dials(campaign: Campaign) -> None:
    roles = argv(
        study_of(campaign, "statements"), "rigorous", **{"cache": "striped", "new-statements": 0.5}
    )
    assert after("--statement-cache", roles["target"]) == "striped"
    assert after("--new-statements", roles["load"]) == "0.5"


def test_without_a_statement_cache_no_page_is_in_an_engines_own_part(campaign: Campaign) -> None:
    """So that the latch of the procedure cache, of which the document speaks, is really used."""
    study = study_of(campaign, "statements")
    (claim,) = (claim for claim in study.claims if claim.id == "procedure-cache-contends-more")
    for side in (claim.test["of"], claim.test["over"]):
        target = argv(study, **{"new-statements": 0, "clients": 32, **side})["target"]
        pages, engines = int(after("--procedure-cache", target)) // 2, 2
        assert int(after("--engine-count", target)) == engines
        assert after("--statement-cache", target) == "off"
        # Half of the pages would be theirs; a plan in use takes one.
        assert engines <= pages < 2 * engines


def after(option: str, words: Sequence[str]) -> str:
    """The value of an option in a command line."""
    return words[words.index(option) + 1]


def test_every_statement_of_the_document_is_a_claim(campaign: Campaign) -> None:
    claims = {claim.id: claim for claim in study_of(campaign, "modes").claims}
    assert claims.keys() >= {
        "threads-use-more", "threads-busier", "processes-do-more", "processes-do-more-per-cpu",
        "threads-even", "processes-contend-more",
    }  # fmt: skip
    asked = {claim.id for claim in study_of(campaign, "engines").claims}
    assert asked >= {"more-engines-help", "still-more-engines-help", "balance-turns"}
    asked = {claim.id for claim in study_of(campaign, "statements").claims}
    assert asked >= {"statement-cache-contends-more", "procedure-cache-contends-more"}


def test_the_published_figures_stand_as_ratios_of_cells(campaign: Campaign) -> None:
    study = study_of(campaign, "modes")
    cells = [cell.parameters for cell in make_plan(study, "quick", 1).cells]
    held = [figure for figure in study.published if figure.compare == "ratio"]
    values = {(figure.indicator, figure.parameters["mode"]): figure.value for figure in held}
    assert values == {
        ("rate_per_second", "threads"): 240, ("rate_per_second", "processes"): 260,
        ("busy_threads_mean", "threads"): 100, ("busy_threads_mean", "processes"): 90,
    }  # fmt: skip
    assert all(figure.parameters in cells for figure in held)
    printed = {figure.value for figure in study.published if figure.compare == "none"}
    assert printed == {200, 300, 10, -15, 35}


def test_one_version_of_a_server_alone_is_judged(campaign: Campaign) -> None:
    """Its evenness is a figure of it, and needs no other version to be compared with."""
    run = {"version": [18], "clients": [2, 8, 32]}
    samples = column_samples(lambda *_: [0.37, 0.38, 0.39] * 10, run.__getitem__)
    found = judge_claims(study_of(campaign, "postgresql"), samples)
    assert [(one.setting, one.verdict) for one in found] == [
        ({"version": 18, "clients": clients}, "supported") for clients in (2, 8, 32)
    ]


# -- tiny versions, whole ---------------------------------------------------------------------

TINY = {
    "modes": 'idle = ["spin:100"], clients = [4]',
    "engines": 'engines = [1, 2], idle = ["block"], clients = [4]',
    "statements": 'cache = ["single"], new-statements = [0, 0.5], clients = [4]',
    "disk": 'durability = ["none", "group"], clients = [4]',
    "mariadb": "clients = [4]",
    "postgresql": "version = [10, 18], clients = [4]",
}


LACKING = {
    "postgresql": lacking("postgresql-10", "postgresql-18"),
    "mariadb": lacking("mariadb"),
}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[real.Lab]:
    laboratory = real.Lab(tmp_path)
    shutil.copytree(FOLDER, tmp_path / "campaign")
    for name, factors in TINY.items():
        file = tmp_path / "campaign" / name / "study.toml"
        text = file.read_text(encoding="utf-8")
        tiny = f'[effort.quick]\nfactors = {{ {factors} }}\nrepeats = 1\ntime_allowed = "1h"\n\n'
        text, count = re.subn(r"\[effort\.quick\].*?\n\n(?=\[)", tiny, text, flags=re.DOTALL)
        assert count == 1, name
        text = re.sub(r"^clients = \[", "clients = [4, ", text, flags=re.MULTILINE)
        file.write_text(text.replace("[4, 1, 2, 4, ", "[1, 2, 4, "), encoding="utf-8")
    (tmp_path / "campaign" / "published.csv").unlink()
    yield laboratory
    laboratory.end()
    remove_abandoned()


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
@pytest.mark.usefixtures("empty_charts")
@pytest.mark.parametrize("name", STUDIES)
def test_a_tiny_version_runs_whole(lab: real.Lab, name: str) -> None:
    if LACKING.get(name):
        pytest.skip(LACKING[name])
    cache = {"XDG_CACHE_HOME": str(lab.folder / "cache"), **NO_REDO}
    done = lab.run("run", f"campaign/{name}/study.toml", "--effort", "quick",
                   "--export-json", "run.json", **cache)  # fmt: skip
    assert done.returncode == 0, done.stderr
    exported = json.loads((lab.folder / "run.json").read_text(encoding="utf-8"))
    assert {cell["status"] for cell in exported["cells"]} == {"ok"}
    cells = [(cell["parameters"], cell["indicators"]) for cell in exported["cells"]]
    # Half a second of a busy machine may be too short for an answer, or for more than that to what
    # was done before the phase began.
    counts = ("rate_per_second", *(["phase_transactions"] if name in OURS else []))
    answered = [cell for cell in cells if all(cell[1][it]["value"] > 0 for it in counts)]
    assert answered
    for parameters, indicators in answered:
        figures = {name: figure["value"] for name, figure in indicators.items()}
        assert figures["load.session_operations_range_over_mean"] >= 0
        assert figures["load.errors"] == 0
        if name in OURS:
            _check_meters(figures)
            if parameters.get("new-statements"):
                assert figures["statements_cached"] > 0
    store = Store(str(lab.db))
    page = export_run(store, store.find_run("last"), "html").decode()
    store.close()
    assert "What each client did" in page
    assert lab.wait_until_alone() == {}


def _check_meters(figures: dict[str, float]) -> None:
    """Both meters account for all of the time."""
    states = ("busy", "spinning", "asleep", "disk")
    spent = sum(figures[f"engine_{state}_share"] for state in states)
    assert spent == pytest.approx(1)
    assert figures["engine_cpu_share"] > 0
    assert figures["busy_threads_mean"] > 0
    assert figures["transactions_per_cpu_second"] > 0
    assert figures["latch_acquisitions"] > figures["latch_waits"]


# -- the chart --------------------------------------------------------------------------------


def test_each_client_has_a_bar_in_the_panel_of_its_cell() -> None:
    cells = tuple(
        CellShares(parameters={"mode": mode, "clients": 3}, shares=shares)
        for mode, shares in (
            ("threads", (240.0, 241.0, 239.0)),
            ("processes", (200.0, 300.0, 260.0)),
        )
    )
    chart = bars(
        WorkerShares(indicator="load.session_operations", label="loops", factors=("mode",),
                     cells=cells, remark="2 of 6 cells.")
    )  # fmt: skip
    (values,) = chart.spec.to_dict()["datasets"].values()
    assert [row["share"] for row in values if row["panel"] == "mode=processes"] == [200, 300, 260]
    assert "mode=threads: 239 to 241" in chart.alternative
    assert "2 of 6 cells." in chart.remarks
    assert to_svg(chart).startswith("<svg")

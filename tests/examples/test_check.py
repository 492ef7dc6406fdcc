"""The judge of the examples: what it takes for right, for withheld, and for wrong."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from concurve.findings.run import CORE_SPEED_VARIES

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "examples" / "check.py"

pytestmark = pytest.mark.skipif(not CHECK.exists(), reason="not a checkout")


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check", CHECK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = load_script() if CHECK.exists() else ModuleType("check")


def run_with(best: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The JSON of a run of 1, 2 and 4 workers on two CPUs."""
    run = {
        "factors": [{"name": "workers", "levels": [1, 2, 4]}],
        "machine": {"cpus_allowed": [0, 1], "cgroup": {"version": 1}},
        "state": "complete",
        "reason": "",
    }
    found: dict[str, Any] = {"run": run, "findings": [], "cells": [], **more}
    if best is not None:
        found["best"] = best
    return found


def a_set(recommended: Any, indicator: str = "rate", **more: Any) -> dict[str, Any]:
    return {"indicator": indicator, "factors": ["workers"], "recommended": recommended, **more}


@pytest.mark.parametrize(
    ("best", "right", "kind"),
    [
        (a_set(2), "2,4", "right"),
        (a_set(2), "cpus..", "right"),
        (a_set(4), "cpus..", "right"),
        (a_set(1), "cpus..", "WRONG"),
        (a_set(1), "more", "WRONG"),
        (a_set(2), "more", "right"),
        (a_set(2, "wall_seconds"), "2,4", "WRONG"),
        (a_set(1, doubt="the machine was not quiet"), "2", "cannot be said"),
        (None, "2", "WRONG"),
    ],
)
def test_a_recommendation(best: dict[str, Any] | None, right: str, kind: str) -> None:
    verdict = check.best(run_with(best), "rate", right, {})
    assert verdict.kind == kind
    assert verdict.exit_code == (kind == "WRONG")


@pytest.mark.parametrize(
    ("named", "right", "kind"),
    [
        ({"use": 2, "not_told_from": [4]}, "2,4", "right"),
        ({"use": 2, "not_told_from": [4]}, "1", "WRONG"),
        ({"levels": [2, 4]}, "2", "WRONG"),
    ],
)
def test_a_setting_that_is_not_shown_to_be_the_best_is_judged_as_one_that_is(
    named: dict[str, Any], right: str, kind: str
) -> None:
    """Whoever reads it uses it. Where several are named and none is to be used, nothing is said."""
    best = {"indicator": "rate", "factors": ["workers"], **named}
    assert check.best(run_with(best), "rate", right, {}).kind == kind
    cells = [{"status": "ok", "doubtful": 3, "note": "", "stop_reason": ""}]
    warned = [{"kind": "warning", "sentence": "3 trials are in doubt."}]
    doubted = run_with(best, cells=cells, findings=warned)
    if "use" not in named:
        assert check.best(doubted, "rate", right, {}).kind == "cannot be said"


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ({"status": "ok"}, "WRONG"),
        ({"status": "partial", "stop_reason": "time allowance"}, "cannot be said"),
        ({"status": "skipped", "note": "exit code 1 twice"}, "cannot be said"),
        ({"status": "ok", "doubtful": 3}, "WRONG"),
    ],
)
def test_no_recommendation_needs_a_reason(cell: dict[str, Any], kind: str) -> None:
    """A warning of any other kind is none."""
    warned = [{"kind": "warning", "sentence": "The machine is virtual."}]
    cells = [{"note": "", "stop_reason": "", **cell}]
    verdict = check.best(run_with(cells=cells, findings=warned), "rate", "2", {})
    assert verdict.kind == kind
    doubted = [{"kind": "warning", "sentence": "All cells are in doubt."}]
    verdict = check.best(run_with(cells=cells, findings=doubted), "rate", "2", {})
    assert ("All cells are in doubt" in verdict.says) == ("doubtful" in cell)


@pytest.mark.parametrize(
    ("documents", "quiet", "kind"),
    [
        ([{"cells": [{"status": "ok"}]}], True, "WRONG"),
        ([{"cells": [{"status": "ok"}]}], False, "cannot be said"),
        ([{"cells": []}, {"cells": [{"status": "ok"}, {"doubtful": 1}]}], True, "cannot be said"),
        ([{"cells": [{"doubt": "the machine was not quiet"}]}], True, "cannot be said"),
        ([{"cells": [{"ratio": {"value": 1.0, "in_doubt": True}}]}], True, "cannot be said"),
        ([{"cells": [], "findings": [{"subject": CORE_SPEED_VARIES}]}], True, "WRONG"),
    ],
)
def test_on_a_quiet_machine_only_a_trial_in_doubt_excuses_that_nothing_is_said(
    documents: list[dict[str, Any]], quiet: bool, kind: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    withheld = check.Judged(check.Verdict("cannot be said", "the trials do not decide"), documents)
    monkeypatch.setattr(check, "_best", lambda _given: withheld)
    words = ["best", "last", "--by", "rate", "--right", "2"]
    code = check.main([*(["--quiet"] if quiet else []), *words])
    assert capsys.readouterr().out.startswith(f"{kind}: ")
    assert code == (kind == "WRONG")


@pytest.mark.parametrize(("doubtful", "kind"), [(0, "WRONG"), (2, "cannot be said")])
def test_a_refusal_is_an_answer_only_where_a_trial_is_in_doubt(
    doubtful: int, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "asked", lambda *_: {"cells": [{"doubtful": doubtful}]})
    code = check.main(["refused", "small", "--says", "no row counts"])
    said = capsys.readouterr().out
    assert said.startswith(f"{kind}: ") and "no row counts" in said
    assert code == (kind == "WRONG")


def test_an_answer_is_as_it_is_on_a_quiet_machine_and_on_a_busy_one() -> None:
    for kind in ("right", "WRONG"):
        for is_doubted in (False, True):
            assert check.Verdict(kind, "it").on_a_quiet_machine(is_doubted).kind == kind


def test_a_recommendation_under_a_condition() -> None:
    sets = [a_set(4, group={"sync": "none"}), a_set(2, group={"sync": "lock"})]
    run = run_with(best_by_condition=sets)
    assert check.best(run, "rate", "cpus..", {"sync": "none"}).kind == "right"
    assert check.best(run, "rate", "1", {"sync": "lock"}).kind == "WRONG"


@pytest.mark.parametrize(
    ("machine", "cpus"),
    [
        ({"cpus_allowed": [0, 1, 2]}, 3),
        ({"cpus_allowed": [0, 1, 2], "cgroup": {"cpu_max": "150000 100000"}}, 1.5),
        ({"cpus_allowed": [0, 1], "cgroup": {"cpu_max": "max 100000"}}, 2),
        ({"cpus_allowed": [0, 1], "cgroup": {"cpu_quota_us": "100000"}}, 1),
        ({"cpus_allowed": [0, 1], "cgroup": {"cpu_quota_us": "-1"}}, 2),
        ({"cpus_allowed": [0, 1], "cgroup": {"cpu_quota_us": "none"}}, 2),
        ({"cpus_allowed": [0, 1], "cgroup": {"cpu_max": "none"}}, 2),
    ],
)
def test_the_granted_cpus(machine: dict[str, Any], cpus: float) -> None:
    assert check.granted_cpus({"machine": machine}) == cpus


def test_where_no_level_has_enough_the_greatest_is_right() -> None:
    assert check.right_levels("cpus..", ["1", "2"], 8) == ["2"]
    assert check.right_levels("more", ["1", "2"], 1) == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "doubt", "kind"),
    [
        ("lock", "", "right"),
        ("cpu", "", "WRONG"),
        ("none", "", "WRONG"),
        ("none", "the machine was not quiet", "cannot be said"),
        ("contamination", "", "cannot be said"),
        ("in doubt", "the machine was not quiet", "cannot be said"),
        ("lock", "the machine was not quiet", "right"),
        ("cpu", "the machine was not quiet", "WRONG"),
    ],
)
def test_a_cause(name: str, doubt: str, kind: str) -> None:
    cell = {"parameters": {"workers": 4}, "cause": name, "evidence": "it waits"}
    if doubt:
        cell["doubt"] = doubt
    explained = {"cells": [cell], "missing": {}}
    assert check.cause(explained, {"workers": "4"}, ["lock"]).kind == kind


@pytest.mark.parametrize(
    ("verdicts", "kind"),
    [
        (["slower"], "right"),
        (["slower", "undecided"], "cannot be said"),
        (["undecided", "faster"], "WRONG"),
        (["same"], "WRONG"),
        ([], "WRONG"),
    ],
)
def test_a_comparison(verdicts: list[str], kind: str) -> None:
    cells = [
        {"parameters": {"n": n}, "verdict": verdict, "ratio": {"value": 1.04}}
        for n, verdict in enumerate(verdicts)
    ]
    assert check.compared({"new": "new", "cells": cells}, ["slower"]).kind == kind


@pytest.mark.parametrize(
    ("low", "high", "measured", "kind"),
    [
        (90.0, 110.0, {"value": 115.0, "low": 109.0, "high": 121.0}, "right"),
        (90.0, 110.0, {"value": 120.0, "low": 115.0, "high": 125.0}, "WRONG"),
        (90.0, 110.0, {"value": 120.0, "low": 115.0, "high": 125.0, "in_doubt": True},
         "cannot be said"),
        (90.0, None, {"value": 120.0}, "cannot be said"),
        (50.0, 500.0, {"value": 120.0}, "cannot be said"),
        (-50.0, 150.0, {"value": 120.0}, "cannot be said"),
        (100.0, 110.0, {"value": 120.0, "low": 105.0, "high": 500.0}, "cannot be said"),
        (50.0, 60.0, {"value": 120.0, "low": 80.0, "high": 500.0}, "WRONG"),
        (90.0, 110.0, {"value": 120.0}, "WRONG"),
    ],
)  # fmt: skip
def test_a_prediction(low: float, high: float | None, measured: dict[str, Any], kind: str) -> None:
    fit = {
        "predictions": [{"n": 16.0, "low": low, "high": high}],
        "warnings": ["too few levels"],
        "notes": [],
    }
    cell = {"parameters": {"workers": 16}, "indicators": {"rate": measured}, "absent": {}}
    verdict = check.predicted(fit, run_with(cells=[cell]), "workers", 16.0, "rate")
    assert verdict.kind == kind


def row(block: int, wall: str = "1.0", used: str = "yes") -> dict[str, str]:
    return {"cell": "0", "block": str(block), "attempt": "0", "used": used, "wall_seconds": wall}


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ([row(0), row(1)], "right"),
        ([row(0, used="no"), row(1)], "right"),
        ([row(1)], "WRONG"),
        ([row(0, wall="2.0"), row(1)], "WRONG"),
        ([row(0), row(0)], "WRONG"),
    ],
)
def test_a_resumed_run(after: list[dict[str, str]], kind: str) -> None:
    assert check.resumed([row(0)], after, run_with()).kind == kind


def test_a_resumed_run_that_did_not_end() -> None:
    run = run_with()
    run["run"]["state"] = "interrupted"
    assert check.resumed([row(0)], [row(0), row(1)], run).kind == "WRONG"


def test_what_cannot_be_read_is_no_right_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = [
        "predicted",
        str(tmp_path / "none"),
        "w",
        "x",
        "--factor",
        "n",
        "--at",
        "2",
        "--by",
        "r",
    ]
    assert check.main(asked) == 1
    assert capsys.readouterr().out.startswith("WRONG: ")

"""The study of document 000: what each cell runs, and a tiny version of it, whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.analysis.claims import judge_claims
from concurve.attendants.servers import SERVERS
from concurve.definition import catalogue
from concurve.planning.plan import Plan, make_plan, trial_spec
from concurve.terms import Level
from tests.helpers import real
from tests.helpers.columns import column_samples
from tests.helpers.packaged import find_study

REDIS = SERVERS["redis-server"].find() is not None


def program(name: str, where: str, java: str | None, jvm: Sequence[str]) -> list[str]:
    return [name]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(find_study("enqueue-io-threads", 8), "rigorous", 1)


def argv(plan: Plan, **levels: Any) -> list[tuple[str, ...]]:
    cell = next(cell for cell in plan.cells if levels.items() <= cell.parameters.items())
    spec = trial_spec(plan, cell, "t", tuple(range(8)), program, 4711)
    assert [role.controls.cpus for role in spec.roles][1] == (4, 5, 6, 7), "those beyond 4 CPUs"
    return [role.argv for role in spec.roles]


def test_the_documents_procedure_is_100_locks_for_each_process(plan: Plan) -> None:
    server, load = argv(
        plan, procedure="document", target="worker", processes=100, **{"io-threads": 3}
    )
    listens = ("--port", "4711", "--bind", "127.0.0.1")
    assert server[:7] == ("server", *listens, "--io-threads", "3")
    assert server[7:9] == ("--execution", "worker")
    assert load[:5] == ("load", "127.0.0.1:4711", "--processes", "--sessions", "100")
    assert load[5:7] == ("--transactions", "10000")
    assert load[7:10] == ("--command", "LOCK ENQUEUE {session}-{count} E", "--mark-phase")
    assert load[10:] == ("--password-from", "CONCURVE_PASSWORD")


def test_redis_has_the_same_load_in_its_own_words(plan: Plan) -> None:
    server, load = argv(plan, procedure="steady", target="redis", **{"io-threads": 8})
    assert server[:3] == ("redis-server", "--port", "4711")
    assert server[3:] == ("--bind", "127.0.0.1", "--io-threads", "8")
    assert "--duration" in load
    assert load[-3] == "SET ENQUEUE:{run}-{session}-{count} {session} NX"


def test_every_figure_of_the_document_is_there(plan: Plan) -> None:
    printed = [figure.printed for figure in plan.study.published]
    assert printed == ["0.255", "5000", "10000", "5", "10", "30", "3"]
    assert {claim.id for claim in plan.study.claims} >= {
        "best-3-or-4", "five-no-better", "eight-no-better", "more-cpus-help-1",
        "more-cpus-help-2", "best-time-alike", "best-time-published",
        "locks-held", "locks-held-100", "lock-memory", "lock-memory-100", "lock-table-share",
    }  # fmt: skip


def test_a_worker_without_a_cpu_is_no_bottleneck(plan: Plan) -> None:
    """By its own meter it has work all the time, also while it waits for a CPU; by the kernel's it
    runs for half of it."""
    figures = {"engine_busy_share": 1.0, "engine_cpu_share": 0.5}

    def values(cell: Mapping[str, Level], indicator: str) -> Sequence[float]:
        return [figures[indicator]] * 20

    def levels(factor: str) -> Sequence[Level]:
        return next(own.levels[:1] for own in plan.study.factors if own.name == factor)

    (claim,) = (one for one in plan.study.claims if one.id == "sequential-part-limits")
    alone = msgspec.structs.replace(plan.study, claims=(claim,))
    verdicts = [one.verdict for one in judge_claims(alone, column_samples(values, levels))]
    assert set(verdicts) == {"refuted"}, "with 2 CPUs and with 4"
    figures["engine_cpu_share"] = 0.98
    verdicts = [one.verdict for one in judge_claims(alone, column_samples(values, levels))]
    assert set(verdicts) == {"supported"}


# -- a tiny version, whole --------------------------------------------------------------------

TINY = """[effort.quick]
factors = { cpus = [1], processes = [4], io-threads = [1, 2] }
repeats = 1
time_allowed = "1h"
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[real.Lab]:
    laboratory = real.Lab(tmp_path)
    packaged = dict(catalogue.entries())["enqueue-io-threads"] / "study.toml"
    text = packaged.read_text(encoding="utf-8")
    text = re.sub(r"\[effort\.quick\].*?(?=\[effort\.normal\])", TINY, text, flags=re.DOTALL)
    text = text.replace('"--warm-up", "0.2", "--duration", "0.5"', '"--duration", "0.4"')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    yield laboratory
    laboratory.end()


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_a_tiny_version_runs_whole(lab: real.Lab) -> None:
    done = lab.run("run", "study.toml", "--effort", "quick", "--export-json", "run.json")
    assert done.returncode == 0, done.stderr
    assert "--claims" in done.stdout, "claims are told of, and counted where one is decided"
    exported = json.loads((lab.folder / "run.json").read_text(encoding="utf-8"))
    cells = exported["cells"]
    targets = ["worker", "inline", *(["redis"] if REDIS else [])]
    assert len(cells) == 2 * len(targets) * 2
    assert {cell["status"] for cell in cells} == {"ok"}
    for cell in cells:
        figures, where = cell["indicators"], cell["parameters"]
        assert figures["seconds_per_operation"]["value"] > 0
        assert figures["load.latency_ns_p99"]["value"] > 0
        assert figures["cpu_seconds_per_operation"]["value"] > 0
        assert figures["wall_seconds"]["value"] < figures["run_seconds"]["value"]
        if where["procedure"] == "document":
            assert figures["load.operations"]["value"] == 400
        if where["target"] == "worker":
            assert 0 < figures["engine_busy_share"]["value"] <= 1
            assert 0 < figures["engine_cpu_share"]["value"] <= 1, "what a claim is judged by"
        if where["target"] == "redis":
            assert figures["io_threaded_writes_share"]["value"] >= 0
        else:
            assert figures["io_threads_active"]["value"] == where["io-threads"]
            # Latency is what a process waits, and nothing else: Little's law. Where one had no CPU
            # at the end, so that its request has no answer, those that it did not begin count too.
            under_way = figures["load.latency_ns_mean"]["value"] / 1e9
            if figures["load.unanswered"]["value"] == 0:
                assert under_way / figures["seconds_per_operation"]["value"] <= 4.05
    explained = lab.run("explain", "last")
    assert explained.returncode == 0, explained.stderr
    assert lab.wait_until_alone() == {}


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_without_redis_the_rest_is_measured(lab: real.Lab) -> None:
    nowhere = str(lab.folder / "redis-server")
    done = lab.run(
        "run", "study.toml", "--effort", "quick", "--repeats", "1",
        CONCURVE_REDIS_SERVER=nowhere,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # On a busy machine other warnings come first, and the short answer counts this one.
    shown = " ".join(lab.run("show", "last", "--all").stdout.split())
    assert "Not measured: target=redis. role target: redis-server is not installed" in shown
    assert "apt-get install redis-server" in shown
    assert lab.wait_until_alone() == {}

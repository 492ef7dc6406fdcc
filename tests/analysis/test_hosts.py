"""Runs whose blocks are dealt out over hosts: a level never goes with a host, and nothing is
concluded where the hosts are not alike."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.analysis.comparison import compare_levels
from concurve.analysis.run import trial_findings_of
from concurve.definition.inventory import Inventory
from concurve.definition.study import Claim, Rules, Study
from concurve.errors import HostError
from concurve.explain import explain_run
from concurve.findings.again import run_again
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.measuring.site import ThisMachine
from concurve.planning.plan import make_plan, plan_of, trial_spec
from concurve.report.sections.best import doubt_sentences
from concurve.report.sections.limits import explanation_document
from concurve.report.sections.run import brief_run_document
from concurve.report.terminal import lines
from concurve.store import Store
from tests.helpers.agents import inventory_of
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

#: How many times as long a command takes on a host.
Slower = Callable[[str, int], float]

NAMES = ("rack1", "rack2", "rack3")


def rack(count: int) -> Inventory:
    return inventory_of({name: f"10.0.0.{n}" for n, name in enumerate(NAMES[:count], 1)})


def over_any(blocks: int, host: str = "any") -> Study:
    study = small_study(Rules(repeats_min=blocks, repeats_max=blocks), threads=(1, 2, 4))
    claim = Claim(
        id="faster",
        says="Two are faster.",
        kind="speedup",
        test={"of": {"threads": 2}, "over": {"threads": 1}, "at_least": 1.5},
    )
    roles = tuple(msgspec.structs.replace(role, host=host) for role in study.roles)
    return msgspec.structs.replace(study, roles=roles, claims=(claim,))


def measured(
    tmp_path: Path, slower: Slower, blocks: int = 8, hosts: int = 2, seed: int = 1, cv: float = 0.01
) -> TrialFindings:
    """A run over a rack; a trial with n threads takes 1/n s, times what its host makes of it."""
    store = Store(str(tmp_path / f"runs-{seed}.db"))
    head = new_head(over_any(blocks), "normal", seed, "again", rack(hosts))

    def wall(spec: Any, _: random.Random) -> float:
        (role,) = spec.roles
        threads = int(role.argv[1])
        noise = random.Random(f"{seed}/{spec.trial.partition('/')[2]}").lognormvariate(0, cv)
        return slower(role.host, threads) * noise / threads

    Runner(head, store, FakeEngine(wall), clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


def said(found: TrialFindings, kind: str) -> str:
    return "\n".join(item.sentence for item in found.sentences if item.kind == kind)


@pytest.mark.parametrize("hosts", [2, 3])
def test_every_host_has_all_levels_equally_often(hosts: int) -> None:
    plan = make_plan(over_any(6), "normal", 5, rack(hosts))
    cpus = (0, 1)
    places = [
        (cell.parameters["threads"], role.host)
        for block in range(6)
        for cell in plan.cells
        for role in trial_spec(
            plan, cell, "t", cpus, lambda *_: [], block=block
        ).roles
    ]  # fmt: skip
    assert set(Counter(places).values()) == {6 // hosts}
    for block in range(6):
        on = {
            role.host
            for cell in plan.cells
            for role in trial_spec(plan, cell, "t", cpus, lambda *_: [], block=block).roles
        }
        assert on == {plan.host_of(block)}, "a block is on one host"  # fmt: skip
    turns = [plan.host_of(block) for block in range(60)]
    assert all(len(set(turns[n : n + hosts])) == hosts for n in range(0, 60, hosts))
    assert len({tuple(turns[n : n + hosts]) for n in range(0, 60, hosts)}) > 1, "in a drawn order"


@pytest.mark.parametrize("hosts", [None, 2])
def test_a_run_over_hosts_is_not_to_wait_for_this_machine(
    tmp_path: Path, hosts: int | None
) -> None:
    """``--wait-quiet`` is refused beside ``--hosts``: it looks at this machine alone. No view of a
    run advises it."""
    store = Store(str(tmp_path / "runs.db"))
    rules = Rules(repeats_min=4, repeats_max=4)
    study = small_study(rules, threads=(1, 2, 4)) if hosts is None else over_any(4)
    head = new_head(study, "normal", 1, "again", None if hosts is None else rack(hosts))
    engine = FakeEngine(lambda _, rng: rng.lognormvariate(0, 0.05), steal_of=lambda _: 10**9)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    row = store.find_run(head.id)
    found = trial_findings_of(store, row)
    documents = brief_run_document(found), explanation_document(explain_run(store, row))
    shown = ["\n".join(line.plain for line in lines(document, 500)) for document in documents]
    shown.append(doubt_sentences(found.best[0], None, run_again(found.run.over_hosts)))
    shown.append(compare_levels(found, "threads", ("1", "2")).advice[-1])
    for text in shown:
        assert ("--wait-quiet 5m" in text) is (hosts is None), text
        assert ("Run again when the hosts are quiet" in text) is (hosts is not None), text


def test_without_hosts_any_is_this_machine() -> None:
    plan = make_plan(over_any(2), "normal", 5)
    (role,) = trial_spec(plan, plan.cells[0], "t", (0,), lambda *_: []).roles
    assert plan.alike == () and plan.host_of(3) == "" and role.host is None


def test_hosts_that_are_alike_are_said_to_be_and_claims_are_judged(tmp_path: Path) -> None:
    found = measured(tmp_path, lambda host, threads: 1.0)
    (claim,) = found.claims
    assert claim.verdict == "supported" and found.best and not found.best[0].doubt
    assert "Each block ran on one of rack1 and rack2" in said(found, "note")
    assert "No relevant difference between the hosts was seen" in said(found, "note")
    assert "not alike" not in said(found, "warning")


@pytest.mark.parametrize(
    ("slower", "says"),
    [
        (
            lambda host, threads: 1.2 if host == "rack2" else 1.0,
            r"wall time on rack2 is 1\.(19\d?|2\d?) times that on rack1",
        ),
        (
            lambda host, threads: 1.3 if host == "rack2" and threads == 4 else 1.0,
            r"of threads=4 over threads=1 on rack2 is 1\.(2[5-9]|3\d?) times that on rack1",
        ),
    ],
)
def test_hosts_that_are_not_alike_are_told_with_figures_and_nothing_is_concluded(
    tmp_path: Path, slower: Slower, says: str
) -> None:
    found = measured(tmp_path, slower)
    assert re.search(says, said(found, "warning")), found.sentences
    (claim,) = found.claims
    assert claim.verdict == "undecided" and "rack2" in claim.reason and claim.doubt
    assert all("not alike" in best.doubt for best in found.best) and found.best
    assert found.deciding == (), "more trials on these hosts decide nothing"


def test_a_ratio_is_that_of_one_host_however_fast_that_is(tmp_path: Path) -> None:
    found = measured(tmp_path, lambda host, threads: 1.5 if host == "rack2" else 1.0)
    ratio = found.claims[0].estimate
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    assert ratio.low <= 2 <= ratio.high and ratio.high / ratio.low < 1.1


def test_of_three_hosts_the_odd_one_is_named(tmp_path: Path) -> None:
    found = measured(
        tmp_path, lambda host, threads: 1.2 if host == "rack3" else 1.0, blocks=12, hosts=3
    )
    assert re.search(
        r"wall time on rack3 is 1\.(19|2\d?) times that on the other hosts", said(found, "warning")
    )


def test_too_few_blocks_are_said_to_test_nothing(tmp_path: Path) -> None:
    found = measured(tmp_path, lambda host, threads: 1.0, blocks=3, hosts=3)
    assert "Whether they are alike was not tested" in said(found, "note")


@pytest.mark.simulation
def test_hosts_that_are_alike_are_rarely_called_unlike(tmp_path: Path) -> None:
    """The error is 5 % a run at most; 25 runs with fixed seeds have few."""
    wrong = sum(
        "not alike" in said(measured(tmp_path, lambda *_: 1.0, seed=seed, cv=0.03), "warning")
        for seed in range(2, 27)
    )
    assert wrong <= 3, wrong


def differing(facts: dict[str, dict[str, Any]]) -> Any:
    """A site whose hosts say these things of themselves."""

    class Site(ThisMachine):
        def machine(self, host: str) -> dict[str, Any]:
            return {"cpu_model": "Xeon", "memory_bytes": 1 << 34, **facts.get(host, {})}

        def describe_program(self, host: str, *_: Any) -> dict[str, Any]:
            return {"sha256": facts.get(host, {}).get("program", "abc")}

    return Site()


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"cpu_model": "EPYC"}, "CPU is Xeon on rack1, EPYC on rack2"),
        ({"kernel": "6.1"}, "kernel is not known on rack1, 6.1 on rack2"),
        ({"memory_bytes": 1 << 33}, "memory is 17179869184 on rack1, 8589934592 on rack2"),
        ({"program": "def"}, "program of target (SHA-256) is abc on rack1, def on rack2"),
    ],
)
def test_hosts_that_say_that_they_differ_are_refused_before_the_first_trial(
    tmp_path: Path, facts: dict[str, Any], says: str
) -> None:
    store, engine = Store(str(tmp_path / "runs.db")), FakeEngine()
    head = new_head(over_any(2), "normal", 1, "again", rack(2))
    with pytest.raises(HostError) as refused:
        Runner(head, store, engine, site=differing({"rack2": facts})).start()
    assert says in refused.value.what and "any:LABEL" in refused.value.remedy
    assert not engine.specs and not store.runs(), "nothing was run, nothing was stored"


def test_a_little_less_memory_is_no_difference(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "runs.db"))
    head = new_head(over_any(2), "normal", 1, "again", rack(2))
    site = differing({"rack2": {"memory_bytes": (1 << 34) - (1 << 26)}})
    Runner(head, store, FakeEngine(), clock=FakeClock(0.001), site=site).start()
    hosts: Sequence[str] = plan_of(head).alike
    assert hosts == ("rack1", "rack2")

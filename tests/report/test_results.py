"""The pages of docs/results: what a store has of a document, with three pictures."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from concurve.definition.campaign import Campaign, only, with_rules_everywhere
from concurve.definition.campaign_file import load_campaign
from concurve.definition.inventory import Cluster, Host, Inventory
from concurve.definition.pointing import Pointing, point
from concurve.definition.study import Factor, Role, Rules, Study
from concurve.measuring.campaign_laboratory import CampaignRunner
from concurve.measuring.heads import new_campaign_head, new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.store.run_head import LeftOut
from tests.helpers.campaigns import write_campaign
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "write_results.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="not a checkout")


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_results", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script() if SCRIPT.exists() else ModuleType("write_results")


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONCURVE_LOCK", str(tmp_path / "lock"))
    known = {"small-campaign": "000", "small": "001", "lacking": "002"}
    monkeypatch.setattr(script, "DOCUMENTS", known)
    whole = {
        "small-campaign": load_campaign(write_campaign(tmp_path / "packaged"), 2),
        "small": STUDY,
        "lacking": STUDY,
    }
    monkeypatch.setattr(script, "packaged", whole.__getitem__)


STUDY = small_study(Rules(repeats_min=3, repeats_max=3), cpus=(1, 2), threads=(1, 2))


def engine() -> FakeEngine:
    """Two threads on two CPUs halve the time."""

    def seconds(argv: tuple[str, ...]) -> float:
        cpus, threads = map(int, argv[1:3])
        return 10.0 / min(cpus, threads)

    return FakeEngine(lambda spec, rng: seconds(spec.roles[0].argv) * rng.gauss(1, 0.002))


def add_campaign(
    folder: Path,
    store: Store,
    effort: str,
    number: int,
    change: Callable[[Campaign], Campaign] = lambda campaign: campaign,
) -> str:
    campaign = change(load_campaign(write_campaign(folder / f"campaign-{number}"), 2))
    again = f"concurve run small-campaign {number}"
    head = new_campaign_head(campaign, effort, number, again, "1")
    CampaignRunner(head, store, engine(), lambda _: None, clock=FakeClock(0.001)).start()
    return head.id


def add_run(store: Store, study: Study = STUDY, left_out: Sequence[LeftOut] = ()) -> str:
    head = new_head(study, "normal", 1, "concurve sweep …")
    head = msgspec.structs.replace(head, left_out=tuple(left_out))
    Runner(head, store, engine(), clock=FakeClock(0.001)).start()
    return head.id


def written(folder: Path, *arguments: str) -> int:
    done: int = script.main(["--db", str(folder / "s.db"), "--to", str(folder / "out"), *arguments])
    return done


@pytest.mark.usefixtures("documents")
def test_a_campaign_has_a_page_with_its_verdicts_and_three_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "s.db"))
    id_ = add_campaign(tmp_path, store, "normal", 1)
    assert written(tmp_path, "small-campaign") == 0
    out = tmp_path / "out"
    names = ["small-campaign.md", *(f"small-campaign-{number}.svg" for number in (1, 2, 3))]
    assert capsys.readouterr().out.splitlines() == [str(out / name) for name in names]
    page = (out / names[0]).read_text(encoding="utf-8")
    assert page.startswith("# A small campaign\n\ndocument 000, small-campaign · effort normal · ")
    assert "concurve run small-campaign 1" in page and id_ in page
    assert "kernel" in page
    answer = page.partition("## The answer")[2].partition("## ")[0]
    shown, _, folded = answer.partition("<summary>On what it hangs</summary>")
    assert "- Test case 1: Use" in shown and "**Warning:**" in shown, answer
    assert "Test case 2" not in shown and "- Test case 2: Use" in folded, answer
    assert "4 verdicts, of which this machine can test 4; of these none is undecided." in page
    assert "](../studies/small-campaign.md)" in page
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in page.splitlines() if line.startswith("|")]  # fmt: skip
    head = next(row for row in rows if row[0] == "study")
    counts = {row[0]: dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}
    for study in ("tc01", "tc02"):
        assert (counts[study]["supported"], counts[study]["refuted"]) == ("1", "1")
    assert (
        sum("Two threads on two CPUs halve the time." in cell for row in rows for cell in row) == 2
    )
    for name in names[1:]:
        assert f"]({name})" in page
        assert (out / name).read_text(encoding="utf-8").startswith("<svg")
    monkeypatch.setattr(script, "to_svg", lambda chart: "<svg/>")
    # The same store gives the same page; what was measured with less effort changes nothing.
    add_campaign(tmp_path, store, "quick", 2)
    assert written(tmp_path, "small-campaign") == 0
    assert (out / names[0]).read_text(encoding="utf-8") == page
    newer = add_campaign(tmp_path, store, "normal", 3)
    assert written(tmp_path, "small-campaign") == 0
    assert newer in (out / names[0]).read_text(encoding="utf-8")


@pytest.mark.usefixtures("documents")
def test_a_run_has_a_page_and_what_is_lacking_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "to_svg", lambda chart: "<svg/>")
    id_ = add_run(Store(str(tmp_path / "s.db")))
    out = tmp_path / "out"
    out.mkdir()
    old = out / "lacking.md"
    old.write_text("as it was")
    assert written(tmp_path) == 1
    said = capsys.readouterr().err
    assert "concurve run lacking --effort normal" in said
    assert "concurve run small-campaign --effort normal" in said
    assert "concurve run small --effort" not in said
    assert id_ in (out / "small.md").read_text(encoding="utf-8")
    assert old.read_text() == "as it was"


def with_levels(campaign: Campaign) -> Campaign:
    """As with ``--set threads=2``."""
    members = tuple(
        msgspec.structs.replace(
            member, study=point(member.study, Pointing(levels=("threads=2",)), 2)
        )
        for member in campaign.studies
    )
    return msgspec.structs.replace(campaign, studies=members)


NARROWED: dict[str, Callable[[Campaign], Campaign]] = {
    "is without tc01": lambda campaign: only(campaign, ["tc02"]),
    "has other levels of threads in tc01": with_levels,
    "has other numbers of trials in tc01": lambda campaign: with_rules_everywhere(
        campaign, {"repeats_min": 2, "repeats_max": 2}
    ),
}


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("said", NARROWED)
def test_a_page_is_of_a_whole_campaign(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    said: str,
) -> None:
    """A newer one of which somebody ran a part takes no page, and is named where there is no
    other."""
    monkeypatch.setattr(script, "to_svg", lambda chart: "<svg/>")
    store = Store(str(tmp_path / "s.db"))
    part = add_campaign(tmp_path, store, "normal", 1, NARROWED[said])
    assert written(tmp_path, "small-campaign") == 1
    assert f"({part} {said}): concurve run small-campaign" in capsys.readouterr().err
    whole = add_campaign(tmp_path, store, "normal", 2)
    newer = add_campaign(tmp_path, store, "normal", 3, NARROWED[said])
    assert written(tmp_path, "small-campaign") == 0
    page = (tmp_path / "out" / "small-campaign.md").read_text(encoding="utf-8")
    assert whole in page and newer not in page


@pytest.mark.usefixtures("documents")
def test_a_page_is_of_a_whole_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "to_svg", lambda chart: "<svg/>")
    store = Store(str(tmp_path / "s.db"))
    one_cpu = msgspec.structs.replace(
        STUDY, factors=(Factor(name="cpus", levels=(1,)), *STUDY.factors[1:])
    )
    part = add_run(store, one_cpu)
    assert written(tmp_path, "small") == 1
    assert f"({part} has other levels of cpus)" in capsys.readouterr().err
    lacked = LeftOut(factor="cpus", level=2, why="one CPU is there", remedy="")
    add_run(store, one_cpu, [lacked])
    assert written(tmp_path, "small") == 0, "the machine lacked it, and nobody left it out"


@pytest.mark.usefixtures("documents")
def test_stored_trials_are_judged_by_the_claims_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "to_svg", lambda chart: "<svg/>")
    store = Store(str(tmp_path / "s.db"))

    def unclaimed(study: Study) -> Study:
        return msgspec.structs.replace(study, claims=(), question="Was it asked otherwise?")

    def before(campaign: Campaign) -> Campaign:
        members = tuple(
            msgspec.structs.replace(member, study=unclaimed(member.study))
            for member in campaign.studies
        )
        return msgspec.structs.replace(campaign, studies=members, title="An older title")

    add_campaign(tmp_path, store, "normal", 1, before)
    add_run(store, unclaimed(STUDY))
    assert written(tmp_path, "small-campaign", "small") == 0
    page = (tmp_path / "out" / "small-campaign.md").read_text(encoding="utf-8")
    assert page.startswith("# A small campaign\n")
    assert "4 verdicts, of which this machine can test 4; of these none is undecided." in page
    page = (tmp_path / "out" / "small.md").read_text(encoding="utf-8")
    assert STUDY.question in page and "otherwise" not in page


def test_runs_over_hosts_and_of_another_program_have_no_page(tmp_path: Path) -> None:
    campaign = load_campaign(write_campaign(tmp_path), 2)
    hosts = Inventory(
        hosts=(Host(name="a", address="10.0.0.1"), Host(name="b", address="10.0.0.2")),
        cluster=Cluster(head="a"),
    )
    over = new_campaign_head(campaign, "normal", 1, "again", "1", hosts)
    assert script.lacking_of_campaign(over, campaign) == "ran over hosts"
    head = new_head(STUDY, "normal", 1, "again")
    assert script.lacking_of_run(head, STUDY) == ""
    on_hosts = msgspec.structs.replace(head, hosts=hosts)
    assert script.lacking_of_run(on_hosts, STUDY) == "ran over hosts"
    other = msgspec.structs.replace(
        STUDY, roles=(Role(name="target", program="ours", command=STUDY.roles[0].command),)
    )
    assert script.lacking_of_run(head, other) == "has another program"


@pytest.mark.usefixtures("documents")
def test_a_study_of_no_document_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        script.main(["smal"])
    assert refused.value.code == 2
    assert "'smal' is no study of a document: small-campaign" in capsys.readouterr().err

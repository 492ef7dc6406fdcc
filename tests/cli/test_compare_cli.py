"""``compare``, ``history`` and ``show --best-by`` on the command line: exit codes and messages."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import msgspec
import pytest

import concurve
from concurve.cli import main
from concurve.definition.study import Rules
from concurve.errors import RunError
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.record import ThreadsRecord, TrialRecord
from concurve.wire.spec import TrialSpec
from tests.analysis.test_by_cpu_time import versions
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import made_run


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """A base, the same again, and one with a slower cell."""
    store = Store(str(tmp_path / "concurve.db"))
    slow = {1: {}, 2: {}, 3: {"2": 1.2}}
    return [
        made_run(
            store,
            lambda threads, sync, s=seed: slow[s].get(threads, 1.0) / int(threads),
            seed=seed,
            cv=0.002,
            threads=(1, 2),
            sync=("none", "cas"),
        ).run.id
        for seed in slow
    ]


class _TwoThreads(FakeEngine):
    def run(self, spec: TrialSpec) -> bytes:
        record = msgspec.json.decode(super().run(spec), type=TrialRecord)
        threads = ThreadsRecord(total=2, peak=2, processes=1)
        roles = [msgspec.structs.replace(role, threads=threads) for role in record.roles]
        return msgspec.json.encode(msgspec.structs.replace(record, roles=roles))


@pytest.fixture
def disturbed(tmp_path: Path) -> str:
    """A run on a machine from which a hypervisor took time all the while; b is 3 % slower. Its CPU
    time says nothing, as it has two threads."""
    store = Store(str(tmp_path / "concurve.db"))
    rules = Rules(repeats_min=10, repeats_max=10, redo_max=0, redo_share=0.0)
    head = new_head(small_study(rules, side=("a", "b")), "normal", 1, "concurve sweep …")
    engine = _TwoThreads(
        lambda spec, rng: (
            (1.03 if spec.roles[0].argv[1] == "b" else 1.0) * rng.lognormvariate(0, 0.001)
        ),
        steal_of=lambda _: 10**9,
    )
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return head.id


def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line."""
    monkeypatch.setattr(sys, "argv", ["concurve", *arguments])
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    found = capsys.readouterr()
    return code, found.out, found.err


#: The ratio that decides, with its interval, and what asked for the verdict.
RATIO = r"\d\.\d+× \[\d\.\d+, \d\.\d+\] \(--fail-on\)"


def test_a_slower_cell_fails_the_build_only_if_asked(
    ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base, again, slow = ids
    code, out, _ = said(monkeypatch, capsys, "compare", base, slow)
    assert code == 0 and "4 cells: 2 no relevant difference, 2 slower." in out
    code, out, err = said(monkeypatch, capsys, "compare", base, slow, "--fail-on", "slower")
    assert code == 10 and "1.2" in out
    ratio = r"\(1\.\d+× \[1\.\d+, 1\.\d+\]\)"
    named = rf"threads=2 sync=none {ratio} and threads=2 sync=cas {ratio}"
    assert re.search(rf"2 slower of 4 cells: {named} \(--fail-on\)", err), err
    for verdict in ("faster", "undecided"):
        assert said(monkeypatch, capsys, "compare", base, slow, "--fail-on", verdict)[0] == 0
    assert said(monkeypatch, capsys, "compare", base, again, "--fail-on", "slower")[0] == 0


def test_the_json_goes_to_standard_output_alone(
    ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("compare", ids[0], ids[2], "--json", "--fail-on", "slower")
    code, out, _ = said(monkeypatch, capsys, *arguments)
    cells = json.loads(out)["cells"]
    assert code == 10 and [cell["verdict"] for cell in cells].count("slower") == 2


def test_levels_of_a_factor(
    ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("compare", "last", "--factor", "sync", "--levels", "none,cas")
    code, out, _ = said(monkeypatch, capsys, *arguments)
    assert code == 0 and "sync=cas against sync=none" in out
    assert "2 cells: 2 no relevant difference." in out


def test_a_run_with_one_factor_of_two_levels_has_nothing_else_to_compare(
    disturbed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(monkeypatch, capsys, "compare", disturbed)
    assert code == 0 and "side=b against side=a" in out
    code, out, _ = said(monkeypatch, capsys, "compare", disturbed, "--levels", "b,a")
    assert code == 0 and "side=a against side=b" in out


def test_all_levels_of_the_only_factor_are_compared_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(tmp_path / "concurve.db"))
    made_run(store, lambda _: 1.0, threads=(1, 2, 4))
    [run] = store.runs()
    code, out, _ = said(monkeypatch, capsys, "compare", "last")
    assert code == 0 and f"threads=2 threads=4 against threads=1, in run {run.id}" in out
    code, out, _ = said(monkeypatch, capsys, "compare", "last", "--levels", "1,4")
    assert code == 0 and f"threads=4 against threads=1, in run {run.id}" in out
    code, out, _ = said(monkeypatch, capsys, "compare", "last", "--json")
    assert json.loads(out)["run"] == run.id
    made_run(store, lambda _: 1.0, seed=2, threads=(1,))
    code, _, err = said(monkeypatch, capsys, "compare", "last")
    assert code == 6 and "one setting" in err and "concurve compare last RUN" in err


def test_of_a_last_run_without_figures_the_newest_that_has_some_is_named(
    ids: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = Store(str(tmp_path / "concurve.db"))
    head = new_head(small_study(threads=(1, 2)), "quick", 1, "concurve sweep …")
    head = msgspec.structs.replace(head, started="2027-01-01T10:00:00+00:00")
    engine = FakeEngine(kind_of=lambda _: "program_failed")
    with pytest.raises(RunError, match="every cell failed"):
        Runner(head, store, engine, clock=FakeClock(0.001)).start()
    for verb in (("compare", "last"), ("compare", ids[0], "last")):
        code, _, err = said(monkeypatch, capsys, *verb)
        assert code == 6 and f"run {head.id} has no trial in use to compare" in err
        assert f"concurve show {head.id} says why; the newest run that has some is" in err
        assert err.rstrip().endswith(ids[-1])
    code, out, err = said(monkeypatch, capsys, "show", "last")
    assert code == 0 and "Nothing was measured" in out
    assert f"the newest run that has figures: concurve show {ids[-1]}" in err
    assert "newest run" not in said(monkeypatch, capsys, "show", ids[-1])[2]


def test_further_runs_are_each_compared_with_the_first(
    ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(monkeypatch, capsys, "compare", *ids, "--fail-on", "slower")
    assert code == 10
    named = " and ".join(f"threads=2 sync={sync} of {ids[2]}" for sync in ("none", "cas"))
    assert f"2 slower of 8 cells: {named} (--fail-on)" in re.sub(r" \(1\.\d+× \[.*?\]\)", "", err)
    for other in ids[1:]:
        assert f"{other} against {ids[0]}" in " ".join(out.split())
    code, out, _ = said(monkeypatch, capsys, "compare", *ids, "--json")
    assert [json.loads(line)["base"] for line in out.splitlines()] == [ids[0]] * 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("last",), 6, "compare last --factor threads --levels 1,2; or concurve compare last --f"),
        (("last", "--levels", "1,2"), 6, "varies threads (2 levels) and sync (2 levels)"),
        (("last,last",), 6, "a second side is missing"),
        (("last", "last", "--factor", "sync"), 2, "inside one RUN"),
        (("last", "last", "--levels", "1,2"), 2, "inside one RUN"),
        (("last", "last"), 6, "on both sides"),
        (("last", "nothing"), 4, "no run 'nothing'"),
        (("last", "--factor", "n"), 6, "no factor 'n'"),
        (("last,last", "--factor", "sync"), 6, "inside one run, not in 2"),
        (("last", "--factor", "sync", "--levels", "none,x"), 6, "sync=x is not among"),
        (("last", "--factor", "sync", "--effect", "much"), 2, "not a share"),
        (("last", "--factor", "sync", "--effect", "150%"), 2, "not a share"),
        (("last", "--factor", "sync", "--indicator", "speedup"), 6, "derived"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_remedy(
    ids: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    found = said(monkeypatch, capsys, "compare", *arguments)
    assert found[0] == code and message in found[2] and not found[1]


def test_the_history_of_a_study(
    ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(monkeypatch, capsys, "history", "small")
    assert code == 0 and "over 3 runs" in out and "3 runs are too few" in out
    code, out, _ = said(monkeypatch, capsys, "history", "small", "--json")
    assert len(json.loads(out)["cells"]) == 4
    code, _, err = said(monkeypatch, capsys, "history", "nothing")
    assert code == 6 and "stored are small" in err
    code, _, err = said(monkeypatch, capsys, "history", "small", "--indicator", "x")
    assert code == 6 and "no run of small has the indicator 'x'" in err


def test_show_says_the_best_by_any_indicator(
    ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("show", ids[0], "--json", "--best-by", "cpu_seconds")
    best = json.loads(said(monkeypatch, capsys, *arguments)[1])["best"]
    assert best["indicator"] == "cpu_seconds" and best["recommended"]["threads"] == 2
    assert said(monkeypatch, capsys, "show", ids[0], "--best-by", "x")[0] == 5


def test_the_interface_for_python_compares_too(ids: list[str]) -> None:
    found = concurve.compare(ids[0], concurve.load(ids[2]))
    assert [cell.verdict for cell in found.cells].count("slower") == 2
    best = concurve.load(ids[0]).best()
    assert best is not None and best.recommended is not None and best.recommended["threads"] == 2


def test_a_version_without_figures_is_none_that_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(tmp_path / "concurve.db"))
    study = small_study(Rules(repeats_min=3, repeats_max=3), side=("old", "new"))
    head = new_head(study, "normal", 1, "concurve sweep …")
    engine = FakeEngine(
        kind_of=lambda spec: "program_failed" if spec.roles[0].argv[1] == "new" else "ok"
    )
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    code, out, err = said(monkeypatch, capsys, "compare", head.id, "--fail-on", "slower")
    assert code == 10 and "1 cell cannot be judged" in err and "concurve show" in err, (out, err)
    assert said(monkeypatch, capsys, "compare", head.id)[0] == 0, "nobody asked"
    code, out, err = said(monkeypatch, capsys, "resume", head.id)
    assert code == 7 and "1 of 2 cells failed: side=new" in err
    assert "Nothing can be compared: side=new failed." in out


def test_an_exit_code_that_does_not_speak_of_cells_in_doubt_says_so(
    disturbed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = ("compare", disturbed, "--factor", "side")
    code, out, err = said(monkeypatch, capsys, *compared, "--fail-on", "slower")
    assert code == 0 and "undecided" in out and "--in-doubt" in out
    assert (
        "concurve: 1 cell undecided, in doubt: the exit code says nothing of it" in err
        and "--fail-on undecided" in err
    )
    code, _, err = said(
        monkeypatch, capsys, *compared, "--fail-on", "slower", "--fail-on", "undecided"
    )
    assert code == 11 and re.search(rf"concurve: side=b is undecided: {RATIO}", err), err
    code, out, err = said(monkeypatch, capsys, *compared, "--in-doubt", "--fail-on", "slower")
    assert code == 10 and re.search(rf"concurve: side=b is slower: {RATIO}", err), err
    assert "not quiet" in out
    assert said(monkeypatch, capsys, *compared)[2] == ""


def test_the_verdict_by_cpu_time_counts_where_the_wall_time_is_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is what the first sentence says, so the exit code says it, too."""
    store = Store(str(tmp_path / "concurve.db"))
    run = versions(1, 1.05, store=store).run.id
    code, out, _ = said(monkeypatch, capsys, "compare", run)
    assert code == 0 and "1 cell: 1 undecided; by CPU time 1 slower." in out
    code, out, err = said(monkeypatch, capsys, "compare", run, "--fail-on", "slower")
    assert code == 10 and re.search(
        rf"concurve: version=new is slower by CPU time: {RATIO}", err
    ), err
    code, _, err = said(monkeypatch, capsys, "compare", run, "--fail-on", "undecided")
    assert code == 0, "it is decided"
    assert err == (
        "concurve: --fail-on goes by the CPU time: the machine was not quiet, and the wall time is "
        "undecided\n"
    )
    (cell,) = json.loads(said(monkeypatch, capsys, "compare", run, "--json")[1])["cells"]
    assert cell["verdict"] == "undecided" and cell["by_cpu_time"]["verdict"] == "slower"
    assert cell["by_cpu_time"]["ratio"]["low"] > 1.04


def test_of_many_cells_that_fail_three_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(str(tmp_path / "concurve.db"))
    levels = ("old", "a", "b", "c", "d", "e")
    run = made_run(store, lambda k: 1.0 if k == "old" else 1.2, k=levels).run.id
    line = ("compare", run, "--factor", "k", "--fail-on", "slower")
    code, _, err = said(monkeypatch, capsys, *line)
    assert code == 10
    named = re.sub(r" \(1\.\d+× \[1\.\d+, 1\.\d+\]\)", "", err)
    assert named != err and "5 slower of 5 cells: k=a, k=b, k=c and 2 more (--fail-on)" in named


SWEEP = ("sweep", "--repeats", "8..8", "--seed", "1", "-P", "version", "new,old,same")
PROGRAM = ("--base", "version=old", "--", "true", "{version}")


@pytest.fixture
def measured_by_fakes(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """What a sweep of this process runs on: version=new is 5 % slower."""
    engine = FakeEngine(
        lambda spec, rng: (
            (1.05 if spec.roles[0].argv[1] == "new" else 1.0) * rng.lognormvariate(0, 0.001)
        )
    )
    monkeypatch.setattr("concurve.cli.measuring.LocalEngine", lambda: engine)
    return engine


@pytest.mark.parametrize("given", [("--fail-on", "slower"), ("--fail-on=undecided",)])
def test_a_verdict_that_the_program_would_get_is_refused(
    given: tuple[str, ...],
    measured_by_fakes: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A build would pass whatever is measured."""
    code, _, err = said(monkeypatch, capsys, *SWEEP, *PROGRAM, *given)
    shown = " ".join(given).replace("=", " ")
    assert code == 2 and f"{shown} stands after --" in err and f"sweep … {shown} -- true" in err
    code, _, err = said(monkeypatch, capsys, *SWEEP, *PROGRAM, "--fail-on", "high")
    assert code == 0 and "note: --fail-on stands after --" in err, "an option of the program"


def test_a_sweep_is_judged_as_compare_judges_its_run(
    measured_by_fakes: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = said(monkeypatch, capsys, *SWEEP, "--fail-on", "slower", *PROGRAM)
    assert code == 10 and re.search(rf"concurve: version=new is slower: {RATIO}", err), err
    levels = ("--factor", "version", "--levels", "old,new,same")
    compared = ("compare", "last", *levels, "--fail-on", "slower")
    again = said(monkeypatch, capsys, *compared)[2]
    assert re.search(rf"concurve: version=new is slower: {RATIO}", again), again
    assert "version=new version=same against version=old: 2 cells: 1 " in err
    code, _, err = said(monkeypatch, capsys, *SWEEP, "--fail-on", "faster", *PROGRAM)
    assert code == 0 and "(--fail-on)" not in err
    wide = ("--fail-on", "slower", "--effect", "10%")
    assert said(monkeypatch, capsys, *SWEEP, *wide, *PROGRAM)[0] == 0


def test_a_sweep_that_cannot_be_judged_is_refused_before_it_measures(
    measured_by_fakes: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing = ("--fail-on", "slower", "--", "true", "{version}", "{n}")
    two = ("-P", "n", "1,2", "-P", "version", "old,new")
    code, _, err = said(monkeypatch, capsys, "sweep", *two, *failing)
    assert code == 2 and "n or version?" in err and "--base n=1" in err
    code, _, err = said(monkeypatch, capsys, "sweep", "--fail-on", "slower", "--", "true")
    assert code == 2 and "none has several" in err
    numbers = ("sweep", "-P", "n", "1,2", "--effect", "5%", "--", "true", "{n}")
    code, _, err = said(monkeypatch, capsys, *numbers)
    assert code == 2 and "--effect is for --fail-on, and for versions" in err
    code, _, err = said(monkeypatch, capsys, "run", "java-threads", "--effect", "5%")
    assert code == 2 and "--effect judges one study, java-threads is a campaign" in err
    assert not measured_by_fakes.specs


def test_the_answer_goes_by_the_effect_of_the_verdict(
    measured_by_fakes: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also where no verdict is asked for, and whenever the run is shown again."""
    wide = ("--effect", "10%", "--fail-on", "slower")
    for options in (wide, wide[:2]):
        code, out, _ = said(monkeypatch, capsys, *SWEEP, *options, *PROGRAM)
        said_of_new = "version=new is as fast as version=old by wall time, within 10 %: "
        again = said(monkeypatch, capsys, "show", "last")[1]
        for text in (" ".join(out.split()), " ".join(again.split())):
            assert code == 0 and said_of_new in text
            assert "within 2 %" not in text and "within 5 %" not in text
            assert "none loses 10 % or more" in text


FILE = """
[study]
name = "versions"
question = "Is the new one slower?"
[factors]
version = ["old", "new"]
n = [1, 2]
[[roles]]
name = "target"
command = ["true", "{version}", "{n}"]
[protocol]
repeats = 10
[effort.quick.factors]
n = [1]
"""


def test_a_run_of_a_file_is_judged_as_a_sweep_is(
    measured_by_fakes: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """What varies is that of its effort."""
    file = tmp_path / "versions.toml"
    file.write_text(FILE, encoding="utf-8")
    run = ("run", str(file), "--effort", "quick")
    code, _, err = said(monkeypatch, capsys, *run, "--fail-on", "slower")
    assert code == 10 and re.search(rf"concurve: version=new n=1 is slower: {RATIO}", err), err
    wide = ("--fail-on", "slower", "--effect", "10%")
    assert said(monkeypatch, capsys, *run, *wide)[0] == 0
    based = ("--fail-on", "faster")
    file.write_text(FILE.replace("[protocol]", '[protocol]\nbase = { version = "new" }'))
    code, _, err = said(monkeypatch, capsys, "run", str(file), *based)
    assert code == 10 and "2 faster of 2 cells" in err


def test_a_run_that_cannot_be_judged_is_refused_before_it_measures(
    measured_by_fakes: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    file = tmp_path / "versions.toml"
    file.write_text(FILE, encoding="utf-8")
    failing = ("--fail-on", "slower")
    code, _, err = said(monkeypatch, capsys, "run", str(file), *failing)
    assert code == 2 and "version or n?" in err
    assert 'base = { version = "old" } in [protocol]' in err
    code, _, err = said(monkeypatch, capsys, "run", "java-threads", *failing)
    assert code == 2 and "java-threads is a campaign" in err
    code, _, err = said(monkeypatch, capsys, "run", str(file), "--in-doubt")
    assert code == 2 and "--in-doubt is for --fail-on" in err
    assert not measured_by_fakes.specs


def test_a_version_that_failed_is_told_before_the_verdicts(
    measured_by_fakes: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    measured_by_fakes.kind_of = lambda spec: (
        "program_failed" if spec.roles[0].argv[1] == "new" else "ok"
    )
    code, _, err = said(monkeypatch, capsys, *SWEEP, "--fail-on", "slower", *PROGRAM)
    assert code == 7 and "1 of 3 cells failed: version=new" in err
    verdicts = next(line for line in err.splitlines() if "against version=old: 2 cells: " in line)
    assert "1 undecided" in verdicts and "1 no relevant difference" in verdicts

"""A run against a fake engine: hooks, judgement, storing, stopping, resuming."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.definition.extracting import parse_extract
from concurve.definition.inventory import Cluster, Inventory
from concurve.definition.study import Extract, Hooks, Indicator, Role, Rules, Study
from concurve.engine import Problem
from concurve.errors import HostError, RunError, RunInterruptedError, StudyError
from concurve.host.lock import measurement_lock
from concurve.measuring.heads import new_head, with_allowance
from concurve.measuring.judgement import ready_remedy
from concurve.measuring.laboratory import Runner
from concurve.measuring.quiet import Asked
from concurve.planning.protocol import shown_state
from concurve.store import Store
from concurve.store.rows import TrialKey
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import Waiting
from concurve.wire import decode_record
from concurve.wire.record import Outcome
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import Attach, AttachedProcess, ReadyProbe, TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.measuring.test_hangs import Notes

THREE = Rules(repeats_min=3, repeats_max=3)
ATTACHED = Attach(process=AttachedProcess(pid=4711, started_ticks=1))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


def runner_of(
    store: Store, engine: FakeEngine | None = None, study: Study | None = None, **changes: Any
) -> Runner:
    study = msgspec.structs.replace(study or small_study(THREE, threads=(1, 2)), **changes)
    head = new_head(study, "normal", 5, "concurve sweep …")
    return Runner(head, store, engine or FakeEngine(), clock=FakeClock())


def states(store: Store) -> list[tuple[str, str]]:
    return [(row.state, row.reason) for row in store.runs()]


def keys(store: Store, head: RunHead) -> list[TrialKey]:
    return [row.outcome.key for row in store.trials(head.id)]


def test_a_run_stores_exactly_the_planned_trials(store: Store) -> None:
    runner = runner_of(store)
    assert runner.start().kind == "complete"
    assert sorted(keys(store, runner.head)) == [
        (cell, block, 0) for cell in (0, 1) for block in (0, 1, 2)
    ]
    assert states(store) == [("complete", "all trials done")]
    assert decode_head(store.find_run("last")) == runner.head


def test_every_trial_is_stored_before_the_next_begins(store: Store) -> None:
    seen: list[int] = []

    class Watching(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            seen.append(store.count(spec.trial.split("/")[0]))
            assert store.runs()[0].state == "running"
            return super().run(spec)

    runner_of(store, Watching()).start()
    assert seen == [0, 1, 2, 3, 4, 5]


def test_each_record_is_stored_as_it_came(store: Store) -> None:
    answers: list[bytes] = []

    class Keeping(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            answers.append(super().run(spec) + b"\n")
            return answers[-1]

    runner = runner_of(store, Keeping())
    runner.start()
    assert [row.record for row in store.records(runner.head.id)] == answers


def test_a_trial_has_a_folder_of_its_own_while_it_runs(store: Store) -> None:
    folders: list[Path] = []

    class Looking(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            folders.append(Path(spec.roles[0].argv[-1]))
            assert list(folders[-1].iterdir()) == []
            (folders[-1] / "page").write_text("x", encoding="utf-8")
            return super().run(spec)

    study = small_study(THREE, threads=(1, 2))
    role = study.roles[0]
    own = msgspec.structs.replace(role, command=(*role.command, "{trial_folder}"))
    runner_of(store, Looking(), study, roles=(own,)).start()
    assert len(set(folders)) == 6
    assert not any(folder.exists() for folder in folders)


def test_hooks_run_in_their_order_with_the_cells_levels(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log"
    hooks = {
        name: f"echo {name} {{threads}} {{effort}} >> {log}"
        for name in ("setup", "prepare", "conclude", "cleanup")
    }

    class Logging(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            with log.open("a") as file:
                file.write(f"trial {spec.roles[0].argv[1]}\n")
            return super().run(spec)

    check = f"echo check {{threads}} $CONCURVE_VALUE >> {log}; grep -q hello"
    engine = Logging(wall_of=lambda spec, rng: 1.0, stdout="hello\n")
    runner = runner_of(
        store, engine, small_study(Rules(repeats_min=1, repeats_max=1), threads=(1, 2)),
        hooks=Hooks(**hooks, check=check),
    )  # fmt: skip
    runner.start()
    lines = log.read_text().splitlines()
    assert lines[:2] == ["setup 1 normal", "setup 2 normal"]
    assert lines[-2:] == ["cleanup 1 normal", "cleanup 2 normal"]
    for cell in (lines[2:6], lines[6:10]):
        level = cell[1].split()[1]
        assert cell == [f"prepare {level} normal", f"trial {level}", f"conclude {level} normal",
                        f"check {level} 1.0"]  # fmt: skip


@pytest.mark.parametrize("name", ["setup", "prepare", "conclude", "cleanup"])
def test_a_hook_that_fails_ends_the_run_and_says_what_it_said(store: Store, name: str) -> None:
    hooks = Hooks(**{name: "echo nothing there >&2; exit 7"})
    said = rf"threads=\d: the hook {name} failed with 7: nothing there"
    with pytest.raises(RunError, match=said):
        runner_of(store, hooks=hooks).start()
    ((state, reason),) = states(store)
    assert state == "failed" and f"the hook {name}" in reason


def test_cleanup_runs_also_after_a_failure(store: Store, tmp_path: Path) -> None:
    hooks = Hooks(prepare="exit 1", cleanup=f"touch {tmp_path}/clean-{{threads}}")
    with pytest.raises(RunError):
        runner_of(store, hooks=hooks).start()
    assert sorted(path.name for path in tmp_path.glob("clean-*")) == ["clean-1", "clean-2"]


CHECKS: dict[str, tuple[str, Callable[[Store, RunHead], bool]]] = {
    "accepts": ("exit 0", lambda s, h: len(keys(s, h)) == 6),
    "redoes once": (
        # The first trial of all is refused, its redo is taken.
        "test -e {marker} || { touch {marker}; echo bad sum; exit 1; }",
        lambda s, h: len(keys(s, h)) == 7 and sum(key.attempt for key in keys(s, h)) == 1,
    ),
    "gives one cell up": (
        "test {threads} != 2 || exit 2",
        lambda s, h: [key.cell for key in keys(s, h)].count(1) == 1,
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_validators_word_counts(store: Store, tmp_path: Path, name: str) -> None:
    text, holds = CHECKS[name]
    text = text.replace("{marker}", str(tmp_path / "marker"))
    runner = runner_of(store, hooks=Hooks(check=text))
    runner.start()
    assert holds(store, runner.head)


def test_a_validator_that_always_refuses_skips_every_cell(store: Store) -> None:
    check = "echo wrong sum; exit 1"
    said = f"every cell failed; the first: check: '{check}' exited with 1: wrong sum"
    with pytest.raises(RunError, match=re.escape(said)):
        runner_of(store, hooks=Hooks(check=check)).start()
    assert store.count(store.find_run("last").id) == 4, "twice a cell"


def test_a_validator_that_refuses_in_silence_is_named(store: Store) -> None:
    with pytest.raises(RunError, match="the first: check: 'false' exited with 1 and said nothing"):
        runner_of(store, hooks=Hooks(check="false")).start()


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("echo a >&2; echo b >&2; echo ' c' >&2; echo d >&2; echo no; exit 1", ": b | c | d"),
        ("echo; echo only this; exit 1", ": only this"),
    ],
)
def test_the_last_lines_of_a_validator_are_shown(store: Store, check: str, said: str) -> None:
    with pytest.raises(RunError) as refused:
        runner_of(store, hooks=Hooks(check=check)).start()
    assert refused.value.what.endswith(f"exited with 1{said}")


def test_a_validator_that_refuses_all_has_a_command_to_try_by_hand(store: Store) -> None:
    check = "grep -q 'sum {threads}'"
    with pytest.raises(RunError) as refused:
        runner_of(store, hooks=Hooks(check=check)).start()
    assert f"{check!r} exited with 1 and said nothing" in refused.value.what
    by_hand, _, then = refused.value.remedy.partition("; ")
    assert re.search(r"^by hand: \S+ (\d) \| sh -c .*sum \1", by_hand), by_hand
    assert then == "then a new run"
    with pytest.raises(RunError) as refused:
        runner_of(store, hooks=Hooks(check="exit 3; echo {effort}")).start()
    assert "by hand: hand what the program prints to the check of" in refused.value.remedy


def test_a_long_command_of_a_validator_is_cut(store: Store) -> None:
    with pytest.raises(RunError, match=r"'x=1; x=1; .*…' exited with 1 and said nothing"):
        runner_of(store, hooks=Hooks(check="x=1; " * 40 + "false")).start()


def test_another_hook_is_another_run(store: Store) -> None:
    with pytest.raises(RunError, match="the hook setup failed with 1: it said nothing") as refused:
        runner_of(store, hooks=Hooks(setup="false")).start()
    assert "with another hook, a new run" in refused.value.remedy, "the stored one is resumed"


def test_any_other_code_of_the_validator_is_an_error(store: Store) -> None:
    with pytest.raises(
        RunError, match=r"the hook check .* exited with 127: .*not found"
    ) as refused:
        runner_of(store, hooks=Hooks(check="no-such-validator")).start()
    assert "0 accepts, 1 asks for a redo, 2 gives the cell up" in refused.value.remedy


RATE = Extract(name="rate", pattern=r"rate=(\d+)", unit="1/s")


def test_an_extract_that_never_matches_stops_at_once(store: Store) -> None:
    with pytest.raises(
        RunError, match=r"figure rate: .* matched no number in the output of role target"
    ) as refused:
        runner_of(store, FakeEngine(stdout="speed: 5"), extracts=(RATE,)).start()
    assert "speed: 5" in refused.value.what, "what there was instead"
    assert store.count(store.find_run("last").id) == 0


@pytest.mark.parametrize(
    ("program", "extract", "remedy"),
    [
        ("/usr/bin/wrk", RATE, '--extract wrk (tool = "wrk" in a study file)'),
        ("./own", RATE, "a pattern that matches a line as it is printed"),
        ("wrk", parse_extract("wrk")[0].extract, "a pattern that matches a line as it is printed"),
    ],
)
def test_a_tool_whose_pattern_does_not_match_is_to_be_named(
    store: Store, program: str, extract: Extract, remedy: str
) -> None:
    study = small_study(THREE, threads=(1, 2))
    roles = (msgspec.structs.replace(study.roles[0], command=(program, "-t{threads}")),)
    with pytest.raises(RunError) as refused:
        runner_of(
            store, FakeEngine(stdout="Rate: 5\n"), study, extracts=(extract,), roles=roles
        ).start()
    assert refused.value.remedy.startswith(remedy)
    assert refused.value.what.splitlines()[1:] == ["    Rate: 5"]


def test_a_figure_that_cannot_be_read_is_refused_with_the_reason(store: Store) -> None:
    extract = msgspec.structs.replace(RATE, pattern=r"rate=([0-9,]+)")
    with pytest.raises(
        RunError, match=r"gives no figure of .*'1234,5' divides no thousands"
    ) as said:
        runner_of(store, FakeEngine(stdout="rate=1234,5"), extracts=(extract,)).start()
    assert "(?P<decimal>" in said.value.remedy


def test_an_extract_that_misses_later_is_an_error_of_that_trial(store: Store) -> None:
    class Sometimes(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            self.stdout = "" if len(self.specs) == 2 else "rate=7"
            return super().run(spec)

    runner = runner_of(store, Sometimes(), extracts=(RATE,))
    runner.start()
    causes = [row.outcome.cause for row in store.trials(runner.head.id)]
    assert causes.count("no match") == 1
    assert len(causes) == 7
    cell = findings_of(store, store.find_run("last")).cells[0]
    assert cell.indicators["rate"].value == 7.0
    assert cell.indicators["rate"].unit == "1/s"


def test_a_trial_whose_load_lost_sessions_does_not_count(store: Store) -> None:
    class Loses(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            record = decode_record(super().run(spec))
            lost = IndicatorLine(indicator="sessions_lost", value=float(len(self.specs) == 2) * 3)
            role = msgspec.structs.replace(record.roles[0], indicators=(lost,))
            return msgspec.json.encode(msgspec.structs.replace(record, roles=(role,)))

    runner = runner_of(store, Loses())
    runner.start()
    rows = list(store.trials(runner.head.id))
    assert [row.outcome.cause for row in rows].count("sessions lost") == 1
    assert len(rows) == 7, "it was done again"
    details = [row.outcome.detail for row in rows]
    assert "3 of the sessions of target lost their connection" in details


def test_a_primary_indicator_that_nobody_reports_stops_at_once(store: Store) -> None:
    with pytest.raises(RunError, match=r"primary indicator latency is absent: .* not report it"):
        runner_of(store, indicators=(Indicator(name="latency"),)).start()
    with pytest.raises(RunError, match=r"did you mean 'wall_seconds'\?"):
        runner_of(store, indicators=(Indicator(name="wall_second"),)).start()


class Searching(FakeEngine):
    """Searches for a rate; those of these numbers have no answer."""

    def __init__(self, *undecided: int) -> None:
        super().__init__()
        self.undecided = undecided

    def run(self, spec: TrialSpec) -> bytes:
        record = decode_record(super().run(spec))
        has_none = len(self.specs) in self.undecided
        verdict = "it cannot be said what rate keeps p99=2ms, because it ended too early"
        rate = IndicatorLine(indicator="slo_rate_per_second", value=100.0 + len(self.specs) % 3)
        role = msgspec.structs.replace(
            record.roles[0],
            indicators=() if has_none else (rate,),
            facts={"slo": {"verdict": verdict if has_none else "p99=2ms kept"}},
        )
        return msgspec.json.encode(msgspec.structs.replace(record, roles=(role,)))


SOUGHT = (Indicator(name="slo_rate_per_second", unit="1/s", better="higher"),)


def test_a_search_without_an_answer_says_why(store: Store) -> None:
    with pytest.raises(RunError, match="because it ended too early") as refused:
        runner_of(store, Searching(1), indicators=SOUGHT).start()
    assert "did you mean" not in refused.value.remedy


def test_a_search_without_an_answer_is_done_again_once_one_had_one(store: Store) -> None:
    runner = runner_of(store, Searching(3), indicators=SOUGHT)
    runner.start()
    rows = list(store.trials(runner.head.id))
    assert [row.outcome.cause for row in rows].count("undecided") == 1
    assert len(rows) == 7
    assert any("it ended too early" in (row.outcome.detail or "") for row in rows)


def test_a_resumed_run_knows_that_a_search_had_an_answer(store: Store) -> None:
    class Interrupted(Searching):
        def run(self, spec: TrialSpec) -> bytes:
            if len(self.specs) == 2:
                raise KeyboardInterrupt
            return super().run(spec)

    runner = runner_of(store, Interrupted(), indicators=SOUGHT)
    with pytest.raises(RunInterruptedError):
        runner.start()
    again = Runner(runner.head, store, Searching(1), clock=FakeClock())
    again.resume()
    causes = [row.outcome.cause for row in store.trials(runner.head.id)]
    assert causes.count("undecided") == 1, "it is the first one since the run was resumed"


def test_a_program_that_always_fails_fails_the_run_after_two_trials_a_cell(store: Store) -> None:
    with pytest.raises(RunError, match=r"every cell failed; the first: .*fake program_failed"):
        runner_of(store, FakeEngine(kind_of=lambda spec: "program_failed")).start()
    assert states(store)[0][0] == "failed"
    assert store.count(store.find_run("last").id) == 4, "each with its record"
    said = [item.sentence for item in findings_of(store, store.find_run("last")).sentences]
    assert not [sentence for sentence in said if "goes on" in sentence], "nothing is left to do"


def test_one_failing_cell_is_skipped_and_the_rest_measured(store: Store) -> None:
    engine = FakeEngine(kind_of=lambda s: "timed_out" if s.roles[0].argv[1] == "2" else "ok")
    runner_of(store, engine, small_study(THREE, threads=(1, 2, 4))).start()
    findings = findings_of(store, store.find_run("last"))
    assert [cell.status for cell in findings.cells] == ["ok", "skipped", "ok"]
    assert "timed out" in findings.cells[1].note
    assert findings.run.state == "complete"


def test_a_run_with_one_version_left_ends_and_says_why(store: Store) -> None:
    engine = FakeEngine(kind_of=lambda s: "timed_out" if s.roles[0].argv[1] == "new" else "ok")
    runner_of(store, engine, small_study(THREE, version=("old", "new"))).start()
    findings = findings_of(store, store.find_run("last"))
    assert [cell.status for cell in findings.cells] == ["partial", "skipped"]
    assert findings.run.state == "complete" and findings.run.trials == 3
    assert "nothing is left to compare with" in findings.run.reason


def test_one_number_of_threads_left_has_all_its_trials(store: Store) -> None:
    engine = FakeEngine(kind_of=lambda s: "timed_out" if s.roles[0].argv[1] == "2" else "ok")
    runner_of(store, engine).start()
    findings = findings_of(store, store.find_run("last"))
    assert [cell.status for cell in findings.cells] == ["ok", "skipped"]
    assert findings.run.state == "complete" and findings.run.trials == 3 + 2


@pytest.mark.parametrize("kind", ["exec_failed", "control_refused"])
def test_an_error_that_no_trial_can_correct_stops_the_run(store: Store, kind: str) -> None:
    with pytest.raises(RunError, match=f"fake {kind}"):
        runner_of(store, FakeEngine(kind_of=lambda spec: kind)).start()
    assert states(store)[0][0] == "failed"


class Interrupting(FakeEngine):
    """Stops at the given call, as ^C or an ended runner would."""

    def __init__(self, at: int, by_record: bool = False) -> None:
        super().__init__()
        self.at, self.by_record, self.calls = at, by_record, 0

    def run(self, spec: TrialSpec) -> bytes:
        self.calls += 1
        if self.calls == self.at:
            if not self.by_record:
                raise KeyboardInterrupt
            self.kind_of = lambda spec: "interrupted"
        return super().run(spec)


@pytest.mark.parametrize("by_record", [False, True])
@pytest.mark.parametrize("at", [1, 4])
def test_a_stopped_run_is_resumed_where_it_was(store: Store, at: int, by_record: bool) -> None:
    whole = runner_of(Store(store.url + ".whole"))
    whole.start()
    runner = runner_of(store, Interrupting(at, by_record))
    with pytest.raises(RunInterruptedError, match=f"stopped after {at - 1} trials") as stopped:
        runner.start()
    assert stopped.value.exit_code == 130
    assert f"concurve resume {runner.head.id}" in stopped.value.remedy
    assert stopped.value.remedy.endswith(f"concurve show {runner.head.id}") == (at > 1)
    assert states(store) == [("interrupted", "stopped by the user")]
    findings = findings_of(store, store.find_run("last"))
    assert findings.run.trials == at - 1, "a stopped run can be shown"
    engine = FakeEngine()
    Runner(decode_head(store.find_run("last")), store, engine, clock=FakeClock()).resume()
    assert len(engine.specs) == 6 - (at - 1)
    assert keys(store, runner.head) == keys(whole.store, whole.head)
    assert states(store) == [("complete", "all trials done")]


def test_resuming_a_complete_run_runs_nothing(store: Store) -> None:
    runner = runner_of(store)
    runner.start()
    engine = FakeEngine()
    Runner(runner.head, store, engine, clock=FakeClock()).resume()
    assert engine.specs == []
    assert states(store) == [("complete", "all trials done")]


def test_a_plan_too_long_ends_with_what_fits_and_goes_on_with_more_time(store: Store) -> None:
    """A trial takes half a second by the clock, a block of two cells a second."""
    rules = Rules(repeats_min=3, repeats_max=3, time_allowed_seconds=2.4)
    runner = runner_of(store, study=small_study(rules, threads=(1, 2)))
    assert runner.start().kind == "time"
    assert store.count(runner.head.id) == 4
    ((state, reason),) = states(store)
    assert state == "complete"
    assert reason == "time allowance of 2.4 s: the next block did not fit after 2 of 3 blocks"
    assert shown_state(state, reason) == "out of time"
    short = findings_of(store, store.find_run("last")).cells
    assert [cell.status for cell in short] == ["partial", "partial"]
    limit = "no more of its trials fitted in the time allowance of 2.4 s; "
    limit += f"concurve resume {runner.head.id} --max-time "
    assert all(re.fullmatch(re.escape(limit) + r"\d+s goes on", cell.note) for cell in short)
    longer = with_allowance(runner.head, 60.0)
    Runner(longer, store, FakeEngine(), clock=FakeClock()).resume()
    assert store.count(runner.head.id) == 6
    assert states(store) == [("complete", "all trials done")]
    findings = findings_of(store, store.find_run("last"))
    assert findings.run.trials == 6, "it can be shown by what is stored alone"
    stored = decode_head(store.find_run("last"))
    assert (stored.rules.time_allowed_seconds, stored.allowed_at_start) == (60.0, 2.4)
    assert with_allowance(longer, 90.0).allowed_at_start == 2.4


def test_a_shorter_allowance_ends_a_resumed_run_earlier(store: Store) -> None:
    """A trial takes half a second by the clock: of three blocks, the second does not fit."""
    rules = Rules(repeats_min=3, repeats_max=3, time_allowed_seconds=60.0)

    class Stopped(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            if len(self.specs) == 2:
                raise KeyboardInterrupt
            return super().run(spec)

    runner = runner_of(store, Stopped(), study=small_study(rules, threads=(1, 2)))
    with pytest.raises(RunInterruptedError):
        runner.start()
    shorter = with_allowance(runner.head, 1.4)
    assert shorter.allowed_at_start == 60.0, "the order of what is stored goes by it"
    assert Runner(shorter, store, FakeEngine(), clock=FakeClock()).resume().kind == "time"
    assert store.count(runner.head.id) == 2
    assert findings_of(store, store.find_run("last")).run.state == "complete"


def test_a_trial_is_stopped_with_the_allowance_once_there_is_a_figure(store: Store) -> None:
    """The second trial hangs: it is stopped, and no error of its cell."""
    limits: list[object] = []

    class Hangs(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            limits.append(spec.time_limit_ns)
            self.kind_of = lambda spec: "timed_out" if len(limits) == 2 else "ok"
            return super().run(spec)

    rules = Rules(repeats_min=2, repeats_max=2, time_allowed_seconds=1.2)
    runner = runner_of(store, Hangs(), small_study(rules, threads=(1, 2)))
    assert runner.start().kind == "time"
    assert limits == [1_200_000_000, 700_000_000]
    findings = findings_of(store, store.find_run("last"))
    assert [reject.cause for reject in findings.rejects] == ["time allowance"]
    assert "skipped" not in [cell.status for cell in findings.cells]
    assert "1 of 2 cells was not measured: threads=" in findings.run.reason
    (said,) = [f.sentence for f in findings.sentences if f.sentence.startswith("Not measured")]
    left = next(cell for cell in findings.cells if not cell.trials)
    assert f"time allowance of 1.2 s: threads={left.parameters['threads']}. " in said
    assert f"concurve resume {findings.run.id} --max-time 5s" in said
    Runner(with_allowance(runner.head, 60), store, FakeEngine(), clock=FakeClock()).resume()
    cells = findings_of(store, store.find_run("last")).cells
    assert [cell.status for cell in cells] == ["ok", "ok"]


def test_a_time_out_of_the_study_stays_one_where_it_comes_first(store: Store) -> None:
    rules = Rules(repeats_min=2, repeats_max=2, timeout_seconds=0.2, time_allowed_seconds=1.9)
    engine = FakeEngine(kind_of=lambda s: "timed_out" if s.roles[0].argv[1] == "2" else "ok")
    runner_of(store, engine, small_study(rules, threads=(1, 2))).start()
    assert {spec.time_limit_ns for spec in engine.specs} == {200_000_000}
    causes = {row.outcome.cause for row in store.trials(store.find_run("last").id)}
    assert causes == {"", "timed_out"}


class Starving(FakeEngine):
    """Each trial is timed out; its roles waited for a CPU for this share of it, and ``used`` is
    their CPU time."""

    used = 0.3
    threads = 1

    def __init__(self, share: float, steal: bool) -> None:
        super().__init__(
            kind_of=lambda spec: "timed_out", steal_of=lambda spec: 10**9 if steal else 0
        )
        self.share = share

    def run(self, spec: TrialSpec) -> bytes:
        record = decode_record(super().run(spec))
        role = record.roles[0]
        usage = msgspec.structs.replace(
            role.usage,
            run_queue_ns=round(record.wall_ns * self.share),
            cpu_ns=round(record.wall_ns * self.used),
        )
        threads = msgspec.structs.replace(role.threads, peak=self.threads)
        role = msgspec.structs.replace(role, usage=usage, threads=threads)
        return msgspec.json.encode(msgspec.structs.replace(record, roles=(role,)))


def test_time_outs_of_trials_that_were_kept_waiting_fail_with_a_report(store: Store) -> None:
    with pytest.raises(RunError, match=r"every cell failed; .* timed out on a busy") as failed:
        runner_of(store, Starving(0.5, steal=True)).start()
    assert "--timeout" in failed.value.remedy and "quieter" in failed.value.remedy
    findings = findings_of(store, store.find_run("last"))
    assert findings.run.state == "failed"
    assert findings.sentences[0].kind == "answer"
    assert findings.sentences[0].sentence.startswith(
        "Nothing was measured: no trial of the 2 cells"
    )
    assert [cell.status for cell in findings.cells] == ["skipped", "skipped"]
    assert "timed out on a busy machine: " in findings.cells[0].note
    assert "the hypervisor took" in findings.cells[0].note


def test_a_program_that_fills_the_limit_itself_was_not_kept_from_it(store: Store) -> None:
    class Filling(Starving):
        used = 0.9
        threads = 1

    with pytest.raises(RunError, match="every cell failed; the first: timed out: ") as failed:
        runner_of(store, Filling(0.5, steal=True)).start()
    assert "--timeout" in failed.value.remedy and "quieter" not in failed.value.remedy


def test_a_run_of_which_no_cell_becomes_ready_ends_after_its_first_block(store: Store) -> None:
    engine = FakeEngine(kind_of=lambda spec: "not_ready")
    with pytest.raises(RunError, match="no cell became ready; the first, threads=") as failed:
        runner_of(store, engine, small_study(THREE, threads=(1, 2, 4, 8))).start()
    assert len(engine.specs) == 4
    assert "--ready" in failed.value.remedy
    alone = FakeEngine(kind_of=lambda spec: "not_ready")
    with pytest.raises(RunError, match="every cell failed; the first: was not ready"):
        runner_of(store, alone, small_study(THREE, threads=(1,))).start()
    assert len(alone.specs) == 2, "once may be chance"


@pytest.mark.parametrize(
    ("kind", "cause", "remedy"),
    [("not_ready", "was not ready", "--ready-within"), ("program_failed", "", "--rejected")],
)
def test_a_run_whose_allowance_held_failures_alone_has_failed(
    store: Store, kind: str, cause: str, remedy: str
) -> None:
    """Two of three cells were tried: no lack of time, and no trial's length."""
    engine = FakeEngine(kind_of=lambda spec: kind)
    rules = Rules(repeats_min=3, repeats_max=3, time_allowed_seconds=1.2)
    notes = Notes()
    head = runner_of(store, study=small_study(rules, threads=(1, 2, 4))).head
    with pytest.raises(RunError, match="2 trials failed; the first, threads=") as failed:
        Runner(head, store, engine, notes, clock=FakeClock()).start()
    assert len(engine.specs) == 2
    assert cause in failed.value.what and remedy in failed.value.remedy
    assert not [text for text in notes.said if "--max-time" in text]
    assert states(store)[-1][0] == "failed"
    notes_of = [cell.note for cell in findings_of(store, store.find_run("last")).cells]
    assert sum(f"fake {kind}" in note for note in notes_of) == 2


def test_what_to_do_where_no_role_becomes_ready_fits_the_case() -> None:
    taken = "127.0.0.1:1 accepts connections before the role was started: another program serves"
    ended = "exited with 1 before it was ready; its standard error: bad port"
    late = "accepted no TCP connection at 127.0.0.1:1 within 60 s"
    assert "--ready-within" not in ready_remedy([taken]) + ready_remedy([ended, ended])
    assert "{free_port}" in ready_remedy([taken])
    assert "why does it end" in ready_remedy([ended])
    assert "--ready-within" in ready_remedy([late])
    assert "--ready-within" in ready_remedy([late, ended])


def test_a_run_goes_on_where_another_cell_becomes_ready(store: Store) -> None:
    engine = FakeEngine(kind_of=lambda spec: "not_ready" if spec.roles[0].argv[-1] == "1" else "ok")
    assert runner_of(store, engine, small_study(THREE, threads=(1, 2))).start().kind == "complete"


def test_a_process_that_ended_is_not_to_be_resumed(store: Store) -> None:
    study = small_study(THREE, threads=(1, 2))
    server = Role(name="server", command=(), end="serve", attach="4711", attached=ATTACHED)
    head = runner_of(store, study=study).head
    study = msgspec.structs.replace(study, roles=(server, *study.roles))
    head = msgspec.structs.replace(head, study=study)

    class Gone(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            record = decode_record(super().run(spec))
            gone = Outcome(kind="program_failed", role="server", message="process 4711 has ended")
            return msgspec.json.encode(msgspec.structs.replace(record, outcome=gone))

    with pytest.raises(RunError, match="process 4711 has ended") as failed:
        Runner(head, store, Gone()).start()
    assert "a new run" in failed.value.remedy and "resume" not in failed.value.remedy
    said = " ".join(item.sentence for item in findings_of(store, store.find_run("last")).sentences)
    assert "concurve resume" not in said


def test_a_missing_program_is_told_with_its_role_where_there_are_several(store: Store) -> None:
    class Missing(FakeEngine):
        def check(self, spec: TrialSpec) -> list[Problem]:
            return [Problem(spec.roles[0].name, "not_found", "'./old' was not found")]

    study = small_study(THREE, threads=(1, 2))
    both = (*study.roles, msgspec.structs.replace(study.roles[0], name="client"))
    for roles, where, ends in (
        (study.roles, "threads=1: './old'", "as the command"),
        (both, "threads=1, role target: './old'", "as the command of role target"),
    ):
        with pytest.raises(StudyError) as refused:
            runner_of(store, Missing(), study, roles=roles).start()
        assert refused.value.what.startswith(where) and refused.value.remedy.endswith(ends)


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("./prime", "{threads}"), "did you mean './primes'?"),
        (("env", "A=1", "./prime", "{threads}"), "did you mean './primes'?"),
        (("prymes", "{threads}"), "did you mean 'primes'?"),
        (("python3", "pol.py", "{threads}"), "did you mean 'pool.py'?"),
        (("./entirely-else", "{threads}"), "as the command"),
        (("./pol.py", "{threads}"), "as the command"),  # no program
        (("python3", "other.py", "{threads}"), "the path of the file that python3 runs"),
    ],
)
def test_a_slip_in_the_name_of_a_program_names_the_one_that_is_there(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    remedy: str,
) -> None:
    class Missing(FakeEngine):
        def check(self, spec: TrialSpec) -> list[Problem]:
            (argv,) = (role.argv for role in spec.roles)
            name = next(it for it in argv if "." in it or it in ("prymes", "./prime"))
            return [Problem("target", "not_found", f'"{name}" was not found')]

    (tmp_path / "primes").touch(mode=0o755)
    (tmp_path / "pool.py").touch(mode=0o644)
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:{tmp_path / 'missing'}")
    study = small_study(THREE, threads=(1, 2))
    role = msgspec.structs.replace(study.roles[0], command=command, cwd=str(tmp_path))
    with pytest.raises(StudyError) as refused:
        runner_of(store, Missing(), msgspec.structs.replace(study, roles=(role,))).start()
    assert refused.value.remedy.endswith(remedy)


def test_a_variable_before_a_command_is_set_by_env(store: Store) -> None:
    class Missing(FakeEngine):
        def check(self, spec: TrialSpec) -> list[Problem]:
            return [Problem("target", "not_found", f"{spec.roles[0].argv[0]!r} was not found")]

    study = small_study(THREE, threads=(1, 2))
    role = msgspec.structs.replace(study.roles[0], command=("GOMAXPROCS={threads}", "./server"))
    with pytest.raises(StudyError, match="'GOMAXPROCS=1' was not found") as refused:
        runner_of(store, Missing(), msgspec.structs.replace(study, roles=(role,))).start()
    assert "env GOMAXPROCS={threads} ./server" in refused.value.remedy


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("env", "N={threads}", "taskset", "-c", "0", "./gone"), "./gone"),
        (("nice", "-n", "5", "python3", "gone.py"), "gone.py"),
        (("java", "-Xmx1g", "-jar", "gone.jar"), "gone.jar"),
    ],
)
def test_what_the_program_starts_in_turn_must_be_there(
    store: Store, command: tuple[str, ...], said: str
) -> None:
    class Without(FakeEngine):
        def check(self, spec: TrialSpec) -> list[Problem]:
            (name,) = (role.argv[0] for role in spec.roles)
            return [Problem("target", "not_found", f'"{name}" was not found')] * ("gone" in name)

    study = small_study(THREE, threads=(1, 2))
    role = msgspec.structs.replace(study.roles[0], command=command)
    with pytest.raises(StudyError, match=f'"{said}" was not found'):
        runner_of(store, Without(), msgspec.structs.replace(study, roles=(role,))).start()


def test_a_script_that_the_trial_makes_is_not_looked_for(store: Store) -> None:
    study = small_study(THREE, threads=(1, 2))
    command = ("python3", "{trial_folder}/made.py", "{threads}")
    role = msgspec.structs.replace(study.roles[0], command=command)
    runner_of(store, FakeEngine(), msgspec.structs.replace(study, roles=(role,))).start()


def test_threads_that_had_half_of_what_their_cpus_have_were_kept_waiting(store: Store) -> None:
    class Halved(Starving):
        used = 0.9
        threads = 2

    with pytest.raises(RunError, match=r"every cell failed; .* timed out on a busy machine"):
        runner_of(store, Halved(0.9, steal=True)).start()


@pytest.mark.parametrize(("share", "steal"), [(0.5, False), (0.1, True)])
def test_a_program_that_hangs_is_at_fault_itself(store: Store, share: float, steal: bool) -> None:
    """It has more threads than there are CPUs, so that waiting alone is no sign."""
    study = small_study(THREE, threads=(3, 4))
    with pytest.raises(RunError, match="every cell failed; the first: timed out: "):
        runner_of(store, Starving(share, steal), study).start()


def test_time_outs_on_a_quiet_machine_are_the_programs_own(store: Store) -> None:
    with pytest.raises(RunError, match="every cell failed; the first: timed out"):
        runner_of(store, FakeEngine(kind_of=lambda spec: "timed_out")).start()


def test_nothing_is_stored_where_a_control_or_program_is_refused(store: Store) -> None:
    for kind, error in (("control_refused", HostError), ("not_found", StudyError)):

        class Refusing(FakeEngine):
            problem = Problem("target", kind, "CAP_SYS_NICE is missing")

            def check(self, spec: TrialSpec) -> list[Problem]:
                return [self.problem]

        engine = Refusing()
        said = "threads=1: CAP_SYS_NICE is missing"
        with pytest.raises(error, match=said) as refused:
            runner_of(store, engine).start()
        assert "as root" not in refused.value.remedy, "root may lack it"
        assert ("concurve doctor" in refused.value.remedy) == (kind == "control_refused")
        assert store.runs() == [] and engine.specs == []


def test_each_distinct_launch_is_checked_once(store: Store) -> None:
    checked: list[TrialSpec] = []

    class Counting(FakeEngine):
        def check(self, spec: TrialSpec) -> list[Problem]:
            checked.append(spec)
            return []

    runner_of(store, Counting(), small_study(THREE, threads=tuple(range(1, 9)))).start()
    assert len(checked) == 1, "eight cells, one program, the same controls"


def test_contaminated_trials_are_redone_and_kept(store: Store) -> None:
    engine = FakeEngine(steal_of=lambda s: 10**9 if s.trial.endswith("/0/1/0") else 0)
    runner = runner_of(store, engine)
    runner.start()
    findings = findings_of(store, store.find_run("last"))
    assert [(r.cell, r.block, r.attempt, r.cause, r.used) for r in findings.rejects] == [
        (0, 1, 0, "steal", False)
    ]
    assert findings.run.trials == 7
    assert findings.cells[0].including_rejects is not None
    assert findings.cells[0].including_rejects.n == 4
    assert findings.cells[0].indicators["wall_seconds"].n == 3
    assert findings.cells[1].including_rejects is None


def test_cells_that_failed_after_some_trials_leave_their_report(store: Store) -> None:
    def kind(spec: TrialSpec) -> str:
        return "program_failed" if int(spec.trial.split("/")[-2]) > 1 else "ok"

    head = new_head(small_study(THREE), "normal", 1, "concurve run …")
    Runner(head, store, FakeEngine(kind_of=kind), clock=FakeClock()).start()
    assert all(cell.note for cell in findings_of(store, store.find_run(head.id)).cells)


def test_a_rejected_trial_is_the_first_one_too(store: Store) -> None:
    """No trial outlasts the allowance, whether it counts or not."""
    rules = msgspec.structs.replace(THREE, time_allowed_seconds=100.0)
    engine = FakeEngine(steal_of=lambda spec: 10**9)
    head = new_head(small_study(rules), "normal", 1, "concurve run …")
    Runner(head, store, engine, clock=FakeClock(0.5)).start()
    first, *others = [spec.time_limit_ns for spec in engine.specs]
    assert first == 100 * 10**9
    assert others
    assert all(isinstance(limit, int) and limit < 100 * 10**9 for limit in others)


def test_a_run_of_which_no_cell_became_ready_may_be_resumed(store: Store) -> None:
    study = small_study(THREE, threads=(1, 2))
    runner = runner_of(store, FakeEngine(kind_of=lambda spec: "not_ready"), study)
    with pytest.raises(RunError, match="no cell became ready"):
        runner.start()
    assert Runner(runner.head, store, FakeEngine(), clock=FakeClock()).resume().kind == "complete"


REFUSED = "exited with 1; its standard error: connect: Connection refused"


@pytest.mark.parametrize(("probed", "message"), [(False, REFUSED), (True, REFUSED), (False, "no")])
def test_a_client_that_is_refused_has_a_hint_at_ready(
    store: Store, probed: bool, message: str
) -> None:
    """Only where a server has none, and only of that failure."""
    study = small_study(THREE, threads=(1,))
    load = Role(name="target", command=("true", "{threads}", "{free_port}"))
    server = Role(
        name="server",
        command=("true", "{free_port}"),
        end="serve",
        ready_probe=ReadyProbe(tcp="127.0.0.1:{free_port}") if probed else None,
    )
    study = msgspec.structs.replace(study, roles=(server, load))

    class Refused(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            record = decode_record(super().run(spec))
            failed = Outcome(kind="program_failed", role="target", message=message)
            return msgspec.json.encode(msgspec.structs.replace(record, outcome=failed))

    notes = Notes()
    head = runner_of(store, study=study).head
    with pytest.raises(RunError) as found:
        Runner(head, store, Refused(), notes, clock=FakeClock()).start()
    hint = 'nothing waits until server accepts connections: ready = "tcp:{free_port}"'
    assert (hint in found.value.what) is (not probed and message == REFUSED)
    assert any(hint in text for text in notes.said) is not probed, "before the first trial"


NEW = "; more trials are a new run: concurve run run:{} --repeats N"


def test_a_run_that_was_complete_is_told_as_such(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To resume it prints the same table again: so it says that nothing was run."""
    from concurve.cli import measuring

    runner = runner_of(store)
    runner.start()
    said: list[str] = []
    monkeypatch.setattr(measuring, "note", said.append)
    monkeypatch.setattr(measuring, "LocalEngine", FakeEngine)
    monkeypatch.setattr(measuring, "show_run", lambda *_: None)
    measuring.resume_run(runner.head, store, {})
    new = NEW.format(runner.head.id)
    assert said == [f"run {runner.head.id} was complete (all trials done): no trial was run{new}"]


def test_a_run_that_was_complete_needs_no_machine(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused as busy, or as what this machine cannot run."""
    from concurve.cli import measuring

    runner = runner_of(store)
    runner.start()
    monkeypatch.setattr(measuring, "show_run", lambda *_: None)
    elsewhere = Runner(runner.head, store, FakeEngine(), clock=FakeClock())
    monkeypatch.setattr(elsewhere, "check", lambda: pytest.fail("nothing is to be run"))
    with measurement_lock("another"):
        assert elsewhere.resume().reason == "all trials done"
        measuring.resume_run(runner.head, store, {}, asked=Asked(3))


def test_what_was_waited_for_may_be_the_run_that_is_resumed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurve.cli import measuring

    runner = runner_of(store)
    stopped = runner.head
    said: list[str] = []

    @contextlib.contextmanager
    def waited(*_: object) -> Iterator[Waiting]:
        runner.resume()
        yield Waiting(seconds=60)

    store.add_run(stopped.row())
    monkeypatch.setattr(measuring, "note", said.append)
    monkeypatch.setattr(measuring, "LocalEngine", FakeEngine)
    monkeypatch.setattr(measuring, "show_run", lambda *_: None)
    monkeypatch.setattr(measuring, "quiet_as_asked", waited)
    measuring.resume_run(stopped, store, {}, asked=Asked(60))
    new = NEW.format(stopped.id)
    assert said == [f"run {stopped.id} was complete (all trials done): no trial was run{new}"]


def test_a_run_on_hosts_waits_for_no_machine(store: Store) -> None:
    from concurve.cli import measuring

    head = msgspec.structs.replace(
        runner_of(store).head, hosts=Inventory(hosts=(), cluster=Cluster(head="a"))
    )
    with pytest.raises(StudyError, match="--wait-quiet looks at this machine"):
        measuring.resume_run(head, store, {}, asked=Asked(60))


SAYS = "echo OK; echo 'ERR unknown option {threads}' >&2"


def test_what_a_hook_prints_stays_in_the_record_and_an_error_is_told(store: Store) -> None:
    """It exits with 0, as redis-cli does: nothing else says that the level was not set."""
    notes = Notes()
    study = small_study(THREE, threads=(1, 2))
    hooks = Hooks(setup="echo filled {threads}", prepare=SAYS, conclude="true")
    head = new_head(msgspec.structs.replace(study, hooks=hooks), "normal", 5, "concurve sweep …")
    Runner(head, store, FakeEngine(), notes, clock=FakeClock()).start()
    told = [text for text in notes.said if "the hook" in text]
    assert len(told) == 1, "once"
    assert "the hook prepare exited with 0, and printed 'ERR unknown option" in told[0]
    first, *others = [decode_record(row.record) for row in store.records(head.id)]
    every = sorted([first, *others], key=lambda record: len(record.hooks))
    assert [len(record.hooks) for record in every] == [1] * 5 + [3], "and the setup of both cells"
    setups = [said for said in every[-1].hooks if said.hook == "setup"]
    assert [(said.setting, said.stdout.text()) for said in setups] == [
        ("threads=1", "filled 1"), ("threads=2", "filled 2"),
    ]  # fmt: skip
    (said,) = every[0].hooks
    assert said.hook == "prepare" and said.stdout.text() == "OK"
    assert said.stderr.text() == f"ERR unknown option {said.setting.removeprefix('threads=')}"
    warned = [item.sentence for item in findings_of(store, store.find_run("last")).sentences]
    assert any("The hook prepare printed 'ERR unknown option" in text for text in warned)
    assert not any("The hook setup" in text for text in warned)


def test_the_output_of_a_hook_is_bounded(store: Store) -> None:
    runner = runner_of(store, hooks=Hooks(prepare="seq 1 20000; echo the end"))
    runner.start()
    for row in store.records(runner.head.id):
        (said,) = decode_record(row.record).hooks
        assert said.stdout.text().endswith("the end") and len(said.stdout.text()) < 3_000
        assert said.stdout.dropped > 0


def test_a_figure_that_is_missing_names_what_a_hook_printed(store: Store) -> None:
    with pytest.raises(RunError, match="the hook prepare printed 'ERR unknown option"):
        runner_of(
            store, FakeEngine(stdout="speed: 5"), extracts=(RATE,), hooks=Hooks(prepare=SAYS)
        ).start()

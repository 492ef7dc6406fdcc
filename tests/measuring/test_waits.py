"""``--wait-quiet`` in the course of a run: bursts of noise are waited out, within what was given,
and nothing else changes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import msgspec
import pytest

from concurve.definition.campaign import Campaign, Member
from concurve.definition.study import Rules, Study
from concurve.errors import RunInterruptedError
from concurve.findings.again import run_again
from concurve.host.load import Load
from concurve.measuring.campaign_laboratory import CampaignRunner
from concurve.measuring.heads import new_campaign_head, new_head, resumed_head, with_wait
from concurve.measuring.laboratory import Progress, Runner
from concurve.measuring.quiet import GLANCE_EACH_SECONDS, GLANCE_SECONDS, Waits
from concurve.planning.plan import plan_of
from concurve.planning.protocol import replay
from concurve.report import progress
from concurve.store import Store
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import ANOTHER_RUN, Waiting
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import small_study
from tests.helpers.noisy_machine import NOISES, NoisyMachine

REPEATS = 10
RULES = Rules(repeats_min=REPEATS, repeats_max=REPEATS, redo_max=1, redo_share=0.25)


def seconds_of(spec: TrialSpec) -> float:
    """What a trial takes: two seconds with one thread, half with two."""
    return 2.0 / int(spec.roles[0].argv[1])


class Lab:
    """A run on a machine with noise, that may wait for so long in all."""

    def __init__(
        self,
        noise: str,
        given: float | None,
        study: Study | None = None,
        slower: float = 1.5,
        trial: Callable[[TrialSpec], float] = seconds_of,
    ) -> None:
        self.machine = NoisyMachine(NOISES[noise](), slower)
        self.engine = self.machine.engine(trial)
        self.store = Store()
        waiting = None if given is None else Waiting(seconds=given)
        head = new_head(study or small_study(RULES, threads=(1, 2)), "normal", 1, "concurve run …")
        self.head = msgspec.structs.replace(head, waiting=waiting)

    def runner(self, shown: Progress | None = None) -> Runner:
        machine = self.machine
        return Runner(
            self.stored or self.head,
            self.store,
            self.engine,
            shown,
            machine.clock,
            look=machine.look,
        )

    def run(self, shown: Progress | None = None) -> Lab:
        self.runner(shown).start()
        return self

    @property
    def stored(self) -> RunHead | None:
        rows = [row for row in self.store.runs() if row.id == self.head.id]
        return decode_head(rows[0]) if rows else None

    @property
    def waiting(self) -> Waiting:
        head = self.stored
        assert head is not None and head.waiting is not None
        return head.waiting

    def in_doubt(self) -> int:
        """Trials that are used although others disturbed them."""
        head = self.stored
        assert head is not None
        found = replay(plan_of(head), self.store.trials(head.id).outcomes, head.id)
        return len(found.doubtful)

    def order(self) -> list[tuple[int, int]]:
        """The cells and blocks in the order in which they were run first."""
        keys = self.store.trials(self.head.id).outcomes.keys()
        return [(key.cell, key.block) for key in keys if key.attempt == 0]


BURSTS = ("a build of 20 s each minute", "a browser, 4 s every 15 s", "bursts at random",
          "one job of 3 min")  # fmt: skip


@pytest.mark.parametrize("noise", BURSTS)
def test_bursts_are_waited_out_and_not_measured(noise: str) -> None:
    rules = msgspec.structs.replace(RULES, repeats_min=30, repeats_max=30)
    study = small_study(rules, threads=(1, 2))
    without = Lab(noise, None, study).run()
    waited = Lab(noise, 300, study).run()
    assert without.in_doubt() >= 2, "or this tests nothing"
    assert waited.in_doubt() < without.in_doubt() / 2
    assert 0 < waited.waiting.during_seconds <= 300
    assert waited.waiting.busiest == ("cc1plus",)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("given", [5.0, 40.0, 300.0])
def test_all_waits_together_take_what_was_given_at_most(noise: str, given: float) -> None:
    lab = Lab(noise, given).run()
    assert lab.waiting.waited_seconds <= given + 1e-6
    # A glance is time of the trials, and takes a tenth of them, but for a first one and redos.
    outcomes = lab.store.trials(lab.head.id).outcomes
    redone = sum(attempt > 0 for attempt in outcomes.attempts)
    glanced = lab.machine.looked_seconds - lab.waiting.waited_seconds
    each = GLANCE_SECONDS / GLANCE_EACH_SECONDS
    assert glanced <= each * sum(outcomes.seconds) + (1 + redone) * GLANCE_SECONDS + 1e-6


@pytest.mark.parametrize("noise", NOISES)
def test_the_order_of_trials_stays(noise: str) -> None:
    assert Lab(noise, 300).run().order() == Lab(noise, None).run().order()


def test_a_quiet_machine_costs_glances_and_no_wait() -> None:
    lab = Lab("none", 300).run()
    assert lab.waiting == Waiting(seconds=300)
    assert 0 < lab.machine.looked_seconds < 0.1 * lab.machine.now


def test_who_did_not_ask_looks_at_nothing() -> None:
    assert Lab("bursts at random", None).run().machine.looked_seconds == 0


def test_a_moment_of_noise_costs_one_more_look() -> None:
    """A blip that is over when it is looked for is no disturbance."""
    machine = NoisyMachine(iter([(0.1, 0.1)]))
    lab = Lab("none", 300)
    lab.machine = machine
    lab.engine = machine.engine(seconds_of)
    lab.run()
    assert lab.waiting.waited_seconds == pytest.approx(1.0)
    assert lab.waiting.times == 0


def test_no_wait_depends_on_what_a_trial_measured() -> None:
    """On a quiet machine nothing waits, however far apart the figures are."""
    strange = {"1": 2.0, "2": 40.0}
    slow = Lab("none", 300, trial=lambda spec: strange[spec.roles[0].argv[1]]).run()
    assert slow.waiting.waited_seconds == 0


@pytest.mark.parametrize("noise", BURSTS)
def test_waiting_does_not_bias_the_quiet_trials(noise: str) -> None:
    """Cells have their values, also where noise is waited out before the trials of one."""
    lab = Lab(noise, 1000, slower=3.0).run()
    outcomes = lab.store.trials(lab.head.id).outcomes
    for cell, alone in ((0, 2.0), (1, 1.0)):
        quiet = [
            value
            for index, value in enumerate(outcomes.values)
            if outcomes.cells[index] == cell and outcomes.verdicts[index] == "ok"
            if value is not None
        ]
        assert len(quiet) >= REPEATS / 2
        assert sum(quiet) / len(quiet) == pytest.approx(alone, rel=0.02)


def allowing(seconds: float) -> Study:
    rules = Rules(repeats_min=3, repeats_max=30, precision=0.0001, time_allowed_seconds=seconds)
    return small_study(rules, threads=(1, 2))


@pytest.mark.parametrize("noise", NOISES)
def test_waits_count_as_time_of_the_run_and_leave_the_pilot_its_own(noise: str) -> None:
    lab = Lab(noise, 1000, allowing(60)).run()
    outcomes = lab.store.trials(lab.head.id).outcomes
    waited = lab.waiting
    # The last trial may be disturbed, and take longer than was expected of it.
    assert sum(outcomes.seconds) + waited.during_seconds <= 60 + 2
    assert {(cell, block) for cell in (0, 1) for block in range(3)} <= set(lab.order())


def test_the_wait_before_the_first_trial_takes_no_time_of_the_run() -> None:
    lab = Lab("from 15 s on for ever", 100, allowing(60))
    lab.machine.now = 15
    lab.run()
    assert (lab.waiting.before_seconds, lab.waiting.during_seconds) == (100, 0)
    assert sum(lab.store.trials(lab.head.id).outcomes.seconds) > 50


def test_a_report_says_why_a_run_ended_whose_waits_took_its_time() -> None:
    lab = Lab("a build of 20 s each minute", 1000, allowing(60)).run()
    head = lab.stored
    assert head is not None
    found = replay(plan_of(head), lab.store.trials(head.id).outcomes, head.id)
    assert found.stop is not None
    row = lab.store.find_run(head.id)
    assert (row.state, row.reason) == ("complete", found.stop.reason)


def test_a_run_that_was_stopped_in_a_wait_goes_on_with_what_is_left() -> None:
    """Wherever it is stopped: the trials and the sum of the waits are those of one go."""
    whole = Lab("from 15 s on for ever", 40).run()
    assert whole.waiting.during_seconds == pytest.approx(40)
    for stop_at in (15.5, 17.0, 21.3, 44.0):
        lab = Lab("from 15 s on for ever", 40)
        _stopped_at(lab, stop_at)
        before = lab.waiting.waited_seconds
        lab.runner().resume()
        assert lab.order() == whole.order()
        assert before <= lab.waiting.waited_seconds == pytest.approx(40)


def _stopped_at(lab: Lab, stop_at: float) -> None:
    """Run until Ctrl-C comes, in a look at the machine."""
    look = lab.machine.look

    def interrupted(seconds: float) -> Load:
        found = look(seconds)
        if lab.machine.now >= stop_at:
            raise KeyboardInterrupt
        return found

    lab.machine.look = interrupted  # type: ignore[method-assign]
    with pytest.raises(RunInterruptedError):
        lab.run()
    lab.machine.look = look  # type: ignore[method-assign]


def test_a_simulation_waits_for_nothing() -> None:
    study = msgspec.structs.replace(small_study(RULES, threads=(1, 2)), simulation=True)
    assert Lab("from 15 s on for ever", 300, study).run().machine.looked_seconds == 0


def test_each_study_of_a_campaign_waits_for_as_long_as_was_given() -> None:
    machine = NoisyMachine(NOISES["from 15 s on for ever"]())
    study = small_study(RULES, threads=(1, 2))
    names = ("one", "two")
    campaign = Campaign(
        name="both",
        question="Both?",
        studies=tuple(
            Member(name=name, study=msgspec.structs.replace(study, name=name)) for name in names
        ),
    )
    head = new_campaign_head(campaign, "normal", 1, "concurve run both", "1")
    given = Waiting(seconds=40, before_seconds=30, times=1)
    head = msgspec.structs.replace(head, waiting=given)
    store = Store()
    engine = machine.engine(seconds_of)
    CampaignRunner(head, store, engine, clock=machine.clock, look=machine.look).start()
    heads = [decode_head(row) for row in store.runs()]
    waits = [head.waiting for head in heads]
    assert [it is not None and it.waited_seconds for it in waits] == pytest.approx([40, 40])


def shown(lab: Lab, *, live: bool) -> str:
    stream = io.StringIO()
    with contextlib.suppress(RunInterruptedError):
        lab.run(progress.Progress(stream, live=live, clock=lab.machine.clock))
    return stream.getvalue()


@pytest.mark.parametrize("live", [True, False])
def test_waits_are_said_as_they_go_on_and_in_all(
    live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = shown(Lab("one job of 3 min", 300), live=live)
    assert "waiting for a quiet machine (" in said
    assert " of at most 5 min" in said
    assert "cc1plus (pid 20) 50 %" in said
    assert "waited 2 min 5" in said.rpartition("trial 10")[2], "the total stands to the end"
    lines = said.count("\n")
    assert lines < 60


def test_that_no_wait_is_left_is_said_once() -> None:
    said = shown(Lab("from 15 s on for ever", 40), live=False)
    assert said.count("note: the run has waited 40 s in all for a quiet machine") == 1


def test_a_run_without_time_to_wait_says_so_and_claims_no_quiet() -> None:
    """The pilot needs all of the time, and a build begins in it."""
    lab = Lab("a build of 20 s each minute", 300, allowing(16)).run()
    assert lab.in_doubt() > 0, "or this tests nothing"
    assert lab.waiting.is_cut
    assert "more --max-time" in run_again(False, lab.waiting)


@pytest.mark.parametrize("room", [0.009, 0.2, 1.003])
def test_no_look_is_shorter_than_a_glance(room: float) -> None:
    """In less than a tick of the kernel every machine looks quiet."""
    machine = NoisyMachine(iter([(0.0, 1e9)]))
    looked: list[float] = []

    def look(seconds: float) -> Load:
        looked.append(seconds)
        return machine.look(seconds) if seconds >= GLANCE_SECONDS else Load(0.0, 0.0)

    waits = Waits(Waiting(seconds=300), look, machine.clock)
    waits.wait(room, is_before=False, tell=lambda *_: None)
    assert waits.now.is_cut
    assert all(seconds >= GLANCE_SECONDS for seconds in looked)


def test_nobody_is_told_to_end_another_run_that_kept_the_machine_busy() -> None:
    busy = {ANOTHER_RUN: 20.0, "cc1plus": 10.0}
    waiting = Waiting(seconds=300, during_seconds=300, times=1, busy_with=busy)
    said = run_again(False, waiting)
    assert "measure after its end" in said and "End what" not in said
    assert waiting.programs == ("cc1plus",)


def test_a_resumed_run_may_wait_anew_and_what_it_waited_before_stays() -> None:
    before = Waiting(
        seconds=40, before_seconds=10, during_seconds=30, times=2, busy_with={"cc1plus": 5.0}
    )
    now = Waiting(seconds=60, before_seconds=20, times=1, busy_with={"cc1plus": 1.0, "dd": 2.0})
    head = with_wait(msgspec.structs.replace(Lab("none", None).head, waiting=before), now)
    assert head.waiting == Waiting(
        seconds=100,
        before_seconds=30,
        during_seconds=30,
        times=3,
        busy_with={"cc1plus": 6.0, "dd": 2.0},
    )
    assert head.waiting.left_seconds == now.left_seconds == 40
    assert with_wait(head, None) == head


def test_what_a_resumed_run_waits_before_it_goes_on_takes_nothing_of_its_time() -> None:
    lab = Lab("none", None, allowing(10)).run()
    done = lab.store.count(lab.head.id)
    waited = Waiting(seconds=300, before_seconds=200, times=1)
    longer = with_wait(resumed_head(lab.store, lab.head.id, 20), waited)
    Runner(longer, lab.store, lab.engine, None, lab.machine.clock, look=lab.machine.look).resume()
    assert lab.store.count(lab.head.id) > done
    assert (lab.waiting.seconds, lab.waiting.before_seconds) == (300, 200)


def test_each_study_of_a_resumed_campaign_may_wait_anew() -> None:
    machine = NoisyMachine(NOISES["from 15 s on for ever"]())
    members = tuple(
        Member(name=name, study=msgspec.structs.replace(small_study(RULES), name=name))
        for name in ("one", "two")
    )
    campaign = Campaign(name="both", question="Both?", studies=members)
    head = new_campaign_head(campaign, "normal", 1, "concurve run both", "1")
    store = Store()

    ran: list[str] = []

    def trial(spec: TrialSpec) -> float:
        ran.append(spec.trial)
        if len(ran) == 4:
            raise KeyboardInterrupt
        return 2.0

    def runner() -> CampaignRunner:
        return CampaignRunner(
            head, store, machine.engine(trial), clock=machine.clock, look=machine.look
        )

    with pytest.raises(RunInterruptedError):
        runner().start()
    runner().resume(seconds_to_wait=40)
    waits = [decode_head(row).waiting for row in store.runs()]
    assert [it is not None and it.seconds for it in waits] == [40, 40]

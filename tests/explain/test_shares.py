"""A share that is told can be recomputed from the table of the lost speed-up beside it."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import msgspec
import pytest

from concurve.analysis.campaign.summary import causes
from concurve.estimate import Estimate
from concurve.explain import weights
from concurve.explain.accounts import Account, account
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.causes import cause_of, further_verdicts
from concurve.explain.hot import Hot
from concurve.explain.losses import loss_of, sure_parts
from concurve.explain.verdict import Case, Verdict
from concurve.explain.weights import (
    NAMED_MIN,
    Weight,
    greater_without_cause,
    outweighed,
    weigh,
)
from concurve.findings.explanation import Cause, CellExplanation, Explanation, Limit, RunnerUp
from concurve.report import format as fmt
from concurve.report.document import Detail
from concurve.report.losses import LOSSES, lost_to
from concurve.report.sections.limits import certainty, explanation_document
from concurve.report.sections.overview import Told, _short_limit, limit_line
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.wire.record import HotFunction, HotRecord
from tests.explain.test_losses import ASKED, BASE, joining, program, worker
from tests.helpers.explaining import Thread, record
from tests.helpers.made import made_run

CASES = 80
TRIALS = 6
FIRST_SHARE = r" That is ([\d.]+ %)(?: \[.*?\])? of the lost speed-up \(.*?\)(: .*?)?[;.] "
SECOND = r"; (?:next|a greater part): (.*?)(?:, ([\d.]+) %)?(?: \((.*?)\))?\. "
IN_ORDER = r" Of the lost speed-up \(.*?\), ([\d.]+ %) is (.*?)(?: \(.*?\))?, and ([\d.]+ %) .*\. "
AMOUNT = r"([^,]+?) (−?\d\.\d\d)(?:, | and |$)"


def noisy(rng: random.Random, level: int, noise: float) -> Breakdown:
    """A cell whose threads run, wait for a CPU and for one another, end early, or are not there at
    first, each trial a little different."""
    at_futexes, queued, late = rng.choice((0, 0.1, 0.4)), rng.choice((0, 0, 0.1)), rng.random()
    lived = rng.choice((1.0, 0.8)), rng.choice((1.0, 1.0, 0.5))
    alone, wall = rng.choice((0.0, 0.0, 0.3)), rng.uniform(0.5, 0.9)

    def varied(value: float) -> float:
        return max(0.0, value * (1 + noise * rng.gauss(0, 1)))

    def threads() -> list[Thread]:
        futex, queue = varied(at_futexes), varied(queued)
        cpu = max(0.0, min(0.99, 1.0 - futex - queue - 0.01 * late))
        made = [
            worker(cpu, min(1.0, life * (1 - alone)), 300 if at_futexes else 3,
                   futex=min(futex, 1 - cpu), queue=queue)
            for life in (*lived, *[lived[0]] * (level - 2))
        ]  # fmt: skip
        return [*made, joining(varied(alone))]

    words = [(60, level)] if at_futexes else []
    accounts = [one_trial(level, threads(), varied(wall), words) for _ in range(TRIALS)]
    found = breakdown(accounts)
    assert found is not None
    return found


def one_trial(
    level: int, threads: list[Thread], wall: float, words: Sequence[tuple[int, ...]]
) -> Account:
    found = account(record(program(threads, wall, words=words)), ASKED, level)
    assert found is not None
    return found


def told(own: Breakdown, verdict: Verdict, found: Weight) -> CellExplanation:
    loss = loss_of(own, BASE)
    assert loss is not None
    return CellExplanation(
        parameters={},
        cause=verdict.cause,
        evidence="",
        limit=verdict.limit,
        share=found.share,
        share_parts=found.parts,
        runner_up=found.runner_up,
        speedup=loss.speedup,
        speedup_possible=loss.possible,
        speedup_lost=loss.parts,
    )


def share_in(cell_told: CellExplanation, parts: tuple[str, ...]) -> float:
    """A share by the table alone."""
    amount = sum(cell_told.speedup_lost[part] for part in parts)
    return min(1.0, max(0.0, amount / cell_told.lost))


def test_each_share_that_is_told_is_that_of_its_parts_in_the_table() -> None:
    rng = random.Random(7)
    shares = seconds = several = in_order = 0
    for _ in range(CASES):
        own = noisy(rng, rng.choice((2, 2, 4)), rng.choice((0.005, 0.03, 0.15)))
        case = Case(own, BASE, False)
        verdict = outweighed(case, cause_of(own, BASE))
        found = weigh(case, verdict)
        if found.share is None:
            continue
        it, second = told(own, verdict, found), found.runner_up
        assert found.share.value == pytest.approx(share_in(it, found.parts), abs=1e-9)
        assert found.share.low is not None and found.share.high is not None
        assert found.share.low <= found.share.value <= found.share.high
        said = f"{certainty(it)} "
        first = re.match(FIRST_SHARE, said)
        if first:
            shares += 1
            assert first[1] == fmt.percent(share_in(it, found.parts))
            if first[2]:
                several += 1
                amounts = [float(a.replace("−", "-")) for _, a in re.findall(AMOUNT, first[2])]
                rounding = 0.006 * (len(LOSSES) + 1)
                assert sum(amounts) == pytest.approx(
                    sum(it.speedup_lost[part] for part in found.parts), abs=rounding
                )
        if second is None or second.is_indistinct:
            continue
        seconds += 1
        assert second.share is not None and not set(second.parts) & set(found.parts)
        assert second.share.value == pytest.approx(share_in(it, second.parts), abs=1e-9)
        name = LOSSES[second.parts[0]] if second.cause == "none" else lost_to(second.cause)
        if both := re.match(IN_ORDER, said):
            in_order += 1
            assert second.share.value > found.share.value
            assert both[1] == fmt.percent(share_in(it, second.parts))
            assert name.startswith(both[2])
            assert both[3] == fmt.percent(share_in(it, found.parts))
        after = re.search(SECOND, said)
        if first and after and after[2]:
            assert after[1] == name
            assert f"{after[2]} %" == fmt.percent(share_in(it, second.parts))
    assert shares > CASES / 4 and seconds > CASES / 10 and several
    assert in_order


def test_what_comes_next_is_the_greatest_of_what_is_left() -> None:
    rng = random.Random(11)
    checked = 0
    for _ in range(CASES):
        own = noisy(rng, 2, 0.02)
        case = Case(own, BASE, False)
        verdict = outweighed(case, cause_of(own, BASE))
        found = weigh(case, verdict)
        if found.share is None or (found.runner_up and found.runner_up.is_indistinct):
            continue
        it = told(own, verdict, found)
        left = {part for part in sure_parts(own, BASE) if part not in found.parts}
        most = max((share_in(it, (part,)) for part in left), default=0.0)
        if found.share.value > 1 - NAMED_MIN or most < NAMED_MIN:
            assert found.runner_up is None or found.runner_up.share is not None
            continue
        checked += 1
        assert found.runner_up is not None and found.runner_up.share is not None
        assert found.runner_up.share.value >= most - 1e-9
    assert checked > 10


def locked(walls: list[float], hot: HotRecord | None = None) -> Breakdown:
    """Two workers that wait as long at a lock in each trial, by the wall times: the rest of these
    is CPU time, of which the base takes 1."""
    accounts = []
    for wall in walls:
        futex = 0.18 / wall
        held = worker(1 - futex, futex=futex, switches=300)
        made = one_trial(2, [held, held, joining()], wall, [(60, 2)])
        accounts.append(made._replace(hot=Hot(made.cpu_ns, hot) if hot else None))
    found = breakdown(accounts)
    assert found is not None
    return found


#: More CPU time, surely; and within its noise.
MORE = [0.86, 0.87, 0.88, 0.86, 0.87, 0.88]
MAY_BE_MORE = [0.60, 0.97, 0.64, 0.95, 0.68, 0.90]


def sampled(function: str) -> HotRecord:
    """Samples in one function."""
    place = HotFunction(file="libx.so", samples=400, first=0, function=function)
    return HotRecord(samples=400, listed=(place,))


def test_more_cpu_time_within_its_noise_is_no_lock_that_spins() -> None:
    own = locked(MAY_BE_MORE, sampled("s_lock"))
    verdict = outweighed(Case(own, BASE, False), cause_of(own, BASE))
    assert verdict.cause == "lock" and "spin" not in verdict.words
    found = weigh(Case(own, BASE, False), verdict)
    assert "waiting" in found.parts and "cpu" not in found.parts


@pytest.mark.parametrize(("function", "parts"), [("s_lock", True), ("work", False)])
def test_more_cpu_time_is_that_of_a_lock_only_where_samples_show_it(
    function: str, parts: bool
) -> None:
    own = locked(MORE, sampled(function))
    verdict = outweighed(Case(own, BASE, False), cause_of(own, BASE))
    found = weigh(Case(own, BASE, False), verdict)
    assert ("cpu" in found.parts and verdict.cause == "lock") == parts
    assert "not sampled" not in cause_of(own, BASE).words
    unsampled = cause_of(locked(MORE), BASE)
    assert unsampled.cause != "lock" or unsampled.parts == ("futex",)


def test_a_part_without_a_known_cause_comes_next_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its cause is not known, but it is the greater of two, and the table shows it."""
    own = locked(MORE, sampled("work"))
    lock = Verdict("lock", "", parts=("futex",))
    every = further_verdicts
    monkeypatch.setattr(weights, "further_verdicts", lambda case: [
        it for it in every(case) if it.parts != ("cpu",)])  # fmt: skip
    found = weigh(Case(own, BASE, False), lock)
    assert found.runner_up is not None and found.runner_up.parts == ("cpu",)
    assert found.runner_up.cause == "none"
    assert re.search(
        r", \d+ % is more CPU time, and \d+ % \[.*\] waiting for locks\.$",
        certainty(told(own, lock, found)),
    )


def test_a_known_cause_goes_before_a_part_without_one_that_is_not_surely_greater() -> None:
    """35 % is more CPU time, 31 % [23 %, 41 %] waiting for locks: the noise holds either order."""
    case = Case(locked(MORE, sampled("work")), BASE, False)
    lock = Verdict("lock", "", parts=("futex",))
    share = Estimate(value=0.31, low=0.23, high=0.41, n=5)
    unknown = RunnerUp(
        "none", Estimate(value=0.35, low=0.2, high=0.5, n=5), parts=("cpu",), may_be_less=True
    )
    weight = Weight(share, unknown, ("waiting",))
    it = told(case.cell, lock, weight)
    said = certainty(it)
    assert said.startswith(" That is 31 % [23 %, 41 %] of the lost speed-up ")
    assert "; perhaps a greater part: more CPU time, 35 % [20 %, 50 %]." in said
    assert greater_without_cause(weight) == ()
    line = limit_line(Limit({}, msgspec.structs.replace(it, reason="With threads=2 it is so"))).text
    assert line.startswith("locks. With threads=2 it is so. That is 31 %")
    surely = msgspec.structs.replace(unknown, may_be_less=False)
    assert greater_without_cause(Weight(share, surely, ("waiting",))) == ("cpu",)


def at_ceiling(second: RunnerUp | None, is_jvm: bool) -> str:
    share = Estimate(value=0.63, low=0.4, high=0.72, n=5)
    return limit_line(
        Limit(
            {},
            CellExplanation(
                parameters={"threads": 2}, base={"threads": 1}, cause="coherency", evidence="",
                trials=5, speedup=1.75, speedup_possible=2.0, speedup_lost={"cpu": 0.16}, ceiling=2,
                share=share, share_parts=("cpu",), runner_up=second, is_jvm=is_jvm,
            ),
        )
    ).text  # fmt: skip


def test_more_cpu_time_has_no_guess_for_its_cause() -> None:
    """Of Java workers that share no data it was told that data moves between CPUs."""
    core = RunnerUp("smt", is_indistinct=True)
    start = "Of the loss, 63 % [40 %, 72 %] is more CPU time"
    both = "data that threads share, CPUs that share a core"
    assert f"{start}, of no known cause (perhaps {both})." in at_ceiling(core, False)
    of_java = "the compilers of the JVM, its collector"
    assert f"{start}, of no known cause (perhaps {both}, {of_java})." in at_ceiling(core, True)
    one = f"{start}, of no known cause (perhaps data that threads share, {of_java})."
    assert one in at_ceiling(None, True)
    data = f"{start}, of no known cause (perhaps data that threads share)."
    assert data in at_ceiling(None, False), "counters of cache misses would tell, and none is read"


#: Parts of sentences that would say of more CPU time what it goes to.
GUESSES = re.compile(
    r"data that (threads share|the threads share|moves)|bandwidth|(cores|CPUs) (that|of this)|"
    r"coherency|memory\b|smt|collector|compilers"
)


def without_what_may_be(text: str) -> str:
    """A text without what follows "perhaps", and without what the evidence cannot tell apart."""
    return re.sub(r"(perhaps|cannot tell it apart from) .*?(\. |\.$|$)", "", text, flags=re.M)


@pytest.mark.parametrize("is_jvm", [False, True])
@pytest.mark.parametrize("cause", ["coherency", "memory", "smt"])
def test_no_view_states_what_more_cpu_time_goes_to(cause: Cause, is_jvm: bool) -> None:
    """Counters of cache misses would tell, and none is read: it is said what it may be."""
    share = Estimate(value=0.93, low=0.8, high=1.0, n=5)
    own = CellExplanation(
        parameters={"threads": 2}, base={"threads": 1}, cause=cause, trials=5, speedup=1.25,
        evidence="With threads=2 an operation takes 1.6 × the CPU time: perhaps data.",
        reason="With threads=2 an operation takes 1.6 × the CPU time: perhaps data",
        speedup_possible=2.0, speedup_lost={"cpu": 0.75}, share=share, share_parts=("cpu",),
        is_jvm=is_jvm,
    )  # fmt: skip
    base = CellExplanation(parameters={"threads": 1}, cause="none", evidence="", trials=5)
    explanation = Explanation(
        run="r", study="s", factors=("threads",), work="threads", operation="a run",
        cells=(base, own),
    )  # fmt: skip
    findings = made_run(Store(), lambda n: 1.0 / float(n), threads=(1, 2))
    limit, whole = Limit({}, own), limit_line(Limit({}, own))
    shortest, *shorter = (
        _short_limit(findings, limit, whole, told).text for told in reversed(Told)
    )
    beyond = limit_line(Limit({}, msgspec.structs.replace(own, cause="lock"), beyond=own)).text
    full = lines(explanation_document(explanation, Detail.FULL), width=200)
    shown = "\n".join(map(str, full))
    for view in (whole.text, shortest, *shorter, beyond, shown, causes(explanation)):
        assert not GUESSES.search(without_what_may_be(view)), view
    assert shortest.startswith("more CPU time, of no known cause (perhaps ")
    assert all(("the compilers of the JVM" in view) == is_jvm for view in (shortest, beyond))


@pytest.mark.parametrize(("varied", "is_sure"), [(0.05, True), (1.5, False)])
def test_which_of_two_parts_is_greater_is_told_by_the_noise_of_their_difference(
    varied: float, is_sure: bool
) -> None:
    own = more_cpu_time_than_serial_work(serial=0.06, more=0.02, varied=varied)
    case = Case(own, BASE, False)
    verdict = Verdict("serial", "", is_loss=True, parts=("serial",))
    second = weigh(case, verdict).runner_up
    assert second is not None and second.cause == "none" and second.parts == ("cpu",)
    assert second.may_be_less is not is_sure


def more_cpu_time_than_serial_work(serial: float, more: float, varied: float = 0.0) -> Breakdown:
    """Two workers, beside which threads of the runtime compile, as in a JVM, and before which the
    first thread works alone, by the wall time of the base."""
    rng, accounts = random.Random(3), []
    for _ in range(TRIALS):
        each = 0.5 * (1 + 0.005 * rng.gauss(0, 1))
        alone = serial * (1 + 0.05 * rng.gauss(0, 1))
        computed = each + more * (1 + (varied and varied * rng.gauss(0, 1)))
        wall = computed + alone
        workers = [worker(1.0, computed / wall, 3) for _ in range(2)]
        accounts.append(one_trial(2, [*workers, joining(alone / wall)], wall, []))
    found = breakdown(accounts)
    assert found is not None
    return found


def test_a_greater_part_without_a_cause_is_told_before_the_cause() -> None:
    """As the table has it: of a Java program serial work was told as the limit, and what its
    compilers take, which was more, as what comes next."""
    own = more_cpu_time_than_serial_work(serial=0.06, more=0.02)
    case = Case(own, BASE, False)
    verdict = outweighed(case, cause_of(own, BASE))
    assert verdict.cause == "serial"
    found = weigh(case, verdict)
    it = told(own, verdict, found)
    lost = {name: round(amount, 2) for name, amount in it.speedup_lost.items()}
    assert lost["cpu"] > lost["serial"] > 0
    cpu, serial = (fmt.percent(share_in(it, (part,))) for part in ("cpu", "serial"))
    of = f"the lost speed-up ({it.lost:.2f} of 2)"
    said = certainty(it)
    assert re.match(
        rf" Of {re.escape(of)}, {cpu} is more CPU time, and {serial} \[.*\] serial work\.$", said
    )
    assert greater_without_cause(found) == ("cpu",)
    assert certainty(it, is_next_told=False) == said, "the greater one is told in any case"
    full = msgspec.structs.replace(it, ceiling=2, base={"threads": 1}, speedup=1.8)
    assert f" {cpu} is more CPU time, and {serial} " in limit_line(Limit({}, full)).text
    line = limit_line(Limit({}, msgspec.structs.replace(it, reason="With threads=2 it is so"))).text
    assert line.startswith(
        "more CPU time, of no known cause; then serial work, which one thread does alone. With"
    )

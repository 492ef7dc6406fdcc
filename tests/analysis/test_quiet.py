"""Quiet trials are the figure where there are enough of them; else figures and findings say that
they are in doubt."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from concurve.analysis.comparison import compare_levels
from concurve.analysis.run import trial_findings_of
from concurve.analysis.sentences.answers import answers_of
from concurve.analysis.sentences.gains import greatest
from concurve.brief import figures_of
from concurve.definition.study import Claim, Rules
from concurve.estimate import Estimate
from concurve.explain import explain_run
from concurve.findings.run import Finding, Report
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.doubt import is_enough
from concurve.planning.plan import plan_of
from concurve.report.html import to_html
from concurve.report.json.export import figures_to_json
from concurve.report.markdown import to_markdown
from concurve.report.sections.best import doubt_sentences
from concurve.report.sections.run import ALL_TOPICS, brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.stats.centre import centre
from concurve.store import Store
from concurve.terms import Waiting
from concurve.wire.spec import TrialSpec
from tests.helpers.explaining import line_of
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import figures_alone, made_run

pytestmark = pytest.mark.usefixtures("empty_charts")

TRIALS = 24
CLAIM = Claim(
    id="c",
    says="Two are faster.",
    kind="speedup",
    test={"of": {"threads": 2}, "over": {"threads": 1}, "at_least": 1.2},
)


def run_with(
    disturbed: dict[str, int],
    slower: float = 1.5,
    conditions: tuple[str, ...] = (),
    threads: tuple[int, ...] = (1, 2),
    waiting: Waiting | None = None,
    is_stolen: bool = True,
) -> Report:
    """A run whose last trials of a cell are disturbed: so many by its threads."""
    rules = Rules(repeats_min=TRIALS, repeats_max=TRIALS, redo_max=0, redo_share=0.0)
    study = msgspec.structs.replace(
        small_study(rules, threads=threads), claims=(CLAIM,), conditions=conditions
    )

    def is_disturbed(spec: TrialSpec) -> bool:
        block = int(spec.trial.split("/")[-2])
        return block >= TRIALS - disturbed.get(spec.roles[0].argv[1], 0)

    def seconds(spec: TrialSpec, generator: random.Random) -> float:
        quiet = (2.0 if spec.roles[0].argv[1] == "1" else 1.0) * generator.lognormvariate(0, 0.01)
        return quiet * (slower if is_disturbed(spec) else 1.0)

    def taken(spec: TrialSpec) -> int:
        return 10**9 if is_disturbed(spec) else 0

    by = {"steal_of": taken} if is_stolen else {"foreign_of": taken}
    engine = FakeEngine(seconds, **by)  # type: ignore[arg-type]
    store = Store()
    head = new_head(study, "normal", 1, "concurve run …")
    head = msgspec.structs.replace(head, waiting=waiting)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


def sentences(report: Report, kind: str) -> str:
    return " ".join(item.sentence for item in report.sentences if item.kind == kind)


def shown(report: Report) -> dict[str, str]:
    whole = brief_run_document(report, topics=ALL_TOPICS)
    return {
        "terminal": "\n".join(line.plain for line in lines(whole, 200)),
        "markdown": to_markdown(run_document(report)),
        "html": to_html(whole),
    }


def test_enough_quiet_trials_are_the_figure() -> None:
    report = run_with({"1": 8})
    one, two = report.cells
    figure = one.indicators["wall_seconds"]
    assert figure.n == TRIALS - 8
    assert not figure.in_doubt
    assert figure.value == pytest.approx(2.0, rel=0.01)
    assert (one.doubtful, two.doubtful) == (8, 0)
    every = one.including_doubtful
    assert every is not None
    assert every.n == TRIALS
    assert every.high is not None
    assert figure.high is not None
    assert every.high > 1.2 * figure.high
    assert two.including_doubtful is None
    speedup = two.indicators["speedup"]
    assert (speedup.n, speedup.in_doubt) == (TRIALS - 8, False)
    assert speedup.value == pytest.approx(2.0, rel=0.01)
    assert "× as fast" in sentences(report, "answer")
    assert report.claims[0].verdict == "supported"
    assert report.claims[0].estimate is not None
    assert report.claims[0].estimate.value == speedup.value
    assert "8 of 48 trials are in doubt" in sentences(report, "warning")
    assert all(f"8 of {TRIALS}" in text for text in shown(report).values())
    assert sorted(report.columns("wall_seconds")) == [0, 1]
    assert len(report.columns("wall_seconds")[0]) == TRIALS - 8


def test_trials_in_doubt_are_counted_once_and_do_not_contradict_the_answer() -> None:
    report = run_with({"1": 3, "2": 22})
    assert not report.cells[0].indicators["wall_seconds"].in_doubt
    assert report.cells[1].indicators["wall_seconds"].in_doubt
    assert "o setting is recommended" in sentences(report, "answer")
    said = sentences(report, "warning")
    assert "25 of 48 trials are in doubt because the hypervisor took CPU time. They leave" in said
    assert said.count(" in doubt because ") == 1
    assert "no median by much" not in said


@pytest.mark.parametrize(
    ("disturbed", "which"),
    [
        ({"2": 20}, "leave threads=2 in doubt"),
        ({"1": 20, "2": 22}, "leave threads=1 and 2 in doubt"),
        ({"1": 20, "2": 20, "4": 20}, "leave threads=1, 2 and 4 in doubt"),
        (
            {"1": 20, "2": 20, "4": 23, "5": 22, "6": 21},
            "leave threads=4, 5, 6 and 2 other cells in doubt",
        ),
    ],
)
def test_up_to_three_cells_in_doubt_are_named(disturbed: dict[str, int], which: str) -> None:
    """Of more, those with the most trials in doubt."""
    report = run_with(disturbed, threads=(1, 2, 3, 4, 5, 6))
    assert which in sentences(report, "warning")


def test_cells_of_several_factors_are_named_in_full() -> None:
    rules = Rules(repeats_min=6, repeats_max=6, redo_max=0, redo_share=0.0)

    def taken(spec: TrialSpec) -> int:
        return 10**9 if spec.roles[0].argv[1] == "2" else 0

    report = made_run(Store(), lambda n, size: 1.0, rules=rules, steal=taken,
                      threads=(1, 2), size=(1, 2))  # fmt: skip
    assert "leave threads=2 size=1 and threads=2 size=2 in doubt" in sentences(report, "warning")


def test_too_few_quiet_trials_leave_a_doubt_in_the_table_and_withhold_what_rests_on_it() -> None:
    report = run_with({"1": TRIALS - 3, "2": TRIALS - 3}, slower=1.6)
    for cell in report.cells:
        figure = cell.indicators["wall_seconds"]
        assert figure.in_doubt
        assert figure.n == TRIALS
        quiet = centre([dot.values["wall_seconds"] for dot in report.dots
                        if dot.cell == cell.index and dot.block < 3])  # fmt: skip
        assert figure.low is not None
        assert figure.low < quiet, "the interval holds the quiet trials, too"
    assert report.cells[1].indicators["speedup"].in_doubt
    answers = sentences(report, "answer")
    assert "threads are" not in answers
    assert "the machine was not quiet" in answers
    assert "Use" not in answers
    assert answers.startswith("No setting is recommended: the machine was not quiet. ")
    assert "seem best" in answers or "The figures point to" in answers
    assert "--wait-quiet 5m" in sentences(report, "warning")
    for view, text in shown(report).items():
        assert "? in doubt" in text, view
    exported = json.loads(figures_to_json(report))
    cells = exported["cells"]
    assert all(cell["indicators"]["wall_seconds"]["in_doubt"] for cell in cells)
    assert [cell["doubtful"] for cell in cells] == [TRIALS - 3] * 2


def test_a_finding_that_only_disturbed_trials_bear_is_withheld() -> None:
    report = run_with({"2": TRIALS - 1})
    assert report.claims[0].verdict == "undecided"
    assert "not quiet" in report.claims[0].doubt
    answers = sentences(report, "answer")
    assert answers.startswith("No setting is recommended: the machine was not quiet. ")


def test_what_to_do_is_said_once_in_a_report() -> None:
    """The answers of many conditions, the warning, and what limits each cell give it each."""
    again = "Run again: --wait-quiet 5m; concurve doctor says why."
    report = run_with({"1": TRIALS - 1, "2": TRIALS - 1})
    said = (Finding(kind="answer", sentence=f"Under {n}: in doubt. {again}") for n in "abc")
    more = msgspec.structs.replace(report, sentences=(*said, *report.sentences))
    assert sum(again in item.sentence for item in more.sentences) == 4
    for view, text in shown(more).items():
        plain = " ".join(text.split())
        assert plain.count("--wait-quiet 5m") == 1, (view, plain)
        assert "Under c: in doubt." in plain


def test_a_run_that_waited_is_not_told_to_wait_as_long_again() -> None:
    waiting = Waiting(seconds=300, before_seconds=300, times=1, busy_with={"cc1plus": 90.0})
    report = run_with({"1": TRIALS - 1, "2": TRIALS - 1}, waiting=waiting, is_stolen=False)
    for view, text in shown(report).items():
        plain = " ".join(text.split())
        assert "--wait-quiet 5m" not in plain, view
        assert plain.count("End what kept it busy (cc1plus)") == 1, (view, plain)
        assert "waited 5 min for a quiet machine" in plain, view
    exported = json.loads(figures_to_json(report))["run"]["waiting"]
    assert (exported["seconds"], exported["before_seconds"]) == (300, 300)


def test_a_quiet_run_has_no_doubts() -> None:
    report = run_with({})
    assert not any(cell.doubtful or cell.including_doubtful for cell in report.cells)
    assert "in doubt" not in shown(report)["terminal"]
    assert "doubtful" not in json.loads(figures_to_json(report))["cells"][0]


@pytest.mark.parametrize(
    ("quiet", "used", "enough"),
    [(21, 29, True), (3, 29, False), (5, 29, True), (4, 29, False), (3, 5, True), (2, 5, False),
     (2, 3, True), (1, 2, False), (1, 1, True), (0, 1, False)],
)  # fmt: skip
def test_how_many_are_enough(quiet: int, used: int, enough: bool) -> None:
    assert is_enough(quiet, used) == enough


def test_choosing_quiet_trials_does_not_bias() -> None:
    """Trials are chosen by what was read of the machine; noise of their own is alike in all."""
    generator = random.Random(11)
    off = []
    for _ in range(2000):
        values = []
        for _ in range(29):
            disturbed = generator.random() < 0.4
            value = generator.lognormvariate(0, 0.03) * (1.5 if disturbed else 1.0)
            # What is read has noise: one disturbance in twenty is missed, one quiet trial doubted.
            seen = disturbed != (generator.random() < 0.05)
            values.append((value, seen))
        quiet = [value for value, seen in values if not seen]
        if is_enough(len(quiet), len(values)):
            off.append(centre(quiet) - 1)
    assert len(off) > 1990
    assert abs(sum(off) / len(off)) < 0.005


def busy(
    threads: tuple[int, ...],
    disturbs: Callable[[int, int], bool],
    cause: str,
    repeats: int = 30,
    best_by: str = "",
) -> Report:
    """A run of a program for which threads change nothing, beside work that slows trials; ``cause``
    is ``steal``, which every cell shows, or ``run_queue``, which only one thread shows.
    ``disturbs(block, threads)``: is this trial slowed?"""
    rules = Rules(repeats_min=repeats, repeats_max=repeats, redo_max=0, redo_share=0.0)
    study = small_study(rules, threads=threads)

    def place(spec: TrialSpec) -> tuple[int, int]:
        return int(spec.trial.split("/")[-2]), int(spec.roles[0].argv[1])

    def seconds(spec: TrialSpec, generator: random.Random) -> float:
        return generator.lognormvariate(0, 0.02) * (1.4 if disturbs(*place(spec)) else 1.0)

    def steal(spec: TrialSpec) -> int:
        return 10**9 if cause == "steal" and disturbs(*place(spec)) else 0

    def waited(spec: TrialSpec) -> float:
        block, number = place(spec)
        return 0.5 if cause == "run_queue" and number == 1 and disturbs(block, number) else 0.0

    store = Store()
    head = new_head(study, "normal", 1, "concurve run …")
    engine = FakeEngine(seconds, steal_of=steal, waited_of=waited)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id), best_by))


def test_a_sign_that_only_some_cells_can_show_favours_none_of_them() -> None:
    """A wait for a CPU is judged only where there is a CPU for each worker."""
    slow = random.Random(1)
    table = {(block, n): slow.random() < 0.4 for block in range(30) for n in (1, 64)}
    report = busy((1, 64), lambda block, n: table[block, n], "run_queue")
    speedup = report.cells[1].indicators["speedup"]
    assert report.cells[0].doubtful > 5
    assert speedup.n == 30
    assert speedup.in_doubt
    assert speedup.low is not None
    assert speedup.low < 1


def test_quiet_trials_in_different_blocks_leave_a_doubt() -> None:
    """Eleven of thirty trials of each cell are quiet, but only one block is so in both."""
    report = busy((1, 2), lambda block, n: block >= 11 if n == 1 else block < 20 - 1, "steal")
    speedup = report.cells[1].indicators["speedup"]
    assert speedup.n == 30
    assert speedup.in_doubt
    assert "the greatest speed-up" not in sentences(report, "answer")
    for cell in report.cells:
        figure = cell.indicators["wall_seconds"]
        assert figure.low is not None
        assert figure.high is not None
        assert figure.high < 2 * figure.low


def test_a_few_trials_in_doubt_do_not_move_a_median() -> None:
    """Each of eight cells has one disturbed trial of five, each in another block."""
    threads = tuple(range(1, 9))
    report = busy(threads, lambda block, n: block == n % 5, "steal", repeats=5)
    for cell in report.cells:
        figure = cell.indicators["wall_seconds"]
        assert not figure.in_doubt
        assert figure.n == 5
        assert figure.value == pytest.approx(1, rel=0.06)


def test_a_comparison_of_figures_in_doubt_is_undecided() -> None:
    """Also where they differ greatly: the machine may have made the difference."""
    report = busy((1, 2), lambda block, n: n == 2 or block % 2 == 0, "steal")
    compared = compare_levels(report, "threads")
    (cell,) = compared.cells
    assert cell.verdict == "undecided"
    assert "needs quiet trials. Run again: --wait-quiet 5m" in compared.advice[-1]
    assert "the machine was not quiet" in cell.note
    assert cell.ratio is not None
    assert cell.ratio.in_doubt


def test_that_no_cell_is_faster_is_not_said_of_figures_in_doubt() -> None:
    report = busy((1, 2), lambda block, n: n == 2, "steal")
    answer = sentences(report, "answer")
    assert "significantly faster" not in answer
    assert answer.startswith("No setting is recommended: the machine was not quiet. The figures ")
    assert "threads=1. 2 threads seem 0.71× as fast as 1 [" in answer


def test_the_ratio_in_doubt_is_that_of_the_setting_that_seems_best() -> None:
    """The medians and the ratios within blocks need not agree on which one is best."""
    rules = Rules(repeats_min=9, repeats_max=9, redo_max=0, redo_share=0.0)
    head = new_head(small_study(rules, threads=(1, 8, 16)), "normal", 1, "concurve run …")
    plan = plan_of(head)
    report = busy((1, 8, 16), lambda block, n: True, "steal", repeats=9)
    (best,) = report.best
    assert best.is_tentative
    best = msgspec.structs.replace(
        best, leader={"threads": 8}, as_good=({"threads": 16},), disagreement=None
    )
    times = Estimate(value=4.0, low=3.0, high=5.0, n=9).doubted((4.0,))
    cells = tuple(
        msgspec.structs.replace(
            cell,
            indicators={
                **cell.indicators,
                "speedup": msgspec.structs.replace(times, value=float(cell.parameters["threads"])),
            },
        )
        for cell in report.cells
    )
    found = list(greatest(plan, cells, lambda *_: None, "", (best,)))
    said = " ".join(answers_of(plan, found, (best,))[0])
    assert (
        "8 threads seem best by their median, 8.00× as fast as 1" in said
        and "16 threads seem" not in said
    )


def test_the_best_figure_in_doubt_is_named_and_not_the_smallest_that_may_be_as_good() -> None:
    report = busy((4, 2, 1), lambda block, n: True, "steal")
    assert report.best[0].leader != {"threads": 1}, "or this tests nothing"
    answer = sentences(report, "answer")
    leader = report.best[0].leader["threads"]
    assert f"{leader} threads seem best" in answer, answer
    assert " may be as good." in answer
    assert "point to" not in answer


def test_figures_in_doubt_are_not_mixed_in_a_sentence() -> None:
    """The setting that is best by one figure, and a speed-up by another."""
    report = busy((1, 2, 4), lambda block, n: True, "steal", best_by="cpu_seconds")
    answer = sentences(report, "answer")
    (fast,) = (part for part in answer.split(". ") if "× as fast" in part)
    assert "best" not in fast and "point to" not in fast


#: As nginx on a busy machine: one worker is the fastest, and others hit it hardest.
NGINX = {1: (100 / 78, 3.0), 2: (100 / 65, 3.0), 4: (100 / 61, 1.05)}


def unequal(quiet: dict[int, set[int]], cause: str = "steal", blocks: int = 12) -> Report:
    """A run whose trials are disturbed but in the ``quiet`` blocks of each level."""
    rules = Rules(repeats_min=blocks, repeats_max=blocks, redo_max=0, redo_share=0.0)

    def is_quiet(spec: TrialSpec) -> bool:
        return int(spec.trial.split("/")[-2]) in quiet[int(spec.roles[0].argv[1])]

    def seconds(spec: TrialSpec, generator: random.Random) -> float:
        alone, slower = NGINX[int(spec.roles[0].argv[1])]
        return alone * generator.lognormvariate(0, 0.01) * (1.0 if is_quiet(spec) else slower)

    def steal(spec: TrialSpec) -> int:
        return 0 if is_quiet(spec) or cause != "steal" else 10**9

    def waited(spec: TrialSpec) -> float:
        is_seen = cause == "run_queue" and spec.roles[0].argv[1] != "4"
        return 0.5 if is_seen and not is_quiet(spec) else 0.0

    store = Store()
    head = new_head(small_study(rules, threads=tuple(NGINX)), "normal", 1, "concurve run …")
    engine = FakeEngine(seconds, steal_of=steal, waited_of=waited)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


HALVES = {1: set(range(6, 12)), 2: set(range(6)), 4: {0, 1, 2, 9, 10, 11}}


def test_the_answer_goes_by_enough_undisturbed_trials_that_point_elsewhere() -> None:
    """Half of the trials of each level, in no common block; by all trials four workers are best."""
    report = unequal(HALVES)
    values = {cell.parameters["threads"]: cell.indicators["wall_seconds"] for cell in report.cells}
    assert min(values, key=lambda level: values[level].value) == 4, "or this tests nothing"
    (best,) = report.best
    assert best.recommended is None and best.disagreement is not None
    assert (best.leader, best.disagreement.every) == ({"threads": 1}, {"threads": 4})
    assert sentences(report, "answer") == (
        "No setting is recommended: the machine was not quiet. By the undisturbed trials alone "
        "threads=1 seems best; all trials point to threads=4."
    )


def test_few_undisturbed_trials_that_point_elsewhere_are_said_to_disagree_with_their_number() -> (
    None
):
    report = unequal({1: {0, 1, 2}, 2: {3, 4, 5, 6}, 4: {7, 8, 9}})
    assert re.fullmatch(
        r"No setting is recommended: the machine was not quiet\. The undisturbed trials, 3 or more "
        r"of each, point to threads=1, not to threads=4 as all trials do\. The undisturbed "
        r"trials alone \(wall time\): threads=1 1\.2\d to 1\.\d\d s \(3 trials\), 2 1\.5\d to "
        r"1\.5\d s \(4\), 4 1\.6\d to 1\.6\d s \(3\): too few to decide\. Run again: "
        r"--wait-quiet 5m; concurve doctor says why\.",
        sentences(report, "answer"),
    ), sentences(report, "answer")


@pytest.mark.parametrize(
    ("quiet", "is_told"),
    [({1: {0}, 2: {2}, 4: {4}}, False), ({1: {0, 1}, 2: {2}, 4: {4, 5}}, True)],
)
def test_what_one_or_two_undisturbed_trials_point_to_is_not_told(
    quiet: dict[int, set[int]], is_told: bool
) -> None:
    """From two trials on, they are told with their number."""
    report = unequal(quiet)
    (best,) = report.best
    assert best.disagreement is not None, "or this tests nothing"
    answer = sentences(report, "answer")
    assert "point to threads=1" not in answer
    assert "point to" not in doubt_sentences(best, None, "")
    assert ("The undisturbed trials alone (wall time): threads=1 1." in answer) == is_told
    if is_told:
        (said,) = (it for it in answer.split(". ") if it.startswith("The undisturbed trials alone"))
        assert "(2 trials), 4 " in said, "a single trial has no range"


def test_undisturbed_trials_are_told_with_the_values_that_they_have() -> None:
    """They are no figures: a range of all, without an interval."""
    report = unequal({1: {0, 1, 2}, 2: {3, 4}, 4: set()})
    (best,) = report.best
    for found in best.ranges:
        level = found.setting["threads"]
        own = [
            dot.values["wall_seconds"]
            for dot in report.dots
            if report.cells[dot.cell].parameters["threads"] == level
            and dot.block in {1: {0, 1, 2}, 2: {3, 4}}[int(level)]
        ]
        assert (found.low, found.high, found.trials) == (min(own), max(own), len(own))
    assert [found.trials for found in best.ranges] == [3, 2]


def test_undisturbed_trials_of_a_sign_that_only_some_cells_show_are_not_gone_by() -> None:
    """Four threads on two CPUs never show that they waited for others."""
    report = unequal({**HALVES, 4: set()}, "run_queue")
    answer = sentences(report, "answer")
    assert "By the undisturbed trials alone" not in answer
    assert "point to threads=1, not to threads=4 as all trials do. The undisturbed trials" in answer


def test_undisturbed_trials_that_point_to_the_same_setting_change_nothing() -> None:
    alike = busy((4, 2, 1), lambda block, n: block > 0, "steal")
    assert alike.best[0].disagreement is None
    assert "undisturbed" not in sentences(alike, "answer")


def test_no_limit_is_named_of_a_cell_that_explain_says_is_in_doubt() -> None:
    """What a terminal says of a cell is what ``explain`` does, and it names the cell."""
    rules = Rules(repeats_min=6, repeats_max=6, redo_max=0, redo_share=0.0)
    store = Store()
    head = new_head(small_study(rules), "normal", 1, "concurve sweep …")
    engine = FakeEngine(steal_of=lambda spec: 10**9 if spec.trial.split("/")[-2] != "0" else 0)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    row = store.find_run(head.id)
    found = figures_of(store, row, brief=True)
    (only,) = found.limits
    limit = only.cell
    (same,) = (
        cell for cell in explain_run(store, row).cells if cell.parameters == limit.parameters
    )
    assert limit == same
    assert same.cause == "in doubt"
    line = line_of(limit).text
    assert line.startswith("no cause is named: the machine was not quiet during 5 of 6 trials of ")
    assert "threads=4" in line


@pytest.mark.parametrize(
    ("levels", "is_told"), [({"threads": (1, 4)}, True), ({"version": ("old", "new")}, False)]
)
def test_no_limit_is_looked_for_in_doubt_where_versions_are_compared(
    levels: dict[str, Any], is_told: bool
) -> None:
    """Which version is faster was asked, and the warning tells of the doubt."""
    rules = Rules(repeats_min=6, repeats_max=6, redo_max=0, redo_share=0.0)
    store = Store()
    head = new_head(small_study(rules, **levels), "normal", 1, "concurve sweep …")
    engine = FakeEngine(steal_of=lambda _: 10**9)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    found = figures_of(store, store.find_run(head.id), brief=True)
    assert [limit.cell.cause for limit in found.limits] == ["in doubt"]
    document = brief_run_document(found.findings, limits=found.limits)
    shown = " ".join(line.plain for line in lines(document, 900))
    assert ("no cause is named" in shown) == is_told

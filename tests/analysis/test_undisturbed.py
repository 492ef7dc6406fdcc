"""Some settings are in doubt and others are not: which of the latter is best is said, and that the
former are not judged."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from concurve.analysis.run import trial_findings_of
from concurve.analysis.run.best import _greater_as_good
from concurve.analysis.sentences.answers import answers_of
from concurve.definition.study import Rules
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding, Undisturbed
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.plan import make_plan
from concurve.report.json.best import best_overall
from concurve.report.sections.best import doubt_sentences
from concurve.store import Store
from concurve.terms import Level
from concurve.wire.spec import TrialSpec
from tests.helpers.counts import at_most, few_or_many
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

RUNS = 40
every_count = pytest.mark.parametrize("runs", few_or_many(4, RUNS))
RULES = Rules(repeats_min=10, repeats_max=10, redo_max=0, redo_share=0.0)

#: True times of numbers of clients, none of which is one: what is taken from several has no bound.
PEAK = {2: 4.0, 4: 1.21, 8: 1.0, 16: 1.3, 32: 1.6}
FLAT = {2: 1.0, 4: 1.0, 8: 1.0, 16: 1.0, 32: 1.0}
CLOSE = {2: 2.0, 4: 1.03, 8: 1.0, 16: 1.03, 32: 1.5}
CURVES = {"peak": PEAK, "flat": FLAT, "close": CLOSE}

#: Which of them are disturbed.
SHAPES = {
    "the base alone": (2,),
    "a middle level": (4,),
    "the best level": (8,),
    "the greatest level": (32,),
    "two levels": (2, 32),
    "all but one": (2, 4, 16, 32),
    "all": (2, 4, 8, 16, 32),
}


def planted(
    truth: Mapping[int, float],
    disturbed: tuple[int, ...],
    seed: int,
    slows: tuple[float, float] = (0.0, 1.2),
    noise: float = 0.03,
    share: float = 2 / 3,
) -> TrialFindings:
    """A run of these true times. The hypervisor takes 5 to 30 % of the time of this ``share`` of
    the trials of the cells ``disturbed``, which costs them ``slows`` times that; below 0, what was
    taken makes a trial faster, as where fewer threads contend for a lock."""

    def drawn(spec: TrialSpec) -> tuple[float, float]:
        """The time of a trial, and what was taken of it, in seconds."""
        rng = random.Random(f"{seed}/{spec.trial.partition('/')[2]}")
        clients = int(spec.roles[0].argv[1])
        quiet = truth[clients] * rng.lognormvariate(0, noise)
        if clients not in disturbed or rng.random() > share:
            return quiet, 0.0
        taken = quiet * rng.uniform(0.05, 0.3)
        return quiet + taken * rng.uniform(*slows), taken

    store = Store()
    head = new_head(small_study(RULES, clients=tuple(truth)), "normal", seed, "concurve sweep …")
    engine = FakeEngine(
        lambda spec, _: drawn(spec)[0], steal_of=lambda spec: round(drawn(spec)[1] * 1e9)
    )
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


def answers(found: TrialFindings) -> str:
    return " ".join(item.sentence for item in found.sentences if item.kind == "answer")


@pytest.mark.simulation
@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("shape", SHAPES)
@every_count
def test_what_is_said_of_the_settings_not_in_doubt_is_true(
    shape: str, curve: str, runs: int
) -> None:
    """In all but 5 % of the runs the best of them is among those that are named, the one to use is
    nearly as good, and the interval holds its ratio to the next. None in doubt is named, and
    nothing is recommended over all settings."""
    truth, disturbed = CURVES[curve], SHAPES[shape]
    wrong = said = withheld = 0
    for seed in range(runs):
        best = planted(truth, disturbed, seed).best_overall
        assert best is not None
        found = best.undisturbed
        # All of a few may be read as quiet by chance.
        if best.recommended is not None:
            wrong += truth[int(best.recommended["clients"])] > 1.05 * min(truth.values())
        withheld += best.is_tentative
        if found is None:
            continue
        said += 1
        assert best.recommended is None
        # By chance a disturbed setting has few disturbed trials, and is not in doubt.
        doubted = {setting["clients"] for setting in found.doubted}
        assert doubted <= set(disturbed)
        assert not {setting["clients"] for setting in found.best.settings} & doubted
        quiet = sorted(time for clients, time in truth.items() if clients not in doubted)
        named = [truth[int(setting["clients"])] for setting in found.best.settings]
        used = found.best.recommended
        is_far = used is not None and truth[int(used["clients"])] > 1.05 * quiet[0]
        ratio = found.to_next
        is_off = False
        if ratio is not None:
            assert ratio.low is not None
            assert ratio.high is not None
            is_off = not ratio.low <= quiet[1] / named[0] <= ratio.high
        wrong += min(named) > quiet[0] or is_far or is_off
    assert wrong <= at_most(0.05, runs)
    if len(disturbed) == len(truth):
        assert not said
    elif curve == "peak" and len(disturbed) < len(truth) - 1:
        assert said >= withheld - at_most(0.1, withheld)


def test_the_best_of_the_others_is_said_where_the_base_is_in_doubt() -> None:
    said = answers(planted(PEAK, (2,), 1))
    assert said == (
        "Of the settings not in doubt, use 8 clients: 1.20× as fast as 4 [1.17, 1.25], the next "
        "best. clients=2 seems worse, but is in doubt."
    )


THREE = {1: 2.0, 2: 1.0, 4: 1.0}


def test_of_two_settings_not_in_doubt_one_ratio_is_told_and_a_greater_one_beside_it() -> None:
    for seed in range(20):
        found = planted(THREE, (4,), seed, (0.0, 0.4))
        best = found.best_overall
        assert best is not None
        if best.recommended is None and best.leader == {"clients": 2} and best.as_good:
            break
    else:
        pytest.fail("no run of the kind that is meant")
    assert best.undisturbed is not None
    assert best.undisturbed.may_be_as_good == ({"clients": 4},)
    assert re.fullmatch(
        r"Of the settings not in doubt, use 2 clients: (\d\.\d+)× as fast as 1 \[\S+, \S+\]\. "
        r"4 is in doubt, and may be as good\.",
        answers(found),
    )


@pytest.mark.parametrize(
    ("leader", "behind", "greater"),
    [
        ({"n": 2}, [1], ({"n": 4}, {"n": 8})),
        ({"n": 2}, [1, 8], ({"n": 4},)),
        ({"n": 2}, [8], ()),  # a smaller one may be as good
        ({"n": 4}, [1, 8], ()),  # one in doubt has the best figure
    ],
)
def test_a_smaller_setting_in_doubt_or_a_better_figure_forbids_to_use_another(
    leader: dict[str, Level], behind: list[int], greater: tuple[dict[str, Level], ...]
) -> None:
    found = BestFinding(
        indicator="x", label="x", group={}, factors=("n",), settings=({"n": 2},), leader=leader,
        compared=5, behind=tuple({"n": n} for n in behind),
    )  # fmt: skip
    among = msgspec.structs.replace(found, leader={"n": 2}, recommended={"n": 2})
    doubted: list[dict[str, Level]] = [{"n": 1}, {"n": 4}, {"n": 8}]
    assert _greater_as_good(found, among, doubted) == greater
    words: list[dict[str, Level]] = [{"n": "b"}]
    assert _greater_as_good(found, among, words) == (), "no word is greater"


@pytest.mark.parametrize("slows", [(0.0, 1.2), (-1.5, -0.5)])
def test_of_a_setting_in_doubt_that_seems_best_it_is_said_that_it_is_in_doubt(
    slows: tuple[float, float],
) -> None:
    """Disturbance may make a setting better, too: nothing is to be used."""
    found = planted(PEAK, (8,), 3, slows)
    said = answers(found)
    assert re.fullmatch(
        r"No setting is recommended: the machine was not quiet\. Of the settings not in doubt, "
        r"4 clients are best: 1\.0\d× as fast as 16 \[1\.\d+, 1\.\d+\], the next best\. 8 is in "
        r"doubt\.",
        said,
    ), said
    assert found.best_overall is not None
    assert found.best_overall.undisturbed is not None
    assert not found.best_overall.undisturbed.seem_worse


def test_one_statement_says_which_of_the_settings_not_in_doubt_is_better() -> None:
    """All trials may not tell 8 from 4, and point to one of them. Those of the settings that are
    not in doubt do: in Python, too."""
    told = 0
    for seed in range(30):
        found = planted({2: 1.0, 4: 0.94, 8: 1.0}, (2,), seed, (0.0, 0.2))
        best, said = found.best_overall, answers(found)
        assert best is not None
        rest = best.undisturbed
        if rest is None or rest.is_to_use or "Of the settings not in doubt" not in said:
            continue
        told += 1
        for text in (said, doubt_sentences(best, None, "")):
            assert "best" in text
            assert not re.search("seems? best|point to|may be as good", text), text
    assert told, "or this tests nothing"


@pytest.mark.parametrize(
    ("low", "are_to_use", "said"),
    [
        (1.01, False, "8 clients are best: 1.05× as fast as 4 [1.01, 1.20], the next best."),
        (0.98, False, "8 clients seem best: 1.05× as fast as 4 [0.98, 1.20], the next best, which "
         "may be as good."),
        (0.98, True, "use 8 clients: 1.05× as fast as 4 [0.98, 1.20], the next best, which may be "
         "as good."),
    ],
)  # fmt: skip
def test_the_next_best_may_be_as_good_where_the_printed_interval_holds_1(
    low: float, are_to_use: bool, said: str
) -> None:
    report = planted(PEAK, (2,), 1)
    best = report.best_overall
    assert best is not None and best.undisturbed is not None
    ratio = Estimate(value=1.05, low=low, high=1.2, n=10)
    rest = msgspec.structs.replace(best.undisturbed, to_next=ratio, seem_worse=are_to_use)
    told = msgspec.structs.replace(best, undisturbed=rest)
    plan = make_plan(small_study(RULES, clients=tuple(PEAK)), "normal", 1)
    ((answer,), _, _) = answers_of(plan, [], (told,), "wall_seconds")
    assert f"Of the settings not in doubt, {said}" in answer, answer


@pytest.mark.parametrize("disturbed", [(2, 4, 16, 32), (2, 4, 8, 16, 32)])
def test_fewer_than_two_settings_that_are_not_in_doubt_are_not_compared(
    disturbed: tuple[int, ...],
) -> None:
    found = planted(PEAK, disturbed, 1)
    assert found.best_overall is not None
    assert found.best_overall.undisturbed is None
    assert "not in doubt" not in answers(found)


def test_python_and_json_have_the_settings_in_doubt_apart() -> None:
    found = planted(PEAK, (2,), 1)
    best = found.best_overall
    assert best is not None
    assert "Of the settings not in doubt, use clients=8. Again." in doubt_sentences(
        best, None, "Again."
    )
    whole = best_overall(found)
    assert whole is not msgspec.UNSET
    assert whole.recommended is msgspec.UNSET
    assert msgspec.to_builtins(whole.undisturbed) == {
        "levels": [8],
        "in_doubt": [2],
        "recommended": 8,
        "use": 8,
    }


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"recommended": None}, "use n=2 or n=4."),
        ({"recommended": {"n": 2}}, "use n=2; 1 other may be as good."),
    ],
)
def test_python_is_told_of_a_few_of_the_settings_not_in_doubt(
    fields: dict[str, Any], said: str
) -> None:
    best = BestFinding(
        indicator="x", label="x", group={}, factors=("n",), settings=({"n": 2}, {"n": 4}),
        leader={"n": 4}, compared=3, **fields,
    )  # fmt: skip
    rest = Undisturbed(doubted=({"n": 1},), best=best, seem_worse=True)
    withheld = msgspec.structs.replace(
        best, recommended=None, doubt="why", is_tentative=True, undisturbed=rest
    )
    assert f"Of the settings not in doubt, {said}" in doubt_sentences(withheld, None, "")

"""What answers the question of a campaign: which level of a factor is best, and what turns that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from concurve.analysis.campaign.answers import _answer, _claim, _figure, answers
from concurve.analysis.campaign.compared import Compared, Setting, compared
from concurve.definition.campaign import Answer, Campaign
from concurve.definition.study import Hooks, Role
from concurve.estimate import Estimate
from concurve.findings.campaign import StudyFindings
from concurve.findings.claims import ClaimFinding, VerdictName
from concurve.findings.run import TrialFindings
from concurve.store import Store
from concurve.terms import Level
from concurve.wire.record import HookRecord, Output
from concurve.wire.spec import TrialSpec
from tests.analysis.message_kinds import KINDS, THREE, Recording, as_json, stored
from tests.helpers.fakes import small_study
from tests.helpers.made import made_run

NAMES = {"a": "threads", "b": "processes"}
MODE = Answer(study="modes", factor="mode", names=NAMES)

GAIN = Estimate(value=2.0, low=1.9, high=2.1, unit="")

Seconds = Callable[..., float]


def run_of(seconds: Seconds, cv: float = 0.01, **factors: Any) -> TrialFindings:
    return made_run(Store(), seconds, cv=cv, mode=("a", "b"), **factors)


def study(run: TrialFindings | None, name: str = "modes") -> StudyFindings[TrialFindings]:
    return StudyFindings(
        name=name, question="?", test_case=None, state="complete", reason="", run=run
    )


def said(asked: Answer, run: TrialFindings) -> list[str]:
    """The sentences on a campaign of one study."""
    campaign = Campaign(name="c", question="?", studies=(), answer=(asked,))
    found = answers(campaign, [study(run)])
    assert found.study == "modes"
    assert {item.kind for item in found.said} == {"answer"}
    return [item.sentence for item in found.said]


def test_one_level_that_is_best_everywhere() -> None:
    first, hangs = said(MODE, run_of(lambda mode, _: 2.0 if mode == "a" else 1.0, clients=(1, 8)))
    assert first.startswith("Use processes: best by wall time in all 2 settings, from ")
    assert "as good as threads (clients=" in first
    assert hangs == "It does not hang on clients."


def test_a_factor_that_turns_the_answer_is_named() -> None:
    def seconds(mode: str, clients: str, size: str) -> float:
        return 2.0 if (mode == "a") == (int(clients) < 8) else 1.0

    first, hangs = said(MODE, run_of(seconds, clients=(1, 2, 8), size=(10, 20)))
    assert (
        first == "It depends: of 6 settings, processes in 4 and threads in 2 are best by wall time."
    )
    assert hangs == ("It hangs on clients: processes with clients=1 and 2; threads with clients=8.")


def test_a_level_at_which_now_one_and_now_the_other_is_best_is_not_one_where_none_is() -> None:
    """The answer turns with clients, and at 4 of them with the size, too; at 16 nothing differs."""

    def seconds(mode: str, clients: str, size: str) -> float:
        is_slow = {"1": "a", "2": "a", "4": "a" if size == "10" else "b", "8": "b"}.get(clients)
        return 2.0 if mode == is_slow else 1.0

    _, hangs = said(MODE, run_of(seconds, cv=0.05, clients=(1, 2, 4, 8, 16), size=(10, 20)))
    assert hangs == (
        "It hangs on clients: processes with clients=1 and 2; threads with clients=8; now one and "
        "now the other with clients=4; neither with clients=16."
    )


def test_a_setting_in_doubt_is_not_one_where_they_cannot_be_told_apart() -> None:
    def answer(*best: str | None) -> str:
        settings = tuple(
            Setting({"clients": place}, level, "a", GAIN if level else None, in_doubt=not level)
            for place, level in enumerate(best)
        )
        return _answer(MODE, Compared(("a", "b"), ("clients",), settings, "wall time"))

    assert "best by wall time in 1 of 2 settings. At most" in answer("b", None)
    assert answer("b", None).endswith(" 1 of 2 settings is in doubt: the machine was not quiet.")


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (1.0, "It makes no difference: threads and processes are alike by wall time in 2 of 3 "
         "settings, within 5 %."),
        (1.5, "Whether to use threads or processes cannot be said: they cannot be told apart by "
         "wall time in 2 of 3 settings."),
    ],
)  # fmt: skip
def test_a_setting_in_doubt_is_not_counted_among_those_that_are_alike(
    ratio: float, says: str
) -> None:
    known = Estimate(value=ratio, low=0.99, high=ratio * 1.01, unit="")
    settings = tuple(
        Setting({"clients": place}, None, "a", known, in_doubt=place == 0) for place in range(3)
    )
    found = _answer(MODE, Compared(("a", "b"), ("clients",), settings, "wall time"))
    assert found == f"{says} 1 of 3 settings is in doubt: the machine was not quiet."


def failed(run: TrialFindings, *wanted: dict[str, Level], **marks: Any) -> TrialFindings:
    """The run with the load of some cells failed, or with other marks."""
    marks = marks or {"load_failed": "failed responses: all 12,107"}
    cells = tuple(
        msgspec.structs.replace(cell, **marks)
        if any(levels.items() <= cell.parameters.items() for levels in wanted)
        else cell
        for cell in run.cells
    )
    return msgspec.structs.replace(run, cells=cells)


def halved(mode: str, *_: str) -> float:
    """Errors are fast: b is best also where it has nothing else."""
    return 2.0 if mode == "a" else 1.0


def test_a_level_whose_load_failed_is_not_compared_and_the_answer_says_where() -> None:
    run = run_of(halved, clients=(1, 8, 64))
    few = failed(run, {"mode": "b", "clients": 8}, {"mode": "b", "clients": 64})
    (first,) = said(MODE, few)
    assert first.startswith("Use processes: by wall time ")
    assert first.endswith(
        " as good as threads (clients=1). With clients=8 and 64 the load of processes failed."
    )
    (first,) = said(MODE, failed(run, {"mode": "b", "clients": 64}))
    assert "best by wall time in all 2 settings that are compared, from " in first
    assert first.endswith(". With clients=64 the load of processes failed.")
    (first,) = said(MODE, failed(run, {"clients": 64}))
    assert first.endswith(". With clients=64 the load of threads and processes failed.")
    (first,) = said(MODE, failed(run, {"mode": "b", "clients": 64}, status="skipped"))
    assert first.endswith(". With clients=64 the cell of processes was skipped.")


def test_where_nothing_is_left_to_compare_the_answer_says_why() -> None:
    """The study has figures: those of errors."""
    run = run_of(halved, clients=(1, 8, 64))
    none = (
        "Whether to use threads or processes cannot be said: no setting has two of them to compare."
    )
    assert said(MODE, failed(run, {"mode": "b"})) == [f"{none} The load of processes failed."]
    mixed = failed(run, {"mode": "b", "clients": 8}, {"mode": "a", "clients": 1}, {"clients": 64})
    assert said(MODE, mixed) == [
        f"{none} With clients=1 and 64 the load of threads failed. With clients=8 and 64 the load "
        "of processes failed."
    ]
    asked = Answer(study="modes", factor="mode", names=NAMES, where={"clients": 8})
    assert said(asked, failed(run, {"mode": "b"})) == [
        f"With clients=8: w{none[1:]} The load of processes failed."
    ]


def test_the_only_setting_that_is_compared_is_named() -> None:
    """Also where no level is best in it."""
    run = failed(run_of(lambda *_: 1.0, cv=0.0005, clients=(1, 8)), {"mode": "b", "clients": 8})
    assert said(MODE, run) == [
        "It makes no difference: threads and processes are alike by wall time with clients=1, "
        "within 5 %. With clients=8 the load of processes failed."
    ]


def test_settings_of_several_factors_that_are_not_compared_are_counted() -> None:
    run = run_of(halved, clients=(1, 8), size=(1, 2))
    some = failed(
        run, {"mode": "b", "clients": 1, "size": 2}, {"mode": "b", "clients": 8, "size": 1}
    )
    assert said(MODE, some)[0].endswith(". In 2 of 4 settings the load of processes failed.")
    some = failed(run, {"mode": "b", "clients": 8})
    assert said(MODE, some)[0].endswith(". With clients=8 the load of processes failed.")
    some = failed(run, {"mode": "b", "clients": 8, "size": 2})
    assert said(MODE, some)[0].endswith(". With clients=8 size=2 the load of processes failed.")


def test_a_setting_without_figures_is_none_in_which_a_level_is_best() -> None:
    run = run_of(halved, clients=(1, 8, 64))
    last = {cell.index for cell in run.cells if cell.parameters == {"mode": "b", "clients": 64}}
    dots = tuple(dot for dot in run.dots if dot.cell not in last)
    (first,) = said(MODE, msgspec.structs.replace(run, dots=dots))
    assert "in all 2 settings that are compared" in first
    assert first.endswith(". With clients=64 there are no figures of processes.")


@pytest.mark.parametrize(
    "kind", ["hook-that-set-no-level", "hosts-not-alike-so-no-setting", "fixed-time"]
)
def test_what_the_run_recommends_nothing_for_the_campaign_does_not_recommend(kind: str) -> None:
    run = KINDS[kind][0]()
    assert isinstance(run, TrialFindings)
    (factor,) = (item for item in run.factors if len(item.levels) > 1)
    doubt = run.best[0].doubt
    assert doubt and not run.best[0].is_open
    (first,) = said(Answer(study="modes", factor=factor.name), run)
    assert first.startswith(f"Whether to use {factor.name}=")
    assert first.endswith(f" cannot be said: {doubt}.")


@pytest.mark.parametrize(
    ("kind", "by", "is_withheld"),
    [
        ("fixed-time", "cpu_seconds", False),
        ("fixed-time", "rate_per_second", True),
        ("hosts-not-alike-so-no-setting", "cpu_seconds", True),
    ],
)
def test_that_wall_times_compare_no_settings_is_a_doubt_of_what_follows_from_them(
    kind: str, by: str, is_withheld: bool
) -> None:
    run = KINDS[kind][0]()
    assert isinstance(run, TrialFindings)
    (factor,) = (item for item in run.factors if len(item.levels) > 1)
    asked = Answer(study="modes", factor=factor.name, by=by)
    found = compared(run, asked)
    assert found is not None and bool(found.doubt) == is_withheld


def test_a_factor_that_was_not_set_is_a_doubt_of_its_own_levels_alone() -> None:
    """Also where it is a condition, whose levels no best setting compares."""
    printed = Output(bytes=18, head="ERR unknown option")

    def change(_: TrialSpec, record: dict[str, Any]) -> None:
        record["hooks"] = as_json([HookRecord(hook="prepare", stderr=printed)])

    study = msgspec.structs.replace(
        small_study(THREE, mode=("a", "b"), threads=(1, 2)),
        hooks=Hooks(prepare="set threads {threads}"),
        roles=(Role(name="target", command=("true",)),),
    )
    for conditions in ((), ("threads",)):
        run = stored(msgspec.structs.replace(study, conditions=conditions), Recording(change))
        mode, threads = (
            compared(run, Answer(study="modes", factor=name)) for name in ("mode", "threads")
        )
        assert mode is not None and mode.doubt == ""
        assert threads is not None and threads.doubt == "threads was probably not set"


def test_what_the_trials_leave_open_is_judged_in_each_setting() -> None:
    """A doubt that is the machine's, or of too few trials, is said of the settings that have it."""
    run = run_of(halved, clients=(1, 8))
    for change in ({"is_open": True}, {"is_tentative": True}):
        best = tuple(
            msgspec.structs.replace(item, doubt="it is so", recommended=None, **change)
            for item in run.best
        )
        assert said(MODE, msgspec.structs.replace(run, best=best))[0].startswith("Use processes: ")


def test_two_factors_that_turn_it_together() -> None:
    def seconds(mode: str, clients: str, size: str) -> float:
        return 2.0 if (mode == "a") == (clients == size) else 1.0

    _, hangs = said(MODE, run_of(seconds, clients=(1, 2), size=(1, 2)))
    assert hangs == "No single factor turns it: clients and size do together."


def test_where_it_cannot_be_told() -> None:
    def seconds(mode: str, clients: str) -> float:
        return 2.0 if mode == "a" and clients == "8" else 1.0

    first, hangs = said(MODE, run_of(seconds, clients=(1, 8)))
    assert first.startswith(
        "Use processes: best by wall time in 1 of 2 settings; in the other they cannot be told "
        "apart. At most it is "
    )
    assert first.endswith("] as good as threads (clients=8).")
    assert hangs == "It shows with clients=8, and cannot be told with clients=1."


@pytest.mark.parametrize(
    ("cv", "says"),
    [
        (0.0005, "It makes no difference: threads and processes are alike by wall time in all 2 "
         "settings, within 5 %."),
        (0.3, "Whether to use threads or processes cannot be said: they cannot be told apart by "
         "wall time in any of 2 settings."),
    ],
)  # fmt: skip
def test_no_level_is_better(cv: float, says: str) -> None:
    assert said(MODE, run_of(lambda *_: 1.0, cv=cv, clients=(1, 8))) == [says]


def test_a_single_setting() -> None:
    (first,) = said(MODE, run_of(lambda mode: 2.0 if mode == "a" else 1.0))
    assert first.startswith("Use processes: by wall time ")
    assert first.endswith("] as good as threads.")


def test_where_the_comparison_is_confined() -> None:
    asked = Answer(study="modes", factor="mode", where={"clients": 8})
    (first,) = said(asked, run_of(lambda mode, _: 2.0 if mode == "a" else 1.0, clients=(1, 8)))
    assert first.startswith("With clients=8: use mode=b: by wall time ")


def test_a_level_that_the_study_does_not_have_compares_nothing() -> None:
    run = run_of(lambda mode: 1.0)
    assert compared(run, Answer(study="modes", factor="mode", where={"clients": 9})) is None
    assert compared(run, Answer(study="modes", factor="other")) is None


def test_a_study_that_answers_in_place_of_the_first_is_named() -> None:
    run = run_of(lambda mode: 2.0 if mode == "a" else 1.0)
    asked = tuple(
        Answer(study=name, factor="mode", names=NAMES) for name in ("missing", "one", "two")
    )
    campaign = Campaign(name="c", question="?", studies=(), answer=asked)
    found = answers(campaign, [study(run, "two"), study(None, "missing"), study(run, "one")])
    assert found.study == "one"
    first, second, why = (item.sentence for item in found.said)
    assert first.startswith("One: Use processes: ")
    assert second.startswith("Two: Use processes: ")
    assert why.startswith("The study that answers the question first, missing, has no figures")
    assert found.said[-1].kind == "warning"


def test_the_first_study_answers_and_the_others_follow_by_name() -> None:
    run = run_of(lambda mode: 2.0 if mode == "a" else 1.0)
    asked = tuple(Answer(study=name, factor="mode", names=NAMES) for name in ("one", "two"))
    campaign = Campaign(name="c", question="?", studies=(), answer=asked)
    found = answers(campaign, [study(run, "two"), study(run, "one")])
    assert found.study == "one"
    first, second = (item.sentence for item in found.said)
    assert first.startswith("Use processes: ")
    assert second.startswith("Two: Use processes: ")


def test_without_an_entry_the_studies_answer_themselves() -> None:
    run = run_of(lambda mode, n: 1.0 / int(n), n=(1, 2))
    campaign = Campaign(name="c", question="?", studies=())
    found = answers(campaign, [study(run)])
    own = [item.sentence for item in run.sentences if item.kind == "answer"]
    assert found.said[0].sentence == own[0]


def test_without_an_entry_no_study_answers_for_the_campaign() -> None:
    run = run_of(lambda mode, n: 1.0 / int(n), n=(1, 2))
    campaign = Campaign(name="c", question="?", studies=())
    found = answers(campaign, [study(run, "one"), study(None, "none"), study(run, "two")])
    own = next(item.sentence for item in run.sentences if item.kind == "answer")
    *said, why = found.said
    assert [item.sentence for item in said] == [f"One: {own}", f"Two: {own}"]
    assert why.kind == "warning" and "[[answer]]" in why.sentence


@pytest.mark.parametrize(
    ("says", "shown"),
    [
        ("It is so. [depth={depth} cpu={cpu}]", "It is so"),
        ("It is so. [cpu={cpu}]", "It is so"),
        ("It is so [as was said].", "It is so [as was said]"),
        ("It is so. [fork-join]", "It is so. [fork-join]"),
        ("It (a) is so (28 s against 25 s). [cpu={cpu}]", "It (a) is so"),
    ],
)
def test_a_claim_is_said_without_the_setting_of_its_first_verdict(says: str, shown: str) -> None:
    verdicts: tuple[tuple[int, VerdictName], ...] = ((0, "refuted"), (9, "supported"))
    found = [
        ClaimFinding(
            id=f"{depth}-{cpu}", says=says.format(depth=depth, cpu=cpu), source="", kind="ratio",
            verdict=verdict, reason="", claim="c", setting={"depth": depth, "cpu": cpu},
        )
        for depth in (1, 4)
        for cpu, verdict in verdicts
    ]  # fmt: skip
    assert list(_claim(found)) == [f"{shown}: refuted with cpu=0; supported with cpu=9."]


def test_a_small_difference_is_one_in_print() -> None:
    """An interval that leaves out 1 does so as it is written."""
    assert _figure(Estimate(value=1.004, low=1.002, high=1.006)) == "1.004× [1.002, 1.006]"
    assert _figure(GAIN) == "2.00× [1.90, 2.10]"

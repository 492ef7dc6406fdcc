"""Blocked time by place: stacks, flame graphs, and what other tools read."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from concurve.explain.stacks import UNKNOWN, blocked_stacks
from concurve.findings.explanation import CellExplanation, Explanation, WaitSite
from concurve.findings.several import BlockedDifference
from concurve.findings.stacks import (
    MERGED,
    BlockedStack,
    Frame,
    difference_ns,
    flames,
    without_lines,
)
from concurve.report.charts.blocked import blocked, blocked_differences
from concurve.report.charts.image import to_svg
from concurve.report.flames import to_collapsed, to_firefox


def site(name: str, readings: int, **more: Any) -> WaitSite:
    given: dict[str, Any] = {
        "name": name,
        "function": name,
        "primitive": "mutex",
        "module": "/opt/app",
        "readings": readings,
        "share": 0.0,
        "threads": 2,
        "operation": "pthread_mutex_lock",
    }
    return WaitSite(**(given | more))


ADD = site("Table::add", 60, line=7, lock="table_mutex", callers=("work(int)", "main"))
DROP = site("Table::drop", 20, callers=("work(int)", "main"))


def cell(threads: int, stacks: Sequence[BlockedStack], base: int | None = None) -> CellExplanation:
    return CellExplanation(
        parameters={"threads": threads},
        cause="lock",
        evidence="",
        index=threads,
        base=None if base is None else {"threads": base},
        shares={"cpu": 0.5, "futex": 0.5},
        stacks=tuple(stacks),
    )


def explanation(*cells: CellExplanation) -> Explanation:
    return Explanation(
        run="r", study="s", factors=("threads",), work="threads", operation="a run", cells=cells
    )


# -- stacks -----------------------------------------------------------------------------------


def test_the_time_of_locks_is_divided_by_the_readings_of_places() -> None:
    found = blocked_stacks([ADD, DROP], {"futex": 1000.0, "disk": 50.0, "network": 0.0}, 20)
    assert {stack.frames: stack.ns for stack in found} == {
        ("locks", "main", "work", "Table::add:7", "pthread_mutex_lock", "[table_mutex]"): 600.0,
        ("locks", "main", "work", "Table::drop", "pthread_mutex_lock"): 200.0,
        ("locks", UNKNOWN): 200.0,
        ("disk",): 50.0,
    }


def test_without_places_a_kind_is_a_stack_of_its_own() -> None:
    assert blocked_stacks([], {"futex": 7.0}, 0) == (BlockedStack(("locks",), 7.0),)


def test_locks_of_files_have_their_own_time() -> None:
    file = site("save", 5, primitive="file_lock", operation="flock")
    found = {stack.frames[0]: stack.ns for stack in blocked_stacks(
        [ADD, file], {"futex": 10.0, "file_lock": 3.0}, 0)}  # fmt: skip
    assert found == {"locks": 10.0, "locks of files": 3.0}


def test_stacks_add_up_to_the_blocked_time() -> None:
    rng = random.Random(5)
    for _ in range(100):
        sites = [site(f"f{number}", rng.randint(1, 50), callers=(rng.choice("ab"),))
                 for number in range(rng.randint(0, 6))]  # fmt: skip
        kinds = {kind: rng.choice([0.0, rng.uniform(1, 1e6)]) for kind in ("futex", "disk", "poll")}
        found = blocked_stacks(sites, kinds, rng.randint(0, 30))
        assert sum(stack.ns for stack in found) == pytest.approx(sum(kinds.values()))
        assert len({stack.frames for stack in found}) == len(found)


# -- flame graphs -----------------------------------------------------------------------------


def stacks(*pairs: tuple[str, float]) -> list[BlockedStack]:
    return [BlockedStack(tuple(path.split("/")), ns) for path, ns in pairs]


def test_frames_stand_on_their_callers_largest_first() -> None:
    found = flames(stacks(("a/x", 10), ("b", 60), ("a/y", 30)))
    assert [(it.path, it.start_ns, it.ns) for it in found] == [
        (("b",), 0, 60),
        (("a",), 60, 40),
        (("a", "y"), 60, 30),
        (("a", "x"), 90, 10),
    ]


def test_small_frames_are_merged_into_one() -> None:
    found = flames(stacks(("a", 96), ("b/c", 2), ("d", 2)), share_min=0.03)
    assert [(it.name, it.ns, it.is_merged) for it in found] == [("a", 96, False), (MERGED, 4, True)]
    # One alone would not become smaller.
    assert [it.name for it in flames(stacks(("a", 98), ("b", 2)), share_min=0.03)] == ["a", "b"]


def test_deep_stacks_end_at_the_greatest_depth() -> None:
    deep = stacks(("/".join("abcdefgh"), 1.0))
    assert [it.name for it in flames(deep, depth_max=3)] == ["a", "b", "c"]


def test_frames_carry_the_time_of_the_other_cell() -> None:
    found = flames(stacks(("a/x", 10), ("b", 5)), stacks(("a/x", 4), ("a/z", 1)))
    assert {it.name: it.before_ns for it in found} == {"a": 5, "x": 4, "b": 0}


def test_two_flame_graphs_have_the_same_order() -> None:
    one, other = stacks(("a", 10), ("b", 1), ("c", 3)), stacks(("a", 1), ("b", 30), ("c", 3))
    orders = [[it.name for it in flames(*pair)] for pair in ((one, other), (other, one))]
    assert orders == [["b", "a", "c"]] * 2
    # What is small here is merged wherever it stands there.
    found = flames(one, stacks(("b", 30), ("c", 30)), share_min=0.25)
    assert [(it.name, it.ns, it.before_ns) for it in found] == [("a", 10, 0), (MERGED, 4, 60)]


def test_stacks_differ_by_what_each_takes_more_or_less() -> None:
    one = stacks(("a/x", 10), ("b", 5))
    assert difference_ns(one, one) == 0
    assert difference_ns(one, stacks(("a/x", 4), ("a/z", 1))) == 6 + 1 + 5
    assert difference_ns(one, []) == difference_ns([], one) == 15


def test_stacks_by_functions_have_no_lines() -> None:
    lines = stacks(("locks/main/add:7/lock", 3), ("locks/main/add:19/lock", 4), ("a::b/::7", 1))
    assert without_lines(lines) == tuple(stacks(("locks/main/add/lock", 7), ("a::b/::7", 1)))


def test_every_flame_graph_is_one() -> None:
    """Frames of a row do not overlap, each lies on its caller, and nothing is lost."""
    rng = random.Random(11)
    for _ in range(200):
        paths = {
            "/".join(rng.choice("abcd") for _ in range(rng.randint(1, 5)))
            for _ in range(rng.randint(1, 12))
        }
        made = stacks(*((path, rng.uniform(0.1, 100)) for path in paths))
        share = rng.choice([0.0, 0.02, 0.2])
        found = flames(made, share_min=share)
        whole = sum(stack.ns for stack in made)
        assert sum(it.ns for it in found if it.depth == 0) == pytest.approx(whole)
        by_path = {it.path: it for it in found}
        for frame in found:
            if frame.depth:
                caller = by_path[frame.path[:-1]]
                assert caller.start_ns <= frame.start_ns + 1e-6
                assert frame.start_ns + frame.ns <= caller.start_ns + caller.ns + 1e-6
        for depth in range(5):
            row = sorted((it for it in found if it.depth == depth), key=lambda it: it.start_ns)
            for left, right in pairwise(row):
                assert left.start_ns + left.ns <= right.start_ns + 1e-6


# -- in the report ----------------------------------------------------------------------------


BASE = cell(1, blocked_stacks([DROP], {"futex": 100.0}, 0))
SLOW = cell(2, blocked_stacks([ADD, DROP], {"futex": 1000.0}, 20), base=1)


def test_each_cell_with_places_has_a_chart_with_a_text() -> None:
    none = cell(4, [BlockedStack(("disk",), 9.0)])
    charts = blocked(explanation(BASE, SLOW, none))
    assert [chart.title for chart in charts] == [
        "Where blocked time goes, threads=1",
        "Where blocked time goes, threads=2",
    ]
    assert "locks → main → work → Table::add:7 → pthread_mutex_lock → [table_mutex]: 60 %" in (
        charts[1].alternative
    )
    assert "how that differs from the base" in charts[1].alternative
    assert "base" not in charts[0].alternative


def test_a_flame_graph_is_drawn_with_its_names_and_changes() -> None:
    drawn = to_svg(blocked(explanation(BASE, SLOW))[1])
    assert "Table::add:7" in drawn and "more than in the base" in drawn
    assert "<script" not in drawn and "http" not in drawn.replace("http://www.w3.org", "")


def test_the_flame_graphs_of_a_run_have_one_scale_and_say_once_how_to_read_them() -> None:
    charts = blocked(explanation(BASE, SLOW))
    domains = [chart.spec.to_dict()["layer"][0]["encoding"]["x"]["scale"] for chart in charts]
    assert domains[0] == domains[1]
    assert charts[0].remarks and not charts[1].remarks


def test_hostile_names_stay_text() -> None:
    evil = [BlockedStack(("locks", "<script>alert(1)</script>\x1b[2J"), 50.0)]
    drawn = to_svg(blocked(explanation(cell(1, evil)))[0])
    assert "<script>" not in drawn and "\x1b" not in drawn


# -- two runs ---------------------------------------------------------------------------------


def pair(new: Sequence[BlockedStack], base: Sequence[BlockedStack]) -> BlockedDifference:
    return BlockedDifference(
        new="run-2",
        base="run-1",
        parameters={"threads": 4},
        of_new=cell(4, new),
        of_base=cell(4, base),
        difference_ns=difference_ns(new, base),
    )


MOVED = pair(
    blocked_stacks([site("Log::write", 80), site("Table::add", 20)], {"futex": 4e6}, 0),
    blocked_stacks([ADD, DROP], {"futex": 1e7}, 20),
)


def test_two_runs_have_two_graphs_on_one_scale() -> None:
    (chart,) = blocked_differences([MOVED])
    assert chart.title == "Where blocked time goes, threads=4: run-2"
    drawn = to_svg(chart)
    for text in ("run-2: 4 ms blocked", "run-1, the base: 10 ms blocked", "Log::write", "[table_"):
        assert text in drawn, text
    # A frame that is new, one that is gone, and one that takes less: in each of the two graphs.
    assert 'aria-label="Log::write: 3.20 ms, 80 %; in the base 0 ms"' in drawn
    assert 'aria-label="Table::add:7: 6 ms, 60 %; in run-2 0 ms"' in drawn
    assert 'aria-label="locks: 4 ms, 100 %; in the base 10 ms"' in drawn
    assert 'aria-label="locks: 10 ms, 100 %; in run-2 4 ms"' in drawn


def test_the_colour_of_a_frame_is_that_of_the_new_run_in_both_graphs() -> None:
    drawn = to_svg(blocked_differences([MOVED])[0])

    def colours(frame: str) -> set[str]:
        return set(re.findall(rf'aria-label="{frame}[^"]*"[^>]* fill="(#\w+)"', drawn))

    more, less = colours("Log::write"), colours("Table::add:7")
    assert len(more) == len(less) == 1 and more != less
    assert colours("locks") == less


def test_what_differs_most_is_said_in_words() -> None:
    (chart,) = blocked_differences([MOVED])
    said = chart.alternative
    assert "run-2: 4 ms blocked; run-1, the base: 10 ms blocked" in said
    assert "Table::add:7 → pthread_mutex_lock → [table_mutex]: 0 ms, in the base 6 ms" in said
    assert said.index("Table::add:7") < said.index("Log::write")


def test_a_run_that_is_not_blocked_has_an_empty_graph() -> None:
    (chart,) = blocked_differences([pair([], MOVED.of_base.stacks)])
    drawn = to_svg(chart)
    assert "run-2: 0 ms blocked" in drawn and "in run-2 0 ms" in drawn


def test_doubt_is_said_of_the_run_that_has_it() -> None:
    doubted = msgspec.structs.replace(MOVED.of_new, doubt="the machine was not quiet")
    (chart,) = blocked_differences([msgspec.structs.replace(MOVED, of_new=doubted)])
    assert any("not quiet in run-2:" in remark for remark in chart.remarks)
    assert not any("not quiet" in it for it in blocked_differences([MOVED])[0].remarks)


# -- for other tools --------------------------------------------------------------------------


def test_collapsed_stacks_have_a_line_each() -> None:
    assert to_collapsed(explanation(BASE, SLOW)) == (
        "threads=1;locks;main;work;Table::drop;pthread_mutex_lock 100\n"
        "threads=2;locks;main;work;Table::add:7;pthread_mutex_lock;[table_mutex] 600\n"
        "threads=2;locks;main;work;Table::drop;pthread_mutex_lock 200\n"
        f"threads=2;locks;{UNKNOWN} 200\n"
    )


def test_what_separates_stacks_is_taken_out_of_names() -> None:
    odd = cell(1, [BlockedStack(("locks", "a;b\nc 7", ""), 3.4)])
    assert to_collapsed(explanation(odd)) == "threads=1;locks;a b c 7;? 3\n"


def test_a_profile_holds_every_stack_with_its_time() -> None:
    profile = json.loads(to_firefox(explanation(BASE, SLOW, cell(8, []))))
    assert [thread["name"] for thread in profile["threads"]] == ["threads=1", "threads=2"]
    thread = profile["threads"][1]
    strings = thread["stringArray"]
    functions, frames = thread["funcTable"], thread["frameTable"]
    table, samples = thread["stackTable"], thread["samples"]

    def unwound(number: int | None) -> list[str]:
        if number is None:
            return []
        name = strings[functions["name"][frames["func"][table["frame"][number]]]]
        return [*unwound(table["prefix"][number]), name]

    found = {
        tuple(unwound(stack)): weight * 1e6
        for stack, weight in zip(samples["stack"], samples["weight"], strict=True)
    }
    assert found == pytest.approx({stack.frames: stack.ns for stack in SLOW.stacks})
    assert samples["weightType"] == "tracing-ms"
    for name in ("samples", "stackTable", "frameTable", "funcTable", "markers", "nativeSymbols",
                 "resourceTable"):  # fmt: skip
        columns = [column for column in thread[name].values() if isinstance(column, list)]
        assert {len(column) for column in columns} == {thread[name]["length"]}, name
    # Every caller stands before what it called.
    assert all(prefix is None or prefix < at for at, prefix in enumerate(table["prefix"]))


def test_frames_know_their_names() -> None:
    assert Frame(path=(), depth=0, start_ns=0, ns=0).name == ""

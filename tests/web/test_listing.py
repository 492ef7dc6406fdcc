"""The list of runs: what is searched for is found, and damaged runs are listed too."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.errors import StudyError
from concurve.store import Store
from concurve.store.rows import RunRow
from concurve.web.listing import PAGE_RUNS, Choice, Glance, Listed, listed, machine_name, page_of
from tests.web.places import small_run


def run(number: int, **more: str) -> Listed:
    day = f"2026-11-{number % 28 + 1:02d}T10:00:00+00:00"
    base = Listed(
        f"2026-{number}", "small", day, "complete", "all trials done", 5, "quick",
        "Example 3000, 2 CPUs", "",
    )  # fmt: skip
    return base._replace(**more)  # type: ignore[arg-type]


def test_a_run_that_ended_with_its_time_is_not_called_complete() -> None:
    cut = run(4, reason="time allowance of 3 s: the next block did not fit after 1 of 5 blocks")
    assert (cut.shown_state, run(4).shown_state) == ("out of time", "complete")
    stopped = cut._replace(state="interrupted")
    assert stopped.shown_state == "interrupted"


RUNS = [run(1), run(2, study="locks", state="failed", reason="Disk Full"), run(3, machine="other")]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, [1, 2, 3]),
        ({"text": "disk full"}, [2]),
        ({"text": "DISK"}, [2]),
        ({"text": "small 2026-3"}, [3]),
        ({"study": "small"}, [1, 3]),
        ({"state": "failed"}, [2]),
        ({"machine": "other"}, [3]),
        ({"since": "2026-11-03"}, [2, 3]),
        ({"until": "2026-11-02"}, [1]),
        ({"since": "20261103"}, [2, 3]),
        ({"until": "2026-W45-1"}, [1]),
        ({"since": "2026-11-03", "until": "2026-11-03"}, [2]),
        ({"text": "nothing"}, []),
        ({"other": "x"}, [1, 2, 3]),
    ],
)
def test_what_is_chosen(asked: dict[str, str], found: list[int]) -> None:
    choice = Choice.of(asked)
    assert [int(item.id[5:]) for item in RUNS if choice.fits(item)] == found


@pytest.mark.parametrize(
    "asked", [{"since": "yesterday"}, {"until": "2026-13-01"}, {"state": "done"}]
)
def test_a_choice_that_means_nothing_is_refused(asked: dict[str, str]) -> None:
    with pytest.raises(StudyError) as raised:
        Choice.of(asked)
    assert raised.value.remedy


def test_pages() -> None:
    many = [run(number) for number in range(2 * PAGE_RUNS + 1)]
    first, last = page_of(many, Choice(), 1), page_of(many, Choice(), 99)
    assert (first.number, first.pages, len(first.runs)) == (1, 3, PAGE_RUNS)
    assert (last.number, [item.id for item in last.runs]) == (3, [many[-1].id])
    assert page_of([], Choice(), 1).pages == 1
    assert page_of(many, Choice(), 0).number == 1


def test_the_newest_stands_first_and_a_damaged_head_is_listed(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "a.db"))
    first, second = small_run(store, seed=1), small_run(store, seed=2)
    store.add_run(RunRow("broken", "x", "2020-01-01T00:00:00+00:00", "failed", "?", b"\xff{"))
    found = listed(store)
    assert [item.id for item in found] == [second, first, "broken"]
    assert found[0].trials == 15 and found[2].trials == 0
    assert found[0].effort == "normal"


def test_a_machine_in_few_words() -> None:
    facts = {"cpu_model": "Example 3000", "cpus_allowed": [0, 1]}
    assert machine_name(facts) == "Example 3000, 2 CPUs"
    assert machine_name({"cpus_allowed": 3}) == ""


def test_a_head_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads are large, and a list is asked for again and again."""
    store = Store(str(tmp_path / "s.db"))
    runs = [small_run(store, seed=seed) for seed in (1, 2)]
    read: list[str] = []
    run = store.run

    def counted(id_: str) -> RunRow:
        read.append(id_)
        return run(id_)

    monkeypatch.setattr(store, "run", counted)
    glances: dict[str, Glance] = {}
    first = listed(store, glances)
    assert sorted(read) == sorted(runs) and first == listed(store)
    read.clear()
    assert listed(store, glances) == first and read == []
    runs.append(small_run(store, seed=3))
    read.clear()
    assert len(listed(store, glances)) == 3 and read == [runs[-1]]
    assert all(row.head == b"" for row in store.runs(with_heads=False))

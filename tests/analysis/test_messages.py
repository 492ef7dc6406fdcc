"""Each kind of sentence on a run, as its reader gets it: one file a kind, beside this one.

After a change that is meant: ``CONCURVE_WRITE_SNAPSHOTS=1 pytest tests/analysis/test_messages.py``,
and read the difference aloud.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from concurve.definition.study import Rules
from concurve.findings.run import Report
from concurve.store import Store
from tests.analysis.test_quiet import run_with
from tests.helpers.made import made_run

FOLDER = Path(__file__).parent / "messages"

#: Each kind of message → a run that has it, and how its sentence begins.
KINDS: dict[str, tuple[Callable[[], Report], str]] = {}


def kind(name: str, begins: str) -> Callable[[Callable[[], Report]], Callable[[], Report]]:
    def known(make: Callable[[], Report]) -> Callable[[], Report]:
        KINDS[name] = (make, begins)
        return make

    return known


def halved(threads: str) -> float:
    return 2.0 / int(threads)


@kind("gain", r"\d+ threads are")
def _gain() -> Report:
    return made_run(Store(), halved, threads=(1, 2))


@kind("gain-others-as-good", r"\d+ threads are .*not significantly better")
def _plateau() -> Report:
    return made_run(Store(), lambda n: 2.0 / min(int(n), 2), threads=(1, 2, 4, 8))


@kind("gain-of-a-named-level", r"n=\d is")
def _named() -> Report:
    return made_run(Store(), halved, n=(1, 2))


@kind("no-gain", "No number of threads is")
def _none() -> Report:
    return made_run(Store(), float, threads=(1, 2, 4))


@kind("no-gain-of-words", "No setting is significantly")
def _words() -> Report:
    return made_run(Store(), lambda k: 1.0, k=("a", "b"))


@kind("only-other-is-slower", "k=b is slower")
def _slower() -> Report:
    return made_run(Store(), lambda k: 1.0 if k == "a" else 1.06, k=("a", "b"))


@kind("best-of-all-cells", r"Use cpus=\d threads=\d")
def _two_factors() -> Report:
    return made_run(
        Store(), lambda cpus, n: 2.0 / min(int(n), int(cpus)), cpus=(1, 2), threads=(1, 2)
    )


@kind("under-a-condition", "With load=1")
def _condition() -> Report:
    return made_run(
        Store(), lambda load, n: float(load) / int(n), conditions=("load",), load=(1, 2),
        threads=(1, 2),
    )  # fmt: skip


@kind("many-conditions", "Of 8 conditions")
def _many() -> Report:
    return made_run(
        Store(), lambda load, n: 1.0 / int(n) if int(load) >= 6 else float(n),
        conditions=("load",), load=tuple(range(1, 9)), threads=(1, 2),
    )  # fmt: skip


@kind("another-indicator", r".*\(by CPU time\)")
def _by() -> Report:
    return made_run(Store(), halved, threads=(1, 2), primary="cpu_seconds")


@kind("in-doubt", "No setting is recommended: the machine")
def _doubt() -> Report:
    return run_with({"1": 25, "2": 25}, slower=1.6)


@kind("cell-in-doubt", "threads=.* is in doubt")
def _cell_in_doubt() -> Report:
    return run_with({"1": 22})


@kind("trials-in-doubt", r"\d trials are in doubt")
def _some_in_doubt() -> Report:
    return run_with({"1": 8})


@kind("imprecise", r"\d of \d cells missed the precision")
def _imprecise() -> Report:
    rules = Rules(repeats_min=5, repeats_max=8, precision=0.02)
    return made_run(Store(), float, cv=0.08, rules=rules, n=(1, 2))


@kind("faster-than-the-base", "mode=b is faster than mode=a in all")
def _base() -> Report:
    return made_run(
        Store(), lambda mode, n: (1.0 if mode == "b" else 2.0) / int(n), base={"mode": "a"},
        mode=("a", "b"), threads=(1, 2, 4),
    )  # fmt: skip


@kind("cannot-be-said", "Whether mode=b or mode=a is faster cannot be said")
def _base_unknown() -> Report:
    return made_run(
        Store(), lambda mode, n: 1.0 / int(n), base={"mode": "a"}, cv=0.2, mode=("a", "b"),
        threads=(1, 2, 4),
    )  # fmt: skip


@kind("as-fast-as-the-base", "mode=b is as fast as mode=a")
def _base_alike() -> Report:
    return made_run(
        Store(), lambda mode, n: 1.0 / int(n), base={"mode": "a"}, mode=("a", "b"),
        threads=(1, 2, 4),
    )  # fmt: skip


@kind("depends", "It depends")
def _base_depends() -> Report:
    return made_run(
        Store(), lambda mode, n: 1.0 if mode == "a" else 2.0 / int(n), base={"mode": "a"},
        mode=("a", "b"), threads=(1, 2, 4),
    )  # fmt: skip


@kind("figure-of-the-only-cell", "Wall time")
def _only_cell() -> Report:
    return made_run(Store(), halved, threads=(2,))


@kind("only-level", "Which level of threads")
def _only_level() -> Report:
    return made_run(Store(), halved, threads=(2,))


@kind("figures-under-conditions", "Wall time")
def _conditions_alone() -> Report:
    return made_run(
        Store(), lambda load, n: float(load) / 1e4 / int(n), conditions=("load",), load=(1, 2),
        threads=(4,),
    )  # fmt: skip


@kind("figures-under-many-conditions", "Wall time")
def _many_conditions_alone() -> Report:
    return made_run(Store(), float, conditions=("load",), load=tuple(range(1, 9)))


@kind("figures-in-doubt", r"Wall time: .* \(in doubt\)")
def _figures_in_doubt() -> Report:
    return run_with({"1": 25, "2": 25}, conditions=("threads",))


@kind("note-on-speed-up", "Speed-up is by")
def _note() -> Report:
    return made_run(Store(), halved, threads=(1, 2))


def said(name: str) -> str:
    make, begins = KINDS[name]
    found = [item for item in make().sentences if re.match(begins, item.sentence)]
    assert found, (begins, [item.sentence for item in make().sentences])
    return f"{found[0].kind}:\n{textwrap.fill(found[0].sentence, 98)}\n"


@pytest.mark.parametrize("name", KINDS)
def test_a_message_is_as_it_was_read(name: str) -> None:
    text = said(name)
    file = FOLDER / f"{name}.txt"
    if os.environ.get("CONCURVE_WRITE_SNAPSHOTS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_no_file_is_left_over() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_message_is_short(name: str) -> None:
    """No sentence has more than 40 words, figures and names included."""
    text = " ".join(said(name).splitlines()[1:])
    for sentence in re.split(r"(?<=[a-z\])])\. ", text):
        assert len(sentence.split()) <= 40, sentence

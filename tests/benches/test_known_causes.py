"""The table of programs whose cause is known, how they are built, and how answers are judged."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from causes import (
    BESIDE,
    BLAMELESS_TIMES,
    IN_DOUBT,
    OURS,
    Answers,
    Case,
    Tally,
    _accused,
    _figure,
    _withheld,
    confusion,
    planted,
    sums,
)
from measuring.beside import busy_processes
from measuring.figures import MissingToolError
from measuring.known_causes import (
    PROGRAMS,
    TABLE,
    Program,
    command_of,
    largest_cache_mb,
    read_table,
)

from concurve.api import Run
from concurve.terms import Level
from measuring import known_causes

KNOWN = read_table(TABLE.read_text(encoding="utf-8"))
ONE = """
[[program]]
name = "one"
source = "python/gil.py"
arguments = ["{folder}/x"]
expected = { 1 = "none", 2 = "lock" }
also = { 2 = ["coherency"] }
never = ["io"]
"""


def one(text: str = ONE) -> Program:
    return read_table(text)[0]


def test_every_program_is_in_the_table_and_every_source_is_there() -> None:
    listed = {program.source for program in KNOWN} | {program.under for program in KNOWN}
    ours = {PROGRAMS / "java" / "Contended.java"}  # it reports phases, so it is measured apart
    helpers = {".h", ".toml", ".pyc"}
    found = {file for file in PROGRAMS.rglob("*") if file.is_file()}
    sources = {file for file in found if file.suffix not in helpers}
    assert sources == listed - {None} | ours
    assert len(KNOWN) >= 28
    assert len({program.name for program in KNOWN}) == len(KNOWN)


@pytest.mark.parametrize("program", KNOWN, ids=lambda program: program.name)
def test_each_says_what_would_be_wrong_and_has_a_base(program: Program) -> None:
    assert program.never and (len(program.expected) > 1 or program.blameless)
    assert min(program.expected) == 1 and list(program.expected) == sorted(program.expected)


def test_six_kinds_are_never_to_be_accused() -> None:
    """Perfect scaling, sleepers, an idle pool, one worker alone, Go and the JVM with one thread."""
    blameless = [program for program in KNOWN if program.blameless]
    assert len(blameless) >= 6 and BLAMELESS_TIMES >= 2
    causes = {"lock", "coherency", "serial", "imbalance", "stage", "kernel", "io", "cpu"}
    assert all(causes <= set(program.never) for program in blameless)


def test_a_program_is_left_out_whose_memory_a_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index, size in enumerate(("32K", "2048K", "266240K")):
        file = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{index}/size"
        file.parent.mkdir(parents=True)
        file.write_text(f"{size}\n")
    assert largest_cache_mb(tmp_path) == 260
    assert largest_cache_mb(tmp_path / "nowhere") == 0
    monkeypatch.setattr(known_causes, "largest_cache_mb", lambda: 260)
    with pytest.raises(MissingToolError, match="260 MB: the 128 MB"):
        command_of(one()._replace(touched_mb=128), tmp_path)
    assert command_of(one()._replace(touched_mb=261), tmp_path)


def test_no_program_says_anything_of_itself() -> None:
    for program in KNOWN:
        assert "CONCURVE" not in program.source.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"lock"', '"latch"', "there is no cause latch"),
        ('["io"]', '["lock", "coherency"]', "coherency, lock cannot be both"),
        ("also = { 2", "also = { 3", "a level that `expected` lacks"),
        ('never = ["io"]', 'never = ["io"]\nblameless = true', "nothing limits it, but"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        one(ONE.replace(old, new))


def test_a_command_has_the_level_and_the_folder(tmp_path: Path) -> None:
    found = command_of(one(), tmp_path)
    assert found[0] == sys.executable and found[2:] == ["{threads}", f"{tmp_path}/x"]


def test_a_missing_toolchain_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"no gcc here \(apt-get install gcc\)"):
        command_of(one(ONE.replace("python/gil.py", "c/perfect.c")), tmp_path)


def test_what_starts_a_program_is_tried_first(tmp_path: Path) -> None:
    refusing = one(ONE.replace('"one"', '"one"\nunder = "no-such.sh"'))
    with pytest.raises(MissingToolError, match="no-such"):
        command_of(refusing, tmp_path)


def unmeasured(db: Path, seed: int) -> Run:
    raise AssertionError("only judged")


LOCKED = Case("c", {1: "none", 2: "lock"}, unmeasured, also={2: ("coherency",)}, never=("serial",))


def test_right_answers_are_the_cause_and_what_is_true_as_well() -> None:
    right = [cause for cause in ("lock", "coherency", "none", "cpu") if LOCKED.is_right(2, cause)]
    assert right == ["lock", "coherency"]
    figure = _figure(LOCKED, 2, Answers(Counter(lock=12, coherency=7, cpu=1), "cpu: why"))
    assert figure.held is True and "expected: lock or coherency" in figure.how
    assert _figure(LOCKED, 2, Answers(Counter(lock=18, cpu=2))).held is False


def shown(case: Case, level: int, **said: int) -> tuple[str, bool | None]:
    """Right answers of how many, and whether that is enough."""
    said = {name.replace("_", " "): count for name, count in said.items()}
    figure = _figure(case, level, Answers(Counter(said)))
    assert figure.estimate is not None
    return figure.estimate.unit, figure.held


def test_an_answer_that_is_withheld_is_not_right() -> None:
    """It is counted apart where nothing limits the program, and names no cause where one does."""
    assert shown(LOCKED, 1, none=36, in_doubt=2, contamination=2) == ("[36 of 36]", True)
    assert shown(LOCKED, 1, none=30, in_doubt=4, cpu=2) == ("[30 of 32]", False)
    assert shown(LOCKED, 1, in_doubt=40) == ("[0 of 0]", False)
    assert shown(LOCKED, 2, lock=18, contamination=2) == ("[18 of 20]", False)
    beside = LOCKED._replace(disturbed=True)
    assert shown(beside, 2, lock=3, contamination=8, in_doubt=9) == ("[20 of 20]", True)


def test_more_than_a_tenth_of_the_answers_withheld_fails() -> None:
    def withheld(case: Case, **said: int) -> list[bool | None]:
        said = {name.replace("_", " "): count for name, count in said.items()}
        answers: dict[Level, Answers] = {1: Answers(Counter(none=20)), 2: Answers(Counter(said))}
        return [figure.held for figure in _withheld(case, answers)]

    assert withheld(LOCKED, lock=20) == []
    assert withheld(LOCKED, lock=16, in_doubt=3, contamination=1) == [True]
    assert withheld(LOCKED, lock=15, in_doubt=3, contamination=2) == [False]
    assert withheld(LOCKED._replace(disturbed=True), in_doubt=20) == []
    assert (
        withheld(LOCKED._replace(expected={1: "none", 2: "contamination"}), contamination=20) == []
    )


def test_the_sums_have_a_row_for_each_catalogue() -> None:
    tallies = {"4": Tally(), OURS: Tally()}
    tallies["4"].add(LOCKED, {1: Answers(Counter(none=20)), 2: Answers(Counter(lock=17, cpu=2))})
    blameless = Case("b", {1: "none"}, unmeasured, never=("cpu",), blameless=True)
    said = Counter({"none": 1200, "cpu": 3, IN_DOUBT: 4, "contamination": 1})
    tallies[OURS].add(blameless, {1: Answers(said)})
    head, _, columns, _, *rows = sums(tallies, 20).splitlines()
    assert "20, and 40 of those that nothing limits" in head and "commit" in head
    assert columns.split(" | ")[3:] == ["answers", "right", "withheld", "wrong", "accused |"]
    assert rows == [
        "| 4 | 1 | 2 | 39 | 37 | 0 | 2 | 0 |",
        f"| {OURS} | 1 | 1 | 1,208 | 1,200 | 5 | 3 | 3 |",
    ]


def test_programs_know_their_catalogue(tmp_path: Path) -> None:
    found = Counter(case.catalogue for case in planted(tmp_path, KNOWN))
    assert set(found) == {*"123456789", "10", "11", "12", BESIDE}
    assert found["4"] > found["1"] // 2 and found[BESIDE] == sum(it.beside > 0 for it in KNOWN)


def test_the_confusion_has_a_column_for_each_cause_that_was_named() -> None:
    text = confusion({"a (lock)": Counter(lock=3), "b (none)": Counter(none=2, serial=1)})
    head, a, b = text.splitlines()
    assert head.split() == ["lock", "serial", "none"]
    assert a.split() == ["a", "(lock)", "3", ".", "."] and b.split()[2:] == [".", "1", "2"]


def test_an_answer_that_is_withheld_accuses_nothing() -> None:
    for said in (IN_DOUBT, "contamination"):
        assert LOCKED.is_withheld(2, said) and not LOCKED.is_wrong(2, said)
    assert LOCKED.is_wrong(2, "serial") and not LOCKED.is_wrong(2, "cpu")
    assert LOCKED._replace(never=()).is_wrong(2, "cpu")
    blameless = Case("b", {1: "none"}, unmeasured, never=("serial",), blameless=True)
    assert blameless.is_wrong(1, "cpu") and not blameless.is_wrong(1, "none")
    assert _accused(True, 1, 80).held is False and _accused(True, 0, 80).held is True
    assert _accused(False, 2, 80).held is True


def test_processes_beside_are_ended() -> None:
    """Whatever happens meanwhile."""
    with pytest.raises(KeyError), busy_processes(1) as processes:
        assert [process.poll() for process in processes] == [None]
        raise KeyError
    assert [process.returncode for process in processes] == [-9]

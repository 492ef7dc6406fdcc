"""The table of programs whose cause is known, how they are built, and how answers are judged."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from causes import BLAMELESS_TIMES, IN_DOUBT, Answers, Case, _accused, _figure, confusion
from measuring.beside import busy_processes
from measuring.figures import MissingToolError
from measuring.known_causes import PROGRAMS, TABLE, Program, command_of, read_table

from concurve.api import Run

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


def test_right_answers_are_the_cause_and_what_is_true_as_well() -> None:
    def unmeasured(db: Path, seed: int) -> Run:
        raise AssertionError("only judged")

    case = Case("c", {1: "none", 2: "lock"}, unmeasured, also={2: ("coherency",)})
    accepted = [cause for cause in ("lock", "coherency", "none", "cpu") if case.accepts(2, cause)]
    assert accepted == ["lock", "coherency"]
    assert case.accepts(1, "contamination") and not case.accepts(2, "contamination")
    figure = _figure(case, 2, Answers(Counter(lock=12, coherency=7, cpu=1), "cpu: why"))
    assert figure.held is True and "expected: lock or coherency" in figure.how
    assert _figure(case, 2, Answers(Counter(lock=18, cpu=2))).held is False


def test_the_confusion_has_a_column_for_each_cause_that_was_named() -> None:
    text = confusion({"a (lock)": Counter(lock=3), "b (none)": Counter(none=2, serial=1)})
    head, a, b = text.splitlines()
    assert head.split() == ["lock", "serial", "none"]
    assert a.split() == ["a", "(lock)", "3", ".", "."] and b.split()[2:] == [".", "1", "2"]


def test_beside_other_work_an_answer_may_be_withheld_but_not_wrong() -> None:
    def unmeasured(db: Path, seed: int) -> Run:
        raise AssertionError("only judged")

    case = Case("c", {2: "lock"}, unmeasured, never=("serial",))
    beside = case._replace(disturbed=True)
    for said in (IN_DOUBT, "contamination"):
        assert beside.accepts(2, said) and not case.accepts(2, said)
        assert not beside.is_wrong(2, said) and not case.is_wrong(2, said)
    assert case.is_wrong(2, "serial") and not case.is_wrong(2, "cpu")
    assert case._replace(never=()).is_wrong(2, "cpu")
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

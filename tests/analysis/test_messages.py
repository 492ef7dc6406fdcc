"""Each kind of sentence on a run, as its reader gets it: one file a kind, beside this one.

After a change that is meant: ``CONCURVE_WRITE_SNAPSHOTS=1 pytest tests/analysis/test_messages.py``,
and read the difference aloud. A new sentence needs a kind in ``message_kinds.py``.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import concurve.analysis
from concurve.findings.run import Finding
from tests.analysis.message_kinds import KINDS, sentences_of

FOLDER = Path(__file__).parent / "messages"
ANALYSIS = Path(concurve.analysis.__file__).parent

#: Where the sentences on a run are made.
SOURCES = (
    *sorted((ANALYSIS / "sentences").glob("*.py")),
    *(ANALYSIS / name for name in ("against_base.py", "dependence.py", "ground.py")),
    *(
        ANALYSIS / name
        for name in (
            "run/cold.py",
            "run/failures.py",
            "run/hosts.py",
            "run/own_latencies.py",
            "run/reported.py",
            "shape_sentences.py",
        )
    ),
)


#: The lines of the sources that the kinds run, by file.
RUN: dict[str, set[int]] = defaultdict(set)


@cache
def sentences(name: str) -> list[Finding]:
    """What is said of a kind, which is run once for all tests: that takes most of their time."""
    with lines_into(RUN):
        return sentences_of(name)


def said(name: str) -> str:
    _, begins = KINDS[name]
    every = sentences(name)
    found = [item for item in every if re.match(begins, item.sentence)]
    assert found, (begins, [item.sentence for item in every])
    short = f"in short:\n{textwrap.fill(found[0].short, 98)}\n" if found[0].short else ""
    return f"{found[0].kind}:\n{textwrap.fill(found[0].sentence, 98)}\n{short}"


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


def test_every_sentence_has_a_kind() -> None:
    """Every statement that words a sentence is run by a kind."""
    for name in KINDS:
        sentences(name)
    missing = [
        f"{file.relative_to(ANALYSIS)}:{first}: {text}"
        for file in SOURCES
        for first, last, text in worded(file)
        if not RUN[str(file)] & set(range(first, last + 1))
    ]
    assert not missing, "\n".join(missing)


def worded(file: Path) -> Iterator[tuple[int, int, str]]:
    """The statements of a module that word a sentence: their first and last lines, and words."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    made = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for statement in itertools.chain.from_iterable(map(ast.walk, made)):
        if not isinstance(statement, ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a description
        words = " ".join(
            node.value
            for node in ast.walk(statement)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        if len(words.split()) >= 3:
            yield statement.lineno, statement.end_lineno or statement.lineno, words


@contextmanager
def lines_into(found: dict[str, set[int]]) -> Iterator[None]:
    """Add the lines of the sources that run meanwhile, by file."""
    files = set(map(str, SOURCES))

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        return within if frame.f_code.co_filename in files else None

    def within(frame: FrameType, event: str, argument: Any) -> Any:
        found[frame.f_code.co_filename].add(frame.f_lineno)
        return within

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)

"""The examples: what each of them has. What they answer: ``benches/test_example_answers.py``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="not a checkout")


def examples() -> list[str]:
    """The names of the examples."""
    return sorted(path.parent.name for path in EXAMPLES.glob("*/run.*"))


def script_of(name: str) -> Path:
    (script,) = (EXAMPLES / name).glob("run.*")
    return script


def test_there_are_ten_and_the_page_names_them() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(examples()) == 10
    for name in examples():
        assert f"]({name}/{script_of(name).name})" in page


@pytest.mark.parametrize("name", examples())
def test_an_example_says_what_it_asks_and_what_is_right(name: str) -> None:
    script = script_of(name)
    head = script.read_text(encoding="utf-8")[:1500]
    for part in ("Question:", "Needs:", "Right answer:"):
        assert part in head
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize("name", [name for name in examples() if script_of(name).suffix == ".sh"])
def test_a_script_is_free_of_mistakes_of_syntax_and_judges_its_answer(name: str) -> None:
    script = script_of(name)
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = script.read_text(encoding="utf-8")
    assert "/../common.sh" in text and "\ncheck " in text

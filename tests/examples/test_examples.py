"""The examples: what each of them has, and (``make soak``) that its answer is right or withheld."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.real import missing

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="not a checkout")

SKIPPED = 77
#: Each measures for three minutes at most; a busy machine takes longer for all around it.
SECONDS_MAX = 840.0


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


@pytest.mark.soak
@pytest.mark.real
@pytest.mark.parametrize("name", examples())
def test_an_example_gives_the_right_answer_or_says_why_it_cannot(name: str, tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    beside = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": "/tmp",  # other users' servers go there, and not into the folders of the tests
    }
    done = subprocess.run(
        [script_of(name)], env=environment, cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=SECONDS_MAX,
    )  # fmt: skip
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr

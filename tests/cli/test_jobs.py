"""The commands that ``docs/jobs.md`` shows for nginx and Redis are plans, and not only words."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.commands import code_blocks, command_lines
from tests.helpers.real import Lab

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"
#: What the commands start. None is started by a plan, but must be there.
PROGRAMS = ("nginx", "wrk", "redis-benchmark", "concurve")

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="not a checkout")


def sweeps() -> list[list[str]]:
    """The words of each sweep in the sections of nginx and Redis."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    of_servers = [it for it in sections if it.startswith(("nginx:", "Redis:"))]
    assert len(of_servers) == 2
    lines = [words for it in of_servers for words in command_lines(code_blocks(it))]
    return [words for words in lines if words[1] == "sweep"]


@pytest.fixture
def a_server() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.parametrize("words", sweeps() if PAGE.exists() else [], ids=lambda it: it[3])
def test_a_sweep_of_the_page_is_a_plan(
    words: list[str], lab: Lab, a_server: int, tmp_path: Path
) -> None:
    for program in PROGRAMS:
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    shown = [it.replace("$pid", str(a_server)).replace("$port", "6379") for it in words[2:]]
    end = shown.index("--")
    path = f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"
    done = lab.run("sweep", *shown[:end], "--dry-run", *shown[end:], PATH=path)
    assert done.returncode == 0, done.stderr
    factor, levels = shown[shown.index("-P") + 1 : shown.index("-P") + 3]
    assert factor in done.stdout
    assert f"{len(levels.split(','))} cells" in done.stdout

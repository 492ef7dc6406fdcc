"""``concurve-perturb`` in front of real programs: which locks it holds longer, and what it counts.

Nothing here depends on how fast anything is: a program that holds a lock for a time, and then as
long again, takes at least both.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from concurve.errors import HostError
from concurve.host import native

SOURCE = Path(__file__).parents[2] / "benches" / "confirm_programs" / "c" / "locks.c"


def _perturb() -> str:
    try:
        return str(native.binary("concurve-perturb"))
    except HostError:
        pytest.skip("concurve-perturb is not built: make build")


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that takes locks at known places."""
    for tool in ("gcc", "objdump"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here")
    program = tmp_path_factory.mktemp("locks") / "locks"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, SOURCE], check=True)
    return program


def place(program: Path, function: str, called: str) -> str:
    """``OFFSET@FILE`` of a call in a function, as the runner names it: inside of the call."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True
    ).stdout
    body = text.split(f"<{function}>:", 1)[1].split("\n\n", 1)[0].splitlines()
    at = next(i for i, line in enumerate(body) if re.search(rf"call.*<{called}[@>]", line))
    behind = int(body[at + 1].split(":")[0].strip(), 16)
    return f"{behind - 1:#x}@{program}"


def run(program: Path, site: str, held: str, *arguments: str) -> tuple[dict[str, float], float]:
    """What the library reports, and the seconds that the program took."""
    reader, writer = os.pipe()
    begun = time.monotonic()
    done = subprocess.run(
        [_perturb(), "hold", "--site", site, "--held", held, "--", program, *arguments],
        env={**os.environ, "CONCURVE_REPORT": str(writer)},
        pass_fds=(writer,),
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )
    seconds = time.monotonic() - begun
    os.close(writer)
    with os.fdopen(reader) as channel:
        lines = [json.loads(line) for line in channel]
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.fullmatch(r"\d+\n", done.stdout)
    return {line["indicator"]: line["value"] for line in lines}, seconds


@pytest.mark.parametrize(
    ("kind", "function", "called", "holds"),
    [
        ("mutex", "under_mutex", "pthread_mutex_lock", 3000),
        ("heap", "under_heap", "take", 3000),
        ("nested", "under_mutex", "pthread_mutex_lock", 3000),
        ("two", "under_mutex", "pthread_mutex_lock", 3000),
        ("write", "under_write", "pthread_rwlock_wrlock", 3000),
        ("condition", "under_mutex", "pthread_mutex_lock", 0),
    ],
)
def test_each_hold_of_the_meant_lock_is_counted_and_no_other(
    locks: Path, kind: str, function: str, called: str, holds: int
) -> None:
    site = place(locks, function, called)
    found, _ = run(locks, site, "1", kind, "3", "3000", "200", "50")
    assert found["perturbed_holds"] == holds
    assert (found["perturbed_held_seconds"] > 0) == (holds > 0)


def test_a_lock_is_held_longer_by_the_factor(locks: Path) -> None:
    site = place(locks, "under_mutex", "pthread_mutex_lock")
    found, seconds = run(locks, site, "5", "mutex", "1", "2000", "20000", "0")
    assert found["perturbed_holds"] == 2000
    assert seconds >= 5 * found["perturbed_held_seconds"] > 0


def test_a_condition_gives_the_lock_back_while_it_waits(locks: Path) -> None:
    """Its holds do not include the waits: then they would be longer than the whole run together."""
    site = place(locks, "under_condition", "pthread_mutex_lock")
    found, seconds = run(locks, site, "1", "condition", "4", "2000", "2000", "0")
    assert found["perturbed_holds"] >= 4000
    assert found["perturbed_held_seconds"] <= seconds


def test_a_place_that_is_nowhere_changes_nothing(locks: Path) -> None:
    found, _ = run(locks, "0x1@/nowhere", "2", "mutex", "2", "100", "10", "10")
    assert found == {}


def test_a_command_that_does_not_exist_is_named() -> None:
    done = subprocess.run(
        [_perturb(), "hold", "--site", "0x1@/x", "--held", "1", "--", "/nowhere/program"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 127 and "/nowhere/program" in done.stderr


@pytest.mark.parametrize("take", ["cpu", "memory"])
def test_a_hog_works_until_a_signal_ends_it(take: str) -> None:
    command = [_perturb(), "hog", "--take", take, "--share", "0.1", "--megabytes", "2"]
    with subprocess.Popen(command) as process:
        ended = process.poll()
        process.terminate()
        assert ended is None
        assert process.wait(300) == -signal.SIGTERM

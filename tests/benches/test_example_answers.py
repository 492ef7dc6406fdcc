"""What the examples answer (``make soak``), and how the bench of them reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

import examples as bench
from examples import FAILED, RIGHT, SKIPPED, WITHHELD, WRONG, Answer
from tests.helpers import real
from tests.helpers.real import missing


@pytest.mark.soak
@pytest.mark.parametrize("script", bench.scripts(), ids=lambda script: script.parent.name)
def test_an_example_gives_the_right_answer_or_says_why_it_cannot(script: Path) -> None:
    """It may withhold the answer only where a trial is in doubt."""
    if reason := missing():
        pytest.skip(reason)
    answer = bench.answer_of(script, is_quiet=True)
    if answer.kind == SKIPPED:
        pytest.skip(answer.says)
    print(answer.printed)
    assert answer.kind in (RIGHT, WITHHELD), answer.printed or answer.says


@pytest.mark.parametrize(
    ("printed", "code", "expected"),
    [
        ("a table\nright: it is\n", 0, (RIGHT, "it is")),
        ("right: it is\ncannot be said: why\nright: too\n", 0, (WITHHELD, "why")),
        ("right: it is\nWRONG: 2, right is 4\n", 1, (WRONG, "2, right is 4")),
        ("skipped: nginx is not installed\n", 77, (SKIPPED, "nginx is not installed")),
        ("concurve: no such file\n", 3, (FAILED, "exit code 3: concurve: no such file")),
        ("right: it is\nkilled\n", 137, (FAILED, "exit code 137: killed")),
        ("WRONG: it is\n", 0, (FAILED, "exit code 0: WRONG: it is")),
        ("all is well\n", 0, (FAILED, "exit code 0: all is well")),
        ("", 0, (FAILED, "exit code 0: ")),
    ],
)
def test_the_worst_verdict_of_an_example_counts(
    printed: str, code: int, expected: tuple[str, str]
) -> None:
    answer = bench.verdict_of(printed, code)
    assert (answer.kind, answer.says) == expected


def example(folder: Path, name: str, text: str) -> None:
    script = folder / name / "run.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    script.chmod(0o755)


def test_each_example_is_asked_on_the_machine_as_it_is_and_beside_busy_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example(tmp_path, "sure", "echo right: it is")
    example(tmp_path, "strict", 'echo "cannot be said: quiet=$EXAMPLE_QUIET | so"')
    example(tmp_path, "without", "echo skipped: no such program; exit 77")
    example(tmp_path, "wrong", "echo WRONG: 2, right is 4; exit 1")
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setattr(bench, "allowed_cpus", lambda: (0,))
    quiet, lacks, busy, lacks_too = bench.figures(False)
    assert quiet.name == "wrong examples as the machine is"
    assert busy.name == "wrong examples beside 2 busy processes"
    for figure in (quiet, busy):
        assert figure.how == "of 3 examples 1 are right, 1 cannot be said"
        assert figure.estimate is not None and figure.estimate.value == 1
        assert figure.held is False
    for figure in (lacks, lacks_too):
        assert (figure.name, figure.missing) == ("… without", "no such program")
    assert capsys.readouterr().out.strip().splitlines() == [
        "| example | as the machine is | beside 2 busy processes |",
        "| --- | --- | --- |",
        "| strict | cannot be said: quiet=1 \\| so | cannot be said: quiet= \\| so |",
        "| sure | right | right |",
        "| without | skipped: no such program | skipped: no such program |",
        "| wrong | WRONG: 2, right is 4 | WRONG: 2, right is 4 |",
    ]


def test_an_example_that_does_not_end_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example(tmp_path, "slow", f"sleep 600 & echo $! > {tmp_path}/started; wait")
    monkeypatch.setattr(bench, "SECONDS_MAX", 2.0)
    (script,) = bench.scripts(tmp_path)
    assert bench.answer_of(script, is_quiet=True) == Answer(FAILED, "it did not end within 2 s")
    # On a busy machine nothing may have been started.
    started = [pid for file in tmp_path.glob("started") if (pid := file.read_text().strip())]
    real.wait_until(lambda: not any(map(is_running, started)), "its end")


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

"""What a program had written that failed stands below the table of its run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.brief import figures_of
from concurve.cli.showing import show_run
from concurve.definition.study import Rules
from concurve.errors import RunError
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.sections.run import ALL_TOPICS, Topic
from concurve.store import Store
from concurve.wire import decode_record
from concurve.wire.record import Outcome, Output
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study


class Writing(FakeEngine):
    """Each trial of a program that writes this fails, and quotes the line."""

    def __init__(self, text: str, quoted: str) -> None:
        super().__init__(kind_of=lambda spec: "program_failed")
        self.text, self.quoted = text, quoted

    def run(self, spec: TrialSpec) -> bytes:
        record = decode_record(super().run(spec))
        said = Output(bytes=len(self.text), head=self.text)
        role = msgspec.structs.replace(record.roles[0], stderr=said)
        outcome = Outcome(kind="program_failed", role="target", message=f"it said: {self.quoted}")
        return msgspec.json.encode(msgspec.structs.replace(record, roles=(role,), outcome=outcome))


def failed_run(tmp_path: Path, text: str, quoted: str) -> Store:
    store = Store(str(tmp_path / "s.db"))
    study = small_study(Rules(repeats_min=3, repeats_max=3), threads=(1, 2))
    head = new_head(study, "normal", 5, "concurve sweep …")
    with pytest.raises(RunError):
        Runner(head, store, Writing(text, quoted), clock=FakeClock()).start()
    return store


def test_the_last_lines_of_the_first_failure_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"\tat line {number}\n" for number in range(20))
    store = failed_run(tmp_path, f"java.lang.Error: why\n{text}", "java.lang.Error: why")
    (output,) = figures_of(store, store.find_run("last"), brief=True).outputs
    assert (output.role, output.stream, len(output.lines)) == ("target", "standard error", 10)
    show_run(store, "last")
    shown = capsys.readouterr().out
    assert "end of standard error of role target (threads=" in shown.lower()
    assert "at line 10\n" in shown and "at line 19\n" in shown and "at line 9\n" not in shown
    assert "Nothing was measured" in shown


TRACEBACK = """Traceback (most recent call last):
  File "/srv/app.py", line 7, in <module>
    main()
  File "/srv/app.py", line 3, in main
\treturn  1 / 0
ZeroDivisionError: division by zero
"""


def test_lines_keep_their_blanks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = failed_run(tmp_path, TRACEBACK, "ZeroDivisionError: division by zero")
    show_run(store, "last")
    assert TRACEBACK.expandtabs() in capsys.readouterr().out


def test_a_line_that_is_wider_than_the_terminal_is_broken_and_keeps_its_indentation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = failed_run(tmp_path, f"Error: why\n    {'word ' * 20}\n", "Error: why")
    monkeypatch.setenv("COLUMNS", "60")
    show_run(store, "last")
    shown = capsys.readouterr().out.splitlines()
    broken = [line for line in shown if line.startswith("    word")]
    assert len(broken) == 1 and all(len(line) <= 60 for line in shown)
    assert any(line.startswith("      word") for line in shown)


def test_a_line_that_is_quoted_is_not_shown_again(tmp_path: Path) -> None:
    store = failed_run(tmp_path, "out of luck\n", "out of luck")
    assert figures_of(store, store.find_run("last"), brief=True).outputs == ()


@pytest.mark.parametrize("topics", [(), (Topic.REJECTED,), tuple(ALL_TOPICS)])
def test_the_line_that_names_the_error_stands_once_at_the_end(
    topics: tuple[Topic, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = "ZeroDivisionError: division by zero"
    store = failed_run(tmp_path, TRACEBACK, error)
    show_run(store, "last", topics=topics)
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count(error) == 1
    assert "! the program failed: it said: see below (both cells)" in shown
    assert "failed: every cell failed; the first: threads=1" in shown
    assert shown.index("see below") < shown.index(error)

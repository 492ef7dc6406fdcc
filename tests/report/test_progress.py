"""The progress line: drawn between trials only, one line, never too wide."""

from __future__ import annotations

import io
import threading

import msgspec
import pytest
from rich.cells import cell_len

from concurve.estimate import Estimate
from concurve.report.progress import Progress
from concurve.terms import Disturbance

HERE = {"threads": 4, "cpus": 2}
SO_FAR = Estimate(value=1.482, low=1.451, high=1.513, n=5, unit="s")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_few_trials_have_no_precision() -> None:
    out = io.StringIO()
    line = Progress(out, live=True)
    line.begin(60, "thread-scaling: 12 cells")
    line.trial_ended(HERE, msgspec.structs.replace(SO_FAR, n=4), "ok", "")
    line.trial_starts(HERE, 2, 0, 11, 60, 40.2)
    assert "1.482 s" in out.getvalue() and "±" not in out.getvalue()


def test_the_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = io.StringIO()
    line = Progress(out, live=True)
    line.begin(60, "thread-scaling: 12 cells")
    line.trial_starts(HERE, 1, 0, 5, 60, 44.0)
    line.trial_ended(HERE, SO_FAR, "ok", "")
    drawn = out.getvalue()
    line.trial_starts(HERE, 2, 0, 11, 60, 40.2)
    last = out.getvalue()[len(drawn) :]
    shown = last.removeprefix("\r").rstrip()
    assert shown == (
        "███░░░░░░░░░░░░░ [12/60]  threads=4 cpus=2  trial 3  1.482 s ±2.1 %  about 40 s left"
    )
    assert last.startswith("\r")


def test_nothing_is_written_while_a_trial_runs_or_for_one_that_is_used() -> None:
    out = io.StringIO()
    line = Progress(out, live=True)
    before = threading.active_count()
    line.begin(3, "x")
    line.trial_starts(HERE, 0, 0, 0, 3, None)
    drawn = out.getvalue()
    assert threading.active_count() == before
    line.trial_ended(HERE, SO_FAR, "ok", "")
    assert out.getvalue() == drawn
    line.trial_ended(HERE, SO_FAR, "abandon", "timed out: the time limit of 2 s passed")
    assert "given up, timed out: the time limit of 2 s passed\n" in out.getvalue()


def test_remarks_are_in_the_words_of_their_reader() -> None:
    out = io.StringIO()
    line = Progress(out, live=False, reword=lambda text: text.replace("--max-time", "max_time"))
    line.note("Give --max-time 9s")
    line.trial_ended(HERE, None, "abandon", "the trials took longer than --max-time")
    assert "Give max_time 9s\n" in out.getvalue()
    assert "--max-time" not in out.getvalue()


@pytest.mark.parametrize("live", [True, False])
def test_no_text_steers_the_terminal(live: bool) -> None:
    """Other users choose the names of their processes."""
    hostile = "\x1b[2J\x9b2J\nmine"
    out = io.StringIO()
    line = Progress(out, live=live, clock=Clock())
    line.begin(3, hostile)
    line.waits(3.0, 60.0, Disturbance("", f"{hostile} (50 %)", hostile))
    line.trial_starts({"name": hostile}, 0, 0, 0, 3, None)
    line.trial_ended({"name": hostile}, None, "abandon", hostile)
    line.note(hostile)
    shown = out.getvalue()
    assert "mine (50 %)" in shown
    assert all(char.isprintable() for char in shown.replace("\r", "").replace("\n", ""))
    assert "\nmine" not in shown


def test_a_noisy_machine_does_not_flood_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    out = io.StringIO()
    line = Progress(out, live=True)
    for number in range(50):
        cause = f"other processes used the CPUs: processes … {number} %: {'firefox, ' * 30}"
        line.trial_ended(HERE, SO_FAR, "contaminated", cause)
    for _ in range(50):
        line.trial_ended(HERE, SO_FAR, "program_error", "the program failed: exit code 1")
    disturbed, *failed = out.getvalue().splitlines()
    assert disturbed == (
        "threads=4 cpus=2: disturbed, other processes used the CPUs. Disturbed trials are "
        "repeated; those that are used all the same are marked as in doubt. Only the first is "
        "shown here."
    )
    assert len(failed) == 4
    assert failed[0] == "threads=4 cpus=2: the program failed: exit code 1"
    assert failed[2].endswith("failed, for the same reason")
    assert "for this cause (the program failed)" in failed[3]


@pytest.mark.parametrize("columns", [40, 60])
def test_a_terminal_shows_a_long_remark_over_several_lines(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It breaks words itself."""
    monkeypatch.setenv("COLUMNS", str(columns))
    on_terminal, elsewhere = io.StringIO(), io.StringIO()
    for out in (on_terminal, elsewhere):
        line = Progress(out, live=out is on_terminal)
        line.begin(5, f"a run of {'many ' * 30}trials")
        line.trial_ended(HERE, SO_FAR, "contaminated", "other processes used the CPUs: firefox")
        line.note(f"{'words ' * 6}before `concurve show last` and behind")
    shown = on_terminal.getvalue()
    assert max(map(len, shown.splitlines())) < columns
    assert shown.split() == elsewhere.getvalue().split()
    assert "`concurve show last`" in shown, "a command stays whole"
    assert len(elsewhere.getvalue().splitlines()) == 3, "a file has a line for each"


def test_a_long_cause_is_shown_by_its_first_clauses() -> None:
    out = io.StringIO()
    line = Progress(out, live=False)
    cause = f"time allowance: stopped with the run; {'processes, ' * 30}; more"
    line.trial_ended(HERE, SO_FAR, "cut short", cause)
    assert out.getvalue() == (
        "threads=4 cpus=2: cut short, time allowance: stopped with the run "
        "(concurve show last --rejected has all of it)\n"
    )


def test_the_line_covers_an_older_longer_one_and_leaves_nothing() -> None:
    out = io.StringIO()
    line = Progress(out, live=True)
    line.trial_starts({"name": "a" * 40}, 0, 0, 0, 3, 1000.0)
    long = len(out.getvalue())
    line.trial_starts({"n": 1}, 0, 0, 1, 3, None)
    second = out.getvalue()[long:]
    assert len(second) >= long
    line.finish()
    assert out.getvalue().endswith("\r") and out.getvalue().rsplit("\r", 2)[1].isspace()


@pytest.mark.parametrize(("done", "full"), [(0, 0), (30, 8), (59, 16), (60, 16), (90, 16)])
def test_the_bar_says_how_much_is_done(
    done: int, full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    out = io.StringIO()
    Progress(out, live=True).trial_starts(HERE, 0, 0, done, 60, None)
    assert out.getvalue().strip().startswith("█" * full + "░" * (16 - full) + " [")


def test_a_bar_in_plain_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Progress(stream, live=True).trial_starts(HERE, 0, 0, 30, 60, None)
    assert b"########........ [31/60]" in raw.getvalue()


@pytest.mark.parametrize("columns", ["40", "80"])
def test_the_line_fits(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = io.StringIO()
    line = Progress(out, live=True)
    wide = {"collector": "数据库" * 30, "\x1b[31m": "x"}
    line.trial_ended(wide, SO_FAR, "ok", "")
    line.trial_starts(wide, 0, 1, 0, 60, 40.0)
    assert cell_len(out.getvalue().strip("\r")) < int(columns)
    assert "\x1b" not in out.getvalue()


def test_plain_lines_are_few() -> None:
    out, clock = io.StringIO(), Clock()
    line = Progress(out, live=False, clock=clock)
    for trial in range(1000):
        clock.now += 0.05
        line.trial_starts(HERE, trial // 5, 0, trial, 1000, None)
        line.trial_ended(HERE, SO_FAR, "ok", "")
    lines = out.getvalue().splitlines()
    assert 30 <= len(lines) <= 51
    assert "\r" not in out.getvalue()


def test_plain_lines_come_in_long_blocks_too() -> None:
    out, clock = io.StringIO(), Clock()
    line = Progress(out, live=False, clock=clock)
    for trial in range(60):
        clock.now += 1.0
        line.trial_starts(HERE, 0, 0, trial, 60, None)
    assert len(out.getvalue().splitlines()) == 6


def test_a_stream_that_is_no_terminal_gets_plain_lines() -> None:
    out = io.StringIO()
    line = Progress(out)
    line.trial_starts(HERE, 0, 0, 0, 3, 2.0)
    assert out.getvalue() == "[1/3]  threads=4 cpus=2  trial 1  about 2.0 s left\n"


def test_the_first_trials_say_that_more_may_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = io.StringIO()
    line = Progress(out, live=True)
    line.trial_starts(HERE, 2, 0, 35, 39, 2.4, True)
    assert "[36/39+]" in out.getvalue()
    assert "about 2.4 s left of the first trials; more may follow" in out.getvalue()


def test_a_figure_that_is_the_same_each_time_has_no_width_of_its_own() -> None:
    out = io.StringIO()
    line = Progress(out, live=True)
    figure = Estimate(value=100.5, low=100.5, high=100.5, n=3, unit="MB/s")
    line.trial_ended(HERE, figure, "ok", "")
    line.trial_starts(HERE, 3, 0, 3, 9, None)
    assert "100.5 MB/s each time" in out.getvalue() and "±" not in out.getvalue()


def test_a_failure_that_repeats_is_told_once() -> None:
    out = io.StringIO()
    line = Progress(out, live=False)
    line.begin(3, "x")
    why = "the program failed: exited with 1; its standard error: no such host"
    for threads in (1, 2, 1):
        line.trial_ended({"threads": threads}, None, "program_error", why)
    said = out.getvalue()
    assert said.count("no such host") == 1
    assert "threads=2: failed, for the same reason" in said


def test_what_a_failed_program_wrote_is_cut_to_a_line() -> None:
    out = io.StringIO()
    line = Progress(out, live=False)
    why = "the program failed: exited with 1; its standard error: ValueError: "
    line.trial_ended({"threads": 1}, None, "program_error", f"{why}{'too large ' * 9}")
    (shown,) = out.getvalue().splitlines()
    assert shown.startswith("threads=1: failed: ValueError: too large ")
    assert "…" in shown and shown.endswith("too large")
    assert cell_len(shown) < 80


def test_why_a_program_failed_stays_where_the_line_has_no_room_for_all() -> None:
    out = io.StringIO()
    line = Progress(out, live=False)
    why = (
        "the program failed: exited with 1; its standard error: IndexError: list index out of range"
    )
    line.trial_ended({"workers": 1}, None, "program_error", why)
    assert out.getvalue() == "workers=1: failed: IndexError: list index out of range\n"


def waiting_for(*who: str) -> Disturbance:
    return Disturbance("", ", ".join(f"{name} 40 %" for name in who), who[0])


@pytest.mark.parametrize("columns", ["40", "60", "80", "120"])
def test_who_disturbs_stays_in_a_narrow_line(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = io.StringIO()
    line = Progress(out, live=True)
    line.waits(1.0, 282.0, waiting_for("cc1plus (pid 20)", "firefox (pid 4711)"))
    shown = out.getvalue().strip("\r")
    assert cell_len(shown) < int(columns)
    assert shown.startswith("waiting") and ": cc1plus (pid 20) 40 %" in shown


@pytest.mark.parametrize("columns", ["44", "60", "80"])
def test_the_level_stays_in_a_narrow_line(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = io.StringIO()
    line = Progress(out, live=True)
    line.begin(16, "")
    drawn = len(out.getvalue())
    line.trial_starts({"workers": 64, "engine": "mine"}, 0, 0, 1, 16, 36.0, True, 12.0)
    shown = out.getvalue()[drawn:].strip("\r").rstrip()
    assert cell_len(shown) < int(columns)
    assert "[ 2/16+]" in shown and "workers=64 engine=mine" in shown
    assert "…" not in shown


def test_a_wait_is_said_once_where_nothing_is_redrawn() -> None:
    out, clock = io.StringIO(), Clock()
    line = Progress(out, live=False, clock=clock)
    for second in range(130):
        clock.now += 1.0
        line.waits(second, 300.0, waiting_for("cc1plus" if second < 10 else "firefox", "x"))
    said = out.getvalue().splitlines()
    assert said == [
        "waiting for a quiet machine (0.0 s of at most 5 min): cc1plus 40 %, x 40 %",
        "waiting for a quiet machine (60 s of at most 5 min): firefox 40 %, x 40 %",
    ]
    line.trial_starts(HERE, 0, 0, 0, 3, None)
    line.waits(1.0, 300.0, waiting_for("firefox"))
    assert len(out.getvalue().splitlines()) == 4, "another wait"


def test_what_the_allowance_leaves_is_no_time_of_the_first_trials() -> None:
    out = io.StringIO()
    line = Progress(out, live=False)
    line.trial_starts(HERE, 0, 0, 3, 15, 0.256, True, is_allowance=True)
    assert out.getvalue().endswith("less than 1 s left of the time allowance\n")

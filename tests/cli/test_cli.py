"""The command line with real processes: exit codes, messages, files, and nothing left behind."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from concurve.host.native import binary
from concurve.stats.centre import centre
from concurve.store import Store
from tests.helpers.postgres import Server
from tests.helpers.real import CONCURVE, PATIENCE, TARGETS, Lab, let_others_through, missing

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]

SCHEMA = Path(__file__).parents[2] / "schema" / "export.schema.json"
BUSY = ("--", TARGETS, "busy", "--threads", "{n}", "--cpu-ms", "3")
QUICK = ("--effort", "quick", "--repeats", "2..2")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, str]:
    """A laboratory with one run in its store, exported in every form; what was printed."""
    lab = Lab(tmp_path_factory.mktemp("measured"))
    files = [
        part for kind, ending in (("json", "json"), ("csv", "csv"), ("markdown", "md"),
                                  ("html", "html"))
        for part in (f"--export-{kind}", f"run.{ending}")
    ]  # fmt: skip
    done = lab.run("sweep", "-P", "n", "1,2", *QUICK, "--seed", "5", *files, *BUSY)
    assert done.returncode == 0, done.stderr
    return lab, done.stdout


def runs(lab: Lab) -> int:
    return len(Store(str(lab.db)).runs()) if lab.db.exists() else 0


def refused(lab: Lab, code: int, *arguments: str) -> str:
    """Run what must be refused before anything runs; what was said."""
    done = lab.run(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert runs(lab) == 0, "nothing was stored"
    return done.stderr


# -- what a run leaves --------------------------------------------------------------------


def test_the_json_export_holds_its_schema_and_every_raw_trial(measured: tuple[Lab, str]) -> None:
    export = json.loads((measured[0].folder / "run.json").read_bytes())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_bytes())).validate(export)
    assert export["run"]["state"] == "complete"
    assert export["run"]["seed"] == 5
    for cell, level in zip(export["cells"], (1, 2), strict=True):
        assert cell["parameters"] == {"n": level}
        assert len([trial for trial in cell["trials"] if trial["used"]]) == 2
        figures = cell["indicators"]
        for name in ("wall_seconds", "cpu_seconds", "speedup", "efficiency", "voluntary_switches",
                     "involuntary_switches", "rss_bytes_max", "threads_peak",
                     "rate_per_second", "rate_per_worker"):  # fmt: skip
            assert name in figures, name
        # Most kernels count migrations for privileged users alone; others are told why not.
        absent = cell["trials"][0]["record"]["roles"][0]["usage"].get("absent", {})
        assert ("migrations" in figures) is ("migrations" not in absent)
        assert "migrations" in figures or os.geteuid() != 0
        # How much of it falls into the marked phase depends on when the runner gets to the mark.
        whole = [
            trial["record"]["roles"][0]["usage"]["cpu_ns"] / 1e9
            for trial in cell["trials"]
            if trial["used"]
        ]
        assert 0.003 * level <= min(whole)
        assert figures["run_cpu_seconds"]["value"] == pytest.approx(centre(whole))
        assert 0 <= figures["cpu_seconds"]["value"] <= max(whole)
        assert figures["threads_peak"]["value"] >= level
        assert cell["trials"][0]["record"]["roles"][0]["exit"] == {"code": 0}
    assert export["cells"][0]["indicators"]["speedup"]["value"] == 1.0


def test_csv_markdown_and_html(measured: tuple[Lab, str]) -> None:
    folder = measured[0].folder
    with (folder / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["n"] for row in rows] == ["1", "2"]
    assert float(rows[0]["wall_seconds_low"]) <= float(rows[0]["wall_seconds"])
    assert "wall time" in (folder / "run.md").read_text()
    html = (folder / "run.html").read_text()
    assert "<html" in html and "concurve-targets" in html
    assert not re.search(r'(?:src|href)="https?://', html), "opens offline"


def test_show_adds_what_is_asked_for(measured: tuple[Lab, str]) -> None:
    lab, _ = measured
    short = lab.run("show", "last").stdout
    assert "more: concurve show " in short and "the machine:" not in short
    machine = lab.run("show", "last", "--machine").stdout
    assert machine.startswith(short[: short.index("more: ")].rstrip())
    assert "\nthe machine:\n" in machine and "scaling models:" not in machine
    everything = lab.run("show", "last", "--all").stdout
    for part in ("\nthe machine:\n", "Speed-up is by "):
        assert part in everything, part


def test_piped_output_is_plain_and_fits_80_columns(measured: tuple[Lab, str]) -> None:
    lab, table = measured
    done = lab.run("show", "last")
    assert table.splitlines()[:3] == done.stdout.splitlines()[:3]
    for text in (table, done.stdout):
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 80
        assert "± half the 95 % interval" in text


def test_colour_on_a_terminal_unless_no_color(lab: Lab) -> None:
    def on_terminal(**environment: str) -> str:
        ours, theirs = os.openpty()
        process = subprocess.Popen(
            [CONCURVE, "show", "last"],
            env=lab.environment(TERM="xterm-256color", **environment),
            stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 65536):
                said += part
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        assert process.wait(timeout=PATIENCE) == 0
        return said.decode()

    colour = re.compile(r"\x1b\[(?:\d+;)*(?:3\d|4\d|9\d)[;m]")
    marked = ("-P", "n", "1,2", "--", "sh", "-c", "test {n} = 1")
    lab.run("sweep", *QUICK, "--name", "with-a-skipped-cell", *marked)
    assert colour.search(on_terminal())
    assert not colour.search(on_terminal(NO_COLOR="1")), "bold is no colour, and may stay"


def test_a_reader_that_goes_away_gets_no_traceback(measured: tuple[Lab, str]) -> None:
    lab, _ = measured
    for verb in ("export last", "--help"):
        with subprocess.Popen(
            ["head", "-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as head:
            assert head.stdin is not None and head.stdout is not None
            process = lab.fork(*verb.split(), stdout=head.stdin.fileno())
            head.stdin.close()
            assert len(head.stdout.read().splitlines()) == 1
        assert process.communicate() == ("", "")


def test_verbs_on_a_stored_run(measured: tuple[Lab, str]) -> None:
    lab, _ = measured
    listed = lab.run("runs")
    run = listed.stdout.split()[0]
    assert "sweep-concurve-targets" in listed.stdout and "complete" in listed.stdout
    assert lab.run("show", run[:-2]).stdout == lab.run("show", run).stdout, "found by its start"
    shown = json.loads(lab.run("show", run, "--json").stdout)
    assert shown["run"]["id"] == run and shown["cells"][0]["trials"] == []
    exported = json.loads(lab.run("export", run).stdout)
    assert exported == json.loads((lab.folder / "run.json").read_bytes())
    trials = list(csv.DictReader(lab.run("export", run, "--format", "trials").stdout.splitlines()))
    assert len(trials) == exported["run"]["trials"]
    for file in ("report.html", "report.md"):
        done = lab.run("report", run, "-o", file)
        assert (done.returncode, done.stdout.strip()) == (0, file)
        assert (lab.folder / file).stat().st_size > 500
    twice = lab.run("report", run, "-o", "a.md", "--export-markdown", "b.md")
    assert twice.returncode == 2 and "a.md and b.md are both markdown" in twice.stderr
    assert not (lab.folder / "a.md").exists()
    assert lab.run("export", run, "-o", "cells.csv").returncode == 0
    cells = (lab.folder / "cells.csv").read_text()
    assert cells == lab.run("export", run, "--format", "csv").stdout, "by the ending"
    again = lab.run("resume", run)
    assert again.returncode == 0, "a complete run has nothing to do"
    assert lab.run("runs").stdout == listed.stdout


def test_a_report_with_charts(measured: tuple[Lab, str]) -> None:
    lab, _ = measured
    done = lab.run("report", "last", "-o", "r.html", "--charts", "figures")
    assert done.returncode == 0, done.stderr
    kinds = {path.suffix for path in (lab.folder / "figures").iterdir()}
    assert kinds == {".svg", ".png"}


def test_the_command_that_runs_it_again_keeps_the_order(measured: tuple[Lab, str]) -> None:
    lab, _ = measured
    run = json.loads((lab.folder / "run.json").read_bytes())["run"]
    assert run["again"].startswith("concurve sweep ")
    assert "--seed 5" in run["again"]


# -- what can be asked of a trial ---------------------------------------------------------


def sweep(lab: Lab, *arguments: str) -> dict[str, Any]:
    """Run a sweep and give its JSON export."""
    done = lab.run("sweep", *QUICK, "--export-json", "out.json", *arguments)
    assert done.returncode == 0, done.stderr
    export: dict[str, Any] = json.loads((lab.folder / "out.json").read_bytes())
    return export


def record(export: dict[str, Any], cell: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = export["cells"][cell]["trials"][0]["record"]
    return found


def test_controls_may_be_parameters_and_are_read_back(lab: Lab) -> None:
    cpus = len(os.sched_getaffinity(0))
    levels = ",".join(map(str, range(1, min(cpus, 2) + 1)))
    export = sweep(lab, "-P", "cpus", levels, "--cpus", "{cpus}", "--nice", "7",
                   "--policy", "batch", "--", "true")  # fmt: skip
    for cell in export["cells"]:
        controls = cell["trials"][0]["record"]["roles"][0]["controls"]
        assert len(controls["cpus"]) == cell["parameters"]["cpus"]
        assert controls["nice"] == 7
        assert controls["policy"]["class"] == "batch"


def test_environment_extract_and_several_parameters(lab: Lab) -> None:
    export = sweep(
        lab, "-P", "a", "1,2", "-P", "b", "x,y", "--env", "WORD={b}",
        "--extract", r"level=a is (\d+):lv", "--",
        "sh", "-c", "echo a is {a} $WORD; test $WORD = {b}",
    )  # fmt: skip
    assert [tuple(cell["parameters"].values()) for cell in export["cells"]] == [
        (1, "x"), (1, "y"), (2, "x"), (2, "y")
    ]  # fmt: skip
    figure = export["cells"][3]["indicators"]["level"]
    assert (figure["value"], figure["unit"]) == (2.0, "lv")


def test_background_competitors_run_beside_the_target(lab: Lab) -> None:
    export = sweep(lab, "--background", "2@nice=19", "--", TARGETS, "busy", "--cpu-ms", "5")
    roles = {role["name"]: role for role in record(export)["roles"]}
    assert set(roles) == {"background-1", "background-2", "target"}
    assert roles["background-1"]["controls"]["nice"] == 19
    assert roles["background-1"]["ended_by"] == "stopped"
    assert roles["background-1"]["usage"]["cpu_ns"] > 0
    assert lab.wait_until_alone() == {}


def test_hooks_run_in_their_order(lab: Lab) -> None:
    hooks = [
        part
        for name in ("setup", "prepare", "conclude", "cleanup")
        for part in (f"--{name}", f"echo {name} {{n}} >> log")
    ]
    sweep(lab, "-P", "n", "4", *hooks, "--check", "cat >> log", "--", "sh", "-c",
          "echo trial {n} >> log; echo output {n}")  # fmt: skip
    one = ["prepare 4", "trial 4", "conclude 4", "output 4"]
    lines = (lab.folder / "log").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("setup 4", "cleanup 4")
    assert lines[1:5] == one
    assert len(lines) % 4 == 2


def test_a_program_that_fails_is_told_with_its_last_words(lab: Lab) -> None:
    done = lab.run("sweep", *QUICK, "--", "sh", "-c", "echo no licence >&2; exit 9")
    assert done.returncode == 5
    assert "every cell failed" in done.stderr
    assert "exit" in done.stderr and "9" in done.stderr
    assert "no licence" in done.stderr
    assert "concurve show" in done.stderr


def test_a_trial_beyond_its_limit_is_ended_whole(lab: Lab) -> None:
    done = lab.run(
        "sweep", *QUICK, "--timeout", "200ms", "--", "sh", "-c", "sleep 1050 & sleep 1051"
    )
    assert done.returncode == 5
    assert "timed out" in done.stderr
    assert lab.wait_until_alone() == {}


# -- what is refused before anything runs --------------------------------------------------


def test_a_dry_run_prints_the_plan_and_runs_nothing(lab: Lab) -> None:
    done = lab.run("sweep", "-P", "n", "1,2", *QUICK, "--seed", "5", "--dry-run", "--cpus", "1",
                   "--", "sh", "-c", "touch ran-{n}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 cells × 2 each = 4\n" in done.stdout
    assert "sh -c 'touch ran-1'" in done.stdout
    assert re.search(r"\[cpus=\d+\]", done.stdout)
    assert re.search(r"^time +\S", done.stdout, re.MULTILINE)
    assert runs(lab) == 0
    assert list(lab.folder.glob("ran-*")) == []


def test_a_dry_run_knows_the_time_from_an_earlier_run(measured: tuple[Lab, str]) -> None:
    lab, _ = measured
    done = lab.run("sweep", "-P", "n", "1,2", *QUICK, "--dry-run", *BUSY)
    assert re.search(r"time +about \S+ \S+, at most .* \(as run \d+", done.stdout)
    assert re.search(r"precision +\d+ trials a cell fit .* ±\S+ % if trials spread by 2 % "
                     r"\(an assumption\)", done.stdout)  # fmt: skip
    long = lab.run("sweep", "-P", "n", "1,2", "--effort", "quick", "--repeats", "10..10",
                   "--max-time", "1ms", "--dry-run", *BUSY)  # fmt: skip
    assert long.returncode == 0, long.stderr
    assert "2 cells × 10 trials need about" in long.stdout
    assert "--max-time" in long.stdout


def test_a_run_whose_first_trial_is_longer_than_its_allowance_ends_with_it(
    measured: tuple[Lab, str],
) -> None:
    lab, _ = measured
    done = lab.run("sweep", "-P", "n", "1,2", "--effort", "quick", "--repeats", "10..10",
                   "--max-time", "1ms", *BUSY)  # fmt: skip
    assert "2 cells × 10 trials need about" in done.stderr, "it is said beforehand"
    assert "not even one fits" in done.stderr
    done = lab.run("sweep", "-P", "n", "60,70", "--effort", "quick", "--max-time", "300ms",
                   "--", "sleep", "{n}")  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert "the first trial did not end within the time allowance of 300 ms" in done.stderr
    assert "try: a shorter trial" in done.stderr


REFUSALS: dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]] = {
    "a command that does not exist": (
        2, ("-P", "n", "1,2", "--", "no-such-program", "{n}"), ("no-such-program", "try: ")),
    "a file that is not executable": (2, ("--", "/etc/passwd"), ("/etc/passwd", "try: ")),
    "more CPUs than there are": (
        3, ("-P", "cpus", "1,4096", "--cpus", "{cpus}", "--", "true"),
        ("cpus=4096", "4096 CPUs asked for, ", "at most")),
    "a bad policy": (2, ("--policy", "speedy", "--", "true"), ("'speedy'", "fifo:P or rr:P")),
    "a bad nice value": (2, ("--nice", "99", "--", "true"), ("'99'", "-20 to 19")),
    "a repeated level": (2, ("-P", "n", "1,1", "--", "echo", "{n}"), ("-P n: level 1", "once")),
    "a parameter and its levels in one word": (
        2, ("-P", "n=1,2", "--", "echo", "{n}"), ("-P n=1,2: ", "two words", "-P n 1,2")),
    "an option in place of the levels": (
        2, ("-P", "n", "--max-time", "9s", "--", "echo", "{n}"),
        ("-P n: --max-time stands where its levels are expected", "-P n 1,2,4")),
    "an option with its value in place of the levels": (
        2, ("-P", "n", "--effort=quick", "--", "echo", "{n}"),
        ("-P n: --effort=quick stands where its levels are expected", "-P n 1,2,4",
         "stands in the command")),
    "levels apart, and an option": (
        2, ("-P", "n", "old,", "new", "--fail-on", "slower", "--", "echo", "{n}"),
        ("blanks: -P n old,new --fail-on slower; or",)),
    "negative levels apart": (
        2, ("-P", "n", "1,", "0,", "-1", "--", "echo", "{n}"), ("blanks: -P n 1,0,-1; or",)),
    "levels apart, each with its comma": (
        2, ("-P", "n", "1,", "2,", "4", "--", "echo", "{n}"), ("-P n 1,2,4;", "commas")),
    "the command in place of the levels": (
        2, ("-P", "n", "--", "echo", "{n}"), ("-P n: -- stands where its levels are expected",)),
    "a parameter twice": (
        2, ("-P", "n", "1", "-P", "n", "2,3", "--", "echo", "{n}"),
        ("-P n is given more than once", "try: -P n 1,2,3")),
    "no levels": (2, ("-P", "n", "", "--", "echo", "{n}"), ("-P n: an empty level", "1..16")),
    "a placeholder without a parameter": (
        2, ("-P", "threads", "1", "--", "echo", "{thread}"), ("{thread}", "{threads}?")),
    "an extract without a group": (2, ("--extract", "a=b", "--", "true"), ("no group", "(")),
    "a bad duration": (2, ("--timeout", "soon", "--", "true"), ("--timeout: 'soon'", "200ms")),
    "bad repeats": (2, ("--repeats", "9..2", "--", "true"), ("--repeats '9..2'", "try: 2..9")),
    "an export into nowhere": (
        1, ("--export-html", "no/such/x.html", "--", "touch", "ran"),
        ("no/such does not exist", "mkdir -p no/such")),
    "an export onto a folder": (2, ("--export-json", ".", "--", "touch", "ran"), ("directory",)),
    "an unknown option": (2, ("--thread", "2", "--", "true"), ("--thread",)),
    "no command": (2, ("-P", "n", "1"), ("COMMAND",)),
    "a store that is a folder": (4, ("--db", ".", "--", "true"), ("unable to open", "--db")),
    "too many cells": (
        2, ("-P", "a", "1..9999", "-P", "threads", "1..9999", "--", "echo", "{a}{threads}"),
        ("99980001 combinations",)),
    "two parameters that may count workers": (
        2, ("-P", "a", "1,2", "-P", "b", "1,2", "--", "echo", "{a}{b}"),
        ("which parameter counts workers", "a or b?", "--work a", "--work none")),
    "a tool that is not known": (
        2, ("--extract", "pgbnch", "--", "true"), ("neither NAME=REGEX nor a tool", "'pgbench'?")),
    "a pattern of another dialect": (
        2, ("--extract", "a=(?=b)(c)", "--", "true"), ("RE2", "look-around")),
    "a figure of a role that is not there": (
        2, ("--extract", r"load.a=(\d)", "--", "true"), 
        ("--extract load.a: no role 'load'", "target")),
    "a primary figure without a direction": (
        2, ("--extract", r"a=(\d)", "--primary", "a", "--", "true"),
        ("--primary 'a'", "--primary a:higher, or --primary a:lower")),
    "a condition that is no parameter": (
        2, ("-P", "n", "1,2", "--condition", "mode", "--", "echo", "{n}"),
        ("'mode' is no factor",)),
    "two amounts of work": (
        2, ("-P", "n", "1,2", "--work", "scales", "--work", "fixed", "--", "echo", "{n}"),
        ("only one of them",)),
    "levels that end below their start": (
        2, ("-P", "n", "9999..", "--", "echo", "{n}"), ("CPUs granted", "begins at 9999")),
    "levels that are words of their own": (
        2, ("-P", "sync", "none", "lock", "cas", "--", "true"),
        ("lock cas: no option of concurve", "-P sync none,lock,cas")),
    "a level that is a word of its own and a program": (
        2, ("-P", "sync", "false", "true", "--", "python3", "mine.py"),
        ("true: no option of concurve", "-P sync false,true", "-- true -- python3 mine.py")),
    "a server twice": (
        2, ("-P", "n", "1,2", "--attach", "1", "--attach", "2", "--", "true"),
        ("--attach is given 2 times", "one --attach")),
    "a limit twice": (
        2, ("--max-time", "1m", "-P", "n", "1,2", "--max-time=2m", "--", "true"),
        ("--max-time is given 2 times",)),
    "a variable twice": (
        2, ("--env", "A=1", "--env", "A=2", "--", "true"), ("--env A is given more than once",)),
    "a direction that is none": (
        2, ("--extract", r"thr=(\d+):MB/s:more", "--", "true"),
        ("'more' is no direction: lower, higher, neither", ":MB/s:higher")),
    "a misspelt primary figure": (
        2, ("--extract", r"thrr=(\d+):MB/s:higher", "--primary", "thr", "--", "true"),
        ("no figure 'thr'", "did you mean 'thrr'?")),
    "a bad time to wait": (
        2, ("--wait-quiet", "soon", "--", "true"), ("--wait-quiet: 'soon'", "4m")),
    "measuring anyway, and no wait": (
        2, ("--measure-anyway", "--", "true"), ("this run does not wait", "--wait-quiet 5m")),
    "a command in quotes": (
        2, ("--", "sleep 0.1"),
        ('"sleep 0.1" was not found', "each word by itself: sleep 0.1", "sh -c 'sleep 0.1'")),
    "a pipeline in quotes": (
        2, ("-P", "n", "1,2", "--", "true --x={n} | sort"),
        ('was not found', "try: a shell around it: sh -c 'true --x={n} | sort'")),
    "a command of shells": (
        2, ("--", "cd", "/tmp"), ('"cd" was not found', "sh -c 'cd /tmp'")),
    "a home that no shell writes out": (2, ("--", "~/mine"), ("sh -c '~/mine'",)),
    "a placeholder as other tools write it": (
        2, ("-P", "n", "1,2", "--", "echo", "--n=<n>"),
        ("try: {n} in place of <n>, which is passed as it stands",)),
    "a placeholder as shells write it": (
        2, ("-P", "n", "1,2", "--", "echo", "$n"), ("try: {n} in place of $n,",)),
    "a placeholder that is a literal text": (
        2, ("-P", "n", "1,2", "--", "echo", "{{n}}"), ("try: {n} in place of {{n}},",)),
    "levels in brackets": (
        2, ("-P", "n", "[1,2]", "--", "echo", "{n}"), ("-P n: ", "no brackets", "try: 1,2")),
    "two commands in quotes": (
        2, ("--", "sleep 0.1", "sleep 0.2"),
        ('"sleep 0.1" was not found', "one command, each word by itself: sleep 0.1",
         "-P version old,new -- ./{version}")),
    "a wait for a command that does not exist": (
        2, ("--wait-quiet", "5m", "--", "no-such-program"), ("no-such-program", "try: ")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_sweep_is_refused_before_anything_runs(lab: Lab, name: str) -> None:
    code, arguments, says = REFUSALS[name]
    said = refused(lab, code, "sweep", *QUICK, *arguments) if "--repeats" not in arguments else (
        refused(lab, code, "sweep", *arguments)
    )  # fmt: skip
    for words in says:
        assert words in said
    assert not (lab.folder / "ran").exists()


def test_options_that_stand_after_the_dashes_are_told(lab: Lab) -> None:
    line = ("sweep", "-P", "n", "1,2", *QUICK, "--dry-run", "--", "echo", "{n}")
    done = lab.run(*line, "--max-time", "3s")
    assert "note: --max-time stands after --: it is passed to the program" in done.stderr
    for own in (("--size", "3"), ("--seed", "3"), ("-P", "border=2")):
        assert "passed to the program" not in lab.run(*line, *own).stderr


def test_all_options_that_stand_after_the_dashes_are_told_in_one_note(lab: Lab) -> None:
    """``--fail-on`` with a word that is no verdict may be the program's own."""
    line = ("sweep", "-P", "n", "1,2", *QUICK, "--dry-run", "--", "echo", "{n}")
    done = lab.run(*line, "--fail-on", "high", "--seed=3", "--fail-on=low", "--in-doubt")
    (note,) = (text for text in done.stderr.splitlines() if "note: " in text)
    assert note.endswith(
        "note: --fail-on, --seed and --in-doubt stand after --: they are passed to the program, "
        "and concurve does not see them. If concurve is meant, write them before --"
    )
    alone = lab.run(*line, "--fail-on", "high").stderr
    assert "note: --fail-on stands after --: it is passed to the program" in alone


def test_options_behind_a_command_without_dashes_are_refused(lab: Lab) -> None:
    """A dry run would measure."""
    done = lab.run("sweep", "-P", "n", "1,2", "touch", "ran-{n}", "--dry-run")
    assert done.returncode == 2 and "--dry-run stands behind the command" in done.stderr
    assert not list(lab.folder.glob("ran-*"))


def test_one_name_for_two_formats_is_refused(lab: Lab) -> None:
    exports = ("--export-json", "out", "--export-html", "./out")
    done = lab.run("sweep", "-P", "n", "1,2", *exports, "--", "touch", "ran-{n}")
    assert done.returncode == 2 and "is asked for in two formats" in done.stderr
    assert not list(lab.folder.glob("ran-*"))


UNAWAITED = """
[study]
name = "s"
question = "?"
[factors]
n = [1, 2]
[[roles]]
name = "server"
command = ["sh", "-c", "exit 3"]
end = "serve"
[[roles]]
name = "client"
command = ["sh", "-c", "echo {n} http://127.0.0.1:8080/"]
[protocol]
target = "client"
"""


def test_a_dry_run_says_that_nothing_waits_for_a_server(lab: Lab) -> None:
    (lab.folder / "s.toml").write_text(UNAWAITED)
    done = lab.run("run", "s.toml", *QUICK, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert 'nothing waits until server accepts connections: ready = "tcp:8080"' in done.stdout


TOO_LITTLE = """
[study]
name = "too-little"
question = "How many?"
[factors]
workers = [1, 2]
keys = ["hot", "spread"]
[[roles]]
name = "target"
command = ["echo", "{workers}", "{keys}"]
[[indicators]]
name = "answers"
pattern = '([0-9]+) '
"""


def test_what_a_study_file_lacks_for_its_answer_is_said_before_its_trials(lab: Lab) -> None:
    """After them it would be told once nothing can be done about it."""
    (lab.folder / "s.toml").write_text(TOO_LITTLE)
    undirected = 'Say it by better = "higher" (or "lower") in the entry answers of [[indicators]]'
    unconditioned = (
        "keys is taken for a condition, whose levels are not recommended; conditions = []"
    )
    planned = lab.run("run", "s.toml", *QUICK, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert undirected in planned.stdout and unconditioned in planned.stdout
    done = lab.run("run", "s.toml", *QUICK)
    assert done.returncode == 0, done.stderr
    assert undirected in done.stderr and unconditioned in done.stderr
    packaged = lab.run("run", "thread-scaling", *QUICK, "--dry-run")
    assert "taken for a condition" not in packaged.stdout


def test_a_dry_run_refuses_what_the_run_would_refuse(lab: Lab) -> None:
    done = lab.run("sweep", "-P", "v", "a,b", *QUICK, "--dry-run", "--", "./summ-{v}")
    assert done.returncode == 2
    assert not done.stdout, "a plan that cannot be run looks as if it could"
    assert 'v=a: "./summ-a" was not found' in done.stderr
    assert "role target" not in done.stderr


def test_a_misspelt_option_is_named_with_the_nearest_alone(lab: Lab) -> None:
    said = refused(lab, 2, "sweep", "--efort", "quick", "--", "true")
    assert "--effort" in said and "--secret" not in said and "--export-csv" not in said


def test_a_command_with_a_level_in_its_name_may_have_two_dashes_of_its_own(lab: Lab) -> None:
    for name in ("a", "b"):
        program = lab.folder / f"prog-{name}"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    line = ("sweep", "-P", "v", "a,b", *QUICK, "--dry-run", "--", "./prog-{v}", "--", "x")
    done = lab.run(*line)
    assert done.returncode == 0, done.stderr


def test_a_primary_figure_that_only_the_program_can_report_is_told(lab: Lab) -> None:
    line = ("sweep", "-P", "n", "1,2", *QUICK, "--dry-run", "--primary")
    done = lab.run(*line, "gpu_seconds:lower", "--", "echo", "{n}")
    assert done.returncode == 0, done.stderr
    assert "note: gpu_seconds is neither extracted nor always measured" in done.stderr
    assert "is cpu_seconds meant?" in done.stderr
    assert "note: " not in lab.run(*line, "run_seconds", "--", "echo", "{n}").stderr


@pytest.mark.parametrize(
    "levels", ["--nice=5,none", "--base=x,plain", "--dry-run=no", "--cpus=4,--cpus=8"]
)
def test_levels_may_be_options_of_the_program(levels: str, lab: Lab) -> None:
    done = lab.run("sweep", "-P", "flags", levels, *QUICK, "--dry-run", "--", "echo", "{flags}")
    assert done.returncode == 0, done.stderr


def test_a_range_in_another_notation_is_told_as_one_level(lab: Lab) -> None:
    done = lab.run("sweep", "-P", "threads", "1-4", *QUICK, "--", "touch", "ran-{threads}")
    assert done.returncode == 2 and not list(lab.folder.glob("ran-*"))
    assert "levels of threads: 1-4 is a single level, and threads counts workers" in done.stderr
    line = ("sweep", "-P", "n", "1-4", *QUICK, "--dry-run")
    done = lab.run(*line, "--", "echo", "{n}")
    assert "note: -P n '1-4' is a single level; several are written 1..4" in done.stderr
    done = lab.run("sweep", "-P", "n", "1-4,8", *QUICK, "--dry-run", "--", "echo", "{n}")
    assert "note: -P n '1-4' is a single level; several are written 1..4" in done.stderr
    done = lab.run("sweep", "-P", "n", "0..HEAD", *QUICK, "--dry-run", "--", "echo", "{n}")
    assert done.returncode == 0, done.stderr
    assert "note: -P n '0..HEAD': a text; a range has numbers alone" in done.stderr
    done = lab.run("sweep", "-P", "c", "0-0", "--cpus", "{c}", *QUICK, "--dry-run", "--", "true")
    assert done.returncode == 0 and "single level" not in done.stderr


@pytest.mark.parametrize(
    ("name", "levels", "said"),
    [
        ("n", "1,2,x", "note: levels of n: numbers and the word x; the program gets"),
        ("cache", "none,all,1", "note: levels of cache: numbers and the words none and all;"),
        ("threads", "one,two", "note: levels of threads: words and no numbers, so it counts no"),
        ("size", "512,4k", ""),
        ("mode", "cpu,lock", ""),
    ],
)
def test_words_among_numbers_are_told(name: str, levels: str, said: str, lab: Lab) -> None:
    line = ("sweep", "-P", name, levels, *QUICK, "--dry-run", "--", "echo", f"{{{name}}}")
    done = lab.run(*line)
    assert done.returncode == 0, done.stderr
    assert said in done.stderr and ("levels of" in done.stderr) == bool(said)
    hidden = lab.run("sweep", "--secret", name, *line[1:])
    assert "levels of" not in hidden.stderr, "a level may be the secret"


def test_a_word_among_the_numbers_of_workers_runs_nothing(lab: Lab) -> None:
    done = lab.run("sweep", "-P", "threads", "1,2,x", *QUICK, "--", "touch", "ran-{threads}")
    assert done.returncode == 2 and not list(lab.folder.glob("ran-*"))
    assert "levels of threads: x is no number" in done.stderr


def test_two_programs_where_one_is_measured_are_told(lab: Lab) -> None:
    for name in ("old", "new"):
        (lab.folder / name).write_text("#!/bin/sh\n")
        (lab.folder / name).chmod(0o755)
    done = lab.run("sweep", *QUICK, "--dry-run", "--", "nice", "./old", "./new")
    assert done.returncode == 0, done.stderr
    assert "note: one command is measured, ./old with the argument ./new;" in done.stderr
    assert "versions are compared by -P version old,new -- ./{version}" in done.stderr
    line = ("sweep", "-P", "version", "old,new", *QUICK, "--dry-run", "--", "./{version}")
    done = lab.run(*line)
    assert done.returncode == 0 and "note: one" not in done.stderr


def test_what_only_a_shell_reads_is_told(lab: Lab) -> None:
    line = ("sweep", "-P", "n", "1,2", *QUICK, "--dry-run", "--")
    done = lab.run(*line, "echo", "{n}", "|", "sort")
    assert done.returncode == 0, done.stderr
    assert "note: | is passed to echo as an argument" in done.stderr
    done = lab.run(*line, "echo", "--n=${n}")
    assert "note: ${n} is passed as a $ and the level; the level alone is {n}" in done.stderr
    done = lab.run(*line, "sh", "-c", "echo {n} | sort")
    assert "note" not in done.stderr


def test_a_file_that_is_no_command_is_told_how_to_be_started(lab: Lab) -> None:
    for name, typed in (
        ("mine.py", "try: the program that runs it: python3 mine.py"),
        ("Mine.java", "try: the program that runs it: java Mine.java"),
        ("Mine.class", "try: the class: java Mine"),
        ("mine", "try: its path: ./mine"),
    ):
        (lab.folder / name).write_text("#!/bin/sh\n")
        (lab.folder / name).chmod(0o755)
        done = lab.run("sweep", *QUICK, "--dry-run", "--", name)
        assert done.returncode == 2 and typed in done.stderr, done.stderr
    (lab.folder / "mine.py").chmod(0o644)
    done = lab.run("sweep", *QUICK, "--dry-run", "--", "./mine.py")
    assert "try: the program that runs it: python3 ./mine.py" in done.stderr


def test_what_compiles_in_each_trial_is_told(lab: Lab) -> None:
    for tool in ("go", "java"):
        (lab.folder / tool).write_text("#!/bin/sh\n")
        (lab.folder / tool).chmod(0o755)
    (lab.folder / "Mine.java").write_text("")
    line = ("sweep", *QUICK, "--dry-run", "--")
    assert "note: go run may compile in each trial" in lab.run(*line, "./go", "run", "x.go").stderr
    done = lab.run(*line, "./java", "-Xmx1g", "Mine.java")
    assert "note: java Mine.java may compile in each trial" in done.stderr
    assert "compile" not in lab.run(*line, "./java", "-Xmx1g", "Mine").stderr


def test_a_single_setting_is_told_to_be_compared_with_nothing(lab: Lab) -> None:
    line = ("sweep", *QUICK, "--dry-run", "-P", "version", "old")
    done = lab.run(*line, "--", "echo", "{version}")
    assert done.returncode == 0, done.stderr
    assert "note: one setting is measured, so nothing is compared" in done.stderr
    assert "-P version old,…" in done.stderr
    done = lab.run(*line, "-P", "n", "1,2", "--", "echo", "{version}", "{n}")
    assert done.returncode == 0 and "nothing is compared" not in done.stderr
    done = lab.run("sweep", *QUICK, "--dry-run", "--secret", "key", "-P", "key", "abc", "--",
                   "echo", "{key}")  # fmt: skip
    assert "nothing is compared" in done.stderr and "abc" not in done.stderr


def test_levels_that_fall_together_here_are_told(lab: Lab) -> None:
    line = ("sweep", "-P", "n", "0.1%,0.2%,3,4", *QUICK, "--dry-run", "--", "echo", "{n}")
    done = lab.run(*line)
    assert done.returncode == 0, done.stderr
    assert "note: -P n: on " in done.stderr
    assert "0.1% and 0.2% both give 1; each level is measured once" in done.stderr
    done = lab.run("run", "thread-scaling", "--set", "threads=0.1%,0.2%,3", *QUICK, "--dry-run")
    assert "note: --set threads: on " in done.stderr


def test_levels_that_follow_from_the_cpus_are_planned(lab: Lab) -> None:
    cpus = len(os.sched_getaffinity(0))
    done = lab.run(
        "sweep", "-P", "threads", "1..1x", *QUICK, "--dry-run", "--", "echo", "{threads}"
    )
    assert done.returncode == 0, done.stderr
    assert "figure  wall_seconds (s, lower is better); threads counts workers" in done.stdout
    assert f"threads={cpus}\n" in done.stdout and f"threads={cpus + 1}\n" not in done.stdout


def test_a_tool_is_read_and_its_figure_is_primary(lab: Lab) -> None:
    output = "printf 'latency average = 2.5 ms\\ntps = %s00.5 (excluding)\\n' {n}"
    export = sweep(lab, "-P", "n", "1,2", "--extract", "pgbench", "--", "sh", "-c", output)
    assert export["best"]["indicator"] == "tps"
    figures = [cell["indicators"] for cell in export["cells"]]
    assert [figure["tps"]["value"] for figure in figures] == [100.5, 200.5]
    assert figures[0]["latency_seconds"] == {**figures[0]["latency_seconds"], "value": 0.0025,
                                             "unit": "s"}  # fmt: skip
    assert figures[1]["speedup"]["value"] == pytest.approx(200.5 / 100.5)
    assert "failed_transactions" in export["cells"][0]["absent"], "this output does not have it"


def test_other_parameters_are_conditions_and_runs_are_shown_by_their_study(lab: Lab) -> None:
    done = lab.run("sweep", "-P", "n", "1,2", "-P", "mode", "a,b", *QUICK, "--name", "modes", "--",
                   "echo", "{n}", "{mode}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "n counts workers" in done.stderr and "each level of mode" in done.stderr
    shown = json.loads(lab.run("show", "modes", "--json").stdout)
    groups = [item["group"] for item in shown["best_by_condition"]]
    assert groups == [{"mode": "a"}, {"mode": "b"}]
    for name in ("old", "new"):
        lab.run("sweep", "-P", "n", "1", *QUICK, "--name", name, "--", "echo", "{n}")
    compared = lab.run("compare", "old", "new", "--json")
    assert compared.returncode == 0, compared.stderr
    said = lab.run("show", "mode")
    assert said.returncode == 4 and "no run 'mode'" in said.stderr
    for verb in ("runs", "history"):
        assert "did you mean 'modes'?" in lab.run(verb, "moeds").stderr
    for taking_a_run in (["show"], ["explain"], ["export"], ["report"], ["compare", "old"]):
        assert "did you mean 'last'?" in lab.run(*taking_a_run, "lst").stderr


def test_what_the_machine_grants_and_its_load(lab: Lab) -> None:
    done = lab.run("doctor")
    assert done.returncode == 0, done.stderr
    for words in ("What matters most", "What it grants", "CPU quota", "load now", "SMT"):
        assert words in done.stdout
    assert done.stdout.endswith("concurve machine check\n")
    checked = lab.run("machine", "check").stdout
    assert "load now" in checked and checked.endswith("concurve doctor\n")
    granted = done.stdout.partition("What it grants")[2].splitlines()
    sources = [line for line in granted if "granted: " in line]
    assert sources and not [line for line in sources if line in checked], "told once"
    load = json.loads(lab.run("machine", "check", "--json").stdout)["load"]
    assert 0 <= load["foreign"] <= 1 and isinstance(load["processes"], list)


def test_a_figure_of_another_role_is_read(lab: Lab) -> None:
    (lab.folder / "roles.toml").write_text("""
[study]
name = "roles"
question = "What does the client print?"
[factors]
n = [1, 2]
[[roles]]
name = "client"
command = ["echo", "client rate {n}"]
[[roles]]
name = "target"
command = ["echo", "target rate 9"]
[[indicators]]
name = "client.rate"
pattern = 'rate (\\d+)'
unit = "1/s"
better = "higher"
[[indicators]]
use = ["wall_seconds"]
""")
    done = lab.run("run", "roles.toml", *QUICK)
    assert done.returncode == 0, done.stderr
    shown = json.loads(lab.run("show", "roles", "--json").stdout)
    assert [cell["indicators"]["client.rate"]["value"] for cell in shown["cells"]] == [1.0, 2.0]


def test_bytes_that_are_no_text_are_refused(lab: Lab) -> None:
    assert "is not UTF-8" in refused(lab, 2, "sweep", *QUICK, "--", "echo", "\udcff")


def test_output_that_is_no_text_is_no_trouble(lab: Lab) -> None:
    export = sweep(lab, "--extract", r"n=n=(\d+)", "--", "sh", "-c",
                   r"printf '\377\376 \033[31m n=7\n'")  # fmt: skip
    assert export["cells"][0]["indicators"]["n"]["value"] == 7.0


@pytest.mark.postgresql
def test_a_run_on_postgresql(lab: Lab, postgres: Server) -> None:
    url = postgres.database("cli")
    done = lab.run("sweep", "--db", url, "-P", "n", "1,2", *QUICK, *BUSY)
    assert done.returncode == 0, done.stderr
    shown = lab.run("show", "--db", url)
    assert shown.stdout.splitlines()[:2] == done.stdout.splitlines()[:2]
    listed = lab.run("runs", CONCURVE_DB=url)
    assert "sweep-concurve-targets" in listed.stdout and "complete" in listed.stdout
    assert not lab.db.exists()


def test_a_regex_that_never_matches_stops_at_the_first_trial(lab: Lab) -> None:
    done = lab.run("sweep", *QUICK, "--extract", r"rate=rate: (\d+)", "--",
                   "sh", "-c", "echo run >> ran; echo speed 5")  # fmt: skip
    assert done.returncode == 5
    assert "figure rate: 'rate: (" in done.stderr
    assert "speed 5" in done.stderr and "try: " in done.stderr
    assert (lab.folder / "ran").read_text() == "run\n", "once"


def test_studies_and_runs_that_are_not_there(lab: Lab) -> None:
    assert "did you mean 'thread-scaling'?" in refused(lab, 2, "run", "thread-scalling")
    (lab.folder / "bad.toml").write_text("[study]\nname = 'x'\nquestoin = 'y'\n")
    said = refused(lab, 2, "run", "bad.toml")
    assert "bad.toml: " in said and "try: " in said
    for verb in (["show", "last"], ["resume", "2025"], ["export", "x"], ["runs"]):
        assert "there is no store" in refused(lab, 4, *verb)
    assert not list(lab.folder.glob("*.db")), "reading makes none"


def test_a_control_that_is_refused_names_the_capability(lab: Lab) -> None:
    """As a user without privilege: real-time classes and better nice values are not granted."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give it up")
    lab.folder.chmod(0o777)
    let_others_through(lab.folder)
    native = lab.folder / "native"
    native.mkdir()
    shutil.copy(binary("concurve-trial"), native)
    # The checkout may stand where others cannot read: load everything, then give root up.
    script = (
        "import os, sys, importlib.readers; "
        "import concurve.cli, concurve.cli.measuring, concurve.report.terminal, "
        "concurve.definition.study_line, concurve.host.machine, "
        "concurve.measuring.hooks, concurve.measuring.laboratory, sysconfig; "
        "sysconfig.get_paths(); "
        "from concurve.store import Store; Store(':memory:').close(); "
        "os.setgroups([]); os.setgid(65534); os.setuid(65534); "
        "sys.argv[0] = 'concurve'; concurve.cli.main()"
    )
    for option in (("--nice", "-5"), ("--policy", "fifo:10")):
        done = subprocess.run(
            [sys.executable, "-c", script, "sweep", *QUICK, *option, "--", "touch", "ran"],
            env=lab.environment(CONCURVE_NATIVE=str(native)),
            cwd=lab.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 3, done.stderr
        assert "CAP_SYS_NICE" in done.stderr or "RLIMIT" in done.stderr
        assert "try: " in done.stderr
        assert runs(lab) == 0
        assert not (lab.folder / "ran").exists()


# -- stopping ------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_ends_cleanly_and_is_resumed(lab: Lab, sign: signal.Signals) -> None:
    # The third trial waits for the signal, so that none comes too late.
    script = "sleep 77 & echo >> begun; test $(wc -l < begun) -le 2 || test -e go || sleep 1000"
    command = ("sweep", "-P", "n", "1,2", "--effort", "quick", "--repeats", "6..6", "--",
               "sh", "-c", script, "{n}")  # fmt: skip
    process = lab.start(*command)
    lab.wait_for_process("sleep 1000")
    process.send_signal(sign)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "what was measured is stored" in stderr and "concurve resume" in stderr
    assert lab.wait_until_alone() == {}
    store = Store(str(lab.db))
    run = store.find_run("last")
    before = store.count(run.id)
    assert (run.state, before) == ("interrupted", 2)
    assert "interrupted" in lab.run("show", "last").stdout
    (lab.folder / "go").touch()
    done = lab.run("resume", "last")
    assert done.returncode == 0, done.stderr
    trials = [row.outcome.key for row in store.trials(run.id)]
    assert len(set(trials)) == len(trials) >= 12
    assert store.find_run("last").state == "complete"


def test_a_runner_that_is_killed_leaves_nobody_behind(lab: Lab) -> None:
    script = "sleep 1077 & sleep 1078"
    process = lab.start("sweep", "--effort", "quick", "--timeout", "1h", "--", "sh", "-c", script)
    lab.wait_for_process("sleep 1077")
    (runner,) = (pid for pid, line in lab.alive().items() if "concurve-trial" in line)
    os.kill(runner, signal.SIGKILL)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 5
    assert "the trial runner failed with exit code -9" in stderr
    assert lab.wait_until_alone() == {}
    store = Store(str(lab.db))
    assert store.find_run("last").state == "failed"


def test_a_second_measurement_on_the_machine_is_refused(lab: Lab) -> None:
    process = lab.start("sweep", "--effort", "quick", "--timeout", "1h", "--", "sleep", "1001")
    try:
        lab.wait_for_process("sleep 1001")
        done = lab.run("sweep", *QUICK, "--", "true")
        assert done.returncode == 3
        assert f"another measurement runs on this machine: pid {process.pid}" in done.stderr
        assert runs(lab) == 1
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert lab.wait_until_alone() == {}


# -- the rest ------------------------------------------------------------------------------


def test_studies_machine_and_version(lab: Lab) -> None:
    assert "thread-scaling" in lab.run("studies").stdout
    assert lab.run("--version").stdout.startswith("concurve ")
    checked = lab.run("machine", "check")
    assert checked.returncode == 0, checked.stderr
    assert re.search(r"^(ok|!!|--)  CPUs", checked.stdout, re.MULTILINE)
    facts = json.loads(lab.run("machine", "check", "--json").stdout)
    assert set(facts) == {"machine", "load", "probes"}
    assert facts["machine"]["cpus_allowed"] == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    "verb", ["", "sweep", "run", "resume", "studies", "runs", "show", "report", "export",
             "machine check", "doctor"]
)  # fmt: skip
def test_help_begins_with_an_example(lab: Lab, verb: str) -> None:
    done = lab.run(*verb.split(), "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"concurve {verb}".strip() in done.stdout
    assert done.stdout.index("Example") < done.stdout.index("Options:")
    assert max(map(len, done.stdout.splitlines())) <= 80

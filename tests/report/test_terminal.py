"""The terminal view: it fits, it is plain where it must be, and it names what it leaves out."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from concurve.cli.streams import tell_remedy
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings, Reject
from concurve.findings.run import Finding, Report
from concurve.report import terminal
from concurve.report.console import Line, beside, print_lines
from concurve.report.document import Column, Document, Role, Table
from concurve.report.sections import figures, rejected
from concurve.report.sections.limits import explanation_document
from concurve.report.sections.run import (
    ALL_TOPICS,
    Topic,
    brief_run_document,
    run_document,
)
from concurve.report.terminal import lines
from tests.report import samples


class Screen(io.StringIO):
    """A terminal that remembers what was written to it."""

    def isatty(self) -> bool:
        return True


def brief(report: Report) -> Document:
    """With all that a brief report may be asked for."""
    return brief_run_document(report, report.scaling, report.explanation)


def printed(found: Report, report: str | None = None) -> str:
    out = io.StringIO()
    terminal.show(brief(found), out, report)
    return out.getvalue()


@pytest.mark.parametrize("name", samples.ALL)
@pytest.mark.parametrize("width", [30, 45, 80, 132])
def test_fits_its_width(name: str, width: int) -> None:
    for line in terminal.lines(brief(samples.ALL[name]()), width):
        assert cell_len(line.plain) <= width, line.plain


@pytest.mark.parametrize("name", samples.ALL)
def test_plain_output_has_no_escapes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = printed(samples.ALL[name]())
    assert "\x1b" not in text
    assert all(cell_len(line) <= 80 for line in text.splitlines())
    assert not set(text) & set("│─┃━┏┓")


@pytest.mark.parametrize(("into", "width"), [("pipe", 60), ("file", 80)])
def test_a_pager_gets_lines_of_the_width_of_its_terminal(
    into: str, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``concurve show | less``: what is written to a file has no terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal_of, ours = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    if into == "pipe":
        reading, writing = os.pipe()
    else:
        writing = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
        reading = os.dup(writing)
    widths = []

    def made(found: int) -> list[Line]:
        widths.append(found)
        return [Line("a line")]

    with os.fdopen(ours, "w") as screen, os.fdopen(writing, "w") as out:
        monkeypatch.setattr("sys.stderr", screen)
        print_lines(made, out)
    os.close(reading)
    os.close(terminal_of)
    assert widths == [width]


@pytest.mark.parametrize(
    ("note", "word", "remark"),
    [
        ("timed out: after 5 s", "failed", "! failed: timed out: after 5 s (cpus=1 threads=32)"),
        ("the program failed: exited with 1", "failed", "! the program failed: exited with 1 ("),
        ("given up by the check: x", "skipped", "! skipped: given up by the check: x ("),
    ],
)
def test_a_setting_that_failed_is_not_called_skipped(note: str, word: str, remark: str) -> None:
    report = samples.troubled()
    cells = [
        msgspec.structs.replace(cell, note=note) if cell.status == "skipped" else cell
        for cell in report.cells
    ]
    text = printed(msgspec.structs.replace(report, cells=tuple(cells)))
    assert remark in text
    row = next(line for line in text.splitlines() if line.split()[:2] == ["1", "32"])
    assert word in row.split()


def test_colours_on_a_terminal_only_and_not_against_no_color(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def on_screen() -> str:
        screen = Screen()
        terminal.show(brief_run_document(samples.troubled()), screen)
        return screen.getvalue()

    assert "\x1b[33m" in on_screen()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in on_screen()
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in on_screen()


def test_columns_are_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of the body has its fields where the heading's rule says."""
    monkeypatch.setenv("COLUMNS", "200")
    lines = printed(samples.troubled()).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("----"))
    rule = lines[at]
    gaps = [i for i, char in enumerate(rule) if char == " "]
    for row in lines[at + 1 : at + 13]:
        assert all(row[i : i + 1] in ("", " ") for i in gaps), row
        assert row.split()[1] in {"1", "2", "8", "32", "128", "512"}


def test_wanted_indicators_come_first_and_others_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = printed(samples.thread_scaling())
    heading = next(line for line in text.splitlines() if line.startswith("cpus"))
    assert "wall time (s)" in heading and "speed-up" in heading
    lines = text.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("not shown: "))
    named = lines[at].removeprefix("not shown: ").partition(" and ")[0].split(", ")
    report = samples.thread_scaling()
    order = report.names_in_order()
    first = order.index(named[0])
    assert named == order[first : first + len(named)], "the most wanted of the others"
    more = len(order) - first - len(named)
    assert lines[at].endswith(f" and {more} more (concurve show {report.run.id} --figures)")


def test_a_figure_that_a_sentence_says_differs_has_its_column() -> None:
    """Not one that a sentence names for another reason."""

    def columns(*sentences: str) -> str:
        said = tuple(Finding(kind="answer", sentence=text) for text in sentences)
        report = msgspec.structs.replace(samples.judged(), sentences=said)
        found = (line.plain for line in terminal.lines(brief(report), 52))
        return next(line for line in found if "speed-up" in line and "wall time" in line)

    usual = columns("1 of 3 trials is in doubt because the hypervisor took CPU time.")
    assert "CPU time" not in usual
    assert "efficiency" in usual
    told = columns("CPU time differs where wall time is undecided: 4.1 % higher [3, 5 %].")
    assert "CPU time" in told
    assert "speed-up" in told


@pytest.mark.parametrize("width", [60, 80, 120])
def test_levels_stay_where_their_headings_are_cut(width: int) -> None:
    """The number of a level is short, however long the name of its factor is."""
    factors = ("queue-depth", "write-cache-kib", "cpu-ms-per-megabyte", "page-cache-limit-kib")
    levels = [(number, 8192 * number, 7 + number, 40 + number) for number in range(1, 5)]
    keys = [
        Column(name, [str(level[place]) for level in levels], Role.KEY)
        for place, name in enumerate(factors)
    ]
    figures = Column("load time (simulated)", [f"{n} s" for n in "1234"], Role.TEXT)
    document = Document("many", (Table((*keys, figures)),))
    rows = [line.plain.split() for line in terminal.lines(document, width)]
    for level in levels:
        shown = next(row for row in rows if row[:1] == [str(level[0])])
        assert "…" not in shown
        assert shown[1:3] == [str(level[1]), str(level[2])]


def test_says_what_happened() -> None:
    text = printed(samples.troubled(), report="out/report.html")
    assert "! The machine is virtual" in text
    assert "3 of 51 trials rejected, 48 used: error (2), contaminated (1)" in text
    assert "failed: exit code 1 twice: cannot create thread (cpus=1 threads=32)" in text
    assert "! interrupted: stopped by SIGINT in block 5" in text
    assert text.endswith("report: out/report.html\n")


def test_ascii_streams_get_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    terminal.show(brief_run_document(samples.text_factor()), stream)
    stream.flush()
    assert b"+-" in raw.getvalue()
    assert all(len(line) <= 80 for line in raw.getvalue().splitlines())


def test_import_stays_light() -> None:
    code = (
        "import sys, concurve.report.terminal, concurve.report.progress, concurve.report.html,"
        " concurve.report.charts, concurve.report.sections.run\n"
        "heavy = {'altair', 'vl_convert', 'jinja2', 'pandas', 'numpy'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_others_on_the_machine_did_is_said_once() -> None:
    found = samples.judged().explanation
    assert found is not None
    cells = [
        msgspec.structs.replace(
            found.cells[0],
            cause="contamination",
            parameters={"threads": number},
            evidence=f"Evidence {number}.",
        )
        for number in range(1, 6)
    ]
    for shown in (2, 5):
        some = msgspec.structs.replace(found, cells=tuple(cells[:shown]))
        lines = [line.plain for line in terminal.lines(explanation_document(some), 80)]
        text = " ".join(" ".join(lines).split())
        assert text.count("Evidence") == (2 if shown == 2 else 1)
        others = "contamination: The same with threads=2, threads=3, threads=4, threads=5."
        assert (others in text) == (shown == 5)


@pytest.mark.parametrize(("factor", "is_told"), [(1.0, False), (1.01, False), (1.03, True)])
def test_a_speedup_that_the_medians_do_not_have_is_explained(factor: float, is_told: bool) -> None:
    """Each block has a speed-up of its own: where the machine slowed down, the medians have
    another one. Who divides them sees it from 2 % on."""
    found = samples.thread_scaling()

    def moved(cell: CellFindings) -> CellFindings:
        base = found.cells[cell.index if cell.base is None else cell.base]
        figures = dict(cell.indicators)
        exact = base.indicators["wall_seconds"].value / figures["wall_seconds"].value
        figures["speedup"] = msgspec.structs.replace(figures["speedup"], value=factor * exact)
        return msgspec.structs.replace(cell, indicators=figures)

    text = printed(msgspec.structs.replace(found, cells=tuple(map(moved, found.cells))))
    said = " ".join(text.split())
    note = "speed-ups compare neighbouring trials, not these medians"
    assert (note in said) is is_told


def test_the_speed_up_stays_where_a_latency_has_no_room() -> None:
    """It stands behind the latency, and is worth more."""
    found = samples.thread_scaling()
    cells = tuple(
        msgspec.structs.replace(
            cell,
            indicators={**cell.indicators, "latency_seconds_p99": cell.indicators["wall_seconds"]},
        )
        for cell in found.cells
    )
    found = msgspec.structs.replace(found, cells=cells)
    assert found.names_in_order()[:3] == ["wall_seconds", "latency_seconds_p99", "speedup"]
    for width in range(50, 110):
        heading = next(
            line.plain for line in terminal.lines(brief(found), width) if "cpus" in line.plain[:6]
        )
        assert "speed-up" in heading or "p99" not in heading, width
    assert heading.index("p99 (") < heading.index("speed-up")


def test_a_latency_without_room_stands_in_a_table_of_its_own_below() -> None:
    """With the keys, where the rows are few; it is not named as left out."""
    names = ("latency_ns_p99", "latency_ns_p50", "server.latency_ns_p50")
    found = with_latencies(names)
    few = msgspec.structs.replace(found, cells=found.cells[:6])
    lines = [line.plain for line in terminal.lines(brief(few), 50)]
    first, second = (at for at, line in enumerate(lines) if line.startswith("cpus "))
    assert "p99" not in lines[first] and " p99 (s)" in lines[second]
    assert lines[second - 1] == "" and second - first == len(few.cells) + 3
    assert not any("latency_ns_p99" in line for line in lines), "it is not left out"
    assert " latency_ns_p50 (s)" in lines[second], "two have this percentile"
    many = [line.plain for line in terminal.lines(brief(with_many(found)), 50)]
    assert sum(line.startswith("cpus ") for line in many) == 1


def with_many(found: Report) -> Report:
    """The run with more cells than have a second table."""
    return msgspec.structs.replace(found, cells=found.cells[:6] + found.cells[1:6])


def test_where_the_time_goes_stands_below_where_it_has_no_room() -> None:
    found = samples.judged().explanation
    assert found is not None
    shown = {}
    for width in (60, 200):
        lines = [line.plain for line in terminal.lines(explanation_document(found), width)]
        shown[width] = [line for line in lines if "where it goes" in line]
    (below,), (beside,) = shown.values()
    assert "time/op" in beside and "cause" in beside
    assert "time/op" not in below and below.split()[0] == beside.split()[0]


def with_latencies(names: tuple[str, ...]) -> Report:
    """A run with these figures."""
    found = samples.thread_scaling()

    def figures(cell: CellFindings) -> CellFindings:
        told = dict.fromkeys(names, cell.indicators["wall_seconds"])
        return msgspec.structs.replace(cell, indicators={**cell.indicators, **told})

    return msgspec.structs.replace(found, cells=tuple(map(figures, found.cells)))


def test_of_two_latencies_the_tail_is_wanted_more_and_the_usual_one_where_only_it_fits() -> None:
    names = ("load.latency_ns_p50", "load.latency_ns_p99")
    found = with_latencies(names)
    assert found.names_in_order()[1:3] == ["load.latency_ns_p99", "load.latency_ns_p50"]
    asked = msgspec.structs.replace(found, asked=("wall_seconds", *names))
    latencies = [name for name in asked.names_in_order() if name in names]
    assert latencies == [*names], "who asks has an order of their own"
    by_length = ("load.latency_of_one_p50", "load.latency_of_all_that_was_sent_p99")
    wide = with_latencies(by_length)
    shown = set()
    for width in range(40, 140):
        lines = (line.plain for line in terminal.lines(brief(wide), width))
        heading = next((line for line in lines if line.startswith("cpus")), "")
        shown.add(tuple(name in heading for name in by_length))
    assert {(False, False), (True, False), (True, True)} <= shown


def test_what_a_study_asks_for_stands_before_what_one_copy_of_a_load_did() -> None:
    found = samples.thread_scaling()
    names = ("load-1.latency_ns_p50", "load-2.latency_ns_p50", "load.latency_ns_p50",
             "load.latency_ns_p99")  # fmt: skip
    cells = tuple(
        msgspec.structs.replace(
            cell,
            indicators={**cell.indicators, **dict.fromkeys(names, cell.indicators["wall_seconds"])},
        )
        for cell in found.cells
    )
    found = msgspec.structs.replace(found, cells=cells)
    assert found.names_in_order()[1] == "load.latency_ns_p99", "of all copies"
    asked = msgspec.structs.replace(found, asked=("wall_seconds", "load.latency_ns_p99"))
    assert asked.names_in_order()[:3] == ["wall_seconds", "load.latency_ns_p99", "speedup"]


def test_a_second_indicator_that_is_asked_for_stays_longer_than_the_speed_up() -> None:
    found = samples.thread_scaling()
    name = "load.latency_ns_p99"
    cells = tuple(
        msgspec.structs.replace(
            cell, indicators={**cell.indicators, name: cell.indicators["wall_seconds"]}
        )
        for cell in found.cells
    )
    found = msgspec.structs.replace(found, cells=cells)

    def heading(asked: tuple[str, ...], width: int) -> str:
        report = msgspec.structs.replace(found, asked=asked)
        lines = (line.plain for line in terminal.lines(brief(report), width))
        return next(line for line in lines if line.startswith("cpus"))

    widths = range(40, 121)
    assert any("speed-up" in it and " p99 (" not in it for it in (heading((), w) for w in widths))
    for width in widths:
        line = heading(("wall_seconds", name), width)
        assert " p99 (" in line or "speed-up" not in line, line


@pytest.mark.parametrize("width", [20, 80, 200])
def test_a_search_in_the_list_of_all_figures_finds_each_name_and_level(width: int) -> None:
    found = samples.thread_scaling()
    name = "server-of-the-other-host-2.voluntary_switches_per_operation"
    cells = tuple(
        msgspec.structs.replace(
            cell, indicators={**cell.indicators, name: cell.indicators["wall_seconds"]}
        )
        for cell in found.cells
    )
    found = msgspec.structs.replace(found, cells=cells)
    document = brief_run_document(found, topics=[Topic.FIGURES])
    lines = [line.plain for line in terminal.lines(document, width)]
    words = [line.split() for line in lines[lines.index("all figures:") :]]
    for searched in found.names_in_order():
        rows = [row[1:3] for row in words if row[:1] == [searched]]
        levels = [[str(level) for level in cell.parameters.values()][:2] for cell in cells]
        assert rows and all(row in levels for row in rows), (searched, rows)


def test_a_load_that_is_asked_for_a_rate_shows_it_and_both_latencies() -> None:
    """Its speed-up says how many times as much it was asked for."""
    found = samples.thread_scaling()
    figure = found.cells[0].indicators["wall_seconds"]
    names = ("load.latency_ns_p99", "load.latency_ns_p50", "load.rate_asked_share")

    def with_figures(names: tuple[str, ...], cells: int) -> Report:
        changed = tuple(
            msgspec.structs.replace(
                cell, indicators={**cell.indicators, **dict.fromkeys(names, figure)}
            )
            if number < cells
            else cell
            for number, cell in enumerate(found.cells)
        )
        return msgspec.structs.replace(found, cells=changed)

    paced = with_figures(names, len(found.cells))
    assert paced.names_in_order()[:5] == [
        "wall_seconds", "load.rate_asked_share", "load.latency_ns_p99", "load.latency_ns_p50",
        "speedup",
    ]  # fmt: skip
    heading = " ".join(line.plain for line in terminal.lines(brief(paced), 100)[:14])
    assert "load.rate_asked_share" in heading and " p99 (s)" in heading, heading
    assert "speed-up" not in heading.partition("not shown")[0]
    assert not with_figures(names, 1).is_paced, "not in each cell"
    closed = with_figures(names[:2], len(found.cells))
    assert closed.names_in_order()[1:4] == [*names[:2], "speedup"]


@pytest.mark.parametrize("least", [0.8, 0.995])
def test_a_rate_that_was_not_kept_is_told_beside_the_primary_figure(least: float) -> None:
    """In the narrowest terminal, and before what was asked for by name: the latency at a rate that
    was not kept is that of what waited."""
    found = samples.thread_scaling()
    figure = found.cells[0].indicators["wall_seconds"]
    share = msgspec.structs.replace(figure, low=None, high=None, unit="")
    cells = tuple(
        msgspec.structs.replace(
            cell,
            indicators={
                **cell.indicators,
                "load.latency_ns_p99": figure,
                "load.rate_asked_share": msgspec.structs.replace(share, value=value),
            },
        )
        for cell, value in zip(found.cells, [least] + [1.0] * len(found.cells), strict=False)
    )
    paced = msgspec.structs.replace(found, cells=cells, asked=("load.latency_ns_p99",))
    heading = " ".join(line.plain for line in terminal.lines(brief(paced), 56)[:14])
    heading = heading.partition("not shown")[0]
    assert ("load.rate_asked_share" in heading) == (least == 0.8), heading
    assert "wall time" in heading


def test_a_trial_in_doubt_names_its_host_where_there_are_several() -> None:
    def reject(detail: str) -> Reject:
        return Reject(
            cell=0, parameters={}, block=0, attempt=0, cause="foreign_cpu", detail=detail, used=True
        )

    found = samples.thread_scaling()
    told = {
        ("12 % of the CPUs",): "3 trials in doubt: other processes used the CPUs (3)",
        ("host rk2: 12 %",): "3 trials in doubt: other processes used the CPUs on rk2 (3)",
    }
    for details, says in told.items():
        rejects = tuple(reject(detail) for detail in details * 3)
        assert rejected.summary(msgspec.structs.replace(found, rejects=rejects)) == says
    both = (reject("host rk2: 12 %"), reject("host rk3: 9 %"))
    said = rejected.summary(msgspec.structs.replace(found, rejects=both))
    assert said == "2 trials in doubt: other processes used the CPUs on rk2 and rk3 (2)"


def test_a_text_stands_beside_its_head_in_the_width_of_a_terminal() -> None:
    found = [line.plain for line in beside("ok  name    ", "some words that need two lines", 30)]
    assert found == ["ok  name    some words that", " " * 14 + "need two lines"]
    narrow = [line.plain for line in beside("ok  name    ", "words", 20)]
    assert narrow == ["ok name words"], "no room beside it"


def test_a_figure_that_has_two_names_is_listed_once() -> None:
    """Without a phase the time of the run is the wall time; both names stay to be found."""
    report = samples.thread_scaling()

    def with_run(seconds: Callable[[Estimate], Estimate]) -> str:
        cells = tuple(
            msgspec.structs.replace(
                cell,
                indicators={**cell.indicators,
                            "run_seconds": seconds(cell.indicators["wall_seconds"])},
            )
            for cell in report.cells
            if "wall_seconds" in cell.indicators
        )  # fmt: skip
        found = msgspec.structs.replace(report, cells=cells)
        every = msgspec.structs.replace(
            run_document(found), blocks=(figures.every(found), figures.full(found))
        )
        return "\n".join(line.plain for line in lines(every, 100))

    same = with_run(lambda it: it)
    assert "the same by another name: run_seconds (= wall_seconds)." in same
    assert not re.search("^run_seconds", same, re.MULTILINE) and "run time" not in same
    longer = with_run(lambda it: msgspec.structs.replace(it, value=2 * it.value))
    assert re.search("^run_seconds", longer, re.MULTILINE)
    assert "another name" not in longer


def test_all_that_is_known_has_headings_which_are_named_first_and_ends_with_what_is_long() -> None:
    report = samples.troubled()
    document = brief_run_document(report, report.scaling, topics=ALL_TOPICS)
    text = "\n".join(line.plain for line in lines(document, 100))
    named = re.search(r"^below: (.*)$", text, re.MULTILINE)
    assert named is not None
    headings = named[1].split(", ")
    assert headings[-3:] == ["what was rejected", "the machine", "all figures"]
    places = [text.index(f"\n\n{heading}:\n") for heading in headings]
    assert places == sorted(places) and places[0] > named.start()
    some = brief_run_document(report, topics=[Topic.MACHINE])
    assert "below:" not in "\n".join(line.plain for line in lines(some, 100))


def test_figures_that_follow_are_not_asked_for() -> None:
    def shown(*topics: Topic) -> str:
        document = brief_run_document(samples.ALL["thread_scaling"](), topics=topics)
        return "\n".join(line.plain for line in lines(document, 80))

    assert "--figures)" in shown(Topic.MACHINE)
    all_of_it = shown(*ALL_TOPICS)
    assert "--figures" not in all_of_it and "not shown: " not in all_of_it, "all are listed"


REMEDY = (
    "end these processes, or give them the lowest priority (`echo 19 | sudo tee "
    "/proc/4831/autogroup /proc/4942/autogroup /proc/4946/autogroup`), or wait: "
    "`concurve sweep --wait-quiet 5m …`"
)


@pytest.mark.parametrize("width", [34, 60, 80, 132])
def test_a_remedy_fits_a_terminal_and_its_commands_can_be_copied(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    tell_remedy(REMEDY, 29)
    shown = screen.getvalue().splitlines()
    assert max(map(cell_len, shown)) <= width, shown
    assert shown[0].lstrip().startswith("→ end these")
    of_a_shell = " ".join(line.strip() for line in shown).replace(" \\ ", " ")
    assert of_a_shell == f"→ {REMEDY}"
    commands = screen.getvalue().split("`")[1::2]
    broken = [line for command in commands for line in command.splitlines()[:-1]]
    assert all(line.endswith(" \\") for line in broken), shown


def test_a_remedy_in_a_pipe_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell_remedy(REMEDY, 29)
    assert capsys.readouterr().out == f"{' ' * 28}→ {REMEDY}\n"

"""What a reader with a minute sees: the answer first, and all of it on one screen."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len

from concurve.definition.study import Rules
from concurve.findings.cells import CellFindings
from concurve.findings.explanation import Cause, CellExplanation, Limit
from concurve.findings.run import PRECISION, Finding, Report
from concurve.report import terminal
from concurve.report.document import Chart, Document, List, Paragraph, Section, Table, walk
from concurve.report.html import to_html
from concurve.report.sections import overview
from concurve.report.sections.figures import brief, first
from concurve.report.sections.overview import Room, limited
from concurve.report.sections.run import brief_run_document, run_document
from concurve.report.terminal import SCREEN, lines, report_line
from concurve.store import Store
from tests.analysis.test_own_latencies import run_of_wrk
from tests.analysis.test_quiet import run_with
from tests.helpers.made import made_run
from tests.report import samples
from tests.report.demonstrations import BEFALLS, of_the_demonstration

#: A terminal of the usual size has 24 to 40 lines; the prompt and the command take some.
LINES_MAX = 30


def amdahl(n: str) -> float:
    return 0.1 + 1.0 / float(n)


def uneven(n: str) -> float:
    """Small gains: many settings cannot be told apart."""
    return 1.0 + 0.001 * float(n)


#: Sweeps over one factor: made of quiet trials, of noisy ones, and of many levels.
SWEEPS = {
    "quiet": (amdahl, 0.01, (1, 2, 4, 8)),
    "noisy": (amdahl, 0.4, (1, 2, 4, 8, 16)),
    "flat": (uneven, 0.05, (1, 2, 4, 8, 16, 32)),
    "many": (amdahl, 0.05, (1, 2, 3, 4, 6, 8, 12, 16)),
}


def sweep(name: str) -> Report:
    seconds, cv, levels = SWEEPS[name]
    return made_run(Store(), seconds, cv=cv, threads=levels)


def shown(report: Report, width: int) -> list[str]:
    document = brief_run_document(report, limits=limited(report, report.explanation))
    found = [*lines(document, width), *report_line("report.html")]
    return [line.plain for line in found]


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_fits_on_a_screen(name: str) -> None:
    text = shown(sweep(name), 80)
    assert len(text) <= LINES_MAX, "\n".join(text)


@pytest.mark.parametrize("name", ["thread_scaling", "judged"])
def test_a_study_fits_on_a_screen(name: str) -> None:
    text = shown(samples.ALL[name](), 80)
    assert len(text) <= LINES_MAX, "\n".join(text)


@pytest.mark.parametrize("name", [*SWEEPS, *samples.ALL])
def test_the_answer_comes_first(name: str) -> None:
    report = sweep(name) if name in SWEEPS else samples.ALL[name]()
    answers = [item.sentence for item in report.sentences if item.kind == "answer"]
    if answers:
        text = " ".join(line.strip() for line in shown(report, 200))
        table = text.find("----")
        assert 0 <= text.find(answers[0][:40]) < table


@pytest.mark.parametrize("name", ["quiet", "noisy", "flat"])
@pytest.mark.parametrize("width", [40, 45, 50, 60])
def test_a_narrow_terminal_keeps_the_primary_figure(name: str, width: int) -> None:
    report = sweep(name)
    text = shown(report, width)
    assert all(cell_len(line) <= width for line in text)
    joined = "\n".join(text)
    for cell in report.cells:
        value = cell.indicators[report.primary].value
        assert any(f"{value:.{digits}g}"[:3] in joined for digits in (2, 3, 4)), (value, joined)


def test_the_page_begins_with_the_answer_and_its_chart() -> None:
    document = run_document(sweep("quiet"))
    first = document.blocks[0]
    assert isinstance(first, Section)
    inside = list(walk(first.blocks))
    charts = [block for block in inside if isinstance(block, Chart)]
    assert [chart.name for chart in charts] == ["speedup-by-threads"]
    assert all(chart.name != charts[0].name for block in document.blocks[1:]
               for chart in walk((block,)) if isinstance(chart, Chart))  # fmt: skip


def test_the_page_counts_the_trials_of_the_medians() -> None:
    """Trials that are set aside are in none."""
    report = sweep("quiet")
    first, second, *others = report.cells
    fewer = msgspec.structs.replace(first, set_aside=3, doubtful=3)
    report = msgspec.structs.replace(report, cells=(fewer, second, *others))
    page = to_html(run_document(report))
    most = max(cell.trials for cell in report.cells)
    assert f"Medians of {first.trials - 3} to {most} trials a cell" in page


def test_a_study_on_a_busy_machine_fits_too() -> None:
    """Every figure is in doubt, and every cell has a remark."""
    busy = run_with({"1": 24, "2": 24}, slower=1.6)
    text = shown(busy, 80)
    assert len(text) <= LINES_MAX - 6, "six rows more would still fit\n" + "\n".join(text)
    assert any("in doubt" in line for line in text)


def test_a_long_sweep_on_a_machine_that_was_disturbed_now_and_then_fits() -> None:
    levels = tuple(range(1, 13))
    disturbed = run_with({str(level): 3 for level in levels}, slower=1.6, threads=levels)
    text = shown(disturbed, 80)
    assert len(text) <= LINES_MAX, "\n".join(text)
    assert any("in doubt" in line for line in text)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("befalls", BEFALLS)
def test_the_demonstration_fits_on_a_screen_whatever_befalls_it(befalls: str, seed: int) -> None:
    report = of_the_demonstration(befalls, seed)
    text = shown(report, 79)
    assert len(text) <= LINES_MAX, "\n".join(text)
    said = "\n".join(text)
    assert "--claims" in said
    assert "What limits it" in said


@pytest.mark.parametrize("width", [40, 50, 60, 79])
def test_what_limits_it_is_said_at_every_width(width: int) -> None:
    """It is half of the answer: warnings and the legend are left out before."""
    report = of_the_demonstration("always stolen", 0)
    assert any(line.startswith("What limits it: ") for line in shown(report, width))


def test_what_does_not_fit_on_a_screen_is_counted() -> None:
    report = of_the_demonstration("always stolen", 0)
    whole = brief_run_document(report, limits=limited(report, report.explanation))
    kept = "\n".join(line.plain for line in lines(whole, 79))
    every = msgspec.structs.replace(whole, shorter=None)
    assert len(lines(every, 79)) > SCREEN >= len(lines(whole, 79)), "or this tests nothing"
    (left,) = re.findall(r"(\d+) more warnings: --all", " ".join(kept.split()))
    unbroken = " ".join(line.plain.strip() for line in lines(every, 79))
    (before,) = re.findall(r"(\d+) more warnings: --all", unbroken)
    assert int(left) == int(before) + 1
    assert "more figures" not in kept
    assert re.search(r"\nmore: concurve show \S+ [^:]*--figures", kept), "told on one line"


def slowed(report: Report, by: float = 1.3, length: int = 120) -> Report:
    """The run with speed-ups that its medians do not have, and with more warnings than fit, each of
    so many words."""
    base = report.cells[0].indicators["wall_seconds"].value

    def moved(cell: CellFindings) -> CellFindings:
        speedup = cell.indicators["speedup"]
        value = by * base / cell.indicators["wall_seconds"].value
        told = msgspec.structs.replace(speedup, value=value)
        return msgspec.structs.replace(cell, indicators={**cell.indicators, "speedup": told})

    cells = (report.cells[0], *map(moved, report.cells[1:]))
    long = tuple(
        Finding(kind="warning", sentence=f"Warning {number}: {'much ' * length}.")
        for number in (1, 2)
    )
    sentences = (*report.sentences, *long)
    return msgspec.structs.replace(report, cells=cells, sentences=sentences)


def test_speed_ups_that_the_medians_do_not_have_are_told_where_lines_are_few() -> None:
    note = "speed-ups compare neighbouring trials, not these medians"
    report = slowed(sweep("many"))
    text = shown(report, 80)
    assert len(text) <= LINES_MAX, "\n".join(text)
    said = " ".join(line.strip() for line in text)
    assert note in said
    assert "--figures, --models" in said, "or the view had room, and this tests nothing"


def test_the_last_thing_that_goes_is_that_the_medians_have_other_speed_ups() -> None:
    """A view with it that takes one line more than a screen has leaves it out."""
    note = "speed-ups compare neighbouring trials, not these medians"
    texts = (shown(slowed(sweep("many"), length=length), 80) for length in range(120, 200, 8))
    first = next(text for text in texts if note not in " ".join(map(str.strip, text)))
    assert len(first) <= LINES_MAX, "\n".join(first)


def test_the_medians_have_other_speed_ups_is_told_without_the_legend() -> None:
    """Also where the speed-ups have no room: the answer names one."""
    note = "speed-ups compare neighbouring trials, not these medians"
    for found, told in ((slowed(sweep("many")), note), (slowed(sweep("many"), by=1.0), "")):
        table = brief(found, legend=False).blocks[0]
        assert isinstance(table, Table) and table.legend is not None
        assert table.legend(table.columns) == told
        narrow = [column for column in table.columns if column.name != "speedup"]
        assert table.legend(narrow) == told.replace("speed-ups", "speed-ups of the answer")


def test_a_note_on_speed_ups_needs_one_that_a_reader_sees() -> None:
    """Neither the table nor the answer has one."""
    found = slowed(sweep("many"))
    others = tuple(item for item in found.sentences if "× as fast" not in item.sentence)
    assert len(others) < len(found.sentences), "or this tests nothing"
    (table, *_) = brief(msgspec.structs.replace(found, sentences=others), legend=False).blocks
    assert isinstance(table, Table) and table.legend is not None
    assert "neighbouring trials" in table.legend(table.columns)
    narrow = [column for column in table.columns if column.name != "speedup"]
    assert not table.legend(narrow)


@pytest.mark.parametrize("apart", [True, False])
def test_a_mark_has_its_meaning_also_without_the_legend(apart: bool) -> None:
    (table, *_) = brief(run_of_wrk(1.5), legend=False, apart=apart).blocks
    assert isinstance(table, Table) and table.legend is not None
    assert any(getattr(cell, "mark", "") for it in table.columns for cell in it.cells)
    assert "† the rate contradicts it" in table.legend(table.columns)
    unmarked = [column for column in table.columns if "latency" not in column.name]
    assert "†" not in table.legend(unmarked)


def test_a_file_has_no_height_and_gets_the_whole_view(tmp_path: Path) -> None:
    whole = Document(title="Whole", blocks=tuple(Paragraph(str(n)) for n in range(SCREEN + 1)))
    document = msgspec.structs.replace(whole, shorter=Document(title="Short", blocks=()))
    with (tmp_path / "view.txt").open("w+", encoding="utf-8") as file:
        terminal.show(document, file)
        file.seek(0)
        assert file.readline() == "Whole\n"
    screen = StringIO()
    terminal.show(document, screen)
    assert screen.getvalue() == "Short\n"


def test_a_precision_that_was_missed_is_told_where_its_warning_has_no_room() -> None:
    """The run has a wide spread, and a hook that is warned of first."""
    wide = Rules(repeats_min=5, repeats_max=6, precision=0.01)
    report = made_run(Store(), amdahl, cv=0.1, rules=wide, threads=(1, 2, 4))
    (missed,) = (item for item in report.sentences if item.subject == PRECISION)
    begun = missed.sentence.partition(",")[0].partition(":")[0]
    assert begun == "3 of 3 cells missed the precision of ±1 %"
    first = [Finding(kind="warning", sentence=f"Warning {number}.") for number in (1, 2)]
    others = [item for item in report.sentences if item.kind != "warning"]
    crowded = msgspec.structs.replace(report, sentences=(*others, *first, missed))
    for room, said in ((Room(9, 1), f"{begun} and 1 more warning: --all"), (Room(9, 3), "")):
        *_, last = (str(item) for item in warned(crowded, room))
        assert (said in last) if said else (missed.sentence in last)
    alone = msgspec.structs.replace(crowded, sentences=(*others, first[0], missed))
    assert f"{begun}: --all" in str(warned(alone, Room(9, 1))[-1])


def test_a_latency_for_which_a_table_has_no_room_is_named_and_so_is_what_is_said_of_it() -> None:
    found = run_of_wrk(1.5)
    (table, *_) = brief(found, terse=True).blocks
    assert isinstance(table, Table) and table.legend is not None
    others = [column for column in table.columns if "latency" not in column.name]
    assert table.legend(others).endswith("; no room for latency by wrk")
    assert "no room" not in table.legend(table.columns)
    (whole, *_) = brief(found).blocks
    assert isinstance(whole, Table) and whole.legend is not None
    assert "no room" not in whole.legend(others), "it names what it leaves out"
    (last,) = (item for item in warned(Report.of_figures(found), Room(9, 0)))
    assert "1 more warning (latency by wrk): --all" in str(last)


def warned(report: Report, room: Room) -> tuple[Any, ...]:
    """The lines with the warnings of a view with so much room."""
    (found,) = overview.warnings(report, room)
    assert isinstance(found, List)
    return found.items


def test_the_legend_says_why_brackets_are_wider_than_the_table() -> None:
    said = "[ ] for the best of several"
    many = " ".join(line.strip() for line in shown(sweep("quiet"), 200))
    assert " [" in many and said in many
    one = made_run(Store(), amdahl, cv=0.01, threads=(1, 2))
    assert said not in " ".join(shown(one, 200))


def test_an_interval_that_is_the_step_of_readings_is_told() -> None:
    same = made_run(Store(), lambda threads: 1 / float(threads), cv=0.0, threads=(1, 2))
    said = "where all trials are the same, ± is the step of their readings"
    assert said in " ".join(shown(same, 200))
    assert said not in " ".join(shown(sweep("quiet"), 200))


#: A table of two factors has more rows; the rest takes no more than that of one factor.
LINES_OF_CONDITIONS_MAX = 34


def under_locks(locks: tuple[str, ...], steal: int) -> Report:
    """A sweep of workers under a few locks; a hypervisor takes ``steal`` of all blocks but one."""
    return made_run(
        Store(),
        lambda lock, n: 2.0 if lock == "coarse" else amdahl(n),
        cv=0.2,
        rules=Rules(repeats_min=5, repeats_max=5, redo_max=0, redo_share=0.0),
        conditions=("lock",),
        steal=lambda spec: 0 if spec.trial.split("/")[-2] == "0" else steal,
        lock=locks,
        workers=(1, 2, 4),
    )


@pytest.mark.parametrize("steal", [0, 10**9])
def test_each_condition_has_its_answer_and_its_cause_on_the_first_screen(steal: int) -> None:
    locks = ("none", "fine", "coarse")
    report = under_locks(locks, steal)
    evidence = (
        "With workers=4 an operation takes 4.1 × the thread time of workers=1: " + "much " * 9
    )
    causes: tuple[Cause, ...] = ("in doubt", "cpu", "lock")
    limits = tuple(
        Limit(group, CellExplanation(parameters=cell.parameters, cause=cause, evidence=evidence,
                                     trials=5, doubt=evidence))
        for (group, cell), cause in zip(report.limits_by, causes, strict=True)
    )  # fmt: skip
    document = brief_run_document(report, limits=limits)
    text = [line.plain for line in lines(document, 80)]
    for begun in ("With", "What limits"):
        told = [line.split("lock=")[1] for line in text if line.startswith(f"{begun} lock=")]
        assert [re.split(r"\W", level)[0] for level in told] == list(locks), "\n".join(text)
    assert len(text) <= LINES_OF_CONDITIONS_MAX, "\n".join(text)
    assert "more answer" not in " ".join(text)


@pytest.mark.usefixtures("empty_charts")
def test_the_page_shows_the_answers_of_all_conditions_alike() -> None:
    report = under_locks(("none", "fine", "coarse"), 0)
    page = to_html(run_document(report))
    large = re.findall(r'<p class="answer main">(With lock=\w+)', page)
    assert large == ["With lock=none", "With lock=fine", "With lock=coarse"]
    assert page.count('class="answer main"') == 3, "what is said beside them is smaller"
    one = to_html(run_document(samples.thread_scaling()))
    assert one.count('class="answer main"') == 1


def test_a_condition_in_doubt_is_answered_on_a_line() -> None:
    report = under_locks(("none", "coarse"), 10**9)
    limits = tuple(
        Limit(group, CellExplanation(parameters=cell.parameters, cause="lock", trials=5,
                                     evidence="long " * 90))
        for group, cell in report.limits_by
    )  # fmt: skip
    document = brief_run_document(report, limits=limits)
    text = [line.plain for line in lines(document, 80)]
    assert any(re.fullmatch(r"With lock=none, in doubt: .* seem best.*\.", line) for line in text)
    assert any(re.fullmatch(r"With lock=coarse, in doubt: .*\.", line) for line in text)


def test_a_short_line_in_doubt_says_what_the_figures_point_to_and_where_it_stands() -> None:
    report = under_locks(("none", "coarse"), 10**9)
    pointed: tuple[tuple[Cause, str] | None, ...] = (("cpu", "CPUs"), None)
    limits = tuple(
        Limit(group, CellExplanation(parameters=cell.parameters, cause="in doubt", trials=5,
                                     evidence="…", doubt="the machine was not quiet during …",
                                     seeming=seeming))
        for (group, cell), seeming in zip(report.limits_by, pointed, strict=True)
    )  # fmt: skip
    told = overview.answers(report, limits, Room(1, 1, doubts=False))
    assert told is not None
    more = f"(concurve explain {report.run.id})."
    assert f"'seemingly the CPUs, in doubt {more}'" in str(told)
    assert f"'no cause is named: the machine was not quiet {more}'" in str(told)


def test_a_short_answer_has_the_interval_of_the_whole_one() -> None:
    report = under_locks(("none", "coarse"), 10**9)
    told = overview.answers(report, (), Room(1, 1, doubts=False))
    assert told is not None
    (short,) = re.findall(r"With lock=none, in doubt: [^']*", str(told))
    (whole,) = (it.sentence for it in report.sentences if it.short and "none" in it.sentence)
    (interval,) = re.findall(r"× as fast as 1 \[[\d., ]+\]", whole)
    assert interval in short, "it holds for the choice among several, as that of the whole one"


def test_a_notebook_shows_a_run_whose_base_is_not_among_the_first_cells() -> None:
    made = made_run(
        Store(),
        lambda version, n: (1.0 if version == "new" else 2.0) / float(n),
        base={"version": "old"},
        version=("new", "old"),
        threads=tuple(range(1, 17)),
    )
    assert len(made.cells) == 32 and any((cell.base or 0) > 19 for cell in made.cells[:20])
    (table, *_) = first(made).blocks
    assert isinstance(table, Table) and table.legend is not None
    assert "95 %" in table.legend(table.columns)


def test_a_table_in_words_keeps_the_units() -> None:
    made = made_run(Store(), lambda kind: 0.0123, kind=("a" * 30, "b" * 30))
    text = shown(made, 20)
    assert any("ms" in line for line in text), text


def test_the_legend_says_that_intervals_of_versions_hold_together() -> None:
    """Also where figures have marks, which is where a reader compares most."""
    said = "[ ] for all levels together"
    seconds = {"a": 1.0, "b": 1.04, "c": 1.0}
    many = made_run(Store(), lambda k: seconds[k], cv=0.004, k=("a", "b", "c"))
    assert said in " ".join(line.strip() for line in shown(many, 200))
    two = made_run(Store(), lambda k: seconds[k], cv=0.004, k=("a", "b"))
    assert said not in " ".join(line.strip() for line in shown(two, 200))


def used_up(parameters: dict[str, Any]) -> CellExplanation:
    """A server whose CPUs are used up with these levels."""
    where = " ".join(f"{name}={level}" for name, level in parameters.items())
    return CellExplanation(
        parameters=parameters, cause="cpu", limit="CPUs", trials=5,
        evidence=f"With {where} an operation takes 1.2 × the thread time of its base: …",
        reason=f"With {where} server and load together use all 2 CPUs (srv 1.75, load 0.17)",
        spent="An operation takes 11.4 µs of the server's CPU time.",
    )  # fmt: skip


def test_the_evidence_of_a_limit_stays_where_warnings_leave_little_room() -> None:
    """Notes, the legend and further warnings go first."""
    report = slowed(sweep("many"), by=1.0, length=105)
    cell = used_up({"threads": 16})
    document = brief_run_document(report, limits=(Limit({}, cell),))
    text = [line.plain for line in lines(document, 80)]
    said = " ".join(line.strip() for line in text)
    assert f"What limits it: the CPUs. {cell.reason}." in said
    assert "--figures, --models" in said, "or the view had room, and this tests nothing"


def test_who_is_told_how_many_trials_would_decide_is_told_how_to_run_them() -> None:
    report = sweep("flat")
    wanted = [item.trials for item in report.best if item.trials is not None]
    assert wanted, "or the trials decide, and this tests nothing"
    said = " ".join(line.plain.strip() for line in lines(brief_run_document(report), 200))
    assert f"concurve run run:{report.run.id} --repeats {max(wanted)}" in said
    quiet = brief_run_document(made_run(Store(), amdahl, threads=(1, 2)))
    assert "concurve run run:" not in " ".join(line.plain for line in lines(quiet, 200))


def test_the_levels_of_a_condition_are_told_once() -> None:
    """The line begins with them."""
    report = under_locks(("none", "coarse"), 0)
    limits = [Limit(group, used_up(cell.parameters)) for group, cell in report.limits_by]
    for room in overview.ROOMS:
        told = overview.answers(report, limits, room)
        said = str(told)
        assert "What limits lock=none" in said
        assert "lock=none workers" not in said and "workers=4 lock" not in said, room
        levels = (
            "with workers=4." if room.limits is overview.Told.CAUSE else "With workers=4 server"
        )
        assert levels in said, room
    alone = used_up({"lock": "none"})
    line = overview.limit_line(Limit({"lock": "none"}, alone))
    assert line.text.startswith("the CPUs. Server and load together use all 2 CPUs")

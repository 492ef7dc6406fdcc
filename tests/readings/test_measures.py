"""Record → named figures, from the golden records of the runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.definition.measured import INDICATORS, MEASURED
from concurve.definition.purposes import Purposes
from concurve.definition.study import Extract
from concurve.readings import measures
from concurve.readings.extraction import MissedExtractError, shown_lines
from concurve.readings.measures import Measures, is_probed
from concurve.readings.operations import Asked, Counted, count_operations
from concurve.wire import decode_record
from concurve.wire.record import Output, PhaseRecord, TrialRecord, Usage
from concurve.wire.report import IndicatorLine
from tests.helpers.fakes import record_of
from tests.readings.test_contamination import SPEC

GOLDEN = Path(__file__).parents[2] / "schema" / "golden"
SECOND = 1_000_000_000


def asked(
    target: str,
    extracts: tuple[Extract, ...] = (),
    work_amount: str = "",
    clients: tuple[str, ...] = (),
) -> Asked:
    """What a study of that measured role asks of a record."""
    return Asked(Purposes(target, target, clients, bool(clients)), extracts, work_amount)


def measure(
    record: TrialRecord,
    target: str,
    extracts: tuple[Extract, ...] = (),
    work_level: float | None = None,
    **more: Any,
) -> Measures:
    return measures.measure(record, asked(target, extracts, **more), work_level)


def golden(name: str) -> TrialRecord:
    return decode_record((GOLDEN / f"trial-record-1-{name}.json").read_bytes())


def with_role(record: TrialRecord, **changes: object) -> TrialRecord:
    role = msgspec.structs.replace(record.roles[0], **changes)
    return msgspec.structs.replace(record, roles=(role,))


def test_a_marked_phase_counts_and_start_up_stays_out() -> None:
    record = golden("ok")
    raw = json.loads((GOLDEN / "trial-record-1-ok.json").read_bytes())["roles"][0]
    phase = raw["phases"][0]
    figures = measure(record, "target")
    assert phase["name"] == "measure"
    assert figures.values["wall_seconds"] == pytest.approx(phase["wall_ns"] / 1e9)
    assert figures.values["cpu_seconds"] == pytest.approx(phase["usage"]["cpu_ns"] / 1e9)
    assert figures.values["run_seconds"] == pytest.approx(raw["wall_ns"] / 1e9)
    assert figures.values["rss_bytes_max"] == raw["usage"]["rss_bytes_max"], "of its whole life"
    assert figures.values["threads_peak"] == raw["threads"]["peak"]


def test_the_memory_of_all_processes_is_a_figure_where_there_are_several() -> None:
    record = golden("ok")
    for tree in (None, 3 << 20):
        usage = msgspec.structs.replace(record.roles[0].usage, rss_bytes_tree_max=tree)
        figures = measure(with_role(record, usage=usage), "target")
        assert figures.values.get("rss_bytes_tree_max") == tree
        assert "rss_bytes_tree_max" not in figures.absent
    labels = [MEASURED[name].label for name in ("rss_bytes_max", "rss_bytes_tree_max")]
    assert labels == ["peak memory (largest process)", "peak memory of all processes"]


def test_a_missing_reading_is_absent_with_the_runners_reason_and_never_zero() -> None:
    figures = measure(golden("ok"), "target")
    assert "minor_faults" not in figures.values
    assert figures.absent["minor_faults"] == "read for whole lives only"
    assert not set(figures.values) & set(figures.absent)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("trial-record-*.json")), ids=lambda p: p.stem)
def test_any_golden_record_gives_figures_or_reasons(path: Path) -> None:
    record = decode_record(path.read_bytes())
    figures = measure(record, record.roles[0].name)
    own = {info.name for info in INDICATORS} - {"speedup", "efficiency"}
    counted = {name for name in own if name.endswith("_per_operation")}
    rates = {"rate_per_second", "rate_per_worker", *counted}
    on_request = {"cache_misses"}
    of_several = {"rss_bytes_tree_max"}  # processes: one has its memory in the other figure
    assert own - rates - on_request - of_several <= set(figures.values) | set(figures.absent)
    assert all(figures.absent.values()), "each reason says something"


def test_several_phases_of_that_name_add_up_and_an_open_one_does_not_count() -> None:
    usage = Usage(cpu_ns=SECOND, user_ns=SECOND)
    phases = (
        PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND, usage=usage),
        PhaseRecord(name="warm-up", begin_ns=0, wall_ns=5 * SECOND, usage=usage),
        PhaseRecord(name="measure", begin_ns=0, wall_ns=2 * SECOND, usage=usage),
        PhaseRecord(name="measure", begin_ns=0, wall_ns=9 * SECOND, usage=usage, open=True),
    )
    figures = measure(with_role(record_of(SPEC, 20.0), phases=phases), "target")
    assert figures.values["wall_seconds"] == 3.0
    assert figures.values["cpu_seconds"] == 2.0
    assert figures.absent["system_seconds"] == "the runner gave no reason"


def test_what_an_operation_took_by_the_count_of_the_role_or_of_its_clients() -> None:
    target = record_of(SPEC, 2.0).roles[0]
    done = IndicatorLine(indicator="operations", value=1000.0)
    alone = measure(with_role(record_of(SPEC, 2.0), indicators=(done,)), "target").values
    assert alone["seconds_per_operation"] == alone["wall_seconds"] / 1000
    assert alone["cpu_seconds_per_operation"] == alone["cpu_seconds"] / 1000
    loads = [
        msgspec.structs.replace(target, name=name, indicators=(done,))
        for name in ("load-1", "load-2", "background")
    ]
    served = msgspec.structs.replace(record_of(SPEC, 2.0), roles=(target, *loads))
    figures = measure(served, "target", clients=("load",)).values
    assert figures["rate_per_second"] == 2000 / figures["wall_seconds"]
    assert figures["switches_per_operation"] == figures["context_switches"] / 2000
    assert "seconds_per_operation" not in measure(record_of(SPEC, 2.0), "target").values


def test_the_cpu_time_of_an_operation_is_told_of_the_server_too() -> None:
    client = record_of(SPEC, 2.0).roles[0]
    done = IndicatorLine(indicator="operations", value=1000.0)
    busy = Usage(cpu_ns=3 * SECOND)
    client = msgspec.structs.replace(client, name="client", indicators=(done,))
    server = msgspec.structs.replace(client, name="server", indicators=(), usage=busy)
    record = msgspec.structs.replace(record_of(SPEC, 2.0), roles=(server, client))
    roles = Purposes("client", "server", clients=("client",), serving=True)
    found = measures.measure(record, Asked(roles))
    assert found.values["server.cpu_seconds_per_operation"] == 3e-3
    unread = msgspec.structs.replace(server, usage=Usage(absent={"cpu_ns": "no perf"}))
    record = msgspec.structs.replace(record, roles=(unread, client))
    found = measures.measure(record, Asked(roles))
    assert found.absent["server.cpu_seconds_per_operation"] == "no perf"


def test_what_a_program_prints_only_where_it_is_not_0_is_0_without_it() -> None:
    failed = Extract(name="failed", pattern=r"failed: (\d+)", optional=True)
    zero = msgspec.structs.replace(failed, name="errors", zero_unprinted=True)

    def found(stdout: Output) -> Measures:
        return measure(with_role(record_of(SPEC, 1.0), stdout=stdout), "target", (failed, zero))

    of_none = found(Output(bytes=7, head="rate: 5"))
    assert of_none.values["errors"] == 0.0 and "failed" in of_none.absent
    assert found(Output(bytes=9, head="failed: 5")).values["errors"] == 5.0
    dropped = found(Output(bytes=1 << 20, head="rate: 5", tail="rate: 6", dropped=1 << 19))
    assert "dropped" in dropped.absent["errors"], "it may have stood in what was dropped"


def test_cache_misses_are_those_of_the_phase_or_absent_with_the_reason() -> None:
    done = (IndicatorLine(indicator="operations", value=1000.0),)
    whole, part = Usage(cache_misses=9000), Usage(cache_misses=5000)
    phase = PhaseRecord(name="measure", begin_ns=0, wall_ns=SECOND, usage=part)
    record = with_role(record_of(SPEC, 2.0), usage=whole, phases=(phase,), indicators=done)
    figures = measure(record, "target")
    assert figures.values["cache_misses"] == 5000
    assert figures.values["cache_misses_per_operation"] == 5

    lacking = Usage(absent={"cache_misses": "the CPU has none"})
    figures = measure(with_role(record_of(SPEC, 2.0), usage=lacking, indicators=done), "target")
    names = ("cache_misses", "cache_misses_per_operation")
    assert [figures.absent[name] for name in names] == ["the CPU has none"] * 2
    assert is_probed("cache_misses_per_operation")

    unasked = measure(with_role(record_of(SPEC, 2.0), indicators=done), "target")
    assert not {*names} & {*unasked.values, *unasked.absent}, "who does not ask sees nothing of it"


def test_rates_are_total_and_per_worker() -> None:
    record = record_of(SPEC, 2.0)
    assert measure(record, "target", work_level=4).values["rate_per_second"] == 0.5
    reported = with_role(record, indicators=(IndicatorLine("operations", 100.0),))
    figures = measure(reported, "target", work_level=4).values
    assert (figures["rate_per_second"], figures["rate_per_worker"]) == (50.0, 12.5)
    assert "rate_per_worker" not in measure(reported, "target").values


def test_reported_figures_stand_under_their_names_and_those_of_other_roles_behind_theirs() -> None:
    lines = (IndicatorLine("latency_ns", 7.0, "ns"), IndicatorLine("latency_ns", 1.0, "ns", "w1"))
    record = with_role(record_of(SPEC, 1.0), indicators=lines)
    figures = measure(record, "target")
    assert (figures.values["latency_ns"], figures.units["latency_ns"]) == (7.0, "ns")
    other = measure(record, "load")
    assert other.values["target.latency_ns"] == 7.0
    assert "target.wall_seconds" in other.values and "wall_seconds" not in other.values


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r"rate=(\d+)", 30.0),
        (r"^rate=(\d+)$", 30.0),
        (r"took ([\d.e-]+) s", 1.5e-3),
        (r"total ([\d,]+)", 1234567.0),
        (r"(\d+) errors", 2.0),
        (r"again$|(.*) errors", 2.0),
        (r"rate=(nan|\d+) again", 40.0),
        (r"noise (\w+)", None),
        (r"(\w+)=(\d+) again", None),
    ],
)
def test_extracts_take_the_last_match_and_standard_error_if_need_be(
    pattern: str, value: float | None
) -> None:
    out = Output(
        head="rate=10\nrate=30\ntook 1.5e-3 s\ntotal 1,234,567\nnoise inf\nrate=40 again\n"
    )
    if pattern == r"rate=(\d+)":
        value = 40.0
    record = with_role(record_of(SPEC, 1.0), stdout=out, stderr=Output(head="2 errors"))
    extract = Extract(name="x", pattern=pattern, unit="u")
    if value is None:
        with pytest.raises(MissedExtractError):
            measure(record, "target", (extract,))
    else:
        figures = measure(record, "target", (extract,))
        assert (figures.values["x"], figures.units["x"]) == (value, "u")


WRK = (Path(__file__).parent / "outputs" / "wrk-4.1.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("pattern", "output", "begins"),
    [
        (r"Request/sec: +([0-9.]+)", WRK, "the nearest of what it printed:\n    Requests/sec:"),
        (
            r"(?i)latncy\s+(?P<value>\d+)(?P<unit>ms)",
            WRK,
            "the nearest of what it printed:\n    La",
        ),
        (r"tps=(\d+)", "\n".join("abcdefgh"), "the last of what it printed:\n    d\n    e\n    f"),
        (r"(\d+)", "a" * 500, f"the last of what it printed:\n    {'a' * 120}"),
        (r"rate=(\d+)", " \n", "it printed nothing"),
    ],
)
def test_a_miss_shows_the_nearest_lines_of_the_output(
    pattern: str, output: str, begins: str
) -> None:
    record = with_role(record_of(SPEC, 1.0), stdout=Output(head=output))
    with pytest.raises(MissedExtractError) as missed:
        measure(record, "target", (Extract(name="x", pattern=f"{pattern} no such end"),))
    shown = shown_lines(pattern, missed.value.output)
    assert shown.startswith(begins)
    assert max(map(len, shown.splitlines())) <= 124


def test_a_server_is_measured_in_the_phase_that_its_load_marked() -> None:
    record = golden("served")
    server = record.roles[0]
    assert [(phase.name, phase.marked_by) for phase in server.phases] == [("measure", "load")]
    figures = measure(record, "target", clients=("load",)).values
    assert figures["wall_seconds"] == figures["load.wall_seconds"] < figures["run_seconds"]
    assert figures["cpu_seconds"] < figures["run_cpu_seconds"]
    assert figures["rate_per_second"] == pytest.approx(100 / figures["wall_seconds"])


def test_probes_read_cpu_times_and_counts_and_not_times_or_what_a_program_says() -> None:
    probed = ["cpu_seconds", "context_switches", "load.cpu_seconds", "switches_per_operation"]
    assert all(is_probed(name) for name in probed)
    own_clock = ["wall_seconds", "speedup", "seconds_per_operation", "load.latency_ns_p99"]
    assert not any(is_probed(name) for name in own_clock)


def test_figures_are_read_out_of_any_role_and_optional_ones_may_be_missing() -> None:
    target = record_of(SPEC, 2.0).roles[0]
    client = msgspec.structs.replace(target, name="client", stdout=Output(bytes=5, head="tps=7"))
    record = msgspec.structs.replace(record_of(SPEC, 2.0), roles=(target, client))
    tps = Extract(name="client.tps", pattern=r"tps=(\d+)", unit="1/s", role="client")
    found = measure(record, "target", (tps,))
    assert (found.values["client.tps"], found.units["client.tps"]) == (7.0, "1/s")
    with pytest.raises(MissedExtractError):
        measure(record, "target", (msgspec.structs.replace(tps, role=""),))
    missing = msgspec.structs.replace(tps, role="", optional=True)
    assert measure(record, "target", (missing,)).absent["client.tps"]
    gone = msgspec.structs.replace(tps, role="other")
    assert measure(record, "target", (gone,)).absent["client.tps"] == "the trial had no role other"


def test_each_worker_is_a_unit_of_work_where_the_work_scales() -> None:
    record = record_of(SPEC, 2.0)
    figures = measure(record, "target", work_level=4, work_amount="scales").values
    assert (figures["rate_per_second"], figures["seconds_per_operation"]) == (2.0, 0.5)
    counted = with_role(record, indicators=(IndicatorLine("operations", 100.0),))
    figures = measure(counted, "target", work_level=4, work_amount="scales").values
    assert figures["rate_per_second"] == 50.0, "what is counted comes first"
    assert "seconds_per_operation" not in measure(record, "target", work_level=4).values


@pytest.mark.parametrize(
    ("reported", "printed", "work_amount", "expected"),
    [
        ({"target": 100.0}, {}, "", (100.0, "reported")),
        ({"load-1": 30.0, "load-2": 40.0, "check": 9.0}, {}, "", (70.0, "reported")),
        ({"load-1": 30.0}, {}, "scales", (30.0, "reported")),
        ({"target": 1.0, "load-1": 30.0}, {}, "scales", (1.0, "reported")),
        ({}, {"target": "operations 70"}, "", (70.0, "reported")),
        ({}, {"load": "operations 80"}, "", (80.0, "reported")),
        ({}, {"load": "nothing"}, "scales", (4.0, "units")),
        ({}, {}, "scales", (4.0, "units")),
        ({}, {}, "", (1.0, "run")),
        ({"check": 9.0}, {}, "", (1.0, "run")),
    ],
)
def test_operations_are_counted_as_the_table_counts_them(
    reported: dict[str, float],
    printed: dict[str, str],
    work_amount: str,
    expected: tuple[float, str],
) -> None:
    """Reported, printed by any role, or one for each worker: ``explain`` and the table agree."""
    plain = record_of(SPEC, 2.0).roles[0]
    names = dict.fromkeys(["target", *reported, *printed, "check"])
    roles = tuple(
        msgspec.structs.replace(
            plain,
            name=name,
            indicators=(IndicatorLine("operations", reported[name]),) if name in reported else (),
            stdout=Output(head=printed.get(name, "")),
        )
        for name in names
    )
    record = msgspec.structs.replace(record_of(SPEC, 2.0), roles=roles)
    extracts = tuple(
        Extract(
            name="operations" if name == "target" else f"{name}.operations",
            pattern=r"operations (\d+)",
            role="" if name == "target" else name,
            optional=True,
        )
        for name in printed
    )
    wanted = asked("target", extracts, work_amount, ("load",))
    found = count_operations(record, wanted, 4.0)
    assert (found.number, found.of) == expected
    figures = measures.measure(record, wanted, 4.0).values
    assert figures["rate_per_second"] == pytest.approx(found.number / figures["wall_seconds"])


@pytest.mark.parametrize(
    ("said", "expected"),
    [("rate 40.5", (81.0, "rate")), ("rate none", (1.0, "run")), ("rate 0", (1.0, "run"))],
)
def test_the_rate_by_which_cells_compare_counts_where_nothing_else_does(
    said: str, expected: tuple[float, Counted]
) -> None:
    """Otherwise a program whose work grows with a factor seems to lose what it does more."""
    record = record_of(SPEC, 2.0)
    roles = tuple(
        msgspec.structs.replace(role, indicators=(), stdout=Output(head=said), wall_ns=2 * 10**9)
        for role in record.roles
    )
    record = msgspec.structs.replace(record, roles=roles)
    rate = Extract(name="rate", pattern=r"rate ([0-9.]+)", unit="1/s")
    wanted = asked("target", (rate,), "", ())._replace(rate=rate)
    found = count_operations(record, wanted, None)
    assert (found.number, found.of) == expected
    assert count_operations(record, wanted._replace(rate=None), None).of == "run"


def test_a_role_that_is_called_like_a_copy_is_none() -> None:
    roles = Purposes("target", "target", ("load",), True, others=("load-3",))
    assert all(map(roles.is_client, ("load", "load-1")))
    assert not any(map(roles.is_client, ("load-3", "loader-1", "load-x", "target")))

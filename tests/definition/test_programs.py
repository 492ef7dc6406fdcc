"""What programs say of the indicators that they report."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from concurve.attendants import servers
from concurve.definition.measured import MEASURED
from concurve.definition.programs import java_programs, program, programs
from concurve.definition.study import Indicator
from concurve.definition.study_file import parse_study
from concurve.errors import StudyError
from concurve.host.native import binary
from concurve.measuring.packaged import JAVA_PROGRAMS, PROGRAMS
from tests.helpers import real

STUDY = """
[study]
name = "mine"
question = "How?"

[factors]
threads = [1, 2]
server = ["mariadb", "postgresql-18"]

[levels.server]
mariadb = { program = "mariadb" }
postgresql-18 = { program = "postgresql-18" }

[[roles]]
name = "target"
program = "server"
arguments = ["--io-threads", "{threads}"]
end = "serve"
ready = "report"

[[roles]]
name = "load"
program = "load"
arguments = ["127.0.0.1:7000", "{server}"]

"""


def asked(*names: str, study: str = STUDY) -> tuple[Indicator, ...]:
    listed = ", ".join(f'"{name}"' for name in names)
    return parse_study(f"{study}[[indicators]]\nuse = [{listed}]\n", 2, "mine.toml").indicators


def test_a_name_stands_for_what_the_program_says() -> None:
    assert asked("rate_per_second", "load.latency_ns_p99", "latch_spins", "cpu_seconds") == (
        Indicator(name="rate_per_second", better="higher", unit="1/s", label="requests per second"),
        Indicator(
            name="load.latency_ns_p99", better="lower", unit="ns", label="latency of a request, p99"
        ),
        Indicator(name="latch_spins", better="lower", label="latches: looks at taken ones"),
        Indicator(name="cpu_seconds", better="lower", unit="s"),
    )


def test_a_study_says_what_an_operation_is() -> None:
    study = STUDY + '[with]\noperation = "lock"\n'
    rate, latency = asked("rate_per_second", "load.latency_ns_p50", study=study)
    assert (rate.label, latency.label) == ("locks per second", "latency of a lock, p50")


def test_what_another_role_reports_has_its_name() -> None:
    with pytest.raises(StudyError) as refused:
        asked("latency_ns_p99")
    assert "'latency_ns_p99' is described neither" in refused.value.what
    assert refused.value.remedy == "did you mean 'load.latency_ns_p99'?"


@pytest.mark.parametrize("text", ["{server.program}", "{server}"])
def test_the_programs_of_all_levels_describe(text: str) -> None:
    """But not what they call by different names."""
    study = STUDY.replace('program = "server"', f'program = "{text}"')
    assert asked("pool_threads_mean", "wal_bytes", study=study)[1].unit == "B"
    with pytest.raises(StudyError, match="'sessions_waiting_lock_mean' is described neither"):
        asked("sessions_waiting_lock_mean", study=study)


def test_a_program_of_any_version_has_its_table() -> None:
    assert program("postgresql-18") is program("postgresql") is not None
    assert program("mandelbrot-java") is not program("mandelbrot")
    assert program("volume-bfq") is None
    study = STUDY.replace('program = "server"', 'program = "postgresql-{threads}"')
    assert asked("wal_bytes", study=study)[0].label == "bytes of log"


def test_every_program_that_reports_has_a_table() -> None:
    names = {*PROGRAMS, *JAVA_PROGRAMS, *servers.SERVERS}
    assert {name for name in names if program(name) is None} == set()
    assert set(programs()) <= names
    assert java_programs() == list(JAVA_PROGRAMS)


def test_tables_of_programs_are_whole() -> None:
    for name, table in programs().items():
        for indicator, text in {**table.indicators, **table.measured}.items():
            assert text.label, f"{name}: {indicator}"
            parts = text.label.split("{with.")[1:]
            assert {part.partition("}")[0] for part in parts} <= set(table.words)
        assert set(table.measured) <= set(MEASURED)


def reported(*argv: str) -> set[str]:
    """The indicators that a program reports."""
    receive, send = os.pipe()
    with os.fdopen(receive) as channel:
        program_run = subprocess.Popen(
            [str(binary(f"concurve-{argv[0]}")), *argv[1:]],
            env={**os.environ, "CONCURVE_REPORT": str(send)},
            pass_fds=[send],
            stdout=subprocess.DEVNULL,
        )
        os.close(send)
        lines = [json.loads(line) for line in channel]
    assert program_run.wait() == 0
    return {line["indicator"] for line in lines if "indicator" in line}


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_programs_report_what_their_tables_say(tmp_path: Path) -> None:
    """All of it, and nothing else but figures of single workers."""
    exports = str(tmp_path / "exports")
    found = {
        "disk": reported("disk", "load", "--scale", "0.001"),
        "mandelbrot": reported("mandelbrot", "--threads", "2", "--iterations", "50"),
        "storage": reported("storage", "export", exports, "--size", "2M", "--tables", "34")
        | reported("storage", "load", "sqlite", str(tmp_path / "data"), "--exports", exports),
    }
    # Of a device whose counters, or a machine whose pressure, cannot be read nothing is reported;
    # streams need a file system that can be read around the page cache.
    may_lack = {
        "disk": (),
        "mandelbrot": (),
        "storage": ("device_", "io_pressure_", "seek_ratio", "read", "write"),
    }
    for name, names in found.items():
        of_workers = {item for item in names if item.startswith(("worker_", "process_", "loader_"))}
        certain = {
            item for item in programs()[name].indicators if not item.startswith(may_lack[name])
        }
        assert certain <= names, name
        assert names - of_workers <= set(programs()[name].indicators), name

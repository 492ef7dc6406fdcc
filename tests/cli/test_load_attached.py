"""``concurve load --attach``: the server's accounts beside the load's."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from concurve.cli.load import _attached, take_attach
from concurve.cli.streams import OutputError
from concurve.engine.local import LocalEngine
from concurve.errors import StudyError
from concurve.host.native import binary
from concurve.host.temporary import free_port
from concurve.measuring.attached_load import Loaded, server_lines, with_server
from concurve.wire import decode_record
from concurve.wire.record import RoleRecord
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.real import Lab, wait_until

GOLDEN = Path(__file__).parents[2] / "schema" / "golden" / "trial-record-1-attached.json"


def test_the_option_is_taken_out_of_the_loads_own() -> None:
    assert take_attach(["url", "--rate", "5"]) == (None, ("url", "--rate", "5"))
    assert take_attach(["url", "--attach", "7", "--rate", "5"]) == ("7", ("url", "--rate", "5"))
    assert take_attach(["--attach=unit:a", "url"]) == ("unit:a", ("url",))
    for arguments in (["url", "--attach"], ["--attach", "1", "--attach", "2"], ["--attach="]):
        with pytest.raises(StudyError, match="takes one process"):
            take_attach(arguments)
    with pytest.raises(StudyError, match="--attach took '--rate' as its value"):
        take_attach(["url", "--attach", "--rate", "5"])


def test_what_an_attached_server_used_is_told() -> None:
    server = decode_record(GOLDEN.read_bytes()).roles[0]
    (phase,) = server.phases
    text = "\n".join(server_lines(server))
    assert f"server: process {server.pid}, in the measured time" in text
    assert f"{(phase.usage.cpu_ns or 0) / 1e9:.3f} s" in text
    assert re.search(r"waited for a CPU  \d", text)
    assert f"{server.threads.peak} threads seen at once" in text
    assert server.threads.listed[0].name in text


@pytest.mark.parametrize(
    ("server", "client", "cpus", "said"),
    [
        (1.32, 0.64, 2, "the 2 CPUs are used up: server 1.32, load 0.64"),
        (0.40, 0.55, 1, "the CPU of this machine is used up: server 0.40, load 0.55"),
        (
            0.95,
            0.50,
            2,
            "one busy thread of the server (python); CPUs used: server 0.95, load 0.50",
        ),
        (0.45, 0.92, 4, "one busy thread of the load (python); CPUs used: server 0.45, load 0.92"),
        (0.85, 0.50, 2, ""),
        (1.32, 0.64, 4, ""),
        (None, 0.64, 2, ""),
    ],
)
def test_what_server_and_load_use_up_is_named_as_the_limit(
    server: float | None, client: float, cpus: int, said: str
) -> None:
    served = decode_record(GOLDEN.read_bytes()).roles[0]

    def using(share: float | None) -> RoleRecord:
        (phase,) = served.phases
        used = None if share is None else round(share * phase.wall_ns)
        usage = msgspec.structs.replace(phase.usage, cpu_ns=used)
        phase = msgspec.structs.replace(phase, usage=usage)
        (first, *_) = served.threads.listed
        # What is more than a CPU was used by two threads, each as much as the other.
        part = (served.usage.cpu_ns or 0) // (2 if (share or 0) > 1 else 1)
        first = msgspec.structs.replace(
            first, usage=msgspec.structs.replace(first.usage, cpu_ns=part)
        )
        threads = msgspec.structs.replace(served.threads, listed=(first, first))
        return msgspec.structs.replace(served, phases=(phase,), threads=threads)

    lines = list(server_lines(using(server), using(client), cpus))
    limits = [line.split(None, 1)[1] for line in lines if line.startswith("  limit ")]
    assert limits == ([said] if said else [])
    alone = list(server_lines(using(server)))
    assert not any(line.startswith("  limit ") for line in alone), "the load is not known"


def test_the_cpus_of_the_load_are_those_of_its_cpu_time_a_transaction() -> None:
    """One output says both, so that rate and CPU time a transaction give the CPUs of the load."""
    served = decode_record(GOLDEN.read_bytes()).roles[0]
    (phase,) = served.phases
    usage = msgspec.structs.replace(phase.usage, cpu_ns=2 * 10**9)
    phase = msgspec.structs.replace(phase, wall_ns=2 * 10**9, usage=usage)
    served = msgspec.structs.replace(served, phases=(phase,))
    told = {
        "client_cpu_ns_per_operation": 17_200.0,
        "operations": 78_500.0,
        "errors": 40.0,
        "transactions_lost": 6.0,
    }
    lines = tuple(IndicatorLine(indicator=name, value=value) for name, value in told.items())
    one = IndicatorLine(indicator="operations", value=3.0, worker="worker-1")
    load = msgspec.structs.replace(served, indicators=(*lines, one))
    (said,) = (it for it in server_lines(served, load, 1) if it.startswith("  limit "))
    # 78,534 answers in 2 s, each for 17.2 us.
    assert said.endswith("server 1.00, load 0.68")


@pytest.mark.parametrize(("peak", "more"), [(14, "    and 10 more"), (4, ""), (None, "")])
def test_threads_that_are_not_named_are_counted(peak: int | None, more: str) -> None:
    server = decode_record(GOLDEN.read_bytes()).roles[0]
    (first, *_) = server.threads.listed
    threads = msgspec.structs.replace(server.threads, listed=(first,) * 6, peak=peak)
    lines = list(server_lines(msgspec.structs.replace(server, threads=threads)))
    assert sum(first.name in line for line in lines) == 4
    assert (lines[-1] == more) if more else " more" not in lines[-1]


def test_a_process_that_did_not_run_while_the_load_was_answered_is_doubted() -> None:
    server = decode_record(GOLDEN.read_bytes()).roles[0]
    assert not any("is it the process that answers" in line for line in server_lines(server))
    (phase,) = server.phases
    usage = msgspec.structs.replace(phase.usage, cpu_ns=0)
    idle = msgspec.structs.replace(phase, usage=usage)
    lines = server_lines(msgspec.structs.replace(server, phases=(idle,)))
    assert any("is it the process that answers?" in line for line in lines)


def test_threads_of_several_processes_are_told_apart() -> None:
    server = decode_record(GOLDEN.read_bytes()).roles[0]
    first = server.threads.listed[0]
    busy = msgspec.structs.replace(first.usage, cpu_ns=10**9)
    listed = tuple(
        msgspec.structs.replace(first, name="postgres", pid=pid, tid=pid, usage=busy)
        for pid in (71, 72)
    )
    threads = msgspec.structs.replace(server.threads, listed=listed)
    text = "\n".join(server_lines(msgspec.structs.replace(server, threads=threads)))
    assert re.search(r"postgres +pid 71 ", text) and re.search(r"postgres +pid 72 ", text)


@contextmanager
def a_server(**environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The URL and the process of a server, which is not known to listen yet."""
    port = free_port()
    server = subprocess.Popen(
        [binary("concurve-server"), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    try:
        yield f"redis://127.0.0.1:{port}", server
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_load_that_is_stopped_tells_the_figures_so_far(lab: Lab, number: signal.Signals) -> None:
    with a_server() as (url, server):
        port = int(url.rpartition(":")[2])
        wait_until(lambda: is_listening(port), "the server")
        load = lab.fork(
            "load", url, "--duration", "120", "--sessions", "2", "--attach", str(server.pid)
        )
        wait_until(
            lambda: any("/concurve-load " in line for line in lab.alive().values()), "the load"
        )
        load.wait(2.0)
        load.send_signal(number)
        done = load.completed()
        assert done.returncode == 128 + number, done.stderr
        assert "answered " in done.stdout, done.stderr
        assert f"server: process {server.pid}, in the measured time" in done.stdout
        assert "no steady state: the rate fell by 100 %" not in done.stdout
        assert "these are the figures so far" in done.stderr
        assert server.poll() is None


def is_listening(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def test_a_load_tells_the_cpu_time_of_a_server_that_runs(lab: Lab) -> None:
    with a_server() as (url, server):
        pid = str(server.pid)
        up = lab.run("load", url, "--duration", "0.1", "--sessions", "1", "--attach", pid)
        while "cannot connect" in up.stderr and server.poll() is None:
            up = lab.run("load", url, "--duration", "0.1", "--sessions", "1", "--attach", pid)
        done = lab.run("load", url, "--duration", "0.5", "--sessions", "4", "--attach", pid)
        assert done.returncode == 0, done.stderr
        assert f"server: process {pid}, in the measured time" in done.stdout
        used = re.search(r"CPU time +([\d.]+) s", done.stdout)
        assert used and float(used[1]) > 0
        assert server.poll() is None, "it serves on"
        refused = lab.run("load", "redis://127.0.0.1:1", "--attach", pid)
        assert refused.returncode != 0 and "server: process" not in refused.stdout
    gone = lab.run("load", url, "--attach", pid)
    assert gone.returncode != 0
    assert "there is no process" in gone.stderr and "try:" in gone.stderr


def test_the_help_has_the_options_of_the_verb_and_its_name(lab: Lab) -> None:
    done = lab.run("load", "--help")
    assert done.returncode == 0
    assert "Usage: concurve load [OPTIONS]" in done.stdout and "concurve-load" not in done.stdout
    for option in ("--attach", "--secret", "--sessions"):
        assert option in done.stdout
    own = done.stdout.partition("Options of concurve load:")[2]
    assert own and max(map(len, own.splitlines())) <= 80


def test_the_password_of_ones_own_server_is_given_to_the_load_that_names_it(lab: Lab) -> None:
    with a_server(CONCURVE_PASSWORD="of-my-own") as (url, server):
        port = int(url.rpartition(":")[2])
        wait_until(lambda: is_listening(port), "the server")
        words = ("load", url, "--duration", "0.2", "--sessions", "1", "--attach", str(server.pid))
        without = lab.run(*words, CONCURVE_PASSWORD="of-my-own")
        assert without.returncode == 1 and "--password-from VARIABLE" in without.stderr
        named = (*words, "--password-from", "CONCURVE_PASSWORD")
        done = lab.run(*named, CONCURVE_PASSWORD="of-my-own")
        assert done.returncode == 0, done.stderr
        assert "of-my-own" not in done.stdout + done.stderr


@pytest.mark.parametrize("is_measured", [True, False])
def test_only_figures_that_are_there_are_doubted(
    is_measured: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A load that is refused its data has none."""
    server = decode_record(GOLDEN.read_bytes()).roles[0] if is_measured else None
    done = Loaded("", "", 0 if is_measured else 2, server, disturbed="python used 90 %")
    monkeypatch.setattr("concurve.engine.local.LocalEngine", object)
    monkeypatch.setattr("concurve.measuring.attached_load.load_attached", lambda *_: done)
    assert _attached("concurve-load", ["url"], "1") == done.code
    said = capsys.readouterr().out
    # Who reads the figures knows it before.
    assert said.startswith("in doubt: the machine was busy: python") is is_measured
    assert ("python" in said) is is_measured


def test_figures_as_json_stay_json_beside_an_attached_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = decode_record(GOLDEN.read_bytes()).roles[0]
    figures = '{\n  "sessions": 4,\n  "warnings": []\n}\n'
    done = Loaded(figures, "", 0, server, disturbed="python used 90 %")
    monkeypatch.setattr("concurve.engine.local.LocalEngine", object)
    monkeypatch.setattr("concurve.measuring.attached_load.load_attached", lambda *_: done)
    assert _attached("concurve-load", ["url", "--json"], "1") == 0
    said = capsys.readouterr()
    written = json.loads(said.out)
    attached = written.pop("attached")
    assert written == json.loads(figures)
    (phase,) = server.phases
    assert (attached["pid"], attached["when"]) == (server.pid, "measured")
    assert attached["cpu_ns"] == phase.usage.cpu_ns
    assert attached["wall_ns"] == phase.wall_ns
    assert attached["threads_peak"] == server.threads.peak
    assert attached["machine_busy"] == "python used 90 %"
    assert "in doubt: the machine was busy: python" in said.err
    assert "server: process" not in said.err


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_what_a_load_said_is_told_where_its_figures_cannot_be_written(
    option: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = Loaded("{}\n", "the data is not what it must be\n", 1, None, disturbed="")
    monkeypatch.setattr("concurve.engine.local.LocalEngine", object)
    monkeypatch.setattr("concurve.measuring.attached_load.load_attached", lambda *_: done)
    errors = io.StringIO()
    monkeypatch.setattr("sys.stderr", errors)
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patched:
        patched.setattr("sys.stdout", full)
        with contextlib.suppress(OSError, OutputError):
            _attached("concurve-load", ["url", *option], "1")
            full.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert errors.getvalue() == done.stderr


def waited(server: RoleRecord, share: float) -> RoleRecord:
    """The server, as if it had waited for a CPU for this share of its time."""
    (phase,) = server.phases
    ran = phase.usage.cpu_ns or 0
    usage = msgspec.structs.replace(phase.usage, run_queue_ns=round(ran * share / (1 - share)))
    return msgspec.structs.replace(server, phases=(msgspec.structs.replace(phase, usage=usage),))


@pytest.mark.parametrize(
    ("share", "disturbed", "why"),
    [
        (0.09, "", ""),
        (0.11, "", "the server waited for a CPU for 11 % of the time that it ran or waited"),
        (0.01, "python used 90 %", "the machine was busy: python used 90 %"),
    ],
)
def test_no_p99_is_to_be_reported_of_a_server_that_waited_for_a_cpu(
    share: float, disturbed: str, why: str
) -> None:
    server = waited(decode_record(GOLDEN.read_bytes()).roles[0], share)
    told = {"mostly": "wait", "in_doubt": False, "text": "report 9 ms from due"}
    load = msgspec.structs.replace(server, facts={"p99": told})
    (line,) = (it for it in server_lines(server, load, 4, disturbed) if it.startswith("  p99 "))
    figures = json.loads(with_server(json.dumps({"p99": told}), server, disturbed, 4) or "")["p99"]
    assert line == f"  p99               {figures['text']}"
    assert figures["in_doubt"] is bool(why)
    assert ("report 9 ms" in line) is not bool(why)
    assert why in line
    apart = f"taskset -acp 0-2 {server.pid}"
    assert (apart in line and "taskset -c 3 concurve load" in line) is (share > 0.1)


def test_a_closed_loop_has_no_p99_to_report_and_one_cpu_is_not_shared_out() -> None:
    server = waited(decode_record(GOLDEN.read_bytes()).roles[0], 0.5)
    assert not any("p99" in line for line in server_lines(server, server, 1))
    assert json.loads(with_server('{"p99": null}', server, "", 1) or "")["p99"] is None
    told = {"mostly": "wait", "in_doubt": False, "text": "report 9 ms from due"}
    load = msgspec.structs.replace(server, facts={"p99": told})
    (line,) = (it for it in server_lines(server, load, 1) if it.startswith("  p99 "))
    assert line.endswith("start the load on another machine")


def test_what_failed_stands_below_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    server = decode_record(GOLDEN.read_bytes()).roles[0]
    done = Loaded("the table\n", "the data is not what it must be\n", 1, server, disturbed="cc1")
    monkeypatch.setattr("concurve.engine.local.LocalEngine", object)
    monkeypatch.setattr("concurve.measuring.attached_load.load_attached", lambda *_: done)
    both = io.StringIO()
    monkeypatch.setattr("sys.stdout", both)
    monkeypatch.setattr("sys.stderr", both)
    assert _attached("concurve-load", ["url"], "1") == 1
    lines = both.getvalue().splitlines()
    assert lines[0].startswith("in doubt: ") and lines[1] == "the table"
    assert lines[2].startswith("server: process ")
    assert lines[-1] == done.stderr.strip()


def test_figures_that_were_cut_are_left_as_they_are() -> None:
    server = decode_record(GOLDEN.read_bytes()).roles[0]
    assert with_server('{"sessions": 4, "warn', server, "") is None


def test_a_load_that_runs_writes_json_with_the_cpu_time_of_its_server(lab: Lab) -> None:
    with a_server() as (url, server):
        port = int(url.rpartition(":")[2])
        wait_until(lambda: is_listening(port), "the server")
        words = ("load", url, "--duration", "0.3", "--sessions", "2", "--json")
        done = lab.run(*words, "--attach", str(server.pid))
        assert done.returncode == 0, done.stderr
        figures = json.loads(done.stdout)
        assert figures["server"] in url and figures["attached"]["pid"] == server.pid
        assert figures["attached"]["cpu_ns"] > 0


def test_a_verdict_on_an_objective_is_the_exit_code_beside_an_attached_server(lab: Lab) -> None:
    """Nobody answers in 5 µs. On a busy machine that is in doubt (11), else it is not met (10)."""
    with a_server() as (url, server):
        port = int(url.rpartition(":")[2])
        wait_until(lambda: is_listening(port), "the server")
        words = ("load", url, "--slo", "p99=5us", "--rate", "500", "--duration", "4s", "--json")
        done = lab.run(*words, "--attach", str(server.pid))
        assert done.returncode in (10, 11), done.stderr
        assert json.loads(done.stdout)["exit_code"] == done.returncode


def test_messages_name_the_command_that_the_user_has(lab: Lab) -> None:
    """Where a server is attached, a secret is hidden, or a trial runs it, the program is started by
    its file."""
    with a_server() as (_, server):
        for more in ([], ["--attach", str(server.pid)], ["--secret", "S=hidden"]):
            refused = lab.run("load", "nowhere", *more)
            assert refused.stderr.startswith("concurve load: "), refused.stderr
            unknown = lab.run("load", "redis://127.0.0.1:1", "--no-such-option", *more)
            assert "Usage: concurve load" in unknown.stderr, unknown.stderr
    load = RoleSpec(name="load", argv=(str(binary("concurve-load")), "nowhere"))
    record = decode_record(LocalEngine().run(TrialSpec(trial="named", roles=(load,))))
    assert record.roles[0].stderr.text().startswith("concurve load: ")

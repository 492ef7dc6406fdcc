"""The commands that start and stop Ray on hosts, and what ``concurve hosts`` prints of them."""

from __future__ import annotations

import json
import os
import platform
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from concurve.cli import app
from concurve.definition.inventory import Inventory
from concurve.errors import BusyError, HostError
from concurve.hosts import commands, daemons
from concurve.hosts.commands import MARK_VARIABLE, Step
from concurve.version import __version__
from tests.definition.test_hosts_file import LAB, lab

#: The Python of this machine.
HERE = platform.python_version()


def start_of(inventory: Inventory, host: str) -> tuple[dict[str, str], list[str]]:
    """The variables and the words of the start of Ray on a host."""
    steps = [step for stage in commands.up(inventory) for step in stage]
    (step,) = (it for it in steps if it.host == host and it.says == "the start of Ray")
    assert step.words[0] == "ssh" and "BatchMode=yes" in step.words
    words = shlex.split(step.words[-1])
    variables = dict(word.split("=", 1) for word in words if "=" in word and word[0].isupper())
    return variables, words[len(variables) :]


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_what_runs_beside_a_measurement_is_off_and_out_of_its_way() -> None:
    variables, words = start_of(lab(), "server1")
    assert words[:3] == ["taskset", "-c", "2,3"]
    assert words[3:7] == ["/opt/concurve/bin/python", "-m", "ray.scripts.scripts", "start"]
    assert variables["RAY_AUTH_MODE"] == "token"
    assert variables["RAY_worker_niceness"] == "0", "programs would inherit 15"
    assert variables["RAY_worker_oom_score_adjustment"] == "0"
    assert variables[MARK_VARIABLE] == "10.77.0.1:7000"
    assert after(words, "--include-dashboard") == "false"
    assert after(words, "--include-log-monitor") == "false"
    assert "--disable-usage-stats" in words
    assert json.loads(after(words, "--resources")) == {"host:server1": 1}


def test_a_raylet_that_is_stopped_is_missed_in_time() -> None:
    """Its actor still answers us, so only Ray sees it; then we still have to say so, within 7 s."""
    variables, _ = start_of(lab(), "server1")
    period, timeout, missed = (
        int(variables[f"RAY_health_check_{name}"])
        for name in ("period_ms", "timeout_ms", "failure_threshold")
    )
    assert missed > 1, "one late answer of a busy host is no loss"
    assert (period + timeout) * missed <= 5000


def test_the_head_listens_and_the_others_join_it() -> None:
    _, head = start_of(lab(), "server1")
    assert "--head" in head and after(head, "--port") == "7000" and "--address" not in head
    _, other = start_of(lab(), "load1")
    assert after(other, "--address") == "10.77.0.1:7000" and "--head" not in other
    assert after(other, "--node-ip-address") == "10.77.0.2"
    assert other[0] != "taskset", "no CPUs are named for daemons"


def test_every_port_is_known_to_who_sets_up_a_firewall() -> None:
    _, words = start_of(lab(), "load1")
    ports = [int(after(words, word)) for word in words if word.endswith("-port")]
    assert len(ports) == len(set(ports))
    assert all(7000 < port <= 7120 for port in ports), ports


def test_each_host_has_a_folder_inside_of_the_one_for_its_user_alone() -> None:
    """Ray makes its folder writable for all; hosts that share /tmp would share its sockets."""
    inventory = lab()
    starts = [start_of(inventory, host.name)[1] for host in inventory.hosts]
    folders = [Path(after(words, "--temp-dir")) for words in starts]
    assert len(set(folders)) == len(folders)
    assert {str(folder.parent) for folder in folders} == {"/tmp/concurve-ray-7000"}
    socket = "session_2026-11-23_17-53-24_361142_4194304/sockets/plasma_store.1"
    assert all(len(f"{folder}/{socket}") < 107 for folder in folders), "the most for a socket"


def test_what_is_left_of_a_start_that_failed_is_ended_first() -> None:
    (start,) = commands.up(lab())[3]
    assert start.remedy.startswith("concurve hosts down FILE, then up")


def test_the_token_itself_is_in_no_command() -> None:
    steps = [step for stage in commands.up(lab()) for step in stage]
    assert all("RAY_AUTH_TOKEN=" not in step.line for step in steps)
    assert any("RAY_AUTH_TOKEN_PATH=~/.ray/auth_token" in step.words[-1] for step in steps)


def test_nothing_is_started_before_all_was_checked() -> None:
    stages = commands.up(lab())
    assert [stage[0].is_check for stage in stages] == [True, True, False, False, False]
    assert [step.host for step in stages[3]] == ["server1"], "the head first"


def test_only_the_ray_of_these_hosts_is_stopped_the_head_last() -> None:
    stages = commands.down(lab())
    assert [[step.host for step in stage] for stage in stages] == [["load1", "load2"], ["server1"]]
    line = stages[0][0].words[-1]
    assert line == "/opt/concurve/bin/python -m concurve.hosts.daemons stop 10.77.0.1:7000"


@pytest.mark.parametrize(
    ("version", "ray", "python", "says"),
    [
        (__version__, "2.60.0", HERE, ""),
        ("0.0.1", "2.60.0", HERE, f"concurve 0.0.1, this machine has {__version__}"),
        (__version__, "2.52.0", HERE, "Ray 2.52.0, this machine has 2.60.0"),
        (__version__, "2.60.0", "3.0.1", f"Python {HERE}, this machine has 3.0.1"),
    ],
)
def test_hosts_of_unequal_versions_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, ray: str, python: str, says: str
) -> None:
    monkeypatch.setattr(commands, "ray_version", lambda: "2.60.0")
    monkeypatch.setattr(platform, "python_version", lambda: python)
    check = commands.up(lab())[0][0]
    words = shlex.split(check.words[-1])
    package = tmp_path / "concurve"
    package.mkdir()
    (tmp_path / "ray.py").write_text(f"__version__ = {ray!r}\n")
    (package / "__init__.py").touch()
    (package / "version.py").write_text(f"__version__ = {version!r}\n")
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == bool(says), done.stderr
    assert says in done.stderr
    assert "ray==2.60.0" in check.remedy and f"Python {python}" in check.remedy


@pytest.mark.parametrize(
    ("ray", "is_old"), [("2.51.2", True), ("2.52.0", False), ("3.0.0.dev0", False)]
)
def test_a_ray_that_knows_no_tokens_is_refused_on_all_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ray: str, is_old: bool
) -> None:
    monkeypatch.setattr(commands, "ray_version", lambda: ray)
    check = commands.up(lab())[0][0]
    (tmp_path / "ray.py").write_text(f"__version__ = {ray!r}\n")
    (tmp_path / "concurve").mkdir()
    (tmp_path / "concurve" / "__init__.py").touch()
    (tmp_path / "concurve" / "version.py").write_text(f"__version__ = {__version__!r}\n")
    done = subprocess.run(
        [sys.executable, *shlex.split(check.words[-1])[1:]],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == is_old, done.stderr
    assert (f"Ray {ray}, which lets in whoever reaches it" in done.stderr) == is_old
    assert ("Ray 2.52 or newer" in check.remedy) == is_old


def test_a_machine_with_a_public_address_is_refused_before_ray_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file names one address of a host, or a name that may stand for any."""
    hosts = tuple(
        msgspec.structs.replace(host, public=host.name == "load1") for host in lab().hosts
    )
    stages = commands.up(msgspec.structs.replace(lab(), hosts=hosts))
    checks = [it for it in stages[1] if "public" in it.says]
    assert [it.host for it in checks] == ["server1", "load2"], "the owner of load1 knows it"
    assert all(it.is_check and "public = true" in it.remedy for it in checks)
    words = shlex.split(checks[0].words[-1])[1:]
    assert words == ["-m", "concurve.hosts.daemons", "private", "load2.lab"], "names by each host"
    monkeypatch.setattr(daemons, "public_addresses", lambda: ())
    assert daemons.main(["private"]) == 0
    monkeypatch.setattr(daemons, "public_addresses", lambda: ("9.9.9.9",))
    assert daemons.main(["private"]) == 1
    assert capsys.readouterr().err.startswith("9.9.9.9 is a public address, and some ports of Ray")

    def unknown() -> tuple[str, ...]:
        raise FileNotFoundError(2, "No such file or directory", "/proc/net/fib_trie")

    monkeypatch.setattr(daemons, "public_addresses", unknown)
    assert daemons.main(["private"]) == 1
    assert "its addresses are not known: /proc/net/fib_trie" in capsys.readouterr().err


def step(*words: str) -> Step:
    return Step("a", "the start of Ray", words, "look at its log")


def test_a_command_that_fails_names_host_and_remedy() -> None:
    with pytest.raises(HostError) as refused:
        commands.run([step("sh", "-c", "echo first; echo it broke >&2; exit 3")])
    assert refused.value.what == "host a: the start of Ray failed with 3: it broke"
    assert refused.value.remedy == "look at its log"


def test_what_a_host_lacks_is_said_without_the_words_of_a_program() -> None:
    code = "assert False, 'Ray 2.52.0, this machine has 2.60.0'"
    check = step(sys.executable, "-c", code)._replace(says="Ray 2.60.0", is_check=True)
    with pytest.raises(HostError) as refused:
        commands.run([check])
    assert refused.value.what == (
        "host a: Ray 2.60.0 is needed there: Ray 2.52.0, this machine has 2.60.0"
    )
    assert refused.value.remedy == "look at its log"


def test_an_exception_of_several_lines_is_told_whole() -> None:
    """Ray says versions that differ in lines of their own, and the last one alone means nothing."""
    said = (
        "Traceback:\\n  x\\nRuntimeError: Version mismatch: the cluster has:\\n  Python: 3.11.7\\n"
    )
    with pytest.raises(HostError) as refused:
        commands.run([step("sh", "-c", f"printf '{said}' >&2; exit 1")])
    assert refused.value.what.endswith("Version mismatch: the cluster has: Python: 3.11.7")


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (None, 0o600, "it is missing or empty"),
        ("", 0o600, "it is missing or empty"),
        ("x", 0o640, "other users may read it"),
        ("x", 0o600, ""),
    ],
)
def test_a_token_that_others_may_read_or_nobody_is_refused(
    tmp_path: Path, content: str | None, mode: int, says: str
) -> None:
    token = tmp_path / "a token"
    if content is not None:
        token.write_text(content)
        token.chmod(mode)
    inventory = lab()
    cluster = msgspec.structs.replace(inventory.cluster, token=str(token))
    check = next(
        it
        for it in commands.up(msgspec.structs.replace(inventory, cluster=cluster))[1]
        if it.says == "the token of Ray"
    )
    words = ["sh", "-c", check.words[-1]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == bool(says)
    assert done.stderr.startswith(says)
    assert "x" not in done.stdout.split(), "nothing prints the token"


def token_of(folder: Path, text: str) -> str:
    """What the check of the token prints on a host with this one."""
    token = folder / "token"
    token.write_text(text)
    token.chmod(0o600)
    cluster = msgspec.structs.replace(lab().cluster, token=str(token))
    check = next(
        it
        for it in commands.up(msgspec.structs.replace(lab(), cluster=cluster))[1]
        if it.says == "the token of Ray"
    )
    words = ["sh", "-c", check.words[-1]]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_tokens_that_differ_are_seen_before_ray_is_started(tmp_path: Path) -> None:
    one, same, other = (token_of(tmp_path, text) for text in ("abc", "abc\n", "abd"))
    steps = [step("echo", text.strip())._replace(host=name, is_equal=True)
             for name, text in (("a", one), ("b", same), ("c", other))]  # fmt: skip
    commands.run(steps[:2])
    with pytest.raises(HostError) as refused:
        commands.run(steps)
    assert refused.value.what == "the token of Ray is not the same: one on a and b, another on c"


def test_a_checkout_that_differs_is_seen_before_ray_is_started() -> None:
    checks = [it for it in commands.up(lab())[1] if "the same files" in it.says]
    assert [it.host for it in checks] == ["server1", "load1", "load2"]
    assert all(it.is_equal and "same wheels" in it.remedy for it in checks)
    assert shlex.split(checks[0].words[-1])[1:] == ["-m", "concurve.hosts.daemons", "files"]


def test_our_files_are_printed_as_lines_that_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"the package": "1", "programs for x": "2"}
    monkeypatch.setattr(daemons, "own_files", lambda: found)
    assert daemons.main(["files"]) == 0
    text = capsys.readouterr().out
    assert text == "the package 1\nprograms for x 2\n"
    other = "the package 1\nprograms for y 3\n"
    a, b, c = (step("true")._replace(host=name) for name in "abc")
    commands.check_equal([(a, text), (b, other)])
    with pytest.raises(HostError, match="programs for y is not the same: one on b, another on c"):
        commands.check_equal([(a, text), (b, other), (c, "programs for y 4\n")])


def answered(monkeypatch: pytest.MonkeyPatch, answer: dict[tuple[str, str], str]) -> list[str]:
    """Have steps answer by their host and what they are for: an error begins with ``!``; what was
    run, in order."""
    ran: list[str] = []

    def run_one(asked: Step) -> str:
        ran.append(f"{asked.host}: {asked.says}")
        said = answer.get((asked.host, asked.says), "")
        if said.startswith("!"):
            raise HostError(f"host {asked.host}: {said[1:]}", asked.remedy)
        return said

    monkeypatch.setattr(commands, "_run_one", run_one)
    monkeypatch.setattr("concurve.hosts.names.check_names", lambda inventory: None)
    return ran


STOP, LOOK, START = "the stop of Ray", "a look at what runs there", "the start of Ray"


def test_a_host_that_is_not_reached_keeps_no_other_from_being_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "!OpenSSH cannot log in: No route to host"
    ran = answered(
        monkeypatch,
        {
            ("load1", STOP): gone,
            ("load1", LOOK): gone,
            ("load2", STOP): "stopped; 4 processes have ended\n",
            ("server1", STOP): "none of ours ran\n",
        },
    )
    done = CliRunner().invoke(app, ["hosts", "down", lab_file(tmp_path)])
    assert f"server1: {STOP}" in ran
    assert done.output.splitlines() == [
        "load1: OpenSSH cannot log in: No route to host",
        "load2: Ray: stopped; 4 processes have ended",
        "server1: Ray: none of ours ran",
    ]
    assert isinstance(done.exception, HostError)
    assert done.exception.what == "Ray was not stopped on load1"


def test_ray_is_not_stopped_under_a_measurement_unless_it_is_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = answered(monkeypatch, {("load2", LOOK): "pid 17, run scaling\n"})
    done = CliRunner().invoke(app, ["hosts", "down", lab_file(tmp_path)])
    assert isinstance(done.exception, BusyError)
    assert done.exception.what == "host load2: a measurement runs there: pid 17, run scaling"
    assert "--force" in done.exception.remedy and "resume" in done.exception.remedy
    assert not any(STOP in it for it in ran)
    done = CliRunner().invoke(app, ["hosts", "down", lab_file(tmp_path), "--force"])
    assert done.exception is None
    assert sum(STOP in it for it in ran) == 3


def test_only_a_measurement_by_this_ray_is_ended_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "marked", lambda mark: {17: "1"} if mark == "m" else {})
    monkeypatch.setattr(daemons, "measurement_under_way", lambda: "pid 17, run scaling")
    assert daemons.measured_by("m") == "pid 17, run scaling"
    assert daemons.measured_by("of another file") == ""
    monkeypatch.setattr(daemons, "measurement_under_way", lambda: "")
    assert daemons.measured_by("m") == ""


def test_a_start_that_fails_says_where_ray_runs_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(monkeypatch, {("load1", START): "!it has no memory"})
    done = CliRunner().invoke(app, ["hosts", "up", lab_file(tmp_path)])
    assert isinstance(done.exception, HostError)
    said = "Ray may run on server1, load1 and load2 now: concurve hosts down "
    assert said in done.output
    answered(monkeypatch, {("load1", "the token of Ray"): "!it is missing"})
    done = CliRunner().invoke(app, ["hosts", "up", lab_file(tmp_path)])
    assert isinstance(done.exception, HostError) and "Ray may run" not in done.output


def test_a_full_file_system_is_named(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    full = os.statvfs_result((found.f_bsize, 4096, 9, 9, 256, *tuple(found)[5:]))
    with pytest.raises(HostError, match="is full: 1 MiB are free"):
        daemons.check_free(tmp_path, full)


def test_a_host_that_nobody_can_log_in_to() -> None:
    with pytest.raises(HostError) as refused:
        commands.run([step("sh", "-c", "echo Permission denied >&2; exit 255")])
    assert "OpenSSH cannot log in: Permission denied" in refused.value.what


def test_what_a_login_says_is_not_hidden_by_warnings_of_openssh() -> None:
    """A shell that refuses prints why to standard output; OpenSSH would warn on the other."""
    assert "LogLevel=ERROR" in commands.ssh(lab().hosts[0], "true")
    with pytest.raises(HostError, match="This account is currently not available"):
        commands.run([step("sh", "-c", "echo This account is currently not available.; exit 1")])


def test_a_command_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "COMMAND_SECONDS", 0.1)
    with pytest.raises(HostError, match=r"no end after 0\.1 s"):
        commands.run([step("sleep", "10")])


def test_without_openssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HostError, match="OpenSSH is not installed"):
        commands.run([step("ssh-that-is-not-there", "x")])


def test_cpus_that_a_host_lacks_are_seen_before_ray_is_started() -> None:
    check = commands.up(lab())[0][-1]
    assert (check.host, check.says) == ("server1", "each of the CPUs 0,1,2,3,4")
    assert check.is_check
    granted = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    for cpus, is_there in ((granted, True), ("65535", False)):
        named = [int(cpu) for cpu in cpus.split(",")]
        host = msgspec.structs.replace(lab().hosts[0], cpus=tuple(named), housekeeping=())
        inventory = msgspec.structs.replace(lab(), hosts=(host,))
        words = shlex.split(commands.up(inventory)[0][-1].words[-1])
        done = subprocess.run(
            [sys.executable, *words[1:]], capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == is_there
        assert is_there or "it grants [" in done.stderr


def test_a_port_that_is_taken_is_seen_before_ray_is_started() -> None:
    checks = [it for it in commands.up(lab())[1] if "ports" in it.says]
    assert [it.host for it in checks] == ["server1", "load1", "load2"]
    assert [it.says.split()[4] for it in checks] == ["7000", "7001", "7001"], "the head's alone"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        host = msgspec.structs.replace(lab().hosts[0], address="127.0.0.1")
        cluster = msgspec.structs.replace(lab().cluster, port=port)
        inventory = msgspec.structs.replace(lab(), hosts=(host,), cluster=cluster)
        step = commands.up(inventory)[1][-1]
        words = (sys.executable, *shlex.split(step.words[-1])[1:])
        with pytest.raises(HostError, match=f"is needed there: port {port} is taken") as refused:
            commands.run([step._replace(words=words)])
    assert refused.value.remedy.startswith("concurve hosts down FILE")


def test_what_each_printed_comes_in_their_order() -> None:
    assert commands.run([step("echo", "1"), step("echo", "2")]) == ["1\n", "2\n"]


def lab_file(folder: Path) -> str:
    path = folder / "lab.toml"
    path.write_text(LAB)
    return str(path)


def test_a_dry_run_prints_every_command_and_runs_none(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["hosts", "up", lab_file(tmp_path), "--dry-run"])
    assert done.exception is None, done.output
    lines = done.output.splitlines()
    commands_shown = [line for line in lines if line.startswith("  ssh ")]
    assert len(commands_shown) == 22, "seven for each host, and one for that whose CPUs are named"
    assert lines[0] == "server1: concurve " + lines[0].split()[2] + " with Ray and Python " + HERE
    done = CliRunner().invoke(app, ["hosts", "down", lab_file(tmp_path), "--dry-run"])
    assert done.output.count("  ssh ") == 6, "a look and the stop of each"


def test_a_list_of_hosts_without_asking_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["hosts", "list", lab_file(tmp_path), "--offline"])
    assert done.output.splitlines() == [
        "Ray's head on server1, port 7000",
        "server1: 10.77.0.1; measures on CPUs 0,1,4; daemons on CPUs 2,3",
        "load1: 10.77.0.2; labels load",
        "load2: load2.lab; labels load, spare-parts",
    ]


def test_a_file_that_is_not_there_is_named() -> None:
    done = CliRunner().invoke(app, ["hosts", "list", "nowhere.toml"])
    assert "nowhere.toml: cannot be read" in str(done.exception)


MARKED = "import time; print('up', flush=True); time.sleep(60)"


@pytest.mark.real
def test_only_what_has_the_mark_is_ended() -> None:
    def start(mark: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, MARK_VARIABLE: mark}
        process = subprocess.Popen([sys.executable, "-c", MARKED], env=env, stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        return process

    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    ours, other = start(mark), start(f"{mark}-other")
    try:
        assert list(daemons.marked(mark)) == [ours.pid]
        assert daemons.main(["stop", mark]) == 0
        assert ours.wait(10) != 0
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()
    assert daemons.main(["stop"]) == 2


@pytest.mark.real
def test_what_lost_the_mark_is_ended_with_the_process_that_started_it() -> None:
    """As a process of Ray's that writes its title over its environment."""
    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    untitled = (
        "import os, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], env={})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", untitled, MARKED.replace("'up'", "__import__('os').getpid()")],
        env={**os.environ, MARK_VARIABLE: mark}, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        without = int(process.stdout.readline())
        assert set(daemons.marked(mark)) == {process.pid, without}
        assert daemons.main(["stop", mark]) == 0
        assert process.wait(10) != 0
        assert process.stdout.read() == b"", "the other one has ended, too"
    finally:
        process.kill()
        process.wait()


def test_the_folder_of_ray_is_made_before_ray_for_its_user_alone() -> None:
    stages = commands.up(lab())
    assert [step.host for step in stages[2]] == ["server1", "load1", "load2"]
    _, words = start_of(lab(), "load1")
    made = shlex.split(stages[2][0].words[-1])
    around = str(Path(after(words, "--temp-dir")).parent)
    assert made[-4:] == ["-m", "concurve.hosts.daemons", "folder", around]


def test_a_folder_of_this_user_is_taken_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ray"
    for _ in range(2):
        assert daemons.main(["folder", str(folder)]) == 0
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.chmod(0o755)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").touch()
    for name in ("link", "file", "no/folder"):
        assert daemons.main(["folder", str(tmp_path / name)]) == 1
        assert name in capsys.readouterr().err
    assert folder.stat().st_mode & 0o777 == 0o755, "the link was not followed"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")
def test_a_folder_that_another_user_has_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ray"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    assert daemons.main(["folder", str(folder)]) == 1
    assert "belongs to another user" in capsys.readouterr().err


def test_a_number_that_another_process_has_by_now_is_not_signalled() -> None:
    process = subprocess.Popen(["sleep", "1077"])
    try:
        daemons._signal(process.pid, "1", signal.SIGKILL)  # that one was started long before
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()

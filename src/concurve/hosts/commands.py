"""The commands that start and stop Ray on hosts, and how OpenSSH runs them there.

Making the commands is pure: ``concurve hosts up --dry-run`` prints what would be run.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import shlex
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from concurve.definition.hosts_file import is_name
from concurve.definition.inventory import PUBLIC_REMEDY, Host, Inventory
from concurve.errors import HostError
from concurve.host.own_files import SAME_WHEELS
from concurve.version import __version__
from concurve.words import listed

#: Every process of a Ray that was started here has this variable, with the address of its head:
#: ``down`` ends these, and no other Ray of the host.
MARK_VARIABLE = "CONCURVE_RAY"

#: The custom resource that a host has once, by which an actor is placed on it.
RESOURCE = "host:{name}"

#: How far the port of a raylet is from that of the head.
RAYLET_PORT = 1

#: Ray's ports after that of the head, by option; what workers use begins at ``WORKER_PORTS``.
_PORTS = {
    "--node-manager-port": RAYLET_PORT,
    "--object-manager-port": 2,
    "--dashboard-agent-grpc-port": 3,
    "--dashboard-agent-listen-port": 4,
    "--runtime-env-agent-port": 5,
    "--metrics-export-port": 6,
}
WORKER_PORTS = (21, 120)

_OBJECT_STORE_BYTES = 83_886_080

#: Nothing runs beside a measurement that it does not need; a dead host is seen within seconds; what
#: an actor starts has the priority of any other program, and is not the first to be killed when
#: memory is short.
_SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_event_stats": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_task_events_report_interval_ms": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_raylet_report_resources_period_milliseconds": "1000",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_worker_niceness": "0",
    "RAY_worker_oom_score_adjustment": "0",
}

#: Ray asks for a token since this version.
RAY_LEAST = (2, 52)
RAY_LEAST_SAID = ".".join(map(str, RAY_LEAST))

#: Seconds for OpenSSH to log in, and for a command to end. Towards a head that cannot be reached,
#: ``ray start`` alone would take ten minutes.
CONNECT_SECONDS = 10
COMMAND_SECONDS = 60

#: The line of a traceback that names the exception, and how much of its message is told.
_RAISED = re.compile(r"[\w.]*(Error|Exception): ")
_SAID_MOST = 500

#: OpenSSH exits with this code where it failed itself.
_SSH_FAILED = 255


class Step(NamedTuple):
    """A command on a host: what it is for, the words of OpenSSH, and what to try if it fails.
    ``is_check``: it changes nothing. ``is_equal``: what it prints is to be the same on all hosts,
    as :func:`check_equal` says. ``is_start``: Ray may run there once it has begun."""

    host: str
    says: str
    words: tuple[str, ...]
    remedy: str
    is_check: bool = False
    is_equal: bool = False
    is_start: bool = False

    @property
    def line(self) -> str:
        """As one would type it."""
        return shlex.join(self.words)


def mark_of(inventory: Inventory) -> str:
    """The mark of the Ray of these hosts."""
    return f"{inventory.host(inventory.cluster.head).address}:{inventory.cluster.port}"


def up(inventory: Inventory) -> list[list[Step]]:
    """The steps that start Ray, in stages: those of a stage may run at once. First what must be so
    on every host, then its folder, then the head, then the others."""
    others = [host for host in inventory.hosts if host.name != inventory.cluster.head]
    stages = [
        [
            *(_check_versions(inventory, host) for host in inventory.hosts),
            *(_check_cpus(inventory, host) for host in inventory.hosts if _cpus_of(host)),
        ],
        [
            *(_check_files(inventory, host) for host in inventory.hosts),
            *(_check_token(inventory, host) for host in inventory.hosts),
            *(_check_private(inventory, host) for host in inventory.hosts if not host.public),
            *(_check_ports(inventory, host) for host in inventory.hosts),
        ],
        [make_folder(inventory, host) for host in inventory.hosts],
        [_start(inventory, inventory.host(inventory.cluster.head), True)],
        [_start(inventory, host, False) for host in others],
    ]
    return [stage for stage in stages if stage]


def down(inventory: Inventory) -> list[list[Step]]:
    """The steps that stop Ray, the head last."""
    head = inventory.cluster.head
    stages = [
        [_stop(inventory, host) for host in inventory.hosts if host.name != head],
        [_stop(inventory, inventory.host(head))],
    ]
    return [stage for stage in stages if stage]


def looks(inventory: Inventory) -> list[Step]:
    """Which measurement would end with the Ray of each host? It prints who, or nothing."""
    return [_look_for_a_run(inventory, host) for host in inventory.hosts]


def run(steps: Sequence[Step]) -> list[str]:
    """Run the steps of a stage at once; what each printed.

    Raises:
        HostError: the first that failed, with what it said; or hosts differ that are to be equal.
    """
    printed = []
    for found in run_each(steps):
        if isinstance(found, HostError):
            raise found
        printed.append(found)
    for says in dict.fromkeys(step.says for step in steps if step.is_equal):
        check_equal(
            [(step, text) for step, text in zip(steps, printed, strict=True) if step.says == says]
        )
    return printed


def run_each(steps: Sequence[Step]) -> list[str | HostError]:
    """Run steps at once; what each printed, or why it failed."""
    with ThreadPoolExecutor(max_workers=max(1, len(steps))) as pool:
        return list(pool.map(_run_or_fail, steps))


def check_equal(printed: Sequence[tuple[Step, str]]) -> None:
    """Refuse hosts of which one printed another last word on a line than others that begin alike.

    Raises:
        HostError: names what differs and the hosts.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for step, text in printed:
        for line in text.splitlines():
            what, _, value = line.strip().rpartition(" ")
            found.setdefault(what, {}).setdefault(value, []).append(step.host)
    for what, hosts in found.items():
        if len(hosts) > 1:
            sides = ", another on ".join(map(listed, hosts.values()))
            raise HostError(f"{what} is not the same: one on {sides}", printed[0][0].remedy)


def _run_or_fail(step: Step) -> str | HostError:
    try:
        return _run_one(step)
    except HostError as error:
        return error


def _run_one(step: Step) -> str:
    try:
        done = subprocess.run(
            step.words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise HostError(
            "OpenSSH is not installed here", "apt-get install openssh-client"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"host {step.host}: {step.says}: no end after {COMMAND_SECONDS} s", step.remedy
        ) from error
    if done.returncode == 0:
        return done.stdout
    said = _last_said(done.stderr) or _last_said(done.stdout) or "it said nothing"
    if done.returncode == _SSH_FAILED:
        raise HostError(
            f"host {step.host}: OpenSSH cannot log in: {said}",
            f"{shlex.join(step.words[:-1])} true, by hand; keys in an agent, the host in "
            'known_hosts, and ssh = "USER@NAME" in the file of hosts',
        )
    if step.is_check:
        reason = said.removeprefix("AssertionError: ")
        raise HostError(f"host {step.host}: {step.says} is needed there: {reason}", step.remedy)
    raise HostError(
        f"host {step.host}: {step.says} failed with {done.returncode}: {said}", step.remedy
    )


def _last_said(text: str) -> str:
    """The last line of a text; an exception of Python, whose message may have several, from its
    name on."""
    lines = [line.strip() for line in text.strip().splitlines()]
    errors = [number for number, line in enumerate(lines) if _RAISED.match(line)]
    last = lines[errors[-1] :] if errors else lines[-1:]
    return " ".join(" ".join(last).split())[:_SAID_MOST]


def ssh(host: Host, line: str) -> tuple[str, ...]:
    """The words by which OpenSSH runs a line of a shell on a host, without asking anything."""
    # Its warnings and banners would be taken for what the command says.
    options = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}",
               "-o", "LogLevel=ERROR")  # fmt: skip
    return ("ssh", *options, host.login, line)


def is_too_old(version: str) -> bool:
    """Does a version of Ray let in whoever reaches it, since it ignores tokens?"""
    return tuple(map(int, version.split(".")[:2])) < RAY_LEAST


def ray_version() -> str | None:
    """The version of Ray that is installed here; ``None`` if none is."""
    try:
        return importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        return None


def _check_versions(inventory: Inventory, host: Host) -> Step:
    here = ray_version()
    python = platform.python_version()
    code = (
        "import platform; python = platform.python_version(); "
        # Ray joins no hosts whose Pythons differ, be it in their last number.
        f"assert python == {python!r}, f'Python {{python}}, this machine has {python}'; "
        "import concurve.version as v, ray; "
        f"assert v.__version__ == {__version__!r}, "
        f"f'concurve {{v.__version__}}, this machine has {__version__}'"
    )
    if here is not None:
        code += (
            f"; assert ray.__version__ == {here!r}, "
            f"f'Ray {{ray.__version__}}, this machine has {here}'"
        )
    code += (
        f"; assert tuple(map(int, ray.__version__.split('.')[:2])) >= {RAY_LEAST}, "
        "f'Ray {ray.__version__}, which lets in whoever reaches it: it knows no tokens'"
    )
    of_ray = f"ray=={here}" if here and not is_too_old(here) else f"Ray {RAY_LEAST_SAID} or newer"
    line = shlex.join([inventory.cluster.python, "-c", code])
    return Step(
        host.name,
        f"concurve {__version__} with Ray and Python {python}",
        ssh(host, line),
        f"Python {python}, the wheels of concurve and concurve-native {__version__} "
        f"(docs/install.md) and {of_ray}, at the python of [ray] there",
        is_check=True,
    )


def _cpus_of(host: Host) -> list[int]:
    """The CPUs that the file of hosts names."""
    return sorted({*host.cpus, *host.housekeeping})


def _check_cpus(inventory: Inventory, host: Host) -> Step:
    """Daemons are bound to CPUs that are not there without a word, if one of them is."""
    named = _cpus_of(host)
    code = (
        "import os; granted = os.sched_getaffinity(0); "
        f"assert granted >= {set(named)!r}, f'it grants {{sorted(granted)}}'"
    )
    return Step(
        host.name,
        f"each of the CPUs {_cpu_list(named)}",
        ssh(host, shlex.join([inventory.cluster.python, "-c", code])),
        "other cpus and housekeeping in the file of hosts",
        is_check=True,
    )


def _check_token(inventory: Inventory, host: Host) -> Step:
    path = _path(inventory.cluster.token)
    line = (
        f"test -s {path} || {{ echo it is missing or empty >&2; exit 1; }}; "
        f'test -z "$(find -L {path} -perm /077)" || '
        "{ echo other users may read it: chmod 600 >&2; exit 1; }; "
        # Ray ignores a line break at its end. Tokens are compared by this alone.
        f"echo the token of Ray $(tr -d '[:space:]' < {path} | sha256sum | cut -c 1-64)"
    )
    return Step(
        host.name,
        "the token of Ray",
        ssh(host, line),
        f"ray get-auth-token --generate on one host, and its {inventory.cluster.token} on all, "
        "for its user alone (docs/many-hosts.md has the commands)",
        is_check=True,
        is_equal=True,
    )


def _check_files(inventory: Inventory, host: Host) -> Step:
    """A checkout has the same version before a change and after it."""
    words = [inventory.cluster.python, "-m", "concurve.hosts.daemons", "files"]
    return Step(
        host.name,
        "the same files of concurve as on the others",
        ssh(host, shlex.join(words)),
        SAME_WHEELS,
        is_check=True,
        is_equal=True,
    )


def _check_private(inventory: Inventory, host: Host) -> Step:
    """A host may have more addresses than the file names, and a name may stand for any."""
    # Each host may know another address by a name.
    names = [it.address for it in inventory.hosts if not it.public and is_name(it.address)]
    words = [inventory.cluster.python, "-m", "concurve.hosts.daemons", "private", *names]
    return Step(
        host.name,
        "a machine without a public address",
        ssh(host, shlex.join(words)),
        PUBLIC_REMEDY,
        is_check=True,
    )


def _check_ports(inventory: Inventory, host: Host) -> Step:
    """Where one is taken, Ray says that its own start took too long, or that it has a bug."""
    first = inventory.cluster.port + (host.name != inventory.cluster.head)
    last = inventory.cluster.port + max(_PORTS.values())
    code = (
        f"import socket; found = [port for port in range({first}, {last + 1}) "
        f"if socket.socket().connect_ex(({host.address!r}, port)) == 0]; "
        "assert not found, f'port {found[0]} is taken'"
    )
    return Step(
        host.name,
        f"each of the ports {first} to {last}, free for Ray,",
        ssh(host, shlex.join([inventory.cluster.python, "-c", code])),
        "concurve hosts down FILE, if Ray runs there already; or another port of [ray]",
        is_check=True,
    )


def _folder(inventory: Inventory) -> str:
    """The folder of Ray's on each host that its user alone may enter."""
    return f"/tmp/concurve-ray-{inventory.cluster.port}"


def _own_folder(inventory: Inventory, host: Host) -> str:
    """Where Ray keeps the sockets and logs of a host. Ray makes it writable for all users, so it is
    inside of the one that is not; and two hosts that share ``/tmp`` would take each other's
    sockets. Its name is a number: the path of a socket must be short."""
    return f"{_folder(inventory)}/{inventory.hosts.index(host)}"


def make_folder(inventory: Inventory, host: Host) -> Step:
    """For its user alone: any user may make a folder of this name first. It fails where the disk is
    full, also once the folder is there."""
    words = [inventory.cluster.python, "-m", "concurve.hosts.daemons", "folder"]
    return Step(
        host.name,
        "the making of Ray's folder",
        ssh(host, shlex.join([*words, _folder(inventory)])),
        f"whose is {_folder(inventory)} there? Another port of [ray] has another folder",
    )


def _start(inventory: Inventory, host: Host, is_head: bool) -> Step:
    cluster = inventory.cluster
    settings = {
        **_SETTINGS,
        MARK_VARIABLE: mark_of(inventory),
    }
    assignments = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    assignments.append(f"RAY_AUTH_TOKEN_PATH={_path(cluster.token)}")
    pinned = ["taskset", "-c", _cpu_list(host.housekeeping)] if host.housekeeping else []
    first, last = (cluster.port + offset for offset in WORKER_PORTS)
    words = [
        *pinned,
        *_ray(inventory, "start"),
        "--node-ip-address", host.address,
        "--resources", json.dumps({RESOURCE.format(name=host.name): 1}),
        "--object-store-memory", str(_OBJECT_STORE_BYTES),
        "--temp-dir", _own_folder(inventory, host),
        "--disable-usage-stats",
        "--include-log-monitor", "false",
        *(word for option, more in _PORTS.items() for word in (option, str(cluster.port + more))),
        "--min-worker-port", str(first),
        "--max-worker-port", str(last),
    ]  # fmt: skip
    if host.cpus:
        words += ["--num-cpus", str(len(host.cpus))]
    if is_head:
        words += ["--head", "--port", str(cluster.port), "--include-dashboard", "false"]
    else:
        words += ["--address", mark_of(inventory)]
    return Step(
        host.name,
        "the start of Ray",
        ssh(host, " ".join([*assignments, shlex.join(words)])),
        f"concurve hosts down FILE, then up; its log in {_own_folder(inventory, host)}"
        f"/session_latest/logs there; do the hosts reach each other at ports from {cluster.port} "
        "on, or does a firewall close them?",
        is_start=True,
    )


def _stop(inventory: Inventory, host: Host) -> Step:
    words = [inventory.cluster.python, "-m", "concurve.hosts.daemons", "stop", mark_of(inventory)]
    return Step(
        host.name,
        "the stop of Ray",
        ssh(host, shlex.join(words)),
        f"the processes there that have {MARK_VARIABLE}={mark_of(inventory)} in their environment",
    )


def _look_for_a_run(inventory: Inventory, host: Host) -> Step:
    words = [inventory.cluster.python, "-m", "concurve.hosts.daemons", "busy", mark_of(inventory)]
    return Step(
        host.name,
        "a look at what runs there",
        ssh(host, shlex.join(words)),
        "concurve hosts down FILE --force",
        is_check=True,
    )


def _ray(inventory: Inventory, verb: str) -> list[str]:
    return [inventory.cluster.python, "-m", "ray.scripts.scripts", verb]


def _path(path: str) -> str:
    """A path for a shell, which still expands the home folder."""
    if path.startswith("~/"):
        return "~/" + shlex.quote(path[2:])
    return shlex.quote(path)


def _cpu_list(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))

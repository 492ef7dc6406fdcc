"""Starts the agent of this host, from a process of whatever connects the hosts."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from concurve.errors import HostError
from concurve.host.own_python import module
from concurve.host.temporary import offered_folder
from concurve.hosts.lease import LEASE_SECONDS

#: Seconds for an agent to listen: it imports a part of the laboratory.
START_SECONDS = 20.0

#: Variables that Ray sets for its workers, and that measured programs would obey.
_OF_RAY = ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "PYTHONBREAKPOINT")


def agent_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent, and so of programs that it starts: without what Ray set for the
    worker that starts it."""
    return {
        name: value
        for name, value in inherited.items()
        if not name.startswith("RAY_") and name not in _OF_RAY
    }


def start_agent(
    lease_seconds: float = LEASE_SECONDS,
    environment: Mapping[str, str] | None = None,
    before: tuple[str, ...] = (),
    first_seconds: float = LEASE_SECONDS,
) -> Path:
    """Start an agent that outlives this process; the path of its socket. ``before`` is a command
    that starts the rest, such as one that enters a namespace. Before its first request the agent
    waits for ``first_seconds``.

    Raises:
        HostError: it does not listen.
    """
    path = offered_folder() / "socket"
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, path.parent.parent, ignore_errors=True)
        _start(path, lease_seconds, environment, before, first_seconds)
        stack.pop_all()  # it is the agent's now
    return path


def _start(
    path: Path,
    lease_seconds: float,
    environment: Mapping[str, str] | None,
    before: tuple[str, ...],
    first_seconds: float,
) -> None:
    """Start an agent and wait until it listens."""
    given = agent_environment(os.environ if environment is None else environment)
    words = [*before, *module("concurve.hosts.agent"), str(path)]
    words += [str(lease_seconds), str(first_seconds)]
    process = subprocess.Popen(
        words,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    readable, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    said = process.stdout.readline() if readable else b""
    if said.strip() == b"ready":
        process.wait()
        return
    process.kill()
    _, errors = process.communicate()
    reason = errors.decode(errors="replace").strip() or f"it said nothing in {START_SECONDS:g} s"
    raise HostError(f"the agent of this host did not start: {reason}", "concurve doctor there")

"""Trials on this machine, through ``concurve-trial``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from concurve.engine import Problem, TrialInterrupt
from concurve.errors import HostError, RunError
from concurve.host import native
from concurve.host.orphans import end_marked
from concurve.host.temporary import remove_abandoned
from concurve.secrets import KNOWN, environment_of_trials
from concurve.wire import decode_spec, encode_spec
from concurve.wire.spec import ReadyProbe, RoleSpec, TrialSpec

#: The runner sets this variable in every process of a trial, to the trial's name.
TRIAL_VARIABLE = "CONCURVE_TRIAL"

#: Seconds for an interrupted runner to end its processes and write its record.
STOP_SECONDS = 15


class LocalEngine:
    """One fresh ``concurve-trial`` a trial: spec on stdin, record on stdout, prose on stderr.

    The runner alone gets the secrets of a spec; its record has references in their place.
    """

    def __init__(self, runner: Path | None = None) -> None:
        self._runner = str(runner or native.runner())

    def run(self, spec: TrialSpec) -> bytes:
        """Run one trial; see :meth:`concurve.engine.Engine.run`."""
        try:
            return KNOWN.hide_json(self._call([], encode_spec(revealed(spec))))
        except RunError:
            # Killed by the out-of-memory killer, say: it has left the trial's processes.
            end_marked(TRIAL_VARIABLE, spec.trial)
            remove_abandoned()
            raise

    def check(self, spec: TrialSpec) -> list[Problem]:
        """Launch every role suspended, read its controls back, and end it again."""
        answer = json.loads(self._call(["check"], encode_spec(revealed(spec))))
        return [
            Problem(role["name"], role["problem"]["kind"], KNOWN.hide(role["problem"]["message"]))
            for role in answer["roles"]
            if role.get("problem")
        ]

    def probes(self) -> dict[str, Any]:
        """Which sources of measurement this host grants, each with a reason where it does not."""
        answer: dict[str, Any] = json.loads(self._call(["probes"], b""))
        return answer

    def _call(self, arguments: list[str], stdin: bytes) -> bytes:
        try:
            # A process group of its own: ^C reaches us alone, and we signal the runner once.
            process = subprocess.Popen(
                [self._runner, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
                env=environment_of_trials(),
            )
        except OSError as error:
            raise HostError(
                f"the trial runner {self._runner} cannot be started: {error.strerror}", "make build"
            ) from error
        try:
            stdout, stderr = process.communicate(stdin)
        except KeyboardInterrupt:
            if stopped := _end(process):
                raise TrialInterrupt(KNOWN.hide_json(stopped)) from None
            raise
        except BaseException:
            _end(process)
            raise
        if process.returncode != 0 or not stdout:
            said = KNOWN.hide(stderr.decode(errors="replace").strip()) or "it said nothing"
            raise RunError(
                f"the trial runner failed with exit code {process.returncode}: {said}",
                "concurve resume last, once the cause is corrected",
            )
        return stdout


def _end(process: subprocess.Popen[bytes]) -> bytes:
    """Make the runner end all processes of its trial, and wait until it has ended; what it printed,
    nothing if it had to be killed."""
    process.terminate()
    try:
        return process.communicate(timeout=STOP_SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return b""


def revealed(spec: TrialSpec) -> TrialSpec:
    """The spec for a runner: with the secrets in place of their references, and without the hosts,
    of which the runner knows nothing."""
    return msgspec.structs.replace(spec, roles=tuple(map(_revealed_role, spec.roles)))


def _revealed_role(role: RoleSpec) -> RoleSpec:
    reveal = KNOWN.reveal
    return msgspec.structs.replace(
        role,
        argv=tuple(map(reveal, role.argv)),
        env={name: reveal(value) for name, value in role.env.items()},
        cwd=None if role.cwd is None else reveal(role.cwd),
        ready_probe=None if role.ready_probe is None else _revealed_probe(role.ready_probe),
        host=None,
    )


def _revealed_probe(probe: ReadyProbe) -> ReadyProbe:
    reveal = KNOWN.reveal
    return msgspec.structs.replace(
        probe,
        tcp=None if probe.tcp is None else reveal(probe.tcp),
        line=None if probe.line is None else reveal(probe.line),
        command=None if probe.command is None else tuple(map(reveal, probe.command)),
    )


def run_packed(spec: bytes) -> bytes:
    """The record of a packed spec that has its secrets, by the runner of the machine that this is
    called on; a task of :mod:`concurve.engine.tasks`."""
    return LocalEngine().run(decode_spec(spec))

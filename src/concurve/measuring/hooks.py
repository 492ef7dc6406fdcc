"""Shell commands around trials: setup, prepare, conclude, cleanup, and the validator."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

import msgspec

from concurve.definition.templates import render
from concurve.definition.units import format_duration
from concurve.errors import RunError
from concurve.host.orphans import end_marked
from concurve.planning.plan import Cell, Plan, describe
from concurve.secrets import KNOWN
from concurve.wire.record import HookRecord, Output

#: A hook is stopped after so many seconds, or after the run's time allowance if that is longer.
HOOK_SECONDS_MIN = 600.0

#: The processes of a hook have this variable, with a value of their own.
HOOK_VARIABLE = "CONCURVE_HOOK"

#: A hook that prints more is stopped: it would fill the disk.
OUTPUT_BYTES_MAX = 1 << 30

#: How much it has printed is looked at so often.
_LOOK_SECONDS = 0.2

#: So many bytes of each stream stay in the record of a trial.
_KEPT_BYTES = 2_000

#: So many bytes at the end of what a hook printed are read.
_TAIL_BYTES = 65_536


class Ended(NamedTuple):
    """How a hook ended, and the last part of what it printed; the bytes before that part."""

    returncode: int
    stdout: str
    stderr: str
    before_stdout: int = 0
    before_stderr: int = 0


def hook_seconds(plan: Plan) -> float:
    """The time limit of each hook in seconds."""
    return max(HOOK_SECONDS_MIN, plan.rules.time_allowed_seconds)


def run_hook(plan: Plan, name: str, cell: Cell) -> HookRecord | None:
    """Run one hook for a cell, if the study has it; what it printed, if anything.

    Raises:
        RunError: it exited with another code than 0, or did not end.
    """
    text = plan.study.hooks.texts().get(name)
    if not text:
        return None
    done = shell(plan, name, text, cell)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-300:] or "it said nothing"
        raise RunError(
            f"{describe(cell.parameters)}: the hook {name} failed with {done.returncode}: {said}",
            "mend what it calls, then concurve resume last; with another hook, a new run",
        )
    stdout, stderr = _kept(done.stdout, done.before_stdout), _kept(done.stderr, done.before_stderr)
    if not stdout.bytes and not stderr.bytes:
        return None
    return HookRecord(name, describe(cell.parameters), stdout, stderr)


def _kept(printed: str, before: int) -> Output:
    """The end of what was printed after so many bytes ``before``, as records keep outputs; nothing
    of blanks alone."""
    data = printed.strip().encode()
    tail = data[-_KEPT_BYTES:]
    written = before + len(data)
    if len(tail) == written:
        return Output(bytes=written, head=printed.strip())
    cut = KNOWN.hide_cut(tail.decode(errors="replace"), begins=True)
    return Output(bytes=written, tail=cut, dropped=written - len(tail))


def with_hooks(raw: bytes, said: Sequence[HookRecord]) -> bytes:
    """The record of a trial with what the hooks beside it printed; as it is without any."""
    if not said:
        return raw
    # Keys that this version does not know stay: a newer runner may have written them.
    record: dict[str, Any] = msgspec.json.decode(raw)
    return msgspec.json.encode({**record, "hooks": msgspec.to_builtins(said)})


def shell(
    plan: Plan,
    name: str,
    text: str,
    cell: Cell,
    stdin: str = "",
    env: dict[str, str] | None = None,
) -> Ended:
    """Run the hook ``name`` with this text in ``/bin/sh``, with the cell's parameters filled in.

    Its output goes to files, so that a server that it leaves in the background keeps no pipe open
    that would be read to its end.

    Raises:
        RunError: it did not end within :func:`hook_seconds`, or printed more than
            :data:`OUTPUT_BYTES_MAX`; its processes are killed.
    """
    mark = uuid.uuid4().hex
    seconds = hook_seconds(plan)
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(stdin.encode(errors="surrogateescape"))
        given.seek(0)
        process = subprocess.Popen(
            ["/bin/sh", "-c", KNOWN.reveal(render(text, plan.values(cell)))],
            stdin=given,
            stdout=out,
            stderr=errors,
            env={**os.environ, **(env or {}), HOOK_VARIABLE: mark},
        )
        try:
            code = _waited(process, seconds, (out, errors))
        except BaseException as error:
            end_marked(HOOK_VARIABLE, mark)
            process.kill()
            process.wait()
            if isinstance(error, _TooMuchError):
                raise RunError(
                    f"{describe(cell.parameters)}: the hook {name} printed more than "
                    f"{OUTPUT_BYTES_MAX >> 20} MiB and was stopped",
                    "what it prints into a file of its own; then concurve resume last",
                ) from None
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise RunError(
                f"{describe(cell.parameters)}: the hook {name} did not end within "
                f"{format_duration(seconds)} and was stopped",
                "a hook that ends by itself, or --max-time with more time for it; then "
                "concurve resume last",
            ) from None
        (stdout, before), (stderr, before_errors) = _tail(out), _tail(errors)
        return Ended(code, stdout, stderr, before, before_errors)


class _TooMuchError(Exception):
    """A hook has printed more than it may."""


def _waited(process: subprocess.Popen[bytes], seconds: float, outputs: Sequence[IO[bytes]]) -> int:
    """The exit code of a process that prints into these files.

    Raises:
        subprocess.TimeoutExpired: it did not end in time.
        _TooMuchError: it printed too much.
    """
    until = time.monotonic() + seconds
    while True:
        left = max(0.0, until - time.monotonic())
        try:
            return process.wait(min(left, _LOOK_SECONDS))
        except subprocess.TimeoutExpired:
            if left <= _LOOK_SECONDS:
                raise
        if sum(os.fstat(file.fileno()).st_size for file in outputs) > OUTPUT_BYTES_MAX:
            raise _TooMuchError


def _tail(file: IO[bytes]) -> tuple[str, int]:
    """The last part of what was printed, without secrets, and the bytes before it."""
    begin = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
    file.seek(begin)
    return KNOWN.hide_cut(file.read().decode(errors="replace"), begins=begin > 0), begin

"""The flight recorder of a JVM in a trial: how it is switched on, and how its recording is read.

A shell starts the program with one option more in ``JAVA_TOOL_OPTIONS`` and is replaced by it, so
that no process is added and what the variable holds already stays. The recording goes to the
folder of the trial. It is read when the trial has ended, by the JDK's own ``jfr print``, and
becomes a part of the record.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from concurve.definition.study import TRIAL_FOLDER
from concurve.errors import HostError, RunError
from concurve.host.java import find_jfr
from concurve.readings.flight_recording import EVENTS, combined, recorded_waits
from concurve.secrets import KNOWN
from concurve.wire.record import RecordedSite, RecordedWaits
from concurve.wire.spec import RoleSpec, TrialSpec

#: As ``waits.jfc`` says it.
THRESHOLD_NS = 10_000
_SETTINGS = Path(__file__).with_name("waits.jfc")
#: The folder of a trial's recordings in that of the trial.
_FOLDER = "flight-recordings"
_SHELL = (
    "sh",
    "-c",
    'mkdir -m 700 "$1" || exit; export JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS $0"; shift; exec "$@"',
)
#: Frames of a stack that are recorded, and that are read: each is some 700 bytes of text.
_RECORDED_DEPTH, _READ_DEPTH = 64, 24
#: Recordings of a trial that are read, the largest first: each process with a JVM writes one.
_RECORDINGS_MAX = 8
#: Reading one takes a second, and a few for what is read at most.
_READING_SECONDS_MAX = 120.0
_PIECE = 1 << 18
#: Variables by which a JVM gets options; what they ask for is not meant for the reader.
_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def beginning(argv: Sequence[str] = ()) -> tuple[str, ...]:
    """What the command line of a program begins with so that its JVMs record their waits. It has
    the placeholder of the trial's folder. ``argv`` is the program's command line.

    Raises:
        HostError: there is nothing to read a recording with, or a path cannot be an option.
    """
    find_jfr(argv)
    for path in (str(_SETTINGS), tempfile.gettempdir()):
        if any(sign in path for sign in ",'\"{}\n"):
            raise HostError(
                f"the path {path} has a comma, a quote or a brace, and no option of a JVM may",
                "TMPDIR=FOLDER, and Concurve in a folder, without them",
            )
    folder = f"{{{TRIAL_FOLDER}}}/{_FOLDER}"
    recording = f"settings={_SETTINGS},filename={folder},dumponexit=true,maxsize=512m"
    options = (
        f"'-XX:StartFlightRecording={recording}'",
        f"'-XX:FlightRecorderOptions=repository={folder},stackdepth={_RECORDED_DEPTH}'",
        # The JVM says on standard output that it records, and that belongs to the program.
        "-Xlog:jfr+startup=error",
    )
    return (*_SHELL, " ".join(options), folder)


def with_recordings(raw: bytes, spec: TrialSpec, folder: str) -> bytes:
    """The record of a trial with what its recordings say; as it is where none was asked for. A
    recording that cannot be read is absent, with its reason."""
    asked = [number for number, role in enumerate(spec.roles) if _is_recorded(role)]
    if not asked:
        return raw
    # Keys that this version does not know stay: a newer runner may have written them.
    record: dict[str, Any] = msgspec.json.decode(raw)
    if record["outcome"]["kind"] != "ok":
        return raw
    for number in asked:
        role = record["roles"][number]
        try:
            found = _read(Path(folder) / _FOLDER, spec.roles[number].argv)
            role["recorded"] = msgspec.to_builtins(_hidden(found))
        except (HostError, RunError) as error:
            remedy = f"; {error.remedy}" if error.remedy else ""
            role.setdefault("absent", {})["recorded"] = KNOWN.hide(f"{error.what}{remedy}")
    return msgspec.json.encode(record)


def _hidden(found: RecordedWaits) -> RecordedWaits:
    """The same without secrets: a program names its threads and functions as it likes."""
    replace, hide = msgspec.structs.replace, partial(KNOWN.hide_cut, ends=True)

    def hidden(site: RecordedSite) -> RecordedSite:
        owners = tuple(replace(owner, name=hide(owner.name)) for owner in site.owners)
        lock = None if site.lock is None else hide(site.lock)
        return replace(site, function=hide(site.function), lock=lock, owners=owners)

    return replace(found, listed=tuple(map(hidden, found.listed)))


def _is_recorded(role: RoleSpec) -> bool:
    """Told by where its recordings go: a run may be resumed whose script is that of another
    version."""
    place = len(_SHELL) + 1
    return len(role.argv) > place and role.argv[place].endswith(f"/{_FOLDER}")


def _read(folder: Path, argv: Sequence[str]) -> RecordedWaits:
    """What the recordings in a folder say together.

    Raises:
        HostError: there is nothing to read them with.
        RunError: there is none, or one cannot be read.
    """
    files = sorted(folder.glob("*.jfr"), key=lambda file: -file.stat().st_size)
    if not files:
        raise RunError(*_why_none(folder))
    jfr = find_jfr(argv)
    found: list[RecordedWaits] = []
    failed: RunError | None = None
    for file in files[:_RECORDINGS_MAX]:
        try:
            found.append(_read_file(jfr, file))
        except RunError as error:  # that of a process that was killed while it wrote
            failed = failed or error
    if failed is not None and not found:
        raise failed
    whole = combined(found)
    is_cut = whole.is_cut or failed is not None or len(files) > _RECORDINGS_MAX
    return msgspec.structs.replace(whole, is_cut=is_cut)


def _why_none(folder: Path) -> tuple[str, str]:
    """Why no JVM wrote a recording, and what to try."""
    if any(folder.glob("*/*.jfr")):
        return (
            "its JVM did not finish its recording: it was ended by Runtime.halt or by a signal",
            "a program that returns from main, or calls System.exit",
        )
    return (
        "its JVM wrote no recording: it may have the recorder switched off (-XX:-FlightRecorder), "
        "be no HotSpot of Java 11 or newer, or be started without JAVA_TOOL_OPTIONS",
        "java -XX:StartFlightRecording -version with the java of the program",
    )


def _read_file(jfr: Path, file: Path) -> RecordedWaits:
    line = [str(jfr), "print", "--json", "--stack-depth", str(_READ_DEPTH)]
    line += ["--events", ",".join(EVENTS), str(file)]
    environment = {name: value for name, value in os.environ.items() if name not in _OPTIONS}
    with tempfile.TemporaryFile() as said:
        try:
            # A process group of its own: ^C reaches us alone.
            process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
                process_group=0,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise HostError(
                f"{jfr} cannot be started: {error.strerror}",
                "apt-get install openjdk-17-jdk-headless",
            ) from error
        with _ended(process) as timer:
            found = _parse(process)
        if timer.has_fired:
            raise RunError(
                f"jfr print did not end within {_READING_SECONDS_MAX:.0f} s",
                "shorter trials, whose recordings are smaller",
            )
        is_enough = isinstance(found, RecordedWaits) and found.is_cut
        if process.returncode != 0 and not is_enough:
            said.seek(0)
            words = said.read(4000).decode(errors="replace").replace(f"{file.parent}/", "").strip()
            why = words.splitlines()[-1] if words else f"jfr print exits with {process.returncode}"
            raise RunError(
                f"the recording cannot be read: {why}",
                "a newer JDK: its jfr reads the recordings of older ones",
            )
    if isinstance(found, RunError):
        raise found
    return found


def _parse(process: subprocess.Popen[str]) -> RecordedWaits | RunError:
    """What the process writes; an error is told only if the process has none to tell."""
    out = process.stdout
    assert out is not None
    pieces = iter(lambda: out.read(_PIECE), "")
    found: RecordedWaits | RunError
    try:
        found = recorded_waits(pieces, THRESHOLD_NS)
    except RunError as error:
        found = error
    if isinstance(found, RunError) or not found.is_cut:
        # It ends once all is taken from it, with its own exit code.
        for _ in pieces:
            pass
        process.wait()
    return found


class _Timer:
    """Ends a process that takes too long."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.has_fired = False
        self._process = process
        self._timer = threading.Timer(_READING_SECONDS_MAX, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def _fire(self) -> None:
        self.has_fired = True
        self._process.kill()

    def cancel(self) -> None:
        self._timer.cancel()
        self._timer.join()


@contextlib.contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[_Timer]:
    """The process has ended at the end, however that comes."""
    timer = _Timer(process)
    try:
        yield timer
    finally:
        timer.cancel()
        process.kill()
        with process:
            pass

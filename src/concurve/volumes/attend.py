"""The attendant of a volume in a trial: ``python -m concurve.volumes.attend SCHEDULER --mount
FOLDER --on FOLDER|DEVICE [OPTION …]``.

It takes back what killed attendants have left, makes the volume, writes ``{"ready":true}`` to the
report channel, and at SIGTERM takes everything back. Exit codes: 0 taken back, 1 it failed, 2 wrong
usage.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concurve.volumes.checks import check
from concurve.volumes.errors import VolumeError
from concurve.volumes.journal import new_journal, repair
from concurve.volumes.making import Volume, make
from concurve.volumes.settings import Settings, parse

#: Under which its thread is listed in a record: that of servers' attendants.
_NAME = "attendant"
_REPORT_VARIABLE = "CONCURVE_REPORT"
_STOPPING = (signal.SIGTERM, signal.SIGINT)


def main(argv: Sequence[str] | None = None) -> int:
    """Attend a volume until SIGTERM or SIGINT."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(_NAME, encoding="utf-8")
    settings = parse(sys.argv[1:] if argv is None else argv)
    # Waited for, not handled: making and taking back are not to be left half done.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        repair()
        check(settings)
        with new_journal() as journal:
            _tell(make(settings, journal), settings)
            signal.sigwait(_STOPPING)
    except (VolumeError, OSError) as error:
        print(f"volume: {error}", file=sys.stderr)
        return 1
    return 0


def _tell(volume: Volume, settings: Settings) -> None:
    limits = settings.write_bytes_per_second or settings.read_bytes_per_second
    _report({"fact": "device", "value": volume.device.name})
    _report({"fact": "file_system", "value": volume.file_system})
    if limits:
        _report({"fact": "limited", "value": volume.limited})
    _report({"ready": True})


def _report(line: dict[str, Any]) -> None:
    channel = os.environ.get(_REPORT_VARIABLE)
    if channel is not None:
        os.write(int(channel), json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())

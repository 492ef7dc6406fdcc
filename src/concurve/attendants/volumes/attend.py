"""The attendant of a volume in a trial: ``python -m concurve.attendants.volumes.attend SCHEDULER
--mount FOLDER --on FOLDER|DEVICE [OPTION …]``.

It undoes the changes of killed attendants, makes the volume, writes ``{"ready":true}`` to the
report channel, and at SIGTERM undoes all changes. Exit codes: 0 all undone, 1 failed, 2 wrong
usage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from concurve.attendants.attendant import (
    attend,
    block_stop_signals,
    name_thread,
    wait_for_stop,
)
from concurve.attendants.volumes.checks import check
from concurve.attendants.volumes.journal import new_journal, repair
from concurve.attendants.volumes.making import Volume, make
from concurve.attendants.volumes.options import VolumeOptions, parse
from concurve.wire.report_channel import report


def main(argv: Sequence[str] | None = None) -> int:
    """Attend a volume until SIGTERM or SIGINT."""
    name_thread()
    options = parse(sys.argv[1:] if argv is None else argv)
    return attend("volume", lambda: _attend(options))


def _attend(options: VolumeOptions) -> None:
    # A signal must not interrupt a change of the machine, or its undoing.
    block_stop_signals()
    repair(_tell)
    check(options)
    with new_journal(_tell) as journal:
        _report_ready(make(options, journal), options)
        wait_for_stop()


def _tell(text: str) -> None:
    print(f"volume: {text}", file=sys.stderr, flush=True)


def _report_ready(volume: Volume, options: VolumeOptions) -> None:
    limits = options.write_bytes_per_second or options.read_bytes_per_second
    report({"fact": "device", "value": volume.device.name})
    if options.layout is not None:
        report({"fact": "members", "value": [member.name for member in volume.members]})
    report({"fact": "file_system", "value": volume.file_system})
    if limits:
        report({"fact": "limited", "value": volume.limited})
    report({"ready": True})


if __name__ == "__main__":
    sys.exit(main())

"""The report channel, from the side of a Python program in a trial.

A program writes a line of JSON to the file descriptor that the environment names; the Rust twin is
``instrument/reporter``.
"""

from __future__ import annotations

import json
import os
from typing import Any

#: Names the descriptor; absent outside a trial.
REPORT_VARIABLE = "CONCURVE_REPORT"

#: Name under which the thread of an attendant is listed in a record.
ATTENDANT = "attendant"


def report(line: dict[str, Any]) -> None:
    """Write one line, such as ``{"ready": True}``; nothing without a channel.

    Raises:
        OSError: the channel is closed.
    """
    channel = os.environ.get(REPORT_VARIABLE)
    if channel is not None:
        os.write(int(channel), json.dumps(line).encode() + b"\n")

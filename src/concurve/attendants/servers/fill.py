"""Fills a trial's folder with the data of an embedded engine before the engine is measured:
``python -m concurve.attendants.servers.fill FOLDER ADDRESS [ARGUMENT …]``.

ADDRESS, which names the folder, and the arguments are those of concurve-load. It makes the data
once (``--init-only``); later trials use copies. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from concurve.attendants.attendant import AttendantError
from concurve.attendants.servers.contents import INITIALISE, loader, run_loader
from concurve.attendants.servers.data import restore

_USAGE = """usage: python -m concurve.attendants.servers.fill FOLDER ADDRESS [ARGUMENT ...]
FOLDER is empty, or is made; ADDRESS, which names it, and the arguments are for concurve-load."""


def main(argv: Sequence[str] | None = None) -> int:
    """Fill a folder."""
    words = sys.argv[1:] if argv is None else argv
    if len(words) < 2 or words[0] not in words[1]:
        print(_USAGE, file=sys.stderr)
        return 2
    folder, arguments = Path(words[0]), words[1:]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        load = loader()
        command = [str(load), *arguments, *INITIALISE]
        # The data do not depend on the folder.
        content = [word.replace(words[0], "FOLDER") for word in arguments]
        restore(content, [load], lambda _: run_loader(command), folder)
    except (AttendantError, OSError) as error:
        print(f"fill: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

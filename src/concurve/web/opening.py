"""Opens a browser on an address with a token.

All users of a machine see the words of a command line, and a browser may be started by one for the
whole of its life. So it is given a file of this user's, whose page leads to the address.
"""

from __future__ import annotations

import contextlib
import html
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

from concurve.errors import HostError

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}">
<title>Concurve</title>
<p><a href="{0}">Concurve</a></p>
"""


@contextlib.contextmanager
def opening() -> Iterator[Callable[[str], None]]:
    """A function that opens an address in a browser. What it writes is removed at the end.

    Raises:
        HostError: there is no place for the page that leads there.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="concurve-web-")
    except OSError as error:
        raise HostError(
            f"no browser can be opened: no folder can be made in the temporary one: "
            f"{error.strerror}",
            "more space; or open the address that is printed, without --open",
        ) from error
    with folder as name:
        file = Path(name, "concurve.html")
        file.touch(mode=0o600)

        def open_address(address: str) -> None:
            file.write_text(_PAGE.format(html.escape(address)), encoding="utf-8")
            webbrowser.open(file.as_uri())

        yield open_address

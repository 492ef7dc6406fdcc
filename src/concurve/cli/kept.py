"""What the terminal was shown of a run of very many trials, kept in the user's cache folder.

To compute it takes more than a second, and mostly it is asked for again. What is kept is shown only
where everything that it follows from is the same: each trial as it is stored, the head of the run,
the laboratory's own files, and what was asked for. So it is never older than its run; a cache that
cannot be read or written is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import concurve
from concurve.findings.explanation import REPORT_TRIALS
from concurve.host.folders import cache_folder
from concurve.report.console import Line

if TYPE_CHECKING:
    from concurve.store import Store
    from concurve.store.rows import RunRow, Trials

#: What is shown of a run with more trials than this is kept. Of such a run no record is read but
#: the first one, and one for each cause for which its programs failed.
KEPT_FROM = REPORT_TRIALS

#: So many views that were shown last stay.
_VIEWS_KEPT = 50


class Place:
    """Where the lines of a view of a run are kept. ``asked`` are the options of the view, with the
    width of its lines."""

    def __init__(
        self, folder: Path, store: Store, row: RunRow, trials: Trials, asked: Sequence[str]
    ) -> None:
        # A file for each view: one in a pipe does not replace that of a terminal.
        view = hashlib.blake2b("\0".join(asked).encode(errors="surrogatepass"), digest_size=8)
        self._file = folder / f"{row.id}.{view.hexdigest()}.json"
        digest = hashlib.sha256(row.head)
        for text in (sys.version, *_code(), *asked, *row[:-1]):
            # What the command line gives need be no text in any encoding.
            digest.update(text.encode(errors="surrogatepass") + b"\0")
        digest.update(msgspec.msgpack.encode(trials.outcomes))
        for piece in trials.figures.digested():
            digest.update(piece)
        digest.update(store.first_record(row.id) or b"")
        self._key = digest.hexdigest()

    def read(self) -> list[Line] | None:
        """The lines that are kept; ``None`` where there are none of this key."""
        try:
            kept = msgspec.json.decode(self._file.read_bytes(), type=_Kept)
        except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return None
        return list(kept.lines) if kept.key == self._key else None

    def write(self, lines: Iterable[Line]) -> None:
        """Keep these lines."""
        kept = msgspec.json.encode(_Kept(self._key, tuple(lines)))
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, new = tempfile.mkstemp(dir=self._file.parent, prefix=".new-")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(kept)
                Path(new).replace(self._file)
            except BaseException:  # also by a signal
                Path(new).unlink(missing_ok=True)
                raise
            _remove_oldest(self._file.parent)


class _Kept(msgspec.Struct, frozen=True):
    """The lines, and the digest of everything that they follow from."""

    key: str
    lines: tuple[Line, ...]


def place_of(store: Store, row: RunRow, trials: Trials, asked: Sequence[str]) -> Place | None:
    """Where a view of a run with these trials is kept; ``None`` for a run that is computed as fast,
    and for a user without a cache folder."""
    folder = cache_folder()
    if folder is None or len(trials) <= KEPT_FROM:
        return None
    return Place(folder / "concurve" / "shown", store, row, trials, asked)


def _code() -> Iterator[str]:
    """The files of the laboratory with their sizes and times: another version, or a change in a
    checkout, says other things of the same trials."""
    package = os.path.dirname(concurve.__file__)  # noqa: PTH120 - a walk over hundreds of files
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            with contextlib.suppress(FileNotFoundError):  # of an editor, gone by now
                found = os.stat(f"{folder}/{name}")  # noqa: PTH116
                yield f"{folder}/{name} {found.st_size} {found.st_mtime_ns}"


def _remove_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
    for file in files[:-_VIEWS_KEPT]:
        file.unlink(missing_ok=True)

"""Writes a packaged study or campaign into a folder for editing, complete and with comments."""

from __future__ import annotations

import csv
import io
import re
import shutil
import tempfile
from pathlib import Path

from concurve.definition.catalogue import campaigns, entries
from concurve.definition.study_files import CAMPAIGN_NAME, PUBLISHED_NAME, STUDY_NAME
from concurve.errors import StudyError
from concurve.permissions import file_mode, folder_mode
from concurve.words import meant

#: What a study of a campaign extends: a file beside its folder, which may extend one beside itself.
_EXTENDS = re.compile(r'^extends = "\.\./([^"/]+)"$', re.MULTILINE)
_EXTENDED = re.compile(r'^extends = "([^"/]+)"$', re.MULTILINE)


def copy_packaged(name: str, folder: Path) -> Path:
    """Write a packaged study or campaign, or a campaign's study as ``CAMPAIGN/STUDY``, into a new
    folder; gives the file that ``concurve run`` takes. The folder appears complete or not at all.

    Raises:
        StudyError: no such study, or a folder that is there already or cannot be written.
    """
    files = _files(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StudyError(f"{folder} is there already", "a new folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for path, text in files.items():
                (made / path).parent.mkdir(parents=True, exist_ok=True)
                (made / path).write_text(text, encoding="utf-8")
            for place in (made, *made.rglob("*")):
                place.chmod(folder_mode() if place.is_dir() else file_mode())
            made.replace(folder)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise StudyError(
            f"{folder} cannot be written: {error.strerror}", "another folder, or more space"
        ) from error
    return folder / (CAMPAIGN_NAME if CAMPAIGN_NAME in files else STUDY_NAME)


def _files(name: str) -> dict[str, str]:
    """The texts of the files, by their paths in the new folder."""
    folders = {entry.name: entry.folder for entry in (*entries(), *campaigns())}
    if name in folders:
        return _all_of(folders[name])
    campaign, slash, member = name.partition("/")
    known = {entry.name: entry.folder for entry in campaigns()}
    if slash and (known.get(campaign, Path("/nowhere")) / member / STUDY_NAME).is_file():
        return _member(known[campaign], member)
    names = [*folders, *(f"{campaign}/{path.parent.name}" for campaign, folder in known.items()
                         for path in sorted(folder.glob(f"*/{STUDY_NAME}")))]  # fmt: skip
    raise StudyError(f"no packaged study or campaign {name!r}", meant(name, names))


def _all_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in (".toml", ".csv", ".md")
    }


def _member(campaign: Path, name: str) -> dict[str, str]:
    """A study of a campaign, with the files that it extends and its published figures beside it."""
    own = _all_of(campaign / name)
    own[STUDY_NAME] = _EXTENDS.sub(r'extends = "\1"', own[STUDY_NAME])
    file = STUDY_NAME
    while match := _EXTENDED.search(own[file]):
        file = match[1]
        own[file] = (campaign / file).read_text(encoding="utf-8")
    published = campaign / PUBLISHED_NAME
    if PUBLISHED_NAME not in own and published.is_file():
        own[PUBLISHED_NAME] = _rows_of(published.read_text(encoding="utf-8"), name)
    return own


def _rows_of(text: str, case: str) -> str:
    """The figures of one study out of those of its campaign."""
    rows = list(csv.DictReader(io.StringIO(text)))
    written = io.StringIO()
    writer = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row for row in rows if row["test_case"] == case)
    return written.getvalue()

"""A study file and the files that it extends, as they are written."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from concurve.definition.toml_file import parse_toml, read_text
from concurve.errors import StudyError

#: A study's file, and what stands beside it, or beside the folders of a campaign's studies.
STUDY_NAME, PUBLISHED_NAME, CAMPAIGN_NAME = "study.toml", "published.csv", "campaign.toml"

#: The lists of a study file, and the key that names an entry.
LISTS = {"roles": "name", "indicators": "name", "claims": "id"}

Tables = dict[str, Any]


class StudyFile(NamedTuple):
    """A study file, or one that it extends."""

    where: str
    tables: Tables


def study_files(text: str, where: str) -> list[StudyFile]:
    """The study's own file, then those that it extends, the nearest first.

    ``where`` is the path of its file; those that it extends are found from its folder. Their tables
    are shared with other calls: nobody changes them.

    Raises:
        StudyError: not TOML; a file that is missing, unreadable, or extends a nearer one.
    """
    files = [StudyFile(where, parse_toml(text, where))]
    while "extends" in files[-1].tables:
        by, named = files[-1].where, files[-1].tables["extends"]
        if not isinstance(named, str):
            raise StudyError(f"{by}: extends: no text", 'the path of a file: "../shared.toml"')
        path = Path(os.path.normpath(Path(by).parent / named))
        try:
            found = path.is_file()
        except OSError as error:  # a name that is too long, a folder that may not be read
            raise StudyError(
                f"{by}: extends: cannot be read: {error.strerror}",
                "a path from the folder of this file",
            ) from error
        if not found:
            raise StudyError(
                f"{by}: extends: there is no file {path}", "a path from the folder of this file"
            )
        if any(path.resolve() == Path(file.where).resolve() for file in files):
            raise StudyError(
                f"{by}: extends: {path} in turn extends this file",
                "remove extends from one of them",
            )
        files.append(StudyFile(str(path), _parsed(read_text(path, "a study file"), str(path))))
    return files


@lru_cache(maxsize=8)
def _parsed(text: str, where: str) -> Tables:
    """The tables of a file that is extended: the studies of a campaign mostly extend the same."""
    return parse_toml(text, where)


def taken_over(files: list[StudyFile]) -> tuple[Tables, dict[tuple[str, str], str]]:
    """The tables of all files key by key (the nearest file wins), and the parts that come from
    another file. Of lists and levels, which are taken by name, only those of the study's own
    file."""
    merged: Tables = {}
    parts: dict[tuple[str, str], str] = {}

    def take(into: Tables, key: str, value: Any, place: tuple[str, ...], file: StudyFile) -> None:
        nested = isinstance(value, dict) and len(place) < (3 if place[0] == "effort" else 2)
        if key not in into:
            into[key] = {} if nested else value
            if file is not files[0]:
                parts[place[0], ".".join(place[1:])] = file.where
        if nested and isinstance(into[key], dict):
            for name, entry in value.items():
                take(into[key], name, entry, (*place, name), file)

    for file in files:
        for key, value in file.tables.items():
            if file is files[0] or key not in (*LISTS, "levels", "extends"):
                take(merged, key, value, (key,), file)
    return merged, parts

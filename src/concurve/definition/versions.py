"""Several programs on a command line where one was expected: ``./old ./new``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath

from concurve.terms import joined_levels


def other_programs(words: Sequence[str]) -> list[str]:
    """The arguments of a program, if all of them are paths of programs, as it is itself; else
    none. A name without a folder is no such path: ``make test`` has a word that is also a
    program."""
    is_path = [os.sep in word and "{" not in word for word in words]
    if len(words) < 2 or not all(is_path) or not all(map(_is_program, words)):
        return []
    return list(words[1:])


def as_levels(programs: Sequence[str]) -> tuple[str, str]:
    """The levels of a parameter ``version`` that stand for these programs, as a word of a shell,
    and the program that they make: ``old,new`` and ``./{version}``."""
    # As text: ./old is found where it is, and old would be looked for in PATH.
    folders = {program.rpartition(os.sep)[0] for program in programs}
    if len(folders) > 1:
        return shlex.quote(joined_levels(programs)), "{version}"
    names = [PurePath(program).name for program in programs]
    return shlex.quote(joined_levels(names)), f"{folders.pop()}{os.sep}{{version}}"


def _is_program(path: str) -> bool:
    file = Path(path)
    return file.is_file() and os.access(file, os.X_OK)

"""A command that is a shell script around the program: its own start is in each trial."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePath

from concurve.definition.study import Study

_SHELL = re.compile(rb"#!\s*(\S*/)?(env\s+)?(ba|da|k|z)?sh\b")


def wrapper_before(study: Study) -> str:
    """What to say before a run whose measured command is found in PATH and is a shell script, as
    the ``python3`` of pyenv is: some of its time is serial work that is not the program's. Empty
    for other commands, for a path that the user wrote, and for roles elsewhere."""
    role = next((item for item in study.roles if item.name == study.target), None)
    if role is None or not role.command or role.host or "{" in role.command[0]:
        return ""
    name = role.command[0]
    found = None if "/" in name else shutil.which(name, path=role.env.get("PATH"))
    if found is None or not _is_shell_script(Path(found)):
        return ""
    return (
        f"{name} is a shell script, {found}: each trial holds the script's own time, before the "
        f"program starts. Write the path of the program itself, as {_remedy(found, name)}"
    )


def _is_shell_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(_SHELL.match(file.read(100)))
    except OSError:
        return False


def _remedy(found: str, name: str) -> str:
    """What prints the path behind the shims of the usual managers of versions."""
    managers = {".pyenv": "pyenv", ".rbenv": "rbenv", ".asdf": "asdf"}
    of = next((tool for part, tool in managers.items() if part in PurePath(found).parts), "")
    return f"`{of} which {name}` prints it" if of else "its last lines have it"

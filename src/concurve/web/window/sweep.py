"""A setting of the window as a measurement over numbers of threads."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from concurve.errors import HostError
from concurve.host.folders import data_folder, no_home
from concurve.permissions import file_mode, folder_mode
from concurve.web.bookmarks import Bookmark, to_toml
from concurve.web.window.setting import Setting, kernel_of, sharing

#: The computations of a JVM: it interprets and compiles the first, and the other counts.
_JVM_COMPUTATIONS = "--computations=2"


def as_sweep(setting: Setting) -> dict[str, str]:
    """The fields of a form that measures a picture over numbers of threads. Its bookmark is written
    into a file of the user's, which the command line names.

    Raises:
        HostError: there is no place for the file, no kernel, or no Java.
        StudyError: a setting that cannot be computed.
    """
    kernel = kernel_of(setting)
    line = [
        *kernel,
        "--threads",
        "{threads}",
        *sharing(setting),
        *([_JVM_COMPUTATIONS] if setting.kernel == "jvm" else []),
        "--location",
        str(_kept(setting.bookmark)),
    ]
    # Braces of a path stand for themselves.
    quoted = [shlex.quote(word if word == "{threads}" else _literal(word)) for word in line]
    return {
        "command": " ".join(quoted),
        "name": "threads",
        "levels": f"1..{max(2, setting.threads)}*2",
        "cpus": ",".join(map(str, setting.cpus)),
        "nice": str(setting.nice) if setting.nice else "",
        "policy": setting.policy,
    }


def _literal(word: str) -> str:
    return word.replace("{", "{{").replace("}", "}}")


def _kept(bookmark: Bookmark) -> Path:
    """The file of a bookmark, named after what is in it."""
    folder = data_folder()
    if folder is None:
        raise HostError(f"there is no place for a bookmark: {no_home()}", "HOME=FOLDER")
    text = to_toml(bookmark)
    name = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    file = folder / "concurve" / "bookmarks" / f"{name}.toml"
    try:
        file.parent.mkdir(mode=folder_mode(), parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(file_mode())
    except OSError as error:
        raise HostError(
            f"the bookmark {file} cannot be written: {error.strerror}",
            "more space, or another HOME",
        ) from error
    return file

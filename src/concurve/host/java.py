"""Chooses the Java that runs a jar, in a documented order, tries it, and describes it."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.errors import HostError

#: The oldest Java that our jars run on.
MAJOR_MIN = 17

#: Where Linux distributions install one folder for each JDK.
JDK_FOLDERS = Path("/usr/lib/jvm")

#: Names the Java if neither study nor command line does: a ``java``, or its JDK's folder.
VARIABLE = "CONCURVE_JAVA"

_INSTALL = "apt-get install default-jre-headless, or --java PATH"
_TRIAL_SECONDS = 30.0


class Java(NamedTuple):
    """A Java that works: the program, its version (``17.0.15``), that version's first number, the
    second line of ``java -version``, and why it was chosen."""

    path: Path
    version: str
    major: int
    runtime: str
    chosen: str


def find_java(wanted: str | None, where: str) -> Java:
    """The Java to use.

    ``wanted`` is a version (``17``; ``21+`` for that or a newer one; ``newest``), the path of a
    ``java`` or of its JDK's folder, or nothing: then the variable ``CONCURVE_JAVA``, then
    ``JAVA_HOME``, then ``java`` on ``PATH``, then the newest one in ``/usr/lib/jvm``. The first of
    these that is set is used; if it does not work, it is refused, and no other one is tried.

    Raises:
        HostError: there is none, or it is broken or too old; the message names it.
    """
    if wanted and wanted.strip() == "newest":
        found = max(_working(_candidates()), key=lambda java: java.major, default=None)
        return find_java(None, where) if found is None else _accept(found.path, "newest", where)
    if wanted and (match := re.fullmatch(r"(\d+)(\+?)", wanted.strip())):
        return _of_version(int(match[1]), bool(match[2]), where)
    if wanted:
        return _accept(_program(Path(wanted), where), f"asked for as {wanted}", where)
    for variable in (VARIABLE, "JAVA_HOME"):
        if value := os.environ.get(variable):
            place = f"{where}: {variable}"
            return _accept(_program(Path(value), place), f"by {variable}", place)
    if on_path := shutil.which("java"):
        return _accept(Path(on_path), "first on PATH", where)
    installed = sorted(_working(_installed()), key=lambda java: java.major, reverse=True)
    if installed and installed[0].major >= MAJOR_MIN:
        return installed[0]._replace(chosen=f"newest in {JDK_FOLDERS}")
    raise HostError(
        f"{where}: no Java found ({VARIABLE} and JAVA_HOME are not set, there is no java on PATH "
        f"and none of version {MAJOR_MIN} or newer in {JDK_FOLDERS})",
        _INSTALL,
    )


def find_jfr(argv: Sequence[str] = ()) -> Path:
    """The program that reads flight recordings, of the newest JDK here: it reads those of older
    ones, and may refuse those of newer ones. A ``java`` in the command line ``argv`` counts, too.

    Raises:
        HostError: no Java here has one.
    """
    named = [found for word in argv if Path(word).name == "java" if (found := shutil.which(word))]
    best: tuple[int, Path] | None = None
    for java in _working(itertools.chain(map(Path, named), _candidates())):
        program = java.path.resolve().with_name("jfr")
        if os.access(program, os.X_OK) and (best is None or java.major > best[0]):
            best = java.major, program
    if best is None:
        raise HostError(
            "no Java here has the program jfr beside it, which reads flight recordings",
            "apt-get install openjdk-17-jdk-headless, or the JDK that runs the program",
        )
    return best[1]


def installed() -> list[Java]:
    """The Javas that work here and run our jars, one of each version, the newest first. Each
    is tried once in the life of this process."""
    found: dict[int, Java] = {}
    for java in _working(_candidates()):
        if java.major >= MAJOR_MIN:
            found.setdefault(java.major, java)
    return [found[major] for major in sorted(found, reverse=True)]


def _of_version(major: int, or_newer: bool, where: str) -> Java:
    """The first working one of a version, in the order of :func:`find_java`."""
    found = list(_working(_candidates()))
    for java in found:
        if java.major == major or (or_newer and java.major >= major):
            label = f"version {major}{' or newer' if or_newer else ''} asked for"
            return _accept(java.path, label, where)
    seen = ", ".join(sorted({f"{java.version} ({java.path})" for java in found})) or "none"
    raise HostError(
        f"{where}: no Java {major}{' or newer' if or_newer else ''} found; there is {seen}",
        f"apt-get install openjdk-{major}-jre-headless, or the path of one",
    )


def _candidates() -> Iterator[Path]:
    """Every candidate, in the order of :func:`find_java`."""
    for text in (os.environ.get(VARIABLE), os.environ.get("JAVA_HOME")):
        if text and (path := _java_of(Path(text))):
            yield path
    if on_path := shutil.which("java"):
        yield Path(on_path)
    yield from _installed()


def _accept(path: Path, chosen: str, where: str) -> Java:
    java = _try(path)
    if isinstance(java, str):
        raise HostError(f"{where}: the Java {path} ({chosen}) is broken: {java}", _INSTALL)
    if java.major < MAJOR_MIN:
        raise HostError(
            f"{where}: the Java {path} ({chosen}) is version {java.version}, "
            f"{MAJOR_MIN} or newer is needed",
            _INSTALL,
        )
    return java._replace(chosen=chosen)


def _program(path: Path, where: str) -> Path:
    """The ``java`` of a path, which names a program or a JDK's folder."""
    found = _java_of(path)
    if found is None:
        raise HostError(
            f"{where}: {path} is neither a program nor the folder of a JDK (no bin/java in it)",
            "the path of a java, of a JDK's folder, or a version such as 17 or 21+",
        )
    return found


def _java_of(path: Path) -> Path | None:
    for candidate in (path, path / "bin" / "java"):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.absolute()
    return None


def _installed() -> Iterator[Path]:
    """The Javas of the distribution, each once."""
    seen = set()
    for folder in sorted(JDK_FOLDERS.glob("*")):
        java = _java_of(folder)
        if java is not None and java.resolve() not in seen:
            seen.add(java.resolve())
            yield java


def _working(paths: Iterator[Path]) -> Iterator[Java]:
    for path in paths:
        java = _try(path)
        if isinstance(java, Java):
            yield java


@functools.cache
def _try(path: Path) -> Java | str:
    """The version that ``java -version`` prints, or a text with the error."""
    try:
        answer = subprocess.run(
            [path, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"java -version did not end within {_TRIAL_SECONDS:.0f} s"
    text = answer.stderr + answer.stdout
    if answer.returncode != 0:
        said = text.strip().splitlines()
        return f"java -version exits with {answer.returncode}" + (f": {said[-1]}" if said else "")
    return parse_version(text, path)


def parse_version(text: str, path: Path) -> Java | str:
    """The version in the output of ``java -version``, or a text with the error."""
    match = re.search(r'^.* version "((?:1\.)?(\d+)[^"]*)"', text, re.MULTILINE)
    if not match:
        return f"java -version names no version: {text.strip()[:100]!r}"
    runtime = text[match.end() :].strip().splitlines()
    lines = [line for line in runtime if "Runtime" in line]
    return Java(path, match[1], int(match[2]), lines[0].strip() if lines else "", "")

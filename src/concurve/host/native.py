"""The only module that knows where the compiled programs and the jars are; real servers are asked
for in :mod:`concurve.servers`, volumes in :mod:`concurve.volumes`."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concurve import servers, volumes
from concurve.errors import HostError
from concurve.host import machine
from concurve.host.java import find_java

#: Packaged programs that a study may name with ``program = "…"``.
PROGRAMS = {
    "disk": "concurve-disk",
    "load": "concurve-load",
    "mandelbrot": "concurve-mandelbrot",
    "server": "concurve-server",
    "storage": "concurve-storage",
    "targets": "concurve-targets",
}

#: Those of them that are jars, which a Java runs.
JAVA_PROGRAMS = {
    "mandelbrot-java": "concurve-mandelbrot.jar",
}

#: Those that are modules of :mod:`concurve.servers`.
MODULES = {
    "fill": "fill",
}

RUNNER = "concurve-trial"

#: What a JVM says of itself goes to standard error: standard output belongs to its program.
_JVM_OPTIONS = ("-Xlog:disable", "-Xlog:all=warning:stderr")

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[1]


def binary(name: str) -> Path:
    """Path of one of our compiled programs.

    Looked for in ``CONCURVE_NATIVE`` (a folder), then in this environment's scripts folder, then
    on ``PATH``.

    Raises:
        HostError: found nowhere; the message lists the places.
    """
    folders = [
        *filter(None, [os.environ.get("CONCURVE_NATIVE")]),
        sysconfig.get_path("scripts"),
    ]
    for folder in folders:
        candidate = Path(folder) / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    raise HostError(
        f"the program {name} is not installed (looked in {', '.join(folders)} and on PATH)",
        "make build in a checkout, or pip install concurve-native",
    )


def runner() -> Path:
    """The trial runner."""
    return binary(RUNNER)


def jar(name: str) -> Path:
    """Path of one of our jars.

    ``CONCURVE_JAR`` is the file itself; else it is looked for in ``CONCURVE_NATIVE`` (a folder),
    beside the installed package, and where ``make build`` leaves it in a checkout.

    Raises:
        HostError: found nowhere; the message lists the places.
    """
    named, folder = os.environ.get("CONCURVE_JAR"), os.environ.get("CONCURVE_NATIVE")
    places = [
        *([Path(named)] if named else []),
        *([Path(folder) / name] if folder else []),
        _PACKAGE / "jars" / name,
        _CHECKOUT / "subjects" / "mandelbrot-java" / "target" / name,
    ]
    for place in places[:1] if named else places:
        if place.is_file():
            return place
    looked = ", ".join(map(str, places[:1] if named else places))
    raise HostError(
        f"the jar {name} is not built (looked for {looked})",
        "apt-get install default-jdk-headless maven, then make build in a checkout; or "
        "CONCURVE_JAR=FILE",
    )


def program(name: str, where: str) -> Path:
    """The file of a packaged program, by the name that studies use.

    Raises:
        HostError: unknown or not installed.
    """
    if name in JAVA_PROGRAMS:
        return jar(JAVA_PROGRAMS[name])
    if name in servers.SERVERS:
        return servers.program(name, where)
    if name in volumes.VOLUMES:
        return volumes.program(name, where)
    if name in MODULES:
        return _PACKAGE / "servers" / f"{MODULES[name]}.py"
    if name not in PROGRAMS:
        programs = (*PROGRAMS, *JAVA_PROGRAMS, *MODULES)
        known = ", ".join(sorted([*programs, *servers.SERVERS, *volumes.VOLUMES]))
        raise HostError(f"{where}: no packaged program {name!r}", f"one of {known}")
    return binary(PROGRAMS[name])


def command(
    name: str, where: str, java: str | None = None, jvm: Sequence[str] = ()
) -> tuple[str, ...]:
    """How the command line of a packaged program begins: all that stands before its arguments.

    ``java`` (see :func:`~concurve.host.java.find_java`) and ``jvm``, options of the JVM, are for
    programs that are jars; they say nothing to others.

    Raises:
        HostError: no such program, no Java, or one that does not work.
    """
    if name in servers.SERVERS:
        return servers.command(name, where)
    if name in volumes.VOLUMES:
        return volumes.command(name, where)
    if name in MODULES:
        return (sys.executable, "-m", f"concurve.servers.{MODULES[name]}")
    file = str(program(name, where))
    if name not in JAVA_PROGRAMS:
        return (file,)
    return (str(find_java(java, where).path), *_JVM_OPTIONS, *jvm, "-jar", file)


def describe(name: str, where: str, java: str | None = None) -> dict[str, Any]:
    """Which files a packaged program stands for here, told apart by their contents."""
    facts = machine.describe_file(program(name, where))
    if name in JAVA_PROGRAMS:
        found = find_java(java, where)
        facts["java"] = {
            **machine.describe_file(found.path),
            "version": found.version,
            "runtime": found.runtime,
            "chosen": found.chosen,
        }
    return facts

"""Packaged programs: a name in a study → its file and its command line on this machine.

A packaged program is a compiled program, a jar, a Python module, a real server or a volume; the
latter two are run by their attendants.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concurve.attendants import servers, volumes
from concurve.errors import HostError
from concurve.host import machine, native
from concurve.host.java import find_java
from concurve.host.own_python import module
from concurve.words import meant

#: Files of compiled programs, by the names that studies use.
PROGRAMS = {
    "disk": "concurve-disk",
    "load": "concurve-load",
    "mandelbrot": "concurve-mandelbrot",
    "perturb": "concurve-perturb",
    "server": "concurve-server",
    "storage": "concurve-storage",
    "targets": "concurve-targets",
}

#: Files of jars, which a JVM runs.
JAVA_PROGRAMS = {
    "mandelbrot-java": "concurve-mandelbrot.jar",
}

#: Python modules.
MODULES = {
    "fill": "concurve.attendants.servers.fill",
    "remote": "concurve.attendants.remote",
}

#: Sends messages of the JVM to standard error: standard output belongs to its program.
_JVM_OPTIONS = ("-Xlog:disable", "-Xlog:all=warning:stderr")


def program(name: str, where: str) -> Path:
    """The file of a packaged program; ``where`` names the role in messages.

    Raises:
        HostError: unknown or not installed.
    """
    if name in JAVA_PROGRAMS:
        return native.jar(JAVA_PROGRAMS[name])
    if name in servers.SERVERS:
        return servers.program(name, where)
    if name in volumes.VOLUMES:
        return volumes.program(name, where)
    if name in MODULES:
        return _module_file(MODULES[name])
    if name not in PROGRAMS:
        programs = (*PROGRAMS, *JAVA_PROGRAMS, *MODULES)
        known = sorted([*programs, *servers.SERVERS, volumes.PATTERN])
        raise HostError(
            f"{where}: no packaged program {name!r}",
            meant(name, known, f"one of {', '.join(known)}"),
        )
    return native.binary(PROGRAMS[name])


def command(
    name: str, where: str, java: str | None = None, jvm: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command line of a packaged program up to its arguments.

    ``java`` (see :func:`~concurve.host.java.find_java`) and ``jvm``, options of the JVM, are for
    programs that are jars; others ignore them.

    Raises:
        HostError: no such program, no Java, or one that does not work.
    """
    if name in servers.SERVERS:
        return servers.command(name, where)
    if name in volumes.VOLUMES:
        return volumes.command(name, where)
    if name in MODULES:
        return module(MODULES[name])
    file = str(program(name, where))
    if name not in JAVA_PROGRAMS:
        return (file,)
    return (str(find_java(java, where).path), *_JVM_OPTIONS, *jvm, "-jar", file)


def describe(name: str, where: str, java: str | None = None) -> dict[str, Any]:
    """The files of a packaged program on this machine, identified by their contents.

    Raises:
        HostError: as :func:`command`.
    """
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


def _module_file(module: str) -> Path:
    found = importlib.util.find_spec(module)
    assert found is not None and found.origin is not None, module
    return Path(found.origin)

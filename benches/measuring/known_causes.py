"""Programs whose cause is known by how they are made: their table, and how they are built and run.

``causes_programs/programs.toml`` lists them and says what its keys mean. A toolchain that is not
here is said.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring.figures import MissingToolError

PROGRAMS = Path(__file__).resolve().parents[1] / "causes_programs"
TABLE = PROGRAMS / "programs.toml"
CAUSES = (
    "cpu", "lock", "coherency", "serial", "imbalance", "stage", "kernel", "memory", "collector",
    "quota", "smt", "clock", "io", "client", "contamination", "none",
)  # fmt: skip
"""Every cause that a program may have; some are not told apart yet."""

_BUILD: Mapping[str, tuple[str, ...]] = {
    ".c": ("gcc", "-O2", "-pthread"),
    ".cpp": ("g++", "-O2", "-pthread"),
    ".rs": ("rustc", "-O", "--edition", "2021"),
    ".go": ("go", "build"),
    ".java": ("javac",),
}
_RUN: Mapping[str, str] = {".java": "java", ".js": "node", ".py": sys.executable, ".sh": "sh"}
_PACKAGES: Mapping[str, str] = {
    "gcc": "apt-get install gcc",
    "g++": "apt-get install g++",
    "rustc": "rustup, or apt-get install rustc",
    "go": "apt-get install golang-go",
    "javac": "apt-get install openjdk-17-jdk-headless",
    "java": "apt-get install openjdk-17-jdk-headless",
    "node": "apt-get install nodejs",
}


class Program(NamedTuple):
    """A line of the table: ``expected`` has the cause by level, ``also`` further ones that are true
    there, ``never`` those that would be wrong at any level. ``beside``: so many busy processes run
    outside the trial meanwhile. ``blameless``: nothing limits it. ``catalogue``: those of a number
    were written together. ``touched_mb``: so much memory it goes through, which limits it only
    where no cache holds that much."""

    name: str
    source: Path
    expected: Mapping[int, str]
    also: Mapping[int, tuple[str, ...]]
    never: tuple[str, ...]
    arguments: tuple[str, ...]
    build: tuple[str, ...]
    runtime: tuple[str, ...]
    under: Path | None
    beside: int = 0
    blameless: bool = False
    catalogue: int = 1
    touched_mb: int = 0


def read_table(text: str) -> list[Program]:
    """The programs of a table.

    Raises:
        ValueError: a program contradicts itself, or names a cause that there is none of.
    """
    return [_program(entry) for entry in tomllib.loads(text)["program"]]


def _program(entry: Mapping[str, Any]) -> Program:
    under = entry.get("under")
    found = Program(
        name=entry["name"],
        source=PROGRAMS / entry["source"],
        expected={int(level): cause for level, cause in entry["expected"].items()},
        also={int(level): tuple(causes) for level, causes in entry.get("also", {}).items()},
        never=tuple(entry.get("never", ())),
        arguments=tuple(entry.get("arguments", ())),
        build=tuple(entry.get("build", ())),
        runtime=tuple(entry.get("runtime", ())),
        under=PROGRAMS / under if under else None,
        beside=int(entry.get("beside", 0)),
        blameless=bool(entry.get("blameless", False)),
        catalogue=int(entry.get("catalogue", 1)),
        touched_mb=int(entry.get("touched_mb", 0)),
    )
    true = {*found.expected.values(), *(one for causes in found.also.values() for one in causes)}
    unknown = {*true, *found.never}.difference(CAUSES)
    if unknown:
        raise ValueError(f"{found.name}: there is no cause {', '.join(sorted(unknown))}")
    if true.intersection(found.never):
        both = ", ".join(sorted(true.intersection(found.never)))
        raise ValueError(f"{found.name}: {both} cannot be both true and never true")
    if found.blameless and set(found.expected.values()) != {"none"}:
        raise ValueError(f"{found.name}: nothing limits it, but a cause is expected")
    if not found.also.keys() <= found.expected.keys():
        raise ValueError(f"{found.name}: `also` has a level that `expected` lacks")
    return found


def command_of(program: Program, folder: Path) -> list[str]:
    """The command line of a program, which is built in the folder first; ``{threads}`` in it stands
    for the level.

    Raises:
        MissingToolError: what builds or runs it is not here, or refuses; or a cache of this machine
            holds all the memory that it goes through.
    """
    cache_mb = largest_cache_mb()
    if 0 < program.touched_mb <= cache_mb:
        raise MissingToolError(
            f"a cache of this machine holds {cache_mb} MB: the {program.touched_mb} MB that the "
            "program goes through are no load for its memory"
        )
    command = [*_started(program, folder), "{threads}"]
    command += [argument.replace("{folder}", str(folder)) for argument in program.arguments]
    if program.under is None:
        return command
    under = [_tool("sh"), str(program.under)]
    _called([*under, "true"])
    return [*under, *command]


def largest_cache_mb(root: Path = Path("/")) -> int:
    """The size of the largest cache of a CPU, in MB as the kernel says it; 0 where it says none."""
    found = root.glob("sys/devices/system/cpu/cpu0/cache/index*/size")
    sizes = [path.read_text(encoding="ascii").strip().removesuffix("K") for path in found]
    return max((int(size) for size in sizes if size.isdecimal()), default=0) // 1024


def _started(program: Program, folder: Path) -> list[str]:
    """The command line without arguments."""
    source, kind = program.source, program.source.suffix
    if kind in _BUILD:
        compiler, *options = _BUILD[kind]
        build = [_tool(compiler), *options, *program.build]
        if kind == ".java":
            _called([*build, "-d", str(folder), str(source)])
            return [_tool("java"), *program.runtime, "-cp", str(folder), source.stem]
        binary = folder / f"{source.stem}-{kind[1:]}"
        _called([*build, "-o", str(binary), str(source)])
        return [str(binary)]
    return [_tool(_RUN[kind]), *program.runtime, str(source)]


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        how = f" ({_PACKAGES[name]})" if name in _PACKAGES else ""
        raise MissingToolError(f"no {name} here{how}")
    return found


def _called(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = " ".join(done.stderr.split())[-300:]
        raise MissingToolError(f"{' '.join(command)} exited with {done.returncode}: {why}")

"""What this machine or its hosts cannot start is refused before the first trial."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from shlex import quote

import msgspec

from concurve import words
from concurve.definition.starters import script_of, started_here
from concurve.definition.study import TRIAL_FOLDER
from concurve.engine import Engine, Problem
from concurve.errors import HostError, StudyError
from concurve.measuring import packaged
from concurve.planning.plan import Machine, Plan, describe, trial_spec
from concurve.wire.spec import RoleSpec, TrialSpec

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SIGNS_OF_SHELLS = re.compile(r"[|&;<>$`]")
#: What runs a file, by its ending.
_STARTERS = {
    ".jar": "java -jar", ".java": "java", ".js": "node", ".pl": "perl", ".py": "python3",
    ".rb": "ruby", ".sh": "sh",
}  # fmt: skip
#: A name of a program or a file that is less like what was written is not proposed.
_ALIKE = 0.75
#: Commands that a shell has, and that are no programs.
_OF_SHELLS = (".", "alias", "cd", "eval", "exec", "export", "for", "set", "source", "ulimit",
              "umask", "while")  # fmt: skip


def check_plan(
    plan: Plan,
    engine: Engine,
    cpus: tuple[int, ...],
    machines: Mapping[str, Machine] | None = None,
) -> None:
    """Refuse a plan that this machine, or its hosts, cannot run, before the first trial.

    Every distinct launch (program and controls) is tried once on each host, suspended.

    Raises:
        StudyError: a program that does not exist, a malformed control.
        HostError: a control that is refused, with the missing capability.
    """
    seen: set[bytes] = set()
    # Blocks of as many numbers as there are hosts have each of them once.
    blocks = range(max(1, len(plan.alike)))
    for cell, block in itertools.product(plan.cells, blocks):
        spec = trial_spec(
            plan, cell, "check", cpus, packaged.command, port=1, block=block, machines=machines
        )
        for role in spec.roles:
            start = role.env.get("PATH"), role.cwd, role.controls
            named = role.argv[:1], started_here(role.argv)[:1], script_of(role.argv)
            launch = msgspec.json.encode((*start, *named, role.attach, role.ready_probe, role.host))
            if launch in seen:
                continue
            seen.add(launch)
            for problem in _problems(role, plan, engine):
                alone = len(plan.study.roles) == 1
                of_role = "" if alone else f", role {problem.role}"
                where = f"{describe(cell.parameters)}{of_role}: {problem.message}"
                if role.attach is not None:
                    raise HostError(where, "the process that runs now, by its number or unit")
                if problem.kind == "control_refused":
                    raise HostError(where, "grant it (concurve doctor says how), or leave it out")
                raise StudyError(where, _for_missing(problem, role, plan))


def _for_missing(problem: Problem, role: RoleSpec, plan: Plan) -> str:
    """What to write in place of a command whose program is not found: ``NAME=VALUE ./program`` is a
    shell's way to set a variable, and no shell starts a role."""
    if (script := script_of(role.argv)) and problem.message.startswith(f'"{script}"'):
        near = _near(role, script, is_program=False)
        return near or f"the path of the file that {PurePath(role.argv[0]).name} runs"
    written = next((item.command for item in plan.study.roles if item.name == role.name), ())
    if remedy := _for_shell(role.argv, " ".join(written or role.argv)):
        return remedy
    if len(role.argv) > 1 and all(" " in word.strip() for word in role.argv):
        return (
            f"one command, each word by itself: {role.argv[0]}; several are compared as levels of "
            "a parameter: -P version old,new -- ./{version}"
        )
    if " " in role.argv[0].strip() and len(role.argv) == 1:
        whole = role.argv[0]
        return f"each word by itself: {whole} (no quotes around all of it); or sh -c {quote(whole)}"
    if remedy := _for_file(role):
        return remedy
    of_role = "" if len(plan.study.roles) == 1 else f" of role {role.name}"
    names = (*started_here(role.argv)[:1], role.argv[0])
    missing = next((name for name in names if name in problem.message), "")
    near = _near(role, missing, is_program=True)
    return near or f"a program in PATH, or its path, as the command{of_role}"


def _near(role: RoleSpec, name: str, *, is_program: bool) -> str:
    """``did you mean './primes'?``, for a file of the same folder, or a program in PATH where the
    ``name`` has no folder; empty where none is alike, and on another host."""
    if role.host is not None or not name:
        return ""
    path = PurePath(name)
    is_bare = is_program and "/" not in name
    searched = os.get_exec_path({**os.environ, **role.env}) if is_bare else [path.parent]
    known = {
        file.name
        for folder in searched
        for file in _files(Path(role.cwd or ".", folder))
        if not is_program or os.access(file, os.X_OK)
    }
    near = words.nearest(path.name, sorted(known), _ALIKE)
    if near is None:
        return ""
    return words.did_you_mean(name.removesuffix(path.name) + near)


def _files(folder: Path) -> list[Path]:
    """The files of a folder; none where it cannot be read."""
    try:
        return [file for file in folder.iterdir() if file.is_file()]
    except OSError:
        return []


def _for_shell(argv: Sequence[str], written: str) -> str:
    """What to write in place of a command line of a shell; empty if it is none."""
    if _ASSIGNMENT.match(argv[0]):
        return f"a variable is set by env: env {written}"
    if argv[0] in _OF_SHELLS or argv[0].startswith("~"):
        return f"a shell, which knows it: sh -c {quote(written)}"
    if len(argv) == 1 and " " in argv[0].strip() and _SIGNS_OF_SHELLS.search(argv[0]):
        return f"a shell around it: sh -c {quote(written)}"
    return ""


def _for_file(role: RoleSpec) -> str:
    """What to write in place of a file that is there and cannot be started by this name: one of
    the folder without its path, or one that another program runs; empty if it is none."""
    name = role.argv[0]
    path = Path(role.cwd or ".", name)
    if role.host is not None or not path.is_file():
        return ""
    if path.suffix == ".class":
        return f"the class: java {path.stem}"
    if starter := _STARTERS.get(path.suffix):
        return f"the program that runs it: {starter} {name}"
    if "/" not in name and os.access(path, os.X_OK):
        return f"its path: ./{name}"
    return ""


def _alone(role: RoleSpec) -> tuple[RoleSpec, ...]:
    """The roles of a trial that has no other role; one of them must end by itself."""
    if role.attach is not None:
        return (role, RoleSpec(name="end-of-check", argv=("true",)))
    return (msgspec.structs.replace(role, after=(), end="exit"),)


def _problems(role: RoleSpec, plan: Plan, engine: Engine) -> Iterator[Problem]:
    """What keeps a role from its start: of its program, of the one that this starts in turn, and a
    script that is not there."""
    found = engine.check(TrialSpec(trial="check", roles=_alone(role)))
    if not found and (inner := started_here(role.argv)):
        within = msgspec.structs.replace(role, argv=tuple(inner))
        found = engine.check(TrialSpec(trial="check", roles=_alone(within)))
    yield from found
    script = "" if found or role.host is not None or _is_made(role, plan) else script_of(role.argv)
    if script and not Path(role.cwd or ".", script).exists():
        said = f'"{script}" was not found; check the name and the working folder'
        yield Problem(role.name, "not_found", said)


def _is_made(role: RoleSpec, plan: Plan) -> bool:
    """May what the role runs be made in its trial?"""
    written = [item for item in plan.study.roles if item.name == role.name]
    texts = itertools.chain.from_iterable((*item.command, item.cwd or "") for item in written)
    return any(TRIAL_FOLDER in text for text in texts)

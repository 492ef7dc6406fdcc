"""Programs that start another one: ``taskset -c 1 wrk …`` runs wrk, ``docker exec db pgbench …``
runs pgbench, and ``sh -c "cd x && wrk …"`` runs what its script says."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple


class _Starter(NamedTuple):
    """Its ``own`` words before the program that it starts, and those of its options whose value is
    the next word."""

    own: int = 0
    valued: frozenset[str] = frozenset()


def _starter(valued: str = "", own: int = 0) -> _Starter:
    return _Starter(own, frozenset(valued.split()))


_OF_CONTAINERS = _starter("-e --env --env-file -u --user -w --workdir --detach-keys", own=1)
_OF_POD = _starter("-c --container -n --namespace --context --kubeconfig", own=1)

#: By its own words; an option that is not named here has no value, or has it in the same word.
_STARTERS = {
    ("catchsegv",): _starter(),
    ("cgexec",): _starter("-g"),
    ("chroot",): _starter(own=1),
    ("chrt",): _starter("-T -P -D --sched-runtime --sched-period --sched-deadline", own=1),
    ("command",): _starter(),
    ("cpulimit",): _starter("-l --limit -c --cpu -p -P"),
    ("doas",): _starter("-u -C"),
    ("docker", "exec"): _OF_CONTAINERS,
    ("docker", "container", "exec"): _OF_CONTAINERS,
    ("docker", "compose", "exec"): _OF_CONTAINERS,
    ("docker-compose", "exec"): _OF_CONTAINERS,
    ("env",): _starter("-u --unset -C --chdir"),
    ("exec",): _starter("-a"),
    ("faketime",): _starter(own=1),
    ("flock",): _starter("-w --wait --timeout -E --conflict-exit-code", own=1),
    ("ionice",): _starter("-c --class -n --classdata"),
    ("ip", "netns", "exec"): _starter(own=1),
    ("kubectl", "exec"): _OF_POD,
    ("lxc", "exec"): _starter("--cwd --env --group --mode --user", own=1),
    ("ltrace",): _starter("-o -e -p -u -n -s -a -A"),
    ("nerdctl", "exec"): _OF_CONTAINERS,
    ("nice",): _starter("-n --adjustment"),
    ("nohup",): _starter(),
    ("nsenter",): _starter("-t --target -S --setuid -G --setgid"),
    ("numactl",): _starter(
        "-i --interleave -p --preferred -P --preferred-many -m --membind -N --cpunodebind "
        "-C --physcpubind -w --weighted-interleave"
    ),
    ("perf", "record"): _starter(
        "-e --event -o --output -F --freq -c --count -C --cpu --call-graph -p --pid -t --tid "
        "-u --uid -r --realtime -m --mmap-pages --mmap-flush -G --cgroup --filter -D --delay "
        "-j --branch-filter -k --clockid --proc-map-timeout --max-size --switch-max-files "
        "--affinity --control"
    ),
    ("perf", "stat"): _starter(
        "-e --event -o --output -x --field-separator -r --repeat -C --cpu -I --interval-print "
        "-D --delay -M --metrics -p --pid -t --tid -G --cgroup --for-each-cgroup --filter "
        "--timeout --interval-count --log-fd --pre --post --cputype --td-level --control "
        "-b --bpf-prog"
    ),
    ("podman", "exec"): _OF_CONTAINERS,
    ("podman", "container", "exec"): _OF_CONTAINERS,
    ("prlimit",): _starter(),
    ("runuser",): _starter("-u --user -g --group -G --supp-group"),
    ("setpriv",): _starter(
        "--reuid --regid --groups --ruid --euid --rgid --egid --inh-caps --ambient-caps "
        "--bounding-set --securebits --pdeathsig"
    ),
    ("setsid",): _starter(),
    ("stdbuf",): _starter("-i --input -o --output -e --error"),
    ("strace",): _starter("-o --output -e -u --user -s --string-limit -E --env -I -O -S -P -a -b"),
    ("sudo",): _starter("-u --user -g --group -h --host -p --prompt -C -D --chdir -R -T -r -t"),
    ("systemd-run",): _starter(
        "-p --property -u --unit -E --setenv -M --machine -H --host --slice --uid --gid --nice "
        "--description --working-directory"
    ),
    ("taskset",): _starter(own=1),
    ("time",): _starter("-f --format -o --output"),
    ("timeout",): _starter("-k --kill-after -s --signal", own=1),
    ("unbuffer",): _starter(),
    ("unshare",): _starter("-S --setuid -G --setgid -R --root -w --wd"),
}
_WORDS_MOST = max(map(len, _STARTERS))

#: Those that start a program in the folder and by the ``PATH`` that they have themselves, each of
#: whose options is known above.
_HERE = frozenset(
    ("env", "ionice", "nice", "nohup", "numactl", "setsid", "stdbuf", "taskset", "time", "timeout")
)
#: Words by which one of them looks elsewhere, or reads its command in another way.
_NOT_HERE = re.compile(r"PATH=|-[iSC0]|-$|--(chdir|split-string|ignore-environment|pid)|-[a-z]*p$")

#: Interpreters whose first word is a file of theirs, unless it is an option.
_INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|lua|php|Rscript)[0-9.]*$")

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
#: Their options whose value is the next word; those of ssh, which hands its words to a shell.
_OF_SHELLS = frozenset(("--rcfile", "--init-file"))
_SSH = _starter(" ".join(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw"), own=1)
#: With one of these runuser starts a program; without them it is a shell, as su is.
_OF_RUNUSER = {"-u", "--user"}

_ASSIGNMENT = re.compile(r"[^\s=/]+=")

#: What stands between the commands of a script.
_BETWEEN = ("|", "|&", "||", "&&", ";", "&")


def started(command: Sequence[str]) -> list[str]:
    """The words of the program that a command line starts in the end, from its own name on. What
    only a shell reads is not looked into; a starter that starts nothing is left."""
    words = list(command)
    while after := _after_starter(words):
        words = after
    return words


def started_here(command: Sequence[str]) -> list[str]:
    """The words of the program that a command line starts in the end, where each starter before it
    looks for it as the first one would be looked for itself; empty where none does."""
    words: list[str] = []
    rest = list(command)
    while rest and PurePath(rest[0]).name in _HERE and (after := _after_starter(rest)):
        if any(map(_NOT_HERE.match, rest[1 : len(rest) - len(after)])):
            return []
        words = rest = after
    return words


def script_of(command: Sequence[str]) -> str:
    """The file that the interpreter of a command line is told to run: of ``taskset -c 1 python3
    pool.py 4`` it is ``pool.py``, of ``java -jar app.jar`` the ``app.jar``. Empty where that cannot
    be seen, or where its folder cannot."""
    words = started_here(command) or list(command)
    program = PurePath(words[0]).name if words else ""
    if program == "java" and "-jar" in words[:-1]:
        at = words.index("-jar")
        return words[at + 1] if all(word.startswith("-") for word in words[1:at]) else ""
    if not _INTERPRETERS.match(program) or len(words) == 1 or words[1].startswith("-"):
        return ""
    return words[1]


def container_of(command: Sequence[str]) -> str:
    """The container in which a command line starts its program: of ``sudo docker exec -i db
    pgbench`` it is ``db``. Empty where it starts none in one, or where that cannot be seen."""
    words = list(command)
    if (script := _script(words)) is not None:
        is_here = PurePath(words[0]).name != "ssh"
        return container_of(_last_command(script)) if is_here else ""
    while (found := _starter_of(words)) is not None:
        count, starter = found
        named, rest = _split(starter, words[count:])
        if starter is _OF_CONTAINERS and words[1] != "compose":
            return named[0] if named else ""
        words = rest
    return ""


def last_started(command: Sequence[str]) -> list[str]:
    """The same; of a script (``sh -c "… | vegeta report"``) the words of its last command, whose
    output comes last. Empty where that cannot be seen."""
    words = started(command)
    while (script := _script(words)) is not None:
        words = started(_last_command(script))
    return words


def _after_starter(words: Sequence[str]) -> list[str]:
    """What the starter that a command line begins with starts; empty where none does."""
    if (found := _starter_of(words)) is None:
        return []
    count, starter = found
    return _after(starter, words[count:])


def _starter_of(words: Sequence[str]) -> tuple[int, _Starter] | None:
    """The starter that a command line begins with, and how many words name it."""
    if _script(words) is not None:
        return None
    for count in range(min(_WORDS_MOST, len(words)), 0, -1):
        named = (PurePath(words[0]).name, *words[1:count])
        if (starter := _STARTERS.get(named)) is not None:
            return count, starter
    return None


def _after(starter: _Starter, words: Sequence[str]) -> list[str]:
    """What stands after the options of a starter, its own words, and variables that it sets."""
    return _split(starter, words)[1]


def _split(starter: _Starter, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """A starter's own words, and what stands after them, its options, and variables that it
    sets."""
    own: list[str] = []
    at, has_options = 0, True
    while at < len(words):
        word = words[at]
        if has_options and word == "--":
            has_options = False
        elif has_options and len(word) > 1 and word[0] == "-":
            at += _takes_next(word, starter.valued)
        elif len(own) < starter.own:
            own.append(word)
        elif not _ASSIGNMENT.match(word):
            return own, list(words[at:])
        at += 1
    return own, []


def _takes_next(option: str, valued: frozenset[str]) -> bool:
    """Is the next word the value of this option? Of letters in one word it is, if the first one
    that has a value is the last."""
    if option in valued:
        return True
    if option.startswith("--"):
        return False
    places = [at for at, letter in enumerate(option) if at and f"-{letter}" in valued]
    return bool(places) and places[0] == len(option) - 1


def _script(words: Sequence[str]) -> str | None:
    """The script that a command line hands to a shell; ``None`` where it hands none."""
    program = PurePath(words[0]).name if words else ""
    if program == "ssh":
        return " ".join(_after(_SSH, words[1:])) or None
    if program == "su" or (program == "runuser" and not _OF_RUNUSER & set(words)):
        named = itertools.pairwise(words)
        return next((after for word, after in named if word in ("-c", "--command")), None)
    if program not in _SHELLS:
        return None
    rest, is_script = list(words[1:]), False
    while rest and len(rest[0]) > 1 and rest[0][0] in "-+" and rest[0] != "--":
        option = rest.pop(0)
        is_long = option.startswith("--")
        is_script |= not is_long and "c" in option
        if option in _OF_SHELLS or (not is_long and option[-1] in "oO"):
            del rest[:1]
    if rest[:1] == ["--"]:
        del rest[:1]
    return rest[0] if is_script and rest else None


def _last_command(script: str) -> list[str]:
    """The words of the last command of a script of one line, without what it exports before."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quotation without its end, or what only a shell reads
        return []
    while words and not words[-1].strip(lexer.punctuation_chars):
        words.pop()
    begin = max((at + 1 for at, word in enumerate(words) if word in _BETWEEN), default=0)
    last = words[begin:]
    while last and _ASSIGNMENT.match(last[0]):
        last = last[1:]
    return last

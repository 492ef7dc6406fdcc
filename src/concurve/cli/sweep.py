"""``concurve sweep``: any command over levels of its parameters."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from concurve.cli import completing, options
from concurve.cli.grouped import Grouped
from concurve.cli.judging import VERDICTS, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from concurve.definition.study import Study
    from concurve.terms import Level

#: The tools of ``definition/known_outputs.toml``, written here so that no verb waits for that file.
TOOLS = ("hyperfine", "pgbench", "redis-benchmark", "wrk", "sysbench", "sysbench-fileio", "fio",
         "k6", "ab", "hey", "oha", "bombardier", "h2load", "vegeta", "memtier_benchmark", "ycsb",
         "iperf3", "jmh", "jmh-time", "criterion", "google-benchmark")  # fmt: skip

HELP = """Measure a command over all combinations of its parameters' levels.

\b
Examples:
  concurve sweep -P threads 1.. -- ./renderer --threads {threads}
  concurve sweep -P n '1..64*2' --attach unit:postgresql@15-main
      --extract pgbench -- pgbench -c {n} -T 2
  concurve sweep -P n '1..64*2' -P cpus 1,2 --cpus {cpus} -- ./mine {n}
  concurve sweep -P n 1,2 --extract 'r=(\\d+) req/s:1/s:higher' -- ./bench {n}
  concurve sweep -P w 1,2,4 --server './serve -p {free_port} -w {w}'
      --ready tcp:{free_port} -- ./client 127.0.0.1:{free_port}
  concurve sweep -P c 1,8,64 --attach 4711 -- redis-benchmark -c {c}
  concurve sweep -P version old,new --fail-on slower -- ./mine-{version}

{NAME} in the command, in --cpus, --nice, --policy, --env, --background, --server, --ready and
the hooks is replaced by the level of parameter NAME; {{NAME}} stands for the literal text. Trials
run in fresh processes, interleaved in randomised blocks; every trial is stored before the next.
"""


class _Sweep(Grouped):
    """Remembers whether the command was given after ``--``, which click takes away."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = tuple(args)
        return super().parse_args(ctx, args)


#: What a newcomer needs stands first.
GROUPS = {
    "what is measured": ("parameters", "extracts", "primary", "check", "name"),
    **options.HOW_LONG,
    "a server beside the command": ("server", "ready", "ready_within", "attach", "counters"),
    **options.SHOWN,
    "how the command runs": ("cpus", "nice", "policy", "env", "background", "setup", "prepare",
                             "conclude", "cleanup"),
    "how settings are compared": ("work", "conditions", "base"),
    "what fails a build": ("fail_on", "effect", "in_doubt"),
    **options.ELSEWHERE,
}  # fmt: skip

#: The words behind the verb, in what click passes on.
WORDS = "concurve.sweep.words"


@click.command(
    "sweep",
    cls=_Sweep,
    groups=GROUPS,
    help=HELP,
    short_help="Measure any command over levels of its parameters.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument(
    "command",
    nargs=-1,
    required=True,
    metavar="-- COMMAND [ARGUMENT]...",
    shell_complete=completing.files,
)
@click.option(
    "-P",
    "--parameter",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME LEVELS",
    help="A parameter and its levels: 1,2,4 or 1..16 or 1..64*2 or 50%,100% (of the CPUs); 1.. "
    "doubles up to twice the CPUs granted, 1..4x up to four times. Repeatable: all combinations "
    "are measured.",
)
@click.option(
    "--cpus",
    metavar="N|LIST",
    help="CPUs the command may use: a count, a list 0,1 or 2-3, or {cpus} (default: all granted).",
)
@click.option("--nice", metavar="N", help="Nice value, -20 to 19 (default: inherited).")
@click.option(
    "--policy",
    metavar="CLASS",
    help="Scheduling policy: other, batch, idle, fifo:P or rr:P (default: inherited).",
)
@click.option(
    "--env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Environment variable of the command. Repeatable.",
)
@click.option(
    "--setup", metavar="CMD", help="Shell command once for each setting, before its first trial."
)
@click.option(
    "--prepare",
    metavar="CMD",
    help="Shell command before each trial, also before its server starts.",
)
@click.option("--conclude", metavar="CMD", help="Shell command after each trial.")
@click.option(
    "--cleanup", metavar="CMD", help="Shell command once for each setting, after its last trial."
)
@click.option(
    "--check",
    metavar="CMD",
    help="Shell command that judges each trial and reads its output: exit code 0 accepts it, 1 "
    "repeats it, 2 gives the setting up.",
)
@click.option(
    "--background",
    multiple=True,
    metavar="N[@nice=..,cpus=..]",
    help="N busy processes that compete with the command. Repeatable.",
)
@click.option(
    "--server",
    metavar="CMD|URL",
    help="A command that each trial starts before yours and ends after it, or the URL of a server "
    "on another machine.",
)
@click.option(
    "--ready",
    metavar="HOW",
    help="How to see that the server is ready: tcp:PORT, tcp:HOST:PORT, line:REGEX of its output, "
    "command:CMD that exits with 0, report (it says so itself), or launch (at once).",
)
@click.option("--ready-within", metavar="TIME", help="Time limit until then (default: 60s).")
@click.option(
    "--attach",
    metavar="PID|unit:NAME|container:NAME",
    help="A server that runs already: its CPU time, threads and waits are measured, and nothing "
    "is done to it.",
)
@click.option(
    "--counters",
    metavar="URL|command:CMD",
    help="Counters of a server on another machine, in Prometheus' text format.",
)
@click.option(
    "--extract",
    "extracts",
    multiple=True,
    metavar="NAME=REGEX[:unit[:higher|lower|failures]] | TOOL",
    help="Read a figure out of the output: the text in the parentheses of the pattern, its unit, "
    "and whether more or less is better, or that it counts failures. ROLE.NAME=… reads the output "
    "of another role. Or read the figures of a TOOL: "
    f"{', '.join(TOOLS)}. Repeatable.",
)
@click.option(
    "--primary",
    metavar="NAME[:higher|lower]",
    help="The figure by which settings are compared, and whose precision sets the number of trials "
    "(default: that of the TOOL, the first rate of which more is better, the rate of concurve "
    "load, or the wall time).",
)
@click.option(
    "--work",
    "work",
    multiple=True,
    metavar="NAME | scales | fixed",
    help="The parameter that counts workers (default: threads and the like, or the only one that "
    "may; none: none does). scales: each worker brings its own work. fixed: all settings do the "
    "same work.",
)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="NAME",
    help="A parameter that you do not choose: a setting is recommended under each of its levels "
    "(default: all but the workers and the controls; none: none is). Repeatable.",
)
@click.option(
    "--base",
    metavar="NAME=LEVEL,..",
    help="The setting that speed-ups are against (default: that with the fewest workers).",
)
@click.option(
    "--name", metavar="NAME", help="Name of the run (default: sweep- and the program's name)."
)
@judged
@options.secret
@options.protocol
@options.exports
@options.db
def verb(
    command: tuple[str, ...],
    parameters: tuple[tuple[str, str], ...],
    cpus: str | None,
    nice: str | None,
    policy: str | None,
    env: tuple[str, ...],
    setup: str | None,
    prepare: str | None,
    conclude: str | None,
    cleanup: str | None,
    check: str | None,
    background: tuple[str, ...],
    server: str | None,
    ready: str | None,
    ready_within: str | None,
    attach: str | None,
    counters: str | None,
    extracts: tuple[str, ...],
    primary: str | None,
    work: tuple[str, ...],
    conditions: tuple[str, ...],
    base: str | None,
    name: str | None,
    effect: str,
    in_doubt: bool,
    fail_on: tuple[str, ...],
    **common: Any,
) -> None:
    """Build the study, measure it, and judge it by ``--fail-on``."""
    from concurve.cli import slips
    from concurve.cli.judging import asked_of, judge_run, judged_factor, verdicts_beside
    from concurve.cli.measuring import Choices, measure_study
    from concurve.definition import study_line
    from concurve.definition.beside_line import Beside
    from concurve.definition.controls import ControlsTemplate
    from concurve.definition.study import Hooks
    from concurve.host.granted import granted_cpus
    from concurve.store import Store

    asked = asked_of(fail_on, effect, in_doubt)
    slips.refuse_words(verb, command, parameters, click.get_current_context().meta[WORDS])
    names = [name for name, _ in parameters]
    counted, amount = study_line.split_work(work, names)

    def study_for(granted: int) -> Study:
        return study_line.sweep_study(
            command,
            parameters,
            granted,
            controls=ControlsTemplate(cpus=cpus, nice=nice, policy=policy),
            env=study_line.parse_environment(env),
            hooks=Hooks(
                setup=setup, prepare=prepare, conclude=conclude, cleanup=cleanup, check=check
            ),
            background=background,
            beside=Beside(
                server=server,
                ready=ready,
                ready_within=ready_within,
                attach=attach,
                counters=counters,
            ),
            extracts=extracts,
            primary=primary,
            work=counted,
            work_amount=amount,
            conditions=conditions,
            base=base,
            name=name,
        )

    study = study_for(granted_cpus())
    is_here = not (common["hosts"] or common["ray"])  # others have CPUs of their own
    _tell_of_texts(parameters, cpus, is_here)
    _tell_of_words(study, common["secrets"])
    _tell_of_one_setting(study, common["secrets"])
    _tell_of_options(command, click.get_current_context().meta[WORDS])
    _tell_of_shell(command, [name for name, _ in parameters])
    _tell_of_compiler(command)
    _tell_of_versions(command)
    _tell_of_tool(command, extracts)
    _tell_of_primary(primary, study)
    _tell(study, counted, conditions)
    factor = judged_factor(study, common["effort"], asked, _as_base)
    head = measure_study(
        study_for,
        Choices(**common),
        effect=asked.effect_of_answer,
        say=verdicts_beside(factor, common["db"], asked),
    )
    if head is not None and factor:
        judge_run(head, Store.existing(common["db"]), factor, asked)


def _as_base(factor: str, level: Level) -> str:
    """How a sweep names the base level of a parameter."""
    return f"--base {factor}={level}"


#: Options of ours that many programs have, too: by themselves they say nothing of whom they are
#: meant for.
_OF_MANY = ("--attach", "--background", "--base", "--check", "--cleanup", "--condition",
            "--counters", "--cpus", "--db", "--env", "--hosts", "--name", "--nice", "--place",
            "--policy", "--prepare", "--ray", "--ready", "--secret", "--seed", "--server",
            "--setup", "--timeout", "--work")  # fmt: skip


def _tell_of_options(command: Sequence[str], words: Sequence[str]) -> None:
    """Say which options of ours stand after ``--``, where they are the program's. ``words`` are all
    behind the verb.

    Raises:
        StudyError: they stand behind a command without ``--``: ours may be meant. Or ``--fail-on``
            stands there with a verdict of ours: a build would pass whatever is measured.
    """
    from concurve.cli.showing import note
    from concurve.errors import StudyError
    from concurve.words import listed
    from concurve.words import verb as verb_of

    ours = [name for option in click.get_current_context().command.params for name in option.opts]
    names = [word.partition("=")[0] for word in command[1:]]
    found = list(dict.fromkeys(name for name in names if name in ours and name[:2] == "--"))
    told = [name for name in found if name not in _OF_MANY]
    if told and "--" not in words:
        raise StudyError(
            f"{told[0]} stands behind the command, and would be the program's",
            f"concurve sweep … {told[0]} … -- {command[0]} …; if it is the program's, -- before "
            "the command",
        )
    if judged := _fail_on(command[1:]):
        raise StudyError(
            f"{judged} stands after --: the program would get it, and no verdict would fail",
            f"concurve sweep … {judged} -- {command[0]} …; an option of the program that is called "
            "so stands in a script that calls it",
        )
    if told:
        stand, are = (
            verb_of(len(found), *words) for words in (("stands", "stand"), ("it is", "they are"))
        )
        them = verb_of(len(found), "it", "them")
        note(
            f"note: {listed(found)} {stand} after --: {are} passed to the program, and concurve "
            f"does not see {them}. If concurve is meant, write {them} before --"
        )


def _fail_on(words: Sequence[str]) -> str:
    """``--fail-on slower``, as it stands in the words of a command; empty where it does not, or
    with no verdict of ours, as the same option of another tool."""
    pairs = [word.split("=", 1) if "=" in word else [word] for word in words]
    flat = [part for pair in pairs for part in pair]
    verdicts = (after for name, after in pairwise(flat) if name == "--fail-on")
    found = next((verdict for verdict in verdicts if verdict in VERDICTS), "")
    return f"--fail-on {found}" if found else ""


def _tell_of_texts(parameters: Sequence[tuple[str, str]], cpus: str | None, is_here: bool) -> None:
    """Say what was taken for one level and may be meant as several: ``1-4``, but not as CPUs; and
    what is one level here although it is written as several: ``50%,100%`` on one CPU."""
    from concurve.cli.showing import note, note_fallen
    from concurve.definition.levels import ranges_meant, texts_like_ranges

    for name, levels in parameters:
        if texts := texts_like_ranges(levels):
            note(
                f"note: -P {name} {', '.join(map(repr, texts))}: a text; a range has numbers "
                "alone: 1..16, 1..64*2"
            )
        ranges = ranges_meant(levels)
        if ranges and f"{{{name}}}" not in (cpus or ""):
            single = "is a single level" if len(ranges) == 1 else "are single levels"
            note(
                f"note: -P {name} {', '.join(map(repr, ranges))} {single}; several are written "
                f"{', '.join(ranges.values())}"
            )
        if is_here:
            note_fallen(f"-P {name}", levels)


def _tell_of_words(study: Study, secrets: Sequence[str]) -> None:
    """Say that a level is a word where others are numbers, which may be a slip, and that levels of
    what is called as workers are words, so that it counts none. ``4k`` among numbers has a unit."""
    from concurve.cli.showing import note
    from concurve.definition.sweep_factors import is_called_workers, words_among
    from concurve.words import listed

    for factor in study.factors:
        found = words_among(factor)
        among = [word for word in found if not word[0].isdigit()]
        if factor.name in secrets or not found:
            continue
        if len(found) < len(factor.levels) and among:
            word = "the word" if len(among) == 1 else "the words"
            note(
                f"note: levels of {factor.name}: numbers and {word} {listed(among)}; the program "
                "gets what is written, also if it is a slip"
            )
        elif len(found) == len(factor.levels) and is_called_workers(factor.name):
            note(f"note: levels of {factor.name}: words and no numbers, so it counts no workers")


def _tell_of_one_setting(study: Study, secrets: Sequence[str]) -> None:
    """Say that nothing is compared, where each parameter has a single level."""
    from concurve.cli.showing import note

    if not study.factors or any(len(factor.levels) > 1 for factor in study.factors):
        return
    factor = study.factors[-1]
    level = "…" if factor.name in secrets else f"{factor.levels[0]},…"
    note(
        "note: one setting is measured, so nothing is compared; several levels are separated by "
        f"commas: -P {factor.name} {level}"
    )


#: What a shell reads in a command line; a program gets it as an argument.
_OF_SHELL = ("|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1", "&>")


def _tell_of_shell(command: Sequence[str], names: Sequence[str]) -> None:
    """Say that no shell reads ``|`` and the like, where each stands as a word of its own, and that
    ``${threads}`` is a placeholder behind a ``$``, and no variable."""
    from concurve.cli.showing import note

    if found := [word for word in command[1:] if word in _OF_SHELL]:
        note(
            f"note: {found[0]} is passed to {command[0]} as an argument; for a shell to read it: "
            "-- sh -c 'COMMAND'"
        )
    for name in names:
        if any(f"${{{name}}}" in word for word in command):
            note(
                f"note: ${{{name}}} is passed as a $ and the level; the level alone is {{{name}}}, "
                "without $"
            )


#: What compiles before it runs, by its first words.
_COMPILES = (("go", "run"), ("cargo", "run"), ("dotnet", "run"), ("swift", "run"), ("zig", "run"))


def _tell_of_compiler(command: Sequence[str]) -> None:
    """Say that what compiles a program and runs it does the first in each trial."""
    from pathlib import PurePath

    from concurve.cli.showing import note
    from concurve.definition.starters import started

    words = started(command)
    first = tuple(PurePath(word).name for word in words[:1]) + tuple(words[1:2])
    source = next((word for word in words[1:] if not word.startswith("-")), "")
    is_java = first[:1] == ("java",) and source.endswith(".java")
    if first in _COMPILES or is_java:
        what = f"java {source}" if is_java else " ".join(first)
        note(
            f"note: {what} may compile in each trial, and that time counts: compile once, and "
            "measure the program"
        )


def _tell_of_versions(command: Sequence[str]) -> None:
    """Say how versions of a program are compared, where the only arguments of one are the paths of
    others: other tools take several commands."""
    from concurve.cli.showing import note
    from concurve.definition.starters import started
    from concurve.definition.versions import as_levels, other_programs

    words = started(command)
    if others := other_programs(words):
        levels, program = as_levels([words[0], *others])
        note(
            f"note: one command is measured, {words[0]} with the argument {' '.join(others)}; "
            f"versions are compared by -P version {levels} -- {program}"
        )


def _tell_of_tool(command: Sequence[str], extracts: Sequence[str]) -> None:
    """Say that the figures of a tool can be read, where nothing is read of it."""
    from concurve.cli.showing import note
    from concurve.definition.extracting import tool_to_read

    tool = None if extracts else tool_to_read(command)
    if tool is not None:
        note(f"note: what {tool} prints is not read; with --extract {tool} it is")


def _tell_of_primary(primary: str | None, study: Study) -> None:
    """Say that the program has to report the figure that is named, where nothing else gives it."""
    from concurve.cli.showing import note
    from concurve.definition.indicators_meant import known_before, names_meant
    from concurve.definition.measured import MEASURED
    from concurve.definition.starters import started
    from concurve.words import listed

    name = study.primary
    if primary is None or name in MEASURED or any(item.name == name for item in study.extracts):
        return
    target = next(role for role in study.roles if role.name == study.target)
    known = known_before(started(target.command))
    if name in known:
        return
    near = names_meant(name, known)
    other = f" (or is {listed(near, 'or')} meant?)" if near else ""
    note(
        f"note: {name} is neither extracted nor always measured: the program has to report it"
        f"{other}"
    )


def _tell(study: Study, work: str | None, conditions: tuple[str, ...]) -> None:
    """Say what was taken for workers and for conditions where several parameters could be."""
    from concurve.cli.showing import note
    from concurve.definition.study import choose_work
    from concurve.definition.sweep_factors import is_said_by_name

    found = choose_work(study)
    if not found or (len(study.factors) < 2 and is_said_by_name(study, found)):
        return
    if work is None:
        note(f"note: {found} counts workers (--work NAME names another one, --work none no one)")
    if study.conditions and not conditions:
        names = ", ".join(study.conditions)
        note(
            f"note: a setting is recommended under each level of {names} "
            "(--condition none: levels are chosen among, too)"
        )

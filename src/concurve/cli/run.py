"""``concurve run``: a packaged study or campaign, or one from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from concurve.cli import completing, options
from concurve.cli.grouped import Grouped
from concurve.cli.judging import judged

if TYPE_CHECKING:
    from concurve.cli.judging import Asked
    from concurve.definition.study import Study
    from concurve.store.run_head import RunHead
    from concurve.terms import Level

HELP = """Run a packaged study or campaign, or one from a TOML file.

\b
Examples:
  concurve run thread-scaling --effort quick
  concurve run my-study.toml --export-html report.html
  concurve run java-threads --effort quick --only tc02,tc09
  concurve run thread-scaling --set threads=1..16*2 --set sync=none
      --target './mine --threads {threads}'
  concurve run enqueue-io-threads --set target=redis --set io-threads=4
      --set cpus=2 --attach 4711 --server redis://127.0.0.1:6379
  concurve run run:last --repeats 40
  concurve run run:20261121-0912 --set threads=4 --repeats 10

concurve studies lists the packaged ones. The options of the protocol hold for each study of a
campaign. --set, --target, --attach and --server point a study at a system of your own. run:RUN is
the study of a stored run, at its effort: more trials of it, or of a cell, are a
run of their own, and its answer rests on them alone.
"""


#: What stands before the name of a stored run whose study is meant.
_OF_RUN = "run:"


#: What a newcomer needs stands first.
GROUPS = {
    **options.HOW_LONG,
    "another system, other levels": ("levels", "target", "attach", "server", "ready",
                                     "ready_within", "password_from", "counters", "only", "java"),
    **options.SHOWN,
    "what fails a build": ("fail_on", "effect", "in_doubt"),
    **options.ELSEWHERE,
}  # fmt: skip


@click.command("run", cls=Grouped, groups=GROUPS, help=HELP)
@click.argument(
    "study", metavar="STUDY|CAMPAIGN|FILE.toml|run:RUN", shell_complete=completing.studies
)
@click.option("--only", metavar="NAME,..", help="Of a campaign: these studies, in its own order.")
@click.option(
    "--java",
    metavar="PATH|VERSION",
    help="Java for the roles that need one: a java, its JDK's folder, 17, or 21+ for that or a "
    "newer one (default: CONCURVE_JAVA, JAVA_HOME, PATH, /usr/lib/jvm).",
)
@click.option(
    "--set",
    "levels",
    multiple=True,
    metavar="FACTOR=LEVELS",
    help="Other levels of a factor: threads=1,2,4. Repeatable.",
)
@click.option(
    "--target",
    metavar="CMD",
    help="Measure this command in place of the study's program; {FACTOR} is replaced by its level.",
)
@click.option(
    "--attach",
    metavar="PID|unit:NAME|container:NAME",
    help="Measure a server that runs already in place of the study's; nothing is done to it.",
)
@click.option("--server", metavar="URL", help="Where that server, or one elsewhere, is.")
@click.option(
    "--password-from",
    metavar="NAME",
    help="Environment variable with the password of that server.",
)
@click.option(
    "--ready",
    metavar="HOW",
    help="When a --target that serves is ready: tcp:PORT, line:REGEX, command:CMD (default: when "
    "{free_port} accepts).",
)
@click.option("--ready-within", metavar="TIME", help="Time limit until then (default: 60s).")
@click.option(
    "--counters",
    metavar="URL|command:CMD",
    help="Counters of a server elsewhere, in Prometheus' text format.",
)
@judged
@options.secret
@options.protocol
@options.exports
@options.db
def verb(
    study: str,
    only: str | None,
    levels: tuple[str, ...],
    target: str | None,
    attach: str | None,
    server: str | None,
    password_from: str | None,
    ready: str | None,
    ready_within: str | None,
    counters: str | None,
    effect: str,
    in_doubt: bool,
    fail_on: tuple[str, ...],
    **common: Any,
) -> None:
    """Find the study or the campaign, measure it, and judge a study by ``--fail-on``."""
    from concurve.cli.campaigning import measure_campaign
    from concurve.cli.judging import asked_of, judge_run, judged_factor, verdicts_beside
    from concurve.cli.measuring import Choices, measure_study
    from concurve.definition.beside_line import Beside
    from concurve.definition.campaign import Campaign, at_effort
    from concurve.definition.campaign import only as choose
    from concurve.definition.catalogue import find
    from concurve.definition.pointing import Pointing, point, point_campaign
    from concurve.definition.study_file import states_conditions
    from concurve.errors import StudyError
    from concurve.host.granted import granted_cpus
    from concurve.secrets import KNOWN
    from concurve.store import Store

    asked = asked_of(fail_on, effect, in_doubt)
    if password_from is not None:
        KNOWN.password_from(password_from)

    stored = _of_run(study, common)

    def of_name(cpus: int) -> Study | Campaign:
        return find(study, cpus) if stored is None else stored.study

    beside = Beside(
        server=server, ready=ready, ready_within=ready_within, attach=attach, counters=counters
    )
    at = Pointing(levels=levels, target=target, beside=beside, password_from=password_from)
    names = None if only is None else [name.strip() for name in only.split(",")]

    def tell_of_levels() -> None:
        # Other hosts have CPUs of their own.
        if not (common["hosts"] or common["ray"]):
            _tell_of_levels(levels)

    def campaign_for(cpus: int) -> Campaign:
        found = of_name(cpus)
        assert isinstance(found, Campaign)
        if at.is_empty:
            return found
        chosen = at_effort(found, common["effort"]) if names is None else choose(found, names)
        pointed = point_campaign(chosen, at, cpus)
        tell_of_levels()
        return pointed

    def study_for(cpus: int) -> Study:
        found = of_name(cpus)
        assert not isinstance(found, Campaign)
        pointed = point(found, at, cpus)
        tell_of_levels()
        return pointed

    if isinstance(of_name(granted_cpus()), Campaign):
        _refuse_judging_a_campaign(study, asked)
        measure_campaign(campaign_for, names, Choices(**common))
    elif only is not None:
        raise StudyError(f"--only is for campaigns, {study} is one study", "no --only")
    else:
        factor = ""
        if fail_on or asked.is_given:
            factor = judged_factor(study_for(granted_cpus()), common["effort"], asked, _as_base)
        is_silent = study.endswith(".toml") and not states_conditions(Path(study))
        head = measure_study(
            study_for,
            Choices(**common),
            is_silent=is_silent,
            effect=asked.effect_of_answer,
            say=verdicts_beside(factor, common["db"], asked),
        )
        if head is not None and factor:
            judge_run(head, Store.existing(common["db"]), factor, asked)


def _as_base(factor: str, level: Level) -> str:
    """How a study names the base level of a factor."""
    written = f'"{level}"' if isinstance(level, str) else level
    return f"--set with one level of each other, or base = {{ {factor} = {written} }} in [protocol]"


def _refuse_judging_a_campaign(name: str, asked: Asked) -> None:
    """Refuse ``--fail-on`` and ``--effect`` of a campaign: its studies compare different factors.

    Raises:
        StudyError: it was given.
    """
    from concurve.errors import StudyError

    if asked.fail_on or asked.is_given:
        option = "--fail-on" if asked.fail_on else "--effect"
        given = "--fail-on slower" if asked.fail_on else "--effect 2%"
        raise StudyError(
            f"{option} judges one study, {name} is a campaign",
            f"one of its studies: concurve run CAMPAIGN/STUDY {given}",
        )


def _tell_of_levels(given: tuple[str, ...]) -> None:
    """Say what stands for one level here although it is named as several."""
    from concurve.cli.showing import note_fallen

    for text in given:
        factor, _, levels = text.partition("=")
        note_fallen(f"--set {factor}", levels)


def _of_run(name: str, common: dict[str, Any]) -> RunHead | None:
    """The stored run that a name behind ``run:`` means, whose effort the options take over; of any
    other name ``None``.

    Raises:
        StoreError: there is no such run.
    """
    from concurve.store import Store
    from concurve.store.run_head import decode_head

    if not name.startswith(_OF_RUN):
        return None
    store = Store.existing(common["db"])
    stored = decode_head(store.find_run(name.removeprefix(_OF_RUN)))
    common["effort"] = _effort_of_new(stored, common["effort"])
    return stored


def _effort_of_new(stored: RunHead, given: str) -> str:
    """The effort at which the study of a stored run is measured again: that of the run, if no other
    was given. It is said that the stored trials do not count: who adds trials because an answer was
    open, and stops where it is not, gets intervals that do not hold."""
    from concurve.cli.showing import note

    source = click.get_current_context().get_parameter_source("effort")
    effort = stored.effort if source is ParameterSource.DEFAULT else given
    note(
        f"note: a new run of the study of {stored.id}, at effort {effort}; its answer rests on its "
        "own trials alone"
    )
    return effort

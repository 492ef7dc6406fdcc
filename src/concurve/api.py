"""Concurve from Python: run a study, sweep a command, load a run as a data frame.

Everything here is also behind ``import concurve``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

import msgspec

from concurve import exports, words
from concurve.analysis.comparison import compare_levels, compare_runs
from concurve.analysis.comparison.options import Options
from concurve.analysis.run import findings_of, trial_findings_of
from concurve.analysis.stored_runs import history_of_stored
from concurve.brief import figures_of, glance_of
from concurve.definition.beside_line import Beside
from concurve.definition.catalogue import find_study
from concurve.definition.controls import ControlsTemplate
from concurve.definition.hiding import check_marked, hidden
from concurve.definition.indicators_meant import indicator_meant
from concurve.definition.pointing import Pointing, point
from concurve.definition.study import EFFORTS, Hooks, Study, with_java
from concurve.definition.study_check import with_rules
from concurve.definition.study_line import rules_from_options, sweep_study
from concurve.definition.units import parse_duration, parse_share
from concurve.engine.local import LocalEngine
from concurve.errors import ConcurveError, RunError, StudyError
from concurve.explain import explain_run
from concurve.findings.run import Findings
from concurve.host.granted import granted_cpus
from concurve.host.machine import allowed_cpus
from concurve.measuring import quiet
from concurve.measuring.heads import draw_seed, new_head, resumed_head, with_wait
from concurve.measuring.laboratory import Runner, Silence, nothing_left
from concurve.measuring.launches import check_plan
from concurve.measuring.site import this_machine
from concurve.planning.plan import plan_of
from concurve.report.csv import cell_rows, trial_rows
from concurve.report.progress import Progress
from concurve.report.python_words import HOOKS, PARAMETERS, python_words
from concurve.report.sections.run import brief_run_document, glance_document
from concurve.report.store_words import command_words, function_words
from concurve.results import (
    BestFinding,
    Chart,
    Comparison,
    Explanation,
    Fit,
    History,
    RunFindings,
    ScalingFinding,
    frame_of,
    html_of,
    text_of,
)
from concurve.secrets import KNOWN, references
from concurve.secrets.known import CHARS_MIN
from concurve.stats.comparison import EFFECT
from concurve.store import Store
from concurve.store.run_head import RunHead
from concurve.terms import Level, Waiting, joined_levels, split_levels
from concurve.wire import decode_record
from concurve.wire.record import TrialRecord
from concurve.words import did_you_mean, meant, one_of

if TYPE_CHECKING:
    import pandas as pd

#: Levels of a parameter: a sequence, or a text such as ``"1..64*2"``.
Levels = Sequence[Level] | str

#: A message names so many groups of settings.
_GROUPS_NAMED = 3

#: A command as a list of texts; or as a text that is split as a shell would.
Command = Sequence[str] | str

#: Options of ``concurve fit`` that name columns of a file, and how they are read.
_COLUMNS = ("x", "y", "r", "time", "where", "think_time")

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _known_keywords(
    function: Callable[_Arguments, _Result],
) -> Callable[_Arguments, _Result]:
    """The function with a :class:`StudyError` for a keyword that it does not have."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        for name in kwargs:
            if name not in known:
                keywords = [word for word in known if word != "self"]
                raise StudyError(
                    f"{function.__name__} has no parameter {name!r}", _meant(name, keywords)
                )
        return function(*args, **kwargs)

    return checked


def _meant(name: str, keywords: Sequence[str]) -> str:
    """The parameter that was meant: a near one, or one that the option of that name has here."""
    if name in _COLUMNS and "throughput" in keywords:
        return (
            'the columns themselves: concurve.fit(frame["threads"], frame["rps"]), of times '
            '1 / frame["seconds"]'
        )
    if name == "predict" and not keywords:
        return "concurve.fit(workers, throughput, predict=[N]) predicts at any N"
    if not keywords:
        return f"it takes none; {name.replace('_', '-')} may be an option of the command line alone"
    other = PARAMETERS.get(name.replace("_", "-"), "")
    if other in keywords:
        return did_you_mean(other)
    if name in HOOKS and "hooks" in keywords:
        return f"hooks=concurve.Hooks({name}=…)"
    where = f"where={{{name!r}: LEVEL}} for the settings under a condition"
    return meant(name, keywords, where if "where" in keywords else None)


class Run:
    """A stored run. ``print(run)`` gives what ``concurve show`` does; a notebook shows its answer,
    its chart and its figures."""

    def __init__(self, store: Store, id_: str, db: str | None = None) -> None:
        self._store = store
        self._db = db
        self.id = id_

    @property
    def findings(self) -> RunFindings:
        """What its figures say, with an interval for each, and the figures of each trial."""
        return RunFindings.of_run(trial_findings_of(self._store, self._store.find_run(self.id)))

    @_known_keywords
    def best(
        self, indicator: str = "", *, where: Mapping[str, Level] | None = None
    ) -> BestFinding | None:
        """The settings that cannot be distinguished from the best over all cells, and the smallest
        that is shown to be as good, by the primary indicator or another (``"tps:higher"`` where the
        direction of ``tps`` is not known). Where the study's conditions differ among the cells,
        ``where`` has their levels: ``best(where={"mode": "zlib"})``. ``None`` where there is
        nothing to choose: fewer than two cells, or an indicator without a better direction.

        Raises:
            RunError: no trial has that indicator, which direction is better is not known, or
                ``where`` names no group of settings that are compared.
        """
        with _in_python(db=self._db):
            found = findings_of(self._store, self._store.find_run(self.id), indicator)
            named = [BestFinding.of(item, found) for item in found.best]
            return _best_where(named, indicator, where or {})

    @_known_keywords
    def explain(self) -> Explanation:
        """Where the time of an operation goes in each cell, and what limits it; as
        ``concurve explain``.

        Raises:
            RunError: the run has no trial in use.
        """
        return Explanation.showing(explain_run(self._store, self._store.find_run(self.id)))

    @_known_keywords
    def models(self) -> tuple[ScalingFinding, ...]:
        """The scaling models of each group of cells that differ in the work factor only, or why
        there are none; as ``concurve show --models``."""
        row = self._store.find_run(self.id)
        found = figures_of(self._store, row, models=True, with_warned=False)
        return tuple(map(ScalingFinding.showing, found.scaling))

    @_known_keywords
    def chart(self, indicator: str = "") -> Chart:
        """The chart of an indicator, against the number of workers where one is known, else of each
        setting; without a name that of the answer. A notebook shows it; ``save`` writes it as SVG
        or PNG, and ``altair`` is the Altair chart.

        Raises:
            RunError: no trial has that indicator.
        """
        from concurve.report.charts import hero, of_indicator  # takes long to load

        report, _ = glance_of(self._store, self._store.find_run(self.id))
        drawn = of_indicator(report, indicator) if indicator else hero(report)
        if drawn is None:
            raise RunError(
                f"run {self.id}: no trial has the indicator {indicator or report.ranked!r}",
                indicator_meant(indicator, _measured(report)),
            )
        return Chart(drawn)

    @_known_keywords
    def compare_levels(
        self,
        factor: str,
        base: Level,
        new: Level,
        *,
        indicators: str | Sequence[str] = (),
        effect: float | str = EFFECT,
        better: Literal["", "lower", "higher"] = "",
        in_doubt: bool = False,
    ) -> Comparison:
        """Two levels of a factor, block by block, at each combination of the others; as
        ``concurve compare RUN --factor NAME --levels BASE,NEW``. ``better`` is for indicators
        without a better direction of their own. ``in_doubt``: judge cells in doubt, too.

        Raises:
            ConcurveError: the levels cannot be compared.
        """
        with _in_python(db=self._db):
            options = Options(
                indicators=_names(indicators),
                effect=_share(effect, "effect"),
                better=better,
                in_doubt=in_doubt,
            )
            found = compare_levels(self.findings, factor, (str(base), str(new)), options)
            return Comparison.showing(found)

    @_known_keywords
    def resume(
        self,
        max_time: str | float | None = None,
        *,
        wait_quiet: str | float | None = None,
        measure_anyway: bool = False,
        secrets: Sequence[str] = (),
    ) -> Run:
        """Measure what is missing after a stop; as ``concurve resume``. ``max_time`` is another
        time allowance of the whole run, ``wait_quiet`` what may be waited from now on.
        ``measure_anyway`` and ``secrets`` are as for :func:`run`.

        Raises:
            ConcurveError: the machine does not allow it, the run failed, or its trials have used up
                ``max_time``.
        """
        with _in_python(secrets, self._db):
            check_marked(secrets, ())
            asked = quiet.asked_quiet(_text(wait_quiet), measure_anyway)
            allowed = None if max_time is None else parse_duration(max_time, "--max-time")
            head = resumed_head(self._store, self.id, allowed)
            with contextlib.ExitStack() as held:
                if asked is not None and nothing_left(head, self._store) is None:
                    # What cannot run is refused at once, and not after the wait.
                    Runner(head, self._store, LocalEngine()).check()
                    waiting = held.enter_context(_quiet_machine(asked, head, Silence()))
                    # What was waited for may have been this run.
                    head = with_wait(resumed_head(self._store, self.id, allowed), waiting)
                Runner(head, self._store, LocalEngine(), site=this_machine()).resume()
            return self

    def frame(self) -> pd.DataFrame:
        """One row a cell: its parameters, ``status``, ``trials`` in use, and for each indicator
        its estimate with the bounds of its 95 % interval as ``NAME_low`` and ``NAME_high``. A
        parameter of the same name as another column stands as ``parameter_NAME``."""
        return frame_of(cell_rows(self.findings))

    def trials(self) -> pd.DataFrame:
        """One row a trial in the order in which they were made: parameters, ``block``,
        ``attempt``, whether it is ``used`` in the figures, and its raw figures."""
        return frame_of(trial_rows(self.findings))

    def records(self) -> list[TrialRecord]:
        """The raw record of every trial, in order."""
        return [
            decode_record(row.record, row.key.shown(self.id))
            for row in self._store.records(self.id)
        ]

    def write(self, file: str | Path) -> Path:
        """Write the run to a file: ``.html``, ``.md``, ``.csv`` or ``.json`` by its ending.

        Raises:
            ConcurveError: another ending, or a place that cannot be written.
        """
        path = Path(file)
        place = _hidden_place(self._db)
        files = {exports.format_of(path): path}
        words = functools.partial(command_words, place=place)
        exports.write_run(self._store, self.id, files, words=words)
        return path

    def __repr__(self) -> str:
        return f"<concurve.Run {self.id}>"

    def __str__(self) -> str:
        found = figures_of(self._store, self._store.find_run(self.id), brief=True)
        return text_of(
            brief_run_document(found.findings, limits=found.limits, outputs=found.outputs),
            _hidden_place(self._db),
        )

    def _repr_html_(self) -> str:
        found = glance_of(self._store, self._store.find_run(self.id))
        return html_of(glance_document(*found), place=_hidden_place(self._db))


@_known_keywords
def run(
    study: str | Path,
    *,
    levels: Mapping[str, Levels] | None = None,
    target: Command | None = None,
    server: Command | None = None,
    ready: str | None = None,
    ready_within: str | float | None = None,
    attach: str | int | None = None,
    password_from: str | None = None,
    counters: Command | None = None,
    java: str | None = None,
    effort: str = "normal",
    seed: int | None = None,
    repeats: str | int | None = None,
    precision: str | float | None = None,
    timeout: str | float | None = None,
    max_time: str | float | None = None,
    wait_quiet: str | float | None = None,
    measure_anyway: bool = False,
    progress: bool = False,
    secrets: Sequence[str] = (),
    db: str | None = None,
) -> Run:
    """Run a packaged study by name, or one from a ``.toml`` file; as ``concurve run``.

    ``levels`` replace those of factors (``--set``). ``target`` is a command for the measured role;
    ``attach`` and ``server`` (a URL) name a server that runs already, ``password_from`` the
    environment variable with its password, ``counters`` where one elsewhere shows its figures.
    ``secrets`` are what ``--secret`` takes: names of variables of the environment or of factors, or
    ``"NAME=TEXT"``; what they name is hidden in all that is stored and shown. ``wait_quiet``
    (``"5m"``) waits at most so long, in all, while other processes use the machine: before the
    first trial, and before each that follows. ``measure_anyway`` measures also where the machine is
    not quiet by then. ``progress`` shows on standard error how the run goes on, as the command line
    does.

    Raises:
        ConcurveError: the study or the machine does not allow it, or the run failed.
    """
    with _in_python(secrets, db):
        _mark_levels(secrets, levels or {})
        asked = quiet.asked_quiet(_text(wait_quiet), measure_anyway)
        target, server, counters = map(_hidden_command, (target, server, counters))
        if password_from is not None:
            KNOWN.password_from(password_from)
        cpus = granted_cpus()
        at = Pointing(
            levels=tuple(
                f"{name}={_levels_text(name, given)}" for name, given in (levels or {}).items()
            ),
            target=_command_text(target, "target"),
            beside=_beside(server, ready, ready_within, attach, counters),
            password_from=password_from,
        )
        found = point(find_study(str(study), cpus), at, cpus)
        rules = rules_from_options(*map(_text, (repeats, precision, timeout, max_time)))
        found = with_rules(found, rules)
        chosen = found if java is None else with_java(found, java)
        return _measure(chosen, "from Python", effort, seed, asked, progress, secrets, db)


@_known_keywords
def sweep(
    command: Sequence[str | int | float | Path],
    parameters: Mapping[str, Levels],
    *,
    cpus: str | int | None = None,
    nice: str | int | None = None,
    policy: str | None = None,
    env: Mapping[str, str | int | float] | None = None,
    hooks: Hooks | None = None,
    background: Sequence[str] = (),
    server: Command | None = None,
    ready: str | None = None,
    ready_within: str | float | None = None,
    attach: str | int | None = None,
    counters: Command | None = None,
    extracts: Sequence[str] = (),
    primary: str | None = None,
    work: str | None = None,
    work_amount: Literal["fixed", "scales"] | None = None,
    conditions: Sequence[str] = (),
    base: Mapping[str, Level] | None = None,
    name: str | None = None,
    effort: str = "normal",
    seed: int | None = None,
    repeats: str | int | None = None,
    precision: str | float | None = None,
    timeout: str | float | None = None,
    max_time: str | float | None = None,
    wait_quiet: str | float | None = None,
    measure_anyway: bool = False,
    progress: bool = False,
    secrets: Sequence[str] = (),
    db: str | None = None,
) -> Run:
    """Measure a command over all combinations of its parameters' levels; as ``concurve sweep``.

    Levels are a sequence, or a text such as ``"1..64*2"``. ``server`` is the command of a server
    beside the measured one, with ``ready`` for when it accepts clients (``"tcp:{free_port}"``), or
    the URL of one elsewhere, with ``counters`` for where it shows its figures: a URL, or a command.
    ``attach`` names a server that runs already: the number of its process, ``"unit:NAME"`` or
    ``"container:NAME"``. ``extracts`` are texts as for ``--extract``: ``"pgbench"``,
    ``"server.rss=(\\d+)::lower"``. ``wait_quiet``, ``measure_anyway``, ``progress`` and
    ``secrets`` are as for :func:`run`. ``work_amount`` is ``"scales"`` where each worker brings its
    own work, ``"fixed"`` where all cells do the same. ``base`` are levels of the cell that others
    are compared with.

    Raises:
        ConcurveError: the command or the machine does not allow it, or the run failed.
    """
    with _in_python(secrets, db):
        for what, given in (("command", command), ("background", background),
                            ("extracts", extracts), ("conditions", conditions)):  # fmt: skip
            if isinstance(given, str):
                meant = _split(given) if what == "command" else [given]
                raise StudyError(f"{what}: a text instead of a list of texts", repr(meant))
        if not command:
            raise StudyError("command: it is empty", '["./mine", "--threads", "{threads}"]')
        _mark_levels(secrets, parameters)
        asked = quiet.asked_quiet(_text(wait_quiet), measure_anyway)
        server, counters = map(_hidden_command, (server, counters))
        study = sweep_study(
            KNOWN.hide_words(list(map(str, command))),
            [(factor, _levels_text(factor, levels)) for factor, levels in parameters.items()],
            granted_cpus(),
            controls=ControlsTemplate(cpus=_text(cpus), nice=_text(nice), policy=policy),
            env={
                name: KNOWN.hide_variable(name, str(value)) for name, value in (env or {}).items()
            },
            hooks=hooks,
            background=list(map(KNOWN.hide_likely, background)),
            beside=_beside(server, ready, ready_within, attach, counters),
            extracts=extracts,
            primary=primary,
            work=work,
            work_amount=work_amount,
            conditions=conditions,
            base=base,
            rules=rules_from_options(*map(_text, (repeats, precision, timeout, max_time))),
            name=name,
        )
        return _measure(study, "sweep from Python", effort, seed, asked, progress, secrets, db)


@_known_keywords
def load(name: str = "last", db: str | None = None) -> Run:
    """A stored run by its id, the start of its id, or ``last``.

    Raises:
        StoreError: none or several fit.
    """
    with _in_python(db=db):
        store = Store.existing(_hidden_place(db))
        return Run(store, store.find_run(name).id, db)


@_known_keywords
def runs(study: str | None = None, db: str | None = None) -> list[Run]:
    """The stored runs, the newest last."""
    with _in_python(db=db):
        store = Store.existing(_hidden_place(db))
        return [Run(store, row.id, db) for row in store.runs(study)]


@_known_keywords
def compare(
    base: str | Run,
    new: str | Run,
    *,
    indicators: str | Sequence[str] = (),
    effect: float | str = EFFECT,
    better: Literal["", "lower", "higher"] = "",
    across_machines: bool = False,
    in_doubt: bool = False,
    db: str | None = None,
) -> Comparison:
    """Each cell of ``new`` over the same cell of ``base``; as ``concurve compare``. ``better`` is
    for indicators without a better direction of their own. ``in_doubt``: judge cells in doubt, too.

    Raises:
        ConcurveError: the runs cannot be compared.
    """
    with _in_python(db=db):
        sides = [run if isinstance(run, Run) else load(run, db) for run in (base, new)]
        options = Options(
            indicators=_names(indicators),
            effect=_share(effect, "effect"),
            better=better,
            across_machines=across_machines,
            in_doubt=in_doubt,
        )
        return Comparison.showing(compare_runs([sides[0].findings], [sides[1].findings], options))


@_known_keywords
def history(
    study: str,
    indicator: str = "",
    *,
    across_machines: bool = False,
    db: str | None = None,
) -> History:
    """An indicator over the stored runs of a study, with the points at which it changed; as
    ``concurve history``. Empty: the one by which they compare their settings.

    Raises:
        ConcurveError: no such run or indicator.
    """
    with _in_python(db=db):
        store = Store.existing(_hidden_place(db))
        return History.showing(history_of_stored(store, study, indicator, across_machines))


@_known_keywords
def fit(
    workers: Sequence[float],
    throughput: Sequence[float],
    *,
    predict: float | Sequence[float] = (),
    cpus: float | None = None,
    confidence: float = 0.95,
) -> Fit:
    """Scaling models of measured numbers, one pair for each trial; as ``concurve fit``, which reads
    them from columns of a file. For the times of a fixed piece of work, ``throughput`` is 1 / time.
    ``expectations`` of the result are the predictions at the numbers of workers of ``predict``.

    Raises:
        ConcurveError: the numbers cannot be fitted.
    """
    # SciPy takes long to load.
    from concurve.analysis.fit import Numbers, fit_numbers

    if len(workers) != len(throughput):
        raise ConcurveError(
            f"{len(workers)} numbers of workers and {len(throughput)} of throughput",
            "one of each for every trial",
        )
    with _in_python():
        numbers = Numbers(workers, throughput, "workers", "throughput")
        asked = (predict,) if isinstance(predict, int | float) else predict
        found = fit_numbers(numbers, asked, absolute=False, confidence=confidence, cpus=cpus)
        return Fit.showing(found)


def _measure(
    study: Study,
    again: str,
    effort: str,
    seed: int | None,
    wait: quiet.Asked | None,
    progress: bool,
    secrets: Sequence[str],
    db: str | None,
) -> Run:
    if effort not in EFFORTS:
        raise StudyError(f"no effort {effort!r}", one_of(EFFORTS))
    study = hidden(study, check_marked(secrets, [factor.name for factor in study.factors]))
    store = Store(_hidden_place(db))
    head = new_head(study, effort, draw_seed() if seed is None else seed, again)
    told = Progress(reword=_in_words_of_python(db)) if progress else None
    with contextlib.ExitStack() as held:
        if wait is not None:
            # What cannot run is refused at once, and not after the wait.
            check_plan(plan_of(head), LocalEngine(), allowed_cpus())
            told_of_waits = told or Silence()
            held.callback(told_of_waits.finish)
            waiting = held.enter_context(_quiet_machine(wait, head, told_of_waits))
            head = msgspec.structs.replace(head, waiting=waiting)
        Runner(head, store, LocalEngine(), progress=told, site=this_machine()).start()
    return Run(store, head.id, db)


def _quiet_machine(
    asked: quiet.Asked, head: RunHead, told: Progress | Silence
) -> contextlib.AbstractContextManager[Waiting]:
    """This machine, once it is quiet, for a run."""
    attached = quiet.attached_in([head.study])
    return quiet.quiet_machine(asked, told.note, told.waits, attached=attached)


def _measured(findings: Findings) -> list[str]:
    """The indicators that any cell has."""
    return sorted({name for cell in findings.cells for name in cell.indicators})


def _best_where(
    found: Sequence[BestFinding], indicator: str, where: Mapping[str, Level]
) -> BestFinding | None:
    """The finding of the group with these levels.

    Raises:
        RunError: several are compared, and none has these levels.
    """
    wanted = {name: str(level) for name, level in where.items()}
    for item in found:
        if wanted == {name: str(level) for name, level in item.group.items()}:
            return item
    if not found:
        return None
    asked = f"{indicator!r}, " if indicator else ""
    groups = [f"best({asked}where={item.group})" if item.group else "best()" for item in found]
    said = f"where={dict(where)} is none of them" if where else "say which is meant"
    raise RunError(
        f"the settings are compared under {words.count(len(found), 'condition')}: {said}",
        f"{words.listed(groups[:_GROUPS_NAMED], 'or')}; run.findings.best has all",
    )


def _text(given: str | float | None) -> str | None:
    return None if given is None else str(given)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """One name, or several."""
    return (given,) if isinstance(given, str) else tuple(given)


def _share(given: float | str, what: str) -> float:
    """A share as a number, or as the command line takes it.

    Raises:
        StudyError: it is none.
    """
    return parse_share(given, what) if isinstance(given, str) else given


def _mark_levels(secrets: Sequence[str], parameters: Mapping[str, Levels]) -> None:
    """Know the levels of parameters that are marked."""
    for name in secrets:
        given = parameters.get(name, ())
        for level in split_levels(given) if isinstance(given, str) else map(str, given):
            if len(level.strip()) >= CHARS_MIN and not references(level):
                KNOWN.add(name.upper(), level.strip())


def _split(command: str) -> list[str]:
    """A command line as the list that it stands for; as it is where a shell could not read it."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _hidden_command(given: Command | None) -> Command | None:
    """A command with references in place of its secrets."""
    if given is None or isinstance(given, str):
        return given and KNOWN.hide_likely(given)
    return KNOWN.hide_words(given)


def _hidden_place(db: str | None) -> str | None:
    """The place of a store with references in place of its passwords."""
    KNOWN.hide_store(os.environ.get("CONCURVE_DB", ""))
    return db and KNOWN.hide_store(db)


def _levels_text(name: str, levels: Sequence[Level] | str) -> str:
    if isinstance(levels, int | float):
        raise StudyError(f"{name}: {levels!r} instead of levels", f"[{levels!r}]")
    return levels if isinstance(levels, str) else joined_levels(levels)


def _command_text(given: Command | None, what: str) -> str | None:
    """A command as a shell would read it; a text is one already."""
    if given is None or isinstance(given, str):
        return given
    if not given:
        raise StudyError(f"{what}: an empty command", '["./serve", "--port", "{free_port}"]')
    return shlex.join(given)


def _beside(
    server: Command | None,
    ready: str | None,
    ready_within: str | float | None,
    attach: str | int | None,
    counters: Command | None,
) -> Beside:
    told = _command_text(counters, "counters")
    if counters is not None and not isinstance(counters, str):
        told = f"command:{told}"
    return Beside(
        server=_command_text(server, "server"),
        ready=ready,
        ready_within=_text(ready_within),
        attach=_text(attach),
        counters=told,
    )


# -- errors in Python's words -------------------------------------------------------------------


def _in_words_of_python(db: str | None) -> Callable[[str], str]:
    """Names functions and parameters where a text has commands and options, and the store that was
    given."""
    place = _hidden_place(db)
    return lambda text: function_words(python_words(text), place)


@contextmanager
def _in_python(secrets: Sequence[str] = (), db: str | None = None) -> Iterator[None]:
    """Errors name parameters of functions where the command line has options, and the store that
    was given. Secrets are known from here on, those of the environment and those that are marked,
    and no error holds one."""
    if isinstance(secrets, str):
        raise StudyError("secrets: a text instead of a list of names", '["API_TOKEN"]')
    KNOWN.add_environment()
    for text in secrets:
        KNOWN.add_marked(text)
    try:
        yield
    except ConcurveError as error:
        in_python = _in_words_of_python(db)
        error.reword(lambda text: in_python(KNOWN.hide(text)))
        # The message says what failed; where it was noticed inside says no more to a user.
        raise error from None

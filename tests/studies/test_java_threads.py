"""The campaign java-threads: every figure and every result of its source, and studies that can run.

Counts were taken from document 002 by hand, apart from ``published.csv``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

import concurve
from concurve.analysis.agreement import published_tables
from concurve.analysis.claims import judge_claims
from concurve.definition.campaign import Campaign
from concurve.definition.published import PublishedFigure, load_published
from concurve.definition.study import EFFORTS, Study, unused_factors
from concurve.engine.local import LocalEngine
from concurve.errors import HostError
from concurve.host import java, native
from concurve.host.machine import allowed_cpus
from concurve.measuring import packaged
from concurve.planning.plan import Plan, make_plan, trial_spec
from concurve.readings.thread_measures import thread_figures
from concurve.terms import Level
from concurve.wire import decode_record
from concurve.wire.record import RoleRecord
from concurve.wire.spec import RoleSpec
from tests.helpers.columns import column_samples
from tests.helpers.fakes import small_study
from tests.helpers.packaged import find

FOLDER = Path(concurve.__file__).parent / "studies" / "java-threads"

#: Figures in the body of each table: results, and settings that stand among them.
FIGURES = {
    "11": 10, "12": 10, "13": 24, "14": 11, "15": 60, "16": 8, "17": 8, "18": 8, "19": 9, "20": 8,
    "21": 3, "22": 3, "23": 4, "24": 4, "25": 18, "26": 18, "27": 18, "28": 18, "29": 18, "30": 18,
    "31": 18, "32": 18, "33": 18,
}  # fmt: skip

#: Bullets under each heading of results in chapter 10.
BULLETS = {
    "§10.1.3": 3,
    "§10.2.2": 4,
    "§10.3.2": 3,
    "§10.4.2": 8,
    "§10.5.3": 4,
    "§10.6.4": 4,
    "§10.7.1": 5,
    "§10.8.3": 5,
    "§10.9.4, method synchronisation": 3,
    "§10.9.4, object synchronisation": 1,
    "§10.9.4, CAS synchronisation": 1,
    "§10.9.8, method synchronisation": 4,
    "§10.9.8, object synchronisation": 4,
    "§10.9.8, CAS synchronisation": 4,
    "§10.9.8, direct comparison": 2,
    "§10.10.2": 4,
}


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    found = find("java-threads", 2)
    assert isinstance(found, Campaign)
    return found


@pytest.fixture(scope="module")
def figures() -> list[PublishedFigure]:
    cases = load_published(FOLDER / "published.csv")
    return [figure for case in cases.values() for figure in case]


def studies(campaign: Campaign) -> dict[str, Study]:
    return {member.name: member.study for member in campaign.studies}


# -- the published figures ------------------------------------------------------------------


def test_every_figure_of_tables_11_to_33_is_there(figures: list[PublishedFigure]) -> None:
    assert Counter(figure.table for figure in figures) == FIGURES
    assert len(figures) == 332
    places = Counter((figure.table, figure.row, figure.column) for figure in figures)
    assert [place for place, count in places.items() if count > 1] == []


def test_each_figure_belongs_to_the_study_of_its_test_case(campaign: Campaign) -> None:
    tables = {
        "tc01": range(11, 13), "tc02": [13], "tc03": [14], "tc04": [15], "tc05": range(16, 18),
        "tc06": range(18, 21), "tc07": range(21, 25), "tc08": range(25, 27), "tc08-priorities": [],
        "tc09": range(27, 33), "tc10": [33],
    }  # fmt: skip
    for name, study in studies(campaign).items():
        assert {int(figure.table) for figure in study.published} == set(tables[name])


def test_every_factor_is_the_ratio_of_the_figures_beside_it(
    figures: list[PublishedFigure],
) -> None:
    """The source's own arithmetic: base over figure, within what rounding leaves open."""
    factors = [figure for figure in figures if figure.unit == "factor"]
    assert len(factors) == 2 + 2 + 4 * 2 + 9 * 6
    for factor in factors:
        own, base = (
            value_at(figures, factor.table, factor.indicator, cell)
            for cell in (factor.parameters, factor.base_parameters)
        )
        least = (base.value - base.rounding) / (own.value + own.rounding)
        most = (base.value + base.rounding) / (own.value - own.rounding)
        assert least - factor.rounding <= factor.value <= most + factor.rounding, factor


def value_at(
    figures: list[PublishedFigure], table: str, indicator: str, cell: Mapping[str, Level]
) -> PublishedFigure:
    (found,) = [
        figure
        for figure in figures
        if (figure.table, figure.indicator, figure.parameters) == (table, indicator, cell)
        and figure.unit != "factor"
    ]
    return found


def test_tables_that_repeat_figures_agree(figures: list[PublishedFigure]) -> None:
    def printed(table: str, row: str) -> list[str]:
        return [f.printed for f in figures if (f.table, f.row) == (table, row)]

    assert printed("11", "Kontextwechsel - 1CPU") == printed("12", "Kontextwechsel - 1 CPU")
    assert printed("11", "Kontextwechsel - 2CPU") == printed("12", "Kontextwechsel - 2 CPU")
    assert printed("14", "Win32-Thread-Priorität") == printed("15", "NORMAL_PRIORITY_CLASS")
    loads = [f"Laststufe {load}" for load in ("null", "klein", "gross")]
    assert printed("19", "Basispriorität 6") == [printed("18", load)[0] for load in loads]
    assert printed("19", "Basispriorität 10") == [printed("18", load)[1] for load in loads]
    rounded = [f"{float(printed('16', load)[0]):.2f}" for load in loads]
    assert printed("19", "Basispriorität 8") == rounded


def test_kernel_threads_are_java_threads_and_daemons(figures: list[PublishedFigure]) -> None:
    rows = dict.fromkeys(figure.row for figure in figures if figure.table == "13")
    assert len(rows) == 6
    for row in rows:
        java_threads, kernel, daemons, pid = (
            figure.value for figure in figures if (figure.table, figure.row) == ("13", row)
        )
        assert java_threads + daemons == kernel
        assert (daemons, pid) == (13, 2572)


# -- the claims -----------------------------------------------------------------------------

_SOURCE = re.compile(r"(§10\.\d+\.\d+(?:, [A-Za-z ]+?)?), bullet (\d+), (?:tables?) \d.*")
_EXPECTED = re.compile(r"§8\.\d+\.\d+, expected result \d( \(set-up of ours\))?")


def test_every_bullet_of_the_results_is_a_claim(campaign: Campaign) -> None:
    assert sum(BULLETS.values()) == 59
    found: dict[str, set[int]] = {}
    for study in studies(campaign).values():
        for claim in study.claims:
            if _EXPECTED.fullmatch(claim.source):
                continue  # of a test case, not of its results
            match = _SOURCE.fullmatch(claim.source)
            assert match, f"{claim.id}: {claim.source}"
            found.setdefault(match[1], set()).add(int(match[2]))
    assert found == {heading: set(range(1, count + 1)) for heading, count in BULLETS.items()}


def test_no_claim_has_the_name_of_another(campaign: Campaign) -> None:
    ids = Counter(claim.id for study in studies(campaign).values() for claim in study.claims)
    assert [name for name, count in ids.items() if count > 1] == []


def plan_of(study: Study, effort: str) -> Plan:
    return make_plan(study, effort, 1)


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_claim_names_cells_that_the_effort_runs(campaign: Campaign, effort: str) -> None:
    """Only those that no machine can test may lack a cell."""
    for study in studies(campaign).values():
        plan = plan_of(study, effort)

        def values(
            parameters: Mapping[str, Level], indicator: str, plan: Plan = plan
        ) -> Sequence[float]:
            matching = [
                cell
                for cell in plan.cells
                if all(cell.parameters.get(name) == level for name, level in parameters.items())
            ]
            assert len(matching) == 1, (plan.study.name, parameters, indicator)
            return [1.0, 1.0, 1.0]

        def levels(factor: str, plan: Plan = plan) -> Sequence[Level]:
            return list(dict.fromkeys(cell.parameters[factor] for cell in plan.cells))

        untestable = {claim.id for claim in study.claims if claim.kind == "untestable"}
        for finding in judge_claims(study, column_samples(values, levels)):
            assert finding.verdict != "not testable here" or finding.id in untestable, finding
    assert untestable_claims(campaign) == {"tc02-3", "tc07-6", "tc10-5"}


def untestable_claims(campaign: Campaign) -> set[str]:
    return {
        claim.id
        for study in studies(campaign).values()
        for claim in study.claims
        if claim.kind == "untestable"
    }


# -- the studies ----------------------------------------------------------------------------


def test_each_study_says_what_a_test_case_must(campaign: Campaign) -> None:
    goals = ["T1", "T2", "T3", "T3", "T4", "T4", "T5", "T6", "T7", "T8"]
    names = [f"tc{n:02}" for n in range(1, 11)]
    assert [member.name for member in campaign.studies] == [
        *names[:8], "tc08-priorities", *names[8:]
    ]  # fmt: skip
    for member in campaign.studies:
        case = member.study.test_case
        assert case is not None
        number = int(member.name[2:4])
        assert (case.id, case.goal) == (str(number), goals[number - 1])
        for part in (case.objective, case.area, case.expected, case.conditions):
            assert part
        assert case.indicators and case.steps


def test_no_factor_is_without_effect(campaign: Campaign) -> None:
    for name, study in studies(campaign).items():
        assert unused_factors(study) == [], name


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_cell_can_be_told_to_the_runner(campaign: Campaign, effort: str) -> None:
    for study in studies(campaign).values():
        plan = plan_of(study, effort)
        for cell in plan.cells:
            spec = trial_spec(plan, cell, "t", (0, 1), program)
            assert not [text for role in spec.roles for text in role.argv if "{kernel" in text]


def program(name: str, where: str, java: str | None, jvm: Sequence[str]) -> Sequence[str]:
    if name == "mandelbrot-java":
        return ["java", *jvm, "-jar", "mandelbrot.jar"]
    return [name]


def target(study: Study, effort: str = "normal", /, **parameters: Level) -> RoleSpec:
    return next(role for role in roles(study, effort, **parameters) if role.name == "target")


def roles(study: Study, effort: str = "normal", /, **parameters: Level) -> Sequence[RoleSpec]:
    plan = plan_of(study, effort)
    wanted = {name.replace("_", "-"): level for name, level in parameters.items()}
    cell = next(c for c in plan.cells if wanted.items() <= c.parameters.items())
    return trial_spec(plan, cell, "t", (0, 1), program).roles


def test_the_six_classes_are_what_the_readme_says(campaign: Campaign) -> None:
    study = studies(campaign)["tc04"]
    found = {}
    for name in ("idle", "below-normal", "normal", "above-normal", "high", "realtime"):
        controls = target(study, **{"class": name}).controls
        policy = controls.policy
        assert policy is not None
        found[name] = (policy.class_, policy.priority, controls.nice)
    assert found == {
        "idle": ("idle", 0, None),
        "below-normal": ("other", 0, 5),
        "normal": ("other", 0, 0),
        "above-normal": ("other", 0, -5),
        "high": ("other", 0, -10),
        "realtime": ("rr", 1, None),
    }


def test_loads_are_none_one_thread_and_two(campaign: Campaign) -> None:
    for name in ("tc05", "tc06"):
        study = studies(campaign)[name]
        loads = {
            load: [role.argv[2:4] for role in roles(study, load=load) if role.name == "load"]
            for load in ("none", "small", "large")
        }
        assert loads == {
            "none": [],
            "small": [("--threads", "1")],
            "large": [("--threads", "2")],
        }


def test_a_class_of_test_case_6_is_the_one_of_test_case_4(campaign: Campaign) -> None:
    """A policy; a nice value of the priority beside it where it has an effect."""
    for name, has_effect in (("normal", True), ("realtime", False)):
        class_ = target(studies(campaign)["tc04"], **{"class": name}).controls.policy
        for priority, nice in ((1, 4), (10, -5)):
            levels: dict[str, Level] = {"class": name, "priority": priority}
            controls = target(studies(campaign)["tc06"], **levels).controls
            assert (controls.policy, controls.nice) == (class_, nice if has_effect else None)


def test_the_set_ups_of_tables_21_to_24(campaign: Campaign) -> None:
    study = studies(campaign)["tc07"]
    found = {
        setup: [(role.name, role.controls.cpus) for role in roles(study, setup=setup)]
        for setup in (
            "free",
            "cpu1",
            "cpu1-load-free",
            "cpu1-load-cpu0",
            "cpu1-loads-free",
            "cpu1-while-running",
        )
    }
    assert found == {
        "free": [("target", (0, 1))],
        "cpu1": [("target", (1,))],
        "cpu1-load-free": [("load", (0, 1)), ("target", (1,))],
        "cpu1-load-cpu0": [("load", (0,)), ("target", (1,))],
        "cpu1-loads-free": [("load", (0, 1)), ("target", (1,))],
        "cpu1-while-running": [("target", (0, 1))],
    }
    assert target(study, setup="cpu1-while-running").argv[:2] == ("sh", "-c")
    load, target_ = roles(study, setup="cpu1-loads-free")
    assert (load.argv[2:4], target_.argv[-4:-2]) == (("--threads", "4"), ("--threads", "2"))


def test_java_options_stay_with_the_jvm(campaign: Campaign) -> None:
    study = studies(campaign)["tc06"]
    on_jvm = target(study, kernel="jvm", priority=10)
    assert on_jvm.argv[:4] == ("java", "-XX:ThreadPriorityPolicy=1", "-jar", "mandelbrot.jar")
    assert on_jvm.argv[on_jvm.argv.index("--priority") + 1] == "10"
    native = target(study, "rigorous", kernel="native", priority=10)
    assert native.argv[0] == "mandelbrot" and "--priority" not in native.argv
    assert (on_jvm.controls.nice, native.controls.nice) == (-5, -5)


def test_rigorous_keeps_the_documents_length_of_a_computation(campaign: Campaign) -> None:
    """The depth named rigorous takes one thread about two minutes; the picture is the whole one."""
    for name in ("tc01", "tc05", "tc06", "tc07", "tc08", "tc09", "tc10"):
        study = studies(campaign)[name]
        for cell in plan_of(study, "rigorous").cells:
            spec = trial_spec(plan_of(study, "rigorous"), cell, "t", (0, 1), program)
            (argv,) = [role.argv for role in spec.roles if role.name == "target"]
            assert argv[argv.index("--depth") + 1] == "rigorous"
            assert "--width" not in argv and "--iterations" not in argv
            break


def test_the_newest_java_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("17.0.1", "25.0.2", "21.0.3"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        script = folder / "java"
        script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        script.chmod(0o755)
    monkeypatch.setattr(java, "JDK_FOLDERS", tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv(java.VARIABLE, raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert java.find_java("newest", "here").version == "25.0.2"


def test_priorities_are_held_against_ours_by_their_order() -> None:
    """The steps of two systems' scales have nothing in common; below the base is below."""
    figures = load_published(FOLDER / "published.csv")["tc03"]

    def verdict(ours: int) -> str:
        def values(parameters: Mapping[str, Level], indicator: str) -> Sequence[float]:
            return [19.0 + (ours if parameters["priority"] == 1 else 0)] * 3

        samples = column_samples(values, better="neither")
        study = msgspec.structs.replace(small_study(), published=figures)
        (table,) = published_tables(study, samples, {})
        found = table.at("Win32-Thread-Priorität", "1")
        assert found is not None
        return found.verdict

    assert [verdict(ours) for ours in (-2, -7, 0, 1)] == ["agrees", "agrees", "differs", "differs"]


def test_a_condition_is_never_recommended(campaign: Campaign) -> None:
    """A load, a kernel, the CPUs of the machine: a user does not choose them by their times."""
    met = {name: study.conditions for name, study in studies(campaign).items()}
    assert met == {
        "tc01": ("kernel", "cpus"), "tc02": (), "tc03": (), "tc04": (), "tc05": ("load",),
        "tc06": ("kernel", "class", "load"), "tc07": ("kernel", "setup"),
        "tc08": ("kernel", "cpus", "priority"), "tc08-priorities": ("kernel", "cpus"),
        "tc09": ("kernel", "cpus", "priority"), "tc10": (),
    }  # fmt: skip


def test_all_ten_priorities_are_computed_at_normal(campaign: Campaign) -> None:
    """As test case 8 asks; each has the nice value that the JVM makes of it (test case 3)."""
    study = studies(campaign)["tc08-priorities"]
    nice = {}
    for cell in plan_of(study, "normal").cells:
        priority = cell.parameters["priority"]
        role = target(study, priority=priority, cpus=cell.parameters["cpus"])
        assert role.argv[role.argv.index("--priority") + 1] == str(priority)
        nice[priority] = role.controls.nice
    assert nice == dict(zip(range(1, 11), (4, 3, 2, 1, 0, -1, -2, -3, -4, -5), strict=True))


#: A program that runs for a while before its second worker does, and then says which CPUs that one
#: was allowed first and last; it ends when the last are CPU 1 alone.
LATE_WORKER = """
import os, threading, time

time.sleep(0.5)
seen = []

def work():
    seen.append(os.sched_getaffinity(0))
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write("Thread-2")
    while os.sched_getaffinity(0) != {1}:
        pass
    seen.append(os.sched_getaffinity(0))

worker = threading.Thread(target=work)
worker.start()
worker.join()
print(*(sorted(cpus) for cpus in seen))
"""


@pytest.mark.real
@pytest.mark.skipif(
    not {0, 1} <= set(allowed_cpus()) or shutil.which("taskset") is None,
    reason="needs CPUs 0 and 1, and taskset (util-linux)",
)
def test_an_affinity_is_changed_when_workers_run(campaign: Campaign) -> None:
    """Those that came later would inherit it, which is another set-up."""
    role = target(studies(campaign)["tc07"], setup="cpu1-while-running", kernel="native")
    prefix = role.argv[: role.argv.index("mandelbrot")]
    done = subprocess.run(
        [*prefix, sys.executable, "-c", LATE_WORKER],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split("\n")[0] == f"{sorted(allowed_cpus())} [1]"


@pytest.mark.real
@pytest.mark.skipif(shutil.which("taskset") is None, reason="needs taskset (util-linux)")
def test_a_program_without_workers_is_not_waited_for(campaign: Campaign) -> None:
    """The watcher ends with it: its standard error closes."""
    role = target(studies(campaign)["tc07"], setup="cpu1-while-running", kernel="native")
    prefix = role.argv[: role.argv.index("mandelbrot")]
    done = subprocess.run([*prefix, "true"], check=True, capture_output=True, timeout=60)
    assert done.stderr == b""


# -- for real -------------------------------------------------------------------------------


def why_not() -> str | None:
    """Why a trial of the JVM kernel as another user cannot be run here, or ``None``."""
    if os.geteuid() != 0:
        return "needs root, to become a user with limits"
    for tool in ("setpriv", "prlimit"):
        if shutil.which(tool) is None:
            return f"needs {tool} (util-linux)"
    become = ["setpriv", "--reuid", "64002", "--regid", "64002", "--clear-groups"]
    keep = ["--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"]
    if subprocess.run([*become, *keep, "true"], check=False, capture_output=True).returncode:
        return "needs the right to become another user"
    try:
        native.runner()
        packaged.command("mandelbrot-java", "test")
    except HostError as error:
        return str(error)
    return None


def run_cell(study: Study, **parameters: Level) -> RoleRecord:
    plan = plan_of(study, "quick")
    wanted = {name.replace("_", "-"): level for name, level in parameters.items()}
    (cell,) = [c for c in plan.cells if wanted.items() <= c.parameters.items()]
    spec = trial_spec(plan, cell, f"test/{uuid.uuid4().hex}", allowed_cpus(), packaged.command)
    record = decode_record(LocalEngine().run(spec))
    assert record.outcome.kind == "ok", record.outcome
    role = record.role("target")
    assert role is not None
    return role


@pytest.mark.real
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_the_limit_is_the_one_that_was_set_on_purpose(campaign: Campaign) -> None:
    role = run_cell(studies(campaign)["tc02"], form="platform", java_threads="limit")
    reached = {line.indicator: line.value for line in role.indicators}["threads_reached"]
    assert 100 < reached < 300, "300 less the JVM's own"
    assert "RLIMIT_NPROC" in role.facts["threads_limited_by"]


@pytest.mark.real
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_without_privilege_a_priority_can_only_be_lowered(campaign: Campaign) -> None:
    study = studies(campaign)["tc03"]
    lower, _ = thread_figures(run_cell(study, mode="unprivileged", priority=1))
    higher, _ = thread_figures(run_cell(study, mode="unprivileged", priority=10))
    assert (lower["worker_nice_max"], higher["worker_nice_max"]) == (4, 0)

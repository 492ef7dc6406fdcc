"""Runs over hosts from the command line, as far as no host is asked."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from concurve.cli import app, measuring
from concurve.definition.hosts_file import load_hosts
from concurve.definition.inventory import Inventory
from concurve.definition.study import Study
from concurve.errors import RunError
from concurve.planning.plan import Machine
from tests.definition.test_hosts_file import LAB

STUDY = """
[study]
name = "over-hosts"
question = "How fast is it from elsewhere?"

[factors]
threads = [1, 2]

[[roles]]
name = "server"
command = ["sleep", "{threads}"]
end = "serve"
host = "server1"

[[roles]]
name = "target"
command = ["echo", "{host.server1}"]
host = "load"

[[roles]]
name = "noise"
command = ["true"]
copies = 1
host = "each:load"
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    study, lab = tmp_path / "study.toml", tmp_path / "lab.toml"
    study.write_text(STUDY)
    lab.write_text(LAB.replace('cpus = "0-1,4"\nhousekeeping = "2-3"\n', ""))
    return str(study), str(lab)


def refused(*words: str) -> str:
    return str(CliRunner().invoke(app, words).exception)


def roles(*words: str) -> list[str]:
    """The roles of the first cell that a dry run prints, without their commands' arguments."""
    done = CliRunner().invoke(app, ["run", *words, "--dry-run", "--seed", "1"])
    assert done.exception is None, done.output
    lines = done.output.partition("order of the first block:\n")[2].splitlines()
    ends = [number for number, line in enumerate(lines) if not line.startswith("    ")]
    return [line.strip() for line in lines[1 : ([*ends, len(lines)])[1]]]


def test_a_dry_run_says_where_each_role_runs(files: tuple[str, str]) -> None:
    study, lab = files
    shown = roles(study, "--hosts", lab)
    assert [line for line in shown if not line.startswith("server")] == [
        "target on load1: echo 10.77.0.1", "noise-1 on load1: true", "noise-2 on load2: true"
    ]  # fmt: skip
    assert shown[0].startswith("server on server1: sleep ")


@pytest.mark.real
def test_without_hosts_the_same_study_runs_here(files: tuple[str, str]) -> None:
    shown = roles(files[0])
    assert "target: echo 127.0.0.1" in shown and "noise: true" in shown


def test_a_role_is_placed_elsewhere_for_one_run(files: tuple[str, str]) -> None:
    study, lab = files
    shown = roles(study, "--hosts", lab, "--place", "target=server1", "--place", "noise=load2")
    assert "target on server1: echo 10.77.0.1" in shown and "noise on load2: true" in shown


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--place", "target=gpu"], "no host 'gpu'"),
        (["--place", "tarjet=load1"], "did you mean 'target'?"),
        (["--wait-quiet", "1m"], "--wait-quiet looks at this machine"),
    ],
)
def test_what_hosts_cannot_do_is_refused(
    files: tuple[str, str], options: list[str], says: str
) -> None:
    study, lab = files
    assert says in refused("run", study, "--hosts", lab, "--dry-run", *options)


def test_a_campaign_runs_on_hosts_and_its_studies_say_on_which(files: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["run", "java-threads", "--hosts", files[1], "--dry-run"])
    assert done.exception is None, done.output
    assert "java-threads is a campaign" in refused("run", "java-threads", "--place", "target=a")


def test_blocks_are_dealt_out_over_the_hosts_of_a_label(files: tuple[str, str]) -> None:
    study, lab = files
    places = ["--place", "target=any:load", "--place", "noise=any:load"]
    shown = roles(study, "--hosts", lab, *places)
    hosts = {line.split(" on ")[1].split(":")[0] for line in shown if " on load" in line}
    assert len(hosts) == 1, shown
    assert "too few hosts" in refused(
        "run", study, "--hosts", lab, "--place", "target=any:spare-parts", "--place",
        "noise=server1", "--dry-run",
    )  # fmt: skip


def test_a_file_of_hosts_and_a_cluster_are_two_ways(files: tuple[str, str]) -> None:
    study, lab = files
    assert "--hosts and --ray" in refused("run", study, "--hosts", lab, "--ray", "10.0.0.1:6379")
    waits = refused("run", study, "--ray", "10.0.0.1:6379", "--wait-quiet", "1m")
    assert "--ray measures on others" in waits
    assert "--ray 'nowhere' is no address" in refused("run", study, "--ray", "nowhere")


def test_without_ray_nothing_is_measured(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    study, lab = files
    assert "Ray is not installed here" in refused("run", study, "--hosts", lab)
    assert "Ray is not installed here" in refused("hosts", "list", lab)


SWEEP = ["sweep", "-P", "threads", "1..", "--cpus", "{threads}"]


def swept(lab: str, *more: str) -> str:
    done = CliRunner().invoke(
        app, [*SWEEP, "--hosts", lab, "--place", "*=load1", *more, "--", "true", "{threads}"]
    )
    assert done.exception is None, (done.exception, done.output)
    return done.output


def test_levels_by_cpus_are_those_of_the_host_as_its_file_names_them(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of this machine, which does not run the role: here it has one CPU."""
    lab = Path(files[1])
    monkeypatch.setattr("concurve.host.granted.granted_cpus", lambda: 1)
    monkeypatch.setattr(measuring, "granted_cpus", lambda: 1)
    monkeypatch.setattr("concurve.cli.planning.allowed_cpus", lambda: (0,))
    said = swept(str(lab), "--dry-run")
    assert "those of load1 are not known before a run asks" in said
    assert "threads=2" in said and "threads=4" not in said
    assert "[2 CPUs]" in said
    lab.write_text(lab.read_text().replace("[hosts.load1]\n", '[hosts.load1]\ncpus = "4,5"\n'))
    refused_levels = refused(
        *SWEEP, "--hosts", str(lab), "--place", "*=load1", "--dry-run", "--", "true", "{threads}"
    )
    assert "role target on load1 cpus: 4 CPUs asked for, 2 granted" in refused_levels


def test_a_run_has_the_levels_that_the_host_grants(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory = load_hosts(Path(files[1]))
    planned: list[Study] = []

    @contextlib.contextmanager
    def connected(studies: Sequence[Study], asked: Inventory | None) -> Iterator[object]:
        machines = {"load1": Machine((0, 1, 2, 3, 4, 5, 6, 7), lambda *_: ())}
        yield types.SimpleNamespace(machines=machines, inventory=asked)

    def head(study: Study, *_: object) -> None:
        planned.append(study)
        raise RunError("enough")

    monkeypatch.setattr(measuring, "connected_hosts", connected)
    monkeypatch.setattr(measuring, "new_head", head)
    assert inventory.host("load1").cpus == ()
    words = ["sweep", "-P", "threads", "1..", "--hosts", files[1], "--place", "*=load1"]
    assert "enough" in refused(*words, "--", "true", "{threads}")
    (threads,) = planned[0].factors
    assert threads.levels == (1, 2, 4, 8, 16), "up to twice the CPUs of that host"

"""Packaged studies on somebody's own system: what each can be pointed at, and why if not."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from concurve.definition.beside_line import Beside
from concurve.definition.campaign import Campaign
from concurve.definition.catalogue import campaigns, entries, packaged_name
from concurve.definition.copying import copy_packaged
from concurve.definition.hiding import secrets_of
from concurve.definition.pointing import Pointing, point, point_campaign
from concurve.definition.study import RUN_PASSWORD, Study, uses
from concurve.definition.study_line import sweep_study
from concurve.errors import StudyError
from concurve.planning.plan import make_plan, trial_spec
from concurve.wire.spec import ReadyProbe
from tests.helpers.packaged import find, find_study

URL = "redis://127.0.0.1:6379"
OWN_REDIS = Beside(attach="4711", server=URL)
OF_SERVER = ("target=redis", "io-threads=4", "cpus=2")


def enqueue(at: Pointing) -> Study:
    return point(find_study("enqueue-io-threads", 2), at, 2)


def refused(study: str, at: Pointing) -> str:
    found = find(study, 2)
    with pytest.raises(StudyError) as raised:
        if isinstance(found, Campaign):
            point_campaign(found, at, 2)
        else:
            point(found, at, 2)
    assert raised.value.remedy
    return f"{raised.value.what} | {raised.value.remedy}"


def test_nothing_asked_changes_nothing() -> None:
    study = find_study("thread-scaling", 2)
    assert point(study, Pointing(), 2) == study
    assert Pointing().is_empty


def test_levels_hold_at_every_effort() -> None:
    study = point(find_study("thread-scaling", 2), Pointing(levels=("threads=1..8*2",)), 2)
    for effort in study.efforts:
        factor = next(item for item in study.factors_at(effort) if item.name == "threads")
        assert factor.levels == (1, 2, 4, 8)


def test_a_base_among_levels_that_are_gone_is_left_out() -> None:
    study = find_study("tpcb-multicore/sqlite", 2)
    assert study.base
    ((name, level),) = study.base.items()
    other = next(
        item for f in study.factors if f.name == name for item in f.levels if item != level
    )
    changed = point(study, Pointing(levels=(f"{name}={other}",)), 2)
    assert changed.base == {}
    assert make_plan(changed, "quick", 1).cells


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        (("threads",), "not FACTOR=LEVELS"),
        (("thread=1",), "did you mean 'threads'?"),
        (("threads=1", "threads=2"), "given twice"),
        (("threads=",), "empty level"),
    ],
)
def test_levels_that_cannot_be_set(levels: tuple[str, ...], says: str) -> None:
    assert says in refused("thread-scaling", Pointing(levels=levels))


def test_a_level_that_the_study_would_have_to_describe() -> None:
    said = refused("enqueue-io-threads", Pointing(levels=("target=valkey",)))
    assert "does not say what that level stands for" in said and "--copy" in said


def test_a_program_of_ones_own_takes_the_measured_role() -> None:
    study = point(
        find_study("thread-scaling", 2),
        Pointing(levels=("sync=none",), target="./mine -t {threads}"),
        2,
    )
    role = next(role for role in study.roles if role.name == study.target)
    assert (role.program, role.command) == (None, ("./mine", "-t", "{threads}"))
    assert role.controls.cpus == "{cpus}", "what the study does to the role stays"


def test_a_program_that_ignores_a_factor_is_refused_by_its_name() -> None:
    said = refused("thread-scaling", Pointing(target="./mine -t {threads}"))
    assert "does not use {sync}" in said and "--set sync=" in said


def test_a_test_case_of_document_002_takes_any_jar() -> None:
    at = Pointing(
        levels=("kernel=jvm", "sync=none,object", "grain=line"),
        target="java -jar mine.jar {threads} {sync}",
    )
    study = point(find_study("java-threads/tc09", 2), at, 2)
    role = next(role for role in study.roles if role.name == "target")
    assert role.command == ("java", "-jar", "mine.jar", "{threads}", "{sync}")
    assert (role.program, role.controls.cpus) == (None, "{cpus}")


def test_a_campaign_names_the_study_that_cannot_be_pointed() -> None:
    said = refused("java-threads", Pointing(target="java -jar mine.jar {threads}"))
    assert said.startswith("java-threads/tc") and "--only" in said


def test_a_server_that_runs_takes_the_place_of_the_studys() -> None:
    study = enqueue(Pointing(levels=OF_SERVER, beside=OWN_REDIS))
    server = next(role for role in study.roles if role.name == "target")
    load = next(role for role in study.roles if role.name == "load")
    assert (server.attach, server.command, server.end) == ("4711", (), "serve")
    assert load.command[0] == URL
    assert "CONCURVE_PASSWORD" not in (*load.command, *load.env), "it does not know the study's"
    assert "--password-from" not in load.command
    assert load.command[-1] == "{target.mark}", "the rest stays"
    plan = make_plan(study, "quick", 1)
    spec = trial_spec(plan, plan.cells[0], "t", (0, 1), lambda name, *_: [name])
    assert URL in spec.roles[1].argv
    assert "SET" in " ".join(spec.roles[1].argv), "the commands are those of the level"


def test_a_server_elsewhere_has_counters_only() -> None:
    beside = Beside(server=URL, counters="http://127.0.0.1:9121/metrics")
    study = enqueue(Pointing(levels=OF_SERVER, beside=beside))
    server = next(role for role in study.roles if role.name == "target")
    assert server.program == "remote"
    assert server.command == (URL, "--http", "http://127.0.0.1:9121/metrics")


def test_a_server_of_ones_own_that_each_trial_starts() -> None:
    command = "redis-server --port {free_port} --io-threads {io-threads}"
    study = enqueue(Pointing(levels=("target=redis",), target=command))
    server = next(role for role in study.roles if role.name == "target")
    assert server.ready_probe == ReadyProbe(tcp="127.0.0.1:{free_port}")
    assert server.ready == "launch" and server.ready_seconds
    assert all("CONCURVE_PASSWORD" not in (*role.command, *role.env) for role in study.roles)


BANK = "postgresql://me@127.0.0.1:5432/bank"
#: What sets up the server of a study, at the level that one's own has.
OF_BANK = {
    "kernel-mode/postgresql": ("version=16",),
    "tpcb-multicore/postgresql": ("version=16", "workload=tpcb-rw3", "cpus=all", "files=16"),
}


@pytest.mark.parametrize("name", OF_BANK)
@pytest.mark.parametrize("attach", ["4711", None])
@pytest.mark.parametrize("password_from", ["DBPASS", None])
def test_the_studies_of_a_database_run_on_ones_own(
    name: str, attach: str | None, password_from: str | None
) -> None:
    at = Pointing(
        levels=OF_BANK[name],
        beside=Beside(attach=attach, server=BANK),
        password_from=password_from,
    )
    study = point(find_study(name, 2), at, 2)
    server = next(role for role in study.roles if role.name == "target")
    assert (server.attach, server.program) == (attach, None if attach else "remote")
    assert not uses(study, RUN_PASSWORD), "it does not know the study's"
    plan = make_plan(study, "quick", 1)
    assert plan.work in ("clients", "sessions") and len(plan.cells) > 1
    for cell in plan.cells:
        spec = trial_spec(plan, cell, "t", (0, 1), lambda name, *_: [name])
        loads = [role for role in spec.roles if BANK in role.argv and role.name != "target"]
        assert [role.name for role in loads] == (
            ["load", "verify"] if name.startswith("tpcb") else ["load"]
        )
        for role in loads:
            if password_from:
                assert role.argv[-2:] == ("--password-from", "DBPASS")
                assert role.env == {"DBPASS": "{secret:DBPASS}"}
            else:
                assert "--password-from" not in role.argv and not role.env
        others = [role for role in spec.roles if role not in loads]
        assert all("DBPASS" not in (*role.argv, *role.env) for role in others)
    assert secrets_of(study) == ([password_from] if password_from else [])


def test_a_password_is_put_into_the_environment_of_a_client_of_ones_own(tmp_path: Path) -> None:
    """Only our load knows the option."""
    (tmp_path / "own.toml").write_text(
        """
[study]
name = "own"
question = "How?"
[factors]
clients = [1, 2]
[[roles]]
name = "server"
command = ["./serve", "{free_port}"]
end = "serve"
ready = "tcp:{free_port}"
[[roles]]
name = "target"
command = ["./client", "127.0.0.1:{free_port}", "{clients}"]
"""
    )
    at = Pointing(beside=Beside(attach="4711", server=BANK), password_from="DBPASS")
    study = point(find_study(str(tmp_path / "own.toml"), 2), at, 2)
    client = next(role for role in study.roles if role.name == "target")
    assert client.command == ("./client", "127.0.0.1:5432", "{clients}")
    assert client.env == {"DBPASS": "{secret:DBPASS}"}


_OWN = """
[study]
name = "own"
question = "How?"
[factors]
clients = [1, 2]
[[roles]]
name = "server"
command = {server}
end = "serve"
ready = "tcp:{port}"
[[roles]]
name = "target"
command = ["./client", {address}, "{{clients}}"]
"""


def _pointed(tmp_path: Path, argument: str, server: str) -> str:
    """The argument of the client of a study of one's own, at a server that runs already."""
    text = _OWN.format(
        server='["./serve", "{free_port}"]', port="{free_port}", address=json.dumps(argument)
    )
    (tmp_path / "own.toml").write_text(text)
    at = Pointing(beside=Beside(attach="4711", server=server))
    study = point(find_study(str(tmp_path / "own.toml"), 2), at, 2)
    return next(role for role in study.roles if role.name == "target").command[1]


@pytest.mark.parametrize(
    ("argument", "server", "expected"),
    [
        ("127.0.0.1:{free_port}", "http://db1:8080", "db1:8080"),
        ("127.0.0.1:{free_port}", "http://[::1]:8080/", "[::1]:8080"),
        ("127.0.0.1:{free_port}", "redis://db1", "db1:6379"),
        ("http://127.0.0.1:{free_port}/page.html", "http://db1:80", "http://db1:80/page.html"),
        ("http://127.0.0.1:{free_port}/page.html", "https://db1/x?y=1", "https://db1:443/x?y=1"),
        ("http://127.0.0.1:{free_port}/a?b=c", "http://db1", "http://db1:80/a?b=c"),
        ("--address=127.0.0.1:{free_port}", "http://db1:8080", "--address=db1:8080"),
        ("postgresql://a@127.0.0.1:{free_port}/b?m=1", "postgresql://me@db1/c?m=2",
         "postgresql://me@db1:5432/c?m=2"),
        ("postgresql://a@127.0.0.1:{free_port}/b?m=1", "postgresql://me@db1/",
         "postgresql://me@db1:5432/b?m=1"),
        ("postgresql://a@127.0.0.1:{free_port}/b", "postgresql://me@db1/c",
         "postgresql://me@db1:5432/c"),
        ("sleep 1; ./client '127.0.0.1:{free_port}' x", "http://db1:8080",
         "sleep 1; ./client 'db1:8080' x"),
        ("{free_port}", "http://127.0.0.1:8080", "8080"),
        ("--port={free_port}", "http://localhost:8080", "--port=8080"),
    ],
)  # fmt: skip
def test_the_address_alone_is_replaced_in_an_argument(
    tmp_path: Path, argument: str, server: str, expected: str
) -> None:
    assert _pointed(tmp_path, argument, server) == expected


def test_a_client_that_knows_a_port_alone_cannot_go_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="told the port alone"):
        _pointed(tmp_path, "{free_port}", "http://db1:8080")
    with pytest.raises(StudyError, match="has no host and port"):
        _pointed(tmp_path, "127.0.0.1:{free_port}", "foo://db1")


def test_a_study_of_ones_own_that_cannot_be_pointed_names_no_packaged_one(tmp_path: Path) -> None:
    text = _OWN.format(server='["./serve", "8080"]', port="8080", address='"127.0.0.1:8080"')
    (tmp_path / "own.toml").write_text(text)
    said = refused(str(tmp_path / "own.toml"), Pointing(beside=OWN_REDIS))
    assert "where its clients connect to server" in said and "--copy" not in said
    said = refused("java-threads/tc01", Pointing(levels=("kernel=strange",)))
    assert "--copy java-threads/tc01 FOLDER" in said
    copied = copy_packaged("enqueue-io-threads", tmp_path / "copy")
    edited = copied.read_text().replace('name = "load"', 'name = "other-load"')
    copied.write_text(
        edited.replace('role = "load"', 'role = "other-load"').replace('"load.', '"other-load.')
    )
    assert packaged_name(find_study(str(copied), 2)) == "", "it is one of the user's own"


@pytest.mark.parametrize(
    ("study", "at", "says"),
    [
        ("enqueue-io-threads", Pointing(beside=OWN_REDIS), "{target}, {cpus}, {io-threads}"),
        ("enqueue-io-threads", Pointing(beside=Beside(attach="4711")), "where the server listens"),
        ("enqueue-io-threads", Pointing(levels=OF_SERVER, beside=Beside(server="redis")), "no URL"),
        ("enqueue-io-threads", Pointing(target="./mine"), "when is this server ready"),
        ("enqueue-io-threads", Pointing(target="./mine", beside=OWN_REDIS), "--target beside"),
        ("enqueue-io-threads", Pointing(beside=Beside(ready="tcp:1")), "--ready without"),
        ("thread-scaling", Pointing(beside=OWN_REDIS), "has no server"),
        ("thread-scaling", Pointing(password_from="P"), "--password-from without --server"),
        ("thread-scaling", Pointing(target="./a", password_from="P"), "beside --target"),
        ("tpcb-multicore/sqlite", Pointing(beside=OWN_REDIS), "has no server"),
        ("java-threads", Pointing(beside=OWN_REDIS), "java-threads/tc01"),
        ("java-threads", Pointing(levels=("bogus=1",)), "has no such factor"),
    ],
)
def test_what_cannot_be_pointed_says_why(study: str, at: Pointing, says: str) -> None:
    assert says in refused(study, at)


@pytest.mark.parametrize("name", [entry.name for entry in (*entries(), *campaigns())])
def test_a_copy_is_the_same_study(name: str, tmp_path: Path) -> None:
    file = copy_packaged(name, tmp_path / "own" / name)
    assert find(str(file), 2) == find(name, 2)
    packaged = {entry.name: entry.folder for entry in (*entries(), *campaigns())}[name]
    for copied in file.parent.rglob("*.toml"):
        own = packaged / copied.relative_to(file.parent)
        assert copied.read_text() == own.read_text(), "comments stay"


@pytest.mark.parametrize(
    "name",
    [
        f"{entry.name}/{path.parent.name}"
        for entry in campaigns()
        for path in sorted(entry.folder.glob("*/study.toml"))
    ],
)
def test_a_study_of_a_campaign_is_copied_alone(name: str, tmp_path: Path) -> None:
    file = copy_packaged(name, tmp_path / "own")
    assert find(str(file), 2) == find(name, 2)
    assert not list(tmp_path.glob(".*")), "nothing is left beside it"


def test_a_copy_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "notes.txt").write_text("mine")
    with pytest.raises(StudyError, match="is there already"):
        copy_packaged("thread-scaling", tmp_path / "own")
    with pytest.raises(StudyError, match="cannot be written"):
        copy_packaged("thread-scaling", tmp_path / "own" / "notes.txt" / "x")
    with pytest.raises(StudyError, match="no packaged study") as raised:
        copy_packaged("thread-scalin", tmp_path / "new")
    assert "thread-scaling" in raised.value.remedy
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]
    assert (tmp_path / "own" / "notes.txt").read_text() == "mine"


def test_a_base_stays_where_its_level_is_set_as_a_number() -> None:
    """``3.9,3.10`` are texts, ``3.9`` alone is a number: the same level."""
    swept = sweep_study(
        ["python{python}", "{n}"], [("python", "3.9,3.10"), ("n", "1,2")], 2, base="python=3.9"
    )
    study = msgspec.structs.replace(swept, optional={"python": ("3.9", "3.10")})
    changed = point(study, Pointing(levels=("python=3.9",)), 2)
    assert changed.base == {"python": 3.9} and changed.optional == {"python": (3.9,)}
    assert point(study, Pointing(levels=("python=3.10",)), 2).base == {}

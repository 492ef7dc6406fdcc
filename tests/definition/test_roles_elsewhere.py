"""Roles in study files that are ready by what is seen of them, run already, or run elsewhere."""

from __future__ import annotations

import msgspec
import pytest

from concurve.definition.study import Role, Study
from concurve.definition.study_file import parse_study
from concurve.errors import StudyError
from concurve.planning.plan import make_plan, trial_spec
from concurve.wire.spec import Attach, AttachedProcess, ReadyProbe, RoleSpec

_STUDY = """
[study]
name = "own"
question = "How fast?"

[factors]
clients = [1, 2]

[[roles]]
name = "server"
{server}

[[roles]]
name = "target"
command = ["./client", "{{clients}}"]
"""


def study(server: str) -> Study:
    return parse_study(_STUDY.format(server=server), 2, "study.toml")


def role(server: str) -> Role:
    return study(server).roles[0]


def spec(server: str) -> RoleSpec:
    plan = make_plan(study(server), "quick", 1)
    return trial_spec(plan, plan.cells[1], "t", (0, 1), lambda name, *_: [name], 7001).roles[0]


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        ("tcp:{free_port}", ReadyProbe(tcp="127.0.0.1:7001")),
        ("line:{clients} workers", ReadyProbe(line="2 workers")),
        (r"line:\\d{3} workers", ReadyProbe(line=r"\d{3} workers")),
        ("command:./up {free_port} {clients}", ReadyProbe(command=("./up", "7001", "2"))),
    ],
)
def test_a_ready_probe_is_rendered_for_its_cell(ready: str, expected: ReadyProbe) -> None:
    found = spec(f'command = ["./serve"]\nend = "serve"\nready = "{ready}"\nready_within = "5s"')
    assert found.ready_probe == expected
    assert (found.ready, found.ready_limit_ns) == ("launch", 5_000_000_000)


def test_limits_of_readiness() -> None:
    serve = 'command = ["./serve"]\nend = "serve"\n'
    assert spec(f'{serve}ready = "tcp:1"').ready_limit_ns == 60_000_000_000
    assert spec(f'{serve}ready = "report"').ready_limit_ns is None, "it may fill a database"
    assert spec(f'{serve}ready = "report"\nready_within = 3').ready_limit_ns == 3_000_000_000


def test_an_attached_role_has_what_it_was_when_the_run_began() -> None:
    found = study("attach = 4711")
    server = found.roles[0]
    assert (server.attach, server.attached, server.end) == ("4711", None, "serve")
    process = Attach(process=AttachedProcess(4711, 99))
    begun = msgspec.structs.replace(
        found, roles=(msgspec.structs.replace(server, attached=process), *found.roles[1:])
    )
    plan = make_plan(begun, "quick", 1)
    first = trial_spec(plan, plan.cells[0], "t", (0, 1), lambda name, *_: [name]).roles[0]
    assert first == RoleSpec(name="server", end="serve", attach=process)


def test_a_remote_role_is_a_packaged_program() -> None:
    found = role(
        'remote = "redis://db1"\ncounters = { http = "http://db1/m", names = ["redis_*"] }'
    )
    assert (found.program, found.end, found.ready) == ("remote", "serve", "report")
    assert found.command == ("redis://db1", "--name", "redis_*", "--http", "http://db1/m")
    told = role('remote = "db1"\ncounters = { command = ["./counters", "-x"] }')
    assert told.command == ("db1", "--command", "./counters", "-x")
    assert role('remote = "db1"').command == ("db1",)


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ('command = ["a"]\nready = "soon"', "roles 'server', ready: 'soon' does not say when"),
        ('command = ["a"]\nready = "tcp:x"', "no address"),
        ('command = ["a"]\nready = "tcp:1"', "how does the role end?"),
        ('command = ["a"]\nend = "serve"\nready = "tcp:{bogus}"', "{bogus} has no parameter"),
        ('command = ["a"]\nready_within = "5s"', "as soon as it runs"),
        ('command = ["a"]\nend = "serve"\nready = "tcp:1"\nready_within = "soon"', "ready_within"),
        ('attach = "redis"', "names no process"),
        ('attach = "{clients}"', "the same in all cells"),
        ('attach = 1\ncommand = ["a"]', "command beside attach"),
        ('attach = 1\nend = "exit"', "end beside attach"),
        ("attach = 1\ncontrols = { nice = 5 }", "controls beside attach"),
        ('attach = 1\nready = "tcp:1"', "ready beside attach"),
        ("attach = 1\ncopies = 2", "copies beside attach"),
        ('attach = 1\nremote = "db1"', "remote beside attach"),
        ('remote = "db1"\ncommand = ["a"]', "command beside remote"),
        ('remote = "db1"\ncounters = {}', "needs either http or command"),
        ('remote = "db1"\ncounters = { http = "db1" }', "no URL of HTTP"),
        ('remote = "db1"\ncounters = { command = [] }', "command is empty"),
        ('command = ["a"]\ncounters = { http = "http://a" }', "those of a remote role"),
    ],
)
def test_roles_that_make_no_sense(server: str, says: str) -> None:
    with pytest.raises(StudyError) as raised:
        study(server)
    assert says in raised.value.what and "study.toml" in raised.value.what
    assert raised.value.remedy


def test_an_attached_role_can_be_the_measured_one() -> None:
    text = _STUDY.format(server="attach = 4711") + '\n[protocol]\ntarget = "server"\n'
    assert parse_study(text, 2, "study.toml").target == "server"


def test_a_program_in_the_attached_container_would_be_counted_as_the_server() -> None:
    text = _STUDY.format(server='attach = "container:cache"')
    entered = text.replace('["./client", ', '["docker", "exec", "cache", "./client", ')
    with pytest.raises(StudyError, match="target is started in container cache, which is attached"):
        parse_study(entered, 2, "study.toml")
    identity = "0f" * 32
    by_identity = entered.replace(":cache", f":{identity}").replace('"cache"', f'"{identity[:12]}"')
    with pytest.raises(StudyError, match="which is attached"):
        parse_study(by_identity, 2, "study.toml")
    for other in ("cache2", "cac"):
        parse_study(entered.replace('"cache"', f'"{other}"'), 2, "study.toml")

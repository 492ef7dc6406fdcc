"""When a role is ready, and what is attached, as texts."""

from __future__ import annotations

import pytest

from concurve.definition.attaching import Attachment, parse_attach
from concurve.definition.readiness import (
    Readiness,
    check_address,
    parse_ready,
    unawaited_before,
)
from concurve.definition.study_file import parse_study
from concurve.errors import StudyError
from concurve.wire.spec import ReadyProbe


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("launch", Readiness("launch")),
        ("report", Readiness("report")),
        ("tcp:6379", Readiness(probe=ReadyProbe(tcp="127.0.0.1:6379"))),
        ("tcp:db1:5432", Readiness(probe=ReadyProbe(tcp="db1:5432"))),
        ("tcp:[::1]:5432", Readiness(probe=ReadyProbe(tcp="[::1]:5432"))),
        ("tcp:{free_port}", Readiness(probe=ReadyProbe(tcp="127.0.0.1:{free_port}"))),
        ("line:Ready: (all|some)", Readiness(probe=ReadyProbe(line="Ready: (all|some)"))),
        (
            "command:redis-cli -p {free_port} 'ping now'",
            Readiness(probe=ReadyProbe(command=("redis-cli", "-p", "{free_port}", "ping now"))),
        ),
    ],
)
def test_ways_of_being_ready(text: str, expected: Readiness) -> None:
    assert parse_ready(text, "here") == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "does not say when"),
        ("ready", "does not say when"),
        ("tcp:", "does not say when"),
        ("udp:6379", "does not say when"),
        ("tcp:redis", "no address"),
        ("tcp:0", "no address"),
        ("tcp:70000", "no address"),
        ("line:(", "no regular expression"),
        ("line:(?=a)b", "no regular expression of RE2"),
        (r"line:(a)\1", "no regular expression of RE2"),
        (r"line:\Qa.b\E", "is not available in the pattern of a line"),
        ("line:{{braces}}", "{ as a sign is not available"),
        ("command:'a", "no command"),
    ],
)
def test_texts_that_say_nothing(text: str, says: str) -> None:
    with pytest.raises(StudyError) as raised:
        parse_ready(text, "here")
    assert says in raised.value.what and raised.value.what.startswith("here")
    assert raised.value.remedy


def test_a_rendered_address_is_checked() -> None:
    check_address("127.0.0.1:1", "here")
    for text in ("127.0.0.1:x", "127.0.0.1", "127.0.0.1:-1"):
        with pytest.raises(StudyError):
            check_address(text, "here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4711", Attachment("process", "4711")),
        (" 0042 ", Attachment("process", "42")),
        ("unit:redis-server@6379.service", Attachment("unit", "redis-server@6379.service")),
        ("container:my_cache.1", Attachment("container", "my_cache.1")),
    ],
)
def test_what_can_be_attached(text: str, expected: Attachment) -> None:
    assert parse_attach(text, "here") == expected


@pytest.mark.parametrize("text", ["0", "-5", "redis", "unit:", "unit:a b", "unit:../x", "pod:a"])
def test_what_names_no_process(text: str) -> None:
    with pytest.raises(StudyError, match="names no process"):
        parse_attach(text, "here")


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_is_what_a_command_that_failed_leaves(text: str) -> None:
    with pytest.raises(StudyError, match="--attach: attach is empty") as refused:
        parse_attach(text, "--attach")
    assert refused.value.remedy.startswith("did the command in $(...) fail?")


def test_what_is_attached_does_not_vary() -> None:
    with pytest.raises(StudyError, match="the same in all cells"):
        parse_attach("{pid}", "here")


def test_a_role_that_takes_the_port_and_is_no_server_by_its_words() -> None:
    """Neither end nor ready: it would be started beside its client, and both would end."""
    text = """
[study]
name = "own"
question = "How fast?"
[factors]
clients = [1, 2]
[[roles]]
name = "nginx"
command = ["./serve", "{free_port}"]
%s
[[roles]]
name = "wrk"
command = ["wrk", "-c{clients}", "http://127.0.0.1:{free_port}/"]
[protocol]
target = "wrk"
"""
    said = unawaited_before(parse_study(text % "", 2, "study.toml"))
    assert said == (
        'role nginx has neither end nor ready: for a server that wrk connects to, end = "serve" '
        'and ready = "tcp:{free_port}"'
    )
    served = 'end = "serve"\nready = "tcp:{free_port}"'
    assert unawaited_before(parse_study(text % served, 2, "study.toml")) == ""


@pytest.mark.parametrize(
    ("server", "client", "is_told"),
    [
        ('"./serve", "19479"', '"wrk", "http://127.0.0.1:19479/"', False),
        ('"./serve", "{free_port}"', '"wrk", "http://127.0.0.1:19479/"', True),
        ('"./serve"', '"wrk", "http://127.0.0.1:{free_port}/"', True),
    ],
)
def test_a_free_port_of_which_no_command_is_told_is_noted_before_the_run(
    server: str, client: str, is_told: bool
) -> None:
    text = f"""
[study]
name = "s"
question = "?"

[factors]
n = [1]

[[roles]]
name = "server"
command = [{server}]
end = "serve"
ready = "tcp:{{free_port}}"

[[roles]]
name = "client"
command = [{client}]

[protocol]
target = "client"
"""
    said = unawaited_before(parse_study(text, 2, "study.toml"))
    told = (
        "server is to accept connections at tcp:{free_port}, and no command has {free_port}: write "
        "it into those of server and client, or the server's own port into tcp:PORT"
    )
    assert said == ("" if is_told else told)

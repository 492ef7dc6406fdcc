"""What the roles of a study are for is seen by its structure, whatever the roles are called."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from concurve.definition.origins import Origins
from concurve.definition.purposes import Purposes, alone, purposes_of, unawaited
from concurve.definition.study import Extract, Indicator, Role, Study
from concurve.definition.study_check import check
from concurve.errors import StudyError
from concurve.wire.spec import ReadyProbe
from tests.helpers.fakes import small_study

#: Names that meant something once, and some that never did.
NAMES = (
    ("target", "load", "fill", "verify"),
    ("load", "background", "verify", "client"),
    ("fill", "target", "background", "load"),
    ("a", "b", "c", "d"),
)


def serving(name: str, **more: Any) -> Role:
    given = {"command": ("./serve",), "end": "serve", "ready_probe": ReadyProbe(tcp="127.0.0.1:7"),
             **more}  # fmt: skip
    return Role(name=name, **given)


def ending(name: str, *command: str, **more: Any) -> Role:
    return Role(name=name, command=command or ("./run",), **more)


def study(measured: str, *roles: Role, **more: Any) -> Study:
    return msgspec.structs.replace(small_study(), roles=roles, target=measured, **more)


def said(measured: str, *roles: Role, **more: Any) -> tuple[str, tuple[str, ...], bool]:
    found = purposes_of(study(measured, *roles, **more))
    return found.subject, found.clients, found.serving


@pytest.mark.parametrize("names", NAMES)
class TestUnderAnyName:
    """The four names of a parameter are those of the measured role and of three others."""

    def test_a_program_by_itself(self, names: tuple[str, ...]) -> None:
        measured, other, *_ = names
        assert purposes_of(study(measured, ending(measured))) == alone(measured)
        competing = Role(
            name=other, program="targets", command=("busy", "--until-stopped"), end="serve",
            ready="report",
        )  # fmt: skip
        stress = Role(name=other, command=("stress",), end="serve")
        volume = Role(name=other, program="volume-bfq", command=(), end="serve", ready="report")
        for beside in (competing, stress, volume):
            assert said(measured, beside, ending(measured)) == (measured, (), False)

    def test_a_server_and_what_loads_it(self, names: tuple[str, ...]) -> None:
        measured, one, two, three = names
        fill = ending(one)
        load = ending(two, after=(one,))
        check_data = ending(three, after=(two,), purpose="setup")
        roles = (serving(measured), fill, load, check_data)
        assert said(measured, *roles) == (measured, (two,), True)
        assert said(measured, serving(measured), ending(one), ending(two)) == (
            measured, (one, two), True,
        )  # fmt: skip

    def test_what_the_server_waits_for_prepares_it(self, names: tuple[str, ...]) -> None:
        measured, one, two, _ = names
        server = serving(measured, after=(one,))
        assert said(measured, ending(one), server, ending(two)) == (measured, (two,), True)

    def test_a_role_whose_figures_are_asked_for_is_the_load(self, names: tuple[str, ...]) -> None:
        measured, one, two, _ = names
        roles = (serving(measured), ending(one), ending(two, after=(one,)))
        assert said(measured, *roles)[1] == (two,), "the last, where nothing is asked"
        figure = Indicator(name=f"{one}.tps", better="higher")
        assert said(measured, *roles, indicators=(figure,))[1] == (one,)
        printed = Extract(name=f"{one}.tps", pattern="(1)", role=one)
        assert said(measured, *roles, extracts=(printed,))[1] == (one,)

    def test_packaged_programs_that_prepare_or_check(self, names: tuple[str, ...]) -> None:
        measured, one, two, three = names
        roles = (
            Role(name=one, program="fill", command=("x",)),
            Role(name=two, program="load", command=("url", "--sessions", "1"), after=(one,)),
            Role(name=three, program="load", command=("url", "--verify-only"), after=(two,)),
        )
        assert said(measured, serving(measured), *roles) == (measured, (two,), True)

    def test_a_measured_client_of_a_server(self, names: tuple[str, ...]) -> None:
        measured, server, other, _ = names
        on_port = serving(server, ready_probe=None, command=("./serve", "-p", "{free_port}"))
        client = ending(measured, "./client", "127.0.0.1:{free_port}")
        served = (server, (measured,), True)
        assert said(measured, on_port, client) == served, "it connects to it"
        assert said(measured, serving(server), ending(measured)) == served, "it was awaited"
        attached = Role(name=server, command=(), attach="4711", end="serve")
        assert said(measured, attached, ending(measured)) == served
        silent = Role(name=server, command=("./serve",), end="serve")
        assert said(measured, silent, ending(measured)) == (measured, (), False)
        told = msgspec.structs.replace(silent, purpose="server")
        assert said(measured, told, ending(measured)) == served
        remote = Role(name=server, program="remote", command=("db1",), end="serve", ready="report")
        assert said(measured, remote, ending(measured)) == (measured, (), False)
        database = serving(other, ready_probe=ReadyProbe(tcp="127.0.0.1:5432"))
        front = serving(server, ready_probe=ReadyProbe(tcp="127.0.0.1:8080"))
        web = ending(measured, "wrk", "http://127.0.0.1:8080/")
        assert said(measured, database, front, web) == served, "the one that it names"

    def test_of_a_remote_server_the_load_is_explained(self, names: tuple[str, ...]) -> None:
        measured, load, *_ = names
        remote = Role(name=measured, program="remote", command=("db",), end="serve", ready="report")
        found = purposes_of(study(measured, remote, ending(load)))
        assert (found.measured, found.subject, found.serving) == (measured, load, False)


def test_further_loads_beside_a_measured_one_connect_too_or_say_so() -> None:
    server = serving("s", ready_probe=ReadyProbe(tcp="127.0.0.1:8080"))
    fill, sampler = ending("fill", ":8080"), ending("sampler")
    reader = ending("reader", ":8080", after=("fill",))
    loads = Purposes("reader", "s", ("reader", "writer"), True, ("fill", "sampler"))
    for writer in (ending("writer", ":8080"), ending("writer", purpose="load")):
        assert purposes_of(study("reader", server, fill, sampler, writer, reader)) == loads


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        ((ending("t"), ending("s", purpose="server")), "role s: purpose 'server'"),
        ((ending("t"), serving("l", purpose="load")), "role l: purpose 'load'"),
        ((ending("t", purpose="setup"),), "the measured role"),
        (
            (ending("t"), serving("a", purpose="server"), serving("b", purpose="server")),
            "two roles",
        ),
    ],
)
def test_purposes_that_cannot_be(roles: tuple[Role, ...], says: str) -> None:
    made = msgspec.structs.replace(study("t", *roles), factors=())
    with pytest.raises(StudyError) as refused:
        check(made, Origins("mine.toml"))
    assert says in refused.value.what and refused.value.what.startswith("mine.toml")
    assert refused.value.remedy


WRK = ("wrk", "-c8", "http://127.0.0.1:8080/")


@pytest.mark.parametrize(
    ("server", "client", "port"),
    [
        (("nginx", "-c", "n.conf"), WRK, "8080"),
        (("./kv", "{free_port}"), ("./ask", "{free_port}"), "{free_port}"),
        (("./kv", "--port", "6399"), ("./ask", "-p", "6399", "-n", "9999"), "6399"),
        (("./kv", "--port=7000", "4"), ("./ask", "h", "4"), None),
        (("stress", "-c", "2"), ("./sum", "8080"), None),
        (("kv", "--sock", "/t/2026/s", "--max", "9000"), ("ask", "/t/2026/s", "-n", "9000"), None),
        (("./backend", "--port", "9000"), WRK, None),  # the load asks another one
        (("./kv", "6399"), ("./ask", "6399", "-n", "9999"), "6399"),
    ],
)
def test_a_server_that_a_load_connects_to_is_to_be_awaited(
    server: tuple[str, ...], client: tuple[str, ...], port: str | None
) -> None:
    serves = serving("a", command=server, ready_probe=None)
    assert unawaited(study("b", serves, ending("b", *client))).get("a") == port


def test_what_is_awaited_runs_already_or_competes_needs_no_sign() -> None:
    load, bare = ending("b", *WRK), serving("a", ready_probe=None)
    assert unawaited(study("b", bare, load)) == {"a": "8080"}
    for other in (
        serving("a"),
        serving("a", ready="report", ready_probe=None),
        serving("a", ready_probe=None, command=(), attach="4711"),
        serving("a", ready_probe=None, purpose="background"),
    ):
        assert unawaited(study("b", other, load)) == {}
    assert unawaited(study("b", serving("c"), bare, load)) == {}, "the other one is loaded"

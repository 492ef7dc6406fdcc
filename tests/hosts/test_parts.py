"""A trial over hosts as a spec for each runner."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.hosts.parts import COMMAND, ENDED, HOLD, PASS, STAND_IN, Part, split, waves
from concurve.wire.spec import ReadyProbe, RoleSpec, TrialSpec


def server(name: str = "target", host: str = "a") -> RoleSpec:
    return RoleSpec(name=name, argv=("serve",), end="serve", ready="report", host=host)


def load(name: str = "load", host: str = "b", after: tuple[str, ...] = ()) -> RoleSpec:
    return RoleSpec(name=name, argv=("load",), host=host, after=after)


def parts(*roles: RoleSpec) -> dict[str, Part]:
    spec = TrialSpec(trial="t", roles=roles)
    return {part.host: part for part in split(spec, {"a": (2, 3)})}


def names(part: Part) -> list[str]:
    return [role.name for role in part.spec.roles]


def test_a_trial_on_one_host_is_its_own_spec() -> None:
    (part,) = parts(server(), load(host="a")).values()
    assert names(part) == ["target", "load"]
    assert all(role.host is None for role in part.spec.roles)
    assert (part.gates, part.holds, part.tells_end) == ({}, False, False)


def test_the_load_waits_for_the_server_elsewhere_and_the_server_for_its_end() -> None:
    found = parts(server(), load())
    assert names(found["a"]) == ["target", "@gate-1"]
    assert names(found["b"]) == ["@gate-1", "load"]
    gate_a, gate_b = found["a"].spec.roles[1], found["b"].spec.roles[0]
    assert gate_a.argv == (COMMAND, "@gate-1", HOLD)
    assert gate_b.argv == (COMMAND, "@gate-1", PASS)
    assert gate_a.ready == gate_b.ready == "report"
    assert gate_a.controls.cpus == (2, 3) and gate_b.controls.cpus is None
    assert found["a"].gates == {"@gate-1": ()} and found["b"].gates == {"@gate-1": ("load",)}
    assert (found["a"].holds, found["a"].tells_end) == (True, False)
    assert (found["b"].holds, found["b"].tells_end) == (False, False)


def test_loads_on_several_hosts_start_together() -> None:
    found = parts(load("load-1", "a"), load("load-2", "b"))
    assert names(found["a"]) == ["@gate-0", "load-1"]
    assert names(found["b"]) == ["@gate-0", "load-2"]


def test_a_server_beside_a_load_of_its_own_tells_when_that_has_ended() -> None:
    found = parts(server(), load("load-1", "a"), load("load-2", "b"))
    assert names(found["a"]) == ["target", "@gate-1", "load-1", "@gate-2", ENDED]
    hold, ended = found["a"].spec.roles[-2:]
    assert (hold.argv[2], hold.ready) == (HOLD, "launch")
    assert (ended.argv[2], ended.after) == (HOLD, ("load-1",))
    assert (found["a"].holds, found["a"].tells_end) == (True, True)


def test_who_waits_for_the_end_of_a_role_elsewhere_waits_at_its_gate() -> None:
    found = parts(server(), load("fill", "a"), load("load", "b", after=("fill",)))
    assert names(found["a"]) == ["target", "fill", "@gate-2", ENDED]
    assert found["a"].spec.roles[2].after == ("fill",)
    assert found["b"].spec.roles[-1].after == (), "its own runner does not know that role"


def test_a_role_still_waits_for_those_of_its_own_host() -> None:
    found = parts(server(), load("fill", "b"), load("load", "b", after=("fill",)))
    assert names(found["b"]) == ["@gate-1", "fill", "load"]
    assert found["b"].spec.roles[-1].after == ("fill",)


def test_waves_begin_after_what_is_awaited() -> None:
    probed = msgspec.structs.replace(load("x"), ready_probe=ReadyProbe(tcp="h:1"))
    roles = [load("a"), server("b"), load("c"), probed, load("d"), load("e", after=("a",))]
    grouped = [[role.name for role in wave] for wave in waves(roles)]
    assert grouped == [["a", "b"], ["c", "x"], ["d"], ["e"]]


HOSTS = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from(["serve", "exit"])


@given(st.lists(st.tuples(HOSTS, KINDS, st.booleans()), min_size=1, max_size=7), st.data())
def test_any_trial_can_be_opened_gate_by_gate_to_its_end(
    drawn: list[tuple[str, str, bool]], data: st.DataObject
) -> None:
    roles: list[RoleSpec] = []
    for number, (host, end, awaited) in enumerate(drawn):
        earlier = [role.name for role in roles if role.end == "exit"]
        after = tuple(data.draw(st.lists(st.sampled_from(earlier), max_size=1))) if earlier else ()
        roles.append(
            RoleSpec(
                name=f"r{number}",
                argv=("x",),
                host=host,
                end="serve" if end == "serve" else "exit",
                ready="report" if awaited else "launch",
                after=after,
            )
        )
    if all(role.end == "serve" for role in roles):
        return
    found = parts(*roles)
    order = play(found)
    assert sorted(order) == sorted(role.name for role in roles)
    for before, behind in pairwise(waves(roles)):
        last = max(order.index(role.name) for role in before)
        assert all(order.index(role.name) > last for role in behind), order
    # No runner waits for a role that it does not have.
    for part in found.values():
        own = {role.name for role in part.spec.roles}
        assert all(set(role.after) <= own for role in part.spec.roles)


def play(found: dict[str, Part]) -> list[str]:
    """Run the parts as runners and the laboratory would, without time; the roles in the
    order in which they were started.
    Every role that ends by itself does so at once; gates open when all hosts have reached them."""
    started: dict[str, list[str]] = {host: [] for host in found}
    order: list[str] = []
    opened: set[str] = set()
    finished = False
    for _ in range(100):
        before = (sum(map(len, started.values())), len(opened), finished)
        for host, part in found.items():
            order += advance(part, started[host], opened)
        for gate in sorted({gate for part in found.values() for gate in part.gates}):
            having = [part for part in found.values() if gate in part.gates]
            if all(gate in started[part.host] for part in having):
                opened.add(gate)
        finished = finished or all(
            (part.holds and (not part.tells_end or ENDED in started[host]))
            or (not part.holds and len(started[host]) == len(part.spec.roles))
            for host, part in found.items()
        )
        if (sum(map(len, started.values())), len(opened), finished) == before:
            break
    assert finished, started
    return [name for name in order if not name.startswith(STAND_IN)]


def advance(part: Part, started: list[str], opened: set[str]) -> list[str]:
    """Start what a runner would start: in order, when the earlier ones are ready."""
    begun: list[str] = []
    specs = {role.name: role for role in part.spec.roles}
    for role in part.spec.roles[len(started) :]:
        waits = any(name in part.gates and name not in opened for name in started if name in specs)
        ended = all(name in started and (not name.startswith(STAND_IN)) for name in role.after)
        if waits or not ended:
            break
        started.append(role.name)
        begun.append(role.name)
    return begun


@pytest.mark.parametrize("count", [2, 5])
def test_each_host_has_one_part(count: int) -> None:
    found = parts(*(load(f"load-{i}", f"h{i}") for i in range(count)))
    assert list(found) == [f"h{i}" for i in range(count)]

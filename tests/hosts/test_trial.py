"""A trial over hosts by a clock that moves only where a question takes time, or where a test says
so: starts at an agreed time, and what is stated of clocks that drift."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import msgspec
import pytest

from concurve.hosts import host as host_module
from concurve.hosts import messages as m
from concurve.hosts import trial as trial_module
from concurve.hosts.engine import HostsEngine
from concurve.hosts.messages import Event
from concurve.wire import decode_record, decode_spec
from concurve.wire.record import TrialRecord
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.agents import inventory_of
from tests.helpers.described import DESCRIPTION, FILES
from tests.helpers.fakes import record_of

MS = 1_000_000
SECOND = 1_000 * MS


class Clock:
    """In the place of the module ``time``."""

    def __init__(self) -> None:
        self.ns = 1_000 * SECOND

    def monotonic_ns(self) -> int:
        return self.ns

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    found = Clock()
    monkeypatch.setattr(host_module, "own_files", lambda: FILES)
    for module in (host_module, trial_module):
        monkeypatch.setattr(module, "time", found)
    yield found


class Host:
    """A connection to a host whose clock is ahead of ours and drifts, and to which a question takes
    a time. Its part of a trial is at its gates at once, and over when they are open; ``begins`` and
    ``runs`` say how long it prepares and runs, where that takes any time."""

    def __init__(
        self,
        clock: Clock,
        round_trip_ns: int,
        drift: float = 0.0,
        begins_ns: int = 0,
        runs_ns: int = 0,
    ) -> None:
        self._clock = clock
        self._round_trip_ns = round_trip_ns
        self._drift = drift
        self._begins_ns, self._runs_ns = begins_ns, runs_ns
        self._began_ns = clock.ns
        self._events: deque[Event] = deque()
        self._spec: TrialSpec | None = None
        self.opened: list[tuple[int, int]] = []

    def truth(self) -> int:
        """What its clock shows more than ours."""
        return 5 * SECOND + round((self._clock.ns - self._began_ns) * self._drift)

    def exchange(self, body: bytes, seconds: float) -> bytes:
        request = m.request_of(body[4:])
        value: object = None
        match request:
            case m.Watch():  # asked in a thread of its own, beside all others
                time.sleep(0.002)
                value = [self._events.popleft() for _ in range(len(self._events))]
            case m.Describe():
                value = DESCRIPTION
            case m.Quit():
                pass
            case _:
                self._clock.ns += self._round_trip_ns
                self._do(request)
        return m.packed(m.Done(value))[4:]

    def _do(self, request: m.Request) -> None:
        match request:
            case m.Begin(spec):
                self._clock.ns += self._begins_ns
                self._spec = decode_spec(spec)
                gates = [role.name for role in self._spec.roles if role.name.startswith("@")]
                self._events.extend(Event(reached=gate) for gate in gates)
            case m.Open(_, at_ns):
                self.opened.append((at_ns, self._clock.ns + self.truth()))
                self._clock.ns += self._runs_ns
                assert self._spec is not None
                record = msgspec.json.encode(record_of(self._spec, 1.0))
                self._events.append(Event(record=record))

    def clock(self) -> int:
        self._clock.ns += self._round_trip_ns // 2
        found = self._clock.ns + self.truth()
        self._clock.ns += self._round_trip_ns // 2
        return found

    def another(self) -> Host:
        return self

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


def run(hosts: dict[str, Host]) -> TrialRecord:
    """A load on each host, all of which start at one time."""
    roles = tuple(RoleSpec(name=f"load-{name}", argv=("x",), host=name) for name in hosts)
    inventory = inventory_of({name: f"10.0.0.{n}" for n, name in enumerate(hosts, 1)})
    with HostsEngine(inventory, hosts) as engine:
        spec = TrialSpec(trial="t", roles=roles, time_limit_ns=60 * SECOND)
        return decode_record(engine.run(spec))


@pytest.mark.parametrize("count", [2, 13, 40])
def test_the_last_of_many_hosts_knows_the_time_before_it_comes(clock: Clock, count: int) -> None:
    """They are told one after the other, in the time of a call of Ray each."""
    hosts = {f"h{n}": Host(clock, round_trip_ns=MS) for n in range(count)}
    run(hosts)
    for host in hosts.values():
        ((at_ns, told_ns),) = host.opened
        assert told_ns < at_ns


#: 20 parts in a million, one way and the other.
DRIFTS = [2e-5, -2e-5]


@pytest.mark.parametrize("drift", DRIFTS)
def test_the_stated_error_covers_a_clock_that_drifts_while_the_trial_runs(
    clock: Clock, drift: float
) -> None:
    """60 s of 20 parts in a million are 1.2 ms; each exchange alone is good to 0.05 ms."""
    late = Host(clock, 100_000, drift, runs_ns=60 * SECOND)
    before = late.truth()
    record = run({"a": Host(clock, 100_000), "b": late})
    stated = record.hosts[1]
    assert stated.clock_offset_ns is not None and stated.clock_error_ns is not None
    for truth in (before, late.truth()):
        assert abs(stated.clock_offset_ns - truth) <= stated.clock_error_ns
    assert stated.clock_error_ns < MS, "half of what it drifted, and of a round trip"


@pytest.mark.parametrize("drift", DRIFTS)
def test_a_start_long_after_the_clocks_were_read_is_as_exact(clock: Clock, drift: float) -> None:
    """A server may be filled for minutes before its load may start."""
    filled = Host(clock, 100_000, begins_ns=60 * SECOND)
    drifting = Host(clock, 100_000, drift)
    run({"a": filled, "b": drifting})
    ours = [host.opened[0][0] - host.truth() for host in (filled, drifting)]
    assert abs(ours[0] - ours[1]) < 200_000


def test_a_figure_that_a_host_does_not_have_is_absent_with_a_reason(clock: Clock) -> None:
    record = run({"a": Host(clock, 100_000), "b": Host(clock, 100_000)})
    for host in record.hosts:
        assert host.engine_cpu_ns is None and "not marked" in host.absent["engine_cpu_ns"]
        assert set(host.absent) == {"begin_ns", "engine_cpu_ns", "start_late_ns"}


def test_a_host_alone_has_no_other_clock(clock: Clock) -> None:
    """Its part has no gate: it is over when it has begun."""
    alone = Host(clock, 100_000)
    original: Callable[[m.Request], None] = alone._do

    def do(request: m.Request) -> None:
        original(request)
        if isinstance(request, m.Begin):
            original(m.Open("@gate-0", 0))

    alone._do = do  # type: ignore[method-assign]
    (host,) = run({"a": alone}).hosts
    assert host.clock_offset_ns is None and "one host" in host.absent["clock_offset_ns"]
    assert host.clock_error_ns is None and "one host" in host.absent["clock_error_ns"]

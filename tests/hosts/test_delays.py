"""Trials over hosts whose connections go through a relay in user space that delays them: what is
said of clocks and starts covers the truth, which is known, because these hosts share a clock.
Nothing here asks how fast something is. Long: marked for the soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.hosts.engine import HostsEngine
from concurve.wire import decode_record
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers import real
from tests.helpers.agents import Agents, inventory_of
from tests.helpers.relay import Way, relayed

pytestmark = [
    pytest.mark.soak,
    pytest.mark.real,
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
]

TWO = {"a": "127.0.0.1", "b": "127.0.0.2"}
TRIALS = 10

EQUAL = Way(5.0, 5.0, 1.0)
UNEQUAL = Way(2.0, 8.0, 1.0)

#: No way without a relay is known as badly.
THROUGH_NS = 500_000

#: When a role was released is read to some µs by the clock of its host; this is far more.
READING_NS = 1_000_000


@pytest.mark.parametrize("ways", [(EQUAL, EQUAL), (EQUAL, UNEQUAL)], ids=["equal", "unequal"])
def test_what_is_said_of_clocks_and_starts_covers_the_truth(
    tmp_path: Path, ways: tuple[Way, Way]
) -> None:
    agents = Agents(tmp_path, inventory_of(TWO))
    roles = tuple(RoleSpec(name=f"load-{host}", argv=("true",), host=host) for host in TWO)
    try:
        agents.start()
        with (
            relayed(agents.paths, dict(zip(TWO, ways, strict=True))) as connections,
            HostsEngine(agents.inventory, connections) as engine,
        ):
            for number in range(TRIALS):
                spec = TrialSpec(trial=f"delayed-{number}", roles=roles, time_limit_ns=60 * 10**9)
                record = decode_record(engine.run(spec))
                assert record.outcome.kind == "ok", record.outcome
                apart, bound = 0, 0
                for role, host in zip(record.roles, record.hosts, strict=True):
                    offset, error = host.clock_offset_ns, host.clock_error_ns
                    assert offset is not None and error is not None
                    assert abs(offset) <= error, "the true offset is 0"
                    assert error >= THROUGH_NS, "it went through the relay"
                    # The offset was taken off; what comes back is the time on the clock of both.
                    apart = role.released_ns + offset - apart
                    bound += error + (host.start_late_ns or 0)
                assert abs(apart) <= bound + READING_NS
    finally:
        agents.end()

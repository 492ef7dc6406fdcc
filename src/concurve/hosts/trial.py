"""One trial over hosts, from its start to its record: each runner has the roles of its host, the
gates between them are opened at agreed times, and the records are merged."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from concurve.definition.inventory import Inventory
from concurve.engine.local import STOP_SECONDS, revealed
from concurve.errors import HostError, RunError
from concurve.hosts import messages as m
from concurve.hosts.clocks import Offset, spanning
from concurve.hosts.connection import QUICK_SECONDS
from concurve.hosts.host import ConnectedHost, HostEvent, HostEvents
from concurve.hosts.merging import Measured, merge
from concurve.hosts.messages import Request
from concurve.hosts.parts import ENDED, Part, split
from concurve.secrets import KNOWN
from concurve.wire import decode_record, encode_spec
from concurve.wire.record import TrialRecord
from concurve.wire.spec import TrialSpec

#: A gate opens so long after the laboratory has decided it, and after so many times the round trips
#: to all hosts that are told, one after the other: the last one is to know the time in time.
LEAD_NS = 10_000_000
LEAD_ROUND_TRIPS = 4

#: Clocks are compared again before a gate opens if that was longer ago: 50 parts in a million of it
#: are a quarter of a millisecond.
OFFSET_NS = 5_000_000_000

#: What a trial may take beyond its own limit: its start on all hosts, and its end.
MARGIN_SECONDS = 60.0

#: A host whose clock cannot be told better than this is of no use to a trial.
CLOCK_ERROR_MOST_NS = 100_000_000


class TrialOverHosts:
    """A trial on the ``hosts`` that its spec names; the first host has the roles that name none."""

    def __init__(
        self,
        spec: TrialSpec,
        hosts: Mapping[str, ConnectedHost],
        inventory: Inventory,
        events: HostEvents,
    ) -> None:
        self._spec = spec
        self._hosts = hosts
        self._events = events
        housekeeping = {host.name: host.housekeeping for host in inventory.hosts}
        self._parts = {part.host: part for part in split(spec, housekeeping)}
        self._reached: dict[str, set[str]] = {}
        self._records: dict[str, TrialRecord] = {}
        self._engine_cpu_ns: dict[str, int | None] = {}
        self._broken: set[str] = set()
        self._went_wrong = False
        self._stopped: set[str] = set()
        self._opened: dict[str, dict[str, tuple[int, tuple[str, ...]]]] = {}
        self._offsets: dict[str, Offset] = {}
        self._spans: dict[str, Offset] = {}
        self._begun: list[str] = []
        self._lets_end = False
        limit = spec.time_limit_ns
        seconds = MARGIN_SECONDS + spec.stop_grace_ns / 1e9
        seconds += limit / 1e9 if isinstance(limit, int) else float("inf")
        self._until = time.monotonic() + seconds

    def run(self) -> TrialRecord:
        """Start the parts, open the gates, and merge the records."""
        self._events.forget()
        self._read_clocks()
        for name, part in self._parts.items():
            self._ask(name, m.Begin(encode_spec(revealed(part.spec)), self._spec.trial))
            self._begun.append(name)
        for gate in self._gates():
            self._wait_for(partial(self._all_reached, gate))
            if not self._went_wrong:
                self._open(gate)
        self._wait_for(self._own_roles_have_ended)
        self._let_servers_end()
        self._wait_for(self._all_have_recorded)
        self._read_clocks()
        return merge(self._spec, self._measured(), frozenset(self._stopped))

    def abandon(self) -> None:
        """End what runs, after an error or for the user."""
        for name in self._begun:
            if name not in self._records:
                with contextlib.suppress(RunError, HostError):
                    self._ask(name, m.Stop())
        until = time.monotonic() + STOP_SECONDS
        with contextlib.suppress(RunError):
            while self._still_run() and time.monotonic() < until:
                self._take(self._events.next(until - time.monotonic()))

    def _still_run(self) -> bool:
        """Does the trial run on a host that is not lost?"""
        running = set(self._begun) - set(self._records) - self._broken
        return any(self._host(name).lost is None for name in running)

    def _ask(self, name: str, request: Request) -> None:
        """Have something done in the trial, which takes no time."""
        self._host(name).ask(request, QUICK_SECONDS)

    def _gates(self) -> list[str]:
        """The gates of all parts, in the order of the waves."""
        found = {gate for part in self._parts.values() for gate in part.gates}
        return sorted(found, key=lambda gate: int(gate.rpartition("-")[2]))

    def _read_clocks(self) -> None:
        """Compare the clocks of the hosts, if there are several. What was found before still bounds
        the offset of the trial: clocks drift apart while it runs."""
        if len(self._parts) > 1:
            for name in self._parts:
                found = self._usable_offset(name)
                self._offsets[name] = found
                self._spans[name] = spanning(self._spans.get(name, found), found)

    def _usable_offset(self, name: str) -> Offset:
        offset = self._host(name).offset()
        if offset.error_ns > CLOCK_ERROR_MOST_NS:
            raise RunError(
                f"host {name}: its clock is known to {offset.error_ns / 1e6:.0f} ms only: a round "
                "trip to it takes too long",
                "hosts on one network; look at its load",
            )
        return offset

    def _all_reached(self, gate: str) -> bool:
        parts = [part for part in self._parts.values() if gate in part.gates]
        return self._went_wrong or all(
            part.host in self._records or gate in self._reached.get(part.host, ()) for part in parts
        )

    def _open(self, gate: str) -> None:
        """Open a gate on all hosts that have it, at one time."""
        told = [
            part
            for name, part in self._parts.items()
            if gate in part.gates and name not in self._records
        ]
        old_ns = time.monotonic_ns() - OFFSET_NS
        if any(self._offsets[part.host].at_ns < old_ns for part in told):
            self._read_clocks()
        telling = sum(self._host(part.host).usual_round_trip_ns for part in told)
        at_ns = time.monotonic_ns() + LEAD_NS + LEAD_ROUND_TRIPS * telling
        for part in told:
            local = self._offsets[part.host].remote(at_ns)
            self._ask(part.host, m.Open(gate, local))
            self._opened.setdefault(part.host, {})[gate] = (local, part.gates[gate])

    def _own_roles_have_ended(self) -> bool:
        """Have the roles that end by themselves done so on each host?"""
        return self._went_wrong or all(map(self._has_ended, self._parts.values()))

    def _has_ended(self, part: Part) -> bool:
        if part.host in self._records or (part.holds and not part.tells_end):
            return True
        return part.tells_end and ENDED in self._reached.get(part.host, ())

    def _let_servers_end(self) -> None:
        self._lets_end = True
        for part in self._parts.values():
            if part.holds and part.host not in self._records:
                self._ask(part.host, m.Finish())

    def _all_have_recorded(self) -> bool:
        return len(self._records) == len(self._parts)

    def _wait_for(self, is_done: Callable[[], bool]) -> None:
        """Take what happens until something is so."""
        while not is_done():
            left = self._until - time.monotonic()
            if left <= 0:
                missing = ", ".join(name for name in self._parts if name not in self._records)
                raise RunError(
                    f"the trial did not end on {missing}, long after its time limit",
                    "look at these hosts; then concurve resume last",
                )
            self._take(self._events.next(min(left, 3600.0)))

    def _stop_others(self) -> None:
        """The trial has ended early on a host: end it on the others."""
        self._went_wrong = True
        for name in self._begun:
            if name not in self._records and name not in self._stopped:
                self._stopped.add(name)
                self._ask(name, m.Stop())

    def _take(self, happened: HostEvent | None) -> None:
        if happened is None or happened.event is None or happened.host not in self._parts:
            return
        host, event = happened.host, happened.event
        if event.reached is not None:
            self._reached.setdefault(host, set()).add(event.reached)
        elif event.line is not None:
            self._mark(host, event.line)
        elif event.record is not None:
            self._engine_cpu_ns[host] = event.engine_cpu_ns
            self._ended(host, decode_record(KNOWN.hide_json(event.record)))
        elif event.error is not None:
            self._broken.add(host)  # its runner has ended, without a record
            raise RunError(
                f"host {host}: {KNOWN.hide(event.error)}",
                "concurve resume last, once the cause is corrected",
            )

    def _ended(self, host: str, record: TrialRecord) -> None:
        """A part is over: in order, or before the roles on other hosts have ended."""
        self._records[host] = record
        early = self._parts[host].holds and not self._lets_end
        if (record.outcome.kind != "ok" or early) and not self._went_wrong:
            self._stop_others()

    def _mark(self, host: str, line: dict[str, Any]) -> None:
        """Let hosts that serve a role elsewhere read their probes at the edges of its phases."""
        at_ns = line.get("at_ns")
        for part in self._parts.values():
            if part.holds and part.host != host and part.host not in self._records:
                line_there = dict(line)
                if isinstance(at_ns, int):
                    here_ns = self._offsets[host].ours(at_ns)
                    line_there["at_ns"] = self._offsets[part.host].remote(here_ns)
                self._ask(part.host, m.Mark(line_there))

    def _measured(self) -> list[Measured]:
        return [
            Measured(
                host=name,
                record=self._records[name],
                offset=self._spans.get(name),
                opened=self._opened.get(name, {}),
                engine_cpu_ns=self._engine_cpu_ns.get(name),
            )
            for name in self._parts
        ]

    def _host(self, name: str) -> ConnectedHost:
        return self._hosts[name] if name else next(iter(self._hosts.values()))

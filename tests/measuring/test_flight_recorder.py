"""What a flight recording says of a program, without its secrets."""

from __future__ import annotations

from concurve.measuring import flight_recorder
from concurve.secrets import KNOWN
from concurve.wire.record import RecordedOwner, RecordedSite, RecordedWaits


def test_a_secret_in_the_name_of_a_thread_is_hidden() -> None:
    KNOWN.add("PASSWORD", "correct-horse-battery")
    owner = RecordedOwner("pool of jdbc:me:correct-horse-battery@db", events=3)
    site = RecordedSite(
        kind="monitor",
        primitive="mutex",
        function="Table.add",
        events=3,
        blocked_ns=9,
        lock="Table",
        owners=(owner,),
    )
    (hidden,) = flight_recorder._hidden(RecordedWaits(listed=(site,))).listed
    assert "correct-horse" not in hidden.owners[0].name
    assert (hidden.function, hidden.lock, hidden.events) == ("Table.add", "Table", 3)

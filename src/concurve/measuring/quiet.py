"""Waits until other processes and other measurements leave the machine alone, by the limits of a
clean trial."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from concurve.definition.study import Study
from concurve.definition.units import format_duration
from concurve.errors import BusyError, HostError
from concurve.host.attaching import find
from concurve.host.load import Load, load_over
from concurve.host.lock import measurement_lock
from concurve.readings.contamination import FOREIGN_SHARE_MAX, STEAL_SHARE_MAX
from concurve.wire.spec import Attach

#: The machine is looked at for so long each time,
WINDOW_SECONDS = 1.0
#: and is quiet after so many quiet looks in a row.
QUIET_LOOKS = 3
#: What disturbs is said again after so long.
SAY_SECONDS = 10.0


def is_quiet(load: Load) -> bool:
    """Would a trial under this load count as clean?"""
    return load.foreign <= FOREIGN_SHARE_MAX and load.steal <= STEAL_SHARE_MAX


def disturbance(load: Load) -> str:
    """What disturbs, by name; empty if nothing does."""
    found = []
    if load.foreign > FOREIGN_SHARE_MAX:
        found.append(
            f"other processes use {load.foreign * 100:.0f} % of the CPU time (limit "
            f"{FOREIGN_SHARE_MAX * 100:.0f} %): {load.named}"
        )
    if load.steal > STEAL_SHARE_MAX:
        found.append(
            f"the hypervisor takes {load.steal * 100:.0f} % of the CPU time (limit "
            f"{STEAL_SHARE_MAX * 100:.0f} %)"
        )
    return "; ".join(found)


def attached_in(studies: Iterable[Study]) -> list[Attach]:
    """The processes that roles of some studies are attached to.

    Raises:
        HostError: there are no such processes.
    """
    roles = [role for study in studies for role in study.roles]
    return [
        role.attached or find(role.attach, f"role {role.name}") for role in roles if role.attach
    ]


@contextlib.contextmanager
def quiet_machine(
    seconds: float,
    say: Callable[[str], None],
    look: Callable[[], Load] | None = None,
    clock: Callable[[], float] = time.monotonic,
    attached: Sequence[Attach] = (),
) -> Iterator[None]:
    """Have the machine for one's own measurements once it is quiet and no other measurement runs:
    of several that wait, one gets it, and the others wait on. ``say`` hears what disturbs
    meanwhile, and the result. The processes that are ``attached`` disturb no more than they do in
    a trial.

    Raises:
        HostError: it was not quiet within so many seconds; names what disturbed last.
    """
    look = look or (lambda: load_over(WINDOW_SECONDS, time.sleep, attached=attached))
    begun, said, quiet = clock(), -SAY_SECONDS, 0
    with contextlib.ExitStack() as held:
        while True:
            load = look()
            disturbs = disturbance(load)
            quiet = 0 if disturbs else quiet + 1
            if quiet >= QUIET_LOOKS:
                try:
                    held.enter_context(
                        measurement_lock("concurve, on a quiet machine", for_runs=True)
                    )
                    break
                except BusyError as error:
                    disturbs, quiet = error.what, 0
            waited = clock() - begun
            if disturbs and waited >= seconds:
                raise HostError(
                    f"the machine was not quiet within {format_duration(seconds)}: {disturbs}",
                    "end these processes, wait longer, or run without --wait-quiet: trials that "
                    "they disturb are marked",
                )
            if disturbs and waited - said >= SAY_SECONDS:
                said = waited
                say(f"waiting for a quiet machine: {disturbs}")
        say(f"the machine is quiet, after {format_duration(max(clock() - begun, 0.0))}")
        yield

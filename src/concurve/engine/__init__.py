"""Where trials run: on this machine (:mod:`~concurve.engine.local`), or over several hosts
(:mod:`concurve.hosts.engine`)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from concurve.errors import RunError
from concurve.wire.spec import TrialSpec


class Problem(NamedTuple):
    """Why a role of a spec cannot start here: ``kind`` is ``not_found``, ``not_executable`` or
    ``control_refused``."""

    role: str
    kind: str
    message: str


class TrialLostError(RunError):
    """What a trial runs on is gone, so that nothing of the trial is known; the error names it."""


class TrialInterrupt(KeyboardInterrupt):
    """The user stopped a trial, of which there is a ``record`` all the same."""

    def __init__(self, record: bytes) -> None:
        super().__init__()
        self.record = record


class Engine(Protocol):
    """Runs trials one at a time."""

    def run(self, spec: TrialSpec) -> bytes:
        """Run one trial and give its raw record.

        Raises:
            TrialLostError: a host of the trial, or the way to it, is gone.
            RunError: the runner itself failed.
            KeyboardInterrupt: the user stopped the trial; all its processes have ended. A
                ``TrialInterrupt`` has its record.
        """
        ...

    def check(self, spec: TrialSpec) -> list[Problem]:
        """Problems that would keep the roles of a spec from starting; no role is started."""
        ...

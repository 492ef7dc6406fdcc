"""How many trials of a run are rejected, used, in doubt, and set aside: one count for
every view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from concurve import words
from concurve.findings.cells import CellFindings, Reject


class TrialCounts(NamedTuple):
    """The trials that were ``made`` are ``rejected``, or ``in_use``. Of those in use some are
    ``doubted``: in doubt, as the machine was not quiet. Of these, ``set_aside`` do not count in the
    primary figure, as enough quieter ones do; the others in use are ``used``."""

    made: int
    rejected: int
    doubted: int
    set_aside: int

    @property
    def in_use(self) -> int:
        """Those that are not rejected."""
        return self.made - self.rejected

    @property
    def used(self) -> int:
        """Those that count in the primary figure."""
        return self.in_use - self.set_aside

    @property
    def aside(self) -> str:
        """`` (6 set aside)``, after the number of those in doubt; empty where none is."""
        if not self.set_aside:
            return ""
        every = "all" if self.set_aside == self.doubted > 1 else f"{self.set_aside:,}"
        return f" ({every} set aside)" if self.doubted > 1 else " (set aside)"

    @property
    def in_doubt(self) -> str:
        """``11 of 120 trials are in doubt (6 set aside)``."""
        of = words.count_of(self.doubted, self.in_use, "trial")
        return f"{of} {words.verb(self.doubted)} in doubt{self.aside}"

    @property
    def in_doubt_all_judged(self) -> str:
        """The same where those that are set aside count all the same, as ``--in-doubt`` asks."""
        them = words.verb(self.set_aside, "it", "them")
        return f"{self._replace(set_aside=0).in_doubt}; --in-doubt judges {them}, too"


def count_trials(
    made: int, rejects: Sequence[Reject], cells: Sequence[CellFindings]
) -> TrialCounts:
    """The counts of a run with so many trials."""
    doubted = sum(reject.used for reject in rejects)
    return TrialCounts(
        made=made,
        rejected=len(rejects) - doubted,
        doubted=doubted,
        set_aside=sum(cell.set_aside for cell in cells),
    )

"""All error types of Concurve.

Every message says what failed, where, and what to try. Only :mod:`concurve.cli` turns an
error into an exit code.
"""

from __future__ import annotations

from collections.abc import Callable


class ConcurveError(Exception):
    """Base of every error that Concurve raises on purpose.

    ``what`` says what failed and where, ``remedy`` what to try; ``str()`` joins them.
    """

    exit_code = 1

    def __init__(self, what: str, remedy: str = "") -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(self._text())

    def reword(self, words: Callable[[str], str]) -> None:
        """Say the same in other words, such as those of another interface."""
        self.what, self.remedy = words(self.what), words(self.remedy)
        self.args = (self._text(),)

    def _text(self) -> str:
        return f"{self.what}\n  try: {self.remedy}" if self.remedy else self.what


class StudyError(ConcurveError):
    """A study (file or command line) that cannot be run as written."""

    exit_code = 2


class HostError(ConcurveError):
    """This machine does not grant or does not have what the study needs."""

    exit_code = 3


class BusyError(HostError):
    """Another measurement runs on this machine."""


class StoreError(ConcurveError):
    """The store cannot be opened, read or written."""

    exit_code = 4


class RunError(ConcurveError):
    """A run could not go on; what was measured so far is stored."""

    exit_code = 5


class RunInterruptedError(ConcurveError):
    """The user stopped the run; it can be resumed."""

    exit_code = 130


class ComparisonError(ConcurveError):
    """Two runs that cannot be compared as asked."""

    exit_code = 6


class CampaignError(ConcurveError):
    """A campaign ended, and some of its studies, or some cells of these, failed or could not run
    here."""

    exit_code = 7


class FailedCellsError(ConcurveError):
    """A run ended, and in some of its cells the program failed; the others are stored."""

    exit_code = 7


class VerdictError(ConcurveError):
    """A comparison has the verdict that ``--fail-on`` names, or has no figures to judge."""

    exit_code = 10


class UndecidedError(VerdictError):
    """The only verdict that ``--fail-on`` names and a cell has: the trials do not tell."""

    exit_code = 11


def error_of(
    kind: str, what: str, remedy: str = "", otherwise: type[ConcurveError] = ConcurveError
) -> ConcurveError:
    """The error of another process of ours, as the type that has the same name here; as
    ``otherwise`` where none has."""
    found: object = globals().get(kind)
    if isinstance(found, type) and issubclass(found, ConcurveError):
        return found(what, remedy)
    return otherwise(what, remedy)

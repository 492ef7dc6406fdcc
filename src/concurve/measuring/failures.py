"""Failures that end a run: what was the matter, and what to do about it.

More trials would tell nothing new, or would spoil what a run has.
"""

from __future__ import annotations

from collections.abc import Mapping

from concurve import words
from concurve.definition.failures import all_failed
from concurve.definition.units import format_duration
from concurve.errors import RunError
from concurve.measuring.judgement import (
    CHECK,
    NOT_READY,
    TIMED_OUT,
    TIMED_OUT_BUSY,
    UNDECIDED,
    check_by_hand,
    ready_remedy,
)
from concurve.planning.plan import Plan, describe
from concurve.planning.protocol import CUT, LOST
from concurve.planning.protocol import Protocol as TrialProtocol
from concurve.readings.extraction import printed_line
from concurve.readings.still_running import STILL_RAN
from concurve.store.rows import Outcome, TrialKey
from concurve.wire import decode_record


class Failures:
    """Looks at the trials of one run as they come. ``is_resumed``: the run goes on, and none of its
    trials has succeeded since."""

    def __init__(self, plan: Plan, run: str) -> None:
        self._plan = plan
        self._run = run
        self.is_resumed = False
        #: Cells of which no trial since the start had anything but failures.
        self._only_failures: set[int] = set()
        self._has_successes = False

    def refuse_never_ready(self, protocol: TrialProtocol) -> None:
        """Fail after the first block, and the second trial, if no cell became ready: to wait again
        as long for each of them would tell nothing new.

        Raises:
            RunError: so it is.
        """
        if any(cell.used for cell in protocol.cells):
            return
        rejected = _not_lost(protocol)
        causes = [cause for cause, _ in rejected.values()]
        cells = {key.cell for key in rejected}
        if len(causes) < 2 or len(cells) < len(protocol.cells) or set(causes) != {NOT_READY}:
            return
        raise RunError(
            f"no cell became ready; the first, {self._described(rejected)}",
            ready_remedy([detail for _, detail in rejected.values()]),
        )

    def _described(self, rejected: Mapping[TrialKey, tuple[str, str]]) -> str:
        """The first of these trials: its setting, and why it was rejected."""
        key, why = next(iter(rejected.items()))
        return f"{describe(self._plan.cells[key.cell].parameters)}: {words.why(*why)}"

    def refuse_to_spoil(self, protocol: TrialProtocol, outcome: Outcome) -> None:
        """Stop before a failure is stored, where a cell that has figures fails in a run that is
        resumed: something is no longer as it was, and once that is mended the run goes on. Failures
        of a run are for good.

        Raises:
            RunError: so it is.
        """
        if not self.is_resumed:
            return
        if outcome.value is not None and outcome.verdict in ("ok", "contaminated"):
            self.is_resumed = False
            return
        cell = outcome.key.cell
        is_none = outcome.cause in (CUT, UNDECIDED) or outcome.verdict == "abandon"
        if is_none or not protocol.cells[cell].used or protocol.cells[cell].errors:
            return
        raise RunError(
            f"{describe(self._plan.cells[cell].parameters)} has been measured, and fails since the "
            f"run was resumed: {words.why(outcome.cause, outcome.detail)}; this failure is not "
            "stored",
            "what has changed since: a file, a server, the environment? Once it is as it was: "
            f"concurve resume {self._run}",
        )

    def refuse_only_failures(self, cell: int, figures: dict[str, float], record: bytes) -> None:
        """Fail once each cell has had a trial, if whatever the load did failed in all of them: more
        of it would tell nothing new.

        Raises:
            RunError: so it is.
        """
        if not figures or self._has_successes:
            return
        failed = all_failed(self._plan.study, figures)
        if failed is None:
            self._has_successes = True
            return
        self._only_failures.add(cell)
        if len(self._only_failures) < len(self._plan.cells):
            return
        raise RunError(
            f"{describe(self._plan.cells[cell].parameters)}: {failed.said}, as in every trial "
            f"before it{self._printed(failed.indicator, record)}",
            "what does the load ask for, and what does it get? Run its command by hand; "
            f"then concurve resume {self._run}, or a new run",
        )

    def _printed(self, indicator: str, record: bytes) -> str:
        """What the program printed of an indicator, to be quoted; empty if it is not read out of
        its output."""
        study = self._plan.study
        extract = next((item for item in study.extracts if item.name == indicator), None)
        role = decode_record(record).role((extract and extract.role) or study.target)
        line = printed_line(extract, role) if extract is not None and role is not None else ""
        return f"; the program printed {line!r}" if line else ""

    def refuse_run(self, protocol: TrialProtocol) -> None:
        """Fail if none was measured: every cell failed, or every trial that the time allowance had
        room for, or the first trial took all of it.

        Raises:
            RunError: so it is.
        """
        if any(cell.used for cell in protocol.cells):
            return
        rejected = _not_lost(protocol)
        allowed = format_duration(self._plan.rules.time_allowed_seconds)
        if rejected and {cause for cause, _ in rejected.values()} == {CUT}:
            key, (_, detail) = next(iter(rejected.items()))
            raise RunError(
                f"{describe(self._plan.cells[key.cell].parameters)}: the first trial did not end "
                f"within the time allowance of {allowed}: {detail}",
                _unending_remedy(rejected)
                or "a shorter trial: less work in its command, which should end by hand as well; "
                f"or concurve resume {self._run} --max-time TIME, with time for all trials",
            )
        failed = {key: why for key, why in rejected.items() if why[0] != CUT}
        if all(cell.skipped for cell in protocol.cells):
            what = f"every cell failed; the first: {protocol.cells[0].skipped}"
        elif protocol.all_failed():
            trials = words.count(len(failed), "trial")
            what = (
                f"no trial within the time allowance of {allowed} was measured: {trials} failed; "
                f"the first, {self._described(failed)}"
            )
        else:
            return
        raise RunError(what, self._remedy_for(failed))

    def _remedy_for(self, failed: Mapping[TrialKey, tuple[str, str]]) -> str:
        """What to do where all trials failed."""
        causes = {cause for cause, _ in failed.values()}
        if causes == {NOT_READY}:
            return ready_remedy([detail for _, detail in failed.values()])
        if causes <= {TIMED_OUT, TIMED_OUT_BUSY}:
            if remedy := _unending_remedy(failed):
                return remedy
            busy = ", on a quieter machine" if TIMED_OUT_BUSY in causes else ""
            return (
                f"a new run with more time for a trial{busy}: --timeout TIME, or timeout in the "
                "[protocol] of a study; how long does the command take by hand?"
            )
        if causes == {CHECK}:
            first = self._plan.cells[next(iter(failed)).cell]
            return f"{check_by_hand(self._plan, first)}; then a new run"
        return f"concurve show {self._run} --rejected; run the command by hand, then a new run"


def _unending_remedy(failed: Mapping[TrialKey, tuple[str, str]]) -> str:
    """What to do where each of these trials waited for a role that had nothing to do any more;
    empty elsewhere."""
    if not all(STILL_RAN in detail for _, detail in failed.values()):
        return ""
    return (
        'if the role that still ran is a server: end = "serve" in its entry of [[roles]], and a '
        "new run; more time helps only if it ends by itself"
    )


def _not_lost(protocol: TrialProtocol) -> dict[TrialKey, tuple[str, str]]:
    """The rejected trials that say something of the programs: none whose host was lost."""
    return {key: why for key, why in protocol.rejected.items() if why[0] != LOST}

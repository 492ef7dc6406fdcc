"""A campaign: its studies one after another, each a run of its own in the store.

A study that fails or cannot run here is stored with its reason, and the next one begins.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable

import msgspec

from concurve import interruption, words
from concurve.definition.campaign import Member
from concurve.definition.study import Study
from concurve.definition.study_check import with_rules
from concurve.engine import Engine
from concurve.errors import (
    BusyError,
    ConcurveError,
    RunError,
    RunInterruptedError,
    StoreError,
)
from concurve.measuring.folder import inside
from concurve.measuring.heads import check_time_left, new_head, with_allowance, with_wait
from concurve.measuring.laboratory import Progress, Runner, Silence
from concurve.measuring.quiet import Look
from concurve.measuring.site import Site
from concurve.planning.forecast import forecast, shortfall
from concurve.store import Store
from concurve.store.campaign_head import CampaignHead
from concurve.store.holder import process_of
from concurve.store.rows import MemberRow, RunRow
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import Waiting

ENDED = ("complete", "failed", "not run")


class CampaignRunner:
    """Runs a campaign, or what is missing of it. Store, engine, progress, clock and site are given,
    and ``look`` for runs that wait for a quiet machine; ``tell`` shows a line when a study begins
    and when one goes wrong."""

    def __init__(
        self,
        head: CampaignHead,
        store: Store,
        engine: Engine,
        tell: Callable[[str], None] = lambda text: None,
        progress: Callable[[], Progress] = Silence,
        clock: Callable[[], float] = time.monotonic,
        site: Site | None = None,
        look: Look | None = None,
    ) -> None:
        self.head = head
        self.store = store
        self.engine = engine
        self._tell = tell
        self._progress = progress
        self._clock = clock
        self._site = site
        self._look = look
        #: What each run may wait again, if the campaign is resumed so.
        self._waits_again: Waiting | None = None

    def start(self) -> list[MemberRow]:
        """Store the campaign and run its studies; return the state of each.

        Raises:
            RunInterruptedError: the user stopped it.
            BusyError: another measurement runs on this machine.
            StoreError: the store cannot be written.
        """
        rows = self.head.member_rows()
        begin = functools.partial(self.store.add_campaign, self.head.row(), rows)
        with interruption.handled():
            return self._run(begin, None)

    def resume(
        self, seconds_allowed: float | None = None, seconds_to_wait: float | None = None
    ) -> list[MemberRow]:
        """Resume every study that is not complete; as :meth:`start`.

        ``seconds_allowed`` is another time allowance for each of their runs, and
        ``seconds_to_wait`` what each may wait again for a quiet machine.

        Raises:
            BusyError: another process measures it now.
        """
        self.head.check_members(self.store.members(self.head.id))
        self._refuse_running()
        if seconds_to_wait is not None:
            self._waits_again = Waiting(seconds=seconds_to_wait)
        begin = functools.partial(self.store.set_campaign_state, self.head.id, "running", "")
        folder = inside(self.head.folder, f"campaign {self.head.id}")
        with folder, interruption.handled():
            return self._run(begin, seconds_allowed)

    def _refuse_running(self) -> None:
        """Refuse what another process measures: to begin would take the campaign from it."""
        holder = process_of(self.store.holder(self.head.id))
        if holder not in (None, os.getpid()):
            raise BusyError(
                f"campaign {self.head.id} is being measured by process {holder}",
                f"wait until it ends: concurve runs {self.head.id}",
            )

    def _run(self, begin: Callable[[], None], allowed: float | None) -> list[MemberRow]:
        """Store that the campaign goes on, and run the studies in order."""
        try:
            begin()
            for row in self.store.members(self.head.id):
                if row.state != "complete":
                    self._study(row, allowed)
        except (KeyboardInterrupt, RunInterruptedError):
            raise self._stopped("stopped by the user") from None
        except BusyError as error:
            self._stopped(error.what)
            raise BusyError(error.what, f"{error.remedy}; then {self._resume_line()}") from error
        return self._ended()

    def _study(self, row: MemberRow, allowed: float | None) -> None:
        member = self.head.campaign.studies[row.position]
        case = member.study.test_case
        total = len(self.head.campaign.studies)
        says = case.objective if case else member.study.question
        self._tell(f"study {row.position + 1} of {total}, {row.name}: {says}")
        try:
            run = self._measure(row, member, allowed)
        except (BusyError, RunInterruptedError, StoreError):
            raise
        except ConcurveError as error:
            self._went_wrong(row, error)
        else:
            self.store.set_member(self.head.id, row._replace(run=run, state="complete", reason=""))

    def _measure(self, row: MemberRow, member: Member, allowed: float | None) -> str:
        """Run the study, or go on with its run; the run's id."""
        begun = self._begun(row, allowed)
        if begun is not None:
            self._runner(begun).resume()
            return begun.id
        head = self._new_head(member, allowed)
        runner = self._runner(head)
        if short := shortfall(runner.plan, forecast(runner.plan, self.store)):
            self._tell(f"{row.name}: {short}")
        self.store.set_member(self.head.id, row._replace(run=head.id, state="begun", reason=""))
        runner.start()
        return head.id

    def _runner(self, head: RunHead) -> Runner:
        return Runner(
            head, self.store, self.engine, self._progress(), self._clock, self._site, self._look
        )

    def _begun(self, row: MemberRow, allowed: float | None) -> RunHead | None:
        """The head of the study's run, if it was stored.

        Raises:
            StudyError: its trials have used up what is allowed: to resume would end it there.
        """
        found = self._stored(row)
        if found is None:
            return None
        head = with_wait(decode_head(found), self._waits_again)
        if allowed is None:
            return head
        check_time_left(head, self.store, allowed)
        return with_allowance(head, allowed)

    def _stored(self, row: MemberRow) -> RunRow | None:
        return next((run for run in self.store.runs() if row.run and run.id == row.run), None)

    def _new_head(self, member: Member, allowed: float | None) -> RunHead:
        study: Study = member.study
        if allowed is not None:
            study = with_rules(study, {"time_allowed_seconds": allowed})
        again = self.head.again_alone(member.name)
        head = new_head(study, self.head.effort, self.head.seed, again, self.head.hosts, self._site)
        asked = self._waits_again or self.head.waiting
        # The wait before the campaign is none of a study.
        waiting = None if asked is None else Waiting(seconds=asked.seconds)
        return msgspec.structs.replace(head, waiting=waiting)

    def _went_wrong(self, row: MemberRow, error: ConcurveError) -> None:
        """Store the failure: a run that began keeps its trials; one that did not has only a
        reason."""
        now = self.store.members(self.head.id)[row.position]
        stored = self._stored(now) is not None
        state = "failed" if stored and isinstance(error, RunError) else "not run"
        reason = f"{error.what}; try: {error.remedy}" if error.remedy else error.what
        self.store.set_member(
            self.head.id,
            now._replace(run=now.run if stored else "", state=state, reason=reason),
        )
        self._tell(f"{row.name} {'failed' if state == 'failed' else 'was not run'}: {reason}")

    def _stopped(self, reason: str) -> RunInterruptedError:
        interruption.heed()
        self.store.set_campaign_state(self.head.id, "interrupted", reason)
        rows = self.store.members(self.head.id)
        done = sum(row.state == "complete" for row in rows)
        number = words.count_of(done, len(rows), "study")
        return RunInterruptedError(
            f"campaign {self.head.id} was stopped after {number}; every finished trial is stored",
            self._resume_line(),
        )

    def _resume_line(self) -> str:
        return f"concurve resume {self.head.id}"

    def _ended(self) -> list[MemberRow]:
        rows = self.store.members(self.head.id)
        missing = [row.name for row in rows if row.state != "complete"]
        if missing:
            number = words.count_of(len(missing), len(rows), "study")
            reason = f"{number} {words.verb(len(missing))} missing: {', '.join(missing)}"
            self.store.set_campaign_state(self.head.id, "incomplete", reason)
        else:
            self.store.set_campaign_state(self.head.id, "complete", "all studies done")
        return rows

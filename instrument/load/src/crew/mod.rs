//! Those who run the sessions: client threads, or a process for each session. All are given the
//! same tasks, and each tells what it counted.

mod member;
mod round;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use concurve_clock::monotonic_ns;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::plan::Plan;
use crate::reach::Reached;
use crate::stop::Stop;
use crate::tally::{Interval, Tally};
use crate::task::Task;
use member::Member;
use round::Round;

/// How often it is looked whether to stop while nobody says anything.
const LOOK: Duration = Duration::from_millis(200);

/// What one of them says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Said {
    /// Its sessions are connected.
    Ready,
    /// What it counted in one interval; not told again at the end.
    Interval(Interval),
    /// The task is done.
    Ended(Box<Tally>),
    #[serde(skip)]
    Failed(Error),
}

/// All client threads or processes, connected.
pub struct Crew {
    members: Vec<Member>,
    said: Receiver<(usize, Said)>,
    stop: Stop,
    reached: Reached,
    round: Round,
}

impl Crew {
    /// Starts all of them and waits until every session is connected.
    pub fn connect(plan: &Arc<Plan>, stop: &Stop) -> Result<Self, Error> {
        // Processes open an engine for themselves; here it shows whether they can.
        let reached = Reached::open(plan)?;
        let (say, said) = channel();
        let mut crew = Self {
            members: Vec::new(),
            said,
            stop: stop.clone(),
            reached,
            round: Round::default(),
        };
        for number in 0..plan.members() {
            let member = Member::start(plan, number, stop, &crew.reached, say.clone())?;
            crew.members.push(member);
        }
        for _ in 0..crew.members.len() {
            if let (_, Said::Failed(error)) = crew.hear()? {
                // A process that is let go ends as if it had failed.
                return Err(match stop.signal() {
                    Some(_) => Error::Stopped,
                    None => error,
                });
            }
            if crew.stop.is_set() {
                return Err(Error::Stopped);
            }
        }
        Ok(crew)
    }

    /// Gives all of them their next task.
    pub fn begin(&mut self, task: &Task) -> Result<(), Error> {
        self.round = Round::of(self.members.len());
        for (number, member) in self.members.iter_mut().enumerate() {
            if !member.give(task) {
                return Err(self.why_gone(number));
            }
        }
        Ok(())
    }

    /// Hears what they say until it is time, or until all have ended the task; `watch` hears of
    /// each interval, and of nothing when there are no more.
    pub fn hear_until(
        &mut self,
        at_ns: u64,
        watch: &mut dyn FnMut(usize, Option<&Interval>),
    ) -> Result<(), Error> {
        while !self.has_ended() {
            let Some((number, said)) = self.hear_by(at_ns)? else {
                return Ok(());
            };
            self.round.take(number, said, watch)?;
        }
        Ok(())
    }

    /// Whether all have ended the task.
    pub fn has_ended(&self) -> bool {
        self.round.ended == self.members.len()
    }

    /// What each of them counted, when all have ended the task.
    pub fn finish(
        &mut self,
        watch: &mut dyn FnMut(usize, Option<&Interval>),
    ) -> Result<Vec<Tally>, Error> {
        self.hear_until(u64::MAX, watch)?;
        let round = std::mem::take(&mut self.round);
        Ok(round.tallies.into_iter().flatten().collect())
    }

    /// Lets all of them end, and waits for it.
    ///
    /// # Errors
    /// An engine cannot be closed: what was done may not be on the disk.
    pub fn end(self) -> Result<(), Error> {
        self.members.into_iter().for_each(Member::end);
        self.reached.close()
    }

    fn hear(&mut self) -> Result<(usize, Said), Error> {
        let said = self.hear_by(u64::MAX)?;
        Ok(said.expect("the end of time does not come"))
    }

    /// What one of them says; none if nobody does before it is time.
    fn hear_by(&mut self, at_ns: u64) -> Result<Option<(usize, Said)>, Error> {
        loop {
            let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
            match self.said.recv_timeout(left.min(LOOK)) {
                Ok(said) => return Ok(Some(said)),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Gone),
                Err(RecvTimeoutError::Timeout) if left <= LOOK => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    if self.stop.is_set() {
                        self.members.iter_mut().for_each(Member::dismiss);
                    }
                }
            }
        }
    }

    /// The error of a member that takes no tasks any more.
    fn why_gone(&mut self, number: usize) -> Error {
        loop {
            match self.hear() {
                Ok((_, Said::Failed(error))) | Err(error) => return error,
                Ok((who, Said::Ended(_))) if who == number => return Error::Gone,
                Ok(_) => {}
            }
        }
    }
}

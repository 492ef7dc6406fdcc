//! The sessions of a search: those of this process, and those of the loads that follow it.

use std::sync::Arc;

use concurve_clock::monotonic_ns;

use super::part::LoadPart;
use crate::counts::tally::Tally;
use crate::drive::{HEAD_START_NS, Workers};
use crate::error::Error;
use crate::figures::busiest_share;
use crate::plan::{Plan, Task};
use crate::stop::Stop;
use crate::together::{Counted, Followers, Leader, Part};

/// This load in a search of several, outside a trial.
const OWN_NAME: &str = "this load";

/// All loads of a search, with their sessions connected.
pub struct Loads {
    own: Workers,
    own_sessions: u64,
    followers: Followers,
    stop: Stop,
}

impl Loads {
    /// Those of a process whose sessions are connected; waits for the others, if it leads any.
    pub fn gather(
        own: Workers,
        leader: Option<Leader>,
        plan: &Arc<Plan>,
        stop: &Stop,
    ) -> Result<Self, Error> {
        Ok(Self {
            own,
            own_sessions: plan.sessions,
            followers: match leader {
                Some(leader) => leader.gather(plan, stop)?,
                None => Followers::none(stop),
            },
            stop: stop.clone(),
        })
    }

    /// Number of sessions of all loads.
    pub fn sessions(&self) -> u64 {
        self.own_sessions + self.followers.sessions()
    }

    /// Each load, without a part so far; none if there is only this one.
    pub fn parts(&self) -> Vec<LoadPart> {
        let own_name = concurve_reporter::role().unwrap_or_else(|| OWN_NAME.to_owned());
        let own = LoadPart::new(own_name, self.own_sessions);
        let others = self.followers.each();
        let others = Vec::from_iter(others.map(|it| LoadPart::new(it.0.to_owned(), it.1)));
        match others.is_empty() {
            true => Vec::new(),
            false => [vec![own], others].concat(),
        }
    }

    /// When a task can begin that is given now: all loads hear of it before.
    pub fn earliest_ns(&mut self) -> Result<u64, Error> {
        let lead_ns = self.followers.lead_ns()?;
        Ok(monotonic_ns() + HEAD_START_NS + lead_ns)
    }

    /// Does a task with all loads, each with its share; the counts of each, those of this process first.
    /// `None` if the run was stopped meanwhile.
    pub fn measure(&mut self, task: &Task) -> Result<Option<Vec<Counted>>, Error> {
        let own_part = self.followers.begin(task, self.own_sessions)?;
        self.own.begin(&own_part)?;
        let tallies = self.own.finish(&mut |_, _| {})?;
        if self.stop.is_set() {
            return Ok(None);
        }
        let mut all = vec![Counted {
            busiest_share: busiest_share(&tallies),
            tally: Tally::merged(tallies),
        }];
        all.extend(self.followers.finish(task)?);
        Ok(Some(all))
    }

    /// Ends all of them; `parts` are theirs in the search, in the same order. Returns who had the CPUs of the
    /// other machines, if they were busy.
    pub fn end(self, parts: &[Part]) -> Result<Vec<String>, Error> {
        let busy = self.followers.end(parts.get(1..).unwrap_or(&[]))?;
        self.own.end()?;
        Ok(busy)
    }
}

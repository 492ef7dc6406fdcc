//! The sessions of a search: those of this process, and those of the loads that follow it.

use std::sync::Arc;

use concurve_clock::monotonic_ns;

use super::part::LoadPart;
use crate::counts::window::WindowCounts;
use crate::drive::{HEAD_START_NS, Workers};
use crate::error::Error;
use crate::figures::busiest_share;
use crate::plan::{Plan, Task};
use crate::stop::Stop;
use crate::together::{Counted, Followers, Leader, Share};

/// This load in a search of several, outside a trial.
const OWN_NAME: &str = "this load";

/// All loads of a search, with their sessions connected.
pub struct Loads {
    own: Workers,
    own_sessions: u64,
    followers: Followers,
    stop: Stop,
}

/// What came of a window.
pub enum Measured {
    /// The counts of each load, those of this process first.
    Counts(Vec<WindowCounts>),
    /// A load heard of it too late, by so much. The sessions that were lost meanwhile are so all the same.
    Late {
        name: String,
        late_ns: u64,
        counts: Vec<WindowCounts>,
    },
    /// The run was stopped meanwhile.
    Stopped,
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
                None => Followers::none(plan.sessions, stop),
            },
            stop: stop.clone(),
        })
    }

    /// Number of sessions of all loads.
    pub fn sessions(&self) -> u64 {
        self.followers.all_sessions()
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

    /// When a task with a window of this length can begin that is given now: all loads hear of it before.
    /// `None` if the run is stopped.
    pub fn earliest_ns(&mut self, window_ns: u64) -> Result<Option<u64>, Error> {
        match self.followers.lead_ns(window_ns) {
            Ok(lead_ns) => Ok(Some(monotonic_ns() + HEAD_START_NS + lead_ns)),
            Err(Error::Stopped) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Does a task with all loads, each with its share.
    pub fn measure(&mut self, task: &Task) -> Result<Measured, Error> {
        let part = self.followers.begin(task)?;
        let late_ns = monotonic_ns().saturating_sub(task.begin_ns);
        self.own.begin(&part)?;
        let tallies = self.own.finish(&mut |_, _| {})?;
        if self.stop.is_set() {
            return Ok(Measured::Stopped);
        }
        let busiest = busiest_share(&tallies);
        let mut all = vec![WindowCounts::of(tallies, busiest)];
        let is_late = late_ns > task.measure_ns() - task.begin_ns;
        let mut late = is_late.then(|| (OWN_NAME.to_owned(), late_ns));
        let followers = match self.followers.finish(task) {
            Err(Error::Stopped) => return Ok(Measured::Stopped),
            counted => counted?,
        };
        for counted in followers {
            match counted {
                Counted::Window(window) => all.push(*window),
                Counted::Late {
                    name,
                    late_ns,
                    counts,
                } => {
                    all.push(*counts);
                    late = Some((name, late_ns));
                }
            }
        }
        Ok(match late {
            None => Measured::Counts(all),
            Some((name, late_ns)) => Measured::Late {
                name,
                late_ns,
                counts: all,
            },
        })
    }

    /// Ends all of them; `shares` are theirs in the search, in the same order. Returns who had the CPUs of
    /// the other machines, if they were busy, and whether an engine could be closed.
    pub fn end(self, shares: &[Share]) -> (Vec<String>, Result<(), Error>) {
        let busy = self.followers.end(shares.get(1..).unwrap_or(&[]));
        (busy, self.own.end())
    }
}

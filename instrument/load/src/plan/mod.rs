//! The plan of a run: checked, constant, shared by all threads.

mod objective;
mod rate;
mod task;

use std::sync::Arc;

use crate::admin::AdminAccess;
use crate::dataset::DatasetInDatabase;
use crate::engine::EmbeddedEngine;
use crate::protocol::{Endpoint, Protocol};
use crate::workload::Workload;

pub use objective::{Bad, Objective};
pub use rate::{AskedRate, ShareOfGreatest};
pub use task::{Among, End, Pace, Part, RATE_MAX, RATE_MIN, Spread, Task};

/// One run of the load.
#[derive(Debug)]
pub struct Plan {
    pub target: Target,
    pub workload: Arc<dyn Workload>,
    /// The data that the workload needs, if it needs any.
    pub dataset: Option<DatasetInDatabase>,
    /// The load that fills the keys before this one, if that is asked for.
    pub prefill: Option<Arc<Plan>>,
    /// Access to the server for marking the measured phase; `None` if the phase is not marked.
    pub phase_marking: Option<Arc<dyn AdminAccess>>,
    pub sessions: u64,
    pub runners: Runners,
    /// Maximum number of transactions in flight in each session.
    pub pipeline: u32,
    /// How long a client thread polls its sockets before it sleeps.
    pub spin_ns: u64,
    pub goal: Goal,
    pub seed: u64,
    /// The number of the first session, by which workloads tell sessions apart: of loads that search
    /// together each has others.
    pub first_session: u64,
    /// A text that no other load has: the same in all its processes.
    pub run_id: String,
    /// Whether the times of each request are logged.
    pub logs_requests: bool,
}

/// What a run is to find.
#[derive(Debug)]
pub enum Goal {
    /// The figures of one load.
    Load(Load),
    /// The greatest rate that keeps objectives, or whether one rate keeps them.
    Search(RateSearch),
}

/// How a load is paced.
#[derive(Debug, Clone, Copy)]
pub enum AskedPace {
    /// As it is given.
    Given(Pace),
    /// As the same sessions show first what they reach.
    Share(ShareOfGreatest),
}

/// One load, with its pace from begin to end.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub pace: AskedPace,
    pub end: End,
    /// The same load before it is measured.
    pub warm_up_ns: u64,
    /// Sessions begin one after the other over this time.
    pub ramp_ns: u64,
}

impl Load {
    /// All of the load as one task, at the pace that was asked for or found.
    pub fn task(&self, begin_ns: u64, pace: Pace) -> Task {
        Task {
            begin_ns,
            ramp_ns: self.ramp_ns,
            warm_up_ns: self.warm_up_ns,
            pace,
            end: self.end,
            interval_ns: None,
            among: None,
        }
    }
}

/// Open loops at rates that the search chooses, or at one that is to be checked.
#[derive(Debug)]
pub struct RateSearch {
    pub objectives: Vec<Objective>,
    /// The one rate to check.
    pub rate: Option<f64>,
    pub spread: Spread,
    /// Due transactions that may wait for a free session, over all threads.
    pub backlog_max: usize,
    /// A closed loop before the first rate.
    pub warm_up_ns: u64,
    /// How long the search may take after that.
    pub duration_ns: u64,
}

impl RateSearch {
    /// The pace of a window at this rate.
    pub fn pace(&self, rate_per_second: f64) -> Pace {
        Pace::Open {
            rate_per_second,
            spread: self.spread,
            backlog_max: self.backlog_max,
        }
    }
}

/// The server or engine under load, with the statements of the workload.
#[derive(Debug, Clone)]
pub enum Target {
    Server(ServerTarget),
    /// An engine in the client's own process.
    Engine(Arc<dyn EmbeddedEngine>),
}

impl Target {
    /// Whether it is a server that is surely on this machine.
    pub fn is_server_here(&self) -> bool {
        match self {
            Self::Server(server) => server.endpoint.is_here(),
            Self::Engine(_) => false,
        }
    }
}

/// A server, and the protocol for it.
#[derive(Debug, Clone)]
pub struct ServerTarget {
    pub endpoint: Endpoint,
    /// One for each set of the workload's statements.
    pub protocols: Vec<Arc<dyn Protocol>>,
    /// For connecting and logging in.
    pub connect_timeout_ns: u64,
}

impl ServerTarget {
    /// The protocol of a session, with the statements of its set.
    pub fn protocol(&self, session: u64) -> &dyn Protocol {
        &*self.protocols[session as usize % self.protocols.len()]
    }
}

/// Whether threads or processes run the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runners {
    /// So many client threads.
    Threads(u64),
    /// A process for each session.
    Processes,
}

impl Plan {
    /// The server or the engine, as reports name it.
    pub fn target_name(&self) -> String {
        match &self.target {
            Target::Server(server) => server.endpoint.name(),
            Target::Engine(engine) => engine.name(),
        }
    }

    /// The names of the kinds of transactions.
    pub fn kind_names(&self) -> Vec<String> {
        let kinds = self.workload.kinds().iter();
        kinds.map(|it| it.name.clone()).collect()
    }

    /// Threads or processes that share the sessions.
    pub fn workers(&self) -> u64 {
        match self.runners {
            Runners::Threads(threads) => threads,
            Runners::Processes => self.sessions,
        }
    }

    /// The sessions of a worker: evenly divided, the first workers get the remainder.
    pub fn sessions_of(&self, worker: u64) -> std::ops::Range<u64> {
        share(self.sessions, self.workers(), worker)
    }

    /// How many of `total` transactions a session is to do.
    pub fn transactions_of(&self, session: u64, total: u64) -> u64 {
        let range = share(total, self.sessions, session);
        range.end - range.start
    }
}

/// The part `index` of `0..total`, divided into `parts`.
fn share(total: u64, parts: u64, index: u64) -> std::ops::Range<u64> {
    let (each, rest) = (total / parts, total % parts);
    let begin = index * each + index.min(rest);
    begin..begin + each + u64::from(index < rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        for (total, parts) in [(10, 3), (3, 10), (0, 2), (100, 1), (99, 100)] {
            let mut next = 0;
            for index in 0..parts {
                let range = share(total, parts, index);
                assert_eq!(range.start, next);
                assert!(range.end - range.start <= total / parts + 1);
                next = range.end;
            }
            assert_eq!(next, total);
        }
    }
}

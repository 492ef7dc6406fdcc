//! What a run is to do: checked, frozen, shared by all threads.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arrivals::Spread;
use crate::data::Ground;
use crate::desk::Desks;
use crate::embedded::Embedded;
use crate::protocol::Protocol;
use crate::task::Task;
use crate::workload::Workload;

/// One run of the load.
#[derive(Debug)]
pub struct Plan {
    pub reach: Reach,
    pub workload: Arc<dyn Workload>,
    /// The data that the workload needs, if it needs any.
    pub ground: Option<Ground>,
    /// How to get to the server that is to be told of the measured phase, if it is.
    pub marked: Option<Arc<dyn Desks>>,
    pub sessions: u64,
    pub runners: Runners,
    /// Transactions that a session has under way at once.
    pub pipeline: u32,
    pub pace: Pace,
    pub end: End,
    pub warm_up_ns: u64,
    /// Sessions begin one after the other over this time.
    pub ramp_ns: u64,
    pub seed: u64,
}

/// What the load is put on.
#[derive(Debug, Clone)]
pub enum Reach {
    Server(Link),
    /// An engine in the client's own process.
    Engine(Arc<dyn Embedded>),
}

/// A server, and what is spoken with it.
#[derive(Debug, Clone)]
pub struct Link {
    pub server: Server,
    /// One for each set of the workload's statements.
    pub protocols: Vec<Arc<dyn Protocol>>,
    /// For connecting and the greeting.
    pub patience_ns: u64,
}

impl Link {
    /// The protocol of a session, with the statements that it keeps to.
    pub fn protocol(&self, session: u64) -> &dyn Protocol {
        &*self.protocols[session as usize % self.protocols.len()]
    }
}

/// Who runs the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runners {
    /// So many event loops, a thread each.
    Threads(u64),
    /// A process for each session.
    Processes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    Tcp { name: String, address: SocketAddr },
    Unix(PathBuf),
}

/// What makes a session send its next request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The answer to its last one, and a pause.
    Closed { think_ns: u64 },
    /// A schedule that knows nothing of answers.
    Open {
        rate_per_second: f64,
        spread: Spread,
        /// Due requests that may wait for a free session, over all threads.
        backlog_max: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Each session has its share of so many transactions.
    Transactions(u64),
    After {
        ns: u64,
    },
}

impl Plan {
    /// Where the load goes, as reports name it.
    pub fn place(&self) -> String {
        match &self.reach {
            Reach::Server(link) => link.server.text(),
            Reach::Engine(engine) => engine.place(),
        }
    }

    /// All of the plan as one task.
    pub fn task(&self, begin_ns: u64) -> Task {
        Task {
            begin_ns,
            ramp_ns: self.ramp_ns,
            warm_up_ns: self.warm_up_ns,
            pace: self.pace,
            end: self.end,
            interval_ns: None,
        }
    }

    /// Threads or processes that share the sessions.
    pub fn members(&self) -> u64 {
        match self.runners {
            Runners::Threads(threads) => threads,
            Runners::Processes => self.sessions,
        }
    }

    /// The sessions of a thread or process: evenly dealt, the first get what is left over.
    pub fn sessions_of(&self, member: u64) -> std::ops::Range<u64> {
        share(self.sessions, self.members(), member)
    }

    /// Transactions of `total` that a session is to do.
    pub fn transactions_of(&self, session: u64, total: u64) -> u64 {
        let range = share(total, self.sessions, session);
        range.end - range.start
    }
}

/// The part of `0..total` that falls to one of `parts`.
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

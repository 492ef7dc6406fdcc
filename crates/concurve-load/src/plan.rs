//! What a run is to do: checked, frozen, shared by all threads.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::arrivals::Spread;
use crate::keys::{Keys, Picker};
use crate::protocol::Conversation;
use crate::protocol::resp::{Resp, RespPlan};
use crate::script::Script;

/// One run of the load.
#[derive(Debug)]
pub struct Plan {
    pub server: Server,
    pub protocol: Protocol,
    /// Kinds of transactions and how often each is chosen.
    pub mix: Vec<Script>,
    pub keys: Keys,
    pub sessions: u64,
    pub crew: Crew,
    /// Transactions that a session has under way at once.
    pub pipeline: u32,
    pub pace: Pace,
    pub end: End,
    pub warm_up_ns: u64,
    /// Sessions begin one after the other over this time.
    pub ramp_ns: u64,
    pub seed: u64,
}

/// Who runs the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crew {
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

#[derive(Debug)]
pub enum Protocol {
    Resp(Arc<RespPlan>),
}

/// What makes a session send its next request.
#[derive(Debug, Clone, Copy, PartialEq)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Each session has its share of so many transactions.
    Transactions(u64),
    After {
        ns: u64,
    },
}

impl Plan {
    /// The conversation of a session.
    pub fn conversation(&self, session: u64) -> Box<dyn Conversation> {
        match &self.protocol {
            Protocol::Resp(plan) => Box::new(Resp::new(
                plan.clone(),
                Picker::new(self.keys, session),
                session,
            )),
        }
    }

    /// Threads or processes that share the sessions.
    pub fn crews(&self) -> u64 {
        match self.crew {
            Crew::Threads(threads) => threads,
            Crew::Processes => self.sessions,
        }
    }

    /// The sessions of a thread or process: evenly dealt, the first get what is left over.
    pub fn sessions_of(&self, crew: u64) -> std::ops::Range<u64> {
        share(self.sessions, self.crews(), crew)
    }

    /// Transactions that a session is to do; none means: until the time is over.
    pub fn transactions_of(&self, session: u64) -> Option<u64> {
        match self.end {
            End::Transactions(total) => {
                let range = share(total, self.sessions, session);
                Some(range.end - range.start)
            }
            End::After { .. } => None,
        }
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

//! The schedulers by name.

use clap::ValueEnum;

use super::Scheduler;
use super::anticipatory::Anticipatory;
use super::bfq::Bfq;
use super::cfq::Cfq;
use super::cfq2::Cfq2;
use super::deadline::{Deadline, DeadlineTunables};
use super::noop::Noop;

/// The schedulers by the names that kernels give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Kind {
    /// First come, first served; merges only into the last request
    Noop,
    /// Sorted batches, reads before writes, each request with a deadline
    Deadline,
    /// Deadline with anticipation: waits for the next request of the process that has just read
    #[value(alias = "as")]
    Anticipatory,
    /// Version 3 of cfq: a queue and a time slice for each process
    Cfq,
    /// Version 2 of cfq: a queue for each process, one request of each in turn
    Cfq2,
    /// Deadline of kernels with several hardware queues
    MqDeadline,
    /// A queue and a budget of sectors for each process
    Bfq,
}

impl Kind {
    /// The name that kernels give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Deadline => "deadline",
            Self::Anticipatory => "anticipatory",
            Self::Cfq => "cfq",
            Self::Cfq2 => "cfq2",
            Self::MqDeadline => "mq-deadline",
            Self::Bfq => "bfq",
        }
    }

    /// A scheduler with the default tunables of its kernels.
    pub fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Noop => Box::new(Noop::default()),
            Self::Deadline => Box::new(Deadline::new(DeadlineTunables::of_2_6_16())),
            Self::Anticipatory => Box::new(Anticipatory::new(Default::default())),
            Self::Cfq => Box::new(Cfq::new(Default::default())),
            Self::Cfq2 => Box::new(Cfq2::new(Default::default())),
            Self::MqDeadline => Box::new(Deadline::multi_queue()),
            Self::Bfq => Box::new(Bfq::new(Default::default())),
        }
    }
}

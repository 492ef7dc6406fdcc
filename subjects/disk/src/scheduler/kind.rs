//! The schedulers by name.

use clap::ValueEnum;

use super::Scheduler;
use super::anticipatory::{Anticipatory, AnticipatoryTunables};
use super::bfq::Bfq;
use super::cfq::Cfq;
use super::cfq2::{Cfq2, Cfq2Tunables, Order};
use super::deadline::{Deadline, DeadlineTunables};
use super::noop::Noop;
use crate::time::Time;

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

/// The tunables that a user may set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tuned {
    /// How long `as` keeps the disk idle for a process at most; `None`: as its kernel does.
    pub antic_expire: Option<Time>,
    /// The order in which `cfq2` sends the requests of a dispatch.
    pub order: Order,
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
        self.build_with(Tuned::default())
    }

    /// A scheduler with the default tunables of its kernels, but for those that are named.
    pub fn build_with(self, tuned: Tuned) -> Box<dyn Scheduler> {
        match self {
            Self::Noop => Box::new(Noop::default()),
            Self::Deadline => Box::new(Deadline::new(DeadlineTunables::of_2_6_16())),
            Self::Anticipatory => {
                let defaults = AnticipatoryTunables::default();
                Box::new(Anticipatory::new(AnticipatoryTunables {
                    antic_expire: tuned.antic_expire.unwrap_or(defaults.antic_expire),
                    ..defaults
                }))
            }
            Self::Cfq => Box::new(Cfq::new(Default::default())),
            Self::Cfq2 => Box::new(Cfq2::new(Cfq2Tunables {
                order: tuned.order,
                ..Default::default()
            })),
            Self::MqDeadline => Box::new(Deadline::multi_queue()),
            Self::Bfq => Box::new(Bfq::new(Default::default())),
        }
    }
}

//! I/O schedulers: who is served next, and when it pays to wait.
//!
//! Each algorithm is a module that reads like its description. They decide from what a kernel
//! knows: where requests lie, who asked and when. None of them sees the disk model.

pub mod anticipatory;
pub mod bfq;
pub mod cfq;
pub mod deadline;
pub mod elevator;
pub mod lane;
pub mod mq_deadline;
pub mod noop;
pub mod per_process;
pub mod think_time;

use clap::ValueEnum;

use crate::request::Request;
use crate::time::Time;
pub use lane::Merge;

/// What a scheduler says when the device could take a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Send this one.
    Serve(Request),
    /// Something waits, but a better one is expected: ask again at this time, or when something
    /// happens.
    IdleUntil(Time),
    /// Nothing can be sent until a request comes or ends.
    Nothing,
}

/// The order in which the requests of one device are served.
pub trait Scheduler {
    /// Let a waiting request take this one in; `None` if none can.
    fn merge(&mut self, request: &Request, now: Time) -> Option<Merge>;

    /// A request that could not be merged begins to wait.
    fn add(&mut self, request: Request, now: Time);

    /// The device can take one more; `in_flight` are with it already.
    fn dispatch(&mut self, now: Time, in_flight: usize) -> Decision;

    /// The device has served this one.
    fn completed(&mut self, request: &Request, now: Time);

    /// Requests that wait.
    fn waiting(&self) -> usize;
}

/// The schedulers by the names that kernels give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Kind {
    /// First come, first served; only the last request grows
    Noop,
    /// Sorted batches, reads before writes, each request with a deadline
    Deadline,
    /// Deadline that waits for the next request of the process it has just read for
    #[value(alias = "as")]
    Anticipatory,
    /// A queue and a time slice for each process
    Cfq,
    /// Deadline as kernels with several hardware queues have it
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
            Self::MqDeadline => "mq-deadline",
            Self::Bfq => "bfq",
        }
    }

    /// Such a scheduler with the parameters that its kernels came with.
    pub fn build(self) -> Box<dyn Scheduler> {
        match self {
            Self::Noop => Box::new(noop::Noop::default()),
            Self::Deadline => Box::new(deadline::Deadline::new(deadline::Settings::of_2_6_16())),
            Self::Anticipatory => Box::new(anticipatory::Anticipatory::new(Default::default())),
            Self::Cfq => Box::new(cfq::Cfq::new(Default::default())),
            Self::MqDeadline => Box::new(mq_deadline::new()),
            Self::Bfq => Box::new(bfq::Bfq::new(Default::default())),
        }
    }
}

/// Sectors to which merging may let a request grow: 512 KiB, what kernels allow by default.
pub const MERGE_LIMIT: u32 = 1024;

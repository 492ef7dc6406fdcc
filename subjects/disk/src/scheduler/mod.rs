//! I/O schedulers: which request is served next, and when the disk is kept idle for a better one.
//!
//! Each algorithm is a module. It decides from what a kernel knows: the sectors, the processes and
//! the arrival times of requests. None of them uses the disk model.

pub mod anticipatory;
pub mod bfq;
pub mod cfq;
pub mod cfq2;
pub mod deadline;
pub mod kind;
pub mod noop;
mod per_process;
pub mod request_queue;

use crate::request::Request;
use crate::time::Time;
pub use request_queue::Merge;

/// What a scheduler decides when the device can take a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Send this request.
    Serve(Request),
    /// Keep the disk idle for a better request: call again at this time, or when a request arrives or
    /// ends.
    IdleUntil(Time),
    /// Nothing can be sent until a request arrives or ends.
    Nothing,
}

/// Whether a request may enter the queue of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Yes,
    /// Its process must wait; others may enter.
    NotThisProcess,
    /// Nobody may enter before a request has left.
    Full,
}

/// The order in which the requests of one device are served.
pub trait Scheduler {
    /// Merges a request into a waiting one; `None` if that is not possible.
    fn merge(&mut self, request: &Request, now: Time) -> Option<Merge>;

    /// Adds a request that could not be merged.
    fn add(&mut self, request: Request, now: Time);

    /// Called when the device can take one more; `in_flight` are with it already.
    fn dispatch(&mut self, now: Time, in_flight: usize) -> Decision;

    /// Called when the device has served a request.
    fn completed(&mut self, request: &Request, now: Time);

    /// Number of waiting requests.
    fn waiting(&self) -> usize;

    /// Whether a request may enter; `full`: as many of its direction wait as the queue holds.
    fn admission(&mut self, _request: &Request, full: bool) -> Admission {
        match full {
            true => Admission::Full,
            false => Admission::Yes,
        }
    }
}

/// Sectors to which merging may let a request grow: 512 KiB, what kernels allow by default.
pub const MERGE_LIMIT: u32 = 1024;

//! I/O schedulers: who is served next, and when it pays to wait.
//!
//! Each algorithm is a module that reads like its description. They decide from what a kernel
//! knows: where requests lie, who asked and when. None of them sees the disk model.

pub mod anticipatory;
pub mod bfq;
pub mod cfq;
pub mod deadline;
pub mod kind;
pub mod noop;
mod per_process;
pub mod request_queue;

use crate::request::Request;
use crate::time::Time;
pub use request_queue::Merge;

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

/// Sectors to which merging may let a request grow: 512 KiB, what kernels allow by default.
pub const MERGE_LIMIT: u32 = 1024;

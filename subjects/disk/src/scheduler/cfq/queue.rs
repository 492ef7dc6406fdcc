//! The requests of one process, or those that nobody waits for.

use crate::request::{Class, Priority};
use crate::scheduler::lane::Lane;
use crate::scheduler::think_time::ThinkTime;
use crate::time::Time;

/// One of the queues.
#[derive(Debug)]
pub struct Queue {
    pub lane: Lane,
    /// That of a process; else the common one of what nobody waits for.
    pub is_sync: bool,
    pub priority: Priority,
    pub think_time: ThinkTime,
    /// Is it worth idling for?
    pub idle_window: bool,
    /// Requests of it with the device.
    pub in_flight: usize,
    /// When it was served last: who waits longest comes first.
    pub last_served: Time,
    /// Is it in one of the lists of queues that have requests?
    pub listed: bool,
}

impl Queue {
    pub fn new(is_sync: bool, priority: Priority) -> Self {
        Self {
            lane: Lane::default(),
            is_sync,
            priority,
            think_time: ThinkTime::default(),
            idle_window: is_sync && priority.class != Class::Idle,
            in_flight: 0,
            last_served: 0,
            listed: false,
        }
    }
}

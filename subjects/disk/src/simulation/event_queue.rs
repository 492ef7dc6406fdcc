//! The event queue of the simulation, ordered by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// An event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    ArmDone {
        device: usize,
    },
    /// The request at this index of `finishing` is done.
    Done {
        device: usize,
        place: usize,
    },
    Query {
        device: usize,
    },
    /// The end of one wait of the process; ignored if that wait has ended otherwise.
    Wake {
        process: usize,
        wait_number: u32,
    },
}

/// All scheduled events.
#[derive(Debug, Default)]
pub struct EventQueue {
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    /// Number of events so far: events at the same time happen in the order in which they were
    /// scheduled.
    scheduled: u64,
}

impl EventQueue {
    pub fn schedule(&mut self, time: Time, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    /// The next event and its time.
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let Reverse((time, _, event)) = self.events.pop()?;
        Some((time, event))
    }
}

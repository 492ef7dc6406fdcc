//! The event queue: what is going to happen, in the order of its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// Something that happens at its time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    ArmDone {
        device: usize,
    },
    /// The request in this place of `finishing`.
    Done {
        device: usize,
        place: usize,
    },
    Ask {
        device: usize,
    },
    /// Meant for one wait_number of the process; void if that has ended otherwise.
    Wake {
        process: usize,
        wait_number: u32,
    },
}

/// All scheduled events.
#[derive(Debug, Default)]
pub struct EventQueue {
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    /// Events so far: those of the same time happen in the order in which they were scheduled.
    scheduled: u64,
}

impl EventQueue {
    pub fn schedule(&mut self, time: Time, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    /// What happens next, and when.
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let Reverse((time, _, event)) = self.events.pop()?;
        Some((time, event))
    }
}

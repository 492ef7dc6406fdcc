//! The workloads: what processes do with a disk.

pub mod load;
pub mod synthetic;
pub mod trace;

use crate::request::{Io, Priority};
use crate::time::Time;

/// What a process does after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Resume when fewer than so many of its requests are under way: 1 waits for all.
    Wait { below: usize },
    /// Resume after this time, whatever is under way.
    Sleep(Time),
    /// Resume when another process wakes it; at once if one has done so since the last time.
    Park,
    /// The same, but after this time at the latest.
    ParkFor(Time),
    /// End, once all is done.
    End,
}

/// What a process does in a step: I/Os that it submits, and processes that it wakes.
#[derive(Debug, Default)]
pub struct Actions {
    pub ios: Vec<Io>,
    /// Processes to wake, by their index.
    pub wake: Vec<usize>,
}

/// A process, called whenever it resumes.
pub trait Process {
    /// Performs one step, and returns when to resume.
    fn step(&mut self, now: Time, actions: &mut Actions) -> Step;

    fn priority(&self) -> Priority {
        Priority::NORMAL
    }
}

//! What processes do with a disk.

pub mod load;
pub mod synthetic;
pub mod trace;

use crate::request::{Direction, Priority};
use crate::time::Time;

/// An input or output of a process, on the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    pub sector: u64,
    pub sectors: u32,
    pub direction: Direction,
    /// It waits for it: a read, or a write under `fsync` or `O_SYNC`.
    pub sync: bool,
}

impl Io {
    pub fn read(sector: u64, sectors: u32) -> Self {
        Self {
            sector,
            sectors,
            direction: Direction::Read,
            sync: true,
        }
    }

    pub fn write(sector: u64, sectors: u32, sync: bool) -> Self {
        Self {
            sector,
            sectors,
            direction: Direction::Write,
            sync,
        }
    }
}

/// What a process does once it has submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Go on when fewer than so many of its requests are under way: 1 waits for all.
    Wait { below: usize },
    /// Go on after this time, whatever is under way.
    Sleep(Time),
    /// Go on when another process says so; at once if one has said so since the last time.
    Park,
    /// The same, but after this time at the latest.
    ParkFor(Time),
    /// End, once all is done.
    End,
}

/// What a process asks for in a step.
#[derive(Debug, Default)]
pub struct Asked {
    pub ios: Vec<Io>,
    /// Parked processes that may go on, by their place among the processes.
    pub wake: Vec<usize>,
}

/// A process: called whenever it may go on.
pub trait Process {
    /// Ask, and say what then.
    fn step(&mut self, now: Time, asked: &mut Asked) -> Step;

    fn priority(&self) -> Priority {
        Priority::NORMAL
    }
}

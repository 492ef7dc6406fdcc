//! What processes submit to a volume, and what passes through the queue of a device.

use clap::ValueEnum;

use crate::time::Time;

/// Bytes of a sector, everywhere in this crate.
pub const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    Read,
    Write,
}

/// The submitting process: a number that schedulers only compare.
pub type ProcessId = u32;

/// The I/O priority of a process: its class, and the level within (0 is the highest of 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priority {
    pub class: Class,
    pub level: u8,
}

/// Classes in the order in which they are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum Class {
    /// Before all others
    RealTime,
    /// As a process has it that asks for nothing
    BestEffort,
    /// Only when nobody else has a request
    Idle,
}

impl Priority {
    /// That of a process at nice 0.
    pub const NORMAL: Self = Self {
        class: Class::BestEffort,
        level: 4,
    };

    /// That of a process of a class at a nice level, from −20 to 19: as the kernel derives it, five
    /// nice levels are one I/O level.
    pub fn of_nice(class: Class, nice: i8) -> Self {
        let level = (nice.clamp(-20, 19) + 20) / 5;
        Self {
            class,
            level: level.unsigned_abs(),
        }
    }
}

/// An input or output of a process, on the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    pub sector: u64,
    pub sectors: u32,
    pub direction: Direction,
    /// The process waits for it: a read, or a write under `fsync` or `O_SYNC`.
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

/// A request to a device: one that was submitted, or several that were merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub sector: u64,
    pub sectors: u32,
    pub direction: Direction,
    /// Its process waits for it: a read, or a write under `fsync` or `O_SYNC`.
    pub sync: bool,
    pub process: ProcessId,
    pub priority: Priority,
    pub arrived: Time,
    /// Identifies the request to its submitter; schedulers only pass it on.
    pub ticket: u32,
}

impl Request {
    /// The first sector behind it.
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// Whether both may be merged into a request of at most `limit` sectors. As in the kernel, they
    /// must have the same direction and both be synchronous or both not.
    pub fn may_join(&self, other: &Self, limit: u32) -> bool {
        self.direction == other.direction
            && self.sync == other.sync
            && self.sectors + other.sectors <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_nice_levels_are_one_io_level() {
        let level = |nice| Priority::of_nice(Class::BestEffort, nice).level;
        assert_eq!(
            [-20, -16, -15, 0, 4, 5, 15, 19].map(level),
            [0, 0, 1, 4, 4, 5, 7, 7]
        );
        assert_eq!(Priority::of_nice(Class::BestEffort, 0), Priority::NORMAL);
        assert_eq!(Priority::of_nice(Class::Idle, 0).class, Class::Idle);
    }
}

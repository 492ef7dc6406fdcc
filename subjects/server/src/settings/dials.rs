//! The levels of the dials, on the command line.

use clap::ValueEnum;
use concurve_engines::Mode;

use crate::backup;

/// The name that the command line gives a value.
pub fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |it| it.get_name().to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// The lock service of an enqueue server, and what Redlock clients need
    Locks,
    /// Files of records with keys, and transactions over them
    Records,
    /// Prepared statements over such files, with their caches
    Statements,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engines {
    /// Threads, fed by I/O threads through a run queue, or I/O threads themselves
    Threads,
    /// Processes over shared memory; each accepts, reads, executes and answers for its own clients
    Processes,
}

impl From<Engines> for Mode {
    fn from(engines: Engines) -> Self {
        match engines {
            Engines::Threads => Mode::Threads,
            Engines::Processes => Mode::Processes,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Latching {
    /// One latch around everything
    Global,
    /// Records: one for each file
    File,
    /// Latches as small as what they protect
    Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Locks: the end of the process
    Process,
    /// Locks: the loss of power
    Power,
    /// Records: the end of the process
    None,
    /// Records: the loss of power; the log is forced once for all who commit at a time
    Group,
    /// Records: the loss of power; the log is forced for each transaction
    Each,
}

impl Durability {
    pub fn of_locks(self) -> Option<backup::Durability> {
        match self {
            Durability::Process => Some(backup::Durability::Process),
            Durability::Power => Some(backup::Durability::Power),
            _ => None,
        }
    }

    pub fn of_records(self) -> Option<concurve_records::Durability> {
        match self {
            Durability::None => Some(concurve_records::Durability::None),
            Durability::Group => Some(concurve_records::Durability::Group),
            Durability::Each => Some(concurve_records::Durability::Each),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Execution {
    /// Engines execute what I/O threads have parsed, and those answer; by default one engine
    Worker,
    /// The I/O threads execute: each is an engine
    Inline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Replies {
    /// The I/O thread that read the request
    IoThread,
    /// The engine that executed, or the disk's thread, rather than wake the I/O thread for one client
    Engine,
}

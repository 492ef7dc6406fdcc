//! The values of the options that take one of several.

use std::time::Duration;

use clap::ValueEnum;
use concurve_latch::Spin;

use crate::backup;
use crate::error::Error;

/// The name of a value on the command line.
pub fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |it| it.get_name().to_owned())
}

/// The error for an option or a value that the chosen service or thread model does not have.
pub(super) fn refused(option: &str, why: &str) -> Error {
    Error::Usage(format!("{option} is not for {why}"))
}

/// The service for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// The lock service of an enqueue server, and the keys that Redlock clients need
    Locks,
    /// Files of records with keys, and transactions over them
    Records,
    /// Prepared statements over files of records, with statement caches
    Statements,
}

/// What an engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// Threads: they take requests from a run queue, or each has sockets of its own
    Threads,
    /// Processes over shared memory; each accepts, reads, executes and answers its own clients
    Processes,
}

/// How shared data are latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Latching {
    /// One latch for everything
    Global,
    /// Records: one latch for each file
    File,
    /// A latch for each small part of the data
    Record,
}

/// What an acknowledged request survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Locks: the end of the process
    Process,
    /// Locks: the loss of power
    Power,
    /// Records: the end of the process
    None,
    /// Records: the loss of power; one write to the disk for all transactions that commit together
    Group,
    /// Records: the loss of power; one write to the disk for each transaction
    Each,
}

impl Durability {
    pub(super) fn of_locks(self) -> Option<backup::Durability> {
        match self {
            Durability::Process => Some(backup::Durability::Process),
            Durability::Power => Some(backup::Durability::Power),
            _ => None,
        }
    }

    pub(super) fn of_records(self) -> Option<concurve_records::Durability> {
        match self {
            Durability::None => Some(concurve_records::Durability::None),
            Durability::Group => Some(concurve_records::Durability::Group),
            Durability::Each => Some(concurve_records::Durability::Each),
            _ => None,
        }
    }
}

/// Which threads execute requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Execution {
    /// Engines execute the requests that I/O threads have read and parsed
    Worker,
    /// Each I/O thread is an engine and executes the requests that it has read
    Inline,
}

/// Which thread writes replies to sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Replies {
    /// The I/O thread that read the request
    IoThread,
    /// The engine or the disk thread, if it would have to wake the I/O thread for one client only
    Engine,
}

/// How a thread without work waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// The thread sleeps at once, until it is woken.
    Block,
    /// The thread polls for work for this long before it sleeps.
    Spin(Duration),
}

/// Maximum time to spin: a thread that never sleeps would starve the others on a small machine.
const SPIN_US_MAX: u64 = 1_000_000;

impl std::str::FromStr for Idle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "block" {
            return Ok(Idle::Block);
        }
        let us = text.strip_prefix("spin:").and_then(|it| it.parse().ok());
        match us {
            Some(us @ 1..=SPIN_US_MAX) => Ok(Idle::Spin(Duration::from_micros(us))),
            _ => Err(format!(
                "'{text}' is neither block nor spin:1 … spin:{SPIN_US_MAX} (µs)"
            )),
        }
    }
}

impl std::fmt::Display for Idle {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Idle::Block => out.write_str("block"),
            Idle::Spin(time) => write!(out, "spin:{}", time.as_micros()),
        }
    }
}

/// The kind of the statement cache, which maps the text of a statement to its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatementCaching {
    /// No cache: every execution compiles the statement
    Off,
    /// One latch for the whole cache
    Single,
    /// A latch for each stripe of the hash values
    Striped,
}

/// How a thread waits for the latch of the shared part of the procedure cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spinning(pub Spin);

impl std::str::FromStr for Spinning {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "only" => Ok(Self(Spin::Only)),
            _ => match text.parse() {
                Ok(times) => Ok(Self(Spin::Times(times))),
                Err(_) => Err("give a number of attempts before sleeping, or only".to_owned()),
            },
        }
    }
}

impl std::fmt::Display for Spinning {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.0 {
            Spin::Only => out.write_str("only"),
            Spin::Times(times) => write!(out, "{times}"),
        }
    }
}

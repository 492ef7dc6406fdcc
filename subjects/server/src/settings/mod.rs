//! The command line, and what it means.

mod clients;
mod dials;
mod engines;
mod locks;
mod password;
mod records;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::error::Error;
use crate::net::idle::Idle;
use crate::resp::parser::Limits;
use crate::statements::{self, StatementSettings};

pub use dials::{Durability, Engines, Execution, Latching, Replies, Service, name_of};
use locks::LockOptions;
pub use locks::LockSettings;
pub use password::{PASSWORD_VARIABLE, Password};
use records::RecordOptions;
pub use records::RecordSettings;

/// A small server whose concurrency architecture is a set of dials; any Redis client can talk to it
#[derive(Debug, Parser)]
#[command(name = "concurve-server", version, max_term_width = 100)]
#[command(after_help = "Examples:
  concurve-server --service locks --port 7379
  concurve-server --service locks --io-threads 4 --execution worker --idle spin:50
  concurve-server --service locks --engines processes --engine-count 2 --idle spin:50
  redis-cli -p 7379 lock ORDERS 4711 E
  concurve-server --service records --folder data --latching record --durability group
  redis-cli -p 7379 get equal accounts 0 000000000042
  concurve-server --service statements --folder data --statement-cache striped
  redis-cli -p 7379 run 'GET accounts balance KEY ?' 42

Stops at SIGTERM or SIGINT.")]
pub struct Options {
    /// What it serves
    #[arg(long, value_enum, default_value = "locks")]
    service: Service,

    /// Address to listen on; other than loopback needs a password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,

    /// Port; 0: any free one, reported as the fact `port`
    #[arg(long, default_value_t = 7379)]
    port: u16,

    /// What executes requests
    #[arg(long, value_enum, default_value = "threads")]
    engines: Engines,

    /// Engines [default: 1; with --execution inline each I/O thread is one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    engine_count: Option<u16>,

    /// Threads that read, parse and answer [default: 1; processes do that themselves]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    io_threads: Option<u16>,

    /// Which threads execute requests [default: worker; processes: inline]
    #[arg(long, value_enum)]
    execution: Option<Execution>,

    /// Who writes replies to sockets, with --execution worker [default: io-thread]
    #[arg(long, value_enum)]
    replies: Option<Replies>,

    /// Memory of the engines, which they share; more than is used costs nothing
    #[arg(long, value_name = "MIB", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    shared_memory: u32,

    /// How the lock table or the record engine is protected
    #[arg(long, value_enum, default_value = "global")]
    latching: Latching,

    /// How a thread without work waits: block, or spin:µs before it blocks
    #[arg(long, value_name = "HOW", default_value = "block")]
    idle: Idle,

    /// What an answered request survives: of locks, one with BACKUP [default: process]; of records
    /// [default: group]
    #[arg(long, value_enum)]
    durability: Option<Durability>,

    /// File with the password that clients must give [default: $CONCURVE_PASSWORD, or none]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Clients at once [default: 10000, or as many as the limit of descriptors allows]
    #[arg(long, value_name = "N")]
    clients_max: Option<u32>,

    /// Bytes of one request
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(64..=1 << 28))]
    request_bytes_max: u32,

    /// Arguments of one request
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    arguments_max: u32,

    /// Requests of one client that are taken in a turn before the others have theirs
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pipeline_max: u32,

    /// Unread replies of one client beyond which it is not served on
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1024..))]
    output_bytes_max: u32,

    /// A client with half a request, or with unread replies beyond the limit, is closed after this
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    stalled_s: u32,

    #[command(flatten)]
    locks: LockOptions,

    #[command(flatten)]
    records: RecordOptions,

    #[command(flatten)]
    statements: statements::Options,
}

/// What the command line means.
#[derive(Debug, Clone)]
pub struct Settings {
    pub service: Service,
    pub address: SocketAddr,
    pub engines: Engines,
    pub engine_count: usize,
    /// As many as there are engines, if each of those is one.
    pub io_threads: usize,
    pub execution: Execution,
    pub replies: Replies,
    pub shared_memory_bytes: usize,
    pub latching: Latching,
    pub idle: Idle,
    pub durability: Durability,
    pub locks: LockSettings,
    /// Of all services but locks.
    pub records: Option<RecordSettings>,
    /// Of `--service statements` alone.
    pub statements: Option<StatementSettings>,
    pub password: Option<Password>,
    pub clients_max: u64,
    pub limits: Limits,
    pub pipeline_max: usize,
    pub output_bytes_max: usize,
    pub stalled: Duration,
}

impl Settings {
    /// Whether something waits for the disk before it is answered.
    pub fn needs_disk(&self) -> bool {
        match &self.records {
            Some(records) => records.engine.durability != concurve_records::Durability::None,
            None => self.locks.backup.is_some(),
        }
    }
}

impl Options {
    /// Checks what one option alone cannot know.
    pub fn settings(self) -> Result<Settings, Error> {
        let password = Password::find(self.password_file.as_deref())?;
        if !self.bind.is_loopback() && password.is_none() {
            return Err(Error::Usage(format!(
                "--bind {}: who listens beyond loopback needs a password: give --password-file, \
                 or set {PASSWORD_VARIABLE}",
                self.bind
            )));
        }
        let durability = self.durability();
        let execution = self.execution()?;
        let io_threads = self.io_threads(execution)?;
        let engine_count = match execution {
            Execution::Worker => usize::from(self.engine_count.unwrap_or(1)),
            Execution::Inline => io_threads,
        };
        Ok(Settings {
            locks: self.lock_settings(durability)?,
            records: self.record_settings(durability)?,
            statements: self.statement_settings()?,
            durability,
            service: self.service,
            address: SocketAddr::new(self.bind, self.port),
            engines: self.engines,
            engine_count,
            io_threads,
            execution,
            replies: self.replies(execution)?,
            shared_memory_bytes: (self.shared_memory as usize) << 20,
            latching: self.latching,
            idle: self.idle,
            password,
            clients_max: clients::clients_max(self.clients_max, io_threads)?,
            limits: Limits {
                arguments_max: self.arguments_max as usize,
                bytes_max: self.request_bytes_max as usize,
            },
            pipeline_max: self.pipeline_max as usize,
            output_bytes_max: self.output_bytes_max as usize,
            stalled: Duration::from_secs(u64::from(self.stalled_s)),
        })
    }

    fn durability(&self) -> Durability {
        self.durability.unwrap_or(match self.service {
            Service::Locks => Durability::Process,
            Service::Records | Service::Statements => Durability::Group,
        })
    }

    fn lock_settings(&self, durability: Durability) -> Result<LockSettings, Error> {
        if self.service == Service::Locks {
            return self.locks.settings(self.latching, durability);
        }
        match self.locks.given() {
            Some(option) => Err(refused(option, &self.service_else("locks"))),
            None => LockOptions::default().settings(Latching::Global, Durability::Process),
        }
    }

    fn record_settings(&self, durability: Durability) -> Result<Option<RecordSettings>, Error> {
        if self.service != Service::Locks {
            let settings = self
                .records
                .settings(self.service, self.latching, durability);
            return settings.map(Some);
        }
        match self.records.given() {
            Some(option) => Err(refused(option, &self.service_else("records"))),
            None => Ok(None),
        }
    }

    fn statement_settings(&self) -> Result<Option<StatementSettings>, Error> {
        if self.service == Service::Statements {
            return Ok(Some(self.statements.settings()));
        }
        match self.statements.given() {
            Some(option) => Err(refused(option, &self.service_else("statements"))),
            None => Ok(None),
        }
    }

    /// This service, and the one to ask for instead.
    fn service_else(&self, other: &str) -> String {
        format!("{}: say --service {other}", name_of(self.service))
    }
}

fn refused(option: &str, why: &str) -> Error {
    Error::Usage(format!("{option} is not for {why}"))
}

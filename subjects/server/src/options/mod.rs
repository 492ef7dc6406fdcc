//! The command line, and what it means.

mod levels;
mod password;
mod services;
#[cfg(test)]
mod tests;
mod threads;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::Error;
use crate::locks::service::LockOptions;
use crate::records::RecordOptions;
use crate::resp::parser::Limits;

pub use levels::{
    Durability, EngineKind, Execution, Idle, Latching, Replies, Service, StatementCaching, name_of,
};
pub use password::{PASSWORD_VARIABLE, Password};
pub use services::StatementOptions;
pub use threads::ThreadModel;

use levels::refused;
use services::{LockArgs, RecordArgs, StatementArgs};
use threads::ThreadArgs;

/// Default of `--clients-max`.
const CLIENTS_MAX: u64 = 10_000;

/// Descriptors for everything but clients and I/O threads (which need four each): the listener,
/// the backup file, the standard streams.
const OTHER_DESCRIPTORS: u64 = 64;

/// A small server whose concurrency architecture is set by options; any Redis client can use it
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
pub struct ServerArgs {
    /// The service for clients
    #[arg(long, value_enum, default_value = "locks")]
    service: Service,

    /// Address to listen on; any address but loopback requires a password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,

    /// Port to listen on; 0 takes any free port and reports it as the fact `port`
    #[arg(long, default_value_t = 7379)]
    port: u16,

    /// Whether the engines, which execute requests, are threads or processes
    #[arg(long, value_enum, default_value = "threads")]
    engines: EngineKind,

    /// Number of engines [default: 1; with --execution inline each I/O thread is an engine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    engine_count: Option<u16>,

    /// Threads that read and parse requests and write replies [default: 1; engine processes do
    /// that themselves]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    io_threads: Option<u16>,

    /// Which threads execute requests [default: worker; with --engines processes: inline]
    #[arg(long, value_enum)]
    execution: Option<Execution>,

    /// Which thread writes replies to sockets, with --execution worker [default: io-thread]
    #[arg(long, value_enum)]
    replies: Option<Replies>,

    /// Address space for the memory that the engines share; unused pages are never allocated
    #[arg(long, value_name = "MIB", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    shared_memory: u32,

    /// How the lock table or the record engine is latched
    #[arg(long, value_enum, default_value = "global")]
    latching: Latching,

    /// How a thread without work waits: block (sleep at once), or spin:µs (poll for that time, then
    /// sleep)
    #[arg(long, value_name = "HOW", default_value = "block")]
    idle: Idle,

    /// What an acknowledged request survives: a lock with BACKUP [default: process], a commit of
    /// records [default: group]
    #[arg(long, value_enum)]
    durability: Option<Durability>,

    /// File with the password that clients must give [default: $CONCURVE_PASSWORD, or none]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Maximum number of connected clients [default: 10000, or as many as the limit of descriptors
    /// allows]
    #[arg(long, value_name = "N")]
    clients_max: Option<u32>,

    /// Maximum size of a request
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(64..=1 << 28))]
    request_bytes_max: u32,

    /// Maximum number of arguments of a request
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    arguments_max: u32,

    /// Maximum number of pipelined requests of a client that are executed in one turn
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pipeline_max: u32,

    /// Maximum size of the unread replies of a client; while it is exceeded, its requests wait
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1024..))]
    output_bytes_max: u32,

    /// Close a connection on which a request stays incomplete, or replies stay unread, for this
    /// long
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    stalled_s: u32,

    #[command(flatten)]
    locks: LockArgs,

    #[command(flatten)]
    records: RecordArgs,

    #[command(flatten)]
    statements: StatementArgs,
}

/// The options of the server, after all checks.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub service: Service,
    pub address: SocketAddr,
    pub threads: ThreadModel,
    pub shared_memory_bytes: usize,
    pub latching: Latching,
    pub idle: Idle,
    pub durability: Durability,
    pub locks: LockOptions,
    /// Options of the record engine; `None` for the lock service, which has none.
    pub records: Option<RecordOptions>,
    /// Options of the statement service.
    pub statements: Option<StatementOptions>,
    pub password: Option<Password>,
    pub clients_max: u64,
    pub limits: ConnectionLimits,
}

/// Limits on what one client may use.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub request: Limits,
    /// Maximum number of requests that are taken from a client in one turn.
    pub pipeline_max: usize,
    /// While the unread replies exceed this many bytes, no further request is executed.
    pub output_bytes_max: usize,
    /// How long a request may stay incomplete, or a reply unread.
    pub stalled: Duration,
}

impl ServerArgs {
    /// Checks the options against each other and against the machine.
    ///
    /// # Errors
    /// If they contradict each other, or the machine does not allow them.
    pub fn options(self) -> Result<ServerOptions, Error> {
        let password = Password::find(self.password_file.as_deref())?;
        if !self.bind.is_loopback() && password.is_none() {
            return Err(Error::Usage(format!(
                "--bind {}: a server that listens beyond loopback needs a password: give \
                 --password-file, or set {PASSWORD_VARIABLE}",
                self.bind
            )));
        }
        let durability = self.durability();
        let locks = self.lock_options(durability)?;
        let records = self.record_options(durability)?;
        let needs_disk = match &records {
            Some(records) => records.engine.durability != concurve_records::Durability::None,
            None => locks.backup.is_some(),
        };
        let threads = ThreadArgs {
            kind: self.engines,
            execution: self.execution,
            replies: self.replies,
            engines: self.engine_count,
            io_threads: self.io_threads,
        };
        let threads = ThreadModel::new(threads, needs_disk)?;
        Ok(ServerOptions {
            locks,
            records,
            statements: self.statement_options()?,
            durability,
            service: self.service,
            address: SocketAddr::new(self.bind, self.port),
            threads,
            shared_memory_bytes: (self.shared_memory as usize) << 20,
            latching: self.latching,
            idle: self.idle,
            password,
            clients_max: clients_max(self.clients_max, threads.io_threads())?,
            limits: ConnectionLimits {
                request: Limits {
                    arguments_max: self.arguments_max as usize,
                    bytes_max: self.request_bytes_max as usize,
                },
                pipeline_max: self.pipeline_max as usize,
                output_bytes_max: self.output_bytes_max as usize,
                stalled: Duration::from_secs(u64::from(self.stalled_s)),
            },
        })
    }

    fn durability(&self) -> Durability {
        self.durability.unwrap_or(match self.service {
            Service::Locks => Durability::Process,
            Service::Records | Service::Statements => Durability::Group,
        })
    }

    fn lock_options(&self, durability: Durability) -> Result<LockOptions, Error> {
        if self.service == Service::Locks {
            return self.locks.options(self.latching, durability);
        }
        match self.locks.given() {
            Some(option) => Err(refused(option, &self.instead("locks"))),
            None => LockArgs::default().options(Latching::Global, Durability::Process),
        }
    }

    fn record_options(&self, durability: Durability) -> Result<Option<RecordOptions>, Error> {
        if self.service != Service::Locks {
            let options = self
                .records
                .options(self.service, self.latching, durability);
            return options.map(Some);
        }
        match self.records.given() {
            Some(option) => Err(refused(option, &self.instead("records"))),
            None => Ok(None),
        }
    }

    fn statement_options(&self) -> Result<Option<StatementOptions>, Error> {
        if self.service == Service::Statements {
            return Ok(Some(self.statements.options()));
        }
        match self.statements.given() {
            Some(option) => Err(refused(option, &self.instead("statements"))),
            None => Ok(None),
        }
    }

    /// The end of a message: names this service, and the service that has the option.
    fn instead(&self, other: &str) -> String {
        format!("{}: say --service {other}", name_of(self.service))
    }
}

/// The maximum number of clients. Raises the limit of descriptors to what they need. If the hard
/// limit is too low, the server refuses to start, so that it does not refuse clients later.
fn clients_max(asked: Option<u32>, io_threads: usize) -> Result<u64, Error> {
    let limit = getrlimit(Resource::RLIMIT_NOFILE);
    let (soft, hard) = limit.map_err(Error::io("read the limit of descriptors"))?;
    let others = OTHER_DESCRIPTORS + 4 * io_threads as u64;
    let allowed = hard.saturating_sub(others).max(1);
    let clients_max = asked.map_or(CLIENTS_MAX.min(allowed), u64::from);
    if clients_max > allowed {
        return Err(Error::Usage(format!(
            "--clients-max {clients_max}: the hard limit of {hard} descriptors allows {allowed}; \
             ask for fewer, or raise the limit (ulimit -Hn)"
        )));
    }
    let needed = clients_max + others;
    if needed > soft {
        setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard).map_err(Error::io(format!(
            "raise the limit of descriptors to {needed}"
        )))?;
    }
    Ok(clients_max)
}

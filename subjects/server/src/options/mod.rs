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

/// Clients at the same time unless the command line says otherwise.
const CLIENTS_MAX: u64 = 10_000;

/// Descriptors of other things than clients, beside four for each I/O thread: listener, backup
/// file, standard streams.
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
    engines: EngineKind,

    /// Number of engines [default: 1; with --execution inline each I/O thread is one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    engine_count: Option<u16>,

    /// Threads that read, parse and answer [default: 1; processes do that themselves]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    io_threads: Option<u16>,

    /// Which threads execute requests [default: worker; of processes: inline]
    #[arg(long, value_enum)]
    execution: Option<Execution>,

    /// Which thread writes replies to sockets, with --execution worker [default: io-thread]
    #[arg(long, value_enum)]
    replies: Option<Replies>,

    /// Size of the memory that the engines share; what is not used costs nothing
    #[arg(long, value_name = "MIB", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(16..=65_536))]
    shared_memory: u32,

    /// How the lock table or the record engine is latched
    #[arg(long, value_enum, default_value = "global")]
    latching: Latching,

    /// How a thread without work waits: block, or spin:µs to poll for so long before it sleeps
    #[arg(long, value_name = "HOW", default_value = "block")]
    idle: Idle,

    /// What an answered request survives: for locks with BACKUP [default: process]; for records
    /// [default: group]
    #[arg(long, value_enum)]
    durability: Option<Durability>,

    /// File with the password that clients must give [default: $CONCURVE_PASSWORD, or none]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Clients at the same time [default: 10000, or as many as the limit of descriptors allows]
    #[arg(long, value_name = "N")]
    clients_max: Option<u32>,

    /// Largest request
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(64..=1 << 28))]
    request_bytes_max: u32,

    /// Most arguments of one request
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    arguments_max: u32,

    /// Most requests of one client that are executed before other clients have their turn
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pipeline_max: u32,

    /// Unread replies of one client beyond which its requests wait
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1024..))]
    output_bytes_max: u32,

    /// A client that leaves half a request, or replies unread, for this long is closed
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    stalled_s: u32,

    #[command(flatten)]
    locks: LockArgs,

    #[command(flatten)]
    records: RecordArgs,

    #[command(flatten)]
    statements: StatementArgs,
}

/// What the command line means.
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
    /// Of the services that keep records: all but locks.
    pub records: Option<RecordOptions>,
    /// Of the statement service.
    pub statements: Option<StatementOptions>,
    pub password: Option<Password>,
    pub clients_max: u64,
    pub limits: ConnectionLimits,
}

/// What one client may use.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub request: Limits,
    /// Requests that are taken in one turn.
    pub pipeline_max: usize,
    /// Bytes of unread replies beyond which nothing more is executed.
    pub output_bytes_max: usize,
    /// How long half a request, or an unread reply, may stay.
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

    /// This service, and the one that has the option.
    fn instead(&self, other: &str) -> String {
        format!("{}: say --service {other}", name_of(self.service))
    }
}

/// How many clients there may be. Each needs a descriptor, and raises the limit of those if it is
/// too low: it is better to refuse to start than to refuse clients later.
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

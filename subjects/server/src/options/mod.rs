//! The command line, and what it means.

mod clients;
mod levels;
mod password;
mod services;
#[cfg(test)]
mod tests;
mod threads;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;

use crate::error::Error;
use crate::locks::service::LockOptions;
use crate::records::RecordOptions;

pub use clients::{ConnectionLimits, DISPLACED_MAX, LoginOptions, READ_BYTES};
pub use levels::{
    Durability, EngineKind, Execution, Idle, Latching, Replies, Service, StatementCaching, name_of,
};
pub use password::{PASSWORD_VARIABLE, Password};
pub use services::StatementOptions;
pub use threads::ThreadModel;

use clients::ClientArgs;
use levels::refused;
use services::{LOCK_BYTES, LockArgs, RecordArgs, StatementArgs};
use threads::ThreadArgs;

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

    #[command(flatten)]
    clients: ClientArgs,

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
    /// Maximum size of the buffers of all clients together.
    pub client_buffers_max: u64,
    pub limits: ConnectionLimits,
    /// What holds for a client until it has logged in.
    pub login: LoginOptions,
}

impl ServerOptions {
    /// Refuses what the shared memory or the machine cannot hold: caches, and tables of the capacity that was
    /// asked for. `machine_bytes` is what the machine has left, if that is known.
    ///
    /// # Errors
    /// If they are too large: by how much, and what to set.
    pub fn check_memory(&self, machine_bytes: Option<u64>) -> Result<(), Error> {
        let machine = machine_bytes.unwrap_or(u64::MAX);
        match self.service {
            Service::Locks => self.check_capacity(machine),
            Service::Records | Service::Statements => self.check_caches(machine),
        }
    }

    fn check_capacity(&self, machine: u64) -> Result<(), Error> {
        let capacity = self.locks.capacity;
        let needed = capacity * LOCK_BYTES;
        if needed > machine {
            return Err(Error::Usage(format!(
                "--capacity {capacity}: so many locks take {} MiB of memory, and this machine, or the control \
                 group of its container, has {} MiB left: lower --capacity to {}",
                needed >> 20,
                machine >> 20,
                machine / LOCK_BYTES
            )));
        }
        // Three times: a table that grows is copied, so not all of the memory may be used (`keeping`).
        let (needed, shared) = (3 * needed, self.shared_memory_bytes as u64);
        if needed > shared {
            return Err(Error::Usage(format!(
                "--capacity {capacity}: tables of so many locks need a --shared-memory of {} MiB, and it is \
                 {} MiB: raise it, or lower --capacity to {}",
                needed.div_ceil(1 << 20),
                shared >> 20,
                shared / 3 / LOCK_BYTES
            )));
        }
        Ok(())
    }

    fn check_caches(&self, machine: u64) -> Result<(), Error> {
        let pages = self.records.as_ref().map_or(0, |it| it.engine.cache_pages);
        let of_records = pages * concurve_records::page::PAGE_BYTES;
        let of_statements = self
            .statements
            .map_or(0, |it| (it.procedure_cache_kib as usize) << 10);
        let needed = of_records + of_statements;
        let remedy = "lower --cache-mib and --procedure-cache";
        if needed as u64 > machine {
            return Err(Error::Usage(format!(
                "caches of {} MiB do not fit into the {} MiB of memory that this machine, or the control \
                 group of its container, has left: {remedy}",
                needed.div_ceil(1 << 20),
                machine >> 20
            )));
        }
        if needed < self.shared_memory_bytes {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "caches of {} MiB do not fit into a --shared-memory of {} MiB: raise it, or {remedy}",
            needed.div_ceil(1 << 20),
            self.shared_memory_bytes >> 20
        )))
    }
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
            shared_memory_bytes: self.shared_memory_bytes() as usize,
            latching: self.latching,
            idle: self.idle,
            clients_max: self.clients.clients_max(threads.io_threads())?,
            client_buffers_max: self.clients.buffers_max(self.shared_memory_bytes()),
            limits: self.clients.limits(),
            login: self.clients.login(),
            password,
        })
    }

    fn shared_memory_bytes(&self) -> u64 {
        u64::from(self.shared_memory) << 20
    }

    fn durability(&self) -> Durability {
        self.durability.unwrap_or(match self.service {
            Service::Locks => Durability::Process,
            Service::Records | Service::Statements => Durability::Group,
        })
    }

    fn lock_options(&self, durability: Durability) -> Result<LockOptions, Error> {
        if self.service == Service::Locks {
            return self
                .locks
                .options(self.latching, durability, self.shared_memory_bytes());
        }
        match self.locks.given() {
            Some(option) => Err(refused(option, &self.instead("locks"))),
            None => LockArgs::default().options(
                Latching::Global,
                Durability::Process,
                self.shared_memory_bytes(),
            ),
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

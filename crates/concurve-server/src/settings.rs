//! The command line, and what it means.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use concurve_engines::Mode;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::backup;
use crate::error::{Error, While};
use crate::locks::latched;
use crate::locks::mode::Rules;
use crate::net::idle::Idle;
use crate::resp::parser::Limits;
use crate::statements::{self, StatementSettings};

/// Environment variable with the password, for those who cannot write a file.
pub const PASSWORD_VARIABLE: &str = "CONCURVE_PASSWORD";

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

    /// Locks that the table may hold; keys of SET as many
    #[arg(long, value_name = "LOCKS", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    capacity: u64,

    /// Whether another owner's O keeps E and X away
    #[arg(long, value_name = "YES", default_value_t = true, action = clap::ArgAction::Set)]
    optimistic_blocks_exclusive: bool,

    /// Keep locks taken with BACKUP in this file
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,

    /// What an answered request survives: of locks, one with BACKUP [default: process]; of records
    /// [default: group]
    #[arg(long, value_enum)]
    durability: Option<Durability>,

    /// Where records are kept
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Memory for pages of records
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    cache_mib: u32,

    /// How much the log of records grows between checkpoints
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    checkpoint_mib: u32,

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
    statements: statements::Options,
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
    fn of_locks(self) -> Option<backup::Durability> {
        match self {
            Durability::Process => Some(backup::Durability::Process),
            Durability::Power => Some(backup::Durability::Power),
            _ => None,
        }
    }

    fn of_records(self) -> Option<concurve_records::Durability> {
        match self {
            Durability::None => Some(concurve_records::Durability::None),
            Durability::Group => Some(concurve_records::Durability::Group),
            Durability::Each => Some(concurve_records::Durability::Each),
            _ => None,
        }
    }
}

/// Where records are kept, and how.
#[derive(Debug, Clone)]
pub struct RecordSettings {
    pub folder: PathBuf,
    pub engine: concurve_records::Settings,
}

/// How locks are kept.
#[derive(Debug, Clone)]
pub struct LockSettings {
    pub latching: latched::Latching,
    pub capacity: u64,
    pub rules: Rules,
    pub backup: Option<(PathBuf, backup::Durability)>,
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
    /// Whoever has the reply first: the engine that executed, or the disk's thread
    Engine,
}

/// Clients at once unless asked otherwise.
const CLIENTS_MAX: u64 = 10_000;

/// Descriptors that are no clients, beside four for each I/O thread: listener, backup, standard ones.
const OTHER_DESCRIPTORS: u64 = 64;

/// A client needs a descriptor: better to refuse now than to refuse clients later.
fn clients_max(asked: Option<u32>, io_threads: usize) -> Result<u64, Error> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).when(|| "read a limit".to_owned())?;
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
        setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard)
            .when(|| format!("raise the limit of descriptors to {needed}"))?;
    }
    Ok(clients_max)
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

/// A password that does not show in debug output.
#[derive(Clone)]
pub struct Password(Vec<u8>);

impl std::fmt::Debug for Password {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("Password")
    }
}

impl Password {
    pub fn new(text: &[u8]) -> Self {
        Self(text.to_owned())
    }

    /// Compares in a time that tells neither how much agrees nor how long the password is: digests
    /// of equal length are compared to their end.
    pub fn is(&self, offered: &[u8]) -> bool {
        use sha1::{Digest, Sha1};
        use subtle::ConstantTimeEq;
        let (own, other) = (Sha1::digest(&self.0), Sha1::digest(offered));
        own.as_slice().ct_eq(other.as_slice()).into()
    }
}

/// The name that the command line gives a value.
pub fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |it| it.get_name().to_owned())
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
        let password = self.password()?;
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
            clients_max: clients_max(self.clients_max, io_threads)?,
            limits: Limits {
                arguments_max: self.arguments_max as usize,
                bytes_max: self.request_bytes_max as usize,
            },
            pipeline_max: self.pipeline_max as usize,
            output_bytes_max: self.output_bytes_max as usize,
            stalled: Duration::from_secs(u64::from(self.stalled_s)),
        })
    }

    fn execution(&self) -> Result<Execution, Error> {
        match (self.engines, self.execution) {
            (Engines::Threads, asked) => Ok(asked.unwrap_or(Execution::Worker)),
            (Engines::Processes, None | Some(Execution::Inline)) => Ok(Execution::Inline),
            (Engines::Processes, Some(Execution::Worker)) => Err(Error::Usage(
                "--execution worker is not for --engines processes: a request stays with the engine \
                 that owns its socket; leave it out"
                    .to_owned(),
            )),
        }
    }

    fn replies(&self, execution: Execution) -> Result<Replies, Error> {
        match (execution, self.replies) {
            (Execution::Inline, Some(_)) => Err(Error::Usage(
                "--replies is for --execution worker: where who reads also executes, he answers; \
                 leave it out"
                    .to_owned(),
            )),
            (_, asked) => Ok(asked.unwrap_or(Replies::IoThread)),
        }
    }

    /// How many threads there are that read and answer, engines or not.
    fn io_threads(&self, execution: Execution) -> Result<usize, Error> {
        let threads = match (self.engines, self.io_threads, self.engine_count) {
            (Engines::Processes, Some(_), _) => {
                let text = "--io-threads is not for --engines processes: each engine reads and \
                            answers itself; say --engine-count";
                return Err(Error::Usage(text.to_owned()));
            }
            (Engines::Processes, None, count) => count,
            (Engines::Threads, _, Some(_)) if execution == Execution::Inline => {
                let text = "--engine-count is not for --execution inline: each I/O thread is an \
                            engine; say --io-threads";
                return Err(Error::Usage(text.to_owned()));
            }
            (Engines::Threads, threads, _) => threads,
        };
        Ok(usize::from(threads.unwrap_or(1)))
    }

    fn durability(&self) -> Durability {
        self.durability.unwrap_or(match self.service {
            Service::Locks => Durability::Process,
            Service::Records | Service::Statements => Durability::Group,
        })
    }

    fn lock_settings(&self, durability: Durability) -> Result<LockSettings, Error> {
        if self.service == Service::Locks {
            if self.latching == Latching::File {
                return Err(refused("--latching file", "locks: take global or record"));
            }
            if durability.of_locks().is_none() {
                let text = format!("--durability {}", name_of(durability));
                return Err(refused(&text, "locks: take process or power"));
            }
            if self.folder.is_some() {
                return Err(refused("--folder", "locks: --backup FILE keeps them"));
            }
        }
        Ok(LockSettings {
            latching: match self.latching {
                Latching::Record => latched::Latching::Record,
                _ => latched::Latching::Global,
            },
            capacity: self.capacity,
            rules: Rules {
                optimistic_blocks_exclusive: self.optimistic_blocks_exclusive,
            },
            backup: self.backup.clone().zip(durability.of_locks()),
        })
    }

    fn record_settings(&self, durability: Durability) -> Result<Option<RecordSettings>, Error> {
        if self.service == Service::Locks {
            return Ok(None);
        }
        if self.backup.is_some() {
            return Err(refused("--backup", "records: --folder keeps them"));
        }
        let Some(durability) = durability.of_records() else {
            let text = format!("--durability {}", name_of(durability));
            return Err(refused(&text, "records: take none, group or each"));
        };
        let Some(folder) = self.folder.clone() else {
            let service = name_of(self.service);
            return Err(Error::Usage(format!(
                "--service {service} needs --folder FOLDER, where records are kept"
            )));
        };
        let pages = (self.cache_mib as usize) << 20 >> concurve_records::page::PAGE_BYTES.ilog2();
        Ok(Some(RecordSettings {
            folder,
            engine: concurve_records::Settings {
                latching: match self.latching {
                    Latching::Global => concurve_records::Latching::Global,
                    Latching::File => concurve_records::Latching::File,
                    Latching::Record => concurve_records::Latching::Record,
                },
                durability,
                cache_pages: pages,
                checkpoint_bytes: u64::from(self.checkpoint_mib) << 20,
            },
        }))
    }

    fn statement_settings(&self) -> Result<Option<StatementSettings>, Error> {
        if self.service == Service::Statements {
            return Ok(Some(self.statements.settings()));
        }
        let service = name_of(self.service);
        match self.statements.given() {
            Some(option) => Err(refused(
                option,
                &format!("{service}: say --service statements"),
            )),
            None => Ok(None),
        }
    }

    fn password(&self) -> Result<Option<Password>, Error> {
        let text = match &self.password_file {
            Some(path) => {
                let read = std::fs::read(path);
                Some(read.when(|| format!("read the password file {}", path.display()))?)
            }
            None => std::env::var(PASSWORD_VARIABLE)
                .ok()
                .map(String::into_bytes),
        };
        let Some(text) = text else {
            return Ok(None);
        };
        let text = text.trim_ascii_end();
        if text.is_empty() {
            return Err(Error::Usage(format!(
                "the password is empty: put one into the file, or unset {PASSWORD_VARIABLE}"
            )));
        }
        Ok(Some(Password::new(text)))
    }
}

fn refused(option: &str, why: &str) -> Error {
    Error::Usage(format!("{option} is not for {why}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_a_password_is_needed_beyond_loopback() {
        Options::command().debug_assert();
        let parse = |arguments: &[&str]| {
            Options::try_parse_from([&["concurve-server"], arguments].concat())
        };
        assert!(parse(&[]).unwrap().settings().is_ok());
        let error = parse(&["--bind", "0.0.0.0"])
            .unwrap()
            .settings()
            .unwrap_err();
        assert!(error.to_string().contains("needs a password"), "{error}");
        assert!(parse(&["--io-threads", "0"]).is_err());
        assert!(parse(&["--idle", "spin:x"]).is_err());
    }

    #[test]
    fn engines_are_as_many_as_the_dials_say() {
        let settings = |line: &str| {
            let words = std::iter::once("concurve-server").chain(line.split_whitespace());
            Options::try_parse_from(words).unwrap().settings()
        };
        for (line, execution, engines, io_threads) in [
            ("", Execution::Worker, 1, 1),
            ("--engine-count 3 --io-threads 2", Execution::Worker, 3, 2),
            ("--execution inline --io-threads 4", Execution::Inline, 4, 4),
            ("--engines processes", Execution::Inline, 1, 1),
            (
                "--engines processes --engine-count 2",
                Execution::Inline,
                2,
                2,
            ),
        ] {
            let found = settings(line).unwrap();
            let found = (found.execution, found.engine_count, found.io_threads);
            assert_eq!(found, (execution, engines, io_threads), "{line}");
        }
        for (line, why) in [
            ("--engines processes --io-threads 2", "say --engine-count"),
            ("--engines processes --execution worker", "leave it out"),
            ("--execution inline --engine-count 2", "say --io-threads"),
            ("--engines processes --replies engine", "--replies is for"),
        ] {
            let error = settings(line).unwrap_err();
            assert!(error.to_string().contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn each_service_has_its_own_settings() {
        let settings = |line: &str| {
            let words = std::iter::once("concurve-server").chain(line.split_whitespace());
            Options::try_parse_from(words).unwrap().settings()
        };
        for (line, why) in [
            ("--latching file", "--latching file is not for locks"),
            ("--durability each", "--durability each is not for locks"),
            ("--folder x", "--folder is not for locks"),
            ("--service records", "needs --folder"),
            (
                "--service records --folder x --backup y",
                "--backup is not for records",
            ),
            (
                "--service records --folder x --durability power",
                "not for records: take none",
            ),
            (
                "--statement-cache off",
                "--statement-cache is not for locks: say --service statements",
            ),
            (
                "--service records --folder x --procedure-cache 16384",
                "--procedure-cache is not for records: say --service statements",
            ),
            ("--spin only", "--spin is not for locks"),
        ] {
            let error = settings(line).unwrap_err();
            assert!(error.to_string().contains(why), "{line}: {error}");
        }
        let statements = settings("--service statements --folder x --spin only").unwrap();
        let statements = statements.statements.unwrap();
        assert_eq!(statements.procedure_cache_kib, 16_384);
        assert_eq!(statements.spin.to_string(), "only");
        let records = settings("--service records --folder x --latching file --cache-mib 1");
        let records = records.unwrap().records.unwrap();
        assert_eq!(records.engine.cache_pages, 128);
        assert_eq!(
            records.engine.durability,
            concurve_records::Durability::Group
        );
    }

    #[test]
    fn a_password_is_equal_to_itself_alone() {
        let password = Password::new(b"secret");
        assert!(password.is(b"secret"));
        assert!(!password.is(b"secret "));
        assert!(!password.is(b""));
        assert_eq!(format!("{password:?}"), "Password");
    }
}

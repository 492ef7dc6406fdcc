//! The limits on clients.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::Error;
use crate::resp::parser::Limits;

/// Default of `--clients-max`.
const CLIENTS_MAX: u64 = 10_000;

/// Default of `--maxmemory-clients`, unless the memory is small.
const BUFFERS_MAX: u64 = 1 << 28;

/// Descriptors for everything but clients and I/O threads (which need four each): the listener,
/// the backup file, the standard streams.
const OTHER_DESCRIPTORS: u64 = 64;

/// So many more clients than the maximum may be connected while newcomers make room for them.
pub const DISPLACED_MAX: u64 = 16;

/// Most bytes that are read from a client at once.
pub const READ_BYTES: usize = 64 * 1024;

/// Before the login: arguments of a request (as many as Redis allows then), its bytes, and bytes that
/// are read at once.
const LOGIN_ARGUMENTS: usize = 10;
const LOGIN_BYTES: usize = 4096;

/// Before the login: requests that are executed in one turn, and bytes of unread replies after which
/// none is executed (as in Redis).
const LOGIN_PIPELINE: usize = 4;
const LOGIN_OUTPUT_BYTES: usize = 1024;

/// The limits on clients on the command line.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits on clients")]
#[group(id = "clients")]
pub struct ClientArgs {
    /// Maximum number of connected clients; with a password, one that has not logged in makes room for
    /// another one [default: 10000, or as many as the limit of descriptors allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    clients_max: Option<u32>,

    /// With a password: close a connection that has not logged in after this long
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    login_timeout_s: u32,

    /// How many wrong passwords an address may send per second; after ten at once, further ones wait
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    wrong_passwords_per_s: u32,

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

    /// Maximum size of the unread replies and waiting requests of all clients together; while it is
    /// exceeded, the client with the most is closed [default: 268435456, or a quarter of
    /// --shared-memory]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1 << 16..=1 << 44))]
    maxmemory_clients: Option<u64>,

    /// Close a connection on which a request stays incomplete, or replies stay unread, for this
    /// long
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    stalled_s: u32,
}

/// Limits on what one client may use.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub request: Limits,
    /// Most bytes that are read at once.
    pub read_bytes_max: usize,
    /// Maximum number of requests that are taken from a client in one turn.
    pub pipeline_max: usize,
    /// While the unread replies exceed this many bytes, no further request is executed.
    pub output_bytes_max: usize,
    /// How long a request may stay incomplete, or a reply unread.
    pub stalled: Duration,
}

/// Limits on a client that has not logged in.
#[derive(Debug, Clone, Copy)]
pub struct LoginOptions {
    /// How long it may stay.
    pub timeout: Duration,
    pub limits: ConnectionLimits,
    /// How many wrong passwords an address may send.
    pub wrong_passwords_per_s: u32,
}

impl ClientArgs {
    /// The maximum number of clients. Raises the limit of descriptors to what they need. If the hard
    /// limit is too low, the server refuses to start, so that it does not refuse clients later.
    pub fn clients_max(&self, io_threads: usize) -> Result<u64, Error> {
        let limit = getrlimit(Resource::RLIMIT_NOFILE);
        let (soft, hard) = limit.map_err(Error::io("read the limit of descriptors"))?;
        let others = OTHER_DESCRIPTORS + DISPLACED_MAX + 4 * io_threads as u64;
        let allowed = hard.saturating_sub(others).max(1);
        let clients_max = self.clients_max.map_or(CLIENTS_MAX.min(allowed), u64::from);
        if clients_max > allowed {
            return Err(Error::Usage(format!(
                "--clients-max {clients_max}: the hard limit of {hard} descriptors allows \
                 {allowed}; ask for fewer, or raise the limit (ulimit -Hn)"
            )));
        }
        let needed = clients_max + others;
        if needed > soft {
            setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard).map_err(Error::io(
                format!("raise the limit of descriptors to {needed}"),
            ))?;
        }
        Ok(clients_max)
    }

    /// Maximum size of the buffers of all clients, which lie in the shared memory.
    pub fn buffers_max(&self, shared_memory_bytes: u64) -> u64 {
        let default = BUFFERS_MAX.min(shared_memory_bytes / 4);
        self.maxmemory_clients.unwrap_or(default)
    }

    /// The limits on one client.
    pub fn limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            request: Limits {
                arguments_max: self.arguments_max as usize,
                bytes_max: self.request_bytes_max as usize,
            },
            read_bytes_max: READ_BYTES,
            pipeline_max: self.pipeline_max as usize,
            output_bytes_max: self.output_bytes_max as usize,
            stalled: Duration::from_secs(u64::from(self.stalled_s)),
        }
    }

    /// The limits on one client before it has logged in. It must be able to send its password, whatever
    /// other requests may be.
    pub fn login(&self) -> LoginOptions {
        let limits = self.limits();
        LoginOptions {
            timeout: Duration::from_secs(u64::from(self.login_timeout_s)),
            limits: ConnectionLimits {
                request: Limits {
                    arguments_max: LOGIN_ARGUMENTS,
                    bytes_max: LOGIN_BYTES,
                },
                read_bytes_max: LOGIN_BYTES,
                pipeline_max: limits.pipeline_max.min(LOGIN_PIPELINE),
                output_bytes_max: limits.output_bytes_max.min(LOGIN_OUTPUT_BYTES),
                stalled: limits.stalled,
            },
            wrong_passwords_per_s: self.wrong_passwords_per_s,
        }
    }
}

//! How many clients there may be: each needs a descriptor.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{Error, While};

/// Clients at once unless asked otherwise.
const CLIENTS_MAX: u64 = 10_000;

/// Descriptors that are no clients, beside four for each I/O thread: listener, backup, standard ones.
const OTHER_DESCRIPTORS: u64 = 64;

/// A client needs a descriptor: better to refuse now than to refuse clients later.
pub fn clients_max(asked: Option<u32>, io_threads: usize) -> Result<u64, Error> {
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

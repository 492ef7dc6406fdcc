//! How many files this process may have open at once, and its children.
//!
//! The runner keeps files open of every thread that it samples, so it raises its limit. What it starts gets
//! the limit back that the runner was started with: programs decide by it how many clients they serve.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The soft and the hard limit at the start, once the soft one was raised.
static AT_START: OnceLock<(u64, u64)> = OnceLock::new();
/// What is taken for the limit where the kernel does not say it.
const LIMIT_DEFAULT: u64 = 1024;

/// Raises the soft limit to the hard one. Where that is refused the limit stays as it is.
pub fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        AT_START.get_or_init(|| (soft, hard));
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// How many files this process may have open now.
pub fn limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(LIMIT_DEFAULT, |(soft, _)| soft)
}

/// Lets a command run with the limit that this process was started with.
pub fn limit_as_at_start(command: &mut Command) {
    let Some(limit) = at_start() else {
        return;
    };
    // SAFETY: setrlimit(2) is async-signal-safe, and the closure does nothing else.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &limit) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

/// The limit at the start, if it was raised since.
pub(crate) fn at_start() -> Option<libc::rlimit> {
    AT_START.get().map(|(soft, hard)| libc::rlimit {
        rlim_cur: *soft,
        rlim_max: *hard,
    })
}

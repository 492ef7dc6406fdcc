//! The signals that a command blocks.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;

/// Has a command block no signal. What the runner blocks, to wait for it, the command would else block too, and so
/// would what it starts: `timeout 2 redis-cli ping` could not end redis-cli.
pub fn block_none(command: &mut Command) {
    // SAFETY: sigprocmask(2) is async-signal-safe, and the closure does nothing else.
    unsafe {
        command.pre_exec(|| SigSet::empty().thread_set_mask().map_err(io::Error::from));
    }
}

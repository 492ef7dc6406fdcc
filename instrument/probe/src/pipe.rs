//! Pipes between the runner and the programs that it starts.

use std::os::fd::{BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::pipe2;

use crate::{ProbeError, Result};

/// A pipe whose ends are closed at an exec: read end, write end.
pub fn open() -> Result<(OwnedFd, OwnedFd)> {
    pipe2(OFlag::O_CLOEXEC).map_err(|errno| ProbeError::system("make a pipe", errno))
}

/// Makes reads from a descriptor return at once.
pub fn set_nonblocking(descriptor: BorrowedFd<'_>) -> Result<()> {
    fcntl(descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
        .map(|_| ())
        .map_err(|errno| ProbeError::system("make a descriptor non-blocking", errno))
}

/// Asks for a pipe buffer of this size; a smaller one is no failure.
pub fn widen(descriptor: BorrowedFd<'_>, bytes: i32) {
    let _ = fcntl(descriptor, FcntlArg::F_SETPIPE_SZ(bytes));
}

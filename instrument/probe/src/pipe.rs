//! Pipes between the runner and what it starts.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{ProbeError, Result};

/// A pipe whose ends no exec inherits: read end, write end.
pub fn open() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors; each is owned from here on, once.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(ProbeError::last("make a pipe"));
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Makes reads from a descriptor return at once.
pub fn set_nonblocking(descriptor: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no pointers.
    let result = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    if result < 0 {
        return Err(ProbeError::last("make a descriptor non-blocking"));
    }
    Ok(())
}

/// Asks for a pipe buffer of this size; a smaller one is no failure.
pub fn widen(descriptor: BorrowedFd<'_>, bytes: i32) {
    // SAFETY: no pointers.
    unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

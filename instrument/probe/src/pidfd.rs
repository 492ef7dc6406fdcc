//! A descriptor that stands for one process, whatever its number is used for later.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{ProbeError, Result};

/// Opens the descriptor of a living process. It becomes readable when the process ends. No signal is
/// ever sent through it.
pub fn open(pid: u32) -> Result<OwnedFd> {
    // SAFETY: no pointers.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if result < 0 {
        return Err(ProbeError::last(format!("open process {pid}")));
    }
    // SAFETY: the call succeeded, so this is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

/// Whether the process of a descriptor has ended.
pub fn has_ended(descriptor: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen_before_it_is_reaped() {
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let descriptor = open(child.id()).unwrap();
        assert!(!has_ended(&descriptor));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(has_ended(&descriptor));
        assert!(open(child.id()).is_err());
    }
}

//! A descriptor that stands for one process, whatever its number is used for later.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use crate::{ProbeError, Result};

/// Opens the descriptor of a living process. It becomes readable when the process ends.
pub fn open(pid: u32) -> Result<OwnedFd> {
    let opened = open_number(pid);
    opened.map_err(|errno| ProbeError::system(format!("open process {pid}"), errno))
}

fn open_number(pid: u32) -> nix::Result<OwnedFd> {
    // SAFETY: no pointers.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    let descriptor = Errno::result(result)?;
    // SAFETY: the call succeeded, so this is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Kills the process of a number, if `is_it` says so: asked when the number stands for one process and no
/// later one. Whether a process was killed; the error says why it may not be.
pub fn kill_if(pid: u32, is_it: impl FnOnce() -> bool) -> Result<bool> {
    let sent = match open_number(pid) {
        Ok(descriptor) => is_it().then(|| send(&descriptor, Signal::SIGKILL)),
        Err(Errno::ESRCH) => None,
        // A kernel before 5.3, or one that forbids it; or there is no descriptor left.
        Err(_) => is_it().then(|| signal::kill(Pid::from_raw(pid as i32), Signal::SIGKILL)),
    };
    match sent {
        Some(Ok(())) => Ok(true),
        None | Some(Err(Errno::ESRCH)) => Ok(false),
        Some(Err(errno)) => Err(ProbeError::system(format!("send SIGKILL to {pid}"), errno)),
    }
}

fn send(descriptor: &OwnedFd, signal: Signal) -> nix::Result<()> {
    // SAFETY: the kernel fills in the description of the signal, as for kill(2).
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            descriptor.as_raw_fd(),
            signal as i32,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    Errno::result(result).map(drop)
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

    #[test]
    fn only_the_process_that_is_meant_is_killed() {
        let mut child = Command::new("sleep").arg("1077").spawn().unwrap();
        let pid = child.id();
        assert!(!kill_if(pid, || false).unwrap());
        assert!(child.try_wait().unwrap().is_none());
        // The process ends, and its number is free again, between the two steps.
        assert!(
            !kill_if(pid, || {
                child.kill().unwrap();
                child.wait().unwrap();
                true
            })
            .unwrap()
        );
        let mut child = Command::new("sleep").arg("1077").spawn().unwrap();
        assert!(kill_if(child.id(), || true).unwrap());
        assert!(!child.wait().unwrap().success());
    }
}

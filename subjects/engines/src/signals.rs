//! Signals that a process waits for.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::EnginesError;

/// Signals of a process: blocked, and read from a descriptor, until this is dropped.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks the signals, also for threads and processes started later.
    pub fn block(signals: &[Signal]) -> Result<Self, EnginesError> {
        let set: SigSet = signals.iter().copied().collect();
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut before))
            .map_err(EnginesError::system("block signals"))?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor =
            SignalFd::with_flags(&set, flags).map_err(EnginesError::system("open a signalfd"))?;
        Ok(Self { descriptor, before })
    }

    /// Waits for a signal, or until the other descriptor is readable, for `time` at most.
    pub fn wait(
        &self,
        other: Option<BorrowedFd<'_>>,
        time: Option<Duration>,
    ) -> Result<(), EnginesError> {
        let timeout = match time {
            None => PollTimeout::NONE,
            Some(time) => PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX),
        };
        let own = std::iter::once(self.descriptor.as_fd());
        let mut descriptors: Vec<_> = own
            .chain(other)
            .map(|it| PollFd::new(it, PollFlags::POLLIN))
            .collect();
        match poll(&mut descriptors, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error).map_err(EnginesError::system("wait for signals")),
        }
    }

    /// Reads the pending signals; whether one of them is a request to end.
    pub fn take_end_request(&self) -> Result<bool, EnginesError> {
        let mut asks = false;
        while let Some(signal) = self
            .descriptor
            .read_signal()
            .map_err(EnginesError::system("read a signal"))?
        {
            asks |= signal.ssi_signo != Signal::SIGCHLD as u32;
        }
        Ok(asks)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Restores their usual effect.
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}

//! Signals that are waited for.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::{EnginesError, While};

/// The signals of a process, blocked and read from a descriptor while it lives.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Threads and processes started from now on have them blocked, too.
    pub fn block(signals: &[Signal]) -> Result<Self, EnginesError> {
        let set: SigSet = signals.iter().copied().collect();
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut before)).when("block signals")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&set, flags).when("open a signalfd")?;
        Ok(Self { descriptor, before })
    }

    /// Waits for a signal or for something to read, for this time at most.
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
            Err(error) => Err(error).when("wait for signals"),
        }
    }

    /// Takes the signals that came; whether one of them asks for an end.
    pub fn asks_to_end(&self) -> Result<bool, EnginesError> {
        let mut asks = false;
        while let Some(signal) = self.descriptor.read_signal().when("read a signal")? {
            asks |= signal.ssi_signo != Signal::SIGCHLD as u32;
        }
        Ok(asks)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Ones that nobody waits for any more have their usual effect again.
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}

//! The request to stop, for targets that run until then.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, getppid};

use crate::error::Error;

/// How often to check whether the parent is alive.
const PARENT_EVERY: Duration = Duration::from_millis(100);

/// Default limit on the run time of a target that does not end by itself.
pub const LIMIT_S_DEFAULT: u64 = 3600;

/// Watches for SIGTERM, SIGINT and the end of the parent.
pub struct Stop {
    signals: SignalFd,
    parent: Pid,
}

impl Stop {
    /// Must be called before other threads start: they inherit the signal mask.
    pub fn watch() -> Result<Self, Error> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        set.thread_block()
            .map_err(Error::io(|| "block SIGTERM".to_owned()))?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(Error::io(|| "open a signalfd".to_owned()))?;
        Ok(Self {
            signals,
            parent: getppid(),
        })
    }

    /// Whether a signal has come. Costs one system call.
    pub fn requested(&self) -> bool {
        self.signal_within(Duration::ZERO)
    }

    /// Waits until a signal comes, the parent ends, or `limit` has passed.
    ///
    /// Polls the parent: `PR_SET_PDEATHSIG` would need no polling, but sends its signal when the
    /// *thread* ends that started this process.
    pub fn wait(&self, limit: Duration) {
        let begin = Instant::now();
        while getppid() == self.parent {
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() || self.signal_within(left.min(PARENT_EVERY)) {
                return;
            }
        }
    }

    fn signal_within(&self, time: Duration) -> bool {
        // A timeout is in whole ms. It is rounded up, since 0 ms would make the last wait a busy
        // loop.
        let timeout_ms = time.as_micros().div_ceil(1000);
        let timeout = PollTimeout::try_from(timeout_ms).unwrap_or(PollTimeout::MAX);
        let mut descriptors = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut descriptors, timeout), Ok(ready) if ready > 0)
    }
}

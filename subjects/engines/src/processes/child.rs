//! Processes that do not outlive the one that forked them.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

use crate::error::EnginesError;

/// Exit status: ended in order.
pub const DONE: i32 = 0;
/// Exit status: failed, and sent the reason as a message.
pub const FAILED: i32 = 1;
/// Exit status of a generation in which an engine died that held a latch.
pub const LOST: i32 = 76;
/// Exit status: panicked; standard error says where.
pub const PANICKED: i32 = 101;

/// A process that ends sooner after its start has died quickly.
pub const QUICK_DEATH: Duration = Duration::from_secs(1);

/// Forks a process that does some work, and ends with the status that the work returns.
///
/// It is killed when the calling thread ends, which must be the only thread of its process.
pub fn start(work: impl FnOnce() -> i32) -> Result<Pid, EnginesError> {
    let threads = std::fs::read_dir("/proc/self/task")
        .map_err(EnginesError::system("read /proc/self/task"))?;
    let threads = threads.count();
    if threads != 1 {
        return Err(EnginesError::Unfit(format!(
            "{threads} threads run where one must, because a fork copies only one: \
             start threads in Service::run"
        )));
    }
    let parent = getpid();
    // SAFETY: there is no other thread whose locks could be held in the copy.
    match unsafe { fork() }.map_err(EnginesError::system("fork a process"))? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let work = AssertUnwindSafe(|| {
                crate::panics::set_status(PANICKED);
                let _ = prctl::set_pdeathsig(Signal::SIGKILL);
                // The parent may have died before that.
                if getppid() == parent {
                    work()
                } else {
                    PANICKED
                }
            });
            let status = catch_unwind(work).unwrap_or(PANICKED);
            // SAFETY: ends the process. The stack is a copy of the parent's: its values are not
            // dropped.
            unsafe { libc::_exit(status) }
        }
    }
}

/// How long a child may be stopped before it is killed.
pub const STOPPED_MAX: Duration = Duration::from_secs(5);

/// A child that has ended, was stopped or has continued since the last call; `None` if none has. Error
/// `ECHILD`: there are no children.
pub fn changed() -> nix::Result<Option<(Pid, WaitStatus)>> {
    let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
    match waitpid(None, Some(flags)) {
        Ok(status) => Ok(status.pid().map(|pid| (pid, status))),
        Err(Errno::EINTR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// When a child that was stopped is killed, after a change of it; `None` if it runs.
pub fn kill_at(status: WaitStatus) -> Option<Instant> {
    matches!(status, WaitStatus::Stopped(..)).then(|| Instant::now() + STOPPED_MAX)
}

/// Waits until all children have ended, and descendants that this process has inherited.
pub fn wait_for_all() {
    while !matches!(waitid(Id::All, WaitPidFlag::WEXITED), Err(Errno::ECHILD)) {}
}

pub fn kill_now(pid: Pid) {
    // No other process can have this number: it is waited for later.
    let _ = kill(pid, Signal::SIGKILL);
}

/// A description of how a process ended.
pub fn describe(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, PANICKED) => "panicked".to_owned(),
        WaitStatus::Exited(_, concurve_latch::EXIT_LATCH_LOST) => {
            "exited, because it waited for a latch of a killed engine".to_owned()
        }
        WaitStatus::Exited(_, code) => format!("ended with status {code}"),
        WaitStatus::Signaled(_, signal, _) => format!("was ended by {signal}"),
        WaitStatus::Stopped(_, signal) => format!("was stopped by {signal}"),
        other => format!("ended: {other:?}"),
    }
}

//! CPU time of the calling thread.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// User and system time so far, in ns.
pub fn thread_usage_ns() -> (u64, u64) {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("it is always granted");
    let ns = |time: nix::sys::time::TimeVal| time.num_microseconds() as u64 * 1000;
    (ns(usage.user_time()), ns(usage.system_time()))
}

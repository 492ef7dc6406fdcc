//! Misses of the CPU's caches, by its own counters (`PERF_COUNT_HW_CACHE_MISSES`: on most CPUs those
//! of the last level).
//!
//! One counter follows the whole tree, on whichever CPU its tasks are. It has no ring, so it is no
//! account of single threads. It opens before the events of single CPUs: the kernel keeps a task's
//! events in an order in which one of any CPU comes first, and swaps the counts of those by position.

use std::fs::File;
use std::io::Read;

use super::event::{self, Event, Kind};
use crate::{ProbeError, Result};

const NO_COUNTER: &str = "the CPU offers the kernel no counter of cache misses, as in most virtual \
                          machines: measure on a machine where `perf stat -e cache-misses true` \
                          counts";
const NEVER_COUNTED: &str = "the CPU's counters were taken by others all the time (such as the NMI \
                             watchdog or another perf): stop them";

/// A counter of the cache misses of a process and all that it starts.
#[derive(Debug)]
pub struct CacheMisses {
    counter: File,
    kernel: bool,
}

impl CacheMisses {
    /// Attaches to a process that has not exec'ed yet: counting begins with its exec. Without the
    /// right to count in the kernel (`kernel.perf_event_paranoid` ≤ 1, or CAP_PERFMON), only what
    /// misses in user mode is counted.
    pub fn attach(pid: u32) -> Result<Self> {
        let (counter, kernel) = match open(pid, 0) {
            Ok(counter) => (counter, true),
            Err(_) => (open(pid, event::FLAG_EXCLUDE_KERNEL)?, false),
        };
        Ok(Self { counter, kernel })
    }

    /// Whether it counts in kernel mode, too.
    pub fn has_kernel(&self) -> bool {
        self.kernel
    }

    /// The misses of the tree so far. Where the CPU had fewer counters than were wanted, this one had
    /// its turns only, and the count is extrapolated from those.
    pub fn read(&self) -> Result<u64> {
        let mut bytes = [0; 24];
        (&self.counter)
            .read_exact(&mut bytes)
            .map_err(|error| ProbeError::system("read the counter of cache misses", error))?;
        let word = |place: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[8 * place..8 * place + 8]);
            u64::from_ne_bytes(word)
        };
        extrapolated(word(0), word(1), word(2))
            .ok_or_else(|| ProbeError::Unavailable(NEVER_COUNTED.into()))
    }
}

fn open(pid: u32, flags: u64) -> Result<File> {
    let event = Event {
        kind: Kind::Hardware,
        config: event::CACHE_MISSES,
        read_format: event::FORMAT_TOTAL_TIME_ENABLED | event::FORMAT_TOTAL_TIME_RUNNING,
        flags,
        ..Event::default()
    };
    event::open(pid, -1, event).map_err(|error| match error.errno() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            ProbeError::Unavailable(NO_COUNTER.into())
        }
        _ => error,
    })
}

/// The count over the whole time in which it was wanted; none if it never ran in that.
fn extrapolated(count: u64, enabled_ns: u64, running_ns: u64) -> Option<u64> {
    match (enabled_ns, running_ns) {
        (0, _) => Some(count),
        (_, 0) => None,
        (enabled, running) if running >= enabled => Some(count),
        (enabled, running) => {
            let scaled = u128::from(count) * u128::from(enabled) / u128::from(running);
            Some(u64::try_from(scaled).unwrap_or(u64::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_that_of_the_whole_time() {
        assert_eq!(extrapolated(0, 0, 0), Some(0), "nothing ran yet");
        assert_eq!(extrapolated(7, 100, 100), Some(7));
        assert_eq!(extrapolated(7, 100, 25), Some(28), "it had a quarter of it");
        assert_eq!(extrapolated(7, 100, 0), None, "it had no turn");
        assert_eq!(extrapolated(u64::MAX, u64::MAX, 1), Some(u64::MAX));
    }

    #[test]
    fn without_a_counter_the_reason_is_said() {
        match CacheMisses::attach(std::process::id()) {
            Ok(counter) => assert_eq!(counter.read().unwrap(), 0, "it counts from an exec on"),
            Err(error) => assert!(matches!(error, ProbeError::Unavailable(_)), "{error}"),
        }
    }
}

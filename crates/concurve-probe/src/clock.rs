//! The kernel's clocks, in nanoseconds.
#![allow(unsafe_code)]

/// Time since boot that never jumps (`CLOCK_MONOTONIC`).
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Wall-clock time since the epoch.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time of the calling process, all its threads together.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The smallest step other than 0 between two readings of the monotonic clock.
pub fn monotonic_step_ns() -> u64 {
    let mut smallest = u64::MAX;
    for _ in 0..50 {
        let before = monotonic_ns();
        let mut after = monotonic_ns();
        while after == before {
            after = monotonic_ns();
        }
        smallest = smallest.min(after - before);
    }
    smallest
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer; these clocks exist on every Linux, so
    // the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance() {
        let before = (monotonic_ns(), thread_cpu_ns());
        assert!((1..10_000_000).contains(&monotonic_step_ns()));
        assert!(monotonic_ns() > before.0);
        assert!(thread_cpu_ns() > before.1);
        assert!(process_cpu_ns() >= thread_cpu_ns() - before.1);
    }
}

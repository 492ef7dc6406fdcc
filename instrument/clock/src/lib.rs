//! The kernel's clocks, in nanoseconds, for the instrument and for measured programs.
#![allow(unsafe_code)]

/// Time since boot that never jumps (`CLOCK_MONOTONIC`).
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Time since boot, sleep of the machine included (`CLOCK_BOOTTIME`): what start times of processes
/// count.
pub fn boottime_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
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

/// A clock of CPU time that other threads or processes may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    /// Of the calling thread: any thread of its process may read it.
    pub fn of_this_thread() -> Self {
        let mut clock = 0;
        // SAFETY: the calling thread lives, and `clock` is a valid place for the answer.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        assert_eq!(failed, 0, "Linux has a clock for each thread");
        Self(clock)
    }

    /// Of the calling process, all its threads together: any process may read it.
    pub fn of_this_process() -> Self {
        let mut clock = 0;
        // SAFETY: the calling process lives, and `clock` is a valid place for the answer.
        let failed = unsafe { libc::clock_getcpuclockid(libc::getpid(), &mut clock) };
        assert_eq!(failed, 0, "Linux has a clock for each process");
        Self(clock)
    }

    /// What [`Self::number`] gave, here or in another process of the same PID namespace.
    pub fn from_number(number: i32) -> Self {
        Self(number)
    }

    /// Its number, to be stored in memory that processes share; never 0.
    pub fn number(self) -> i32 {
        self.0
    }

    /// The CPU time until now; none once the thread or process has ended.
    pub fn read_ns(self) -> Option<u64> {
        let mut time = EMPTY;
        // SAFETY: `time` is a valid place for the answer. A clock that is not there is refused.
        let failed = unsafe { libc::clock_gettime(self.0, &mut time) };
        (failed == 0).then(|| in_ns(time))
    }
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
    let mut time = EMPTY;
    // SAFETY: `time` is a valid place for the answer; these clocks exist on every Linux, so
    // the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    in_ns(time)
}

const EMPTY: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

fn in_ns(time: libc::timespec) -> u64 {
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

    #[test]
    fn clocks_of_others_are_read_until_they_end() {
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let clock = CpuClock::of_this_thread();
            while clock.read_ns() < Some(2_000_000) {}
            send.send((clock, thread_cpu_ns())).unwrap();
            ended.recv().unwrap_err();
        });
        let (clock, own_ns) = receive.recv().unwrap();
        let seen_ns = CpuClock::from_number(clock.number()).read_ns();
        assert!(seen_ns >= Some(own_ns));
        let process = CpuClock::of_this_process();
        assert_ne!(process.number(), 0);
        assert!(process.read_ns() >= seen_ns);
        drop(end);
        thread.join().unwrap();
        // `join` returns shortly before the kernel has removed the thread's clock.
        while clock.read_ns().is_some() {
            std::thread::yield_now();
        }
    }
}

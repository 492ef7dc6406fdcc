//! How one engine, I/O thread or disk thread spends its time, by its own clock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, fence};

use concurve_clock::{CpuClock, monotonic_ns};
use crossbeam_utils::CachePadded;

/// The activity of a thread, as the thread itself reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Working, even if the kernel runs another thread on its CPU.
    Busy,
    /// Polling for work before it sleeps: the option `--idle`.
    Spinning,
    /// Asleep until a socket is ready or another thread wakes it.
    Asleep,
    /// Waiting for the disk.
    Disk,
}

impl State {
    pub const ALL: [State; 4] = [State::Busy, State::Spinning, State::Asleep, State::Disk];

    /// Its name in the names of figures.
    pub fn name(self) -> &'static str {
        match self {
            State::Busy => "busy",
            State::Spinning => "spinning",
            State::Asleep => "asleep",
            State::Disk => "disk",
        }
    }
}

/// Written by one thread, read by all; in shared memory if engines are processes.
///
/// A write changes the page that is not current, and then makes it current. So a thread that dies
/// or is preempted during a write leaves a consistent page for readers.
#[derive(Debug, Default)]
pub struct Meter {
    /// Its lowest bit says which page is current.
    version: AtomicU32,
    pages: [Page; 2],
}

#[derive(Debug, Default)]
struct Page {
    state: AtomicU32,
    /// The number of the [`CpuClock`] of the thread or process; 0 before it begins.
    clock: AtomicI32,
    /// When the current state began.
    since_ns: AtomicU64,
    /// Time in each state before the current one began.
    spent_ns: [AtomicU64; State::ALL.len()],
}

/// The time between two readings of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// By the thread's own clock, in the order of [`State::ALL`].
    pub states_ns: [u64; State::ALL.len()],
    /// CPU time by the kernel's account.
    pub cpu_ns: u64,
}

impl Spent {
    pub fn of(&self, state: State) -> u64 {
        self.states_ns[state as usize]
    }

    pub fn whole_ns(&self) -> u64 {
        self.states_ns.iter().sum()
    }
}

/// What a meter shows at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// By the thread's own clock, in the order of [`State::ALL`].
    pub spent_ns: [u64; State::ALL.len()],
    /// CPU time by the kernel's account; `None` if the thread has not begun or has died.
    pub cpu_ns: Option<u64>,
    /// Distinguishes an engine from its replacement, which has the same number and another clock.
    pub clock: i32,
}

impl Reading {
    pub fn of(&self, state: State) -> u64 {
        self.spent_ns[state as usize]
    }

    /// The time since an earlier reading. `None` if the engine of one of the readings has died: the
    /// time of its death is unknown, and the time since then would count for its last state.
    pub fn since(&self, before: &Reading) -> Option<Spent> {
        let has_begun = before.clock != 0;
        if has_begun && before.clock != self.clock {
            return None;
        }
        let cpu_then_ns = if has_begun { before.cpu_ns? } else { 0 };
        Some(Spent {
            // A single state may decrease, their sum does not: see the tests.
            states_ns: std::array::from_fn(|at| {
                self.spent_ns[at].saturating_sub(before.spent_ns[at])
            }),
            cpu_ns: self.cpu_ns?.saturating_sub(cpu_then_ns),
        })
    }
}

impl Meter {
    /// The calling thread begins, or replaces one that died: it is busy from now on.
    pub fn begin(&self, clock: CpuClock) {
        let spent_ns = self.current().spent();
        self.write(State::Busy, clock.number(), monotonic_ns(), spent_ns);
    }

    /// The thread enters another state.
    #[inline]
    pub fn turn(&self, to: State) {
        let now_ns = monotonic_ns();
        let page = self.current();
        let clock = page.clock.load(Relaxed);
        self.write(to, clock, now_ns, page.spent_until(now_ns));
    }

    /// Does `work` in a state, and is busy afterwards.
    pub fn during<T>(&self, state: State, work: impl FnOnce() -> T) -> T {
        self.turn(state);
        let result = work();
        self.turn(State::Busy);
        result
    }

    /// The time in each state up to now, the current state included.
    pub fn read(&self) -> Reading {
        loop {
            let version = self.version.load(Acquire);
            let page = &self.pages[version as usize % 2];
            let (spent_ns, clock) = (page.spent_until(monotonic_ns()), page.clock.load(Relaxed));
            fence(Acquire);
            if self.version.load(Relaxed) != version {
                continue;
            }
            let cpu_ns = match clock {
                0 => None,
                number => CpuClock::from_number(number).read_ns(),
            };
            return Reading {
                spent_ns,
                cpu_ns,
                clock,
            };
        }
    }

    fn current(&self) -> &Page {
        &self.pages[self.version.load(Relaxed) as usize % 2]
    }

    #[inline]
    fn write(&self, state: State, clock: i32, since_ns: u64, spent_ns: [u64; State::ALL.len()]) {
        let version = self.version.load(Relaxed).wrapping_add(1);
        // A reader that sees one of the stores below also sees the version that they replace.
        fence(Release);
        let page = &self.pages[version as usize % 2];
        page.state.store(state as u32, Relaxed);
        page.clock.store(clock, Relaxed);
        page.since_ns.store(since_ns, Relaxed);
        for (place, ns) in page.spent_ns.iter().zip(spent_ns) {
            place.store(ns, Relaxed);
        }
        self.version.store(version, Release);
    }
}

impl Page {
    fn spent(&self) -> [u64; State::ALL.len()] {
        std::array::from_fn(|at| self.spent_ns[at].load(Relaxed))
    }

    /// The times including that of the current state; zeros before the thread begins.
    fn spent_until(&self, now_ns: u64) -> [u64; State::ALL.len()] {
        let mut spent_ns = self.spent();
        if self.clock.load(Relaxed) != 0 {
            let state = self.state.load(Relaxed) as usize;
            spent_ns[state] += now_ns.saturating_sub(self.since_ns.load(Relaxed));
        }
        spent_ns
    }
}

/// The meters of all threads and processes that process requests.
#[derive(Debug)]
pub struct Meters {
    /// Meters of the engines.
    pub engines: Box<[CachePadded<Meter>]>,
    /// Meters of the I/O threads that are not engines.
    pub io_threads: Box<[CachePadded<Meter>]>,
    /// The meter of the disk thread, if there is one.
    pub disks: Box<[CachePadded<Meter>]>,
}

impl Meters {
    pub fn new(engines: usize, io_threads: usize, disks: usize) -> Self {
        let some = |count| (0..count).map(|_| CachePadded::default()).collect();
        Self {
            engines: some(engines),
            io_threads: some(io_threads),
            disks: some(disks),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn states_share_all_of_the_time() {
        let meter = Meter::default();
        assert_eq!(meter.read(), Reading::default(), "it has not begun");
        let begin_ns = monotonic_ns();
        meter.begin(CpuClock::of_this_thread());
        let begun_ns = monotonic_ns();
        meter.turn(State::Spinning);
        meter.turn(State::Asleep);
        let answer = meter.during(State::Disk, || 42);
        assert_eq!(answer, 42);
        let from_ns = monotonic_ns();
        let reading = meter.read();
        let to_ns = monotonic_ns();
        let sum: u64 = reading.spent_ns.iter().sum();
        assert!((from_ns - begun_ns..=to_ns - begin_ns).contains(&sum));
        assert!(State::ALL.iter().all(|it| reading.of(*it) > 0));
        assert!(reading.cpu_ns.is_some());
    }

    /// A reader never counts the state that has just ended twice, nor misses it. The time of a
    /// single state may decrease: if an engine loses its CPU at a change of state, a reader counts
    /// the time for the old state first.
    #[test]
    fn readings_are_whole_and_never_go_back() {
        let (meter, stop) = (Meter::default(), AtomicBool::new(false));
        meter.begin(CpuClock::of_this_thread());
        let begun_ns = monotonic_ns();
        let readings: Vec<(u64, u64)> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    for state in State::ALL {
                        meter.turn(state);
                        (0..50).for_each(|_| std::hint::spin_loop());
                    }
                }
            });
            let read = |_| (monotonic_ns(), meter.read().spent_ns.iter().sum());
            let readings = (0..20_000).map(read).collect();
            stop.store(true, Relaxed);
            readings
        });
        assert!(readings.is_sorted_by_key(|(_, sum_ns)| *sum_ns));
        for (from_ns, sum_ns) in readings {
            assert!(sum_ns >= from_ns - begun_ns);
        }
    }

    #[test]
    fn a_death_while_writing_spoils_nothing() {
        let meter = Meter::default();
        meter.begin(CpuClock::of_this_thread());
        meter.turn(State::Busy);
        // The last state of the predecessor must not count for the replacement.
        let busy_ns = meter.current().spent()[State::Busy as usize];
        let torn = &meter.pages[(meter.version.load(Relaxed) as usize + 1) % 2];
        torn.spent_ns[0].store(u64::MAX / 2, Relaxed);
        assert!(meter.read().of(State::Busy) < u64::MAX / 4);
        meter.begin(CpuClock::of_this_thread());
        assert!((busy_ns..u64::MAX / 4).contains(&meter.read().of(State::Busy)));
    }

    #[test]
    fn time_spent_is_known_of_one_engine_that_lives() {
        let meter = Meter::default();
        let never = meter.read();
        meter.begin(CpuClock::of_this_thread());
        let first = meter.read();
        let second = meter.read();
        let spent = second.since(&first).unwrap();
        assert_eq!(
            spent.of(State::Busy),
            second.of(State::Busy) - first.of(State::Busy)
        );
        assert_eq!(
            Some(spent.cpu_ns),
            second.cpu_ns.zip(first.cpu_ns).map(|(b, a)| b - a)
        );
        let whole = second.since(&never).unwrap();
        assert_eq!(whole.whole_ns(), second.of(State::Busy));
        assert_eq!(Some(whole.cpu_ns), second.cpu_ns);
        let dead = Reading {
            cpu_ns: None,
            ..second
        };
        assert_eq!(dead.since(&first), None, "it may be dead for a while");
        let replacement = Reading {
            clock: first.clock + 8,
            ..second
        };
        assert_eq!(replacement.since(&first), None);
        assert_eq!(second.since(&dead), None);
        assert_eq!(never.since(&never), None);
    }

    #[test]
    fn a_replacement_goes_on_where_its_predecessor_was_last_seen() {
        let meter = Meter::default();
        meter.begin(CpuClock::of_this_thread());
        meter.turn(State::Asleep);
        let busy_ns = meter.pages[0].spent_ns[0].load(Relaxed);
        let replacement = std::thread::scope(|scope| {
            let begin = || {
                meter.begin(CpuClock::of_this_thread());
                meter.read()
            };
            scope.spawn(begin).join().unwrap()
        });
        assert!(replacement.of(State::Busy) >= busy_ns);
        assert_ne!(replacement.clock, CpuClock::of_this_thread().number());
    }
}

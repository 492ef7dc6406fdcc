//! What one engine or I/O thread does with its time, by its own clock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, fence};

use concurve_clock::{CpuClock, monotonic_ns};

/// What an engine is doing, as it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Serving; also while the kernel runs something else on its CPU.
    Busy,
    /// Looking for work before it sleeps: the dial `--idle`.
    Spinning,
    /// Asleep until a socket or another thread has something for it.
    Asleep,
    /// Waiting for the disk.
    Disk,
}

impl State {
    pub const ALL: [State; 4] = [State::Busy, State::Spinning, State::Asleep, State::Disk];

    /// As figures name it.
    pub fn name(self) -> &'static str {
        match self {
            State::Busy => "busy",
            State::Spinning => "spinning",
            State::Asleep => "asleep",
            State::Disk => "disk",
        }
    }
}

/// Written by its engine alone, read by everybody: in shared memory if engines are processes.
///
/// There are two pages, and the one that is not current is written: whoever dies or is preempted in
/// between leaves the current one whole.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Meter {
    /// Whose last bit says which page is current.
    version: AtomicU32,
    pages: [Page; 2],
}

#[derive(Debug, Default)]
struct Page {
    state: AtomicU32,
    /// The number of the engine's [`CpuClock`]; 0: it has not begun.
    clock: AtomicI32,
    /// When it came into this state.
    since_ns: AtomicU64,
    /// Time in each state before that.
    spent_ns: [AtomicU64; State::ALL.len()],
}

/// What one engine spent between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// By its own clock, in the order of [`State::ALL`].
    pub states_ns: [u64; State::ALL.len()],
    /// By the kernel's.
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

/// What a meter said at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// By the engine's own clock, in the order of [`State::ALL`].
    pub spent_ns: [u64; State::ALL.len()],
    /// By the kernel's; none if the engine has not begun or has died.
    pub cpu_ns: Option<u64>,
    /// Which engine it was: another one, under the same number, has another.
    pub clock: i32,
}

impl Reading {
    pub fn of(&self, state: State) -> u64 {
        self.spent_ns[state as usize]
    }

    /// What was spent since an earlier reading. None if the engine of one of them has died: its last
    /// moments are not known, and the time since then looks like more of what it did last.
    pub fn since(&self, before: &Reading) -> Option<Spent> {
        let has_begun = before.clock != 0;
        if has_begun && before.clock != self.clock {
            return None;
        }
        let cpu_then_ns = if has_begun { before.cpu_ns? } else { 0 };
        Some(Spent {
            // One state alone may go back: see the tests.
            states_ns: std::array::from_fn(|at| {
                self.spent_ns[at].saturating_sub(before.spent_ns[at])
            }),
            cpu_ns: self.cpu_ns?.saturating_sub(cpu_then_ns),
        })
    }
}

impl Meter {
    /// The engine begins, or another one in its place: busy from now on. To be called in its thread.
    pub fn begin(&self, clock: CpuClock) {
        let spent_ns = self.current().spent();
        self.write(State::Busy, clock.number(), monotonic_ns(), spent_ns);
    }

    /// The engine does something else from now on.
    #[inline]
    pub fn turn(&self, to: State) {
        let now_ns = monotonic_ns();
        let page = self.current();
        let clock = page.clock.load(Relaxed);
        self.write(to, clock, now_ns, page.spent_until(now_ns));
    }

    /// Does something in a state, and is busy again.
    pub fn during<T>(&self, state: State, work: impl FnOnce() -> T) -> T {
        self.turn(state);
        let result = work();
        self.turn(State::Busy);
        result
    }

    /// What it says now, with the state under way.
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
        // Who sees anything of what follows sees that the page before is the current one.
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

    /// With the state under way; nothing is, before the engine begins.
    fn spent_until(&self, now_ns: u64) -> [u64; State::ALL.len()] {
        let mut spent_ns = self.spent();
        if self.clock.load(Relaxed) != 0 {
            let state = self.state.load(Relaxed) as usize;
            spent_ns[state] += now_ns.saturating_sub(self.since_ns.load(Relaxed));
        }
        spent_ns
    }
}

/// The meters of all that serve.
#[derive(Debug)]
pub struct Meters {
    /// Who executes requests.
    pub engines: Box<[Meter]>,
    /// Who only reads, parses and answers.
    pub io_threads: Box<[Meter]>,
    /// Who only makes durable what engines executed: one, or none.
    pub disks: Box<[Meter]>,
}

impl Meters {
    pub fn new(engines: usize, io_threads: usize, disks: usize) -> Self {
        let some = |count| (0..count).map(|_| Meter::default()).collect();
        Self {
            engines: some(engines),
            io_threads: some(io_threads),
            disks: some(disks),
        }
    }

    /// The meter of an I/O thread, from 0: that of an engine if I/O threads execute.
    pub fn of_io_thread(&self, number: usize) -> &Meter {
        match self.io_threads.is_empty() {
            true => &self.engines[number],
            false => &self.io_threads[number],
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

    /// A reader never counts the state that just ended twice, nor misses it. One state alone may
    /// go back: an engine that lost its CPU at a turn was read as if it were still in the old one.
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
    fn who_died_while_writing_spoils_nothing() {
        let meter = Meter::default();
        meter.begin(CpuClock::of_this_thread());
        meter.turn(State::Busy);
        // A successor does not know what was under way.
        let busy_ns = meter.current().spent()[State::Busy as usize];
        let torn = &meter.pages[(meter.version.load(Relaxed) as usize + 1) % 2];
        torn.spent_ns[0].store(u64::MAX / 2, Relaxed);
        assert!(meter.read().of(State::Busy) < u64::MAX / 4);
        meter.begin(CpuClock::of_this_thread());
        assert!((busy_ns..u64::MAX / 4).contains(&meter.read().of(State::Busy)));
    }

    #[test]
    fn what_was_spent_is_known_of_one_engine_that_lives() {
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
        let successor = Reading {
            clock: first.clock + 8,
            ..second
        };
        assert_eq!(successor.since(&first), None);
        assert_eq!(second.since(&dead), None);
        assert_eq!(never.since(&never), None);
    }

    #[test]
    fn a_successor_goes_on_where_the_one_before_it_was_last_seen() {
        let meter = Meter::default();
        meter.begin(CpuClock::of_this_thread());
        meter.turn(State::Asleep);
        let busy_ns = meter.pages[0].spent_ns[0].load(Relaxed);
        let successor = std::thread::scope(|scope| {
            let begin = || {
                meter.begin(CpuClock::of_this_thread());
                meter.read()
            };
            scope.spawn(begin).join().unwrap()
        });
        assert!(successor.of(State::Busy) >= busy_ns);
        assert_ne!(successor.clock, CpuClock::of_this_thread().number());
    }
}

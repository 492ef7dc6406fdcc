//! How threads come by the units of work.
//!
//! Document 002 compares synchronisation methods but never says what is locked. Here the
//! hand-out of work is, and [`Grain`](crate::cut::Grain) says how much work one hand-out gives, so
//! that the contention is a factor of its own.

#[cfg(test)]
mod tests;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cut::{Cut, Unit};
use crate::view::Point;

/// How the threads agree on who computes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Sync {
    /// Static shares, dealt before the start; nothing is shared while computing
    None,
    /// One coarse lock around the hand-out and its bookkeeping (Java: a synchronized method)
    Method,
    /// A fine lock around the hand-out alone (Java: a synchronized block)
    Object,
    /// A compare-and-swap loop on the hand-out counter
    Cas,
}

impl Sync {
    /// Name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Method => "method",
            Self::Object => "object",
            Self::Cas => "cas",
        }
    }
}

/// Keeps a shared counter on cache lines of its own (128: neighbours are fetched in pairs).
#[derive(Debug)]
#[repr(align(128))]
struct OwnCacheLine<T>(T);

/// What the coarse lock guards: the next unit and the books of the whole picture.
#[derive(Debug, Default)]
struct Ledger {
    next: u64,
    pixels: u64,
    percent: u64,
}

/// The state that the threads share.
#[derive(Debug)]
enum Shared {
    Nothing { workers: u64 },
    Ledger(OwnCacheLine<Mutex<Ledger>>),
    Locked(OwnCacheLine<Mutex<u64>>),
    Atomic(OwnCacheLine<AtomicU64>),
}

/// Hands out every unit of a picture exactly once.
#[derive(Debug)]
pub struct Handout {
    cut: Cut,
    shared: Shared,
}

impl Handout {
    #[must_use]
    pub fn new(cut: Cut, sync: Sync, workers: usize) -> Self {
        let shared = match sync {
            Sync::None => Shared::Nothing {
                workers: workers as u64,
            },
            Sync::Method => Shared::Ledger(OwnCacheLine(Mutex::default())),
            Sync::Object => Shared::Locked(OwnCacheLine(Mutex::default())),
            Sync::Cas => Shared::Atomic(OwnCacheLine(AtomicU64::default())),
        };
        Self { cut, shared }
    }

    /// The pixels of worker `worker`, as it comes by them.
    #[must_use]
    pub fn points(&self, worker: usize) -> Points<'_> {
        Points {
            handout: self,
            place: worker as u64,
            unit: Unit::EMPTY,
            x: 0,
            y: 0,
            unit_pixels: 0,
            pixels: 0,
        }
    }

    /// Pixels counted under the coarse lock; absent where each worker keeps its own count.
    #[must_use]
    pub fn pixels_booked(&self) -> Option<u64> {
        match &self.shared {
            Shared::Ledger(ledger) => Some(lock(&ledger.0).pixels),
            _ => None,
        }
    }

    /// The next unit for a worker that has computed `pixels_done` pixels since it last asked.
    fn claim(&self, place: &mut u64, pixels_done: u64) -> Option<Unit> {
        let units = self.cut.units();
        let number = match &self.shared {
            Shared::Nothing { workers } => {
                let mine = *place;
                *place += workers;
                (mine < units).then(|| self.cut.dealt(mine))
            }
            Shared::Ledger(ledger) => {
                let mut ledger = lock(&ledger.0);
                ledger.pixels += pixels_done;
                ledger.percent = ledger.pixels * 100 / self.cut.view.pixels();
                advance(&mut ledger.next, units)
            }
            Shared::Locked(next) => advance(&mut lock(&next.0), units),
            Shared::Atomic(next) => compare_and_swap(&next.0, units),
        };
        number.map(|number| self.cut.unit(number))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics under this lock")
}

fn advance(next: &mut u64, units: u64) -> Option<u64> {
    let number = *next;
    (number < units).then(|| {
        *next += 1;
        number
    })
}

/// Relaxed is enough: only the number counts; the gate at the end orders everything else.
fn compare_and_swap(next: &AtomicU64, units: u64) -> Option<u64> {
    let mut number = next.load(Ordering::Relaxed);
    while number < units {
        let (order, wanted) = (Ordering::Relaxed, number + 1);
        match next.compare_exchange_weak(number, wanted, order, order) {
            Ok(_) => return Some(number),
            Err(seen) => number = seen,
        }
    }
    None
}

/// The pixels of one worker; asks for the next unit when one is used up.
#[derive(Debug)]
pub struct Points<'a> {
    handout: &'a Handout,
    /// Next place in this worker's static share.
    place: u64,
    unit: Unit,
    x: u32,
    y: u32,
    /// Pixels since the last hand-out.
    unit_pixels: u64,
    /// Pixels in all.
    pixels: u64,
}

impl Points<'_> {
    /// Pixels that this worker has come by.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        self.pixels
    }
}

impl Iterator for Points<'_> {
    type Item = Point;

    #[inline]
    fn next(&mut self) -> Option<Point> {
        if self.y == self.unit.height {
            let pixels_done = std::mem::take(&mut self.unit_pixels);
            self.unit = Unit::EMPTY;
            (self.x, self.y) = (0, 0);
            self.unit = self.handout.claim(&mut self.place, pixels_done)?;
        }
        let view = &self.handout.cut.view;
        let point = view.point(self.unit.x + self.x, self.unit.y + self.y);
        self.unit_pixels += 1;
        self.pixels += 1;
        self.x += 1;
        if self.x == self.unit.width {
            (self.x, self.y) = (0, self.y + 1);
        }
        Some(point)
    }
}

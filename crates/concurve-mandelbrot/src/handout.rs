//! How the picture is cut into units of work, and how threads come by them.
//!
//! Document 002 compares synchronisation methods but never says what is locked. Here the
//! hand-out of work is, and [`Grain`] says how much work one hand-out gives, so that the
//! contention is a factor of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::view::{Point, View};

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

/// How much one hand-out gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    Pixel,
    Line,
    /// A square of so many pixels a side; those at the right and lower edges may be smaller.
    Tile(u32),
}

impl Grain {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pixel => "pixel",
            Self::Line => "line",
            Self::Tile(_) => "tile",
        }
    }
}

/// A rectangle of pixels: one unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

/// The picture cut into units, numbered row by row.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    view: View,
    unit_width: u32,
    unit_height: u32,
    columns: u64,
    rows: u64,
}

impl Cut {
    #[must_use]
    pub fn new(view: View, grain: Grain) -> Self {
        let (unit_width, unit_height) = match grain {
            Grain::Pixel => (1, 1),
            Grain::Line => (view.width, 1),
            Grain::Tile(side) => (side.min(view.width), side.min(view.height)),
        };
        Self {
            view,
            unit_width,
            unit_height,
            columns: u64::from(view.width.div_ceil(unit_width)),
            rows: u64::from(view.height.div_ceil(unit_height)),
        }
    }

    /// Number of units.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.columns * self.rows
    }

    fn unit(&self, number: u64) -> Unit {
        let x = (number % self.columns) as u32 * self.unit_width;
        let y = (number / self.columns) as u32 * self.unit_height;
        Unit {
            x,
            y,
            width: self.unit_width.min(self.view.width - x),
            height: self.unit_height.min(self.view.height - y),
        }
    }

    /// The unit at `place` of the order in which static shares are dealt, one to each thread
    /// in turn.
    ///
    /// Lines are dealt from top to bottom. Where a row has several units, each row begins one
    /// unit further right than the row above: otherwise a thread would get whole columns of
    /// the picture whenever the number of threads divides the number of units in a row, and
    /// columns differ in cost.
    fn dealt(&self, place: u64) -> u64 {
        let (row, column) = (place / self.columns, place % self.columns);
        row * self.columns + (column + row) % self.columns
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
            unit: EMPTY,
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

const EMPTY: Unit = Unit {
    x: 0,
    y: 0,
    width: 0,
    height: 0,
};

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
            self.unit = EMPTY;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::location::Location;

    const SYNCS: [Sync; 4] = [Sync::None, Sync::Method, Sync::Object, Sync::Cas];

    fn handout(width: u32, height: u32, grain: Grain, sync: Sync, workers: usize) -> Handout {
        let view = View::new(&Location::built_in(), width, height, 10);
        Handout::new(Cut::new(view, grain), sync, workers)
    }

    fn grains() -> impl Strategy<Value = Grain> {
        prop_oneof![
            Just(Grain::Pixel),
            Just(Grain::Line),
            (1..20_u32).prop_map(Grain::Tile)
        ]
    }

    proptest! {
        #[test]
        fn every_pixel_is_handed_out_exactly_once(
            width in 1..40_u32, height in 1..40_u32, grain in grains(), workers in 1..30_usize,
        ) {
            for sync in SYNCS {
                let handout = handout(width, height, grain, sync, workers);
                let mut seen = vec![0; (width * height) as usize];
                let mut workers: Vec<_> = (0..workers).map(|w| handout.points(w)).collect();
                // Each in turn, one pixel at a time, until nobody gets any.
                while workers.iter_mut().filter_map(Iterator::next).fold(false, |_, point| {
                    seen[point.index] += 1;
                    true
                }) {}
                prop_assert!(seen.iter().all(|times| *times == 1));
                let pixels: u64 = workers.iter().map(Points::pixels).sum();
                prop_assert_eq!(pixels, u64::from(width * height));
                prop_assert!(handout.pixels_booked().is_none_or(|booked| booked == pixels));
            }
        }
    }

    fn shares(grain: Grain, workers: usize) -> Vec<Vec<usize>> {
        let handout = handout(1016, 718, grain, Sync::None, workers);
        (0..workers)
            .map(|worker| handout.points(worker).map(|point| point.index).collect())
            .collect()
    }

    #[test]
    fn static_shares_of_lines_are_dealt_round_robin() {
        for workers in [2, 3, 8, 32, 128, 512] {
            for (worker, share) in shares(Grain::Line, workers).iter().enumerate() {
                let lines: Vec<usize> = share.iter().step_by(1016).map(|i| i / 1016).collect();
                let expected: Vec<usize> = (worker..718).step_by(workers).collect();
                assert_eq!(lines, expected);
            }
        }
    }

    #[test]
    fn static_shares_never_differ_by_more_than_one_unit() {
        for workers in [2, 3, 8, 32, 128, 512] {
            let sizes: Vec<usize> = shares(Grain::Pixel, workers).iter().map(Vec::len).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn static_shares_take_no_whole_columns() {
        // 32 tiles in a row and 8 | 1016: plain round robin would deal out columns.
        for (grain, workers) in [
            (Grain::Tile(32), 32),
            (Grain::Tile(32), 8),
            (Grain::Pixel, 8),
        ] {
            for share in shares(grain, workers) {
                let columns: std::collections::BTreeSet<usize> =
                    share.iter().map(|index| index % 1016).collect();
                assert!(columns.len() > 1016 / 2, "{grain:?} {workers}");
            }
        }
    }

    #[test]
    fn more_workers_than_units_leave_some_idle() {
        let shares = shares(Grain::Tile(2000), 3);
        assert_eq!(shares[0].len(), 1016 * 718);
        assert!(shares[1].is_empty() && shares[2].is_empty());
    }
}

//! How units of work are assigned to threads.
//!
//! Document 002 compares synchronisation methods but never says what is locked. Here it is the
//! hand-out of work, and [`Grain`](crate::cut::Grain) says how much work one hand-out gives, so
//! that the contention is a factor of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::cut::{Cut, Unit};
use crate::owners::Owners;
use crate::view::Point;

/// How units of work are assigned to threads.
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

/// What the coarse lock guards: the next unit, and how much of the whole image is done.
#[derive(Debug, Default)]
struct Progress {
    next: u64,
    pixels: u64,
    percent: u64,
}

/// The state that the threads share, on cache lines of its own.
#[derive(Debug)]
enum Shared {
    Nothing { workers: u64 },
    Progress(CachePadded<Mutex<Progress>>),
    Locked(CachePadded<Mutex<u64>>),
    Atomic(CachePadded<AtomicU64>),
}

/// Hands out every unit of an image exactly once.
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
            Sync::Method => Shared::Progress(CachePadded::default()),
            Sync::Object => Shared::Locked(CachePadded::default()),
            Sync::Cas => Shared::Atomic(CachePadded::default()),
        };
        Self { cut, shared }
    }

    /// The pixels of worker `worker`, handed out as it iterates.
    #[must_use]
    pub fn points(&self, worker: usize) -> Points<'_> {
        Points {
            handout: self,
            worker,
            owners: None,
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
    pub fn pixels_counted(&self) -> Option<u64> {
        match &self.shared {
            Shared::Progress(progress) => Some(lock(progress).pixels),
            _ => None,
        }
    }

    /// The number of the next unit for a worker that has computed `pixels_done` pixels since it last
    /// asked.
    fn claim(&self, place: &mut u64, pixels_done: u64) -> Option<u64> {
        let units = self.cut.units();
        match &self.shared {
            Shared::Nothing { workers } => {
                let mine = *place;
                *place += workers;
                (mine < units).then(|| self.cut.dealt(mine))
            }
            Shared::Progress(progress) => {
                let mut progress = lock(progress);
                progress.pixels += pixels_done;
                progress.percent = progress.pixels * 100 / self.cut.view.pixels();
                advance(&mut progress.next, units)
            }
            Shared::Locked(next) => advance(&mut lock(next), units),
            Shared::Atomic(next) => compare_and_swap(next, units),
        }
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

/// Relaxed is enough: only the number counts; the barrier at the end orders everything else.
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
    worker: usize,
    /// Where it notes the units that it takes, if somebody wants to know.
    owners: Option<&'a Owners>,
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

impl<'a> Points<'a> {
    /// The same pixels; the worker notes the units that it takes.
    #[must_use]
    pub fn noted(self, owners: Option<&'a Owners>) -> Self {
        Self { owners, ..self }
    }

    /// Pixels that this worker was given.
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
            let number = self.handout.claim(&mut self.place, pixels_done)?;
            if let Some(owners) = self.owners {
                owners.take(number, self.worker);
            }
            self.unit = self.handout.cut.unit(number);
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
    //! Every pixel once, in shares that are as equal as can be.

    use proptest::prelude::*;

    use super::*;
    use crate::cut::Grain;
    use crate::location::Location;
    use crate::view::View;

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
                // Each worker in turn takes one pixel, until none is left for any of them.
                while workers.iter_mut().filter_map(Iterator::next).fold(false, |_, point| {
                    seen[point.index] += 1;
                    true
                }) {}
                prop_assert!(seen.iter().all(|times| *times == 1));
                let pixels: u64 = workers.iter().map(Points::pixels).sum();
                prop_assert_eq!(pixels, u64::from(width * height));
                prop_assert!(handout.pixels_counted().is_none_or(|counted| counted == pixels));
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

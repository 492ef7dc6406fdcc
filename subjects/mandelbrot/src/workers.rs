//! The worker threads. They are created before the first computation and wait at the start
//! barrier; the main thread opens it and waits for their end.

use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::thread::{self, Scope};

use concurve_clock::monotonic_ns;

use crate::cut::{Cut, Grain};
use crate::error::Error;
use crate::handout::{Handout, Sync};
use crate::image::Image;
use crate::kernel::Path;
use crate::limits;
use crate::start_barrier::StartBarrier;
use crate::view::View;

/// Stack of a worker: it holds a few vectors of numbers.
const STACK_BYTES: usize = 128 * 1024;

const UNPOISONED: &str = "nothing panics under this lock";

/// How an image is computed.
#[derive(Debug, Clone, Copy)]
pub struct ComputeOptions {
    pub threads: usize,
    pub sync: Sync,
    pub grain: Grain,
    pub path: Path,
}

/// One worker's part of one computation.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerResult {
    /// `Thread-1`, `Thread-2`, …
    pub name: String,
    pub pixels: u64,
    pub iterations: u64,
    /// CLOCK_MONOTONIC when it passed the start barrier and when no work was left for it.
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl WorkerResult {
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 / 1e9
    }
}

/// One computation of the whole image.
#[derive(Debug, Clone, PartialEq)]
pub struct Computation {
    /// CLOCK_MONOTONIC just before the start barrier opened.
    pub begin_ns: u64,
    /// CLOCK_MONOTONIC when the last worker was done.
    pub end_ns: u64,
    /// In the order in which they were done.
    pub workers: Vec<WorkerResult>,
    pub pixels: u64,
    /// Sum of the iteration counts of all pixels.
    pub pixel_sum: u64,
}

impl Computation {
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 / 1e9
    }
}

/// Called by the main thread at the begin and the end of a computation.
pub trait Observer {
    /// All workers wait at the start barrier; the computation begins at `begin_ns`.
    ///
    /// # Errors
    /// Ends the run.
    fn begin(&mut self, begin_ns: u64) -> Result<(), Error>;

    /// All workers are done.
    ///
    /// # Errors
    /// Ends the run.
    fn end(&mut self, computation: &Computation) -> Result<(), Error>;
}

/// Computes `view` into `image`, `repeat` times with the same threads.
///
/// # Errors
/// Threads cannot be created, a pixel was lost, or the observer failed. The threads that were
/// created have ended in every case.
pub fn compute(
    view: View,
    options: ComputeOptions,
    repeat: u32,
    image: &Image,
    observer: &mut impl Observer,
) -> Result<(), Error> {
    limits::check_memory_maps(options.threads)?;
    let cut = Cut::new(view, options.grain);
    let shared = SharedState {
        view,
        options,
        image,
        barrier: StartBarrier::default(),
        handout: RwLock::default(),
        results: Mutex::default(),
    };
    thread::scope(|scope| {
        let _closes = CloseOnDrop(&shared.barrier);
        shared.spawn_workers(scope)?;
        for _ in 0..repeat {
            let computation = shared.compute_once(cut, observer)?;
            observer.end(&computation)?;
        }
        Ok(())
    })
}

/// What the main thread and the workers share.
struct SharedState<'a> {
    view: View,
    options: ComputeOptions,
    image: &'a Image,
    barrier: StartBarrier,
    /// Renewed for each computation while the workers wait.
    handout: RwLock<Option<Arc<Handout>>>,
    results: Mutex<Vec<WorkerResult>>,
}

impl SharedState<'_> {
    fn spawn_workers<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<(), Error> {
        for worker in 0..self.options.threads {
            thread::Builder::new()
                .name(worker_name(worker))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || self.work(worker))
                .map_err(|source| Error::Threads {
                    requested: self.options.threads,
                    created: worker,
                    limit: limits::exhausted_limit(),
                    source,
                })?;
        }
        Ok(())
    }

    fn work(&self, worker: usize) {
        let _reports_death = BreakOnPanic(&self.barrier);
        while self.barrier.enter() {
            let handout = self.handout().expect("set before opening");
            let begin_ns = monotonic_ns();
            let mut points = handout.points(worker).noted(self.image.owners());
            let iterations =
                self.options
                    .path
                    .compute(points.by_ref(), self.view.iterations, self.image);
            let pixels = points.pixels();
            let end_ns = monotonic_ns();
            self.lock_results().push(WorkerResult {
                name: worker_name(worker),
                pixels,
                iterations,
                begin_ns,
                end_ns,
            });
        }
    }

    fn compute_once(&self, cut: Cut, observer: &mut impl Observer) -> Result<Computation, Error> {
        let threads = self.options.threads;
        let handout = Arc::new(Handout::new(cut, self.options.sync, threads));
        *self.handout.write().expect(UNPOISONED) = Some(handout.clone());
        self.wait_for_workers();
        let begin_ns = monotonic_ns();
        observer.begin(begin_ns)?;
        self.barrier.open();
        self.wait_for_workers();
        let mut workers = std::mem::take(&mut *self.lock_results());
        workers.sort_by_key(|worker| worker.end_ns);
        self.check(workers, begin_ns, &handout)
    }

    fn wait_for_workers(&self) {
        assert!(self.barrier.wait_for(self.options.threads), "a worker died");
    }

    fn check(
        &self,
        workers: Vec<WorkerResult>,
        begin_ns: u64,
        handout: &Handout,
    ) -> Result<Computation, Error> {
        let counted = workers.iter().map(|worker| worker.pixels).sum();
        let pixels = handout.pixels_counted().unwrap_or(counted);
        let expected = self.view.pixels();
        if pixels != expected || counted != expected {
            let computed = if pixels == expected { counted } else { pixels };
            return Err(Error::PixelsLost { computed, expected });
        }
        Ok(Computation {
            begin_ns,
            end_ns: workers.last().map_or(begin_ns, |worker| worker.end_ns),
            pixel_sum: workers.iter().map(|worker| worker.iterations).sum(),
            pixels,
            workers,
        })
    }

    fn handout(&self) -> Option<Arc<Handout>> {
        self.handout.read().expect(UNPOISONED).clone()
    }

    fn lock_results(&self) -> MutexGuard<'_, Vec<WorkerResult>> {
        self.results.lock().expect(UNPOISONED)
    }
}

/// The names of the threads in document 002.
fn worker_name(worker: usize) -> String {
    format!("Thread-{}", worker + 1)
}

struct CloseOnDrop<'a>(&'a StartBarrier);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct BreakOnPanic<'a>(&'a StartBarrier);

impl Drop for BreakOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.worker_died();
        }
    }
}

//! An engine that only executes: it takes what I/O threads have put into the run queue.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use concurve_clock::CpuClock;

use crate::error::Error;
use crate::hall::Hall;
use crate::net::give_back::give_back;
use crate::net::run_queue::{RunQueue, Task};
use crate::net::until::Until;

/// Executes batches as the engine of this number, from 0, until that ends.
pub fn run(hall: &Hall, queue: &RunQueue, engine: usize, until: &Until) -> Result<(), Error> {
    let meter = &hall.meters.engines[engine];
    meter.begin(CpuClock::of_this_thread());
    queue.serve(hall.settings.idle, meter, until, |tasks| {
        execute(hall, engine, tasks);
        for task in tasks.drain(..) {
            match &hall.disk_queue {
                Some(disk) if hall.has_notes() || task.1.is_unconfirmed() => disk.send(task),
                _ => give_back(hall, task, meter),
            }
        }
        Ok(())
    })
}

fn execute(hall: &Hall, engine: usize, tasks: &mut [Task]) {
    let begin = Instant::now();
    for (_, batch) in &mut *tasks {
        batch.execute(hall, engine);
    }
    let busy_ns = begin.elapsed().as_nanos() as u64;
    hall.worker_busy_ns.fetch_add(busy_ns, Relaxed);
    hall.worker_batches.fetch_add(tasks.len() as u64, Relaxed);
}

//! An engine that only executes: it takes what I/O threads have put into the run queue.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use concurve_probe::clock::CpuClock;

use crate::error::Error;
use crate::hall::Hall;
use crate::net::inbox::Message;
use crate::net::run_queue::RunQueue;
use crate::net::until::Until;

/// How long it sleeps at most before it looks whether it is to end.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// Executes batches as the engine of this number, from 0, until that ends.
pub fn run(hall: &Hall, queue: &RunQueue, engine: usize, until: &Until) -> Result<(), Error> {
    let (mut tasks, meter) = (Vec::new(), &hall.meters.engines[engine]);
    meter.begin(CpuClock::of_this_thread());
    while !until.is_over() {
        queue.take(&mut tasks);
        if tasks.is_empty() {
            hall.settings.idle.wait(meter, |sleep| {
                if sleep {
                    queue.sleep(|| until.is_over(), SLEEP_MAX);
                }
                !queue.is_empty()
            });
            continue;
        }
        let begin = Instant::now();
        for (_, batch) in &mut tasks {
            batch.execute(hall, engine);
        }
        hall.commit(meter)?;
        for (_, batch) in &mut tasks {
            batch.confirm(hall, meter);
        }
        let busy_ns = begin.elapsed().as_nanos() as u64;
        hall.worker_busy_ns.fetch_add(busy_ns, Relaxed);
        hall.worker_batches.fetch_add(tasks.len() as u64, Relaxed);
        for (io_thread, batch) in tasks.drain(..) {
            hall.inboxes[io_thread].send(Message::Executed(batch));
        }
    }
    Ok(())
}

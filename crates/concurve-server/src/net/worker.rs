//! The one thread that executes everything, if execution is `worker`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use concurve_probe::clock::CpuClock;

use crate::hall::Hall;
use crate::net::batch::Batch;
use crate::net::inbox::Inbox;
use crate::net::io_thread::{IoInbox, Message};

/// A batch and the number of the I/O thread it came from.
pub type WorkerInbox = Inbox<(usize, Batch), std::thread::Thread>;

/// How long it sleeps at most before it looks whether the server stops.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// Executes batches until the server stops.
pub fn run(hall: &Hall, inbox: &WorkerInbox, io_threads: &[Arc<IoInbox>]) {
    let (mut batches, meter) = (Vec::new(), &hall.meters.engines[0]);
    meter.begin(CpuClock::of_this_thread());
    while !hall.stop.load(Relaxed) {
        inbox.take(&mut batches);
        if batches.is_empty() {
            hall.settings.idle.wait(meter, |sleep| {
                if sleep {
                    inbox.sleep_if_empty(|| std::thread::park_timeout(SLEEP_MAX));
                }
                !inbox.is_empty()
            });
            continue;
        }
        let begin = Instant::now();
        for (_, batch) in &mut batches {
            batch.execute(hall);
        }
        if !hall.commit(meter) {
            break;
        }
        for (_, batch) in &mut batches {
            batch.confirm(hall, meter);
        }
        let busy_ns = begin.elapsed().as_nanos() as u64;
        hall.worker_busy_ns.fetch_add(busy_ns, Relaxed);
        hall.worker_batches.fetch_add(batches.len() as u64, Relaxed);
        for (thread, batch) in batches.drain(..) {
            io_threads[thread].send(Message::Executed(batch));
        }
    }
}

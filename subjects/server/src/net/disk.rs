//! The disk's thread, where engines take from a run queue: it makes durable what they executed.
//!
//! What comes while it waits for the disk shares the next wait: engines go on meanwhile.

use concurve_clock::CpuClock;

use crate::error::Error;
use crate::hall::Hall;
use crate::net::give_back::give_back;
use crate::net::idle::Idle;
use crate::net::run_queue::RunQueue;
use crate::net::until::Until;

/// Serves the disk until the engine ends.
pub fn run(hall: &Hall, queue: &RunQueue, until: &Until) -> Result<(), Error> {
    let meter = &hall.meters.disks[0];
    meter.begin(CpuClock::of_this_thread());
    // It never spins for work: what it waits for most is the disk.
    queue.serve(Idle::Block, meter, until, |tasks| {
        hall.commit(meter)?;
        tasks
            .drain(..)
            .for_each(|task| give_back(hall, task, meter));
        Ok(())
    })
}

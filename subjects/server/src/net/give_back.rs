//! The way back of a batch that was executed, and is durable if it must be.

use std::sync::atomic::Ordering::Relaxed;

use crate::hall::Hall;
use crate::monitor::meter::Meter;
use crate::net::inbox::Message;
use crate::net::run_queue::Task;

/// Promises what was committed in a batch, and gives it back to its I/O thread; or answers first, and
/// leaves that asleep if nothing is left to do for it.
pub fn give_back(hall: &Hall, (io_thread, mut batch): Task, meter: &Meter) {
    batch.confirm(hall, meter);
    let requests = &hall.per_thread[io_thread].requests;
    requests.fetch_add(batch.executed(), Relaxed);
    let inbox = &hall.inboxes[io_thread];
    // An I/O thread that is awake answers without being woken, and many at once while we go on.
    let is_answered = batch.is_of_one() && inbox.sleeps() && batch.answer();
    let message = Message::Executed(batch);
    if is_answered {
        inbox.leave(message);
    } else {
        inbox.send(message);
    }
}

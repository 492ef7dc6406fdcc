//! The way back of a batch that was executed, and is durable if it must be.

use std::sync::atomic::Ordering::Relaxed;

use crate::hall::Hall;
use crate::monitor::meter::Meter;
use crate::net::inbox::Message;
use crate::net::run_queue::Task;

/// Promises what was committed in a batch, writes replies where that is up to whoever has them, and
/// gives it back to its I/O thread: without waking that, if nothing is left to do for it.
pub fn give_back(hall: &Hall, (io_thread, mut batch): Task, meter: &Meter) {
    batch.confirm(hall, meter);
    let requests = &hall.per_thread[io_thread].requests;
    requests.fetch_add(batch.executed(), Relaxed);
    let is_answered = batch.answer();
    let (inbox, message) = (&hall.inboxes[io_thread], Message::Executed(batch));
    if is_answered {
        inbox.leave(message);
    } else {
        inbox.send(message);
    }
}

//! Slices: who has the disk, for how long, and when it is kept idle for its owner.

use super::queue::Queue;
use super::{Cfq, LEVELS};
use crate::scheduler::Decision;
use crate::time::Time;

/// The queue that has the disk.
#[derive(Debug)]
pub struct Slice {
    pub queue: usize,
    /// Set when it sends its first request.
    pub end: Option<Time>,
    /// Requests that it has sent.
    pub sent: u32,
    /// The disk is kept idle for it until then.
    pub idle_until: Option<Time>,
    /// The order of arrival has been looked at.
    pub checked_age: bool,
}

impl Cfq {
    pub(super) fn slice_length(&self, queue: &Queue) -> Time {
        let base = match queue.is_sync {
            true => self.settings.slice_sync,
            false => self.settings.slice_async,
        };
        let steps = 4 - i64::from(queue.priority.level);
        (base as i64 + base as i64 / 5 * steps) as Time
    }

    /// Requests that a queue which nobody waits for may send in a slice.
    pub(super) fn most_async(&self, queue: &Queue) -> u32 {
        let base = self.settings.slice_async_rq;
        2 * (base + base * (LEVELS as u32 - 1 - u32::from(queue.priority.level)))
    }

    pub(super) fn end_slice(&mut self, now: Time) {
        let Some(slice) = self.slice.take() else {
            return;
        };
        self.queues[slice.queue].last_served = now;
        if self.queues[slice.queue].listed {
            self.turns.remove(slice.queue, &mut self.queues);
            self.turns.add(slice.queue, &mut self.queues);
        }
    }

    /// Who sends next: the queue that has the slice, or the next one. `Err`: what to say instead.
    pub(super) fn choose_queue(&mut self, now: Time) -> Result<usize, Decision> {
        if let Some(decided) = self.keep_slice(now) {
            return decided;
        }
        self.end_slice(now);
        let queue = match (self.turns.next_ahead_of_idle(), self.turns.next_idle()) {
            (Some(queue), _) => queue,
            (None, None) => return Err(Decision::Nothing),
            (None, Some(queue)) => {
                let end = self.last_end + self.settings.idle_grace;
                if now < end {
                    return Err(Decision::IdleUntil(end));
                }
                queue
            }
        };
        self.slice = Some(Slice {
            queue,
            end: None,
            sent: 0,
            idle_until: None,
            checked_age: false,
        });
        Ok(queue)
    }

    /// `None`: the slice is over, or there is none.
    fn keep_slice(&mut self, now: Time) -> Option<Result<usize, Decision>> {
        let slice = self.slice.as_ref()?;
        let queue = &self.queues[slice.queue];
        if self.turns.any_above(queue.priority.class) {
            return None;
        }
        let in_time = slice.end.is_none_or(|end| now <= end);
        if !queue.lane.is_empty() {
            // What was waited for is served, even if the slice ended meanwhile.
            let awaited = slice.idle_until.is_some();
            return (in_time || awaited).then_some(Ok(slice.queue));
        }
        if !in_time || !queue.is_sync || !queue.idle_window || self.settings.slice_idle == 0 {
            return None;
        }
        let until = *self
            .slice
            .as_mut()?
            .idle_until
            .get_or_insert(now + self.settings.slice_idle);
        (now < until).then_some(Err(Decision::IdleUntil(until)))
    }
}

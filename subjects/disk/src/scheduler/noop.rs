//! **noop**: first come, first served. Only the request that came last may grow, at its end.

use std::collections::VecDeque;

use super::{Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::Request;
use crate::time::Time;

#[derive(Debug, Default)]
pub struct Noop {
    queue: VecDeque<Request>,
}

impl Scheduler for Noop {
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let last = self.queue.back_mut()?;
        if last.end() != request.sector || !last.may_join(request, MERGE_LIMIT) {
            return None;
        }
        last.sectors += request.sectors;
        Some(Merge {
            into: last.ticket,
            bridged: None,
        })
    }

    fn add(&mut self, request: Request, _now: Time) {
        self.queue.push_back(request);
    }

    fn dispatch(&mut self, _now: Time, _in_flight: usize) -> Decision {
        self.queue
            .pop_front()
            .map_or(Decision::Nothing, Decision::Serve)
    }

    fn completed(&mut self, _request: &Request, _now: Time) {}

    fn waiting(&self) -> usize {
        self.queue.len()
    }
}

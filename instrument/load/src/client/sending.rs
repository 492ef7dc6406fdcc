//! How transactions begin: what is due, in which kind, and what is sent.

use std::cmp::Reverse;

use rustix::event::epoll;

use super::{Client, poll_error};
use crate::error::Error;
use crate::open_loop::Due;
use crate::session::Order;
use crate::workload::draw;

impl Client<'_> {
    /// Begins what has become due.
    pub(super) fn send_due(&mut self, now: u64) -> Result<(), Error> {
        while let Some(Reverse((due_ns, index))) = self.timers.peek().copied()
            && due_ns <= now
        {
            self.timers.pop();
            self.fill(index, now)?;
        }
        while let Some(open) = &mut self.open
            && let Some(due) = open.next(now, &mut self.random)
        {
            self.counting.due(due == Due::Skipped);
            match due {
                Due::Begin { session, due_ns } => {
                    self.order(session, due_ns, now);
                    self.send(session)?;
                }
                Due::Waits | Due::Skipped => {}
            }
        }
        Ok(())
    }

    /// Closed loop: gives a session as many transactions as it may have under way.
    pub(super) fn fill(&mut self, index: usize, now: u64) -> Result<(), Error> {
        while self.sessions[index].under_way() < self.plan.pipeline
            && self.sessions[index].remaining > 0
        {
            self.order(index, now, now);
        }
        self.send(index)
    }

    pub(super) fn order(&mut self, index: usize, due_ns: u64, now: u64) {
        let kind = draw(self.plan.workload.kinds(), &mut self.random);
        let session = &mut self.sessions[index];
        // Those of the warm-up come on top of the number asked for.
        if due_ns >= self.counting.task.measure_ns() {
            session.remaining -= 1;
        }
        let kinds = self.plan.workload.kinds();
        let order = Order { kind, due_ns };
        session.begin(order, kinds, &mut self.random, &mut self.out);
        self.counting.begun(due_ns, now);
    }

    /// Sends what the conversation has written.
    pub(super) fn send(&mut self, index: usize) -> Result<(), Error> {
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = self.sessions[index].connection.send(&self.out);
        self.out.clear();
        match sent {
            Ok(done) => self.block(index, !done),
            Err(source) => self.lose(index, source.into()),
        }
    }

    pub(super) fn flush(&mut self, index: usize) -> Result<(), Error> {
        let flushed = self.sessions[index].connection.flush();
        match flushed {
            Ok(done) => self.block(index, !done),
            Err(source) => self.lose(index, source.into()),
        }
    }

    /// Waits for room in the socket as well, or no longer.
    fn block(&mut self, index: usize, blocked: bool) -> Result<(), Error> {
        let session = &mut self.sessions[index];
        if session.blocked == blocked {
            return Ok(());
        }
        session.blocked = blocked;
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, blocked);
        let data = epoll::EventData::new_u64(index as u64);
        epoll::modify(&self.epoll, &session.connection, data, flags).map_err(poll_error)
    }
}

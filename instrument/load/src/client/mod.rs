//! A client thread: many sessions on one epoll.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::Receiver;

use concurve_clock::monotonic_ns;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::counting::{Counting, Moved};
use crate::crew::Said;
use crate::error::Error;
use crate::open_loop::OpenLoop;
use crate::plan::{End, Link, Pace, Plan};
use crate::session::Session;
use crate::stop::Stop;
use crate::tally::Tally;
use crate::task::Task;

mod losing;
mod sending;

const READ_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;
/// Of an event that is not a session's.
const STOP: u64 = u64::MAX;

/// The life of a client thread: connects its sessions, then does one task after the other.
pub fn run(
    plan: &Plan,
    link: &Link,
    thread: u64,
    stop: &Stop,
    tasks: &Receiver<Task>,
    say: &mut dyn FnMut(Said),
) -> Result<(), Error> {
    let mut client = Client::connect(plan, link, thread, stop)?;
    say(Said::Ready);
    while let Ok(task) = tasks.recv() {
        client.begin(task);
        client.serve(say)?;
        let tally = client.finish(say);
        say(Said::Ended(Box::new(tally)));
    }
    Ok(())
}

struct Client<'a> {
    plan: &'a Plan,
    thread: u64,
    epoll: rustix::fd::OwnedFd,
    sessions: Vec<Session>,
    random: SmallRng,
    counting: Counting,
    stopped: bool,
    /// Sessions that begin at a time: after the ramp, after thinking.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    open: Option<OpenLoop>,
    /// Sessions that have not done all they are to do, and are not lost.
    unfinished: usize,
    out: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'a> Client<'a> {
    fn connect(plan: &'a Plan, link: &Link, thread: u64, stop: &Stop) -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(poll_error)?;
        let mut client = Self {
            plan,
            thread,
            epoll,
            sessions: Vec::new(),
            random: SmallRng::seed_from_u64(plan.seed ^ (thread << 32)),
            counting: Counting::new(plan, &[]),
            stopped: false,
            timers: BinaryHeap::new(),
            open: None,
            unfinished: 0,
            out: Vec::new(),
            scratch: vec![0; READ_BYTES],
        };
        let mut taken_ns = Vec::new();
        for number in plan.sessions_of(thread) {
            let begin_ns = monotonic_ns();
            let session = Session::open(plan, link, number, stop)?;
            taken_ns.push(monotonic_ns() - begin_ns);
            client.watch(&session.connection, client.sessions.len() as u64)?;
            client.sessions.push(session);
        }
        client.watch(stop, STOP)?;
        client.counting = Counting::new(plan, &taken_ns);
        Ok(client)
    }

    fn watch(&self, descriptor: impl std::os::fd::AsFd, data: u64) -> Result<(), Error> {
        let data = epoll::EventData::new_u64(data);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN).map_err(poll_error)
    }

    /// Gives every session what it does first in a task.
    fn begin(&mut self, task: Task) {
        let plan = self.plan;
        self.counting.begin(task);
        self.timers.clear();
        self.open = None;
        for session in &mut self.sessions {
            session.remaining = match task.end {
                _ if session.lost => 0,
                End::Transactions(total) => plan.transactions_of(session.number, total),
                End::After { .. } => u64::MAX,
            };
        }
        self.unfinished = self.sessions.iter().filter(|it| it.remaining > 0).count();
        // Those that still wait for an answer go on when it has come.
        let free = |it: &(usize, &Session)| it.1.remaining > 0 && it.1.under_way() == 0;
        let free = self.sessions.iter().enumerate().filter(free);
        match task.pace {
            Pace::Closed { .. } => {
                for (index, session) in free {
                    let offset = task.ramp_ns * session.number / plan.sessions;
                    self.timers.push(Reverse((task.begin_ns + offset, index)));
                }
            }
            Pace::Open { .. } => {
                let idle = free.map(|(index, _)| index).collect();
                let own = self.sessions.len() as f64 / plan.sessions as f64;
                self.open = OpenLoop::of(&task, self.thread, own, idle, &mut self.random);
            }
        }
    }

    fn serve(&mut self, say: &mut dyn FnMut(Said)) -> Result<(), Error> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = monotonic_ns();
            self.counting.turn(now, || moved(&self.sessions), say);
            let over = now >= self.counting.task.end_ns();
            if self.unfinished == 0 || self.stopped || over {
                return Ok(());
            }
            self.send_due(now)?;
            self.wait(&mut events)?;
            for event in events.drain(..) {
                let (data, flags) = (event.data.u64(), event.flags);
                if data == STOP {
                    self.stopped = true;
                    continue;
                }
                let index = data as usize;
                if flags.contains(epoll::EventFlags::OUT) {
                    self.flush(index)?;
                }
                if flags != epoll::EventFlags::OUT && !self.sessions[index].lost {
                    self.receive(index)?;
                }
            }
        }
    }

    fn receive(&mut self, index: usize) -> Result<(), Error> {
        let Self {
            plan,
            sessions,
            scratch,
            counting,
            out,
            ..
        } = self;
        let mut now = 0;
        let mut any_ended = false;
        let kinds = plan.workload.kinds();
        let received = sessions[index].receive(kinds, scratch, out, |order, ending| {
            if !any_ended {
                (any_ended, now) = (true, monotonic_ns());
            }
            counting.ended(index, order, now, ending);
        });
        if let Err(failure) = received {
            return self.lose(index, failure);
        }
        if any_ended {
            self.ended(index, now)?;
        }
        self.send(index)
    }

    /// A session has got answers: what does it do next?
    fn ended(&mut self, index: usize, now: u64) -> Result<(), Error> {
        let session = &self.sessions[index];
        if session.under_way() > 0 {
            return Ok(());
        }
        if session.remaining == 0 {
            self.unfinished -= 1;
            return Ok(());
        }
        match (&mut self.open, self.counting.task.pace) {
            (Some(open), _) => {
                if let Some(due_ns) = open.free(index) {
                    self.order(index, due_ns, now);
                }
            }
            (None, Pace::Closed { think_ns: 0 }) => self.fill(index, now)?,
            (None, Pace::Closed { think_ns }) => {
                self.timers.push(Reverse((now + think_ns, index)));
            }
            (None, Pace::Open { .. }) => unreachable!("the open loop is made at the beginning"),
        }
        Ok(())
    }

    /// Waits for answers, and not longer than until something is due.
    fn wait(&self, events: &mut Vec<epoll::Event>) -> Result<(), Error> {
        let timer = self.timers.peek().map(|Reverse((due_ns, _))| *due_ns);
        let arrival = self.open.as_ref().map(|open| open.schedule.due_ns());
        let due = [timer, arrival, Some(self.counting.due_ns())];
        let due_ns = due.into_iter().flatten().min().unwrap_or(u64::MAX);
        let timeout = match due_ns {
            u64::MAX => None,
            due_ns => {
                let ns = due_ns.saturating_sub(monotonic_ns());
                Some(Timespec {
                    tv_sec: (ns / 1_000_000_000) as i64,
                    tv_nsec: (ns % 1_000_000_000) as i64,
                })
            }
        };
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(poll_error(error)),
        }
    }

    /// What was counted in a task.
    fn finish(&mut self, say: &mut dyn FnMut(Said)) -> Tally {
        let under_way = self.sessions.iter().map(|it| u64::from(it.under_way()));
        let (under_way, moved) = (under_way.sum(), moved(&self.sessions));
        self.counting.finish(monotonic_ns(), under_way, moved, say)
    }
}

fn moved(sessions: &[Session]) -> Moved {
    let connections = || sessions.iter().map(|it| &it.connection);
    Moved {
        bytes_sent: connections().map(|it| it.bytes_sent).sum(),
        bytes_received: connections().map(|it| it.bytes_received).sum(),
        waits: 0,
    }
}

fn poll_error(error: rustix::io::Errno) -> Error {
    Error::Poll(error.into())
}

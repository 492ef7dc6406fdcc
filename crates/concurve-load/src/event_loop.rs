//! A client thread: many sessions on one epoll.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use concurve_wire::reporter::monotonic_ns;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::arrivals::Schedule;
use crate::connection::Connection;
use crate::error::Error;
use crate::gate::Gate;
use crate::plan::{End, Pace, Plan};
use crate::protocol::{Conversation, Order, Step};
use crate::tally::Tally;

const READ_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;
/// A request that begins this much after it was due is late.
const LATE_NS: u64 = 1_000_000;

/// Runs the sessions of one thread to the end of the run.
pub fn run(plan: &Plan, thread: u64, gate: &Gate) -> Result<Tally, Error> {
    let mut client = match Client::connect(plan, thread) {
        Ok(client) => client,
        Err(error) => {
            gate.fail();
            return Err(error);
        }
    };
    let Some(begin_ns) = gate.wait() else {
        return Ok(client.tally);
    };
    client.begin(begin_ns);
    client.serve()?;
    Ok(client.tally)
}

struct Session {
    number: u64,
    connection: Connection,
    conversation: Box<dyn Conversation>,
    /// Transactions under way.
    under_way: u32,
    /// Transactions that it may still begin.
    remaining: u64,
    /// The socket is waited for because not everything could be sent.
    blocked: bool,
}

struct Client<'a> {
    plan: &'a Plan,
    epoll: rustix::fd::OwnedFd,
    sessions: Vec<Session>,
    random: SmallRng,
    tally: Tally,
    phase: Phase,
    /// Sessions that begin at a time: after the ramp, after thinking.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    open: Option<OpenLoop>,
    /// Sessions that have not done all they are to do.
    unfinished: usize,
    out: Vec<u8>,
    scratch: Vec<u8>,
    weights: u32,
}

/// Times of the run, on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
struct Phase {
    measure_ns: u64,
    end_ns: u64,
    measuring: bool,
    usage: (u64, u64),
}

struct OpenLoop {
    schedule: Schedule,
    /// Due times that wait for a free session.
    backlog: VecDeque<u64>,
    backlog_max: usize,
    idle: Vec<usize>,
}

impl<'a> Client<'a> {
    fn connect(plan: &'a Plan, thread: u64) -> Result<Self, Error> {
        let range = plan.sessions_of(thread);
        let mut tally = Tally::new(plan.mix.len(), (range.end - range.start) as usize);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(poll_error)?;
        let mut sessions = Vec::new();
        for number in range {
            let begin_ns = monotonic_ns();
            let session = Session::open(plan, number)?;
            let taken_ns = monotonic_ns() - begin_ns;
            tally.connection_ns.saturating_record(taken_ns.max(1));
            let index = epoll::EventData::new_u64(sessions.len() as u64);
            epoll::add(&epoll, &session.connection, index, epoll::EventFlags::IN)
                .map_err(poll_error)?;
            sessions.push(session);
        }
        Ok(Self {
            plan,
            epoll,
            unfinished: sessions.iter().filter(|it| it.remaining > 0).count(),
            sessions,
            random: SmallRng::seed_from_u64(plan.seed ^ (thread << 32)),
            tally,
            phase: Phase {
                measure_ns: 0,
                end_ns: 0,
                measuring: false,
                usage: (0, 0),
            },
            timers: BinaryHeap::new(),
            open: None,
            out: Vec::new(),
            scratch: vec![0; READ_BYTES],
            weights: plan.mix.iter().map(|script| script.weight).sum(),
        })
    }

    /// Sets the times of the run and gives every session its first.
    fn begin(&mut self, begin_ns: u64) {
        let plan = self.plan;
        self.phase.measure_ns = begin_ns + plan.ramp_ns + plan.warm_up_ns;
        self.phase.end_ns = match plan.end {
            End::Transactions(_) => u64::MAX,
            End::After { ns } => self.phase.measure_ns + ns,
        };
        match plan.pace {
            Pace::Closed { .. } => {
                for (index, session) in self.sessions.iter().enumerate() {
                    let offset = plan.ramp_ns * session.number / plan.sessions;
                    self.timers.push(Reverse((begin_ns + offset, index)));
                }
            }
            Pace::Open {
                rate_per_second,
                spread,
                backlog_max,
            } => {
                let own = self.sessions.len() as f64 / plan.sessions as f64;
                self.open = Some(OpenLoop {
                    schedule: Schedule::new(
                        rate_per_second * own,
                        spread,
                        begin_ns,
                        &mut self.random,
                    ),
                    backlog: VecDeque::new(),
                    backlog_max: (backlog_max as f64 * own).ceil() as usize,
                    idle: (0..self.sessions.len()).rev().collect(),
                });
            }
        }
    }

    fn serve(&mut self) -> Result<(), Error> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = monotonic_ns();
            self.turn(now);
            if self.unfinished == 0 || now >= self.phase.end_ns {
                self.finish(now);
                return Ok(());
            }
            self.send_due(now)?;
            self.wait(&mut events)?;
            for event in events.drain(..) {
                let (index, flags) = (event.data.u64() as usize, event.flags);
                if flags.contains(epoll::EventFlags::OUT) {
                    self.flush(index)?;
                }
                if flags != epoll::EventFlags::OUT {
                    self.receive(index)?;
                }
            }
        }
    }

    /// Begins measuring when it is time.
    fn turn(&mut self, now: u64) {
        if !self.phase.measuring && now >= self.phase.measure_ns {
            self.phase.measuring = true;
            self.phase.usage = thread_usage_ns();
            self.tally.begin_ns = self.phase.measure_ns;
        }
    }

    fn finish(&mut self, now: u64) {
        self.turn(now);
        let (user_ns, system_ns) = thread_usage_ns();
        self.tally.user_ns = user_ns - self.phase.usage.0;
        self.tally.system_ns = system_ns - self.phase.usage.1;
        self.tally.end_ns = now.min(self.phase.end_ns);
        for session in &self.sessions {
            self.tally.bytes_sent += session.connection.bytes_sent;
            self.tally.bytes_received += session.connection.bytes_received;
        }
    }

    /// Begins what has become due.
    fn send_due(&mut self, now: u64) -> Result<(), Error> {
        while let Some(Reverse((due_ns, index))) = self.timers.peek().copied()
            && due_ns <= now
        {
            self.timers.pop();
            self.fill(index, now)?;
        }
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let mut begun = Vec::new();
        while let Some(due_ns) = open.schedule.take(now, &mut self.random) {
            match open.idle.pop() {
                Some(index) => begun.push((index, due_ns)),
                None if open.backlog.len() < open.backlog_max => open.backlog.push_back(due_ns),
                None if self.phase.measuring => self.tally.skipped += 1,
                None => {}
            }
        }
        for (index, due_ns) in begun {
            self.order(index, due_ns, now);
            self.send(index)?;
        }
        Ok(())
    }

    /// Closed loop: gives a session as many transactions as it may have under way.
    fn fill(&mut self, index: usize, now: u64) -> Result<(), Error> {
        while self.sessions[index].under_way < self.plan.pipeline
            && self.sessions[index].remaining > 0
        {
            self.order(index, now, now);
        }
        self.send(index)
    }

    fn order(&mut self, index: usize, due_ns: u64, now: u64) {
        let kind = self.kind();
        let session = &mut self.sessions[index];
        // Those of the warm-up come on top of the number asked for.
        if due_ns >= self.phase.measure_ns {
            session.remaining -= 1;
        }
        session.under_way += 1;
        let order = Order { kind, due_ns };
        session
            .conversation
            .begin(order, &mut self.random, &mut self.out);
        if self.phase.measuring {
            let lag_ns = now - due_ns;
            self.tally.late += u64::from(lag_ns > LATE_NS);
            self.tally.lag_ns_max = self.tally.lag_ns_max.max(lag_ns);
        }
    }

    fn kind(&mut self) -> usize {
        if self.plan.mix.len() == 1 {
            return 0;
        }
        let mut ticket = self.random.random_range(0..self.weights);
        let chosen = self.plan.mix.iter().position(|script| {
            let found = ticket < script.weight;
            ticket = ticket.saturating_sub(script.weight);
            found
        });
        chosen.unwrap_or(0)
    }

    /// Sends what the conversation has written.
    fn send(&mut self, index: usize) -> Result<(), Error> {
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = self.sessions[index].connection.send(&self.out);
        self.out.clear();
        let done = sent.map_err(|source| self.lost(index, source))?;
        self.block(index, !done)
    }

    fn flush(&mut self, index: usize) -> Result<(), Error> {
        let flushed = self.sessions[index].connection.flush();
        let done = flushed.map_err(|source| self.lost(index, source))?;
        self.block(index, !done)
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

    fn receive(&mut self, index: usize) -> Result<(), Error> {
        let by_number = matches!(self.plan.end, End::Transactions(_));
        let Self {
            sessions,
            scratch,
            tally,
            phase,
            out,
            ..
        } = self;
        let session = &mut sessions[index];
        let (conversation, under_way) = (&mut session.conversation, &mut session.under_way);
        let mut now = 0;
        let mut ended = 0;
        let received = session.connection.receive(scratch, |input| {
            now = monotonic_ns();
            let mut used = 0;
            while used < input.len() {
                let received = conversation.receive(&input[used..], out)?;
                used += received.consumed;
                match received.step {
                    Step::NeedMore => break,
                    Step::Continue | Step::Greeted => {}
                    Step::Done(order, ending) => {
                        *under_way -= 1;
                        ended += 1;
                        let counts = !by_number || order.due_ns >= phase.measure_ns;
                        if phase.measuring && counts && now <= phase.end_ns {
                            tally.end(order.kind, index, now - order.due_ns, ending);
                        }
                    }
                }
            }
            Ok::<usize, Failure>(used)
        });
        received.map_err(|failure| self.failed(index, failure))?;
        if ended > 0 {
            self.ended(index, now)?;
        }
        self.send(index)
    }

    /// A session has got answers: what does it do next?
    fn ended(&mut self, index: usize, now: u64) -> Result<(), Error> {
        let session = &self.sessions[index];
        if session.under_way > 0 {
            return Ok(());
        }
        if session.remaining == 0 {
            self.unfinished -= 1;
            return Ok(());
        }
        match (&mut self.open, self.plan.pace) {
            (Some(open), _) => match open.backlog.pop_front() {
                Some(due_ns) => self.order(index, due_ns, now),
                None => open.idle.push(index),
            },
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
        let measure = Some(self.phase.measure_ns).filter(|_| !self.phase.measuring);
        let due = [timer, arrival, measure, Some(self.phase.end_ns)];
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

    fn lost(&self, index: usize, source: io::Error) -> Error {
        Error::Lost {
            session: self.sessions[index].number,
            server: self.plan.server.text(),
            source,
        }
    }

    fn failed(&self, index: usize, failure: Failure) -> Error {
        match failure {
            Failure::Io(source) => self.lost(index, source),
            Failure::Protocol(source) => Error::Protocol {
                session: self.sessions[index].number,
                server: self.plan.server.text(),
                source,
            },
        }
    }
}

impl Session {
    /// Connects, and logs in if the protocol asks for it.
    fn open(plan: &Plan, number: u64) -> Result<Self, Error> {
        let connect = |source: io::Error| Error::Connect {
            session: number,
            server: plan.server.text(),
            hint: hint(&source),
            source,
        };
        let mut connection = Connection::open(&plan.server).map_err(connect)?;
        let mut conversation = plan.conversation(number);
        let mut out = Vec::new();
        if conversation.greet(&mut out) {
            connection.send(&out).map_err(connect)?;
            log_in(&mut connection, &mut *conversation).map_err(|failure| match failure {
                Failure::Io(source) => connect(source),
                Failure::Protocol(source) => Error::Protocol {
                    session: number,
                    server: plan.server.text(),
                    source,
                },
            })?;
        }
        Ok(Self {
            number,
            connection,
            conversation,
            under_way: 0,
            remaining: plan.transactions_of(number).unwrap_or(u64::MAX),
            blocked: false,
        })
    }
}

/// Waits for the answers to the greeting.
fn log_in(connection: &mut Connection, conversation: &mut dyn Conversation) -> Result<(), Failure> {
    let mut scratch = vec![0; 4096];
    let mut done = false;
    while !done {
        let mut out = Vec::new();
        rustix::event::poll(
            &mut [rustix::event::PollFd::new(
                connection,
                rustix::event::PollFlags::IN,
            )],
            None,
        )
        .map_err(io::Error::from)?;
        connection.receive(&mut scratch, |input| {
            let received = conversation.receive(input, &mut out)?;
            done = received.step == Step::Greeted;
            Ok::<usize, Failure>(received.consumed)
        })?;
        connection.send(&out)?;
    }
    Ok(())
}

#[derive(Debug)]
enum Failure {
    Io(io::Error),
    Protocol(crate::protocol::ProtocolError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<crate::protocol::ProtocolError> for Failure {
    fn from(error: crate::protocol::ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

fn hint(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(24) => " (raise the limit of open files: ulimit -n)".to_owned(),
        _ => String::new(),
    }
}

fn poll_error(error: rustix::io::Errno) -> Error {
    Error::Poll(error.into())
}

/// User and system time of this thread so far.
fn thread_usage_ns() -> (u64, u64) {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("it is always granted");
    let ns = |time: nix::sys::time::TimeVal| time.num_microseconds() as u64 * 1000;
    (ns(usage.user_time()), ns(usage.system_time()))
}

//! A client thread of a server: many sessions on one epoll.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::sync::mpsc::Receiver;

use concurve_clock::monotonic_ns;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::alarm::{Alarm, timespec};
use super::open_loop::{Due, OpenLoop};
use super::recorder::{Outstanding, Recorder, Traffic, WorkerMessage};
use super::session::{ScheduledTransaction, Session};
use crate::connection::ConnectionError;
use crate::counts::tally::Tally;
use crate::error::Error;
use crate::plan::{End, Pace, Plan, ServerTarget, Task};
use crate::stop::Stop;
use crate::workload::draw_kind;

const READ_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;
/// Event data of the request to stop, and of the alarm; other events have the index of a session.
const STOP: u64 = u64::MAX;
const ALARM: u64 = u64::MAX - 1;
const AT_ONCE: Timespec = timespec(0);

/// Connects the sessions of a client thread, then does one task after the other.
pub fn run(
    plan: &Plan,
    server: &ServerTarget,
    thread: u64,
    stop: &Stop,
    tasks: &Receiver<Task>,
    send: &mut dyn FnMut(WorkerMessage),
) -> Result<(), Error> {
    let mut client = EventLoop::connect(plan, server, thread, stop)?;
    send(WorkerMessage::Ready);
    while let Ok(task) = tasks.recv() {
        client.begin(task);
        client.serve(send)?;
        let tally = client.finish(send);
        send(WorkerMessage::Ended(Box::new(tally)));
    }
    Ok(())
}

struct EventLoop<'a> {
    plan: &'a Plan,
    thread: u64,
    epoll: OwnedFd,
    /// Wakes the thread when something is due.
    alarm: Alarm,
    sessions: Vec<Session>,
    random: SmallRng,
    recorder: Recorder,
    stopped: bool,
    /// Sessions that begin a transaction at a time: after the ramp, after a pause.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    open: Option<OpenLoop>,
    /// Number of sessions that still have transactions to do, and are not lost.
    unfinished: usize,
    out: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'a> EventLoop<'a> {
    fn connect(
        plan: &'a Plan,
        server: &ServerTarget,
        thread: u64,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(poll_error)?;
        let alarm = Alarm::on(&epoll, ALARM).map_err(poll_error)?;
        let mut client = Self {
            plan,
            thread,
            epoll,
            alarm,
            sessions: Vec::new(),
            random: SmallRng::seed_from_u64(plan.seed ^ (thread << 32)),
            recorder: Recorder::new(plan, 0, &[]),
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
            let session = Session::open(plan, server, number, stop)?;
            taken_ns.push(monotonic_ns() - begin_ns);
            client.watch(&session.socket, client.sessions.len() as u64)?;
            client.sessions.push(session);
        }
        client.watch(stop, STOP)?;
        let first = plan.sessions_of(thread).start;
        client.recorder = Recorder::new(plan, first, &taken_ns);
        Ok(client)
    }

    fn watch(&self, descriptor: impl std::os::fd::AsFd, data: u64) -> Result<(), Error> {
        let data = epoll::EventData::new_u64(data);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN).map_err(poll_error)
    }

    /// Begins a task: decides when each session begins its first transaction.
    fn begin(&mut self, task: Task) {
        let plan = self.plan;
        self.recorder.begin(task);
        self.timers.clear();
        self.open = None;
        for session in &mut self.sessions {
            session.remaining = match task.end {
                _ if session.lost => 0,
                End::Transactions { number, .. } => plan.transactions_of(session.number, number),
                End::After { .. } => u64::MAX,
            };
        }
        self.unfinished = self.sessions.iter().filter(|it| it.remaining > 0).count();
        // Sessions that still wait for an answer of the task before go on when it has come.
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
                let own = task.part(plan.sessions_of(self.thread), plan.sessions);
                let number = match task.end {
                    End::Transactions { .. } => self.sessions.iter().map(|it| it.remaining).sum(),
                    End::After { .. } => u64::MAX,
                };
                let random = &mut self.random;
                self.open = OpenLoop::of(&task, &own, number, idle, random);
            }
        }
    }

    fn serve(&mut self, send: &mut dyn FnMut(WorkerMessage)) -> Result<(), Error> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = monotonic_ns();
            self.recorder.advance(now, || traffic(&self.sessions), send);
            let over = now >= self.recorder.task.end_ns();
            if self.is_done() || self.stopped || over {
                return Ok(());
            }
            self.send_due(now)?;
            if self.is_done() {
                continue; // the last sessions were lost when they were to send
            }
            self.wait(&mut events)?;
            for event in events.drain(..) {
                let (data, flags) = (event.data.u64(), event.flags);
                if data == ALARM {
                    self.alarm.has_rung(); // what is due is sent when these answers are read
                    continue;
                }
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

    /// Whether no session has anything left to do.
    fn is_done(&self) -> bool {
        let open = self.open.as_ref();
        self.unfinished == 0 || open.is_some_and(|open| open.is_over(self.unfinished))
    }

    fn receive(&mut self, index: usize) -> Result<(), Error> {
        let Self {
            plan,
            sessions,
            scratch,
            recorder,
            out,
            ..
        } = self;
        let mut now = 0;
        let mut any_ended = false;
        let kinds = plan.workload.kinds();
        let received = sessions[index].receive(kinds, scratch, out, |transaction, ending| {
            if !any_ended {
                (any_ended, now) = (true, monotonic_ns());
            }
            recorder.ended(index, transaction, now, ending);
        });
        if let Err(error) = received {
            return self.lose(index, error);
        }
        if any_ended {
            self.ended(index, now)?;
        }
        self.send(index)
    }

    /// Transactions of a session have ended: begins its next one, now or later.
    fn ended(&mut self, index: usize, now: u64) -> Result<(), Error> {
        let session = &self.sessions[index];
        if session.under_way() > 0 {
            return Ok(());
        }
        if session.remaining == 0 {
            self.unfinished -= 1;
            return Ok(());
        }
        match (&mut self.open, self.recorder.task.pace) {
            (Some(open), _) => {
                if let Some(due_ns) = open.free(index) {
                    self.begin_transaction(index, due_ns, now);
                }
            }
            (None, Pace::Closed { think_ns: 0 }) if now < self.recorder.due_ns() => {
                self.fill(index, now)?;
            }
            // Behind the edge of a phase: it begins when the recorder has begun the next one.
            (None, Pace::Closed { think_ns }) => {
                self.timers.push(Reverse((now + think_ns, index)));
            }
            (None, Pace::Open { .. }) => unreachable!("the open loop is made at the beginning"),
        }
        Ok(())
    }

    /// Waits for events, until something is due at the latest. First polls for them, if the plan says so.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), Error> {
        let timer = self.timers.peek().map(|Reverse((due_ns, _))| *due_ns);
        let arrival = self.open.as_ref().map(|open| open.due_ns());
        let begins_ns = [timer, arrival].into_iter().flatten().min();
        let due_ns = begins_ns.unwrap_or(u64::MAX).min(self.recorder.due_ns());
        if self.plan.spin_ns > 0 {
            let until_ns = due_ns.min(monotonic_ns() + self.plan.spin_ns);
            let found = polled(until_ns, monotonic_ns, || {
                wait_for(&self.epoll, events, Some(AT_ONCE))?;
                Ok(!events.is_empty())
            });
            if found? {
                return Ok(());
            }
        }
        match begins_ns {
            Some(_) => wait_exactly(&self.epoll, &mut self.alarm, events, due_ns),
            // Nothing begins by itself: to end a little late changes no latency.
            None => wait_for(&self.epoll, events, timeout(due_ns, monotonic_ns())),
        }
    }

    /// Returns the counts of the task.
    fn finish(&mut self, send: &mut dyn FnMut(WorkerMessage)) -> Tally {
        let now = monotonic_ns();
        let kinds = self.plan.workload.kinds();
        let waiting = match self.open.take() {
            Some(open) => self
                .recorder
                .end_schedule(open, now, kinds, &mut self.random),
            None => Vec::new(),
        };
        let remaining: Vec<u64> = self.sessions.iter().map(|it| it.remaining).collect();
        let under_way = self.sessions.iter().enumerate().flat_map(|(index, it)| {
            it.begun()
                .map(move |begun| Outstanding::under_way(index, begun))
        });
        let outstanding = under_way.chain(waiting);
        let traffic = traffic(&self.sessions);
        self.recorder
            .finish(now, outstanding, &remaining, traffic, send)
    }

    /// Begins the transactions that have become due: the first at `now`, each other one when the ones before
    /// it are sent.
    fn send_due(&mut self, now: u64) -> Result<(), Error> {
        let mut at_ns = Some(now);
        let mut begun_ns = || at_ns.take().unwrap_or_else(monotonic_ns);
        let edge_ns = self.recorder.due_ns();
        while let Some((index, begins_ns)) =
            next_timer(&mut self.timers, now, edge_ns, &mut begun_ns)
        {
            self.fill(index, begins_ns)?;
        }
        while let Some(open) = &mut self.open
            && let Some(due) = open.next(now, &mut self.random)
        {
            let kinds = self.plan.workload.kinds();
            self.recorder.due(due, kinds, &mut self.random);
            if let Due::Begin { session, due_ns } = due {
                self.begin_transaction(session, due_ns, begun_ns());
                self.send(session)?;
            }
        }
        Ok(())
    }

    /// Closed loop: begins as many transactions as the session may have under way.
    fn fill(&mut self, index: usize, now: u64) -> Result<(), Error> {
        while self.sessions[index].under_way() < self.plan.pipeline
            && self.sessions[index].remaining > 0
        {
            self.begin_transaction(index, now, now);
        }
        self.send(index)
    }

    fn begin_transaction(&mut self, index: usize, due_ns: u64, now: u64) {
        let kind = draw_kind(self.plan.workload.kinds(), &mut self.random);
        let session = &mut self.sessions[index];
        // Transactions of the warm-up are not part of the number asked for.
        if due_ns >= self.recorder.task.measure_ns() {
            session.remaining -= 1;
        }
        let kinds = self.plan.workload.kinds();
        let transaction = ScheduledTransaction {
            kind,
            due_ns,
            begun_ns: now,
        };
        session.begin(transaction, kinds, &mut self.random, &mut self.out);
        self.recorder.begun(due_ns, now);
    }

    /// Sends the bytes in `out`.
    fn send(&mut self, index: usize) -> Result<(), Error> {
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = self.sessions[index].socket.send(&self.out);
        self.out.clear();
        match sent {
            Ok(done) => self.block(index, !done),
            Err(source) => self.lose(index, source.into()),
        }
    }

    fn flush(&mut self, index: usize) -> Result<(), Error> {
        let flushed = self.sessions[index].socket.flush();
        match flushed {
            Ok(done) => self.block(index, !done),
            Err(source) => self.lose(index, source.into()),
        }
    }

    /// Waits for the socket to become writable as well, or no longer.
    fn block(&mut self, index: usize, blocked: bool) -> Result<(), Error> {
        let session = &mut self.sessions[index];
        if session.blocked == blocked {
            return Ok(());
        }
        session.blocked = blocked;
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, blocked);
        let data = epoll::EventData::new_u64(index as u64);
        epoll::modify(&self.epoll, &session.socket, data, flags).map_err(poll_error)
    }

    /// Removes a session whose connection is lost; it is counted, and the others go on.
    ///
    /// # Errors
    /// The server does not speak the protocol: then none of its answers can be trusted.
    fn lose(&mut self, index: usize, error: ConnectionError) -> Result<(), Error> {
        let session = &mut self.sessions[index];
        let source = match error {
            ConnectionError::Io(source) => source,
            ConnectionError::Protocol(source) => {
                return Err(Error::Protocol {
                    session: session.number,
                    server: self.plan.target_name(),
                    source,
                });
            }
        };
        let is_unfinished = session.remaining > 0 || session.under_way() > 0;
        self.unfinished -= usize::from(is_unfinished);
        let reason = reason(&source, session.farewell());
        let (under_way, remaining) = session.end();
        let now = monotonic_ns();
        self.recorder
            .lost(index, &reason, under_way.into_iter(), remaining, now);
        self.out.clear();
        self.timers.retain(|due| due.0.1 != index);
        if let Some(open) = &mut self.open {
            open.remove(index);
        }
        epoll::delete(&self.epoll, &session.socket).map_err(poll_error)?;
        session.socket.close();
        Ok(())
    }
}

/// The next session that begins something by `now`, and when it does. None begins at or behind the edge of a
/// phase: the recorder must begin the next one before, or what the session does would be in neither.
fn next_timer(
    timers: &mut BinaryHeap<Reverse<(u64, usize)>>,
    now: u64,
    edge_ns: u64,
    mut clock_ns: impl FnMut() -> u64,
) -> Option<(usize, u64)> {
    let Reverse((_, index)) = *timers.peek().filter(|it| it.0.0 <= now)?;
    let begins_ns = Some(clock_ns()).filter(|it| *it < edge_ns)?;
    timers.pop();
    Some((index, begins_ns))
}

/// Waits for events, until about a time: epoll rounds it up to whole milliseconds.
fn wait_for(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: Option<Timespec>,
) -> Result<(), Error> {
    match epoll::wait(epoll, spare_capacity(events), timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(poll_error(error)),
    }
}

/// Waits for events, until a time and no longer. Where there are events already the alarm is not set: to set
/// it takes longer than to look.
fn wait_exactly(
    epoll: &OwnedFd,
    alarm: &mut Alarm,
    events: &mut Vec<epoll::Event>,
    due_ns: u64,
) -> Result<(), Error> {
    if !alarm.is_set_for(due_ns) {
        wait_for(epoll, events, Some(AT_ONCE))?;
        if !events.is_empty() || due_ns <= monotonic_ns() {
            return Ok(());
        }
        alarm.set(due_ns).map_err(poll_error)?;
    }
    wait_for(epoll, events, None)
}

/// The time from `now` until something is due, to the nanosecond; `None` if it never is.
fn timeout(due_ns: u64, now: u64) -> Option<Timespec> {
    (due_ns < u64::MAX).then(|| timespec(due_ns.saturating_sub(now)))
}

fn traffic(sessions: &[Session]) -> Traffic {
    let sockets = || sessions.iter().map(|it| &it.socket);
    Traffic {
        bytes_sent: sockets().map(|it| it.bytes_sent).sum(),
        bytes_received: sockets().map(|it| it.bytes_received).sum(),
        waits: 0,
    }
}

/// Polls until there is something, or a time has come; whether there is something.
fn polled(
    until_ns: u64,
    clock_ns: impl Fn() -> u64,
    mut poll: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    while clock_ns() < until_ns {
        if poll()? {
            return Ok(true);
        }
        std::hint::spin_loop();
    }
    Ok(false)
}

fn poll_error(error: Errno) -> Error {
    Error::Poll(error.into())
}

/// Why a connection was lost, with the code by which the server has announced it; the same reason has the same
/// name.
fn reason(error: &io::Error, farewell: Option<&str>) -> String {
    let how = match error.kind() {
        ErrorKind::UnexpectedEof => "closed by the server".to_owned(),
        ErrorKind::ConnectionReset => "reset by peer".to_owned(),
        kind => kind.to_string(),
    };
    match farewell {
        Some(code) => format!("{code} ({how})"),
        None => how,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_lost_connection_has_the_code_that_the_server_gave() {
        let closed = io::Error::from(ErrorKind::UnexpectedEof);
        assert_eq!(reason(&closed, None), "closed by the server");
        assert_eq!(
            reason(&closed, Some("57P01")),
            "57P01 (closed by the server)"
        );
    }

    #[test]
    fn a_sleep_is_as_long_as_it_is_to_the_next_due_time() {
        assert_eq!(
            timeout(5_000_001_100, 3_999_999_000),
            Some(timespec(1_000_002_100))
        );
        assert_eq!(timeout(1_100_000, 0), Some(timespec(1_100_000)));
        assert_eq!(timeout(1, 2), Some(AT_ONCE), "it is due already");
        assert_eq!(timeout(u64::MAX, 2), None);
    }

    fn waiting() -> (OwnedFd, Alarm) {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let alarm = Alarm::on(&epoll, ALARM).unwrap();
        (epoll, alarm)
    }

    /// The shortest of many: no machine disturbs all of them.
    #[test]
    fn a_sleep_is_not_rounded_up_to_milliseconds() {
        let (epoll, mut alarm) = waiting();
        let mut events = Vec::with_capacity(1);
        let late_ns = |_| {
            let due_ns = monotonic_ns() + 1_100_000;
            events.clear();
            wait_exactly(&epoll, &mut alarm, &mut events, due_ns).unwrap();
            monotonic_ns() - due_ns
        };
        let least_ns = (0..200).map(late_ns).min().unwrap();
        assert!(least_ns < 500_000, "{least_ns}: rounded up it is 900,000");
    }

    #[test]
    fn what_wakes_a_sleep_is_not_lost() {
        let (epoll, mut alarm) = waiting();
        let stop = Stop::new().unwrap();
        let data = epoll::EventData::new_u64(STOP);
        epoll::add(&epoll, &stop, data, epoll::EventFlags::IN).unwrap();
        let mut events = Vec::with_capacity(1);
        wait_exactly(&epoll, &mut alarm, &mut events, 0).unwrap();
        assert!(events.is_empty());
        let other = stop.clone();
        let waking = std::thread::spawn(move || other.now());
        while events.is_empty() {
            wait_exactly(&epoll, &mut alarm, &mut events, u64::MAX).unwrap();
        }
        assert_eq!(events[0].data.u64(), STOP);
        waking.join().unwrap();
    }

    /// The wait for an answer leaves the alarm as it is, so that the next wait has it still.
    #[test]
    fn an_alarm_wakes_once_and_stays_set_over_the_waits_before() {
        let (epoll, mut alarm) = waiting();
        let mut events = Vec::with_capacity(1);
        let due_ns = monotonic_ns() + 20_000_000;
        let (answered, mut answer) = UnixStream::pair().unwrap();
        let data = epoll::EventData::new_u64(7);
        epoll::add(&epoll, &answered, data, epoll::EventFlags::IN).unwrap();
        alarm.set(due_ns).unwrap();
        answer.write_all(b"1").unwrap();
        wait_exactly(&epoll, &mut alarm, &mut events, due_ns).unwrap();
        assert_eq!(events.drain(..).next().unwrap().data.u64(), 7);
        assert!(alarm.is_set_for(due_ns));
        epoll::delete(&epoll, &answered).unwrap();
        wait_exactly(&epoll, &mut alarm, &mut events, due_ns).unwrap();
        assert_eq!(events.drain(..).next().unwrap().data.u64(), ALARM);
        assert!(monotonic_ns() >= due_ns);
        wait_for(&epoll, &mut events, Some(AT_ONCE)).unwrap();
        assert!(events.is_empty(), "it wakes once");
        // What was due then may be left to do: nobody sleeps on an alarm that has rung.
        alarm.has_rung();
        assert!(!alarm.is_set_for(due_ns));
        wait_exactly(&epoll, &mut alarm, &mut events, due_ns).unwrap();
    }

    #[test]
    fn no_transaction_of_a_batch_begins_behind_the_edge_of_a_phase() {
        let mut timers = BinaryHeap::from([(3, 0), (1, 1), (2, 2), (9, 3)].map(Reverse));
        let mut now = 3;
        // Each transaction takes a nanosecond to send.
        let mut clock = || {
            now += 1;
            now - 1
        };
        assert_eq!(next_timer(&mut timers, 3, 5, &mut clock), Some((1, 3)));
        assert_eq!(next_timer(&mut timers, 3, 5, &mut clock), Some((2, 4)));
        assert_eq!(
            next_timer(&mut timers, 3, 5, &mut clock),
            None,
            "at the edge"
        );
        // It is begun in the next phase.
        assert_eq!(next_timer(&mut timers, 6, 99, &mut clock), Some((0, 6)));
        assert_eq!(next_timer(&mut timers, 7, 99, &mut clock), None, "not due");
        assert_eq!(timers.len(), 1);
    }

    /// Polls with a clock that goes on by 1 at each reading, until something comes at the poll of this
    /// number: how often it polled, and what it found.
    fn polls(until_ns: u64, comes_at: u32) -> (u32, bool) {
        let (now, count) = (Cell::new(0), Cell::new(0));
        let clock = || now.replace(now.get() + 1);
        let found = polled(until_ns, clock, || {
            count.set(count.get() + 1);
            Ok(count.get() == comes_at)
        });
        (count.get(), found.unwrap())
    }

    #[test]
    fn polling_ends_with_the_first_event_or_when_the_time_has_come() {
        assert_eq!(polls(10, 3), (3, true));
        assert_eq!(polls(10, 99), (10, false));
        assert_eq!(
            polls(0, 1),
            (0, false),
            "what is due already is not delayed"
        );
    }
}

//! An I/O thread: reads, parses and answers; executes too if it is an engine itself, and accepts if
//! that is a process.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use concurve_clock::CpuClock;

use crate::commands::Session;
use crate::error::{Error, While};
use crate::hall::{Hall, count};
use crate::locks::slab::Slab;
use crate::monitor::meter::Meter;
use crate::net::batch::Batch;
use crate::net::connection::Connection;
use crate::net::dispatch::Dispatch;
use crate::net::inbox::{IoInbox, Message};
use crate::net::listener;
use crate::net::poller::{Events, Poller};
use crate::net::reception::Reception;
use crate::net::until::Until;

const READ_BYTES: usize = 64 * 1024;

/// How often stalled clients are looked for; longest sleep.
const TICK: Duration = Duration::from_millis(500);

pub struct IoThread<'a> {
    hall: &'a Hall,
    /// From 0; also that of the engine, if it is one.
    number: usize,
    poller: Poller,
    inbox: &'a Arc<IoInbox>,
    /// Where its clients come from, unless a listener sends them.
    door: Option<Door<'a>>,
    connections: Slab<Connection>,
    /// Connections that shall have a turn.
    turns: Vec<u32>,
    /// Connections that wait for a lock.
    waiting: Vec<u32>,
    /// Connections with something to do as soon as their sessions are back.
    awaited: usize,
    /// Where requests go; none: they are executed here.
    dispatch: Option<Dispatch<'a>>,
    scratch: Box<[u8]>,
    ticked: Instant,
}

/// Where an engine that is a process finds clients.
#[derive(Clone, Copy)]
pub struct Door<'a> {
    pub listener: &'a TcpListener,
    pub reception: &'a Reception,
}

impl<'a> IoThread<'a> {
    /// The I/O thread of this number, from 0.
    pub fn new(hall: &'a Hall, number: usize) -> Result<Self, Error> {
        let poller = Poller::new().when(|| "open an epoll".to_owned())?;
        let inbox = &hall.inboxes[number];
        poller
            .watch_waker(&**inbox)
            .when(|| "watch an eventfd".to_owned())?;
        Ok(Self {
            hall,
            number,
            poller,
            inbox,
            door: None,
            connections: Slab::default(),
            turns: Vec::new(),
            waiting: Vec::new(),
            awaited: 0,
            dispatch: hall.run_queue.as_ref().map(|queue| {
                let has_disk_thread = hall.disk_queue.is_some();
                Dispatch::new(queue, number, has_disk_thread)
            }),
            scratch: vec![0; READ_BYTES].into(),
            ticked: Instant::now(),
        })
    }

    /// It takes in clients itself from now on, first those that were on their way to a predecessor.
    pub fn open_door(&mut self, door: Door<'a>) -> Result<(), Error> {
        let watched = self.poller.watch_clients(door.listener);
        let watched = watched.and_then(|()| {
            let handed = door.reception.of(self.number);
            self.poller.watch_clients(handed)
        });
        watched.when(|| "watch for clients".to_owned())?;
        let inherited = door.reception.inherit(self.number, &self.hall.per_thread);
        for (stream, id) in inherited {
            self.admit(stream, id, Instant::now());
        }
        self.door = Some(door);
        Ok(())
    }

    /// Serves until the engine ends.
    pub fn run(mut self, until: &Until) -> Result<(), Error> {
        self.poller
            .watch_waker(until)
            .when(|| "watch for the end".to_owned())?;
        let (mut events, mut messages) = (Events::default(), Vec::new());
        self.meter().begin(match self.door {
            None => CpuClock::of_this_thread(),
            Some(_) => CpuClock::of_this_process(),
        });
        while !until.is_over() {
            self.wait(&mut events)
                .when(|| "wait for sockets".to_owned())?;
            let now = Instant::now();
            self.note_events(&events);
            if events.clients_came() {
                self.take_clients(now);
            }
            self.inbox.take(&mut messages);
            for message in messages.drain(..) {
                self.take_message(message, now);
            }
            self.queue_retries(now);
            let served = self.take_turns(now);
            if self.dispatch.is_none() {
                self.make_durable(&served)?;
            }
            self.finish_turns(served, now);
            self.close_stalled(now);
            self.dispatch.iter_mut().for_each(Dispatch::hand_over);
        }
        Ok(())
    }

    fn take_message(&mut self, message: Message, now: Instant) {
        match message {
            Message::Connection(stream, id) => self.admit(stream, id, now),
            Message::Executed(batch) => self.take_replies(batch, now),
            Message::Called(at) => {
                if let Some(connection) = self.connections.get_mut(at) {
                    connection.call(now);
                }
            }
        }
    }

    /// Accepts clients, keeps those that are its own to serve, and takes those that others sent.
    fn take_clients(&mut self, now: Instant) {
        let Some(Door {
            listener,
            reception,
        }) = self.door
        else {
            return;
        };
        while let Some((stream, id)) = listener::accept(self.hall, listener) {
            let engines = &self.hall.per_thread;
            if let Some(stream) = reception.place(self.number, stream, id, engines) {
                self.admit(stream, id, now);
            }
        }
        while let Some((stream, id)) = reception.receive(self.number) {
            self.admit(stream, id, now);
        }
    }

    /// Waits for sockets or messages; not at all while connections want a turn.
    fn wait(&self, events: &mut Events) -> io::Result<()> {
        if !self.turns.is_empty() || !self.inbox.is_empty() {
            return self.poller.wait(events, Some(Duration::ZERO));
        }
        let mut result = Ok(());
        let (poller, inbox) = (&self.poller, self.inbox);
        let gathers = self.dispatch.as_ref().is_some_and(Dispatch::gathers);
        let lightly = gathers || self.awaited > 0;
        self.hall.settings.idle.wait(self.meter(), |sleep| {
            if sleep {
                let timeout = self.timeout();
                inbox.sleep_if_empty(lightly, || result = poller.wait(events, Some(timeout)));
            } else {
                result = poller.wait(events, Some(Duration::ZERO));
            }
            result.is_err() || !events.is_empty() || !inbox.is_empty()
        });
        result
    }

    fn meter(&self) -> &Meter {
        self.hall.meters.of_io_thread(self.number)
    }

    fn timeout(&self) -> Duration {
        let now = Instant::now();
        let retries = self.waiting.iter().filter_map(|at| {
            let retry_at = self.connections.get(*at)?.retry_at?;
            Some(retry_at.saturating_duration_since(now))
        });
        retries.min().unwrap_or(TICK).min(TICK)
    }

    fn note_events(&mut self, events: &Events) {
        for ready in events.ready() {
            if let Some(connection) = self.connections.get_mut(ready.number) {
                connection.readable |= ready.readable;
                connection.ending |= ready.ended;
                connection.writable |= ready.writable;
                queue(&mut self.turns, connection, ready.number);
            }
        }
    }

    fn queue(&mut self, at: u32) {
        if let Some(connection) = self.connections.get_mut(at) {
            queue(&mut self.turns, connection, at);
        }
    }

    fn admit(&mut self, stream: TcpStream, id: u64, now: Instant) {
        let _ = stream.set_nodelay(true);
        let home = self.hall.home(self.number);
        let session = Box::new(Session::new(id, self.hall, home));
        let at = self
            .connections
            .insert(Connection::new(stream, session, now));
        count(&self.hall.per_thread[self.number].connections);
        let (connection, inbox) = (&mut self.connections[at], Arc::clone(self.inbox));
        if let Some(session) = &mut connection.session {
            session.call_by(move || inbox.send(Message::Called(at)));
        }
        connection.gone = self.poller.watch(&*connection.stream, at).is_err();
        self.queue(at);
    }

    /// Lets those try again whose pause is over.
    fn queue_retries(&mut self, now: Instant) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|at| {
            let due = |it: &Connection| it.retry_at.is_none_or(|at| at <= now);
            let due = self.connections.get(*at).is_none_or(due);
            if due {
                if let Some(connection) = self.connections.get_mut(*at) {
                    connection.waiting = false;
                }
                self.queue(*at);
            }
            !due
        });
        self.waiting = waiting;
    }

    /// Gives each connection that wants one a turn; returns them.
    fn take_turns(&mut self, now: Instant) -> Vec<u32> {
        let turns = std::mem::take(&mut self.turns);
        let share = self.dispatch.as_ref();
        let share = share.map_or(0, |it| it.share(turns.len()));
        for at in &turns {
            let connection = &mut self.connections[*at];
            connection.queued = false;
            connection.read(&mut self.scratch, self.hall, now);
            if let Some(dispatch) = &mut self.dispatch {
                connection.submit(*at, &mut dispatch.batch, self.hall, now);
                dispatch.added(share);
            } else {
                let executed = connection.execute(self.hall, self.number, now);
                let requests = &self.hall.per_thread[self.number].requests;
                requests.fetch_add(executed, Relaxed);
                self.executed(*at, now);
            }
        }
        self.dispatch.iter_mut().for_each(Dispatch::hand_over);
        turns
    }

    /// Makes durable what was executed in these turns, and promises it.
    fn make_durable(&mut self, served: &[u32]) -> Result<(), Error> {
        self.hall.commit(self.meter())?;
        for at in served {
            if let Some(connection) = self.connections.get_mut(*at) {
                connection.confirm(self.hall, self.hall.meters.of_io_thread(self.number));
            }
        }
        Ok(())
    }

    fn executed(&mut self, at: u32, now: Instant) {
        let connection = &mut self.connections[at];
        if connection.retry_at.is_some_and(|at| at > now) && !connection.waiting {
            connection.waiting = true;
            self.waiting.push(at);
        }
    }

    fn take_replies(&mut self, mut batch: Batch, now: Instant) {
        let (mut start, mut promised) = (0, 0);
        for chunk in std::mem::take(&mut batch.chunks) {
            let replies = &batch.replies[start..chunk.replies_end];
            start = chunk.replies_end;
            let promises = &batch.promises[promised..chunk.promises_end];
            promised = chunk.promises_end;
            let written = chunk.written.min(replies.len());
            let at = chunk.connection;
            if chunk.is_close {
                continue;
            }
            let connection = &mut self.connections[at];
            connection.session = Some(chunk.session);
            self.awaited -= usize::from(std::mem::take(&mut connection.awaited));
            connection.answer(&replies[written..]);
            connection.answer(&promises[chunk.written - written..]);
            connection.after(chunk.consumed, chunk.executed, chunk.flow, now);
            self.executed(at, now);
            self.queue(at);
        }
        if let Some(dispatch) = &mut self.dispatch {
            dispatch.take_back(batch);
        }
    }

    /// Writes what the turns left to say, and closes what is over.
    fn finish_turns(&mut self, mut served: Vec<u32>, now: Instant) {
        for at in served.drain(..) {
            let Some(connection) = self.connections.get_mut(at) else {
                continue;
            };
            connection.write(now);
            if connection.is_over(self.hall, now) {
                self.close(at);
            } else if connection.wants_turn(self.hall, now) {
                self.queue(at);
            } else if connection.awaits_session() && !connection.awaited {
                connection.awaited = true;
                self.awaited += 1;
            }
        }
        if self.turns.is_empty() {
            self.turns = served; // its memory
        }
    }

    fn close_stalled(&mut self, now: Instant) {
        if now.duration_since(self.ticked) < TICK {
            return;
        }
        self.ticked = now;
        let stalled = self.connections.iter();
        let stalled = stalled.filter(|(_, it)| it.is_stalled(self.hall, now));
        for at in stalled.map(|(at, _)| at).collect::<Vec<_>>() {
            count(&self.hall.counters.closed_by_limits);
            self.connections[at].gone = true;
            self.close(at);
        }
    }

    /// Ends a connection and its session; later, if an engine has that.
    fn close(&mut self, at: u32) {
        let connection = &mut self.connections[at];
        let Some(mut session) = connection.session.take() else {
            return;
        };
        self.connections.remove(at);
        self.turns.retain(|it| *it != at);
        let open = &self.hall.per_thread[self.number].open;
        open.fetch_sub(1, Relaxed);
        match &mut self.dispatch {
            Some(dispatch) => dispatch.batch.add_close(at, session),
            None => session.close(self.hall),
        }
    }
}

fn queue(turns: &mut Vec<u32>, connection: &mut Connection, at: u32) {
    if !connection.queued {
        connection.queued = true;
        turns.push(at);
    }
}

//! The connections of an I/O thread, or of an engine that owns the sockets of its clients.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::monitor::meter::Meter;
use crate::net::batch::Batch;
use crate::net::client_connection::ClientConnection;
use crate::net::clients::ThreadCounters;
use crate::net::handover::ConnectionHandover;
use crate::net::inbox::{IoInbox, Message};
use crate::net::listener;
use crate::net::network::Network;
use crate::net::poller::{Events, Poller};
use crate::net::threads::{StopSignal, wait_for_work};
use crate::options::ServerOptions;
use crate::services::Services;
use crate::session::Session;
use crate::slab::Slab;

const READ_BYTES: usize = 64 * 1024;

/// The interval between two checks for stalled clients, and the maximum sleep.
const TICK: Duration = Duration::from_millis(500);

/// Reads requests of many clients into batches, and writes their replies.
pub struct ClientSockets<'a> {
    server: SocketContext<'a>,
    /// From where the engine accepts clients; `None` if a listener sends them.
    entrance: Option<Entrance<'a>>,
    poller: Poller,
    events: Events,
    messages: Vec<Message>,
    connections: Slab<ClientConnection>,
    /// Connections that will have a turn.
    turns: NumberList,
    /// Connections that had a turn, and whose replies are to be written.
    served: Vec<u32>,
    /// Connections that wait for a lock.
    waiting: NumberList,
    /// How many connections have work to do as soon as their sessions are back.
    awaiting: usize,
    scratch: Box<[u8]>,
    ticked: Instant,
}

/// What the connections of an I/O thread need of the server.
#[derive(Debug, Clone, Copy)]
pub struct SocketContext<'a> {
    /// The number of the I/O thread, from 0, or of the engine that owns the sockets.
    pub number: usize,
    pub meter: &'a Meter,
    pub options: &'a ServerOptions,
    pub network: &'a Network,
    /// The services whose sessions the connections have.
    pub services: &'a Services,
}

impl<'a> SocketContext<'a> {
    fn counters(self) -> &'a ThreadCounters {
        &self.network.counters[self.number]
    }

    fn inbox(self) -> &'a Arc<IoInbox> {
        &self.network.inboxes[self.number]
    }

    /// A session for the connection of this number.
    fn session(self, id: u64) -> Session {
        let engine = self.options.threads.engine_of_connections(self.number);
        let needs_password = self.options.password.is_some();
        Session::new(id, engine, needs_password, self.services)
    }
}

/// From where an engine process accepts clients.
#[derive(Clone, Copy)]
pub struct Entrance<'a> {
    pub listener: &'a TcpListener,
    pub handover: &'a ConnectionHandover,
}

/// How long [`ClientSockets::wait`] may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// Not at all: there is work to do.
    No,
    /// Until any message comes.
    UntilAnyMessage,
    /// Until a message comes that is not deferred.
    UntilUrgentMessage,
}

impl<'a> ClientSockets<'a> {
    /// The sockets of an I/O thread.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn open(server: SocketContext<'a>, stop: &StopSignal) -> Result<Self, Error> {
        let poller = Poller::new().map_err(Error::io("open an epoll"))?;
        let watched = poller.watch_waker(&**server.inbox());
        watched.map_err(Error::io("watch an eventfd"))?;
        let watched = poller.watch_waker(stop);
        watched.map_err(Error::io("watch for the request to stop"))?;
        Ok(Self {
            server,
            entrance: None,
            poller,
            events: Events::default(),
            messages: Vec::new(),
            connections: Slab::default(),
            turns: NumberList::default(),
            served: Vec::new(),
            waiting: NumberList::default(),
            awaiting: 0,
            scratch: vec![0; READ_BYTES].into(),
            ticked: Instant::now(),
        })
    }

    /// Accepts clients itself from now on; first receives those that were handed over to a
    /// predecessor that died.
    ///
    /// # Errors
    /// If the sockets cannot be watched.
    pub fn accept_from(&mut self, entrance: Entrance<'a>) -> Result<(), Error> {
        let watched = self.poller.watch_clients(entrance.listener);
        let watched = watched.and_then(|()| {
            let receiver = entrance.handover.receiver(self.server.number);
            self.poller.watch_clients(receiver)
        });
        watched.map_err(Error::io("watch for clients"))?;
        let counters = &self.server.network.counters;
        let inherited = entrance.handover.inherit(self.server.number, counters);
        for (stream, id) in inherited {
            self.admit(stream, id, Instant::now());
        }
        self.entrance = Some(entrance);
        Ok(())
    }

    /// How many connections will have a turn.
    pub fn turns(&self) -> usize {
        self.turns.numbers.len()
    }

    /// Counts requests that were executed.
    pub fn count_requests(&self, executed: u64) {
        self.server.counters().requests.fetch_add(executed, Relaxed);
    }

    /// Waits for events of sockets or for messages.
    ///
    /// # Errors
    /// If the system refuses to wait.
    pub fn wait(&mut self, sleep: Sleep) -> Result<(), Error> {
        let waited = if sleep == Sleep::No || self.turns() > 0 || !self.server.inbox().is_empty() {
            self.poller.wait(&mut self.events, Some(Duration::ZERO))
        } else {
            self.sleep(sleep == Sleep::UntilAnyMessage || self.awaiting > 0)
        };
        waited.map_err(Error::io("wait for sockets"))
    }

    fn sleep(&mut self, wakes_for_any: bool) -> io::Result<()> {
        let mut result = Ok(());
        let (poller, events, inbox) = (&self.poller, &mut self.events, self.server.inbox());
        let (waiting, connections) = (&self.waiting, &self.connections);
        wait_for_work(self.server.options.idle, self.server.meter, |sleep| {
            if sleep {
                let timeout = timeout(waiting, connections);
                inbox.sleep_if_empty(wakes_for_any, || {
                    result = poller.wait(events, Some(timeout))
                });
            } else {
                result = poller.wait(events, Some(Duration::ZERO));
            }
            result.is_err() || !events.is_empty() || !inbox.is_empty()
        });
        result
    }

    /// Processes events and messages, which decide what connections will have a turn. Appends
    /// batches that are back to `returned`.
    pub fn take_events(&mut self, now: Instant, returned: &mut Vec<Batch>) {
        let awake_ms = &self.server.counters().awake_ms;
        awake_ms.store(self.server.network.ms(now), Relaxed);
        for ready in self.events.ready() {
            if let Some(connection) = self.connections.get_mut(ready.number) {
                connection.note(ready);
                self.turns.insert(ready.number);
            }
        }
        if self.events.clients_came() {
            self.take_clients(now);
        }
        self.take_messages(now, returned);
        self.queue_retries(now);
    }

    fn take_messages(&mut self, now: Instant, returned: &mut Vec<Batch>) {
        let mut messages = std::mem::take(&mut self.messages);
        self.server.inbox().take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Connection(stream, id) => self.admit(stream, id, now),
                Message::Executed(batch) => returned.push(batch),
                Message::Called(at) => {
                    if let Some(connection) = self.connections.get_mut(at) {
                        connection.call(now);
                    }
                }
            }
        }
        self.messages = messages; // uses its memory again
    }

    /// Accepts clients, keeps some of them, and receives those that other engines have handed over.
    fn take_clients(&mut self, now: Instant) {
        let Some(Entrance { listener, handover }) = self.entrance else {
            return;
        };
        let SocketContext {
            network, number, ..
        } = self.server;
        while let Some((stream, id)) = listener::accept(network, listener) {
            if let Some(stream) =
                handover.place(number, stream, id, &network.counters, network.ms(now))
            {
                self.admit(stream, id, now);
            }
        }
        while let Some((stream, id)) = handover.receive(number) {
            self.admit(stream, id, now);
        }
    }

    fn admit(&mut self, stream: TcpStream, id: u64, now: Instant) {
        let _ = stream.set_nodelay(true);
        let session = Box::new(self.server.session(id));
        let connection = ClientConnection::new(stream, session, now);
        let at = self.connections.insert(connection);
        self.server.counters().connections.fetch_add(1, Relaxed);
        let (connection, inbox) = (&mut self.connections[at], Arc::clone(self.server.inbox()));
        if let Some(session) = connection.session_mut() {
            session.on_wakeup(move || inbox.send(Message::Called(at)));
        }
        if self.poller.watch(connection.stream(), at).is_err() {
            connection.set_broken();
        }
        self.turns.insert(at);
    }

    /// Gives connections a turn whose pause is over.
    fn queue_retries(&mut self, now: Instant) {
        let (connections, turns) = (&self.connections, &mut self.turns);
        self.waiting.retain(|at| {
            let Some(connection) = connections.get(at) else {
                return false;
            };
            let is_due = connection.retry_at.is_none_or(|retry_at| retry_at <= now);
            if is_due {
                turns.insert(at);
            }
            !is_due
        });
    }

    /// Gives connections their turn: reads their requests and parses them into a batch. Calls
    /// `added` after each; if it breaks, the other connections have their turn at the next call.
    pub fn read_requests(
        &mut self,
        now: Instant,
        batch: &mut Batch,
        mut added: impl FnMut(&mut Batch) -> ControlFlow<()>,
    ) {
        let limits = &self.server.options.limits;
        let replies = self.server.options.threads.replies();
        let mut had_turn = 0;
        for at in &self.turns.numbers {
            had_turn += 1;
            let Some(connection) = self.connections.get_mut(*at) else {
                continue;
            };
            connection.read(&mut self.scratch, limits, now);
            connection.submit(*at, batch, replies, limits, now);
            self.served.push(*at);
            if added(batch).is_break() {
                break;
            }
        }
        self.turns.remove_first(had_turn);
    }

    /// Returns sessions and replies of a batch to their connections, and calls `on_return` for
    /// each.
    pub fn take_back(
        &mut self,
        batch: &mut Batch,
        now: Instant,
        mut on_return: impl FnMut(&mut NumberList, u32),
    ) {
        batch.take_apart(|returned| {
            let at = returned.connection;
            let connection = &mut self.connections[at];
            self.awaiting -= usize::from(connection.take_back(returned, now));
            if connection.retry_at.is_some_and(|retry_at| retry_at > now) {
                self.waiting.insert(at);
            }
            on_return(&mut self.turns, at);
        });
    }

    /// Writes replies of the connections that had a turn, and closes those that have ended. Adds
    /// the ends of their sessions to `next`.
    pub fn write_replies(&mut self, now: Instant, next: &mut Batch) {
        let limits = &self.server.options.limits;
        let mut served = std::mem::take(&mut self.served);
        for at in served.drain(..) {
            let Some(connection) = self.connections.get_mut(at) else {
                continue;
            };
            connection.write(now);
            if connection.begins_to_await() {
                self.awaiting += 1;
            } else if connection.is_over(limits, now) {
                self.close(at, next);
            } else if connection.wants_turn(limits, now) {
                self.turns.insert(at);
            }
        }
        self.served = served; // uses its memory again
        self.close_stalled(now, next);
    }

    fn close_stalled(&mut self, now: Instant, next: &mut Batch) {
        if now.duration_since(self.ticked) < TICK {
            return;
        }
        self.ticked = now;
        let limits = &self.server.options.limits;
        let stalled = self.connections.iter();
        let stalled = stalled.filter(|(_, it)| it.is_stalled(limits, now));
        for at in stalled.map(|(at, _)| at).collect::<Vec<_>>() {
            let closed = &self.server.network.clients.closed_by_limits;
            closed.fetch_add(1, Relaxed);
            self.connections[at].set_broken();
            self.close(at, next);
        }
    }

    /// Closes a connection and ends its session, as soon as the session is here.
    fn close(&mut self, at: u32, next: &mut Batch) {
        let Some(session) = self.connections[at].send_session() else {
            return;
        };
        self.connections.remove(at);
        self.turns.retain(|it| it != at);
        self.server.counters().open.fetch_sub(1, Relaxed);
        next.add_close(at, session);
    }
}

/// The time until the next attempt to take a lock, or the next check for stalled clients.
fn timeout(waiting: &NumberList, connections: &Slab<ClientConnection>) -> Duration {
    let now = Instant::now();
    let retries = waiting.numbers.iter().filter_map(|at| {
        let retry_at = connections.get(*at)?.retry_at?;
        Some(retry_at.saturating_duration_since(now))
    });
    retries.min().unwrap_or(TICK).min(TICK)
}

/// Numbers of connections in the order in which they were inserted; each is in it once.
#[derive(Debug, Default)]
pub struct NumberList {
    numbers: Vec<u32>,
    is_in: Vec<bool>,
}

impl NumberList {
    pub fn insert(&mut self, number: u32) {
        let at = number as usize;
        if at >= self.is_in.len() {
            self.is_in.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.is_in[at], true) {
            self.numbers.push(number);
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let is_in = &mut self.is_in;
        self.numbers.retain(|number| {
            let is_kept = keep(*number);
            is_in[*number as usize] = is_kept;
            is_kept
        });
    }

    fn remove_first(&mut self, count: usize) {
        for number in self.numbers.drain(..count) {
            self.is_in[number as usize] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_a_list_once_until_it_is_removed() {
        let mut list = NumberList::default();
        for number in [3, 0, 3, 7, 0] {
            list.insert(number);
        }
        assert_eq!(list.numbers, [3, 0, 7]);
        list.remove_first(1);
        list.retain(|number| number != 7);
        for number in [7, 0, 3] {
            list.insert(number);
        }
        assert_eq!(list.numbers, [0, 7, 3]);
    }
}

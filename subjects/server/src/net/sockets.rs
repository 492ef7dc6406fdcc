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
use crate::net::incidents::Incident;
use crate::net::listener;
use crate::net::network::Network;
use crate::net::newcomers::Newcomers;
use crate::net::poller::{Events, Poller};
use crate::net::threads::{StopSignal, wait_for_work};
use crate::options::{READ_BYTES, ServerOptions};
use crate::services::Services;
use crate::session::Session;
use crate::slab::Slab;
use crate::source::Source;

/// Most clients that are accepted in one turn: those that are connected have theirs, too.
const ACCEPTED_MAX: usize = 16;

/// The interval between two checks for clients that are late or stalled, and the maximum sleep.
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
    /// Connections whose requests wait: for a lock, or to try a password.
    waiting: NumberList,
    /// No request of them is executed again before.
    next_retry: Option<Instant>,
    /// Clients that have not logged in.
    newcomers: Newcomers,
    /// How many of them are to make room for other clients.
    displaced: usize,
    /// The buffers of all clients may be too large.
    must_free_memory: bool,
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

    /// Number of I/O threads, or of engines that own the sockets.
    fn threads(self) -> u64 {
        self.network.counters.len() as u64
    }

    fn inbox(self) -> &'a Arc<IoInbox> {
        &self.network.inboxes[self.number]
    }

    /// A session for the connection of this number from there.
    fn session(self, id: u64, source: Source) -> Session {
        let engine = self.options.threads.engine_of_connections(self.number);
        Session::new(id, engine, source, self.services)
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
        server.counters().begin();
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
            next_retry: None,
            newcomers: Newcomers::default(),
            displaced: 0,
            must_free_memory: false,
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
        let next_retry = self.next_retry;
        wait_for_work(self.server.options.idle, self.server.meter, |sleep| {
            if sleep {
                let timeout = timeout(next_retry);
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
                        self.next_retry = Some(now);
                    }
                }
                Message::MakeRoom => self.displaced += 1,
                Message::FreeMemory => self.must_free_memory = true,
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
        // What is left is reported again by the next wait.
        for _ in 0..ACCEPTED_MAX {
            let Some((stream, id)) = listener::accept(network, listener) else {
                break;
            };
            if let Some(stream) =
                handover.place(number, stream, id, &network.counters, network.ms(now))
            {
                self.admit(stream, id, now);
            }
            network.make_room();
        }
        for _ in 0..ACCEPTED_MAX {
            let Some((stream, id)) = handover.receive(number) else {
                break;
            };
            self.admit(stream, id, now);
        }
    }

    fn admit(&mut self, stream: TcpStream, id: u64, now: Instant) {
        let _ = stream.set_nodelay(true);
        let address = stream.peer_addr();
        let source = address.map_or(Source::UNKNOWN, |it| it.ip().into());
        let session = Box::new(self.server.session(id, source));
        let connection = ClientConnection::new(stream, session, now);
        let is_logged_in = connection.is_logged_in();
        let at = self.connections.insert(connection);
        let counters = self.server.counters();
        counters.connections.fetch_add(1, Relaxed);
        if is_logged_in {
            counters.logged_in.fetch_add(1, Relaxed);
        } else {
            let connections = &self.connections;
            self.newcomers.add(id, at, is_newcomer(connections));
        }
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
        if self.next_retry.is_none_or(|at| at > now) {
            return;
        }
        let (connections, turns) = (&self.connections, &mut self.turns);
        let mut next = None;
        self.waiting.retain(|at| {
            let Some(connection) = connections.get(at) else {
                return false;
            };
            let later = connection.retry_at.filter(|retry_at| *retry_at > now);
            match later {
                Some(retry_at) => next = earlier(next, retry_at),
                None => turns.insert(at),
            }
            later.is_some()
        });
        self.next_retry = next;
    }

    /// Gives connections their turn: reads their requests and parses them into a batch. Calls
    /// `added` after each; if it breaks, the other connections have their turn at the next call.
    pub fn read_requests(
        &mut self,
        now: Instant,
        batch: &mut Batch,
        mut added: impl FnMut(&mut Batch) -> ControlFlow<()>,
    ) {
        let options = self.server.options;
        let replies = options.threads.replies();
        let mut had_turn = 0;
        for at in &self.turns.numbers {
            had_turn += 1;
            let Some(connection) = self.connections.get_mut(*at) else {
                continue;
            };
            let limits = connection.limits(options);
            connection.read(&mut self.scratch, limits, now);
            if !connection.submit(*at, batch, replies, limits, now) {
                let incidents = &self.server.network.clients.incidents;
                incidents.add(Incident::Malformed, connection.source());
            }
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
            let was_logged_in = connection.is_logged_in();
            self.awaiting -= usize::from(connection.take_back(returned, now));
            if connection.is_logged_in() != was_logged_in {
                let logged_in = &self.server.counters().logged_in;
                logged_in.fetch_add(1, Relaxed);
            }
            if let Some(retry_at) = connection.retry_at.filter(|it| *it > now) {
                self.waiting.insert(at);
                self.next_retry = earlier(self.next_retry, retry_at);
            }
            on_return(&mut self.turns, at);
        });
    }

    /// Writes replies of the connections that had a turn, and closes those that have ended or are
    /// beyond a limit. Adds the ends of their sessions to `next`.
    pub fn write_replies(&mut self, now: Instant, next: &mut Batch) {
        let options = self.server.options;
        let mut served = std::mem::take(&mut self.served);
        let (mut grown, mut largest) = (0, 0);
        for at in served.drain(..) {
            let Some(connection) = self.connections.get_mut(at) else {
                continue;
            };
            connection.write(now);
            grown += connection.count_buffered();
            largest = largest.max(connection.buffered() as u64);
            let limits = connection.limits(options);
            if connection.begins_to_await() {
                self.awaiting += 1;
            } else if connection.is_over(limits, now) {
                self.close(at, next);
            } else if connection.wants_turn(limits, now) {
                self.turns.insert(at);
            }
        }
        self.served = served; // uses its memory again
        self.count_buffered(grown, largest);
        self.close_excess(now, next);
    }

    /// Counts bytes by which the buffers have grown, and those of the largest connection among them.
    fn count_buffered(&mut self, grown: i64, largest: u64) {
        let counters = self.server.counters();
        if grown == 0 {
            return;
        }
        let before = counters.buffered_bytes.fetch_add(grown, Relaxed);
        if grown > 0 {
            counters.largest_bytes.fetch_max(largest, Relaxed);
            // Where all threads together exceed the limit, one of them exceeds its share.
            let share = self.server.options.client_buffers_max / self.server.threads();
            self.must_free_memory |= before + grown > share as i64;
        }
    }

    /// Closes connections that are beyond a limit, wherever they are in their requests.
    fn close_excess(&mut self, now: Instant, next: &mut Batch) {
        for _ in 0..std::mem::take(&mut self.displaced) {
            self.displace(next);
        }
        let is_tick = now.duration_since(self.ticked) >= TICK;
        if is_tick {
            self.ticked = now;
            self.close_late(now, next);
            self.displace(next);
            self.measure_largest();
        }
        if is_tick || std::mem::take(&mut self.must_free_memory) {
            self.free_memory(next);
        }
        self.show_oldest();
        if is_tick {
            let network = self.server.network;
            network.clients.incidents.tell(network.ms(now));
        }
    }

    /// Closes clients that have not logged in in time, or are stalled.
    fn close_late(&mut self, now: Instant, next: &mut Batch) {
        let options = self.server.options;
        let connections = self.connections.iter();
        let late = connections.filter_map(|(at, it)| {
            if it.is_broken() {
                None
            } else if it.is_late(options.login.timeout, now) {
                Some((at, Incident::LoginTimeout))
            } else {
                let is_stalled = it.is_stalled(it.limits(options), now);
                is_stalled.then_some((at, Incident::Stalled))
            }
        });
        for (at, incident) in late.collect::<Vec<_>>() {
            self.dismiss(at, incident, next);
        }
    }

    /// Closes the client that has been connected longest without logging in, if too many are
    /// connected. If it belongs to another thread, that one is asked to do so.
    fn displace(&mut self, next: &mut Batch) {
        let SocketContext {
            network, number, ..
        } = self.server;
        if network.newcomers() == 0 || network.connected() <= network.clients.max {
            return;
        }
        self.show_oldest();
        let with_oldest = network.with_oldest_newcomer();
        if with_oldest != number {
            network.inboxes[with_oldest].send(Message::MakeRoom);
        } else if let Some((_, at)) = self.newcomers.oldest(is_newcomer(&self.connections)) {
            self.dismiss(at, Incident::Displaced, next);
        }
    }

    /// Shows other threads since when its oldest newcomer is connected.
    fn show_oldest(&mut self) {
        let oldest = self.newcomers.oldest(is_newcomer(&self.connections));
        let oldest = oldest.map_or(0, |(client, _)| client);
        let shown = &self.server.counters().oldest_newcomer;
        if shown.load(Relaxed) != oldest {
            shown.store(oldest, Relaxed);
        }
    }

    /// Closes the clients with the largest buffers, until those of all are below the limit. If they
    /// belong to another thread, that one is asked to do so.
    fn free_memory(&mut self, next: &mut Batch) {
        let SocketContext {
            network, number, ..
        } = self.server;
        while network.buffered_bytes() > self.server.options.client_buffers_max {
            let largest = self.measure_largest();
            let with_largest = network.with_largest_buffers(number);
            if with_largest != number {
                network.inboxes[with_largest].send(Message::FreeMemory);
                return;
            }
            let Some(at) = largest else {
                return;
            };
            self.dismiss(at, Incident::Memory, next);
        }
    }

    /// The connection with the largest buffers, if any has something in them. Shows other threads how
    /// large they are.
    fn measure_largest(&mut self) -> Option<u32> {
        let connections = self.connections.iter();
        let buffered = connections.filter(|(_, it)| !it.is_broken());
        let buffered = buffered.map(|(at, it)| (it.buffered() as u64, at));
        let largest = buffered.filter(|(bytes, _)| *bytes > 0).max();
        let bytes = largest.map_or(0, |(bytes, _)| bytes);
        let shown = &self.server.counters().largest_bytes;
        shown.store(bytes, Relaxed);
        largest.map(|(_, at)| at)
    }

    /// Ends a connection that is beyond a limit.
    fn dismiss(&mut self, at: u32, incident: Incident, next: &mut Batch) {
        let connection = &mut self.connections[at];
        connection.dismiss(incident);
        let source = connection.source();
        let grown = connection.count_buffered();
        self.count_buffered(grown, 0);
        let incidents = &self.server.network.clients.incidents;
        incidents.add(incident, source);
        self.close(at, next);
    }

    /// Closes a connection and ends its session, as soon as the session is here.
    fn close(&mut self, at: u32, next: &mut Batch) {
        let connection = &mut self.connections[at];
        let Some(session) = connection.send_session() else {
            return;
        };
        connection.set_broken();
        let grown = connection.count_buffered();
        let was_logged_in = connection.is_logged_in();
        self.count_buffered(grown, 0);
        self.connections.remove(at);
        self.turns.retain(|it| it != at);
        let counters = self.server.counters();
        if was_logged_in {
            counters.logged_in.fetch_sub(1, Relaxed);
        } else {
            self.show_oldest(); // before the next client needs its place
        }
        counters.open.fetch_sub(1, Relaxed);
        next.add_close(at, session);
    }
}

/// Whether the client of a number at a place has not logged in.
fn is_newcomer(connections: &Slab<ClientConnection>) -> impl Fn(u64, u32) -> bool {
    move |client, at| {
        let connection = connections.get(at);
        connection.is_some_and(|it| it.id() == client && it.is_newcomer())
    }
}

/// The earlier of two times, of which one may be missing.
fn earlier(one: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(one.map_or(other, |one| one.min(other)))
}

/// The time until a request is executed again, or until the next check for clients that are late.
fn timeout(next_retry: Option<Instant>) -> Duration {
    let now = Instant::now();
    let retry = next_retry.map(|at| at.saturating_duration_since(now));
    retry.unwrap_or(TICK).min(TICK)
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

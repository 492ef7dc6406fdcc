//! How engine processes share clients: the engine that accepts a client hands it over to the engine
//! with the fewest clients, through a socket that was opened before the engines were forked.
//!
//! The kernel stores clients that are not received yet. If their engine dies, its replacement
//! receives them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::{Class, Mutex};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::net::clients::ThreadCounters;

/// An idle engine looks for work twice a second.
const ASLEEP_MS_MAX: u64 = 2_000;

/// The sockets through which engines hand over clients.
#[derive(Debug)]
pub struct ConnectionHandover {
    /// For each engine, the end at which others send to it and the end at which it receives.
    pairs: Box<[(OwnedFd, OwnedFd)]>,
    /// Guards the counts of clients, so that a client that is counted for an engine is also sent to
    /// it.
    latch: Mutex<()>,
}

impl ConnectionHandover {
    /// For so many engines.
    pub fn new(engines: usize) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let pair = |_| socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let pairs: Result<_, _> = (0..engines).map(pair).collect();
        Ok(Self {
            pairs: pairs?,
            // INFO shows this name of the class of latches.
            latch: Class::named("reception").mutex(()),
        })
    }

    /// Becomes readable when clients are handed over to an engine.
    pub fn receiver(&self, engine: usize) -> BorrowedFd<'_> {
        self.pairs[engine].1.as_fd()
    }

    /// Hands a client over to the engine with the fewest; returns it if that is the calling engine. An
    /// engine that has not looked for work for a while gets none: it may be stopped.
    pub fn place(
        &self,
        engine: usize,
        client: TcpStream,
        id: u64,
        engines: &[ThreadCounters],
        now_ms: u64,
    ) -> Option<TcpStream> {
        let _latch = self.latch.lock();
        let open = |at: &usize| (engines[*at].open.load(Relaxed), *at != engine);
        let answers = |at: &usize| {
            let awake_ms = engines[*at].awake_ms.load(Relaxed);
            *at == engine || now_ms <= awake_ms + ASLEEP_MS_MAX
        };
        let to = (0..engines.len()).filter(answers).min_by_key(open);
        let to = to.unwrap_or(engine);
        // Counted before it is sent: the other engine may receive and close it at once, and a count
        // below zero would refuse the next client.
        engines[to].open.fetch_add(1, Relaxed);
        // If the socket is full, that engine is busy: the calling engine keeps the client.
        let is_sent = to != engine && self.send(to, &client, id).is_ok();
        if !is_sent {
            engines[to].open.fetch_sub(1, Relaxed);
            engines[engine].open.fetch_add(1, Relaxed);
        }
        (!is_sent).then_some(client)
    }

    fn send(&self, to: usize, client: &TcpStream, id: u64) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [client.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let bytes = id.to_ne_bytes();
        let flags = SendFlags::NOSIGNAL;
        sendmsg(
            &self.pairs[to].0,
            &[IoSlice::new(&bytes)],
            &mut ancillary,
            flags,
        )?;
        Ok(())
    }

    /// The next client that was handed over to this engine, and its number.
    pub fn receive(&self, engine: usize) -> Option<(TcpStream, u64)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; size_of::<u64>()];
        let into = &mut [IoSliceMut::new(&mut bytes)];
        recvmsg(
            self.receiver(engine),
            into,
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
        .ok()?;
        let client = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Some((client?.into(), u64::from_ne_bytes(bytes)))
    }

    /// Receives the clients that were handed over to an engine and not received before it died, for
    /// its replacement. The clients that it had received are lost.
    pub fn inherit(&self, engine: usize, engines: &[ThreadCounters]) -> Vec<(TcpStream, u64)> {
        let _latch = self.latch.lock();
        let clients: Vec<_> = std::iter::from_fn(|| self.receive(engine)).collect();
        engines[engine].open.store(clients.len() as u64, Relaxed);
        clients
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn clients_go_to_the_engine_with_the_fewest_and_none_is_lost_on_the_way() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let handover = ConnectionHandover::new(2).unwrap();
        let engines = [ThreadCounters::default(), ThreadCounters::default()];
        let open = || [0, 1].map(|at: usize| engines[at].open.load(Relaxed));
        let (mut clients, mut kept) = (Vec::new(), 0);
        for id in 0..4 {
            let (client, accepted) = connect();
            clients.push(client);
            kept += usize::from(handover.place(0, accepted, id, &engines, 0).is_some());
        }
        assert_eq!((kept, open()), (2, [2, 2]));
        let (mut first, id) = handover.receive(1).unwrap();
        assert_eq!(id, 1, "its own came first");
        first.write_all(b"x").unwrap();
        clients[1].read_exact(&mut [0]).unwrap();
        // Its client is lost with that engine; the other one is not received yet.
        drop(first);
        let inherited = handover.inherit(1, &engines);
        assert_eq!(inherited.iter().map(|it| it.1).collect::<Vec<_>>(), [3]);
        assert_eq!(open(), [2, 1]);
        assert!(handover.receive(1).is_none());
    }

    #[test]
    fn an_engine_that_does_not_look_for_work_gets_no_client() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let handover = ConnectionHandover::new(2).unwrap();
        let engines = [ThreadCounters::default(), ThreadCounters::default()];
        engines[0].open.store(9, Relaxed);
        for (now_ms, is_given) in [(ASLEEP_MS_MAX, true), (ASLEEP_MS_MAX + 1, false)] {
            let kept = handover.place(0, client.try_clone().unwrap(), 1, &engines, now_ms);
            assert_eq!(kept.is_none(), is_given);
        }
    }

    #[test]
    fn a_client_is_counted_before_its_engine_can_close_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let handover = ConnectionHandover::new(2).unwrap();
        let engines = [ThreadCounters::default(), ThreadCounters::default()];
        engines[0].open.store(u64::from(u32::MAX), Relaxed); // each client goes to the other engine
        let has_ended = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !has_ended.load(Relaxed) {
                    while handover.receive(1).is_some() {
                        let before = engines[1].open.fetch_sub(1, Relaxed);
                        assert!(before > 0, "closed before it was counted");
                    }
                }
            });
            for id in 0..20_000 {
                handover.place(0, client.try_clone().unwrap(), id, &engines, 0);
            }
            has_ended.store(true, Relaxed);
        });
    }
}

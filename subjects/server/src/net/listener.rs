//! How clients come in: a thread accepts them and gives each to the next I/O thread; engines that are
//! processes accept for themselves.

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::error::{Error, While};
use crate::hall::{Hall, count};
use crate::net::inbox::Message;
use crate::net::poller::{Events, Poller};
use crate::net::until::Until;

/// How long it pauses when the process has no descriptor left.
const PAUSE: Duration = Duration::from_millis(10);

/// Accepts for all I/O threads until the engine ends.
pub fn run(hall: &Hall, listener: &TcpListener, until: &Until) -> Result<(), Error> {
    let poller = Poller::new().when(|| "open an epoll".to_owned())?;
    let watched = poller.watch_clients(listener);
    let watched = watched.and_then(|()| poller.watch_waker(until));
    watched.when(|| "watch the listener".to_owned())?;
    let mut events = Events::default();
    while !until.is_over() {
        poller
            .wait(&mut events, None)
            .when(|| "wait for connections".to_owned())?;
        while !until.is_over() {
            let Some((stream, id)) = accept(hall, listener) else {
                break;
            };
            let to = id as usize % hall.inboxes.len();
            hall.per_thread[to].open.fetch_add(1, Relaxed);
            hall.inboxes[to].send(Message::Connection(stream, id));
        }
    }
    Ok(())
}

/// The next client that is let in, and its number; none, if nobody waits at the door.
pub fn accept(hall: &Hall, listener: &TcpListener) -> Option<(TcpStream, u64)> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_ok()
                    && let Some(id) = admit(hall, &stream)
                {
                    return Some((stream, id));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(_) => std::thread::sleep(PAUSE), // aborted, or no descriptor is left
        }
    }
}

/// Lets a client in and gives it a number, or tells it why not.
fn admit(hall: &Hall, mut stream: &TcpStream) -> Option<u64> {
    let clients = hall.clients();
    if clients >= hall.settings.clients_max {
        count(&hall.counters.refused_clients);
        let _ = stream.write(b"-ERR max number of clients reached (--clients-max)\r\n");
        return None;
    }
    hall.clients_peak.fetch_max(clients + 1, Relaxed);
    Some(hall.counters.accepted.fetch_add(1, Relaxed) + 1)
}

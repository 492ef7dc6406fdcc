//! How clients are accepted: by a thread that assigns each to the next I/O thread, or by engine
//! processes.

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::error::Error;
use crate::net::inbox::Message;
use crate::net::network::Network;
use crate::net::poller::{Events, Poller};
use crate::net::threads::StopSignal;

/// Pause when the process has no descriptor left.
const PAUSE: Duration = Duration::from_millis(10);

/// Accepts for all I/O threads until the engine ends.
///
/// # Errors
/// If the listener cannot be watched.
pub fn run(network: &Network, listener: &TcpListener, stop: &StopSignal) -> Result<(), Error> {
    let poller = Poller::new().map_err(Error::io("open an epoll"))?;
    let watched = poller.watch_clients(listener);
    let watched = watched.and_then(|()| poller.watch_waker(stop));
    watched.map_err(Error::io("watch the listener"))?;
    let mut events = Events::default();
    while !stop.is_set() {
        poller
            .wait(&mut events, None)
            .map_err(Error::io("wait for connections"))?;
        while !stop.is_set() {
            let Some((stream, id)) = accept(network, listener) else {
                break;
            };
            let to = id as usize % network.inboxes.len();
            network.counters[to].open.fetch_add(1, Relaxed);
            network.inboxes[to].send(Message::Connection(stream, id));
        }
    }
    Ok(())
}

/// The next client that is admitted, and its number; `None` if no client waits.
pub fn accept(network: &Network, listener: &TcpListener) -> Option<(TcpStream, u64)> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_ok()
                    && let Some(id) = admit(network, &stream)
                {
                    return Some((stream, id));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(_) => std::thread::sleep(PAUSE), // the connection was aborted, or no descriptor is left
        }
    }
}

fn admit(network: &Network, mut stream: &TcpStream) -> Option<u64> {
    let id = network.clients.admit(network.connected());
    if id.is_none() {
        let _ = stream.write(b"-ERR max number of clients reached (--clients-max)\r\n");
    }
    id
}

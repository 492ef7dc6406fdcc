//! How clients are accepted: by a thread that assigns each to the next I/O thread, or by engine
//! processes.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::error::Error;
use crate::net::inbox::Message;
use crate::net::incidents::Incident;
use crate::net::network::Network;
use crate::net::poller::{Events, Poller};
use crate::net::threads::StopSignal;
use crate::net::transfer::transmit;

/// Pause when no client can be accepted, because no descriptor or memory is left.
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
            network.make_room();
        }
    }
    Ok(())
}

/// The next client that is admitted, and its number; `None` if no client waits, or none can be
/// accepted for the moment.
pub fn accept(network: &Network, listener: &TcpListener) -> Option<(TcpStream, u64)> {
    loop {
        match listener.accept() {
            Ok((stream, address)) => {
                if stream.set_nonblocking(true).is_err() {
                    continue;
                }
                if let Some(id) = network.admit() {
                    return Some((stream, id));
                }
                let source = address.ip().into();
                network.clients.incidents.add(Incident::Refused, source);
                let why = b"-ERR max number of clients reached (--clients-max)\r\n";
                let _ = transmit(&stream, why);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return None,
                // The client has gone.
                ErrorKind::ConnectionAborted | ErrorKind::Interrupted => {}
                _ => {
                    std::thread::sleep(PAUSE);
                    return None;
                }
            },
        }
    }
}

//! The thread that accepts connections and hands each to the next I/O thread.

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::commands::Session;
use crate::error::{Error, While};
use crate::hall::{Hall, count};
use crate::net::io_thread::{IoInbox, Message};
use crate::net::poller::{Events, Poller, Waker};

/// How long it pauses when the process has no descriptor left.
const PAUSE: Duration = Duration::from_millis(10);

pub struct Listener {
    poller: Poller,
    listener: TcpListener,
}

impl Listener {
    /// Also returns what stops it, once `hall.stop` is set.
    pub fn new(listener: TcpListener) -> Result<(Self, Waker), Error> {
        let (poller, waker) = Poller::new().when(|| "open an epoll and an eventfd".to_owned())?;
        poller
            .watch(&listener, 0)
            .when(|| "watch the listener".to_owned())?;
        Ok((Self { poller, listener }, waker))
    }

    /// Accepts until the server stops.
    pub fn run(self, hall: &Hall, io_threads: &[Arc<IoInbox>]) -> Result<(), Error> {
        let (mut events, mut accepted) = (Events::default(), 0);
        while !hall.stop.load(Relaxed) {
            self.poller
                .wait(&mut events, None)
                .when(|| "wait for connections".to_owned())?;
            while !hall.stop.load(Relaxed) {
                match self.listener.accept() {
                    Ok((stream, _)) => {
                        if stream.set_nonblocking(true).is_ok() && admit(hall, &stream) {
                            accepted += 1;
                            let thread = accepted as usize % io_threads.len();
                            let session = Box::new(Session::new(accepted, hall));
                            io_threads[thread].send(Message::Connection(stream, session));
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => std::thread::sleep(PAUSE), // aborted, or no descriptor is left
                }
            }
        }
        Ok(())
    }
}

/// Lets a client in, or tells it why not.
fn admit(hall: &Hall, mut stream: &TcpStream) -> bool {
    if hall.clients.now() >= hall.settings.clients_max {
        count(&hall.counters.refused_clients);
        let _ = stream.write(b"-ERR max number of clients reached (--clients-max)\r\n");
        return false;
    }
    count(&hall.counters.accepted);
    hall.clients.add();
    true
}

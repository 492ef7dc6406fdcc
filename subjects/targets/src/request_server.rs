//! A server whose threads wait for requests over loopback TCP.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;
use nix::sys::socket;

use crate::error::Error;
use crate::stop::{LIMIT_S_DEFAULT, Stop};
use crate::work::{OperationArgs, spin};
use crate::workers::{measure_beside, threads};

/// A request, and the answer to it.
pub type Message = [u8; 8];

/// Answer requests over loopback TCP until SIGTERM; each thread serves one connection at a time
///
/// An operation is a request, some work, and the reply. The phase measure lasts from the line
/// ready until SIGTERM. The program slow-client sends the requests.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  concurve-targets request-server --threads 4 --operation-us 100 --port-file /tmp/port"
)]
pub struct RequestServer {
    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    /// File for the number of the port, written before the server is ready and removed at its end
    #[arg(long, value_name = "FILE")]
    port_file: PathBuf,
    #[command(flatten)]
    operation: OperationArgs,
    /// End after this time at the latest
    #[arg(long, value_name = "S", default_value_t = LIMIT_S_DEFAULT,
          value_parser = clap::value_parser!(u64).range(1..))]
    limit_s: u64,
}

impl RequestServer {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let stop = Stop::watch()?;
        let iterations = self.operation.iterations();
        let server = LoopbackServer::open(self.threads)?;
        let _port_file = PortFile::write(&self.port_file, server.port()?)?;
        reporter.ready()?;
        measure_beside(
            &reporter,
            self.threads,
            |index| server.serve(index, iterations),
            || {
                stop.wait(Duration::from_secs(self.limit_s));
                server.close();
            },
        )?;
        Ok(())
    }
}

/// The listener that the threads accept from, and the current connection of each thread.
struct LoopbackServer {
    listener: TcpListener,
    connections: Vec<Mutex<Option<TcpStream>>>,
    closed: AtomicBool,
}

impl LoopbackServer {
    fn open(threads: u32) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        Ok(Self {
            listener: listener.map_err(Error::io(|| "listen on a loopback port".to_owned()))?,
            connections: (0..threads).map(|_| Mutex::default()).collect(),
            closed: AtomicBool::new(false),
        })
    }

    fn port(&self) -> Result<u16, Error> {
        let address = self.listener.local_addr();
        Ok(address
            .map_err(Error::io(|| "read the port".to_owned()))?
            .port())
    }

    /// Serves one connection after another; returns the requests that were answered.
    fn serve(&self, index: u32, iterations: u64) -> Result<u64, Error> {
        let mut answered = 0;
        while !self.closed.load(Ordering::SeqCst) {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(_) if self.closed.load(Ordering::SeqCst) => break,
                // The client has closed the connection before it was accepted.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(Error::io(|| "take a connection".to_owned())(error)),
            };
            self.register(index, &stream)?;
            answered += answer(stream, iterations)?;
        }
        Ok(answered)
    }

    /// Stores a handle of the connection, so that `close` can shut the connection down.
    fn register(&self, index: u32, stream: &TcpStream) -> Result<(), Error> {
        let copy = stream.try_clone();
        let copy = copy.map_err(Error::io(|| "copy a connection".to_owned()))?;
        let mut connection = self.connections[index as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::SeqCst) {
            // `close` has run before the connection was registered, and did not shut it down.
            let _ = copy.shutdown(Shutdown::Both);
        }
        *connection = Some(copy);
        Ok(())
    }

    /// Shuts the listener and all connections down, which ends each wait of a thread.
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        // On Linux this wakes all threads in accept.
        let _ = socket::shutdown(self.listener.as_raw_fd(), socket::Shutdown::Both);
        for connection in &self.connections {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(stream) = &*connection {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// Answers until the client closes the connection.
fn answer(mut stream: TcpStream, iterations: u64) -> Result<u64, Error> {
    stream
        .set_nodelay(true)
        .map_err(Error::io(|| "set up a connection".to_owned()))?;
    let mut answered = 0;
    let mut message = Message::default();
    while stream.read_exact(&mut message).is_ok() {
        spin(iterations);
        if stream.write_all(&message).is_err() {
            break;
        }
        answered += 1;
    }
    Ok(answered)
}

/// The file that holds the port of the server. Dropping this removes the file.
struct PortFile<'a>(&'a Path);

impl<'a> PortFile<'a> {
    fn write(path: &'a Path, port: u16) -> Result<Self, Error> {
        fs::write(path, format!("{port}\n"))
            .map_err(Error::io(|| format!("write {}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for PortFile<'_> {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(self.0) {
            eprintln!(
                "concurve-targets: cannot remove {}: {error}",
                self.0.display()
            );
        }
    }
}

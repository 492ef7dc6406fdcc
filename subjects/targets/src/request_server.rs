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

use crate::error::{Error, While};
use crate::stop::{LIMIT_S_DEFAULT, Stop};
use crate::work::{OperationArgs, spin};
use crate::workers::{measure_beside, threads};

/// A request, and the answer to it.
pub type Message = [u8; 8];

/// Answer requests over loopback TCP until SIGTERM, each thread one connection at a time
///
/// An operation is a request, some work, and its answer. The phase measure lasts from being
/// ready to SIGTERM. The requests come from slow-client.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  concurve-targets request-server --threads 4 --operation-us 100 --port-file /tmp/port"
)]
pub struct RequestServer {
    /// Threads that serve
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    /// Where the number of the port is written before the server is ready; removed at the end
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
        let desk = Desk::open(self.threads)?;
        let _port_file = PortFile::write(&self.port_file, desk.port()?)?;
        reporter.ready()?;
        measure_beside(
            &reporter,
            self.threads,
            |index| desk.serve(index, iterations),
            || {
                stop.wait(Duration::from_secs(self.limit_s));
                desk.close();
            },
        )?;
        Ok(())
    }
}

/// The listener that the threads accept from, and the current connection of each thread.
struct Desk {
    listener: TcpListener,
    connections: Vec<Mutex<Option<TcpStream>>>,
    closed: AtomicBool,
}

impl Desk {
    fn open(threads: u32) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        Ok(Self {
            listener: listener.when(|| "listen on a loopback port".to_owned())?,
            connections: (0..threads).map(|_| Mutex::default()).collect(),
            closed: AtomicBool::new(false),
        })
    }

    fn port(&self) -> Result<u16, Error> {
        let address = self.listener.local_addr();
        Ok(address.when(|| "read the port".to_owned())?.port())
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
                Err(error) => return Err(error).when(|| "take a connection".to_owned()),
            };
            self.show(index, &stream)?;
            answered += answer(stream, iterations)?;
        }
        Ok(answered)
    }

    /// Registers a connection, so that `close` can end it.
    fn show(&self, index: u32, stream: &TcpStream) -> Result<(), Error> {
        let copy = stream.try_clone();
        let copy = copy.when(|| "copy a connection".to_owned())?;
        let mut connection = self.connections[index as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::SeqCst) {
            // `close` has run already.
            let _ = copy.shutdown(Shutdown::Both);
        }
        *connection = Some(copy);
        Ok(())
    }

    /// Ends all waits of the threads.
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
        .when(|| "set up a connection".to_owned())?;
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

/// The file that holds the server's port; removed at its end.
struct PortFile<'a>(&'a Path);

impl<'a> PortFile<'a> {
    fn write(path: &'a Path, port: u16) -> Result<Self, Error> {
        fs::write(path, format!("{port}\n")).when(|| format!("write {}", path.display()))?;
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

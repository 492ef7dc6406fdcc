//! A client that does not keep its server busy.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::request_server::Message;
use crate::work::{CHUNK, spin, thread_cpu};
use crate::workers::{measure, share, threads};

/// Send requests to request-server, one at a time, with a think time before each
///
/// The client limits the throughput, so more threads of the server do not help. An operation is
/// an answered request.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets slow-client --operations 500 --think-us 1000 --port-file /tmp/port
  concurve-targets slow-client --operations 500 --think-us 1000 --busy --port-file /tmp/port")]
pub struct SlowClient {
    /// Threads, each with a connection of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    /// Requests of the whole program, split evenly over its threads
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Think time: from a reply to the next request
    #[arg(long, value_name = "U", default_value_t = 1000)]
    think_us: u64,
    /// Compute for the think time (CPU time) instead of sleeping
    #[arg(long)]
    busy: bool,
    /// File in which the server has written its port
    #[arg(long, value_name = "FILE")]
    port_file: PathBuf,
}

impl SlowClient {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let port = self.port()?;
        measure(&reporter, self.threads, |index| {
            let mut stream = connect(port)?;
            let due = share(self.operations, self.threads, index);
            for number in 0..due {
                self.think();
                exchange(&mut stream, number)?;
            }
            Ok(due)
        })?;
        Ok(())
    }

    fn port(&self) -> Result<u16, Error> {
        let path = self.port_file.display();
        let text =
            concurve_files::read_named_text(&self.port_file, 64).map_err(Error::io(|| {
                format!("read {path} (is request-server ready?)")
            }))?;
        text.trim()
            .parse()
            .map_err(|_| Error::Usage(format!("{path} holds no port, but {text:?}")))
    }

    fn think(&self) {
        let time = Duration::from_micros(self.think_us);
        if !self.busy {
            return thread::sleep(time);
        }
        let end = thread_cpu() + time;
        while thread_cpu() < end {
            spin(CHUNK);
        }
    }
}

fn connect(port: u16) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let stream = stream.map_err(Error::io(|| {
        format!("connect to port {port} of this machine")
    }))?;
    stream
        .set_nodelay(true)
        .map_err(Error::io(|| "set up a connection".to_owned()))?;
    Ok(stream)
}

fn exchange(stream: &mut TcpStream, number: u64) -> Result<(), Error> {
    let mut answer = Message::default();
    let request = number.to_le_bytes();
    stream
        .write_all(&request)
        .and_then(|()| stream.read_exact(&mut answer))
        .map_err(Error::io(|| "exchange a request for its answer".to_owned()))?;
    match answer == request {
        true => Ok(()),
        false => Err(Error::Broken(
            "the reply of the server belongs to another request".to_owned(),
        )),
    }
}

//! Threads that pass a token to each other and do nothing else.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::{Condvar, Mutex, PoisonError};

use clap::{Args, ValueEnum};
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::workers::{measure, share, threads};

/// Pass a token round a ring of threads: one voluntary context switch per operation
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  concurve-targets switch --threads 2 --operations 20000 --through pipe"
)]
pub struct Switch {
    /// Threads of the ring; a single thread never waits
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = threads())]
    threads: u32,
    /// How often the token is passed on
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// By what the token is passed
    #[arg(long, value_enum, default_value_t = Through::Condvar)]
    through: Through,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Through {
    /// A mutex and a condition variable for each thread: futexes
    Condvar,
    /// A pipe for each thread
    Pipe,
}

/// The place at which a thread waits for the token.
trait Place: Sync {
    fn put(&self) -> Result<(), Error>;
    fn take(&self) -> Result<(), Error>;
}

impl Switch {
    pub fn run(&self) -> Result<(), Error> {
        match self.through {
            Through::Condvar => self.pass(|| Ok(CondvarPlace::default())),
            Through::Pipe => self.pass(PipePlace::open),
        }
    }

    fn pass<P: Place>(&self, place: impl Fn() -> Result<P, Error>) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let ring: Vec<P> = (0..self.threads)
            .map(|_| place())
            .collect::<Result<_, _>>()?;
        ring[0].put()?;
        measure(&reporter, self.threads, |index| {
            let index = index as usize;
            let due = share(self.operations, self.threads, index as u32);
            for _ in 0..due {
                ring[index].take()?;
                ring[(index + 1) % ring.len()].put()?;
            }
            Ok(due)
        })?;
        Ok(())
    }
}

#[derive(Default)]
struct CondvarPlace {
    token: Mutex<bool>,
    changed: Condvar,
}

impl Place for CondvarPlace {
    fn put(&self) -> Result<(), Error> {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
        Ok(())
    }

    fn take(&self) -> Result<(), Error> {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(token, |token| !*token);
        *waited.unwrap_or_else(PoisonError::into_inner) = false;
        Ok(())
    }
}

struct PipePlace {
    reader: File,
    writer: File,
}

impl PipePlace {
    fn open() -> Result<Self, Error> {
        let (reader, writer) =
            nix::unistd::pipe().map_err(Error::io(|| "open a pipe".to_owned()))?;
        Ok(Self {
            reader: reader.into(),
            writer: writer.into(),
        })
    }
}

impl Place for PipePlace {
    fn put(&self) -> Result<(), Error> {
        (&self.writer)
            .write_all(b"t")
            .map_err(Error::io(|| "write to a pipe".to_owned()))
    }

    fn take(&self) -> Result<(), Error> {
        (&self.reader)
            .read_exact(&mut [0])
            .map_err(Error::io(|| "read from a pipe".to_owned()))
    }
}

//! As many threads as the machine allows.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::limits;
use crate::mappings::Mappings;
use crate::work::spin_until_cpu;
use crate::workers;

/// Stack of a thread: small, so that a limit on threads is reached before the memory is full.
const STACK_BYTES: usize = 64 * 1024;

/// Start threads: many at once, up to a number or the machine's limit, or one after another
///
/// The program reports how many threads it started and which limit stopped it. It exits with 0 if
/// it started as many as requested, or if `max` was requested. At a limit of the whole machine,
/// other programs cannot start threads either: run it in a cgroup of its own (pids.max).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets thread-storm --threads 1000 --alive-ms 50
  concurve-targets thread-storm --threads max
  concurve-targets thread-storm --churn 5000 --cpu-us 20")]
pub struct ThreadStorm {
    #[command(flatten)]
    shape: Shape,
    /// With --threads: how long all threads stay alive
    #[arg(long, value_name = "M", default_value_t = 0, conflicts_with = "churn")]
    alive_ms: u64,
    /// With --churn: CPU time of each thread
    #[arg(
        long,
        value_name = "M",
        default_value_t = 0,
        conflicts_with = "threads"
    )]
    cpu_us: u64,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Shape {
    /// Threads alive at once: a number, or `max` for as many as the machine allows
    #[arg(long, value_name = "N|max")]
    threads: Option<Wanted>,
    /// Start this many threads one after another; each ends before the next starts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    churn: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wanted {
    Number(usize),
    Max,
}

impl std::str::FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "max" => Ok(Wanted::Max),
            Ok(number) if number > 0 => Ok(Wanted::Number(number)),
            _ => Err("must be a number above 0, or max".to_owned()),
        }
    }
}

impl ThreadStorm {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        match (self.shape.threads, self.shape.churn) {
            (Some(wanted), _) => self.storm(&reporter, wanted),
            (None, churn) => self.churn(&reporter, churn.unwrap_or(0)),
        }
    }

    fn churn(&self, reporter: &Reporter, threads: u64) -> Result<(), Error> {
        let cpu = Duration::from_micros(self.cpu_us);
        let begin_ns = reporter.begin("measure")?;
        for number in 1..=threads {
            let thread = thread::Builder::new()
                .stack_size(STACK_BYTES)
                .name(format!("churn-{number}"))
                .spawn(move || spin_until_cpu(cpu))
                .map_err(Error::io(|| format!("start thread {number} of {threads}")))?;
            thread
                .join()
                .map_err(|_| Error::Broken(format!("thread {number} panicked")))?;
        }
        let end_ns = reporter.end("measure")?;
        workers::report(reporter, &[threads], end_ns - begin_ns)?;
        Ok(())
    }

    fn storm(&self, reporter: &Reporter, wanted: Wanted) -> Result<(), Error> {
        let begin_ns = reporter.begin("measure")?;
        let storm = Storm::raise(wanted)?;
        let reached = storm.threads.len();
        // The limits must be read while the threads are alive, because they are reached only then.
        let cause = storm.stopped_by.as_ref().map(StoppedBy::explain);
        thread::sleep(Duration::from_millis(self.alive_ms));
        storm.lay()?;
        let end_ns = reporter.end("measure")?;

        reporter.indicator("threads_reached", reached as f64, None)?;
        workers::report(reporter, &[reached as u64], end_ns - begin_ns)?;
        let _ = writeln!(io::stdout(), "threads_reached {reached}");
        let Some(cause) = cause else { return Ok(()) };
        reporter.fact("threads_limited_by", cause.as_str())?;
        let _ = writeln!(io::stdout(), "threads_limited_by {cause}");
        match wanted {
            Wanted::Max => Ok(()),
            Wanted::Number(number) => Err(Error::Broken(format!(
                "reached {reached} of {number} threads, limited by {cause}; raise that, or ask for max"
            ))),
        }
    }
}

/// Parked threads.
struct Storm {
    threads: Vec<JoinHandle<()>>,
    stopped_by: Option<StoppedBy>,
}

enum StoppedBy {
    Spawn(io::Error),
    /// `max_map_count` is nearly reached: a thread that cannot map its signal stack would abort the
    /// program.
    Mappings(Mappings),
}

/// Wakes the parked threads.
static LAID: AtomicBool = AtomicBool::new(false);

impl Storm {
    fn raise(wanted: Wanted) -> Result<Self, Error> {
        let number = match wanted {
            Wanted::Number(number) => number,
            Wanted::Max => usize::MAX,
        };
        let mut mappings = Mappings::read()?;
        let mut storm = Storm {
            threads: Vec::new(),
            stopped_by: None,
        };
        while storm.threads.len() < number {
            if !mappings.have_room_for(storm.threads.len())? {
                storm.stopped_by = Some(StoppedBy::Mappings(mappings));
                break;
            }
            match thread::Builder::new()
                .stack_size(STACK_BYTES)
                .name(format!("storm-{}", storm.threads.len()))
                .spawn(park_until_laid)
            {
                Ok(thread) => storm.threads.push(thread),
                Err(error) => {
                    storm.stopped_by = Some(StoppedBy::Spawn(error));
                    break;
                }
            }
        }
        Ok(storm)
    }

    fn lay(self) -> Result<(), Error> {
        LAID.store(true, Ordering::Release);
        self.threads
            .iter()
            .map(JoinHandle::thread)
            .for_each(Thread::unpark);
        for thread in self.threads {
            let ended = thread.join();
            ended.map_err(|_| Error::Broken("a thread of the storm panicked".to_owned()))?;
        }
        Ok(())
    }
}

impl StoppedBy {
    fn explain(&self) -> String {
        match self {
            StoppedBy::Spawn(error) => limits::explain(error),
            StoppedBy::Mappings(mappings) => mappings.to_string(),
        }
    }
}

fn park_until_laid() {
    while !LAID.load(Ordering::Acquire) {
        thread::park();
    }
}

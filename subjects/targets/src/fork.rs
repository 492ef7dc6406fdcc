//! Short-lived child processes.

use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, io};

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::work::spin_until_cpu;
use crate::workers;

/// Start N child processes that end at once or after M ms of CPU time
///
/// Each child is this program again. The process count is N + 1, with --orphans 2 N + 1: each
/// child then starts a daemon (a session of its own, no output) and leaves it behind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets fork --children 200
  concurve-targets fork --children 4 --cpu-ms 50 --orphans")]
pub struct Fork {
    /// Number of child processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    children: u32,
    /// CPU time of each child, including its start
    #[arg(long, value_name = "M", default_value_t = 0)]
    cpu_ms: u64,
    /// Let a daemon of each child do the work, and do not wait for the daemons
    #[arg(long)]
    orphans: bool,
    /// Number of children that run at the same time
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    parallel: u32,
}

/// One of the children; only for internal use.
#[derive(Debug, Args)]
pub struct ForkChild {
    #[arg(long, default_value_t = 0)]
    cpu_ms: u64,
    /// Start a daemon that does the work, and exit
    #[arg(long)]
    leave_orphan: bool,
    /// Run as that daemon
    #[arg(long)]
    daemon: bool,
}

impl Fork {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let begin_ns = reporter.begin("measure")?;
        let mut living: Vec<Child> = Vec::new();
        for number in 1..=self.children {
            if living.len() == self.parallel as usize {
                wait_for(living.remove(0))?;
            }
            let child = self.start_child();
            living.push(child.map_err(Error::io(|| {
                format!("start child {number} of {}", self.children)
            }))?);
        }
        living.into_iter().try_for_each(wait_for)?;
        let end_ns = reporter.end("measure")?;
        workers::report(&reporter, &[u64::from(self.children)], end_ns - begin_ns)?;
        Ok(())
    }

    fn start_child(&self) -> io::Result<Child> {
        let mut command = this_program(self.cpu_ms)?;
        if self.orphans {
            command.arg("--leave-orphan");
        }
        command.spawn()
    }
}

impl ForkChild {
    pub fn run(&self) -> Result<(), Error> {
        if self.leave_orphan {
            let daemon = this_program(self.cpu_ms).and_then(|mut command| {
                let silent = command.arg("--daemon").stdin(Stdio::null());
                silent.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
            });
            // Not waited for: this process ends now, which makes the daemon an orphan.
            daemon.map_err(Error::io(|| "start the daemon".to_owned()))?;
            return Ok(());
        }
        if self.daemon {
            nix::unistd::setsid().map_err(Error::io(|| "begin a session".to_owned()))?;
        }
        if self.cpu_ms > 0 {
            spin_until_cpu(Duration::from_millis(self.cpu_ms));
        }
        Ok(())
    }
}

fn this_program(cpu_ms: u64) -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("fork-child").arg(format!("--cpu-ms={cpu_ms}"));
    Ok(command)
}

fn wait_for(mut child: Child) -> Result<(), Error> {
    let status = child
        .wait()
        .map_err(Error::io(|| "wait for a child".to_owned()))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::Broken(format!(
            "child {} failed: {status}",
            child.id()
        ))),
    }
}

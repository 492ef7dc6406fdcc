//! Programs that end badly.

use std::process;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use clap::Args;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, raise};

use crate::error::Error;

/// End by a signal, with an exit code, or by a panic
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets crash --signal SEGV --after-ms 20
  concurve-targets crash --exit-code 3
  concurve-targets crash --panic                       exit code 101")]
pub struct Crash {
    #[command(flatten)]
    way: Way,
    /// Sleep for this time first
    #[arg(long, value_name = "M", default_value_t = 0)]
    after_ms: u64,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Way {
    /// Signal that kills this process, by number or name (no core file is written)
    #[arg(long, value_name = "N", value_parser = fatal_signal)]
    signal: Option<Signal>,
    /// Exit code
    #[arg(long, value_name = "N")]
    exit_code: Option<u8>,
    /// Panic in the first thread
    #[arg(long)]
    panic: bool,
}

impl Crash {
    pub fn run(&self) -> Result<(), Error> {
        thread::sleep(Duration::from_millis(self.after_ms));
        if let Some(code) = self.way.exit_code {
            process::exit(i32::from(code));
        }
        if let Some(signal) = self.way.signal {
            return die_by(signal);
        }
        panic!("requested by --panic");
    }
}

fn die_by(signal: Signal) -> Result<(), Error> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(Error::io(|| "forbid core files".to_owned()))?;
    // At the first SIGSEGV or SIGBUS, the handler of Rust's runtime restores the default action.
    for _ in 0..2 {
        raise(signal).map_err(Error::io(|| format!("raise {signal}")))?;
    }
    Err(Error::Broken(format!(
        "survived {signal}: it is ignored or blocked, inherited from the parent"
    )))
}

/// Parses a signal that ends a process: `11`, `SEGV` or `SIGSEGV`.
fn fatal_signal(text: &str) -> Result<Signal, String> {
    use Signal::*;
    let signal = match text.parse::<i32>() {
        Ok(number) => Signal::try_from(number),
        Err(_) => Signal::from_str(text).or_else(|_| Signal::from_str(&format!("SIG{text}"))),
    };
    match signal.map_err(|_| "must be a signal such as 9, KILL or SIGKILL".to_owned())? {
        SIGPIPE => Err("Rust programs ignore SIGPIPE".to_owned()),
        harmless @ (SIGCHLD | SIGCONT | SIGURG | SIGWINCH | SIGSTOP | SIGTSTP | SIGTTIN
        | SIGTTOU) => Err(format!("{harmless} does not end a process")),
        fatal => Ok(fatal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_in_three_ways() {
        for text in ["11", "SEGV", "SIGSEGV"] {
            assert_eq!(fatal_signal(text), Ok(Signal::SIGSEGV));
        }
        for bad in ["0", "99", "NOPE", "STOP", "17", "PIPE", ""] {
            assert!(fatal_signal(bad).is_err(), "{bad}");
        }
    }
}

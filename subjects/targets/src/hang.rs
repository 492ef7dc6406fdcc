//! Programs that do not end.

use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::setsid;

use crate::error::Error;
use crate::stop::LIMIT_S_DEFAULT;

/// Do nothing, for at most --limit-s, with children that do the same
///
/// A child survives the end of its parent: only SIGKILL or the limit ends it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  concurve-targets hang --ignore-term --children 3 --limit-s 60")]
pub struct Hang {
    /// Block SIGTERM, in the children too
    #[arg(long)]
    ignore_term: bool,
    /// Number of children that hang as well
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    children: u32,
    /// Give each child a session of its own: killing the process group does not reach it
    #[arg(long)]
    own_sessions: bool,
    /// End after this time at the latest, with exit code 0
    #[arg(long, value_name = "S", default_value_t = LIMIT_S_DEFAULT)]
    limit_s: u64,
    /// Begin a session of its own: passed to the children by --own-sessions
    #[arg(long, hide = true)]
    lead_session: bool,
}

impl Hang {
    pub fn run(&self) -> Result<(), Error> {
        if self.lead_session {
            setsid().map_err(Error::io(|| "begin a session".to_owned()))?;
        }
        if self.ignore_term {
            let mut set = SigSet::empty();
            set.add(Signal::SIGTERM);
            set.thread_block()
                .map_err(Error::io(|| "block SIGTERM".to_owned()))?;
        }
        for number in 1..=self.children {
            self.start_child().map_err(Error::io(|| {
                format!("start child {number} of {}", self.children)
            }))?;
        }
        Reporter::from_environment()?.ready()?;
        thread::sleep(Duration::from_secs(self.limit_s));
        Ok(())
    }

    fn start_child(&self) -> std::io::Result<()> {
        let mut command = Command::new(env::current_exe()?);
        command
            .arg("hang")
            .arg(format!("--limit-s={}", self.limit_s));
        if self.ignore_term {
            command.arg("--ignore-term");
        }
        if self.own_sessions {
            command.arg("--lead-session");
        }
        command.env_remove(concurve_reporter::REPORT_VARIABLE);
        command.spawn().map(drop)
    }
}

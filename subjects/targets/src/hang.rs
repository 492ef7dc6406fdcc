//! Programs that do not end.

use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::setsid;

use crate::error::{Error, While};
use crate::stop::LIMIT_S_DEFAULT;

/// Do nothing, for ever (at most --limit-s), with children that do the same
///
/// Neither the parent's end nor that of its own parent ends a child: only being killed does.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  concurve-targets hang --ignore-term --children 3 --limit-s 60")]
pub struct Hang {
    /// Do not end at SIGTERM (blocked), the children neither
    #[arg(long)]
    ignore_term: bool,
    /// Children that hang beside this process
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    children: u32,
    /// Give each child a session of its own: killing the process group does not reach it
    #[arg(long)]
    own_sessions: bool,
    /// End after this time after all, with exit code 0
    #[arg(long, value_name = "S", default_value_t = LIMIT_S_DEFAULT)]
    limit_s: u64,
    /// Begin a session; what --own-sessions tells the children
    #[arg(long, hide = true)]
    lead_session: bool,
}

impl Hang {
    pub fn run(&self) -> Result<(), Error> {
        if self.lead_session {
            setsid().when(|| "begin a session".to_owned())?;
        }
        if self.ignore_term {
            let mut set = SigSet::empty();
            set.add(Signal::SIGTERM);
            set.thread_block().when(|| "block SIGTERM".to_owned())?;
        }
        for number in 1..=self.children {
            self.start_child()
                .when(|| format!("start child {number} of {}", self.children))?;
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

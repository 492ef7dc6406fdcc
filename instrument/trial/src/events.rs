//! Edges of phases, told to whoever started the runner while the trial runs: the record has them at
//! its end only, and roles on other hosts are read at the same edges.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use concurve_reporter::line::PhaseLine;
use serde::Serialize;

/// Where they are written; nowhere if nobody asked.
#[derive(Debug, Default)]
pub struct Events(Option<File>);

#[derive(Serialize)]
struct Marked<'a> {
    role: &'a str,
    #[serde(flatten)]
    line: &'a PhaseLine,
}

impl Events {
    /// Opens the descriptor of this number, which a pipe has. No role inherits what is opened here.
    pub fn open(descriptor: u32) -> io::Result<Self> {
        let path = format!("/proc/self/fd/{descriptor}");
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        Ok(Self(Some(file)))
    }

    /// Tells an edge that a role has marked. A reader that is gone, or that does not keep up, does not
    /// hold a trial up: it misses the edge.
    pub fn tell(&mut self, role: &str, line: &PhaseLine, now: u64) {
        let Some(file) = &mut self.0 else {
            return;
        };
        let line = &PhaseLine {
            at_ns: line.at_ns.or(Some(now)),
            ..line.clone()
        };
        if let Ok(mut text) = serde_json::to_string(&Marked { role, line }) {
            text.push('\n');
            let _ = file.write_all(text.as_bytes());
        }
    }
}

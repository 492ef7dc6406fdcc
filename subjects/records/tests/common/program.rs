//! This test program, started once more as a service of engines, and what it says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// After which something hangs, on however busy a machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Says which service it is to be.
pub const SERVICE: &str = "CONCURVE_RECORDS_TEST_SERVICE";
pub const FOLDER: &str = "CONCURVE_RECORDS_TEST_FOLDER";

pub struct Program {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Program {
    /// Starts it, and waits until its engines run.
    pub fn start(service: &str, folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(SERVICE, service)
            .env(FOLDER, folder)
            .env("RUST_BACKTRACE", "0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = channel();
        thread::spawn(move || {
            let lines = stderr.lines().map_while(Result::ok);
            lines.for_each(|line| drop(send.send(line)));
        });
        let mut program = Self {
            child,
            lines,
            said: Vec::new(),
        };
        program.wait_for(&["ready"]);
        program
    }

    /// Waits for a line that begins in one of these ways.
    pub fn wait_for(&mut self, beginnings: &[&str]) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("{beginnings:?}: {error} in {self:?}"));
            self.said.push(line.clone());
            if beginnings.iter().any(|it| line.starts_with(it)) {
                return line;
            }
        }
    }

    /// Waits until something holds.
    pub fn wait_until(&self, holds: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < end, "it does not go on: {self:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills the engine that a number chooses, if there are some at this moment, and waits until it is
    /// replaced or all are started anew.
    pub fn kill_one(&mut self, choice: usize) -> bool {
        let generation = children(Pid::from_raw(self.child.id() as i32));
        let engines = generation
            .first()
            .map(|it| children(*it))
            .unwrap_or_default();
        let Some(engine) = engines.get(choice % engines.len().max(1)) else {
            return false;
        };
        let killed = self.kill_process(engine.as_raw());
        if killed {
            self.wait_for(&["replaced", "lost"]);
        }
        killed
    }

    /// Kills a process; false if it is gone already.
    pub fn kill_process(&self, pid: i32) -> bool {
        kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok()
    }

    /// Asks it to end, and waits until it has; all that it said.
    pub fn end(mut self) -> Vec<String> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end: {self:?}");
            thread::sleep(Duration::from_millis(5));
        };
        // Standard error ends with the last of its processes.
        self.said.extend(self.lines.iter());
        assert!(status.success(), "{status}: {self:?}");
        std::mem::take(&mut self.said)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.debug_list().entries(&self.said).finish()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Children of a process that have not ended.
fn children(of: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| -> Option<bool> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?.parse::<i32>().ok()?);
        Some(state != "Z" && parent == of.as_raw())
    };
    let found = numbers.filter(|pid| is_child(pid) == Some(true));
    found.map(Pid::from_raw).collect()
}

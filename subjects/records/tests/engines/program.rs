//! Starts this test program again as a service of engines, and reads its output.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A test that takes longer hangs, on however busy a machine.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// The environment variable with the service to run.
pub const SERVICE: &str = "CONCURVE_RECORDS_TEST_SERVICE";
pub const FOLDER: &str = "CONCURVE_RECORDS_TEST_FOLDER";

pub struct Program {
    child: Child,
    lines: Receiver<String>,
    output: Vec<String>,
}

impl Program {
    /// Starts the program, and waits until its engines run.
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
            output: Vec::new(),
        };
        program.wait_for(&["ready"]);
        program
    }

    /// Waits for a line with one of these beginnings.
    pub fn wait_for(&mut self, beginnings: &[&str]) -> String {
        let end = Instant::now() + TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("{beginnings:?}: {error} in {self:?}"));
            self.output.push(line.clone());
            if beginnings.iter().any(|it| line.starts_with(it)) {
                return line;
            }
        }
    }

    /// Waits until a condition holds.
    pub fn wait_until(&self, holds: impl Fn() -> bool) {
        let end = Instant::now() + TIMEOUT;
        while !holds() {
            assert!(Instant::now() < end, "it does not continue: {self:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills the engine with an index, if there are any now, and waits until it is replaced or all
    /// are started anew.
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

    /// Kills a process; false if it has ended already.
    pub fn kill_process(&self, pid: i32) -> bool {
        kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok()
    }

    /// Requests its end, and waits for it; its output.
    pub fn end(mut self) -> Vec<String> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        let end = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end: {self:?}");
            thread::sleep(Duration::from_millis(5));
        };
        // Standard error ends when the last of its processes does.
        self.output.extend(self.lines.iter());
        assert!(status.success(), "{status}: {self:?}");
        std::mem::take(&mut self.output)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.debug_list().entries(&self.output).finish()
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

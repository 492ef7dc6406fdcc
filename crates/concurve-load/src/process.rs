//! Sessions as processes: this program again, once for each, held together by pipes.
//!
//! A child connects, writes `ready`, waits for `begin NS` and at its end writes what it counted.
//! CLOCK_MONOTONIC is one for all processes of the machine.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::error::Error;
use crate::event_loop;
use crate::gate::Gate;
use crate::plan::Plan;
use crate::tally::{Tally, TallyText};

/// The children, connected and waiting.
pub struct Processes {
    children: Vec<Child>,
}

impl Processes {
    /// Starts a child for each session and waits until all are connected.
    pub fn start(plan: &Plan) -> Result<Self, Error> {
        let mut processes = Self {
            children: Vec::new(),
        };
        let own = std::env::current_exe().map_err(|error| Error::Process(0, error))?;
        for number in 0..plan.crews() {
            let child = Command::new(&own)
                .args(std::env::args_os().skip(1))
                .args(["--part", &number.to_string()])
                .env_remove(concurve_wire::REPORT_VARIABLE)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| Error::Process(number, error))?;
            processes.children.push(child);
        }
        for number in 0..processes.children.len() {
            let mut line = [0; 6];
            let stdout = processes.children[number].stdout.as_mut();
            let read = stdout
                .ok_or(io::ErrorKind::BrokenPipe)
                .map(|it| it.read_exact(&mut line));
            if !matches!(read, Ok(Ok(()))) || &line != b"ready\n" {
                return Err(Error::Part(number as u64));
            }
        }
        Ok(processes)
    }

    /// Lets the children go.
    pub fn open(&mut self, begin_ns: u64) -> Result<(), Error> {
        for (number, child) in self.children.iter_mut().enumerate() {
            let mut stdin = child.stdin.take().ok_or(Error::Part(number as u64))?;
            writeln!(stdin, "begin {begin_ns}").map_err(|_| Error::Part(number as u64))?;
        }
        Ok(())
    }

    /// What each child counted, when all have ended.
    pub fn collect(mut self) -> Result<Vec<Tally>, Error> {
        let readers: Vec<_> = self
            .children
            .iter_mut()
            .map(|child| child.stdout.take())
            .map(|stdout| thread::spawn(move || read_whole(stdout)))
            .collect();
        let texts: Vec<_> = readers.into_iter().map(|it| it.join()).collect();
        let mut tallies = Vec::new();
        for (number, text) in texts.into_iter().enumerate() {
            let status = self.children[number].wait();
            let text = text.ok().filter(|_| status.is_ok_and(|it| it.success()));
            let tally = text.and_then(|text| TallyText::parse(&text));
            tallies.push(tally.ok_or(Error::Part(number as u64))?);
        }
        self.children.clear();
        Ok(tallies)
    }
}

impl Drop for Processes {
    /// Children that still wait end when their pipe closes; they are buried in any case.
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.stdin.take());
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn read_whole(stdout: Option<impl Read>) -> String {
    let mut text = String::new();
    if let Some(mut stdout) = stdout {
        // What is not whole does not parse.
        let _ = stdout.read_to_string(&mut text);
    }
    text
}

/// The life of a child.
pub fn child(plan: &Plan, number: u64) -> Result<(), Error> {
    let gate = Gate::default();
    let tally = thread::scope(|scope| {
        let client = scope.spawn(|| event_loop::run(plan, number, &gate));
        if gate.all_ready(1) {
            println!("ready");
            match begin() {
                Some(begin_ns) => gate.open(begin_ns),
                None => gate.fail(),
            }
        }
        client
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    print!("{}", TallyText::of(&tally));
    Ok(())
}

/// The time to begin, from the parent; none if it is gone.
fn begin() -> Option<u64> {
    let mut line = String::new();
    BufReader::new(io::stdin()).read_line(&mut line).ok()?;
    line.trim().strip_prefix("begin ")?.parse().ok()
}

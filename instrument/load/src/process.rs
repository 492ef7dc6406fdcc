//! A session as a process: this program again, held by its pipes.
//!
//! A child reads its tasks from standard input, a line each, and writes what it says to standard
//! output, a line each; the end of its input ends it. CLOCK_MONOTONIC is one for all processes of
//! the machine.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::crew::Said;
use crate::error::Error;
use crate::plan::Plan;
use crate::reach::Reached;
use crate::stop::Stop;
use crate::task::Task;

/// A child, from the parent's side.
pub struct Process {
    child: Child,
    tasks: Option<ChildStdin>,
}

impl Process {
    /// Starts a child; what it says goes to `say`.
    pub fn start(number: u64, say: Sender<(usize, Said)>) -> Result<Self, Error> {
        let failed = |error| Error::Process(number, error);
        let own = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(own)
            .args(std::env::args_os().skip(1))
            .args(["--part", &number.to_string()])
            .env_remove(concurve_reporter::REPORT_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (tasks, stdout) = (child.stdin.take(), child.stdout.take());
        let process = Self { child, tasks };
        thread::Builder::new()
            .name(format!("listener-{number}"))
            .spawn(move || listen(number, stdout, &say))
            .map_err(failed)?;
        Ok(process)
    }

    /// Gives the child a task; `false` if it is gone.
    pub fn send(&mut self, task: &Task) -> bool {
        let text = serde_json::to_string(task).expect("numbers are JSON");
        let tasks = self.tasks.as_mut();
        tasks.is_some_and(|it| writeln!(it, "{text}").is_ok())
    }

    /// Lets the child end.
    pub fn dismiss(&mut self) {
        self.tasks = None;
    }
}

impl Drop for Process {
    /// A child ends when its pipe closes; one that does not is ended.
    fn drop(&mut self) {
        self.dismiss();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on what a child says; that it says no more when nothing is left to say.
fn listen(number: u64, stdout: Option<ChildStdout>, say: &Sender<(usize, Said)>) {
    let lines = stdout.map(|it| BufReader::new(it).lines());
    for line in lines.into_iter().flatten().map_while(Result::ok) {
        let said = serde_json::from_str(&line).unwrap_or(Said::Failed(Error::Part(number)));
        if say.send((number as usize, said)).is_err() {
            return;
        }
    }
    // After the last task nobody listens.
    let _ = say.send((number as usize, Said::Failed(Error::Part(number))));
}

/// The life of a child.
pub fn child(plan: &Arc<Plan>, number: u64, stop: &Stop) -> Result<(), Error> {
    let (give, tasks) = channel();
    let reading = stop.clone();
    thread::Builder::new()
        .name("tasks".to_owned())
        .spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                match serde_json::from_str::<Task>(&line) {
                    Ok(task) if give.send(task).is_ok() => {}
                    _ => break,
                }
            }
            reading.now();
        })
        .map_err(|error| Error::Process(number, error))?;
    let reached = Reached::open(plan)?;
    reached.serve(plan, number, stop, &tasks, &mut |said| {
        let text = serde_json::to_string(&said).expect("counts and names are JSON");
        // Nobody reads it any more when the parent is gone: then the input has ended too.
        let _ = writeln!(io::stdout(), "{text}");
    })?;
    reached.close()
}

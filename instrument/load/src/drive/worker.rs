//! A worker runs sessions: it is a thread, or a process with one session.
//!
//! A worker process is this program again. It reads its tasks from standard input, a line each, and
//! writes its messages to standard output, a line each; it ends at the end of its input. All processes
//! of a machine share CLOCK_MONOTONIC.

use std::io::{self, BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use nix::sys::prctl;

use super::recorder::WorkerMessage;
use super::{engine_client, event_loop};
use crate::engine::OpenEngine;
use crate::error::Error;
use crate::plan::{Plan, Runners, ServerTarget, Target, Task};
use crate::stop::Stop;

/// How late the kernel may wake a thread that sleeps until a transaction is due; without this, 50 µs.
const TIMER_SLACK_NS: u64 = 1;

/// What the client threads of a process share: a server to connect to, or an engine that is open.
#[derive(Debug, Clone)]
pub enum OpenTarget {
    Server(ServerTarget),
    Engine(Arc<dyn OpenEngine>),
}

impl OpenTarget {
    /// Opens an engine; each session connects to a server itself.
    pub fn open(plan: &Plan) -> Result<Self, Error> {
        Ok(match &plan.target {
            Target::Server(server) => Self::Server(server.clone()),
            Target::Engine(engine) => Self::Engine(engine.open()?),
        })
    }

    /// Runs the sessions of a worker, on this thread, until there are no more tasks.
    fn run_sessions(
        &self,
        plan: &Plan,
        worker: u64,
        stop: &Stop,
        tasks: &Receiver<Task>,
        send: &mut dyn FnMut(WorkerMessage),
    ) -> Result<(), Error> {
        // Where the kernel refuses, transactions begin later by what it adds, and `lag` says so.
        let _ = prctl::set_timerslack(TIMER_SLACK_NS);
        match self {
            Self::Server(server) => event_loop::run(plan, server, worker, stop, tasks, send),
            Self::Engine(engine) => Ok(engine_client::run(
                plan, &**engine, worker, stop, tasks, send,
            )?),
        }
    }

    /// Closes an engine, after all threads have ended.
    pub fn close(&self) -> Result<(), Error> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Engine(engine) => Ok(engine.close()?),
        }
    }
}

/// A worker, as the main thread sees it.
pub enum Worker {
    Thread {
        tasks: Sender<Task>,
        handle: JoinHandle<()>,
    },
    Process(WorkerProcess),
}

impl Worker {
    /// Starts the worker with this number; its messages go to `messages`.
    pub fn start(
        plan: &Arc<Plan>,
        number: u64,
        stop: &Stop,
        target: &OpenTarget,
        messages: Sender<(usize, WorkerMessage)>,
    ) -> Result<Self, Error> {
        match plan.runners {
            Runners::Threads(_) => start_thread(plan, number, stop, target, messages),
            Runners::Processes => Ok(Self::Process(WorkerProcess::start(plan, number, messages)?)),
        }
    }

    /// Gives it a task; `false` if it has ended.
    pub fn give(&mut self, task: &Task) -> bool {
        match self {
            Self::Thread { tasks, .. } => tasks.send(*task).is_ok(),
            Self::Process(process) => process.give(task),
        }
    }

    /// Asks a process to end; a thread sees [`Stop`] itself.
    pub fn dismiss(&mut self) {
        if let Self::Process(process) = self {
            process.tasks = None;
        }
    }

    /// Ends a thread, and waits for it.
    pub fn end(self) {
        if let Self::Thread { tasks, handle } = self {
            drop(tasks);
            // A thread that panicked has sent its error.
            let _ = handle.join();
        }
    }
}

fn start_thread(
    plan: &Arc<Plan>,
    number: u64,
    stop: &Stop,
    target: &OpenTarget,
    messages: Sender<(usize, WorkerMessage)>,
) -> Result<Worker, Error> {
    let (sender, tasks) = channel();
    let (plan, stop, target) = (plan.clone(), stop.clone(), target.clone());
    let handle = thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || {
            // The main thread may have ended already.
            let mut send = |message| drop(messages.send((number as usize, message)));
            let run = || target.run_sessions(&plan, number, &stop, &tasks, &mut send);
            let error = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => Error::ThreadFailed,
            };
            send(WorkerMessage::Failed(error));
            stop.now();
        })
        .map_err(|error| Error::Thread(number, error))?;
    Ok(Worker::Thread {
        tasks: sender,
        handle,
    })
}

/// A child process.
pub struct WorkerProcess {
    child: Child,
    /// `None` once the child has been asked to end.
    tasks: Option<ChildStdin>,
}

impl WorkerProcess {
    fn start(
        plan: &Plan,
        number: u64,
        messages: Sender<(usize, WorkerMessage)>,
    ) -> Result<Self, Error> {
        let failed = |error| Error::Process(number, error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .args([
                "--part",
                &number.to_string(),
                "--seed",
                &plan.seed.to_string(),
                "--first-session",
                &plan.first_session.to_string(),
                "--run-id",
                &plan.run_id,
            ])
            .env_remove(concurve_reporter::REPORT_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (tasks, stdout) = (child.stdin.take(), child.stdout.take());
        let process = Self { child, tasks };
        thread::Builder::new()
            .name(format!("listener-{number}"))
            .spawn(move || pass_on(number, stdout, &messages))
            .map_err(failed)?;
        Ok(process)
    }

    fn give(&mut self, task: &Task) -> bool {
        let text = serde_json::to_string(task).expect("numbers are JSON");
        let tasks = self.tasks.as_mut();
        tasks.is_some_and(|it| writeln!(it, "{text}").is_ok())
    }
}

impl Drop for WorkerProcess {
    /// A child ends when its input is closed; one that does not is killed.
    fn drop(&mut self) {
        self.tasks = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on the messages of a child, and a failure at the end of its output.
fn pass_on(number: u64, stdout: Option<ChildStdout>, messages: &Sender<(usize, WorkerMessage)>) {
    let lines = stdout.map(|it| BufReader::new(it).lines());
    let failed = || WorkerMessage::Failed(Error::ProcessFailed(number));
    for line in lines.into_iter().flatten().map_while(Result::ok) {
        let message = serde_json::from_str(&line).unwrap_or_else(|_| failed());
        if messages.send((number as usize, message)).is_err() {
            return;
        }
    }
    // After the last task the receiver is gone.
    let _ = messages.send((number as usize, failed()));
}

/// Runs a worker process, in the child.
pub fn run_child(plan: &Arc<Plan>, number: u64, stop: &Stop) -> Result<(), Error> {
    let (sender, tasks) = channel();
    let stop_at_end = stop.clone();
    thread::Builder::new()
        .name("tasks".to_owned())
        .spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                match serde_json::from_str::<Task>(&line) {
                    Ok(task) if sender.send(task).is_ok() => {}
                    _ => break,
                }
            }
            stop_at_end.now();
        })
        .map_err(|error| Error::Process(number, error))?;
    let target = OpenTarget::open(plan)?;
    target.run_sessions(plan, number, stop, &tasks, &mut |message| {
        let text = serde_json::to_string(&message).expect("counts and names are JSON");
        // If the parent has ended, the input has ended too.
        let _ = writeln!(io::stdout(), "{text}");
    })?;
    target.close()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use clap::Parser;

    use super::*;
    use crate::command_line::Arguments;
    use crate::engine::{EngineError, EngineSession};

    /// Notes how late the kernel may wake the thread of a session.
    #[derive(Debug, Default)]
    struct NotesSlack(Mutex<Option<i32>>);

    impl OpenEngine for NotesSlack {
        fn session(
            &self,
            _: u64,
            _: &mut dyn FnMut(&mut dyn EngineSession),
        ) -> Result<(), EngineError> {
            *self.0.lock().unwrap() = prctl::get_timerslack().ok();
            Ok(())
        }
    }

    #[test]
    fn a_session_of_an_engine_sleeps_as_exactly_as_one_of_a_server() {
        let called = ["concurve-load", "redis://127.0.0.1:1", "--workload", "ping"];
        let plan = Arguments::parse_from(called).plan().unwrap();
        let engine = Arc::new(NotesSlack::default());
        let target = OpenTarget::Engine(engine.clone());
        // On a thread of its own, as in a run: the setting stays with the thread.
        let session = move || {
            let (stop, tasks) = (Stop::new().unwrap(), channel().1);
            let send = &mut |_: WorkerMessage| {};
            target.run_sessions(&plan, 0, &stop, &tasks, send).unwrap();
        };
        thread::spawn(session).join().unwrap();
        assert_eq!(*engine.0.lock().unwrap(), Some(TIMER_SLACK_NS as i32));
    }
}

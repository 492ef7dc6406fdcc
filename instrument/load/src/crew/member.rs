//! One that runs sessions: a thread, or a process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use super::Said;
use crate::error::Error;
use crate::plan::{Plan, Runners};
use crate::process::Process;
use crate::reach::Reached;
use crate::stop::Stop;
use crate::task::Task;

/// A thread or a process that was started.
pub enum Member {
    Thread {
        tasks: Sender<Task>,
        life: JoinHandle<()>,
    },
    Process(Process),
}

impl Member {
    /// Starts the one of this number, which says what it has to say to `say`.
    pub fn start(
        plan: &Arc<Plan>,
        number: u64,
        stop: &Stop,
        reached: &Reached,
        say: Sender<(usize, Said)>,
    ) -> Result<Self, Error> {
        match plan.runners {
            Runners::Threads(_) => start_thread(plan, number, stop, reached, say),
            Runners::Processes => Ok(Self::Process(Process::start(number, say)?)),
        }
    }

    /// Gives it a task, if it still takes any.
    pub fn give(&mut self, task: &Task) -> bool {
        match self {
            Self::Thread { tasks, .. } => tasks.send(*task).is_ok(),
            Self::Process(process) => process.send(task),
        }
    }

    /// A process learns by the end of its input that it is to stop.
    pub fn dismiss(&mut self) {
        if let Self::Process(process) = self {
            process.dismiss();
        }
    }

    /// Lets a thread end, and waits for it.
    pub fn end(self) {
        if let Self::Thread { tasks, life } = self {
            drop(tasks);
            // One that failed has said so.
            let _ = life.join();
        }
    }
}

fn start_thread(
    plan: &Arc<Plan>,
    number: u64,
    stop: &Stop,
    reached: &Reached,
    say: Sender<(usize, Said)>,
) -> Result<Member, Error> {
    let (give, tasks) = channel();
    let (plan, stop, reached) = (plan.clone(), stop.clone(), reached.clone());
    let life = thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || {
            // Nobody listens any more when the program ends early.
            let mut say = |said| drop(say.send((number as usize, said)));
            let life = || reached.serve(&plan, number, &stop, &tasks, &mut say);
            let error = match catch_unwind(AssertUnwindSafe(life)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error,
                Err(_) => Error::Gone,
            };
            say(Said::Failed(error));
            stop.now();
        })
        .map_err(|error| Error::Thread(number, error))?;
    Ok(Member::Thread { tasks: give, life })
}

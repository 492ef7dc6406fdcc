//! The threads of an engine: how they are stopped, and how they wait for work. When one of them
//! ends, all end.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant};

use concurve_engines::Engine;

use crate::error::Error;
use crate::monitor::meter::{Meter, State};
use crate::options::Idle;

/// Stops the threads of an engine: because the engine is to stop, or because one of them has ended.
#[derive(Debug)]
pub struct StopSignal<'a> {
    engine: &'a Engine,
    is_set: AtomicBool,
}

impl<'a> StopSignal<'a> {
    pub fn of(engine: &'a Engine) -> Self {
        Self {
            engine,
            is_set: AtomicBool::new(false),
        }
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(SeqCst) || self.engine.is_stopping()
    }

    /// Stops the threads, and all other engines: one that has lost a thread answers nobody.
    pub fn set(&self) {
        self.is_set.store(true, SeqCst);
        self.engine.stop_all();
    }
}

impl AsFd for StopSignal<'_> {
    /// Becomes readable when the engine is to stop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.engine.stop_descriptor()
    }
}

/// Waits for work, and updates the meter. `seek` returns whether there is work: at once if called
/// with `false`; called with `true`, it sleeps until there is.
pub fn wait_for_work(idle: Idle, meter: &Meter, mut seek: impl FnMut(bool) -> bool) {
    if let Idle::Spin(time) = idle
        && meter.during(State::Spinning, || spin(time, || seek(false)))
    {
        return;
    }
    meter.during(State::Asleep, || seek(true));
}

/// Polls for work until there is some, or the time is over. Returns whether there is some.
fn spin(time: Duration, mut poll: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < time {
        if poll() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// A thread that runs beside the first thread of an engine.
pub struct SideThread<'a> {
    pub name: String,
    pub run: Box<dyn FnOnce() -> Result<(), Error> + Send + 'a>,
}

/// Runs `first` and the side threads. When one of them returns or panics, all end.
///
/// # Errors
/// The first error of one of them.
pub fn run_together(
    side: Vec<SideThread>,
    stop: &StopSignal,
    first: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let mut started: Vec<ScopedJoinHandle<Result<(), Error>>> = Vec::new();
        let mut ended = Ok(());
        for SideThread { name, run } in side {
            let work = move || {
                let _guard = StopOnDrop(stop);
                run()
            };
            let thread = Builder::new().name(name.clone());
            match thread.spawn_scoped(scope, work) {
                Ok(thread) => started.push(thread),
                Err(error) => {
                    ended = Err(Error::io(format!("start the thread {name}"))(error));
                    break;
                }
            }
        }
        if ended.is_ok() {
            let _guard = StopOnDrop(stop);
            ended = first();
        }
        stop.set();
        started.into_iter().fold(ended, |ended, thread| {
            let result = thread.join();
            ended.and(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}

/// Stops the other threads when its thread returns or panics, because an engine needs all of its
/// threads.
struct StopOnDrop<'a>(&'a StopSignal<'a>);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

//! The process that opens the service and forks its engines, and those engines.

use std::time::Instant;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use crate::error::EnginesError;
use crate::memory;
use crate::processes::child::QUICK_DEATH;
use crate::processes::child::{self, DONE, FAILED, LOST, PANICKED};
use crate::processes::messages::{Message, Sender};
use crate::service::{Engine, Plan, Service, Start};
use crate::signals::Signals;
use crate::stop::Stop;

/// Opens the service, forks and supervises engines, and closes the service. Returns the exit
/// status.
pub fn run<S: Service>(plan: &Plan, service: &S, start: Start, messages: &Sender) -> i32 {
    let lived = open(plan, service, start).and_then(|(shared, signals)| {
        let mut generation = Generation {
            plan,
            service,
            messages,
            shared: &shared,
            signals: &signals,
            stop: Stop::new()?,
            engines: Vec::new(),
        };
        // This process must be able to continue when engines have exhausted the memory.
        memory::allocate_shared(false);
        for number in 1..=plan.engines {
            generation.fork(number, 0, 0)?;
        }
        messages.send(&Message::Ready);
        let status = generation.supervise()?;
        if status == DONE {
            service.close(*shared).map_err(EnginesError::Service)?;
        }
        Ok(status)
    });
    lived.unwrap_or_else(|error| {
        messages.send(&Message::Failed(error.to_string()));
        FAILED
    })
}

fn open<S: Service>(
    plan: &Plan,
    service: &S,
    start: Start,
) -> Result<(Box<S::Shared>, Signals), EnginesError> {
    concurve_latch::renew();
    let signals = Signals::block(&[Signal::SIGTERM, Signal::SIGCHLD])?;
    memory::open(plan.memory_bytes, plan.memory_remedy)
        .map_err(EnginesError::system(&memory::reserving(plan.memory_bytes)))?;
    if !memory::contains(&*Box::new(0_u64)) {
        let text =
            "the program's global allocator is not concurve_engines::memory::SharedAllocator";
        return Err(EnginesError::Unfit(text.to_owned()));
    }
    let shared = service.open(start).map_err(EnginesError::Service)?;
    // The stack is not shared, the heap is.
    Ok((Box::new(shared), signals))
}

struct Generation<'a, S: Service> {
    plan: &'a Plan,
    service: &'a S,
    messages: &'a Sender,
    shared: &'a S::Shared,
    signals: &'a Signals,
    stop: Stop,
    engines: Vec<Forked>,
}

/// A running engine.
struct Forked {
    pid: Pid,
    number: u32,
    predecessors: u32,
    since: Instant,
    /// How many predecessors in a row died soon after their start.
    quick: u32,
    /// It was stopped, and is killed then.
    kill_at: Option<Instant>,
}

/// What the end of an engine means for the others.
enum Outcome {
    Ended,
    Failed,
    /// It died, and left no data half changed.
    Harmless(String),
    Lost(String),
}

impl<S: Service> Generation<'_, S> {
    fn fork(&mut self, number: u32, predecessors: u32, quick: u32) -> Result<(), EnginesError> {
        let pid = child::start(|| self.run_engine(number, predecessors))?;
        self.engines.push(Forked {
            pid,
            number,
            predecessors,
            since: Instant::now(),
            quick,
            kill_at: None,
        });
        Ok(())
    }

    /// Runs an engine in its process; returns the exit status.
    fn run_engine(&self, number: u32, predecessors: u32) -> i32 {
        memory::allocate_shared(true);
        concurve_latch::set_engine_of_process(number);
        let engine = Engine {
            number,
            predecessors,
            stop: self.stop.clone(),
        };
        // In a thread of its own: the standard library has data of the main thread, such as the
        // futex on which it parks, in memory that the engines would share.
        let thread = std::thread::Builder::new().name(format!("engine-{number}"));
        let ended = std::thread::scope(|scope| {
            let started = thread.spawn_scoped(scope, || self.service.run(self.shared, &engine));
            started.map(|it| it.join())
        });
        match ended {
            Ok(Ok(Ok(()))) => DONE,
            Ok(Ok(Err(why))) => {
                self.messages.send(&Message::Failed(why));
                FAILED
            }
            Ok(Err(_)) => PANICKED,
            Err(error) => {
                let why = format!("cannot start the thread of engine {number}: {error}");
                self.messages.send(&Message::Failed(why));
                FAILED
            }
        }
    }

    /// Waits until all engines have ended; replaces those that died harmlessly. Returns the exit
    /// status.
    fn supervise(&mut self) -> Result<i32, EnginesError> {
        let mut status = DONE;
        while !self.engines.is_empty() {
            let Some((engine, end)) = self.ended()? else {
                self.kill_stopped();
                self.wait()?;
                continue;
            };
            match judge(&engine, end, self.plan.quick_deaths_max) {
                Outcome::Ended => {}
                Outcome::Failed => {
                    self.stop.request();
                    status = FAILED;
                }
                Outcome::Harmless(why) => self.replace(&engine, why)?,
                Outcome::Lost(why) => {
                    self.end_all();
                    self.messages.send(&Message::Lost(why));
                    return Ok(LOST);
                }
            }
        }
        Ok(status)
    }

    /// An engine that has ended, if one has. Tells of one that was stopped.
    fn ended(&mut self) -> Result<Option<(Forked, WaitStatus)>, EnginesError> {
        loop {
            let changed = child::changed();
            let changed = changed.map_err(EnginesError::system("wait for the engines"))?;
            let Some((pid, status)) = changed else {
                return Ok(None);
            };
            let Some(at) = self.engines.iter().position(|it| it.pid == pid) else {
                continue;
            };
            let engine = &mut self.engines[at];
            match status {
                WaitStatus::Stopped(..) | WaitStatus::Continued(_) => {
                    engine.kill_at = child::kill_at(status);
                    if engine.kill_at.is_some() {
                        let why = format!("engine {} {}", engine.number, child::describe(status));
                        self.messages.send(&Message::Stopped(why));
                    }
                }
                _ => return Ok(Some((self.engines.swap_remove(at), status))),
            }
        }
    }

    /// Kills the engines that were stopped for too long: they answer no client, and hinder the end.
    fn kill_stopped(&mut self) {
        let is_due = |it: &&mut Forked| it.kill_at.is_some_and(|at| at <= Instant::now());
        for engine in self.engines.iter_mut().filter(is_due) {
            engine.kill_at = None;
            child::kill_now(engine.pid);
        }
    }

    fn wait(&self) -> Result<(), EnginesError> {
        let next = self.engines.iter().filter_map(|it| it.kill_at).min();
        let time = next.map(|it| it.saturating_duration_since(Instant::now()));
        self.signals.wait(None, time)?;
        if self.signals.take_end_request()? {
            self.stop.request();
        }
        Ok(())
    }

    fn replace(&mut self, dead: &Forked, why: String) -> Result<(), EnginesError> {
        concurve_latch::reap(dead.number);
        if self.stop.is_requested() {
            return Ok(());
        }
        self.fork(dead.number, dead.predecessors + 1, dead.quick_so_far())?;
        let engine = dead.number;
        self.messages.send(&Message::Replaced { engine, why });
        Ok(())
    }

    fn end_all(&mut self) {
        concurve_latch::fail();
        self.engines.iter().for_each(|it| child::kill_now(it.pid));
        child::wait_for_all();
    }
}

impl Forked {
    fn quick_so_far(&self) -> u32 {
        if self.since.elapsed() < QUICK_DEATH {
            self.quick + 1
        } else {
            0
        }
    }
}

fn judge(engine: &Forked, end: WaitStatus, quick_max: u32) -> Outcome {
    let why = format!("engine {} {}", engine.number, child::describe(end));
    match end {
        WaitStatus::Exited(_, DONE) => return Outcome::Ended,
        WaitStatus::Exited(_, FAILED) => return Outcome::Failed,
        // A panic may leave shared data half changed.
        WaitStatus::Exited(..) => return Outcome::Lost(why),
        WaitStatus::Signaled(_, Signal::SIGABRT, _) if memory::is_exhausted() => {
            return Outcome::Lost(format!("{why}: {}", memory::exhaustion()));
        }
        _ => {}
    }
    let held = concurve_latch::held(engine.number);
    if !held.is_empty() {
        let held: Vec<_> = held
            .iter()
            .map(|(name, n)| format!("{n} of {name}"))
            .collect();
        return Outcome::Lost(format!("{why}, and held latches: {}", held.join(", ")));
    }
    if engine.quick_so_far() >= quick_max {
        return Outcome::Lost(format!(
            "{why}, as did its predecessors soon after their start"
        ));
    }
    Outcome::Harmless(why)
}

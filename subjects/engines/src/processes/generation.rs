//! The process that opens the service and forks its engines, and those engines.

use std::time::Instant;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use crate::processes::QUICK;
use crate::processes::child::{self, DONE, FAILED, LOST, PANICKED};
use crate::processes::news::{News, Sender};
use crate::service::{Engine, Plan, Service, Start};
use crate::signals::Signals;
use crate::stop::Stop;
use crate::{EnginesError, While, memory};

/// Opens the service, forks engines, sees to them and closes the service. Returns the exit status.
pub fn run<S: Service>(plan: &Plan, service: &S, start: Start, news: &Sender) -> i32 {
    let lived = open(plan, service, start).and_then(|(shared, signals)| {
        let mut generation = Generation {
            plan,
            service,
            news,
            shared: &shared,
            signals: &signals,
            stop: Stop::new()?,
            engines: Vec::new(),
        };
        // This process must be able to go on when engines have used up the memory.
        memory::allocate_shared(false);
        for number in 1..=plan.engines {
            generation.fork(number, 0, 0)?;
        }
        news.send(&News::Ready);
        let status = generation.attend()?;
        if status == DONE {
            service.close(*shared).map_err(EnginesError::Service)?;
        }
        Ok(status)
    });
    lived.unwrap_or_else(|error| {
        news.send(&News::Failed(error.to_string()));
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
        .when(&memory::reserving(plan.memory_bytes))?;
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
    news: &'a Sender,
    shared: &'a S::Shared,
    signals: &'a Signals,
    stop: Stop,
    engines: Vec<Forked>,
}

/// An engine that runs.
struct Forked {
    pid: Pid,
    number: u32,
    predecessors: u32,
    since: Instant,
    /// How many in a row, up to its predecessor, died soon after their start.
    quick: u32,
}

/// What an engine's end means for the others.
enum Outcome {
    Ended,
    Failed,
    /// It died, and left nothing half done.
    Harmless(String),
    Lost(String),
}

impl<S: Service> Generation<'_, S> {
    fn fork(&mut self, number: u32, predecessors: u32, quick: u32) -> Result<(), EnginesError> {
        let pid = child::start(|| self.be_engine(number, predecessors))?;
        self.engines.push(Forked {
            pid,
            number,
            predecessors,
            since: Instant::now(),
            quick,
        });
        Ok(())
    }

    /// The life of an engine's process; returns the exit status.
    fn be_engine(&self, number: u32, predecessors: u32) -> i32 {
        memory::allocate_shared(true);
        concurve_latch::set_engine_of_process(number);
        let engine = Engine {
            number,
            predecessors,
            stop: self.stop.clone(),
        };
        // In a thread of its own: what the standard library keeps for the main thread, as the word on
        // which it parks, is in memory that the engines would share.
        let thread = std::thread::Builder::new().name(format!("engine-{number}"));
        let ended = std::thread::scope(|scope| {
            let started = thread.spawn_scoped(scope, || self.service.run(self.shared, &engine));
            started.map(|it| it.join())
        });
        match ended {
            Ok(Ok(Ok(()))) => DONE,
            Ok(Ok(Err(why))) => {
                self.news.send(&News::Failed(why));
                FAILED
            }
            Ok(Err(_)) => PANICKED,
            Err(error) => {
                let why = format!("cannot start the thread of engine {number}: {error}");
                self.news.send(&News::Failed(why));
                FAILED
            }
        }
    }

    /// Waits until all engines have ended; replaces those who died harmlessly. Returns the exit
    /// status.
    fn attend(&mut self) -> Result<i32, EnginesError> {
        let mut status = DONE;
        while !self.engines.is_empty() {
            let Some((engine, end)) = self.ended()? else {
                self.wait()?;
                continue;
            };
            match judge(&engine, end, self.plan.quick_deaths_max) {
                Outcome::Ended => {}
                Outcome::Failed => {
                    self.stop.ask();
                    status = FAILED;
                }
                Outcome::Harmless(why) => self.replace(&engine, why)?,
                Outcome::Lost(why) => {
                    self.end_all();
                    self.news.send(&News::Lost(why));
                    return Ok(LOST);
                }
            }
        }
        Ok(status)
    }

    /// An engine that has ended, if one has.
    fn ended(&mut self) -> Result<Option<(Forked, WaitStatus)>, EnginesError> {
        let Some((pid, status)) = child::ended().when("wait for the engines")? else {
            return Ok(None);
        };
        let at = self.engines.iter().position(|it| it.pid == pid);
        Ok(at.map(|at| (self.engines.swap_remove(at), status)))
    }

    fn wait(&self) -> Result<(), EnginesError> {
        self.signals.wait(None, None)?;
        if self.signals.asks_to_end()? {
            self.stop.ask();
        }
        Ok(())
    }

    fn replace(&mut self, dead: &Forked, why: String) -> Result<(), EnginesError> {
        concurve_latch::reap(dead.number);
        if self.stop.is_asked() {
            return Ok(());
        }
        self.fork(dead.number, dead.predecessors + 1, dead.quick_so_far())?;
        let engine = dead.number;
        self.news.send(&News::Replaced { engine, why });
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
        if self.since.elapsed() < QUICK {
            self.quick + 1
        } else {
            0
        }
    }
}

fn judge(engine: &Forked, end: WaitStatus, quick_max: u32) -> Outcome {
    let why = format!("engine {} {}", engine.number, child::words(end));
    match end {
        WaitStatus::Exited(_, DONE) => return Outcome::Ended,
        WaitStatus::Exited(_, FAILED) => return Outcome::Failed,
        // A panic may leave anything half done.
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

//! Runs a schedule of steps and deaths on several engines, one step at a time, so that a sequential
//! model decides about all of them.
//!
//! The tests of several crates include this file by its path.
#![allow(dead_code)]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use concurve_engines::{Engine, Event, Mode, Plan, Service, Start, serve};
use concurve_latch::{Condvar, Mutex, set_engine_of_thread};
use nix::sys::signal::{Signal, kill};
use nix::unistd::getpid;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// A step that takes longer hangs, on however busy a machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// An entry of a schedule: what an engine, by its number from 1, does next.
#[derive(Debug, Clone)]
pub enum Entry<S> {
    Step(u32, S),
    /// It dies. Its successor cleans up and continues.
    Dies(u32),
}

impl<S> Entry<S> {
    fn engine(&self) -> u32 {
        match self {
            Entry::Step(engine, _) | Entry::Dies(engine) => *engine,
        }
    }
}

/// A system that is compared with its model, in memory that the engines share.
pub trait Compared: Send {
    type Step: Debug + Sync;

    /// Does a step in both, and compares the results; panics if they differ.
    fn step(&mut self, engine: u32, step: &Self::Step);

    /// Does the clean-up of an engine's successor, and applies the death to the model. A thread
    /// that "dies" only abandons its sessions.
    fn engine_died(&mut self, engine: u32, died_as: Mode);

    /// Compares the final states.
    fn end(self);
}

/// Schedules for some engines, with few deaths.
pub fn schedules<S: Debug + 'static>(
    engines: u32,
    length: std::ops::Range<usize>,
    step: impl Strategy<Value = S> + 'static,
) -> impl Strategy<Value = Vec<Entry<S>>> {
    let entry = prop_oneof![
        60 => (1..=engines, step).prop_map(|(engine, step)| Entry::Step(engine, step)),
        1 => (1..=engines).prop_map(Entry::Dies),
    ];
    proptest::collection::vec(entry, length)
}

/// Runs random cases; the error is the smallest one that fails.
pub fn check<C: Debug>(
    cases: u32,
    case: &impl Strategy<Value = C>,
    run: impl Fn(&C) -> Result<(), String>,
) -> Result<(), String> {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let run = |case: C| run(&case).map_err(TestCaseError::fail);
    let checked = TestRunner::new(config).run(case, run);
    checked.map_err(|error| error.to_string())
}

/// One thread acts as all engines.
pub fn in_one_thread<T: Compared>(mut compared: T, schedule: &[Entry<T::Step>]) {
    for entry in schedule {
        match entry {
            Entry::Step(engine, step) => compared.step(*engine, step),
            Entry::Dies(engine) => compared.engine_died(*engine, Mode::Threads),
        }
    }
    compared.end();
}

/// The engines are threads.
///
/// # Errors
/// Where the system differs from the model.
pub fn in_threads<T: Compared>(
    engines: u32,
    compared: T,
    schedule: &[Entry<T::Step>],
) -> Result<(), String> {
    let shared = Shared::new(engines, compared);
    std::thread::scope(|scope| {
        let start = |number| {
            let shared = &shared;
            scope.spawn(move || {
                set_engine_of_thread(number);
                shared.run_entries(schedule, number, Life::Thread)
            })
        };
        let threads: Vec<_> = (1..=engines).map(start).collect();
        let mut ends = threads.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.expect("panics are caught"))
    })?;
    shared.end()
}

/// The engines are processes, and a death is a kill. To be called while this program has one
/// thread; `open` is called in another process.
///
/// # Errors
/// Where the system differs from the model, or the engines fail.
pub fn in_processes<T: Compared>(
    engines: u32,
    open: impl Fn() -> T + Sync,
    schedule: &[Entry<T::Step>],
) -> Result<(), String> {
    let plan = Plan {
        mode: Mode::Processes,
        engines,
        memory_bytes: 64 << 20,
        memory_remedy: "raise memory_bytes in the test",
        // The schedule kills them.
        quick_deaths_max: u32::MAX,
        stop_within: TIMEOUT,
    };
    serve(
        &plan,
        &Scheduled {
            engines,
            open,
            schedule,
        },
    )
    .map_err(|error| error.to_string())
}

struct Scheduled<'a, O, S> {
    engines: u32,
    open: O,
    schedule: &'a [Entry<S>],
}

impl<T: Compared, O: Fn() -> T + Sync> Service for Scheduled<'_, O, T::Step> {
    type Shared = Shared<T>;

    fn open(&self, start: Start) -> Result<Shared<T>, String> {
        if start.generation > 1 {
            return Err("an engine died that was not scheduled to".to_owned());
        }
        catch(|| Shared::new(self.engines, (self.open)()))
    }

    fn run(&self, shared: &Shared<T>, engine: &Engine) -> Result<(), String> {
        let life = Life::Process(engine.predecessors);
        shared.run_entries(self.schedule, engine.number, life)
    }

    fn close(&self, shared: Shared<T>) -> Result<(), String> {
        shared.end()
    }

    fn on_event(&self, _: &Event) {}
}

/// Whether an engine is a thread, or a process with so many killed predecessors.
#[derive(Clone, Copy)]
enum Life {
    Thread,
    Process(u32),
}

struct Shared<T> {
    state: Mutex<State<T>>,
    advanced: Condvar,
}

struct State<T> {
    compared: T,
    /// The next entry.
    at: usize,
    /// How many deaths of each engine have been handled.
    deaths_handled: Vec<u32>,
    /// No engine does another step.
    is_over: bool,
}

impl<T: Compared> Shared<T> {
    fn new(engines: u32, compared: T) -> Self {
        let state = State {
            compared,
            at: 0,
            deaths_handled: vec![0; engines as usize + 1],
            is_over: false,
        };
        Self {
            state: Mutex::new(state),
            advanced: Condvar::new(),
        }
    }

    /// Does the steps of an engine, until the schedule is done.
    fn run_entries(
        &self,
        schedule: &[Entry<T::Step>],
        number: u32,
        life: Life,
    ) -> Result<(), String> {
        let mut state = self.state.lock();
        loop {
            let is_others = |state: &mut State<T>| {
                let next = schedule.get(state.at);
                !state.is_over && next.is_some_and(|it| it.engine() != number)
            };
            if self.advanced.wait_while_for(&mut state, is_others, TIMEOUT) {
                return Err(format!("no engine does the entry {}", state.at));
            }
            let Some(entry) = schedule.get(state.at).filter(|_| !state.is_over) else {
                return Ok(());
            };
            let done = match (entry, life) {
                (Entry::Step(_, step), _) => catch(|| state.compared.step(number, step)),
                (Entry::Dies(_), Life::Thread) => {
                    catch(|| state.compared.engine_died(number, Mode::Threads))
                }
                (Entry::Dies(_), Life::Process(dead))
                    if dead > state.deaths_handled[number as usize] =>
                {
                    state.deaths_handled[number as usize] += 1;
                    catch(|| state.compared.engine_died(number, Mode::Processes))
                }
                (Entry::Dies(_), Life::Process(_)) => {
                    // It dies holding no latch.
                    drop(state);
                    die()
                }
            };
            let done = done.map_err(|why| format!("entry {}, {entry:?}: {why}", state.at));
            state.at += 1;
            state.is_over = done.is_err();
            self.advanced.notify_all();
            done?;
        }
    }

    fn end(self) -> Result<(), String> {
        catch(|| self.state.into_inner().compared.end())
    }
}

fn die() -> ! {
    kill(getpid(), Signal::SIGKILL).expect("its own process");
    unreachable!("it was killed")
}

/// Converts a panic into an error, so that the supervisor of the engines gets its message.
fn catch<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref().map(|it: &&str| (*it).to_owned()));
        text.unwrap_or_else(|| "a panic without a message".to_owned())
    })
}

//! Histories that engines do step by step, one after the other: each step by the engine whose turn it
//! is, so that a model of one thread decides about all of them. Engines die in between.
//!
//! The tests of several crates use it by its path.
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

/// After which something hangs, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What an engine, by its number from 1, does when it has its turn.
#[derive(Debug, Clone)]
pub enum Turn<S> {
    Does(u32, S),
    /// It dies. Its successor tidies up and goes on.
    Dies(u32),
}

impl<S> Turn<S> {
    fn engine(&self) -> u32 {
        match self {
            Turn::Does(engine, _) | Turn::Dies(engine) => *engine,
        }
    }
}

/// Something that is tried beside its model, in memory that the engines share.
pub trait Tried: Send {
    type Step: Debug + Sync;

    /// Does a step in both, and compares; panics where they differ.
    fn step(&mut self, engine: u32, step: &Self::Step);

    /// Does what the successor of an engine does first, and what its death means in the model.
    /// A thread that "dies" only leaves its sessions.
    fn bury(&mut self, engine: u32, died_as: Mode);

    /// Compares for the last time.
    fn end(self);
}

/// Turns of some engines, few of which are deaths.
pub fn turns<S: Debug + 'static>(
    engines: u32,
    length: std::ops::Range<usize>,
    step: impl Strategy<Value = S> + 'static,
) -> impl Strategy<Value = Vec<Turn<S>>> {
    let turn = prop_oneof![
        60 => (1..=engines, step).prop_map(|(engine, step)| Turn::Does(engine, step)),
        1 => (1..=engines).prop_map(Turn::Dies),
    ];
    proptest::collection::vec(turn, length)
}

/// Tries something with random cases; the smallest that fails, if some do.
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

/// One thread is all engines in turn.
pub fn in_one_thread<T: Tried>(mut tried: T, history: &[Turn<T::Step>]) {
    for turn in history {
        match turn {
            Turn::Does(engine, step) => tried.step(*engine, step),
            Turn::Dies(engine) => tried.bury(*engine, Mode::Threads),
        }
    }
    tried.end();
}

/// The engines are threads.
///
/// # Errors
/// Where the model says something else.
pub fn in_threads<T: Tried>(
    engines: u32,
    tried: T,
    history: &[Turn<T::Step>],
) -> Result<(), String> {
    let shared = Shared::new(engines, tried);
    std::thread::scope(|scope| {
        let start = |number| {
            let shared = &shared;
            scope.spawn(move || {
                set_engine_of_thread(number);
                shared.take_turns(history, number, Life::Thread)
            })
        };
        let threads: Vec<_> = (1..=engines).map(start).collect();
        let mut ends = threads.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.expect("panics are caught"))
    })?;
    shared.end()
}

/// The engines are processes, and those that die are killed. To be called while this program has one
/// thread; `open` is called in another process.
///
/// # Errors
/// Where the model says something else, or the engines do not serve.
pub fn in_processes<T: Tried>(
    engines: u32,
    open: impl Fn() -> T + Sync,
    history: &[Turn<T::Step>],
) -> Result<(), String> {
    let plan = Plan {
        mode: Mode::Processes,
        engines,
        memory_bytes: 64 << 20,
        memory_remedy: "raise memory_bytes in the test",
        // They die on purpose.
        quick_deaths_max: u32::MAX,
        stop_within: PATIENCE,
    };
    serve(
        &plan,
        &InTurns {
            engines,
            open,
            history,
        },
    )
    .map_err(|error| error.to_string())
}

struct InTurns<'a, O, S> {
    engines: u32,
    open: O,
    history: &'a [Turn<S>],
}

impl<T: Tried, O: Fn() -> T + Sync> Service for InTurns<'_, O, T::Step> {
    type Shared = Shared<T>;

    fn open(&self, start: Start) -> Result<Shared<T>, String> {
        if start.generation > 1 {
            return Err("an engine died that was to live".to_owned());
        }
        told(|| Shared::new(self.engines, (self.open)()))
    }

    fn run(&self, shared: &Shared<T>, engine: &Engine) -> Result<(), String> {
        let life = Life::Process(engine.predecessors);
        shared.take_turns(self.history, engine.number, life)
    }

    fn close(&self, shared: Shared<T>) -> Result<(), String> {
        shared.end()
    }

    fn tell(&self, _: &Event) {}
}

/// What an engine is; of processes, after how many that were killed.
#[derive(Clone, Copy)]
enum Life {
    Thread,
    Process(u32),
}

struct Shared<T> {
    state: Mutex<State<T>>,
    went_on: Condvar,
}

struct State<T> {
    tried: T,
    /// The turn that comes next.
    at: usize,
    /// How many dead engines of each number have been buried.
    buried: Vec<u32>,
    /// Nobody has a turn any more.
    is_over: bool,
}

impl<T: Tried> Shared<T> {
    fn new(engines: u32, tried: T) -> Self {
        let state = State {
            tried,
            at: 0,
            buried: vec![0; engines as usize + 1],
            is_over: false,
        };
        Self {
            state: Mutex::new(state),
            went_on: Condvar::new(),
        }
    }

    /// Takes the turns of an engine, until there is none left for anybody.
    fn take_turns(&self, history: &[Turn<T::Step>], number: u32, life: Life) -> Result<(), String> {
        let mut state = self.state.lock();
        loop {
            let is_others = |state: &mut State<T>| {
                let next = history.get(state.at);
                !state.is_over && next.is_some_and(|it| it.engine() != number)
            };
            if self.went_on.wait_while_for(&mut state, is_others, PATIENCE) {
                return Err(format!("nobody takes the turn {}", state.at));
            }
            let Some(turn) = history.get(state.at).filter(|_| !state.is_over) else {
                return Ok(());
            };
            let done = match (turn, life) {
                (Turn::Does(_, step), _) => told(|| state.tried.step(number, step)),
                (Turn::Dies(_), Life::Thread) => told(|| state.tried.bury(number, Mode::Threads)),
                (Turn::Dies(_), Life::Process(dead)) if dead > state.buried[number as usize] => {
                    state.buried[number as usize] += 1;
                    told(|| state.tried.bury(number, Mode::Processes))
                }
                (Turn::Dies(_), Life::Process(_)) => {
                    // It dies with nothing held.
                    drop(state);
                    die()
                }
            };
            let done = done.map_err(|why| format!("turn {}, {turn:?}: {why}", state.at));
            state.at += 1;
            state.is_over = done.is_err();
            self.went_on.notify_all();
            done?;
        }
    }

    fn end(self) -> Result<(), String> {
        told(|| self.state.into_inner().tried.end())
    }
}

fn die() -> ! {
    kill(getpid(), Signal::SIGKILL).expect("its own process");
    unreachable!("it was killed")
}

/// What something panics with, so that the keeper of the engines hears of it.
fn told<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref().map(|it: &&str| (*it).to_owned()));
        text.unwrap_or_else(|| "a panic without words".to_owned())
    })
}

//! Engines of both kinds share one statement service. A program of its own, because it forks.

mod common;

use std::process::ExitCode;
use std::time::Duration;

use common::{Memory, Schema};
use concurve_engines::memory::SharedAllocator;
use concurve_engines::{Engine, Event, Mode, Plan, Service, Start, serve};
use concurve_latch::Spin;
use concurve_statements::{CacheOptions, Caching, SessionOptions, Statements};

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

const ENGINES: u32 = 3;
const PAGES: usize = 24;
const ROUNDS: u64 = 5000;

struct Shared(Statements);

struct Loop(Caching);

impl Service for Loop {
    type Shared = Shared;

    fn open(&self, _: Start) -> Result<Shared, String> {
        Ok(Shared(Statements::new(&CacheOptions {
            caching: self.0,
            pages: PAGES,
            engines: ENGINES as usize,
            spin: Spin::Times(100),
        })))
    }

    fn run(&self, shared: &Shared, engine: &Engine) -> Result<(), String> {
        let (mut files, options) = (Memory::default(), SessionOptions::default());
        for round in 0..ROUNDS {
            // Texts that the engines share, and more than there are pages.
            let text = format!(
                "INSERT accounts {} ?",
                round * u64::from(engine.number) % 31
            );
            let at = engine.number as usize - 1;
            let plan = shared.0.plan(at, &text, &options, &Schema(1));
            let plan = plan.map_err(|it| it.to_string())?;
            plan.execute(&[1], &mut files)
                .map_err(|it| it.to_string())?;
        }
        Ok(())
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        let counters = shared.0.counters();
        let in_cache = (counters.cached - counters.dropped) as usize;
        let adds_up = counters.found + counters.compiled == ROUNDS * u64::from(ENGINES)
            && shared.0.free_pages() + in_cache == PAGES
            && (self.0 == Caching::Off || counters.found > 0);
        adds_up.then_some(()).ok_or_else(|| {
            format!(
                "{:?}: {counters:?}, {} pages free",
                self.0,
                shared.0.free_pages()
            )
        })
    }

    fn on_event(&self, event: &Event) {
        assert_eq!(*event, Event::Ready { generation: 1 });
    }
}

fn main() -> ExitCode {
    // Threads last: they open the shared memory of this process.
    let runs = [
        (Mode::Processes, Caching::Off),
        (Mode::Processes, Caching::Single),
        (Mode::Processes, Caching::Striped),
        (Mode::Threads, Caching::Striped),
    ];
    for (mode, caching) in runs {
        let plan = Plan {
            mode,
            engines: ENGINES,
            memory_bytes: 64 << 20,
            memory_remedy: "raise the test's limit",
            quick_deaths_max: 1,
            stop_within: Duration::from_secs(120),
        };
        if let Err(error) = serve(&plan, &Loop(caching)) {
            eprintln!("{mode:?}, {caching:?}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

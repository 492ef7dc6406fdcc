//! Power losses and full disks, with clients in processes that share one engine: at the next start
//! every acknowledged transaction is there.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use concurve_engines::{self as engines, EnginesError, Event, Mode, Plan, Service, Start, serve};
use concurve_fuzz::Draw;
use concurve_records::{Durability, Engine, Latching, Status};

use crate::common::{LATCHINGS, make_bank};
use crate::crash_clients::{Acknowledged, check, small, work_until_failure};
use crate::simulated::{End, Simulated};

const ENGINES: u32 = 3;
const ROUNDS: u64 = 8;

pub fn no_acknowledged_transaction_is_lost() {
    for latching in LATCHINGS {
        for durability in [Durability::Group, Durability::Each, Durability::None] {
            for end in [End::PowerLoss, End::Full] {
                try_some(latching, durability, end)
                    .unwrap_or_else(|why| panic!("{latching:?}, {durability:?}, {end:?}: {why}"));
            }
        }
    }
}

fn try_some(latching: Latching, durability: Durability, end: End) -> Result<(), EnginesError> {
    let plan = Plan {
        mode: Mode::Processes,
        engines: ENGINES,
        memory_bytes: 256 << 20,
        memory_remedy: "raise memory_bytes in the test",
        quick_deaths_max: 1,
        stop_within: Duration::from_secs(120),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut done = 0;
    for round in 0..ROUNDS {
        let acknowledged = &folder.path().join(round.to_string());
        let (latching, durability, end) = (latching, durability, end);
        serve(
            &plan,
            &Ending {
                latching,
                durability,
                end,
                round,
                acknowledged,
            },
        )?;
        done += std::fs::read_to_string(acknowledged)
            .unwrap()
            .parse::<u32>()
            .unwrap();
    }
    assert!(done > 50, "they got something done: {done}");
    Ok(())
}

/// Engines whose storage fails.
struct Ending<'a> {
    latching: Latching,
    durability: Durability,
    end: End,
    round: u64,
    /// The file for the number of acknowledged transactions.
    acknowledged: &'a Path,
}

struct Shared {
    storage: Simulated,
    /// `None` if the storage failed while the engine started.
    engine: Option<Engine>,
    acknowledged: [AtomicU32; ENGINES as usize],
}

impl Ending<'_> {
    fn open(&self, storage: &Simulated) -> Result<Engine, String> {
        let options = small(self.latching, self.durability);
        let opened = Engine::open_shared_in(Arc::new(storage.share()), options);
        opened.map(|it| it.0).map_err(|fault| fault.to_string())
    }

    fn seed(&self) -> u64 {
        self.round + 1000 * self.durability as u64
    }
}

impl Service for Ending<'_> {
    type Shared = Shared;

    fn open(&self, start: Start) -> Result<Shared, String> {
        if start.generation > 1 {
            return Err("an engine died".to_owned());
        }
        let storage = Simulated::seeded(self.seed());
        let engine = self.open(&storage)?;
        make_bank(&engine);
        engine.close().map_err(|fault| fault.to_string())?;
        storage.end_after(20 + Draw::new(self.seed()).below(400) as u64, self.end);
        Ok(Shared {
            engine: self.open(&storage).ok(),
            storage,
            acknowledged: Default::default(),
        })
    }

    fn run(&self, shared: &Shared, engine: &engines::Engine) -> Result<(), String> {
        let Some(records) = &shared.engine else {
            return Ok(());
        };
        let is_first = engine.number == 1;
        let checkpointer = is_first.then(|| records.start_checkpointer());
        let _checkpointer = checkpointer.transpose().map_err(|it| it.to_string())?;
        let expected = match self.end {
            End::PowerLoss => Status::Io,
            End::Full => Status::DiskFull,
        };
        let client = engine.number - 1;
        let acknowledged = work_until_failure(records, client, 0, expected);
        shared.acknowledged[client as usize].store(acknowledged, SeqCst);
        Ok(())
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        drop(shared.engine);
        let storage = match self.end {
            End::PowerLoss => shared.storage.after_power_loss(),
            End::Full => shared.storage.share(),
        };
        storage.end_after(u64::MAX, End::Full);
        let engine = self.open(&storage)?;
        let acknowledged = shared.acknowledged.iter().map(|it| it.load(SeqCst));
        let acknowledged: Acknowledged = (0..).zip(acknowledged).collect();
        let is_durable = self.end == End::Full || self.durability != Durability::None;
        check(
            &engine,
            &acknowledged,
            is_durable,
            &format!("round {}", self.round),
        );
        let done: u32 = acknowledged.values().sum();
        std::fs::write(self.acknowledged, done.to_string()).map_err(|it| it.to_string())?;
        engine.close().map_err(|fault| fault.to_string())
    }

    fn on_event(&self, _: &Event) {}
}

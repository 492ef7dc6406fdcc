//! The services of the test's engines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use concurve_engines::{self as engines, Event, Mode, Plan, Service, Start};
use concurve_records::{
    Durability, Engine, EngineOptions, Get, Latching, LockBias, Status, TransactionKind,
};

use crate::common::history::{Client, Seen, make_file};
use crate::common::{ACCOUNTS, Teller, audit, balance, make_bank, options};

pub const ENGINES: u32 = 3;
/// Clients of each engine.
pub const CLIENTS: u32 = 2;
/// File with the acknowledged transactions: client and number, four bytes each.
pub const ACKNOWLEDGED: &str = "acknowledged";
/// File with the reads and writes of acknowledged transactions, a line each.
pub const HISTORY: &str = "history";

pub fn serve(service: &str, folder: &Path) -> ExitCode {
    let plan = Plan {
        mode: Mode::Processes,
        engines: ENGINES,
        memory_bytes: 64 << 20,
        memory_remedy: "raise the test's limit",
        quick_deaths_max: 1000,
        stop_within: Duration::from_secs(110),
    };
    let folder = folder.to_owned();
    let served = match service {
        "bank none" => engines::serve(&plan, &Bank(folder, Durability::None)),
        "bank group" => engines::serve(&plan, &Bank(folder, Durability::Group)),
        "history" => engines::serve(&plan, &History(folder)),
        "successor" => engines::serve(&plan, &Successor(folder)),
        "reader" => engines::serve(&plan, &Reader(folder)),
        other => panic!("no service {other}"),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(event: &Event) {
    match event {
        Event::Ready { generation } => eprintln!("ready {generation}"),
        Event::Replaced { engine, why } => eprintln!("replaced {engine}: {why}"),
        Event::Lost { why } => eprintln!("lost: {why}"),
        Event::Stopped { why, .. } => eprintln!("stopped: {why}"),
    }
}

/// What the engines of all services share.
struct Shared {
    engine: Engine,
    /// Where they note acknowledged transactions.
    acknowledged: File,
    /// The number of the next transaction.
    next: AtomicU64,
}

impl Shared {
    fn open(folder: &Path, options: EngineOptions, file: &str) -> Result<Self, String> {
        let (engine, _) = Engine::open_shared(folder, options).map_err(|it| it.to_string())?;
        let acknowledged = File::options()
            .create(true)
            .append(true)
            .open(folder.join(file));
        Ok(Self {
            engine,
            acknowledged: acknowledged.map_err(|it| it.to_string())?,
            next: AtomicU64::new(1),
        })
    }

    /// Runs the clients of an engine, and does its other duties.
    fn run(
        &self,
        engine: &engines::Engine,
        client: impl Fn(u32) -> Result<(), String> + Sync,
    ) -> Result<(), String> {
        if engine.predecessors > 0 {
            self.engine.end_sessions_of(engine.number);
        }
        let checkpointer = (engine.number == 1).then(|| self.engine.start_checkpointer());
        let _checkpointer = checkpointer.transpose().map_err(|it| it.to_string())?;
        std::thread::scope(|scope| {
            let start = |number| {
                let client = &client;
                scope.spawn(move || client((engine.number - 1) * CLIENTS + number))
            };
            let clients: Vec<_> = (0..CLIENTS).map(start).collect();
            let mut ends = clients.into_iter().map(|it| it.join());
            ends.try_for_each(|it| it.unwrap_or_else(|_| Err("a client panicked".to_owned())))
        })
    }

    fn close(self) -> Result<(), String> {
        let (locks, waiting) = (self.engine.locks(), self.engine.waiting());
        if (locks, waiting) != (0, 0) {
            return Err(format!("{locks} locks, {waiting} waiters are left"));
        }
        self.engine.close().map_err(|it| it.to_string())
    }
}

/// TPC-B: the sums must be right, and no acknowledged transaction lost.
struct Bank(PathBuf, Durability);

impl Service for Bank {
    type Shared = Shared;

    fn open(&self, _: Start) -> Result<Shared, String> {
        let Self(folder, durability) = self;
        let options = options(Latching::Record, *durability);
        let shared = Shared::open(folder, options, ACKNOWLEDGED)?;
        check(&shared.engine, folder);
        Ok(shared)
    }

    fn run(&self, shared: &Shared, engine: &engines::Engine) -> Result<(), String> {
        shared.run(engine, |client| {
            let mut teller = Teller::new(&shared.engine, client).map_err(|it| it.to_string())?;
            teller.find_next().map_err(|it| it.to_string())?;
            while !engine.is_stopping() {
                teller.transact().map_err(|it| it.to_string())?;
                let mut note = [0; 8];
                note[..4].copy_from_slice(&client.to_le_bytes());
                note[4..].copy_from_slice(&(teller.next - 1).to_le_bytes());
                (&shared.acknowledged)
                    .write_all(&note)
                    .map_err(|it| it.to_string())?;
            }
            Ok(())
        })
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        shared.close()
    }

    fn on_event(&self, event: &Event) {
        print(event);
    }
}

/// The numbers of acknowledged transactions, by client.
pub fn acknowledged(folder: &Path) -> BTreeMap<u32, Vec<u32>> {
    let content = std::fs::read(folder.join(ACKNOWLEDGED)).unwrap_or_default();
    let mut numbers = BTreeMap::<u32, Vec<u32>>::new();
    for note in content.chunks_exact(8) {
        let number = |at: usize| u32::from_le_bytes(note[at..at + 4].try_into().unwrap());
        numbers.entry(number(0)).or_default().push(number(4));
    }
    numbers
}

/// Panics if a sum is wrong, or an acknowledged transaction is lost.
pub fn check(engine: &Engine, folder: &Path) {
    let found: BTreeMap<_, _> = audit(engine).into_iter().collect();
    for (client, numbers) in &found {
        let expected: Vec<u32> = (0..numbers.len() as u32).collect();
        assert_eq!(*numbers, expected, "of client {client}");
    }
    for (client, numbers) in acknowledged(folder) {
        assert!(numbers.is_sorted(), "{numbers:?} of client {client}");
        let found = found.get(&client).map_or(0, |it| it.len() as u32);
        let last = numbers.last().copied();
        assert!(
            last < Some(found),
            "client {client}: {last:?} is acknowledged, found {found}"
        );
    }
}

/// Random transactions, whose reads and writes are noted.
struct History(PathBuf);

impl Service for History {
    type Shared = Shared;

    fn open(&self, start: Start) -> Result<Shared, String> {
        let options = options(Latching::Record, Durability::None);
        let mut shared = Shared::open(&self.0, options, HISTORY)?;
        if start.generation == 1 {
            make_file(&shared.engine);
        }
        shared.engine.verify().map_err(|it| it.to_string())?;
        *shared.next.get_mut() = u64::from(start.generation) << 32;
        Ok(shared)
    }

    fn run(&self, shared: &Shared, engine: &engines::Engine) -> Result<(), String> {
        shared.run(engine, |client| {
            let life = (u64::from(engine.predecessors) << 16) + u64::from(client) + 1;
            let mut client = Client::new(&shared.engine, life);
            while !engine.is_stopping() {
                match client.transact(shared.next.fetch_add(1, Relaxed)) {
                    Ok(seen) => (&shared.acknowledged)
                        .write_all(line(&seen).as_bytes())
                        .map_err(|it| it.to_string())?,
                    Err(Status::Deadlock) => {
                        client.session.abort().map_err(|it| it.to_string())?;
                    }
                    Err(status) => return Err(status.to_string()),
                }
            }
            Ok(())
        })
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        shared.engine.verify().map_err(|it| it.to_string())?;
        shared.close()
    }

    fn on_event(&self, event: &Event) {
        print(event);
    }
}

/// `id key:version,key:version key:version`
fn line(seen: &Seen) -> String {
    let pairs = |list: &[(u64, u64)]| {
        let each = list.iter().map(|(key, version)| format!("{key}:{version}"));
        each.collect::<Vec<_>>().join(",")
    };
    format!(
        "{} {} {}\n",
        seen.id,
        pairs(&seen.reads),
        pairs(&seen.writes)
    )
}

/// All notes.
pub fn histories(folder: &Path) -> Vec<Seen> {
    let content = std::fs::read_to_string(folder.join(HISTORY)).unwrap_or_default();
    let pairs = |text: &str| -> Vec<(u64, u64)> {
        let each = text.split(',').filter_map(|it| it.split_once(':'));
        each.map(|(key, version)| (key.parse().unwrap(), version.parse().unwrap()))
            .collect()
    };
    let seen = |line: &str| {
        let mut parts = line.split(' ');
        let mut part = || parts.next().unwrap();
        Seen {
            id: part().parse().unwrap(),
            reads: pairs(part()),
            writes: pairs(part()),
        }
    };
    // The last line may be incomplete.
    let whole = content.rfind('\n').map_or("", |end| &content[..end]);
    whole.lines().map(seen).collect()
}

/// One engine holds a lock and does nothing; another one waits for it. When the first is killed,
/// its successor releases the lock.
struct Successor(PathBuf);

impl Service for Successor {
    type Shared = Shared;

    fn open(&self, _: Start) -> Result<Shared, String> {
        let options = options(Latching::Record, Durability::Group);
        let shared = Shared::open(&self.0, options, ACKNOWLEDGED)?;
        make_bank(&shared.engine);
        Ok(shared)
    }

    fn run(&self, shared: &Shared, engine: &engines::Engine) -> Result<(), String> {
        shared.run(engine, |client| {
            let done = match (client, engine.predecessors) {
                (0, 0) => self.hold(shared, engine),
                (CLIENTS, _) => self.wait(shared),
                _ => Ok(()),
            };
            done.map_err(|it| it.to_string())?;
            while !engine.is_stopping() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        })
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        shared.close()
    }

    fn on_event(&self, event: &Event) {
        print(event);
    }
}

/// Writes a file of the test at once.
fn write(folder: &Path, name: &str, text: &str) {
    let (part, whole) = (folder.join("part"), folder.join(name));
    std::fs::write(&part, text).unwrap();
    std::fs::rename(part, whole).unwrap();
}

/// The second engine does nothing but read outside of transactions.
struct Reader(PathBuf);

impl Service for Reader {
    type Shared = Shared;

    fn open(&self, _: Start) -> Result<Shared, String> {
        let options = options(Latching::Record, Durability::None);
        let shared = Shared::open(&self.0, options, ACKNOWLEDGED)?;
        make_bank(&shared.engine);
        Ok(shared)
    }

    fn run(&self, shared: &Shared, engine: &engines::Engine) -> Result<(), String> {
        shared.run(engine, |client| {
            if client == CLIENTS {
                return self.read(shared, engine).map_err(|it| it.to_string());
            }
            while !engine.is_stopping() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        })
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        shared.close()
    }

    fn on_event(&self, event: &Event) {
        print(event);
    }
}

impl Reader {
    fn read(&self, shared: &Shared, engine: &engines::Engine) -> Result<(), Status> {
        let mut session = shared.engine.session();
        let file = session.open("accounts")?;
        for round in 0_u32.. {
            // It holds no latch from now on: what it allocates is of few sizes.
            if round == 1000 {
                write(&self.0, "reads", &std::process::id().to_string());
            }
            if round > 1000 && engine.is_stopping() {
                break;
            }
            let value = (round % ACCOUNTS).to_le_bytes();
            for get in [
                Get::Equal(0, &value),
                Get::AtMost(0, &value),
                Get::First(0),
                Get::Next,
            ] {
                session.get(file, get, LockBias::None)?;
            }
        }
        Ok(())
    }
}

impl Successor {
    fn hold(&self, shared: &Shared, engine: &engines::Engine) -> Result<(), Status> {
        let mut session = shared.engine.session();
        let file = session.open("accounts")?;
        session.begin(TransactionKind::Concurrent)?;
        let first = Get::First(0);
        let mut record = session.get(file, first, LockBias::MultipleWait)?.to_vec();
        record[4] = 1;
        session.update(file, &record)?;
        write(&self.0, "holds", &std::process::id().to_string());
        while !engine.is_stopping() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn wait(&self, shared: &Shared) -> Result<(), Status> {
        while !self.0.join("holds").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut session = shared.engine.session();
        let file = session.open("accounts")?;
        session.begin(TransactionKind::Concurrent)?;
        write(&self.0, "asks", "yes");
        let record = session.get(file, Get::First(0), LockBias::MultipleWait)?;
        let balance = balance(record);
        session.end()?;
        // The successor makes checkpoints now.
        let before = shared.engine.statistics().checkpoints;
        session.request_checkpoint()?;
        while shared.engine.statistics().checkpoints == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        write(&self.0, "got", &balance.to_string());
        Ok(())
    }
}

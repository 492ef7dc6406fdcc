//! A deterministic simulation of the engine: clients in one thread, on a simulated disk that fails, with
//! a simulated clock. Everything is drawn from one seed, so a failure can be seen again.
//!
//! A world lives several lives: each begins with a start of the engine, perhaps with starts that fail
//! before, and ends with a kill or a loss of power, in the middle of any call of the storage. After each
//! start, the model judges what is there.

mod client;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use concurve_fuzz::Draw;
use concurve_records::storage::Storage;
use concurve_records::{
    Durability, Engine, EngineOptions, Fault, FileHandle, Get, Latching, LockBias, Status,
    TransactionKind,
};

use crate::simulated::{End, Failure, Simulated};
use client::{Client, Doing, FILES, NUMBERS, Operation, definition, key, read_record, record};
use truth::{Changes, Name, Presence, Records, Truth, Version};

const LATCHINGS: [Latching; 3] = [Latching::Global, Latching::File, Latching::Record];
const DURABILITIES: [Durability; 3] = [Durability::None, Durability::Group, Durability::Each];
const CLIENTS: usize = 4;
const LIVES: u32 = 25;
/// Operations of a life, at most.
const OPERATIONS: usize = 500;
/// Writes, or calls, after which something goes wrong, at most: in a life, and in a start.
const CALLS_OF_LIFE: usize = 400;
const CALLS_OF_START: usize = 80;
/// Rounds after which whoever waits for a lock must have got it, if nobody begins a transaction.
const ROUNDS: usize = 100;

/// What goes wrong in a life, or in a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Nothing,
    /// After so many writes, no call is done any more.
    StopsAfter(u64),
    /// After so many writes, the disk is full.
    FullAfter(u64),
    /// After so many calls, one fails.
    Fails(u64, Failure),
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    Kill,
    PowerLoss,
}

/// The engine has stopped because the storage failed, as it was to.
struct Stopped;

pub struct World {
    seed: u64,
    storage: Simulated,
    options: EngineOptions,
    truth: Truth,
    draw: Draw,
    version: Version,
    life: u32,
    /// Since the last start that was judged, power was lost, or the disk has lost what it was to force.
    is_power_lost: bool,
    /// Calls of the engine by clients.
    pub operations: u64,
    pub starts: u64,
    /// Starts of a damaged store that were refused.
    pub refusals: u64,
    /// Of all results: equal for equal runs.
    pub fingerprint: u64,
    is_traced: bool,
}

/// A running engine and its clients.
struct Life {
    engine: Engine,
    clients: Vec<Client>,
}

impl Life {
    fn of(engine: Engine) -> Self {
        let clients = (0..CLIENTS).map(|_| Client::new(&engine)).collect();
        Self { engine, clients }
    }
}

/// Runs the world of a seed; prints each step if it is traced.
///
/// # Panics
/// If something acknowledged is lost, or something is there that was never written.
pub fn run(seed: u64, is_traced: bool) -> World {
    let mut world = World::new(seed);
    world.is_traced = is_traced;
    while world.life < LIVES {
        world.live();
    }
    world
}

/// The same on a disk that forces nothing, and says that it did.
///
/// # Panics
/// As soon as something is lost.
pub fn run_on_a_lying_disk(seed: u64) {
    let mut world = World::new(seed);
    world.options.durability = Durability::Group;
    world.storage.lie();
    while world.life < LIVES {
        world.live();
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let options = EngineOptions {
            latching: *draw.pick(&LATCHINGS),
            durability: *draw.pick(&DURABILITIES),
            // Small, so that pages are evicted, and there are many checkpoints and files of the log.
            cache_pages: 64,
            checkpoint_bytes: 1 << 17,
            checkpoint_stretch: 4,
        };
        Self {
            seed,
            storage: Simulated::seeded(draw.number()),
            options,
            truth: Truth::default(),
            draw,
            version: 0,
            life: 0,
            is_power_lost: false,
            operations: 0,
            starts: 0,
            refusals: 0,
            fingerprint: 0,
            is_traced: false,
        }
    }

    /// A world with files and records, whose engine was killed after all commits were confirmed.
    pub fn furnished(durability: Durability) -> Self {
        let mut world = Self::new(1);
        world.options.durability = durability;
        let mut life = world.start();
        for _ in 0..150 {
            let stepped = world.step(&mut life);
            world.expect(stepped.is_ok(), || "it stops without a failure".to_owned());
        }
        let settled = world.settle(&mut life);
        world.expect(settled.is_ok(), || "it stops without a failure".to_owned());
        world.die(Death::Kill, Fate::Nothing);
        world
    }

    /// One start and some operations with a fate, and a death, from a copy of this world on; then a start
    /// that is judged. False if the fate did not come true.
    pub fn try_fate(&self, fate: Fate, operations: usize, death: Death) -> bool {
        let mut world = Self {
            storage: Simulated::of(&self.storage.contents(false), self.storage.boot()),
            options: self.options.clone(),
            truth: self.truth.clone(),
            draw: self.draw.clone(),
            ..*self
        };
        world.set(fate);
        let life = world.open().map(Life::of);
        let life = life.map(|mut life| {
            let _ = (0..operations).try_for_each(|_| world.step(&mut life));
            life
        });
        let has_failed = world.storage.has_failed();
        world.expect(life.is_ok() || has_failed, || {
            "it does not start".to_owned()
        });
        world.die(death, fate);
        drop(life);
        world.start();
        has_failed
    }

    fn live(&mut self) {
        self.life += 1;
        self.fail_to_start();
        // A damage is told from a torn write only while the machine runs, and if the log was forced.
        if !self.is_power_lost
            && self.options.durability != Durability::None
            && self.draw.once_in(3)
        {
            self.start_damaged();
        }
        let mut life = self.start();
        let fate = self.fate(CALLS_OF_LIFE);
        self.set(fate);
        let operations = self.draw.below(OPERATIONS);
        let mut steps = 0..operations;
        let lived = steps.try_for_each(|_| {
            self.step(&mut life)?;
            self.work(&life.engine)
        });
        let death = self.death();
        if lived.is_ok() && self.draw.once_in(3) {
            self.close(life);
            self.die(death, fate);
        } else {
            self.die(death, fate);
            drop(life);
        }
    }

    fn fate(&mut self, calls: usize) -> Fate {
        let after = self.draw.below(calls) as u64;
        match self.draw.below(8) {
            0 => Fate::Nothing,
            1..=3 => Fate::StopsAfter(after),
            4 => Fate::FullAfter(after),
            5 => Fate::Fails(after, Failure::Full),
            _ => Fate::Fails(2 * after, Failure::Io),
        }
    }

    fn death(&mut self) -> Death {
        match self.draw.once_in(2) {
            true => Death::Kill,
            false => Death::PowerLoss,
        }
    }

    fn set(&self, fate: Fate) {
        self.trace(|| format!("life {}: {fate:?}", self.life));
        match fate {
            Fate::Nothing => {}
            Fate::StopsAfter(writes) => self.storage.end_after(writes, End::PowerLoss),
            Fate::FullAfter(writes) => self.storage.end_after(writes, End::Full),
            Fate::Fails(calls, failure) => self.storage.fail_after(calls, failure),
        }
    }

    /// The process, or the machine, ends.
    fn die(&mut self, death: Death, fate: Fate) {
        self.trace(|| format!("{death:?}"));
        // What could not be forced to the disk may be gone from the kernel's cache.
        self.is_power_lost |= death == Death::PowerLoss || matches!(fate, Fate::Fails(..));
        self.storage = match death {
            Death::Kill => self.storage.after_kill(),
            Death::PowerLoss => {
                let next = self.storage.after_power_loss();
                self.storage.end_after(0, End::PowerLoss);
                next
            }
        };
    }

    fn open(&mut self) -> Result<Engine, Fault> {
        self.starts += 1;
        let storage = Arc::new(self.storage.share());
        Engine::open_shared_in(storage, self.options.clone()).map(|it| it.0)
    }

    /// Starts that may fail, and deaths after them.
    fn fail_to_start(&mut self) {
        for _ in 0..self.draw.below(3) {
            let fate = self.fate(CALLS_OF_START);
            self.set(fate);
            let opened = self.open();
            if let Err(fault) = &opened {
                let is_of_disk = matches!(fault, Fault::Io { .. } | Fault::Stopped(..));
                let is_due = is_of_disk && self.storage.has_failed();
                self.expect(is_due, || format!("a start is refused: {fault}"));
            }
            let death = self.death();
            self.die(death, fate);
        }
    }

    /// A start with a flipped bit.
    fn start_damaged(&mut self) {
        let mut files = self.storage.contents(false);
        let names: Vec<String> = files.keys().cloned().collect();
        if names.is_empty() {
            return;
        }
        let name = self.draw.pick(&names).clone();
        let bytes = files.get_mut(&name).expect("it is one of them");
        let used = bytes.iter().rposition(|it| *it != 0).map_or(0, |it| it + 1);
        let at = self.draw.below(used);
        let Some(byte) = bytes.get_mut(at) else {
            return;
        };
        *byte ^= 1 << self.draw.below(8);
        self.trace(|| format!("a bit of byte {at} of {name} is flipped"));
        self.starts += 1;
        let storage = Arc::new(Simulated::of(&files, self.storage.boot()));
        match Engine::open_shared_in(storage, self.options.clone()) {
            Ok((engine, _)) => {
                let mut truth = self.truth.clone();
                let found = find(&engine, &mut truth);
                let least = truth.least(false);
                let judged = found.and_then(|found| truth.judge(found, least));
                self.expect(judged.is_ok(), || {
                    format!("byte {at} of {name} is damaged: {judged:?}")
                });
            }
            Err(fault) => {
                let text = fault.to_string();
                let names_it = match name.starts_with("log-") {
                    true => text.contains("log-"),
                    false => text.contains(&name),
                };
                let is_clear = names_it && (text.contains(" byte ") || text.contains("missing"));
                self.expect(is_clear, || {
                    format!(
                        "byte {at} of {name} is damaged, and the refusal does not say so: {text}"
                    )
                });
                self.refusals += 1;
            }
        }
    }

    /// A start that must succeed, and is judged.
    fn start(&mut self) -> Life {
        let opened = self.open();
        let engine =
            opened.unwrap_or_else(|fault| self.fail(&format!("a start is refused: {fault}")));
        let least = self.truth.least(self.is_power_lost);
        let found = find(&engine, &mut self.truth);
        let judged = found.and_then(|found| self.truth.judge(found, least));
        match judged {
            Ok(commits) => {
                self.note(commits as u64);
                self.trace(|| format!("life {}: {commits} commits are found", self.life));
            }
            Err(text) => self.fail(&text),
        }
        self.is_power_lost = false;
        Life::of(engine)
    }

    /// Ends all transactions.
    fn settle(&mut self, life: &mut Life) -> Result<(), Stopped> {
        for round in 0.. {
            let is_idle = |it: &Client| {
                it.transaction.is_none() && it.doing.is_none() && it.unconfirmed.is_none()
            };
            if life.clients.iter().all(is_idle) {
                break;
            }
            self.expect(round < ROUNDS, || "a client waits for ever".to_owned());
            self.storage.pass(Duration::from_millis(100));
            for client in &mut life.clients {
                self.finish(client)?;
            }
        }
        Ok(())
    }

    /// Ends all transactions, and closes the engine.
    fn close(&mut self, mut life: Life) {
        if self.settle(&mut life).is_err() {
            return self.stopped(&life.engine);
        }
        let Life { engine, clients } = life;
        drop(clients);
        match engine.close() {
            Ok(()) => self.truth.all_forced(),
            Err(_) => self.expect(self.storage.has_failed(), || {
                "it cannot be closed".to_owned()
            }),
        }
    }

    /// What a client does to have nothing open any more.
    fn finish(&mut self, client: &mut Client) -> Result<(), Stopped> {
        if client.doing.is_some() || client.unconfirmed.is_some() {
            return self.step_of(client);
        }
        if client.transaction.is_none() {
            return Ok(());
        }
        let operation = match self.draw.once_in(3) {
            true => Operation::Abort,
            false => Operation::End,
        };
        self.go_on(client, Doing::new(operation))
    }

    /// What the engine's checkpointer would do, and sometimes a checkpoint.
    fn work(&mut self, engine: &Engine) -> Result<(), Stopped> {
        let before = engine.statistics().checkpoints;
        let done = match self.draw.below(300) {
            0 => engine.checkpoint(),
            1..=50 => engine.do_due_work(),
            _ => return Ok(()),
        };
        if done.is_err() {
            self.stopped(engine);
            return Err(Stopped);
        }
        if engine.statistics().checkpoints > before {
            self.truth.all_forced();
        }
        Ok(())
    }

    /// A client does the next step.
    fn step(&mut self, life: &mut Life) -> Result<(), Stopped> {
        let at = self.draw.below(CLIENTS);
        let stepped = self.step_of(&mut life.clients[at]);
        if stepped.is_err() {
            self.stopped(&life.engine);
        }
        stepped
    }

    fn step_of(&mut self, client: &mut Client) -> Result<(), Stopped> {
        if let Some(commit) = client.unconfirmed {
            return self.confirm(client, commit);
        }
        if let Some(doing) = client.doing.take() {
            let waited = Duration::from_millis(self.draw.below(40) as u64);
            self.storage.pass(waited);
            if client.transaction.is_some() && self.draw.once_in(20) {
                return self.go_on(client, Doing::new(Operation::Abort));
            }
            return self.go_on(client, doing);
        }
        let operation = self.choose(client);
        self.go_on(client, Doing::new(operation))
    }

    fn confirm(&mut self, client: &mut Client, commit: usize) -> Result<(), Stopped> {
        self.operations += 1;
        client.unconfirmed = None;
        match client.session.confirm() {
            Ok(()) => {
                let survives_power_loss = self.options.durability != Durability::None;
                self.truth.acknowledged(commit, survives_power_loss);
                self.trace(|| format!("commit {commit} is confirmed"));
                Ok(())
            }
            Err(Status::Io | Status::DiskFull) => Err(Stopped),
            Err(status) => self.fail(&format!("a commit ends with {status}")),
        }
    }

    fn choose(&mut self, client: &Client) -> Operation {
        let in_transaction = client.transaction.is_some();
        let is_file = |it: &&&str| self.truth.files.contains_key(**it);
        let there: Vec<&'static str> = FILES.iter().filter(is_file).copied().collect();
        let missing: Vec<&'static str> = FILES.iter().filter(|it| !is_file(it)).copied().collect();
        if !in_transaction {
            if !missing.is_empty() && (there.is_empty() || self.draw.once_in(20)) {
                return Operation::Create(self.draw.pick::<&str>(&missing));
            }
            match self.draw.below(200) {
                0 => return Operation::Drop(self.draw.pick::<&str>(&there)),
                1..=60 => return Operation::Begin(TransactionKind::Concurrent),
                61..=66 => return Operation::Begin(TransactionKind::Exclusive),
                _ => {}
            }
        } else if there.is_empty() || self.draw.once_in(5) {
            return match self.draw.once_in(5) {
                true => Operation::Abort,
                false => Operation::End,
            };
        }
        let file = *self.draw.pick(&there);
        let number = self.draw.below(NUMBERS as usize) as u32;
        self.version += 1;
        match self.draw.below(10) {
            0..=3 => Operation::Insert(file, number, self.version),
            4 | 5 => Operation::Update(file, number, self.version),
            6 => Operation::Delete(file, number),
            7 | 8 => Operation::Read(file, number),
            _ => Operation::Next(file, number, self.draw.once_in(2)),
        }
    }

    /// Does an operation, or goes on with one.
    fn go_on(&mut self, client: &mut Client, mut doing: Doing) -> Result<(), Stopped> {
        self.operations += 1;
        client.doing = None;
        let done = self.try_to(client, &mut doing);
        self.trace(|| format!("{doing:?}: {done:?}"));
        self.note(done.map_or_else(|it| 1 + u64::from(it.code()), |()| 0));
        match done {
            Ok(()) => Ok(()),
            Err(Status::Waiting) => {
                client.doing = Some(doing);
                Ok(())
            }
            Err(Status::Deadlock) => self.give_up(client, doing),
            Err(Status::Io | Status::DiskFull) => Err(Stopped),
            Err(status) => self.fail(&format!("{doing:?} ends with {status}")),
        }
    }

    /// After a deadlock.
    fn give_up(&mut self, client: &mut Client, doing: Doing) -> Result<(), Stopped> {
        if client.transaction.is_some() {
            return self.go_on(client, Doing::new(Operation::Abort));
        }
        if let Operation::Update(file, ..) | Operation::Delete(file, _) = doing.operation
            && let Ok(handle) = client.handle(file)
        {
            let unlocked = client.session.unlock(handle);
            self.expect(unlocked.is_ok(), || {
                format!("unlock ends with {unlocked:?}")
            });
        }
        Ok(())
    }

    fn try_to(&mut self, client: &mut Client, doing: &mut Doing) -> Result<(), Status> {
        match doing.operation {
            Operation::Begin(kind) => {
                client.session.begin(kind)?;
                client.transaction = Some(Changes::new());
                Ok(())
            }
            Operation::End => {
                client.session.end()?;
                let changes = client.transaction.take().unwrap_or_default();
                self.committed(client, changes);
                Ok(())
            }
            Operation::Abort => {
                client.transaction = None;
                client.session.abort()
            }
            Operation::Create(file) => self.create(client, file),
            Operation::Drop(file) => self.drop_file(client, file),
            Operation::Insert(file, number, version) => self.insert(client, file, number, version),
            Operation::Update(file, number, version) => {
                self.change(client, doing, (file, number), Some(version))
            }
            Operation::Delete(file, number) => self.change(client, doing, (file, number), None),
            Operation::Read(file, number) => self.read(client, file, number),
            Operation::Next(file, number, backwards) => {
                self.read_next(client, file, number, backwards)
            }
        }
    }

    fn create(&mut self, client: &mut Client, file: &'static str) -> Result<(), Status> {
        match client.session.create_file(file, &definition()) {
            Ok(()) => {
                self.truth.make_file(file, Presence::Certain);
                Ok(())
            }
            Err(fault) => {
                // Another client may have made it since this one chose to.
                if let (Fault::Exists(_), Some(_)) = (&fault, self.truth.file(file)) {
                    return Ok(());
                }
                self.truth.make_file(file, Presence::Doubtful);
                Err(fault.status())
            }
        }
    }

    fn drop_file(&mut self, client: &mut Client, file: &'static str) -> Result<(), Status> {
        match client.session.drop_file(file) {
            Ok(()) => self.truth.drop_file(file),
            Err(Status::FileInUse) => {}
            Err(status) => {
                self.truth.doubt_file(file);
                return Err(status);
            }
        }
        Ok(())
    }

    /// The name of a record, and the handle of its file; `None` if that was dropped meanwhile.
    fn name(
        &self,
        client: &mut Client,
        file: &str,
        number: u32,
    ) -> Result<Option<(Name, FileHandle)>, Status> {
        match self.truth.file(file) {
            Some(id) => Ok(Some(((id, number), client.handle(file)?))),
            None => Ok(None),
        }
    }

    fn insert(
        &mut self,
        client: &mut Client,
        file: &'static str,
        number: u32,
        version: Version,
    ) -> Result<(), Status> {
        let Some((name, handle)) = self.name(client, file, number)? else {
            return Ok(());
        };
        let seen = client.sees(&self.truth, name);
        match client.session.insert(handle, &record(number, version)) {
            Ok(()) => {
                self.expect(seen.is_none(), || format!("{name:?} is there twice"));
                self.changed(client, name, Some(version));
                Ok(())
            }
            Err(Status::DuplicateKey) => {
                self.expect(seen.is_some(), || {
                    format!("{name:?} is there, and must not be")
                });
                Ok(())
            }
            Err(status) => Err(status),
        }
    }

    /// Finds and locks a record, and then updates or deletes it.
    fn change(
        &mut self,
        client: &mut Client,
        doing: &mut Doing,
        (file, number): (&'static str, u32),
        version: Option<Version>,
    ) -> Result<(), Status> {
        let Some((name, handle)) = self.name(client, file, number)? else {
            return Ok(());
        };
        if !doing.is_found {
            let bias = LockBias::SingleWait;
            let got = client
                .session
                .get(handle, Get::Equal(0, &key(number)), bias);
            let got = got.map(<[u8]>::to_vec);
            doing.is_found = self.compare(client, name, got)?;
            if !doing.is_found {
                return Ok(());
            }
        }
        match version {
            Some(version) => client.session.update(handle, &record(number, version))?,
            None => client.session.delete(handle)?,
        }
        self.changed(client, name, version);
        Ok(())
    }

    fn read(&mut self, client: &mut Client, file: &'static str, number: u32) -> Result<(), Status> {
        let Some((name, handle)) = self.name(client, file, number)? else {
            return Ok(());
        };
        let got = client
            .session
            .get(handle, Get::Equal(0, &key(number)), LockBias::None);
        let got = got.map(<[u8]>::to_vec);
        self.compare(client, name, got).map(drop)
    }

    /// Compares a record that was read with what the client must see; whether it is there.
    fn compare(
        &self,
        client: &Client,
        name: Name,
        got: Result<Vec<u8>, Status>,
    ) -> Result<bool, Status> {
        let expected = client.sees(&self.truth, name);
        let found = match got {
            Ok(bytes) => Some(read_record(&bytes).unwrap_or_else(|text| self.fail(&text))),
            Err(Status::KeyNotFound) => None,
            Err(status) => return Err(status),
        };
        self.expect(found == expected.map(|it| (name.1, it)), || {
            format!("{name:?} is read as {found:?}, and must be {expected:?}")
        });
        Ok(found.is_some())
    }

    fn read_next(
        &mut self,
        client: &mut Client,
        file: &'static str,
        number: u32,
        backwards: bool,
    ) -> Result<(), Status> {
        let Some((name, handle)) = self.name(client, file, number)? else {
            return Ok(());
        };
        let expected = client.sees_next(&self.truth, name, backwards);
        let key = key(number);
        let get = match backwards {
            true => Get::AtMost(0, &key),
            false => Get::AtLeast(0, &key),
        };
        let found = match client.session.get(handle, get, LockBias::None) {
            Ok(bytes) => Some(read_record(bytes).unwrap_or_else(|text| self.fail(&text))),
            Err(Status::EndOfFile) => None,
            Err(status) => return Err(status),
        };
        self.expect(found == expected, || {
            format!("from {name:?} on {found:?} is read, and must be {expected:?}")
        });
        Ok(())
    }

    /// A client has changed a record: in its transaction, or in one of its own.
    fn changed(&mut self, client: &mut Client, name: Name, version: Option<Version>) {
        match &mut client.transaction {
            Some(changes) => {
                changes.insert(name, version);
            }
            None => self.committed(client, Changes::from([(name, version)])),
        }
    }

    fn committed(&mut self, client: &mut Client, changes: Changes) {
        if changes.is_empty() {
            return;
        }
        let commit = self.truth.commit(changes);
        client.unconfirmed = Some(commit);
        self.expect(client.session.is_unconfirmed(), || {
            format!("commit {commit} needs no confirmation")
        });
    }

    /// The engine may only stop because the storage has failed.
    fn stopped(&self, engine: &Engine) {
        let why = engine.failure();
        self.trace(|| format!("the engine has stopped: {why:?}"));
        self.expect(self.storage.has_failed() && why.is_some(), || {
            format!("the engine has stopped without a failure of the storage: {why:?}")
        });
    }

    fn note(&mut self, value: u64) {
        self.fingerprint = Draw::new(self.fingerprint ^ value).number();
    }

    fn trace(&self, text: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{}", text());
        }
    }

    fn expect(&self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.fail(&text());
        }
    }

    fn fail(&self, text: &str) -> ! {
        panic!(
            "in life {} after {} operations with {:?}: {text}; again: CONCURVE_SIMULATION_SEED={} cargo \
             test --profile checked -p concurve-records --test records simulation::",
            self.life, self.operations, self.options, self.seed
        )
    }
}

/// All records, after the engine has checked itself.
fn find(engine: &Engine, truth: &mut Truth) -> Result<Records, String> {
    engine.verify().map_err(|fault| fault.to_string())?;
    let names: Vec<String> = engine.files().into_iter().map(|it| it.0).collect();
    truth.find_files(&names)?;
    let mut records = Records::new();
    let mut session = engine.session();
    for name in names {
        let id = truth.file(&name).ok_or("it was found")?;
        let file = session.open(&name).map_err(|it| it.to_string())?;
        let mut read = Ok(());
        let each = session.each_record(file, |bytes| {
            match read_record(bytes) {
                Ok((number, version)) => {
                    records.insert((id, number), version);
                }
                Err(text) => read = Err(text),
            }
            Ok::<(), Status>(())
        });
        each.map_err(|it| it.to_string())?;
        read?;
    }
    Ok(records)
}

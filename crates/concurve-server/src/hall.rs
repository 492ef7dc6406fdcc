//! What all threads of the server share: the services' state, the limits, the counters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use concurve_records::{Engine, Recovered};

use crate::backup::record::Record;
use crate::backup::{Backup, Loaded};
use crate::error::Error;
use crate::leases::Leases;
use crate::locks::book::{Journal, Request, Subject};
use crate::locks::entry::OwnerId;
use crate::locks::latched::LockTable;
use crate::locks::mode::{Mode, Scope};
use crate::locks::overflow::Overflows;
use crate::locks::owners::Owners;
use crate::locks::room::{Gauge, Room};
use crate::monitor::meter::{Meter, Meters, State};
use crate::settings::{Execution, RecordSettings, Settings};

pub const POISONED: &str = "a thread panicked while it held a mutex of the server";

#[derive(Debug)]
pub struct Hall {
    pub settings: Settings,
    pub locks: LockTable,
    pub room: Arc<Room>,
    pub owners: Mutex<Owners>,
    pub overflows: Mutex<Overflows>,
    pub leases: Mutex<Leases>,
    pub scripts: Mutex<crate::commands::scripts::Loaded>,
    pub counters: Counters,
    pub clients: Gauge,
    /// What a start read from the backup file.
    pub loaded: Option<Loaded>,
    pub records: Option<Records>,
    backup: Option<Mutex<Backup>>,
    /// Some notes are not on file yet.
    noted: AtomicBool,
    /// Why the server cannot go on.
    fatal: OnceLock<Error>,
    pub stop: AtomicBool,
    pub per_thread: Box<[ThreadCounters]>,
    pub meters: Meters,
    pub worker_busy_ns: AtomicU64,
    pub worker_batches: AtomicU64,
    pub port: u16,
    begin: Instant,
}

/// The record engine, and what its start found to do.
#[derive(Debug)]
pub struct Records {
    pub engine: Engine,
    pub recovered: Recovered,
}

/// Counts since the start; `granted` has those in it that only cumulated.
#[derive(Debug, Default)]
pub struct Counters {
    pub granted: AtomicU64,
    pub collisions: AtomicU64,
    pub full: AtomicU64,
    pub promotions: AtomicU64,
    pub unlocks: AtomicU64,
    pub not_held: AtomicU64,
    pub errors: AtomicU64,
    pub accepted: AtomicU64,
    pub refused_clients: AtomicU64,
    pub closed_by_limits: AtomicU64,
}

/// What one I/O thread has done.
#[derive(Debug, Default)]
pub struct ThreadCounters {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
}

/// Adds one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Hall {
    pub fn new(settings: Settings, port: u16) -> Result<Self, Error> {
        let asked = &settings.locks;
        let room = Arc::new(Room::new(asked.capacity));
        let locks = LockTable::new(asked.latching, asked.rules, Arc::clone(&room));
        let opened = match &asked.backup {
            Some((path, durability)) => Some(Backup::open(path, *durability)?),
            None => None,
        };
        let (backup, loaded) = opened.unzip();
        let records = match &settings.records {
            Some(asked) => Some(Records::open(asked)?),
            None => None,
        };
        let threads = (0..settings.io_threads).map(|_| ThreadCounters::default());
        let meters = match settings.execution {
            Execution::Worker => Meters::new(1, settings.io_threads),
            Execution::Inline => Meters::new(settings.io_threads, 0),
        };
        let hall = Self {
            locks,
            room,
            owners: Mutex::default(),
            overflows: Mutex::default(),
            leases: Mutex::new(Leases::new(settings.locks.capacity as usize)),
            scripts: Mutex::default(),
            counters: Counters::default(),
            clients: Gauge::default(),
            loaded,
            records,
            backup: None,
            noted: AtomicBool::new(false),
            fatal: OnceLock::new(),
            stop: AtomicBool::new(false),
            per_thread: threads.collect(),
            meters,
            worker_busy_ns: AtomicU64::new(0),
            worker_batches: AtomicU64::new(0),
            port,
            begin: Instant::now(),
            settings,
        };
        hall.reload(backup)
    }

    /// Takes back every lock that the backup file says is held.
    fn reload(mut self, backup: Option<Backup>) -> Result<Self, Error> {
        let Some(backup) = backup else {
            return Ok(self);
        };
        for record in backup.held() {
            let owner = self.owners.lock().expect(POISONED).intern(record.owner);
            let request = Request {
                subject: Subject {
                    table: record.table,
                    argument: record.argument,
                },
                mode: record.mode,
                owner,
                scope: Scope::UPDATE,
                backup: true,
            };
            for _ in 0..record.count {
                self.locks
                    .lock(&request, &mut ())
                    .map_err(|refusal| Error::Reload {
                        held: backup.held().count() as u64,
                        capacity: self.settings.locks.capacity,
                        refusal: format!("{refusal:?}"),
                    })?;
            }
        }
        self.backup = Some(Mutex::new(backup));
        Ok(self)
    }

    pub fn now_ms(&self) -> u64 {
        self.begin.elapsed().as_millis() as u64
    }

    pub fn has_backup(&self) -> bool {
        self.backup.is_some()
    }

    /// Puts all notes on file; no reply may leave before. False: the server must stop.
    pub fn commit(&self, meter: &Meter) -> bool {
        let Some(backup) = &self.backup else {
            return true;
        };
        if !self.noted.load(Relaxed) {
            return true;
        }
        let mut backup = backup.lock().expect(POISONED);
        if let Err(error) = meter.during(State::Disk, || backup.commit()) {
            self.fail(error.into());
            return false;
        }
        // Only now, and before anybody can note more: another thread that finds nothing noted
        // sends replies at once, and what it noted before must be on file by then.
        self.noted.store(false, Relaxed);
        true
    }

    /// Asks the server to stop because of an error.
    pub fn fail(&self, error: Error) {
        let _ = self.fatal.set(error);
        self.stop.store(true, Relaxed);
    }

    /// Ends the services; why the server had to stop, if it had to.
    pub fn end(self) -> Option<Error> {
        let records = self.records.map(|it| it.end());
        self.fatal.into_inner().or(records.and_then(Result::err))
    }

    pub fn compactions(&self) -> u64 {
        let backup = self.backup.as_ref();
        backup.map_or(0, |it| it.lock().expect(POISONED).compactions)
    }
}

impl Records {
    fn open(settings: &RecordSettings) -> Result<Self, Error> {
        let opened = Engine::open(&settings.folder, settings.engine.clone());
        let (engine, recovered) = opened.map_err(|source| Error::Records {
            folder: settings.folder.clone(),
            source,
        })?;
        Ok(Self { engine, recovered })
    }

    /// Says what stopped the engine, if something did; otherwise the next start has nothing to do.
    fn end(self) -> Result<(), Error> {
        if let Some(why) = self.engine.failure() {
            return Err(Error::RecordsStopped(why));
        }
        let closed = self.engine.close();
        closed.map_err(|fault| Error::RecordsStopped(fault.to_string()))
    }
}

/// Writes what changes to the backup file's notes, by owners' names.
pub struct Notes<'a>(pub &'a Hall);

impl Journal for Notes<'_> {
    fn held(&mut self, subject: Subject, mode: Mode, owner: OwnerId, count: u32) {
        let Some(backup) = &self.0.backup else {
            return;
        };
        let mut backup = backup.lock().expect(POISONED);
        let owners = self.0.owners.lock().expect(POISONED);
        backup.note(&Record {
            count,
            mode,
            table: subject.table,
            argument: subject.argument,
            owner: owners.name(owner),
        });
        self.0.noted.store(true, Relaxed);
    }
}

//! What all threads and engines of the server share: the services' state, the limits, the counters.
//!
//! It is made before engines are forked and lies in the memory that they share, so what changes is
//! atomic or behind latches of `concurve-latch`, and descriptors are opened here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use concurve_engines::Start;
use concurve_latch::{Class, Mutex, Section};
use concurve_records::{Checkpointer, Engine, Recovered};

use crate::backup::record::Record;
use crate::backup::{Backup, Loaded};
use crate::commands::{scripts, session};
use crate::error::{Error, While};
use crate::leases::Leases;
use crate::locks::entry::OwnerId;
use crate::locks::latched::LockTable;
use crate::locks::mode::{Mode, Scope};
use crate::locks::overflow::Overflows;
use crate::locks::owners::Owners;
use crate::locks::request::{Journal, Request, Subject};
use crate::locks::room::Room;
use crate::monitor::meter::{Meter, Meters, State};
use crate::monitor::phase::Phase;
use crate::net::inbox::IoInbox;
use crate::net::reception::Reception;
use crate::net::run_queue::RunQueue;
use crate::settings::{Engines, Execution, RecordSettings, Settings};
use crate::statements::{StatementService, StatementSettings};

#[derive(Debug)]
pub struct Hall {
    pub settings: Settings,
    pub locks: LockTable,
    pub room: Arc<Room>,
    pub owners: Mutex<Owners>,
    pub overflows: Mutex<Overflows>,
    pub leases: Mutex<Leases>,
    pub scripts: Mutex<scripts::Loaded>,
    pub counters: Counters,
    /// Clients at the same time, at most.
    pub clients_peak: AtomicU64,
    /// What a start read from the backup file.
    pub loaded: Option<Loaded>,
    pub records: Option<Records>,
    /// Over the records.
    pub statements: Option<StatementService>,
    backup: Option<Mutex<Backup>>,
    /// Some notes are not on file yet.
    noted: AtomicBool,
    /// Of each I/O thread; of each engine, if those do its work.
    pub per_thread: Box<[ThreadCounters]>,
    /// What others have for an I/O thread, in the same order.
    pub inboxes: Box<[Arc<IoInbox>]>,
    /// What I/O threads have for engines, unless they are engines themselves.
    pub run_queue: Option<RunQueue>,
    /// What engines have for the disk's thread, if there is one.
    pub disk_queue: Option<RunQueue>,
    /// Where engines that are processes hand connections to each other.
    pub reception: Option<Reception>,
    pub meters: Meters,
    pub phase: Mutex<Phase>,
    pub worker_busy_ns: AtomicU64,
    pub worker_batches: AtomicU64,
    /// Which opening of the service this is.
    pub generation: u32,
    /// Engines that died since, and were replaced.
    pub engine_deaths: AtomicU64,
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
    /// Connections that it was given, and those that are open.
    pub connections: AtomicU64,
    pub open: AtomicU64,
    pub requests: AtomicU64,
}

/// Adds one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Hall {
    pub fn new(settings: Settings, port: u16, start: Start) -> Result<Self, Error> {
        let asked = &settings.locks;
        let room = Arc::new(Room::new(asked.capacity));
        let locks = LockTable::new(asked.latching, asked.rules, Arc::clone(&room));
        let leases = Leases::new(asked.capacity as usize);
        let opened = match &asked.backup {
            Some((path, durability)) => Some(Backup::open(path, *durability)?),
            None => None,
        };
        let (backup, loaded) = opened.unzip();
        let records = match &settings.records {
            Some(asked) => Some(Records::open(asked)?),
            None => None,
        };
        let (engines, io_threads) = (settings.engine_count, settings.io_threads);
        let is_inline = settings.execution == Execution::Inline;
        let has_disk_thread = !is_inline && settings.needs_disk();
        let inboxes: Result<_, Error> = (0..io_threads).map(|_| IoInbox::new()).collect();
        let reception = match settings.engines {
            Engines::Threads => None,
            Engines::Processes => {
                Some(Reception::new(engines).when(|| "open pairs of sockets".to_owned())?)
            }
        };
        let statements = match (&settings.statements, &records) {
            (Some(asked), Some(records)) => Some(records.statements(asked, &settings)?),
            _ => None,
        };
        let hall = Self {
            locks,
            room,
            owners: Class::named("owners").mutex(Owners::default()),
            overflows: Class::named("overflows").mutex(Overflows::default()),
            leases: Class::named("keys").mutex(leases),
            scripts: Class::named("scripts").mutex(scripts::Loaded::default()),
            counters: Counters::default(),
            clients_peak: AtomicU64::new(0),
            loaded,
            records,
            statements,
            backup: None,
            noted: AtomicBool::new(false),
            per_thread: (0..io_threads).map(|_| ThreadCounters::default()).collect(),
            inboxes: inboxes?,
            run_queue: (!is_inline).then(|| RunQueue::new("run queue", engines)),
            disk_queue: has_disk_thread.then(|| RunQueue::new("disk queue", 1)),
            reception,
            meters: Meters::new(
                engines,
                if is_inline { 0 } else { io_threads },
                has_disk_thread.into(),
            ),
            phase: Class::named("phase").mutex(Phase::default()),
            worker_busy_ns: AtomicU64::new(0),
            worker_batches: AtomicU64::new(0),
            generation: start.generation,
            engine_deaths: AtomicU64::new(0),
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
            let owner = self.owners.lock().intern(record.owner);
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
        self.backup = Some(Class::named("backup file").mutex(backup));
        Ok(self)
    }

    pub fn now_ms(&self) -> u64 {
        self.begin.elapsed().as_millis() as u64
    }

    pub fn has_backup(&self) -> bool {
        self.backup.is_some()
    }

    /// Whether there are notes that are not on file yet: no reply may leave then.
    pub fn has_notes(&self) -> bool {
        self.noted.load(Relaxed)
    }

    /// Puts all notes on file; no reply may leave before.
    ///
    /// # Errors
    /// If that fails: the server could promise nothing any more, and must stop.
    pub fn commit(&self, meter: &Meter) -> Result<(), Error> {
        let Some(backup) = &self.backup else {
            return Ok(());
        };
        if !self.has_notes() {
            return Ok(());
        }
        let mut backup = backup.lock();
        meter.during(State::Disk, || backup.commit())?;
        // Only now, and before anybody can note more: another thread that finds nothing noted
        // sends replies at once, and what it noted before must be on file by then.
        self.noted.store(false, Relaxed);
        Ok(())
    }

    /// Clients that are connected.
    pub fn clients(&self) -> u64 {
        self.per_thread.iter().map(|it| it.open.load(Relaxed)).sum()
    }

    /// Whose death ends the connections of an I/O thread: the number of the engine, from 0, if it is
    /// a process.
    pub fn home(&self, io_thread: usize) -> usize {
        match self.settings.engines {
            Engines::Threads => 0,
            Engines::Processes => io_thread,
        }
    }

    /// Starts what runs beside the engines, in one of them, until it is dropped.
    pub fn start_checkpointer(&self) -> Result<Option<Checkpointer>, Error> {
        let checkpointer = self
            .records
            .as_ref()
            .map(|it| it.engine.start_checkpointer());
        let checkpointer = checkpointer.transpose();
        checkpointer.map_err(|fault| Error::RecordsStopped(fault.to_string()))
    }

    /// Ends the sessions of an engine that has died, from 0.
    pub fn end_sessions_of(&self, engine: usize) {
        self.engine_deaths.fetch_add(1, Relaxed);
        if let Some(records) = &self.records {
            records.engine.end_sessions_of(engine as u32 + 1);
        }
        // Whoever dies in between leaves locks behind of which nobody knows whose they are.
        let _whole = Section::enter(Class::named("ending sessions"));
        let silent = self.owners.lock().abandon(engine);
        for (owner, part) in silent {
            session::end_part(self, owner, part);
        }
    }

    /// Ends the services.
    ///
    /// # Errors
    /// What stopped one of them, if something did.
    pub fn end(self) -> Result<(), Error> {
        if let Some(backup) = self.backup {
            backup.into_inner().end();
        }
        self.records.map_or(Ok(()), Records::end)
    }

    pub fn compactions(&self) -> u64 {
        let backup = self.backup.as_ref();
        backup.map_or(0, |it| it.lock().compactions)
    }
}

impl Records {
    fn open(settings: &RecordSettings) -> Result<Self, Error> {
        let opened = Engine::open_shared(&settings.folder, settings.engine.clone());
        let (engine, recovered) = opened.map_err(|source| Error::Records {
            folder: settings.folder.clone(),
            source,
        })?;
        Ok(Self { engine, recovered })
    }

    /// Opens the statement service over the records.
    fn statements(
        &self,
        asked: &StatementSettings,
        settings: &Settings,
    ) -> Result<StatementService, Error> {
        let opened = StatementService::open(asked, settings.engine_count, &self.engine);
        opened.map_err(|fault| Error::RecordsStopped(fault.to_string()))
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
        let mut backup = backup.lock();
        let owners = self.0.owners.lock();
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

//! The state of the lock service, which all engines share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use concurve_latch::{Class, Mutex, Section};
use crossbeam_utils::CachePadded;

use crate::backup::{BackupLog, Durability, Record};
use crate::error::Error;
use crate::lock_table::entry::OwnerId;
use crate::lock_table::latched::{Latching, LockTable};
use crate::lock_table::mode::{Mode, Rules, Scope};
use crate::lock_table::request::{Counts, Journal, Refusal, Request, Subject};
use crate::lock_table::usage::TableUsage;
use crate::locks::overflow::{Overflow, Overflows, largest_holders};
use crate::locks::owners::{Owners, Part};

/// The options of the lock service, after all checks.
#[derive(Debug, Clone)]
pub struct LockOptions {
    pub latching: Latching,
    pub capacity: u64,
    pub rules: Rules,
    pub backup: Option<(PathBuf, Durability)>,
}

/// The lock table, the owners of its locks, and the backup file.
#[derive(Debug)]
pub struct LockService {
    pub table: LockTable,
    pub usage: Arc<TableUsage>,
    pub owners: Mutex<Owners>,
    pub overflows: Mutex<Overflows>,
    /// Of each engine, on cache lines of its own.
    counters: Box<[CachePadded<LockCounters>]>,
    pub backup: Option<BackupLog>,
    begin: Instant,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct LockCounters {
    /// Granted requests, including those that only incremented a count.
    pub granted: AtomicU64,
    pub collisions: AtomicU64,
    pub full: AtomicU64,
    pub promotions: AtomicU64,
    pub unlocks: AtomicU64,
    pub not_held: AtomicU64,
    /// Requests of any command that were answered with an error.
    pub error_replies: AtomicU64,
}

impl LockService {
    /// Opens the backup file, if there is one, and takes every lock in it.
    ///
    /// # Errors
    /// If the file cannot be used, or its locks do not fit into the table.
    pub fn open(options: &LockOptions, engines: usize) -> Result<Self, Error> {
        let usage = Arc::new(TableUsage::new(options.capacity));
        let backup = options.backup.as_ref();
        let service = Self {
            table: LockTable::new(options.latching, options.rules, Arc::clone(&usage)),
            usage,
            owners: Class::named("owners").mutex(Owners::default()),
            overflows: Class::named("overflows").mutex(Overflows::default()),
            counters: (0..engines.max(1))
                .map(|_| CachePadded::default())
                .collect(),
            backup: backup
                .map(|(path, durability)| BackupLog::open(path, *durability))
                .transpose()?,
            begin: Instant::now(),
        };
        service.restore(options.capacity)?;
        Ok(service)
    }

    /// The counters of an engine, from 0.
    pub fn counters(&self, engine: usize) -> &LockCounters {
        &self.counters[engine % self.counters.len()]
    }

    /// Takes every lock in the backup file.
    fn restore(&self, capacity: u64) -> Result<(), Error> {
        let Some(backup) = &self.backup else {
            return Ok(());
        };
        let file = backup.file();
        for record in file.held() {
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
                self.table
                    .lock(&request, &mut ())
                    .map_err(|refusal| Error::Reload {
                        held: file.held().count() as u64,
                        capacity,
                        refusal: format!("{refusal:?}"),
                    })?;
            }
        }
        Ok(())
    }

    pub fn lock(&self, request: &Request) -> Result<Counts, Refusal> {
        self.table.lock(request, &mut self.journal())
    }

    pub fn promote(&self, request: &Request) -> Result<Counts, Refusal> {
        let promoted = self.table.promote(request, &mut self.journal());
        promoted.map(|(counts, _)| counts)
    }

    pub fn unlock(&self, request: &Request) -> Result<Counts, Refusal> {
        self.table.unlock(request, &mut self.journal())
    }

    /// Ends all holds of these parts of an owner; returns how many locks that freed.
    pub fn release_all(&self, owner: OwnerId, scope: Scope) -> u64 {
        let change = self.owners.lock().change(owner);
        let freed = self.table.release_all(owner, scope, &mut self.journal());
        self.forget_idle(owner, change);
        freed
    }

    /// No connection acts for this part of an owner any more: its dialog locks end.
    pub fn end_part(&self, owner: OwnerId, part: Part) {
        let change = self.owners.lock().change(owner);
        if part == Part::Dialog {
            let mut journal = self.journal();
            self.table.release_all(owner, Scope::DIALOG, &mut journal);
        }
        self.forget_idle(owner, change);
    }

    fn forget_idle(&self, owner: OwnerId, change: u64) {
        if !self.table.holds(owner) {
            self.owners.lock().forget(owner, change);
        }
    }

    /// An engine, from 0, has died: ends the parts of owners for which only its connections acted.
    pub fn end_sessions_of(&self, engine: usize) {
        // If this engine dies in between, it is unknown which locks are left to end.
        let _section = Section::enter(ending_sessions());
        let unattended = self.owners.lock().abandon(engine);
        for (owner, part) in unattended {
            self.end_part(owner, part);
        }
    }

    /// Counts a request that was refused because the table is full. The first one of an overflow
    /// also records the owners of most locks.
    pub fn note_overflow(&self) {
        let now_ms = self.begin.elapsed().as_millis() as u64;
        // Released before the table is read, because the table has latches of its own.
        let begins = self.overflows.lock().refused(now_ms);
        if begins {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
            let unix_ms = since_epoch.map_or(0, |it| it.as_millis() as u64);
            let (owners, arguments) = largest_holders(&self.table);
            self.overflows.lock().begin(Overflow {
                unix_ms,
                refused: 1,
                owners,
                arguments,
            });
        }
    }

    /// How many locks are held, and how many may be.
    pub fn used_and_capacity(&self) -> (u64, u64) {
        (self.usage.locks().now(), self.usage.capacity())
    }

    /// The figures of the table by name: for LOCKSTAT, INFO and the report.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let (owners, owners_peak) = {
            let owners = self.owners.lock();
            (owners.len() as u64, owners.peak() as u64)
        };
        let mut tries_made = 0;
        self.table.each_partition(|it| tries_made += it.tries_made);
        let (locks, arguments) = (self.usage.locks(), self.usage.arguments());
        let count = |of: fn(&LockCounters) -> &AtomicU64| {
            let engines = self.counters.iter();
            engines.map(|it| of(it).load(Relaxed)).sum::<u64>()
        };
        vec![
            ("locks", locks.now()),
            ("locks_peak", locks.peak()),
            ("capacity", self.usage.capacity()),
            ("memory_peak", self.usage.memory_peak()),
            ("arguments", arguments.now()),
            ("arguments_peak", arguments.peak()),
            ("owners", owners),
            ("owners_peak", owners_peak),
            ("granted", count(|it| &it.granted)),
            ("collisions", count(|it| &it.collisions)),
            ("promotions", count(|it| &it.promotions)),
            ("unlocks", count(|it| &it.unlocks)),
            ("not_held", count(|it| &it.not_held)),
            ("refused_full", count(|it| &it.full)),
            ("overflows", self.overflows.lock().total()),
            ("errors", count(|it| &it.error_replies)),
            ("tries_made", tries_made),
        ]
    }

    fn journal(&self) -> BackupJournal<'_> {
        BackupJournal(self)
    }
}

/// The class of the section in which an engine must not die: see [`LockService::end_sessions_of`].
pub(super) fn ending_sessions() -> Class {
    Class::named("ending sessions")
}

/// Writes changes of locks to the backup file, with the names of their owners.
struct BackupJournal<'a>(&'a LockService);

impl Journal for BackupJournal<'_> {
    fn held(&mut self, subject: Subject, mode: Mode, owner: OwnerId, count: u32) {
        let LockService { backup, owners, .. } = self.0;
        let Some(backup) = backup else {
            return;
        };
        backup.note(|file| {
            file.note(&Record {
                count,
                mode,
                table: subject.table,
                argument: subject.argument,
                owner: owners.lock().name(owner),
            });
        });
    }
}

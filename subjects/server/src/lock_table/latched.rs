//! The lock table that engines share, behind one latch or many: the option `--latching`.
//!
//! `Global`: one partition behind one mutex. `Record`: exact arguments are spread over stripes with a
//! mutex each, by the hash of table and argument; generic ones are in a partition of their own. An
//! exact request latches one stripe, and before it reads the generic partition if that holds a lock. A
//! generic request, or one for many arguments, latches all. Latches are always taken in that order.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use concurve_latch::{Class, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use crossbeam_utils::CachePadded;
use hashbrown::DefaultHashBuilder;

use crate::lock_table::argument::is_generic;
use crate::lock_table::entry::OwnerId;
use crate::lock_table::mode::{Rules, Scope};
use crate::lock_table::partition::Partition;
use crate::lock_table::request::{Counts, Journal, Listed, Refusal, Request, Subject};
use crate::lock_table::usage::TableUsage;

/// Latches of the exact arguments under `Record`.
const STRIPES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latching {
    /// One latch for the whole table
    Global,
    /// A latch for each small part of the table
    Record,
}

#[derive(Debug)]
pub enum LockTable {
    Global(Mutex<Partition>),
    Record(Striped),
}

#[derive(Debug)]
pub struct Striped {
    generic: RwLock<Partition>,
    /// Whether `generic` holds a lock. It becomes true while all latches are held, so whoever holds a
    /// stripe and reads false need not latch `generic`, whose latch is a cache line of all engines.
    has_generic: CachePadded<AtomicBool>,
    exact: Box<[CachePadded<Mutex<Partition>>]>,
    hasher: DefaultHashBuilder,
}

/// All partitions, latched.
struct Whole<'a> {
    generic: RwLockWriteGuard<'a, Partition>,
    exact: Vec<MutexGuard<'a, Partition>>,
}

impl LockTable {
    pub fn new(latching: Latching, rules: Rules, usage: Arc<TableUsage>) -> Self {
        let partition = || Partition::new(rules, Arc::clone(&usage));
        let stripe = Class::named("lock table");
        match latching {
            Latching::Global => LockTable::Global(stripe.mutex(partition())),
            Latching::Record => LockTable::Record(Striped {
                generic: Class::named("lock table, generic").rwlock(partition()),
                has_generic: CachePadded::default(),
                exact: (0..STRIPES)
                    .map(|_| CachePadded::new(stripe.mutex(partition())))
                    .collect(),
                hasher: DefaultHashBuilder::default(),
            }),
        }
    }

    /// Grants a lock at once or refuses it.
    pub fn lock(&self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        match self {
            LockTable::Global(partition) => partition.lock().lock(asked, journal),
            LockTable::Record(striped) => striped.lock(asked, journal),
        }
    }

    /// Ends one hold of a lock.
    pub fn unlock(&self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        match self {
            LockTable::Global(partition) => partition.lock().unlock(asked, journal),
            LockTable::Record(striped) if is_generic(asked.subject.argument) => {
                let mut generic = striped.generic.write();
                let unlocked = generic.unlock(asked, journal);
                striped.note(&generic);
                unlocked
            }
            LockTable::Record(striped) => striped.stripe(asked.subject).unlock(asked, journal),
        }
    }

    /// Promotes an O to E; returns how many optimistic locks of other owners that ended.
    pub fn promote(
        &self,
        asked: &Request,
        journal: &mut dyn Journal,
    ) -> Result<(Counts, u64), Refusal> {
        match self {
            LockTable::Global(partition) => {
                let mut partition = partition.lock();
                partition.prepare(asked.subject);
                promote(&mut [&mut partition], 0, asked, journal)
            }
            LockTable::Record(striped) => {
                let mut whole = striped.whole();
                // The generic partition is the first of those concerned.
                let at = usize::from(!is_generic(asked.subject.argument));
                let mut partitions = whole.concerned(striped, asked.subject);
                let promoted = promote(&mut partitions, at, asked, journal);
                striped.note(&whole.generic);
                promoted
            }
        }
    }

    /// Ends all holds of the parts in `scope` of an owner; returns how many locks that freed.
    pub fn release_all(&self, owner: OwnerId, scope: Scope, journal: &mut dyn Journal) -> u64 {
        let mut freed = 0;
        self.each_partition(|partition| freed += partition.release_all(owner, scope, journal));
        freed
    }

    /// Whether an owner holds anything.
    pub fn holds(&self, owner: OwnerId) -> bool {
        let mut holds = false;
        self.each_partition(|partition| holds |= partition.holds(owner));
        holds
    }

    /// Calls `call` with every lock, latching one partition after the other. Takes linear time: for
    /// tests and small tables.
    pub fn each(&self, call: &mut dyn FnMut(Listed)) {
        self.each_partition(|partition| {
            let places = 0..partition.places() as u32;
            places
                .filter_map(|at| partition.listed(at))
                .for_each(&mut *call);
        });
    }

    /// Calls `call` with each partition in turn, which alone is latched.
    pub fn each_partition(&self, mut call: impl FnMut(&mut Partition)) {
        match self {
            LockTable::Global(partition) => call(&mut partition.lock()),
            LockTable::Record(striped) => {
                let mut generic = striped.generic.write();
                call(&mut generic);
                striped.note(&generic);
                drop(generic);
                let stripes = striped.exact.iter();
                stripes.for_each(|partition| call(&mut partition.lock()));
            }
        }
    }
}

impl Striped {
    fn lock(&self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        if !is_generic(asked.subject.argument) {
            return self.lock_exact(asked, journal);
        }
        let mut whole = self.whole();
        for partition in &mut whole.exact {
            partition.prepare(asked.subject);
            if let Some(refusal) = partition.collision(asked) {
                return Err(refusal);
            }
        }
        match whole.generic.collision(asked) {
            Some(refusal) => Err(refusal),
            None => {
                let granted = whole.generic.grant(asked, journal);
                self.note(&whole.generic);
                granted
            }
        }
    }

    fn lock_exact(&self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        let mut stripe = self.stripe(asked.subject);
        if !self.has_generic.load(Relaxed) {
            return match stripe.collision(asked) {
                Some(refusal) => Err(refusal),
                None => stripe.grant(asked, journal),
            };
        }
        drop(stripe);
        let generic = self.generic.read();
        let mut stripe = self.stripe(asked.subject);
        match stripe.collision(asked).or_else(|| generic.collision(asked)) {
            Some(refusal) => Err(refusal),
            None => stripe.grant(asked, journal),
        }
    }

    /// Notes whether the generic partition, which the caller has latched for writing, holds a lock.
    fn note(&self, generic: &Partition) {
        let has = !generic.is_empty();
        if self.has_generic.load(Relaxed) != has {
            self.has_generic.store(has, Relaxed);
        }
    }

    fn stripe(&self, subject: Subject) -> MutexGuard<'_, Partition> {
        self.exact[self.number(subject)].lock()
    }

    fn number(&self, subject: Subject) -> usize {
        let hash = self.hasher.hash_one((subject.table, subject.argument));
        hash as usize % self.exact.len()
    }

    fn whole(&self) -> Whole<'_> {
        let generic = self.generic.write();
        let stripes = self.exact.iter();
        Whole {
            generic,
            exact: stripes.map(|it| it.lock()).collect(),
        }
    }
}

impl Whole<'_> {
    /// The partitions that may have arguments that overlap with a subject, prepared for the search.
    fn concerned(&mut self, striped: &Striped, subject: Subject) -> Vec<&mut Partition> {
        let mut partitions: Vec<&mut Partition> = vec![&mut self.generic];
        if is_generic(subject.argument) {
            partitions.extend(self.exact.iter_mut().map(|partition| &mut **partition));
        } else {
            partitions.push(&mut self.exact[striped.number(subject)]);
        }
        for partition in &mut partitions {
            partition.prepare(subject);
        }
        partitions
    }
}

fn promote(
    partitions: &mut [&mut Partition],
    at: usize,
    asked: &Request,
    journal: &mut dyn Journal,
) -> Result<(Counts, u64), Refusal> {
    if !partitions[at].has_optimistic(asked) {
        return Err(Refusal::NotHeld);
    }
    let mut collisions = partitions
        .iter()
        .filter_map(|it| it.promotion_collision(asked));
    if let Some(refusal) = collisions.next() {
        return Err(refusal);
    }
    let counts = partitions[at].promote(asked, journal)?;
    let ended = partitions
        .iter_mut()
        .map(|it| it.end_optimistic(asked, journal));
    Ok((counts, ended.sum()))
}

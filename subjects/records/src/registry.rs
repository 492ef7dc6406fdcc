//! The open sessions, and where in the log the transaction of each begins.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use concurve_latch::Mutex;
use crossbeam_utils::CachePadded;

use crate::admission::Slot;
use crate::classes;
use crate::held::Held;
use crate::statistics::{SessionCounts, Statistics};

/// The part of a session that others see.
pub struct Registration {
    /// Number of the session, from 0; reused after its end.
    pub number: u32,
    /// The engine that it belongs to; 0: none.
    engine: u32,
    /// No record of its transaction is before this byte of the log; `u64::MAX` if it has written
    /// none.
    pub first_lsn: AtomicU64,
    /// Where in the log its last commit ends; 0: it has none.
    pub last_commit: AtomicU64,
    pub numbers: OwnNumbers,
    pub counts: SessionCounts,
    /// It has no transaction, waits for nothing, and has nothing to confirm. Written by the session's own
    /// thread alone, or by the successor of its engine.
    pub is_at_rest: AtomicBool,
    /// Whether the admission limit counts it.
    pub slot: Slot,
    pub held: Mutex<Held>,
}

/// Numbers of transactions that a session takes at a time.
pub const NUMBERS: u64 = 256;

/// Numbers of transactions that a session has taken. Written by its own thread alone.
#[derive(Debug, Default)]
pub struct OwnNumbers {
    next: AtomicU64,
    end: AtomicU64,
}

impl OwnNumbers {
    /// The next number; `take` returns the first of [`NUMBERS`] new ones.
    pub fn next(&self, take: impl FnOnce() -> u64) -> u64 {
        let mut next = self.next.load(Relaxed);
        if next == self.end.load(Relaxed) {
            next = take();
            self.end.store(next + NUMBERS, Relaxed);
        }
        self.next.store(next + 1, Relaxed);
        next
    }
}

pub struct Registry {
    entries: Mutex<Vec<Option<Arc<CachePadded<Registration>>>>>,
    /// How many there are.
    count: CachePadded<AtomicUsize>,
    /// Sums of the sessions that have ended.
    ended: Mutex<Statistics>,
}

impl Registry {
    pub fn new() -> Self {
        let class = classes::files();
        Self {
            entries: class.mutex(Vec::new()),
            count: CachePadded::default(),
            ended: class.mutex(Statistics::default()),
        }
    }

    pub fn register(&self) -> Arc<CachePadded<Registration>> {
        let mut entries = self.entries.lock();
        let free = entries.iter().position(Option::is_none);
        let number = free.unwrap_or(entries.len());
        let entry = Arc::new(CachePadded::new(Registration {
            number: number as u32,
            engine: concurve_latch::engine(),
            first_lsn: AtomicU64::new(u64::MAX),
            last_commit: AtomicU64::new(0),
            numbers: OwnNumbers::default(),
            counts: SessionCounts::default(),
            is_at_rest: AtomicBool::new(true),
            slot: Slot::default(),
            held: classes::session().mutex(Held::default()),
        }));
        match free {
            Some(index) => entries[index] = Some(Arc::clone(&entry)),
            None => entries.push(Some(Arc::clone(&entry))),
        }
        self.count.fetch_add(1, Relaxed);
        entry
    }

    pub fn remove(&self, number: u32) {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries[number as usize].take() {
            entry.counts.add_to(&mut self.ended.lock());
            self.count.fetch_sub(1, Relaxed);
        }
    }

    /// How many sessions there are.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Takes the slot of a session that runs no transaction, if there is one.
    pub fn take_kept_slot(&self) -> bool {
        let entries = self.entries.lock();
        entries.iter().flatten().any(|it| it.slot.take_kept())
    }

    /// The sessions of an engine.
    pub fn of_engine(&self, engine: u32) -> Vec<Arc<CachePadded<Registration>>> {
        let entries = self.entries.lock();
        let each = entries.iter().flatten();
        each.filter(|it| it.engine == engine).cloned().collect()
    }

    /// Sums of the counts of all sessions; the other statistics are 0.
    pub fn statistics(&self) -> Statistics {
        let entries = self.entries.lock();
        let mut sum = *self.ended.lock();
        for entry in entries.iter().flatten() {
            entry.counts.add_to(&mut sum);
        }
        sum
    }

    /// Where in the log the oldest running transaction begins.
    pub fn first_lsn(&self) -> u64 {
        let entries = self.entries.lock();
        let each = entries.iter().flatten();
        each.map(|it| it.first_lsn.load(SeqCst))
            .min()
            .unwrap_or(u64::MAX)
    }
}

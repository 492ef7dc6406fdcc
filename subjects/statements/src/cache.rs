//! The statement cache: plans by text and options, replaced by the clock algorithm.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::{Class, Mutex};
use crossbeam_utils::CachePadded;
use hashbrown::HashTable;

use crate::plan::Plan;

/// The number of stripes of a striped cache.
const STRIPES: usize = 64;

/// The kind of statement cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Every statement is compiled each time.
    Off,
    /// One latch.
    Single,
    /// A latch for each of several stripes, which are chosen by hash.
    Striped,
}

/// Options of a session that must agree, besides the text, for a plan to be reused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SessionOptions {
    pub user: String,
    /// The database of the files.
    pub database: String,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Plans put into the statement cache.
    pub cached: u64,
    /// Plans dropped from it: to free pages, or because a file had changed.
    pub dropped: u64,
    /// Plans found there.
    pub found: u64,
    /// Statements compiled, cached or not.
    pub compiled: u64,
    /// Statements refused because no pages were free.
    pub exhausted: u64,
}

/// A plan in the cache, and the pages that it occupies. Each user holds a reference.
#[derive(Debug)]
pub struct Cached {
    pub text: String,
    pub options: SessionOptions,
    pub plan: Plan,
    pub pages: Vec<u32>,
}

#[derive(Debug)]
pub struct StatementCache {
    stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    /// Its keys are stored here, so processes forked from this one hash alike.
    hasher: RandomState,
    /// The stripe where the search for a plan to drop continues.
    hand: AtomicUsize,
}

#[derive(Debug, Default)]
struct Stripe {
    /// Indices into `slots`.
    index: HashTable<usize>,
    /// The circular list of the clock algorithm.
    slots: Vec<Slot>,
    hand: usize,
    counters: Counters,
}

#[derive(Debug)]
struct Slot {
    hash: u64,
    cached: Arc<Cached>,
    /// Found since the clock hand passed.
    used: bool,
}

impl StatementCache {
    pub fn new(is_striped: bool) -> Self {
        let class = Class::named("statement cache");
        let count = if is_striped { STRIPES } else { 1 };
        let stripe = |_| CachePadded::new(class.mutex(Stripe::default()));
        Self {
            stripes: (0..count).map(stripe).collect(),
            hasher: RandomState::new(),
            hand: AtomicUsize::new(0),
        }
    }

    pub fn hash(&self, text: &str, options: &SessionOptions) -> u64 {
        self.hasher.hash_one((text, options))
    }

    /// The plan of a text with these options, if it is for this version of the catalogue.
    pub fn find(
        &self,
        hash: u64,
        text: &str,
        options: &SessionOptions,
        version: u64,
    ) -> Option<Arc<Cached>> {
        let mut stripe = self.stripe(hash);
        let at = stripe.index_of(hash, text, options)?;
        let slot = &mut stripe.slots[at];
        if slot.cached.plan.version != version {
            return None;
        }
        slot.used = true;
        let cached = Arc::clone(&slot.cached);
        stripe.counters.found += 1;
        Some(cached)
    }

    /// Inserts a plan. Returns the plan that it replaces; or the new one itself, if another thread
    /// has inserted one in the meantime.
    pub fn insert(&self, hash: u64, new: &Arc<Cached>) -> Option<Arc<Cached>> {
        let mut stripe = self.stripe(hash);
        let Some(at) = stripe.index_of(hash, &new.text, &new.options) else {
            let at = stripe.slots.len();
            stripe.slots.push(Slot {
                hash,
                cached: Arc::clone(new),
                // Unmarked, so that plans that are used only once do not displace plans that are
                // used again.
                used: false,
            });
            let Stripe { index, slots, .. } = &mut *stripe;
            index.insert_unique(hash, at, |at| slots[*at].hash);
            stripe.counters.cached += 1;
            return None;
        };
        let slot = &mut stripe.slots[at];
        if slot.cached.plan.version >= new.plan.version {
            return Some(Arc::clone(new));
        }
        let old = std::mem::replace(&mut slot.cached, Arc::clone(new));
        stripe.counters.cached += 1;
        stripe.counters.dropped += 1;
        Some(old)
    }

    /// Drops an unused plan, if there is one: the first that was not found since the clock hand
    /// passed.
    pub fn drop_one(&self) -> Option<Arc<Cached>> {
        let (first, count) = (self.hand.load(Relaxed), self.stripes.len());
        // Two rounds: the first may only clear the marks of use.
        for at in first..first + 2 * count {
            let dropped = self.stripes[at % count].lock().drop_one();
            if dropped.is_some() {
                self.hand.store((at + 1) % count, Relaxed);
                return dropped;
            }
        }
        None
    }

    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for stripe in &self.stripes {
            let stripe = stripe.lock();
            sum.cached += stripe.counters.cached;
            sum.dropped += stripe.counters.dropped;
            sum.found += stripe.counters.found;
        }
        sum
    }

    fn stripe(&self, hash: u64) -> concurve_latch::MutexGuard<'_, Stripe> {
        // Not the bits that the hash table uses.
        let at = (hash >> 32) as usize % self.stripes.len();
        self.stripes[at].lock()
    }
}

impl Stripe {
    fn index_of(&self, hash: u64, text: &str, options: &SessionOptions) -> Option<usize> {
        let is_it = |at: &usize| {
            let cached = &self.slots[*at].cached;
            cached.text == text && cached.options == *options
        };
        self.index.find(hash, is_it).copied()
    }

    /// Moves the clock hand to the first plan without a mark of use, at most one round, and clears
    /// marks.
    fn drop_one(&mut self) -> Option<Arc<Cached>> {
        for _ in 0..self.slots.len() {
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[self.hand];
            // Held by the cache only; others can find it under this latch only.
            if Arc::strong_count(&slot.cached) > 1 {
                continue;
            }
            if std::mem::take(&mut slot.used) {
                continue;
            }
            self.counters.dropped += 1;
            return Some(self.remove(self.hand));
        }
        None
    }

    fn remove(&mut self, at: usize) -> Arc<Cached> {
        let removed = self.slots.swap_remove(at);
        if let Ok(entry) = self.index.find_entry(removed.hash, |it| *it == at) {
            entry.remove();
        }
        // The last slot has moved here.
        if let Some(moved) = self.slots.get(at) {
            let last = self.slots.len();
            if let Some(place) = self.index.find_mut(moved.hash, |it| *it == last) {
                *place = at;
            }
        }
        removed.cached
    }
}

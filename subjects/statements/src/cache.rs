//! The statement cache: plans by text and options, dropped by the clock.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::{Class, Mutex};
use hashbrown::HashTable;

use crate::plan::Plan;
use crate::service::{Counters, SessionOptions};

/// Stripes of a striped cache.
const STRIPES: usize = 64;

/// The dial `--statement-cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Every statement is compiled each time.
    Off,
    /// One latch.
    Single,
    /// A latch for each part of the hashes.
    Striped,
}

/// A plan that the cache has, and the pages that it takes. Whoever uses it has a reference.
#[derive(Debug)]
pub struct Cached {
    pub text: String,
    pub options: SessionOptions,
    pub plan: Plan,
    pub pages: Vec<u32>,
}

#[derive(Debug)]
pub struct StatementCache {
    stripes: Box<[Apart]>,
    /// With keys of its own: processes forked from this one hash alike.
    hasher: RandomState,
    /// The stripe in which the next plan is looked for that may go.
    hand: AtomicUsize,
}

/// On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Apart(Mutex<Stripe>);

#[derive(Debug, Default)]
struct Stripe {
    /// Places in `slots`.
    index: HashTable<usize>,
    /// The clock's ring.
    slots: Vec<Slot>,
    hand: usize,
    counters: Counters,
}

#[derive(Debug)]
struct Slot {
    hash: u64,
    cached: Arc<Cached>,
    /// Found since the hand came by.
    used: bool,
}

impl StatementCache {
    pub fn new(is_striped: bool) -> Self {
        let class = Class::named("statement cache");
        let count = if is_striped { STRIPES } else { 1 };
        let stripe = |_| Apart(class.mutex(Stripe::default()));
        Self {
            stripes: (0..count).map(stripe).collect(),
            hasher: RandomState::new(),
            hand: AtomicUsize::new(0),
        }
    }

    pub fn hash(&self, text: &str, options: &SessionOptions) -> u64 {
        self.hasher.hash_one((text, options))
    }

    /// The plan of a text under these options, if it is of this version of the catalogue.
    pub fn find(
        &self,
        hash: u64,
        text: &str,
        options: &SessionOptions,
        version: u64,
    ) -> Option<Arc<Cached>> {
        let mut stripe = self.stripe(hash);
        let at = stripe.place(hash, text, options)?;
        let slot = &mut stripe.slots[at];
        if slot.cached.plan.version != version {
            return None;
        }
        slot.used = true;
        let cached = Arc::clone(&slot.cached);
        stripe.counters.found += 1;
        Some(cached)
    }

    /// Puts a plan in. What it takes the place of is returned: an older one, or, if somebody was
    /// quicker, the new one itself.
    pub fn insert(&self, hash: u64, new: &Arc<Cached>) -> Option<Arc<Cached>> {
        let mut stripe = self.stripe(hash);
        let Some(at) = stripe.place(hash, &new.text, &new.options) else {
            let at = stripe.slots.len();
            stripe.slots.push(Slot {
                hash,
                cached: Arc::clone(new),
                // Of many that are used once, none takes the place of one that is used again.
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

    /// Drops a plan that nobody uses, if there is one: the first that was not found since the hand of
    /// the clock came by last.
    pub fn drop_one(&self) -> Option<Arc<Cached>> {
        let (first, count) = (self.hand.load(Relaxed), self.stripes.len());
        // Twice around: the first time may only take marks away.
        for at in first..first + 2 * count {
            let dropped = self.stripes[at % count].0.lock().drop_one();
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
            let stripe = stripe.0.lock();
            sum.cached += stripe.counters.cached;
            sum.dropped += stripe.counters.dropped;
            sum.found += stripe.counters.found;
        }
        sum
    }

    fn stripe(&self, hash: u64) -> concurve_latch::MutexGuard<'_, Stripe> {
        // Not the bits by which the table chooses.
        let at = (hash >> 32) as usize % self.stripes.len();
        self.stripes[at].0.lock()
    }
}

impl Stripe {
    fn place(&self, hash: u64, text: &str, options: &SessionOptions) -> Option<usize> {
        let is_it = |at: &usize| {
            let cached = &self.slots[*at].cached;
            cached.text == text && cached.options == *options
        };
        self.index.find(hash, is_it).copied()
    }

    /// Goes around once, and takes marks away up to the first plan without one.
    fn drop_one(&mut self) -> Option<Arc<Cached>> {
        for _ in 0..self.slots.len() {
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[self.hand];
            // Only the cache has it; others find it under this latch only.
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
        // The last one has moved here.
        if let Some(moved) = self.slots.get(at) {
            let last = self.slots.len();
            if let Some(place) = self.index.find_mut(moved.hash, |it| *it == last) {
                *place = at;
            }
        }
        removed.cached
    }
}

//! The open sessions, and where in the log the work of each begins.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use concurve_latch::Mutex;

use crate::classes;
use crate::session::Held;
use crate::statistics::{SessionCounts, Statistics};

/// What others see of a session; on a cache line of its own.
#[repr(align(128))]
pub struct Place {
    /// Number of the session, from 0; given again after its end.
    pub number: u32,
    /// The engine whose session it is; 0: none's.
    engine: u32,
    /// No record of its transaction is before this byte of the log; the greatest number if it has
    /// written none.
    pub first_lsn: AtomicU64,
    pub counts: SessionCounts,
    pub held: Mutex<Held>,
}

pub struct Registry {
    places: Mutex<Vec<Option<Arc<Place>>>>,
    /// What the sessions did that have ended.
    left: Mutex<Statistics>,
}

impl Registry {
    pub fn new() -> Self {
        let class = classes::files();
        Self {
            places: class.mutex(Vec::new()),
            left: class.mutex(Statistics::default()),
        }
    }

    pub fn enter(&self) -> Arc<Place> {
        let mut places = self.places.lock();
        let free = places.iter().position(Option::is_none);
        let number = free.unwrap_or(places.len());
        let place = Arc::new(Place {
            number: number as u32,
            engine: concurve_latch::engine(),
            first_lsn: AtomicU64::new(u64::MAX),
            counts: SessionCounts::default(),
            held: classes::session().mutex(Held::default()),
        });
        match free {
            Some(index) => places[index] = Some(Arc::clone(&place)),
            None => places.push(Some(Arc::clone(&place))),
        }
        place
    }

    pub fn leave(&self, number: u32) {
        let mut places = self.places.lock();
        if let Some(place) = places[number as usize].take() {
            place.counts.add_to(&mut self.left.lock());
        }
    }

    /// The sessions of an engine.
    pub fn of_engine(&self, engine: u32) -> Vec<Arc<Place>> {
        let places = self.places.lock();
        let each = places.iter().flatten();
        each.filter(|it| it.engine == engine).cloned().collect()
    }

    /// What all sessions did; the rest of it is 0.
    pub fn statistics(&self) -> Statistics {
        let places = self.places.lock();
        let mut sum = *self.left.lock();
        for place in places.iter().flatten() {
            place.counts.add_to(&mut sum);
        }
        sum
    }

    /// Where the oldest transaction that runs begins.
    pub fn first_lsn(&self) -> u64 {
        let places = self.places.lock();
        let each = places.iter().flatten();
        each.map(|it| it.first_lsn.load(SeqCst))
            .min()
            .unwrap_or(u64::MAX)
    }
}

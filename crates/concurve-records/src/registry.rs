//! The open sessions, and where in the log the work of each begins.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use crate::engine::POISONED;
use crate::statistics::{SessionCounts, Statistics};

/// What others see of a session; on a cache line of its own.
#[repr(align(128))]
pub struct Place {
    /// Number of the session, from 0; given again after its end.
    pub number: u32,
    /// No record of its transaction is before this byte of the log; the greatest number if it has
    /// written none.
    pub first_lsn: AtomicU64,
    pub counts: SessionCounts,
}

#[derive(Default)]
pub struct Registry {
    places: Mutex<Vec<Option<Arc<Place>>>>,
    /// What the sessions did that have ended.
    left: Mutex<Statistics>,
}

impl Registry {
    pub fn enter(&self) -> Arc<Place> {
        let mut places = self.places.lock().expect(POISONED);
        let free = places.iter().position(Option::is_none);
        let number = free.unwrap_or(places.len());
        let place = Arc::new(Place {
            number: number as u32,
            first_lsn: AtomicU64::new(u64::MAX),
            counts: SessionCounts::default(),
        });
        match free {
            Some(index) => places[index] = Some(Arc::clone(&place)),
            None => places.push(Some(Arc::clone(&place))),
        }
        place
    }

    pub fn leave(&self, number: u32) {
        let mut places = self.places.lock().expect(POISONED);
        if let Some(place) = places[number as usize].take() {
            place.counts.add_to(&mut self.left.lock().expect(POISONED));
        }
    }

    /// What all sessions did; the rest of it is 0.
    pub fn statistics(&self) -> Statistics {
        let places = self.places.lock().expect(POISONED);
        let mut sum = *self.left.lock().expect(POISONED);
        for place in places.iter().flatten() {
            place.counts.add_to(&mut sum);
        }
        sum
    }

    /// Where the oldest transaction that runs begins.
    pub fn first_lsn(&self) -> u64 {
        let places = self.places.lock().expect(POISONED);
        let each = places.iter().flatten();
        each.map(|it| it.first_lsn.load(SeqCst))
            .min()
            .unwrap_or(u64::MAX)
    }
}

//! Where new records and nodes go.
//!
//! Kept in memory alone, and read off the pages at a start. A slot is given here only after its last
//! transaction is finished in the log, so that no undo ever meets somebody else's record.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::Mutex;

use crate::apart::Apart;
use crate::classes;
use crate::slots::Position;
use crate::tree::Pages;

/// Sessions of different stripes put records on different pages.
const STRIPES: usize = 16;

/// The free slots and pages of a file.
pub struct Room {
    slots: Box<[Apart<Mutex<Vec<Position>>>]>,
    blank: Mutex<Vec<u32>>,
    /// Pages of the file.
    pages: AtomicU32,
}

impl Room {
    /// No room at all, until it is read off the pages.
    pub fn new() -> Self {
        let class = classes::room();
        let stripe = |_| Apart(class.mutex(Vec::new()));
        Self {
            slots: (0..STRIPES).map(stripe).collect(),
            blank: class.mutex(Vec::new()),
            pages: AtomicU32::new(0),
        }
    }

    /// What the pages say, in the place of what was known.
    pub fn set(&self, pages: u32, blank: Vec<u32>, free: Vec<Position>) {
        self.pages.store(pages, Relaxed);
        *self.blank.lock() = blank;
        for stripe in &self.slots {
            stripe.lock().clear();
        }
        for position in free.into_iter().rev() {
            self.give(position.page, position);
        }
    }

    /// A free slot, from the session's own stripe or another one that has some.
    pub fn take(&self, session: u32) -> Option<Position> {
        let stripes = (0..STRIPES as u32).map(|step| self.stripe(session.wrapping_add(step)));
        for stripe in stripes {
            if let Some(position) = stripe.lock().pop() {
                return Some(position);
            }
        }
        None
    }

    pub fn give(&self, session: u32, position: Position) {
        self.stripe(session).lock().push(position);
    }

    /// All slots of a new page.
    pub fn give_page(&self, session: u32, page: u32, slots: usize) {
        let positions = (0..slots as u16).rev().map(|slot| Position { page, slot });
        self.stripe(session).lock().extend(positions);
    }

    /// Pages of the file.
    pub fn pages(&self) -> u32 {
        self.pages.load(Relaxed)
    }

    fn stripe(&self, session: u32) -> &Mutex<Vec<Position>> {
        &self.slots[session as usize % STRIPES]
    }
}

impl Pages for Room {
    fn new_page(&self) -> u32 {
        let blank = self.blank.lock().pop();
        blank.unwrap_or_else(|| self.pages.fetch_add(1, Relaxed))
    }
}

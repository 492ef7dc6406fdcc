//! Free slots and pages, for new records and nodes.
//!
//! Kept in memory only, and found by reading the pages at a start. A slot is added only after its
//! last transaction is finished in the log, so that an undo never finds the record of another
//! transaction.

use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::Mutex;

use crate::classes;
use crate::counted::AtomicU32;
use crate::slots::Position;
use crate::tree::Pages;
use crossbeam_utils::CachePadded;

/// Sessions of different stripes insert records on different pages.
const STRIPES: usize = 16;

/// The free slots and pages of a file.
pub struct FreeSpace {
    slots: Box<[CachePadded<Mutex<Vec<Position>>>]>,
    blank: Mutex<Vec<u32>>,
    /// Pages of the file.
    pages: AtomicU32,
}

impl FreeSpace {
    /// No free space, until it is found in the pages.
    pub fn new() -> Self {
        let class = classes::free_space();
        let stripe = |_| CachePadded::new(class.mutex(Vec::new()));
        Self {
            slots: (0..STRIPES).map(stripe).collect(),
            blank: class.mutex(Vec::new()),
            pages: AtomicU32::new(0),
        }
    }

    /// Replaces the contents.
    pub fn set(&self, pages: u32, blank: Vec<u32>, free: Vec<Position>) {
        self.pages.store(pages, Relaxed);
        *self.blank.lock() = blank;
        for stripe in &self.slots {
            stripe.lock().clear();
        }
        for position in free.into_iter().rev() {
            self.add(position.page, position);
        }
    }

    /// Takes a free slot, from the session's own stripe or another one.
    pub fn take(&self, session: u32) -> Option<Position> {
        let stripes = (0..STRIPES as u32).map(|step| self.stripe(session.wrapping_add(step)));
        for stripe in stripes {
            if let Some(position) = stripe.lock().pop() {
                return Some(position);
            }
        }
        None
    }

    pub fn add(&self, session: u32, position: Position) {
        self.stripe(session).lock().push(position);
    }

    /// Adds all slots of a new page.
    pub fn add_page(&self, session: u32, page: u32, slots: usize) {
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

impl Pages for FreeSpace {
    fn new_page(&self) -> u32 {
        let blank = self.blank.lock().pop();
        blank.unwrap_or_else(|| self.pages.fetch_add(1, Relaxed))
    }
}

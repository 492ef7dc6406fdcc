//! Free slots and pages, for new records and nodes.
//!
//! Kept in memory only, and found by reading the pages at a start. A slot is added only after its
//! last transaction is finished in the log, so that an undo never finds the record of another
//! transaction.
//!
//! A session fills pages of its own: it takes a new page rather than slots of the page that another
//! session is filling. So sessions that insert do not wait for each other's pages, and a file is larger
//! by one page for each stripe at most.

use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::Mutex;
use crossbeam_utils::CachePadded;

use crate::classes;
use crate::counted::AtomicU32;
use crate::slots::Position;
use crate::tree::Pages;

/// Sessions of different stripes insert records on different pages.
const STRIPES: usize = 16;

/// The free slots and pages of a file.
pub struct FreeSpace {
    slots: Box<[CachePadded<Mutex<Slots>>]>,
    /// In lines of their own: who reads the file uses what stands beside it.
    growth: CachePadded<Growth>,
}

/// Free slots for the sessions of a stripe.
#[derive(Default)]
struct Slots {
    free: Vec<Position>,
    /// Slots of the page that they are filling; 0: none.
    of_page: usize,
}

/// Where new pages come from.
struct Growth {
    blank: Mutex<Vec<u32>>,
    /// Pages of the file.
    pages: AtomicU32,
}

impl FreeSpace {
    /// No free space, until it is found in the pages.
    pub fn new() -> Self {
        let class = classes::free_space();
        let stripe = |_| CachePadded::new(class.mutex(Slots::default()));
        Self {
            slots: (0..STRIPES).map(stripe).collect(),
            growth: CachePadded::new(Growth {
                blank: class.mutex(Vec::new()),
                pages: AtomicU32::new(0),
            }),
        }
    }

    /// Replaces the contents.
    pub fn set(&self, pages: u32, blank: Vec<u32>, free: Vec<Position>) {
        self.growth.pages.store(pages, Relaxed);
        *self.growth.blank.lock() = blank;
        for stripe in &self.slots {
            *stripe.lock() = Slots::default();
        }
        for position in free.into_iter().rev() {
            self.add(position.page, position);
        }
    }

    /// Takes a free slot, from a stripe, or from another one that has more than the page
    /// that its sessions are filling.
    pub fn take(&self, stripe: u32) -> Option<Position> {
        {
            let mut own = self.stripe(stripe).lock();
            if let Some(position) = own.free.pop() {
                return Some(position);
            }
            own.of_page = 0;
        }
        let others = (1..STRIPES as u32).map(|step| self.stripe(stripe.wrapping_add(step)));
        others.map(|it| it.lock()).find_map(|mut other| {
            let has_more = other.free.len() > other.of_page;
            has_more.then(|| other.free.pop()).flatten()
        })
    }

    pub fn add(&self, stripe: u32, position: Position) {
        self.stripe(stripe).lock().free.push(position);
    }

    /// Adds all slots of a new page.
    pub fn add_page(&self, stripe: u32, page: u32, slots: usize) {
        let positions = (0..slots as u16).rev().map(|slot| Position { page, slot });
        let mut stripe = self.stripe(stripe).lock();
        stripe.free.extend(positions);
        stripe.of_page = slots;
    }

    /// Pages of the file.
    pub fn pages(&self) -> u32 {
        self.growth.pages.load(Relaxed)
    }

    fn stripe(&self, stripe: u32) -> &Mutex<Slots> {
        &self.slots[stripe as usize % STRIPES]
    }
}

impl Pages for FreeSpace {
    fn new_page(&self) -> u32 {
        let blank = self.growth.blank.lock().pop();
        blank.unwrap_or_else(|| self.growth.pages.fetch_add(1, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: usize = 4;

    /// The pages of the slots that sessions take in turn, each from a new page if there is no free slot.
    fn pages_of(space: &FreeSpace, sessions: [u32; 2], rounds: usize) -> [Vec<u32>; 2] {
        let mut pages = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (session, taken) in sessions.into_iter().zip(&mut pages) {
                let position = space.take(session).unwrap_or_else(|| {
                    space.add_page(session, space.new_page(), SLOTS);
                    space.take(session).unwrap()
                });
                taken.push(position.page);
            }
        }
        pages
    }

    #[test]
    fn sessions_fill_pages_of_their_own() {
        let space = FreeSpace::new();
        // The first one begins earlier, so that it needs its next page while the other is filling one.
        space.add_page(0, space.new_page(), 2);
        let [one, other] = pages_of(&space, [0, 1], 10 * SLOTS);
        assert!(one.iter().all(|it| !other.contains(it)));
        assert!(space.pages() <= 22);
    }

    #[test]
    fn free_slots_of_others_are_used_before_the_file_grows() {
        let space = FreeSpace::new();
        let free = (0..40).map(|page| Position { page, slot: 0 }).collect();
        space.set(40, Vec::new(), free);
        let mut taken: Vec<u32> = (0..40).map(|_| space.take(3).unwrap().page).collect();
        taken.sort_unstable();
        assert_eq!(taken, Vec::from_iter(0..40));
        assert_eq!(space.take(3), None);
        // Slots that become free beside a page that is being filled are used, too.
        space.add_page(5, 40, SLOTS);
        space.add(5, Position { page: 7, slot: 0 });
        assert!(space.take(3).is_some());
        assert_eq!(space.take(3), None);
        // Nobody fills that page any more once its sessions have used it up.
        (0..SLOTS).for_each(|_| assert!(space.take(5).is_some()));
        assert_eq!(space.take(5), None);
        space.add(5, Position { page: 8, slot: 0 });
        assert!(space.take(3).is_some());
    }
}

//! The procedure cache: pages for plans, some in each engine's own part and the rest in a global one.
//!
//! Half of the pages may be in the engines' parts, an equal share in each. An engine takes pages from
//! its own part, which nobody else wants usually, then from the global one, whose latch all engines
//! want. What it gives back goes the other way.

use concurve_latch::{Class, Mutex, Spin};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 2 << 10;

/// Pages of the largest piece: 64 KiB.
const PIECE_MAX: usize = 32;

/// Pages by number. Each is in one list, or in a plan's.
type Pages = Vec<u32>;

#[derive(Debug)]
pub struct ProcedureCache {
    total: usize,
    local_max: usize,
    locals: Box<[Apart<Mutex<Pages>>]>,
    global: Mutex<Pages>,
}

/// On cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// Pages that a plan of so many bytes takes: pieces of 2 KiB, 4 KiB … 64 KiB, and further ones of
/// 64 KiB, until it fits.
pub fn pages_for(bytes: usize) -> usize {
    let (mut pages, mut piece) = (0, 1);
    while pages * PAGE_BYTES < bytes.max(1) {
        pages += piece;
        piece = (piece * 2).min(PIECE_MAX);
    }
    pages
}

impl ProcedureCache {
    /// All pages are in the global part at first. `spin`: how its latch is waited for.
    pub fn new(pages: usize, engines: usize, spin: Spin) -> Self {
        let own = Class::named("procedure cache, engine's own");
        let global = Class::named("procedure cache").spinning(spin);
        let numbers = (0..pages).map(|it| u32::try_from(it).expect("few pages"));
        Self {
            total: pages,
            local_max: pages / 2 / engines.max(1),
            locals: (0..engines.max(1))
                .map(|_| Apart(own.mutex(Vec::new())))
                .collect(),
            global: global.mutex(numbers.collect()),
        }
    }

    pub fn pages(&self) -> usize {
        self.total
    }

    /// Pages in nobody's use; exact while nobody takes or gives.
    pub fn free(&self) -> usize {
        let own = self.locals.iter().map(|it| it.0.lock().len());
        own.sum::<usize>() + self.global.lock().len()
    }

    /// Takes so many pages, from the engine's own part first. `None`, and nothing is taken, if these
    /// two parts have too few.
    pub fn take(&self, engine: usize, count: usize) -> Option<Pages> {
        let mut own = self.local(engine).lock();
        let mut taken = take_from(&mut own, count);
        if taken.len() == count {
            return Some(taken);
        }
        let mut global = self.global.lock();
        let missing = count - taken.len();
        if global.len() < missing {
            drop(global);
            own.append(&mut taken);
            return None;
        }
        taken.extend(take_from(&mut global, missing));
        // Some more, so that the next ones need not come here.
        let more = (self.local_max / 4).min(global.len());
        own.extend(take_from(&mut global, more));
        Some(taken)
    }

    /// Takes from the other engines' parts, too: when nothing else helps.
    pub fn take_from_all(&self, engine: usize, count: usize) -> Option<Pages> {
        let mut found = Vec::new();
        for local in &self.locals {
            found.append(&mut local.0.lock());
        }
        self.global.lock().append(&mut found);
        self.take(engine, count)
    }

    /// Takes pages back, into the engine's own part while there is room in it.
    pub fn give_back(&self, engine: usize, mut pages: Pages) {
        let mut own = self.local(engine).lock();
        let room = self.local_max.saturating_sub(own.len());
        let beyond = pages.split_off(room.min(pages.len()));
        own.append(&mut pages);
        drop(own);
        if !beyond.is_empty() {
            self.global.lock().extend(beyond);
        }
    }

    fn local(&self, engine: usize) -> &Mutex<Pages> {
        &self.locals[engine % self.locals.len()].0
    }
}

/// The last pages of a list, as many as there are.
fn take_from(list: &mut Pages, count: usize) -> Pages {
    list.split_off(list.len() - count.min(list.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn plans_grow_by_doubling_pieces() {
        let kib = |it: usize| (pages_for(it << 10) * PAGE_BYTES) >> 10;
        assert_eq!([0, 1, 2].map(kib), [2, 2, 2]);
        assert_eq!([3, 6, 7, 14, 62, 126].map(kib), [6, 6, 14, 14, 62, 126]);
        // 2 + 4 + … + 64 KiB, then 64 KiB more.
        assert_eq!(kib(127), 190);
    }

    proptest! {
        #[test]
        fn no_page_is_given_twice_and_none_is_lost(
            steps in prop::collection::vec((0..4, 0_usize..3, 1_usize..12), 1..200)
        ) {
            let cache = ProcedureCache::new(60, 3, Spin::Times(10));
            let mut taken: Vec<Pages> = Vec::new();
            for (step, engine, count) in steps {
                let in_use: usize = taken.iter().map(Vec::len).sum();
                match step {
                    0 if !taken.is_empty() => {
                        let pages = taken.swap_remove(count % taken.len());
                        cache.give_back(engine, pages);
                    }
                    1 => {
                        let pages = cache.take_from_all(engine, count);
                        prop_assert_eq!(pages.is_some(), in_use + count <= 60);
                        taken.extend(pages);
                    }
                    _ => taken.extend(cache.take(engine, count)),
                }
                let all: Vec<u32> = taken.iter().flatten().copied().collect();
                let distinct: HashSet<u32> = all.iter().copied().collect();
                prop_assert_eq!(distinct.len(), all.len());
                prop_assert_eq!(cache.free() + all.len(), 60);
                for local in &cache.locals {
                    prop_assert!(local.0.lock().len() <= cache.local_max);
                }
            }
        }
    }
}

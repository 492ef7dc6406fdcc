//! The procedure cache: pages for plans, some in each engine's local part and the rest in a global
//! one.
//!
//! Up to half of the pages may be in the local parts, an equal share in each. An engine takes pages
//! from its local part, whose latch is usually uncontended, then from the global one, whose latch
//! all engines share. It returns pages in the same order.

use concurve_latch::{Class, Mutex, Spin};
use crossbeam_utils::CachePadded;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 2 << 10;

/// Pages of the largest chunk: 64 KiB.
const CHUNK_PAGES_MAX: usize = 32;

/// Numbers of pages. Each page is in one list, or in that of a plan.
type Pages = Vec<u32>;

#[derive(Debug)]
pub struct ProcedureCache {
    total: usize,
    local_max: usize,
    locals: Box<[CachePadded<Mutex<Pages>>]>,
    global: Mutex<Pages>,
}

/// The number of pages for a plan of so many bytes: chunks of 2 KiB, 4 KiB … 64 KiB, and further
/// ones of 64 KiB, until it fits.
pub fn pages_for(bytes: usize) -> usize {
    let (mut pages, mut chunk) = (0, 1);
    while pages * PAGE_BYTES < bytes.max(1) {
        pages += chunk;
        chunk = (chunk * 2).min(CHUNK_PAGES_MAX);
    }
    pages
}

impl ProcedureCache {
    /// All pages are in the global part at first. `spin`: how threads wait for its latch.
    pub fn new(pages: usize, engines: usize, spin: Spin) -> Self {
        let own = Class::named("procedure cache, engine's own");
        let global = Class::named("procedure cache").spinning(spin);
        let numbers = (0..pages).map(|it| u32::try_from(it).expect("few pages"));
        Self {
            total: pages,
            local_max: pages / 2 / engines.max(1),
            locals: (0..engines.max(1))
                .map(|_| CachePadded::new(own.mutex(Vec::new())))
                .collect(),
            global: global.mutex(numbers.collect()),
        }
    }

    pub fn pages(&self) -> usize {
        self.total
    }

    /// The number of free pages; exact while no thread takes or returns any.
    pub fn free(&self) -> usize {
        let own = self.locals.iter().map(|it| it.lock().len());
        own.sum::<usize>() + self.global.lock().len()
    }

    /// Takes pages, from the engine's local part first. `None`, and nothing is taken, if the local
    /// and the global part have too few.
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
        // Some more, so that the next calls do not need the global latch.
        let more = (self.local_max / 4).min(global.len());
        own.extend(take_from(&mut global, more));
        Some(taken)
    }

    /// As `take`, but also from the local parts of the other engines: if everything else fails.
    pub fn take_from_all(&self, engine: usize, count: usize) -> Option<Pages> {
        let mut found = Vec::new();
        for local in &self.locals {
            found.append(&mut local.lock());
        }
        self.global.lock().append(&mut found);
        self.take(engine, count)
    }

    /// Returns pages, to the engine's local part up to its limit, and the others to the global one.
    pub fn give_back(&self, engine: usize, mut pages: Pages) {
        let mut own = self.local(engine).lock();
        let space = self.local_max.saturating_sub(own.len());
        let beyond = pages.split_off(space.min(pages.len()));
        own.append(&mut pages);
        drop(own);
        if !beyond.is_empty() {
            self.global.lock().extend(beyond);
        }
    }

    fn local(&self, engine: usize) -> &Mutex<Pages> {
        &self.locals[engine % self.locals.len()]
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
    fn plans_grow_by_doubling_chunks() {
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
                    prop_assert!(local.lock().len() <= cache.local_max);
                }
            }
        }
    }
}

//! A hash table of numbers.
//!
//! Linear probing over slots of eight bytes: a search mostly reads one cache line, where a table
//! with separate control bytes reads two. A slot contains 32 bits of the hash, so a search compares
//! few other entries, and growing compares none.

use concurve_probe::huge_pages;

/// A slot without a number.
const EMPTY: u64 = u64::MAX;

const SLOTS_MIN: usize = 16;

#[derive(Debug, Default)]
pub struct Index {
    /// A slot has the hash in its upper half and the number in its lower half. The number of slots
    /// is a power of two; at most three quarters are in use.
    slots: Vec<u64>,
    length: usize,
}

fn number(slot: u64) -> u32 {
    slot as u32
}

fn hash_of(slot: u64) -> u32 {
    (slot >> 32) as u32
}

impl Index {
    /// The number that was inserted with this hash and for which `is_it` is true.
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let at = self.position(hash, &mut is_it)?;
        Some(number(self.slots[at]))
    }

    /// Adds a number below `u32::MAX`.
    pub fn insert(&mut self, hash: u64, number: u32) {
        if (self.length + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.length += 1;
        self.put(hash & !u64::from(u32::MAX) | u64::from(number));
    }

    /// Removes a number that was inserted with this hash.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let Some(mut hole) = self.position(hash, &mut |it| it == number) else {
            return;
        };
        // Moves up the slots that follow, but none to before the place of its hash.
        let last = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & last;
            let slot = self.slots[at];
            if slot == EMPTY {
                break;
            }
            let from_place = at.wrapping_sub(self.place(hash_of(slot))) & last;
            if from_place >= (at.wrapping_sub(hole) & last) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
        self.length -= 1;
    }

    fn position(&self, hash: u64, is_it: &mut impl FnMut(u32) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let (hash, last) = ((hash >> 32) as u32, self.slots.len() - 1);
        let mut at = self.place(hash);
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return None;
            }
            if hash_of(slot) == hash && is_it(number(slot)) {
                return Some(at);
            }
            at = (at + 1) & last;
        }
    }

    fn place(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn put(&mut self, slot: u64) {
        let last = self.slots.len() - 1;
        let mut at = self.place(hash_of(slot));
        while self.slots[at] != EMPTY {
            at = (at + 1) & last;
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SLOTS_MIN);
        let mut grown = Vec::with_capacity(slots);
        huge_pages::prefer(grown.spare_capacity_mut());
        grown.resize(slots, EMPTY);
        for slot in std::mem::replace(&mut self.slots, grown) {
            if slot != EMPTY {
                self.put(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_was_inserted_and_nothing_else(
            // Few places and fewer hashes, so that many collide and the end wraps around.
            steps in proptest::collection::vec((0..40_u32, prop_oneof![0..4_u64, 12..16_u64]), 1..200),
        ) {
            let (mut index, mut plain) = (Index::default(), BTreeMap::new());
            for (number, place) in steps {
                match plain.remove(&number) {
                    Some(hash) => index.remove(hash, number),
                    None => {
                        let hash = place << 32;
                        plain.insert(number, hash);
                        index.insert(hash, number);
                    }
                }
                for number in 0..40 {
                    for place in 0..16 {
                        let hash = place << 32;
                        let expected = (plain.get(&number) == Some(&hash)).then_some(number);
                        prop_assert_eq!(index.find(hash, |it| it == number), expected);
                    }
                }
            }
            prop_assert_eq!(index.length, plain.len());
        }
    }
}

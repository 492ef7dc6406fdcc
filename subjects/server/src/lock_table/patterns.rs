//! Generic arguments of one length, found by what an exact request has at their fixed positions.
//!
//! A pattern is a set of wildcard positions. With `@` at these positions, the argument of a request
//! becomes the only generic argument of this pattern that overlaps with it, so one probe of a hash
//! table shows whether that argument has locks. The probes are independent of each other, and one
//! byte of the hash table mostly suffices to exclude an argument: some nanoseconds for each
//! pattern.

use std::hash::{BuildHasher, Hasher};
use std::ops::ControlFlow;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::lock_table::argument::{LENGTH_MAX, WILDCARD};

/// Number of eight-byte words of the longest argument.
const WORDS_MAX: usize = LENGTH_MAX.div_ceil(8);

/// A word of eight wildcards.
const WILD: u64 = u64::from_ne_bytes([WILDCARD; 8]);

/// Most patterns that are probed one by one.
pub const PATTERNS_MAX: usize = 1024;

#[derive(Debug, Default)]
pub struct Patterns {
    /// Words of an argument of this length.
    words: usize,
    /// For each pattern `words` words, with all bits set in the bytes of wildcard positions.
    masks: Vec<u64>,
    /// For each pattern the number of arguments held.
    counts: Vec<u32>,
    /// Hash and number of each argument.
    held: HashTable<(u64, u32)>,
    hasher: DefaultHashBuilder,
}

/// An argument as words; the last word is padded with zeros.
struct Words([u64; WORDS_MAX]);

impl Words {
    fn new(argument: &[u8]) -> Self {
        let mut words = [0; WORDS_MAX];
        for (word, bytes) in words.iter_mut().zip(argument.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        Self(words)
    }
}

impl Patterns {
    /// For arguments of this length.
    pub fn new(length: usize) -> Self {
        Self {
            words: length.div_ceil(8),
            ..Self::default()
        }
    }

    /// Patterns that occur.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Adds a generic argument that is not in it.
    pub fn insert(&mut self, argument: &[u8], number: u32) {
        let mask = self.mask(argument);
        match self.position(&mask) {
            Some(at) => self.counts[at] += 1,
            None => {
                self.masks.extend_from_slice(&mask);
                self.counts.push(1);
            }
        }
        let hash = self.hash(Words::new(argument).0.into_iter().take(self.words));
        self.held.insert_unique(hash, (hash, number), |it| it.0);
    }

    /// Removes a generic argument that is in it.
    pub fn remove(&mut self, argument: &[u8], number: u32) {
        let mask = self.mask(argument);
        if let Some(at) = self.position(&mask) {
            self.counts[at] -= 1;
            if self.counts[at] == 0 {
                self.forget(at);
            }
        }
        let hash = self.hash(Words::new(argument).0.into_iter().take(self.words));
        if let Ok(found) = self.held.find_entry(hash, |it| it.1 == number) {
            found.remove();
        }
    }

    /// Visits the held arguments that overlap with an exact one by their hash, until the visitor
    /// breaks. Hashes may collide, so the visitor must compare.
    pub fn overlapping<B>(
        &self,
        exact: &[u8],
        visit: &mut impl FnMut(u32) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let words = Words::new(exact).0;
        // Usual lengths have a loop with a constant number of words, which the compiler unrolls.
        match self.words {
            1 => self.probe(&words, arrays::<1>(&self.masks), visit),
            2 => self.probe(&words, arrays::<2>(&self.masks), visit),
            3 => self.probe(&words, arrays::<3>(&self.masks), visit),
            4 => self.probe(&words, arrays::<4>(&self.masks), visit),
            _ => self.probe(&words, self.masks.chunks_exact(self.words), visit),
        }
    }

    fn probe<B>(
        &self,
        words: &[u64],
        masks: impl Iterator<Item: AsRef<[u64]>>,
        visit: &mut impl FnMut(u32) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        for mask in masks {
            let generic = words.iter().zip(mask.as_ref());
            let hash = self.hash(generic.map(|(word, mask)| (word & !mask) | (WILD & mask)));
            if let Some((_, number)) = self.held.find(hash, |it| it.0 == hash) {
                visit(*number)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn hash(&self, words: impl Iterator<Item = u64>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        words.for_each(|it| hasher.write_u64(it));
        hasher.finish()
    }

    fn mask(&self, argument: &[u8]) -> Vec<u64> {
        let wild = |byte: &u8| if *byte == WILDCARD { 0xff } else { 0 };
        let bytes: Vec<u8> = argument.iter().map(wild).collect();
        Words::new(&bytes).0[..self.words].to_vec()
    }

    fn position(&self, mask: &[u64]) -> Option<usize> {
        self.masks
            .chunks_exact(self.words)
            .position(|it| it == mask)
    }

    fn forget(&mut self, at: usize) {
        self.counts.swap_remove(at);
        let last = self.masks.len() - self.words;
        self.masks.copy_within(last.., at * self.words);
        self.masks.truncate(last);
    }
}

fn arrays<const N: usize>(words: &[u64]) -> impl Iterator<Item = &[u64; N]> {
    let chunks = words.chunks_exact(N);
    chunks.map(|it| it.try_into().expect("a chunk has its length"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;

    use proptest::prelude::*;

    use super::*;
    use crate::lock_table::argument::overlap;

    fn found(patterns: &Patterns, exact: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let _ = patterns.overlapping(exact.as_bytes(), &mut |number| {
            found.push(number);
            ControlFlow::<()>::Continue(())
        });
        found.sort_unstable();
        found
    }

    proptest! {
        #[test]
        fn it_finds_what_looking_at_every_argument_finds(
            steps in proptest::collection::vec(("[ab@]{10}", 0..10_usize, any::<bool>()), 1..60),
            exact in "[ab]{10}",
        ) {
            let (mut patterns, mut plain) = (Patterns::new(10), BTreeMap::new());
            for (number, (text, wild, add)) in steps.iter().enumerate() {
                // Few positions differ from what is asked, so that some overlap.
                let mut argument = exact.clone();
                argument.replace_range(0..3, &text[0..3]);
                argument.replace_range(*wild..=*wild, "@");
                let number = number as u32;
                if *add {
                    if let Entry::Vacant(place) = plain.entry(argument) {
                        patterns.insert(place.key().as_bytes(), number);
                        place.insert(number);
                    }
                } else if let Some(number) = plain.remove(&argument) {
                    patterns.remove(argument.as_bytes(), number);
                }
                let mut expected: Vec<u32> = plain
                    .iter()
                    .filter(|(held, _)| overlap(held.as_bytes(), exact.as_bytes()))
                    .map(|(_, number)| *number)
                    .collect();
                expected.sort_unstable();
                prop_assert_eq!(found(&patterns, &exact), expected);
                prop_assert_eq!(patterns.is_empty(), plain.is_empty());
            }
        }
    }
}

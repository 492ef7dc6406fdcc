//! The index of arguments of one length in one table. The first argument with a wildcard creates
//! it.

use std::ops::ControlFlow;

use crate::lock_table::argument::is_generic;
use crate::lock_table::entry::Groups;
use crate::lock_table::patterns::{PATTERNS_MAX, Patterns};
use crate::lock_table::trie::Trie;

/// Maximum number of exact arguments that wait for their insertion into the trie. Locks on many of
/// them are released before, which saves the insertion.
const RECENT_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct LengthIndex {
    pub(super) length: usize,
    /// The generic arguments: for exact requests, and for generic ones.
    patterns: Patterns,
    generic: Trie,
    /// The exact arguments, for generic requests. Made at the first of these.
    exact: Option<Exact>,
}

#[derive(Debug, Default)]
struct Exact {
    trie: Trie,
    /// Arguments that were added since. A number may be listed twice, or may belong to another
    /// argument by now.
    recent: Vec<u32>,
}

impl LengthIndex {
    pub(super) fn new(length: usize) -> Self {
        Self {
            length,
            patterns: Patterns::new(length),
            generic: Trie::default(),
            exact: None,
        }
    }

    pub(super) fn add_generic(&mut self, argument: &[u8], number: u32) {
        self.patterns.insert(argument, number);
        self.generic.insert(argument, number);
    }

    pub(super) fn remove_generic(&mut self, argument: &[u8], number: u32) {
        self.patterns.remove(argument, number);
        self.generic.remove(argument);
    }

    pub(super) fn add_exact(&mut self, number: u32, table: u32, groups: &mut Groups) {
        if let Some(exact) = &mut self.exact {
            exact.recent.push(number);
            if exact.recent.len() > RECENT_MAX {
                exact.catch_up(table, self.length, groups);
            }
        }
    }

    /// Removes an argument that is in the trie.
    pub(super) fn remove_exact(&mut self, argument: &[u8]) {
        if let Some(exact) = &mut self.exact {
            exact.trie.remove(argument);
        }
    }

    /// Adds all exact arguments, for a generic request. True if that took a pass over all locks, as
    /// the first call does.
    pub(super) fn prepare(&mut self, table: u32, groups: &mut Groups) -> bool {
        let is_first = self.exact.is_none();
        let exact = self.exact.get_or_insert_default();
        if is_first {
            exact.recent = groups.iter().map(|(at, _)| at).collect();
        }
        exact.catch_up(table, self.length, groups);
        is_first
    }

    /// Visits the generic arguments that overlap with `asked`, and the exact ones too if `asked` is
    /// generic itself. A few that do not overlap may be among them.
    pub(super) fn overlapping<B>(
        &self,
        asked: &[u8],
        visit: &mut impl FnMut(u32) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        if is_generic(asked) {
            self.generic.overlapping(asked, visit)?;
            let exact = self.exact.as_ref();
            return exact.map_or(ControlFlow::Continue(()), |exact| {
                exact.trie.overlapping(asked, visit)
            });
        }
        match self.patterns.len() {
            0..=PATTERNS_MAX => self.patterns.overlapping(asked, visit),
            _ => self.generic.overlapping(asked, visit),
        }
    }
}

impl Exact {
    /// Adds the recent arguments that are still locked to the trie.
    fn catch_up(&mut self, table: u32, length: usize, groups: &mut Groups) {
        for at in self.recent.drain(..) {
            let Some(group) = groups.get_mut(at) else {
                continue;
            };
            let argument = group.argument.as_bytes();
            let is_ours = group.table == table && argument.len() == length;
            if is_ours && !group.in_trie && !is_generic(argument) {
                self.trie.insert(argument, at);
                group.in_trie = true;
            }
        }
        self.recent.shrink_to(RECENT_MAX + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock_table::argument::overlap;

    const LENGTH: usize = 11;

    /// The argument `aaa…` with `@` at the positions of the bits.
    fn pattern(bits: u32) -> Vec<u8> {
        let at = |position| {
            if bits >> position & 1 == 1 {
                b'@'
            } else {
                b'a'
            }
        };
        (0..LENGTH).map(at).collect()
    }

    #[test]
    fn beyond_as_many_patterns_as_are_probed_exact_requests_find_the_same() {
        let (mut length_index, all) = (LengthIndex::new(LENGTH), 1..1 << LENGTH);
        for bits in all.clone() {
            length_index.add_generic(&pattern(bits), bits);
        }
        assert!(length_index.patterns.len() > PATTERNS_MAX);
        let mut held = all.end;
        for left in [all.end, PATTERNS_MAX as u32, 7] {
            for bits in left..held {
                length_index.remove_generic(&pattern(bits), bits);
            }
            held = left;
            for exact in [b"aaaaaaaaaaa", b"baaaaaaaaab", b"bbbbbbbbbbb"] {
                let mut found = Vec::new();
                let _ = length_index.overlapping(exact, &mut |number| {
                    found.push(number);
                    ControlFlow::<()>::Continue(())
                });
                found.sort_unstable();
                let overlaps = |bits: &u32| overlap(&pattern(*bits), exact);
                let expected: Vec<u32> = (1..left).filter(overlaps).collect();
                assert_eq!(found, expected, "{left} patterns");
            }
        }
    }
}

//! The crowd of an argument, and the chain of an owner's locks.

use std::hash::BuildHasher;

use super::{Book, Chain};
use crate::locks::entry::OwnerId;
use crate::locks::slab::NONE;

impl Book {
    pub(super) fn join_crowd(&mut self, at: u32) {
        let (hasher, entries) = (&self.hasher, &self.entries);
        let key = |at: u32| {
            let entry = &entries[at];
            hasher.hash_one((entry.group, entry.owner, entry.mode))
        };
        self.crowd.insert_unique(key(at), at, |it| key(*it));
    }

    pub(super) fn leave_crowd(&mut self, at: u32) {
        let entry = &self.entries[at];
        let hash = self.hash((entry.group, entry.owner, entry.mode));
        if let Ok(found) = self.crowd.find_entry(hash, |it| *it == at) {
            found.remove();
        }
    }

    pub(super) fn lengthen_chain(&mut self, owner: OwnerId, head: u32, at: u32) {
        if head != NONE {
            self.entries[head].owner_previous = at;
        }
        let hash = self.hash(owner);
        if let Some(chain) = self.chains.find_mut(hash, |it| it.owner == owner) {
            chain.head = at;
            chain.length += 1;
            return;
        }
        let hasher = &self.hasher;
        let chain = Chain {
            owner,
            head: at,
            length: 1,
        };
        self.chains
            .insert_unique(hash, chain, |it| hasher.hash_one(it.owner));
    }

    pub(super) fn shorten_chain(&mut self, owner: OwnerId, at: u32) {
        let (next, previous) = {
            let entry = &self.entries[at];
            (entry.owner_next, entry.owner_previous)
        };
        if next != NONE {
            self.entries[next].owner_previous = previous;
        }
        if previous != NONE {
            self.entries[previous].owner_next = next;
        }
        let hash = self.hash(owner);
        if let Ok(mut found) = self.chains.find_entry(hash, |it| it.owner == owner) {
            let chain = found.get_mut();
            chain.length -= 1;
            if chain.length == 0 {
                found.remove();
            } else if previous == NONE {
                chain.head = next;
            }
        }
    }
}

//! Finding entries, in both directions.

use crate::error::{Fault, Stop};
use crate::node;
use crate::page::{PageBytes, PageHeader};
use crate::store::Store;
use crate::tree::Tree;

/// The entry that was found and the one that follows it, each `None` if there is none, while their
/// leaves are latched.
pub struct Seen<'a> {
    pub found: Option<&'a [u8]>,
    pub follower: Option<&'a [u8]>,
}

impl Tree {
    /// Calls `visit` with the first entry that is not less than `bound`, or, with `greater`, that
    /// is greater.
    ///
    /// The entry is latched, so `visit` can lock it without waiting before any session changes it.
    pub fn first_from<R>(
        &self,
        store: &Store,
        bound: &[u8],
        greater: bool,
        visit: impl FnOnce(Option<&[u8]>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let latch = |number| self.node(store, number);
        let leaf = match self.leaf_by_look(store, bound, latch)? {
            Some(leaf) => leaf,
            None => {
                let root = self.node(store, self.root.number)?;
                self.descend(store, root, 0, |node| {
                    node::upper_bound(node, self.compared, bound)
                })?
            }
        };
        let index = if greater {
            node::upper_bound(&leaf, self.compared, bound)
        } else {
            node::lower_bound(&leaf, self.compared, bound)
        };
        let is_here = index < leaf.count();
        self.with_entry_from(store, &leaf, index, |entry| {
            if let (Some(entry), false) = (entry, is_here) {
                self.check_order(&leaf, bound, entry)?;
            }
            visit(entry)
        })
    }

    /// Calls `visit` with the last entry that is less than `bound`, or of all if there is no bound.
    pub fn last_before<R>(
        &self,
        store: &Store,
        bound: Option<&[u8]>,
        visit: impl FnOnce(Seen) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let mut bound = bound.map(<[u8]>::to_vec);
        loop {
            // The least entry that the leaf may hold, if it is not the first leaf.
            let mut fence = None;
            let root = self.node(store, self.root.number)?;
            let leaf = self.descend(store, root, 0, |node| {
                let index = self.count_before(node, bound.as_deref());
                if index > 0 {
                    fence = Some(node::entry(node, index - 1, self.compared).to_vec());
                }
                index
            })?;
            let count = self.count_before(&leaf, bound.as_deref());
            if count == 0 && fence.is_some() {
                bound = fence;
                continue;
            }
            let found = count.checked_sub(1);
            let found = found.map(|index| node::entry(&leaf, index, self.compared));
            return self.with_entry_from(store, &leaf, count, |follower| {
                visit(Seen { found, follower })
            });
        }
    }

    /// What a search goes on with beyond a leaf must be past what it began with, or a search that goes
    /// on again and again would not end.
    fn check_order(&self, leaf: &PageBytes, before: &[u8], after: &[u8]) -> Result<(), Fault> {
        if before < after {
            return Ok(());
        }
        let text = format!("{} and its neighbour have entries out of order", leaf.id());
        Err(Fault::Damaged(text))
    }

    fn count_before(&self, page: &PageBytes, bound: Option<&[u8]>) -> usize {
        bound.map_or(page.count(), |bound| {
            node::lower_bound(page, self.compared, bound)
        })
    }

    /// Calls `visit` with the entry at an index of a latched leaf, or else the first one of the
    /// next leaves.
    pub(super) fn with_entry_from<R>(
        &self,
        store: &Store,
        leaf: &PageBytes,
        index: usize,
        visit: impl FnOnce(Option<&[u8]>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        if index < leaf.count() {
            return visit(Some(node::entry(leaf, index, self.compared)));
        }
        let mut right = leaf.right();
        let mut held = None;
        let mut steps = Steps::default();
        while right != 0 {
            steps.step(self, right)?;
            // The previous leaf is released once this one is latched.
            let next = self.node(store, right)?;
            self.check_level(&next, 0)?;
            if next.count() > 0 {
                return visit(Some(node::entry(&next, 0, self.compared)));
            }
            right = next.right();
            held = Some(next);
        }
        drop(held);
        visit(None)
    }

    /// Calls `each` for all entries in order.
    pub fn each_entry(
        &self,
        store: &Store,
        mut each: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let root = self.node(store, self.root.number)?;
        let mut leaf = self.descend(store, root, 0, |_| 0)?;
        let mut steps = Steps::default();
        loop {
            for index in 0..leaf.count() {
                each(node::entry(&leaf, index, self.compared))?;
            }
            if leaf.right() == 0 {
                return Ok(());
            }
            steps.step(self, leaf.right())?;
            let next = self.node(store, leaf.right())?;
            self.check_level(&next, 0)?;
            leaf = next;
        }
    }
}

/// Notices a ring of leaves.
#[derive(Default)]
struct Steps {
    taken: u64,
    /// The leaf at the last step whose number is a power of two (Brent, BIT 20, 1980).
    seen: u32,
}

impl Steps {
    /// A step to a leaf.
    fn step(&mut self, tree: &Tree, leaf: u32) -> Result<(), Fault> {
        if leaf == self.seen {
            let text = format!("{} is to the right of itself", tree.page(leaf));
            return Err(Fault::Damaged(text));
        }
        self.taken += 1;
        if self.taken.is_power_of_two() {
            self.seen = leaf;
        }
        Ok(())
    }
}

//! The tree of a key: a B+tree of pages. Its root stays on the same page.
//!
//! Latch coupling: a page is latched before its parent or left neighbour is released, so that no
//! thread sees a node during a split. A search latches shared. A change latches only the leaf
//! exclusively; if the leaf is full, it starts again, and latches all nodes exclusively that the
//! split will change ([`split`]). The latching order is from the root down and from left to right.
//!
//! With latching by record, nodes are read without latches first ([`look`]): optimistic lock coupling.
//! A node's version is taken before its parent's is checked again, so the node was the right one then.
//! Only where that fails, or for what is changed, are nodes latched.
//!
//! Nodes are never merged: an empty leaf stays, and takes entries again.
//!
//! Bayer and Schkolnick, Concurrency of Operations on B-Trees, Acta Informatica 9 (1977). Leis,
//! Haubenschild and Neumann, Optimistic Lock Coupling, IEEE Data Engineering Bulletin 42 (2019).

pub mod check;
mod look;
mod search;
mod split;

use std::ops::Deref;

use crate::cache::{Obstacle, PageRead, PageWrite};
use crate::error::{Fault, Stop};
use crate::log::record::Record;
use crate::node;
use crate::page::{PageBytes, PageHeader, PageId};
use crate::store::Store;
pub use crate::tree::look::Found;

/// So often is a descent without latches begun again because a node changed.
const ATTEMPTS: usize = 4;

/// Allocates pages.
pub trait Pages {
    /// The number of a page that is not in use.
    fn new_page(&self) -> u32;
}

/// The root of a tree, and the length of its entries.
#[derive(Debug, Clone, Copy)]
pub struct Tree {
    pub root: PageId,
    /// Length of an entry of a leaf: key value and position.
    pub compared: usize,
}

/// Called with the entry that will follow the inserted one, `None` at the end, while the leaf is
/// latched exclusively. It may refuse the insert.
pub type Follower<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> Result<(), Stop>;

impl Tree {
    fn page(&self, number: u32) -> PageId {
        PageId {
            file: self.root.file,
            number,
        }
    }

    /// A node, latched shared.
    fn node<'a>(&self, store: &'a Store, number: u32) -> Result<PageRead<'a>, Fault> {
        let page = store.read(self.page(number))?;
        self.check_node(&page)?;
        Ok(page)
    }

    /// A node, latched exclusively.
    fn node_to_change<'a>(&self, store: &'a Store, number: u32) -> Result<PageWrite<'a>, Fault> {
        let page = store.write(self.page(number))?;
        self.check_node(&page)?;
        Ok(page)
    }

    /// What else stands on a page that a tree refers to is damage.
    fn check_node(&self, page: &PageBytes) -> Result<(), Fault> {
        if node::is_node(page, self.compared) {
            return Ok(());
        }
        let text = format!("{} is no node of a tree that refers to it", page.id());
        Err(Fault::Damaged(text))
    }

    /// A child must be on the level below its parent, or a search would not end.
    fn check_level(&self, page: &PageBytes, level: u8) -> Result<(), Fault> {
        if page.level() == level {
            return Ok(());
        }
        let text = format!("{} is not on the level below its parent", page.id());
        Err(Fault::Damaged(text))
    }

    /// Inserts an entry for a session, unless it exists already.
    pub fn insert(
        &self,
        store: &Store,
        session: u32,
        pages: &dyn Pages,
        entry: &[u8],
        follower: Follower,
    ) -> Result<(), Stop> {
        let mut leaf = self.leaf_to_change(store, entry)?;
        let index = node::lower_bound(&leaf, self.compared, entry);
        if self.is_at(&leaf, index, entry) {
            return Ok(());
        }
        if node::is_full(&leaf, self.compared) {
            drop(leaf);
            return self.insert_by_split(store, session, pages, entry, follower);
        }
        // Who locks a gap after it was found free here finds the leaf changed.
        leaf.begin_change();
        self.with_entry_from(store, &leaf, index, &mut *follower)?;
        store.insert_entry(session, &mut leaf, index, entry);
        Ok(())
    }

    /// Removes an entry, if it exists.
    pub fn remove(&self, store: &Store, entry: &[u8]) -> Result<(), Fault> {
        let mut leaf = self.leaf_to_change(store, entry)?;
        let index = node::lower_bound(&leaf, self.compared, entry);
        if self.is_at(&leaf, index, entry) {
            let record = Record::EntryOut(leaf.id(), index as u16, self.compared as u16);
            store.change(&mut leaf, &record, 0);
        }
        Ok(())
    }

    fn is_at(&self, leaf: &PageBytes, index: usize, entry: &[u8]) -> bool {
        index < leaf.count() && node::entry(leaf, index, self.compared) == entry
    }

    /// The leaf where a bound belongs, latched by `latch`, and no node above it; `None` if it is not found
    /// in this way.
    fn leaf_by_look<L: Deref<Target = PageBytes>>(
        &self,
        store: &Store,
        bound: &[u8],
        latch: impl Fn(u32) -> Result<L, Fault>,
    ) -> Result<Option<L>, Fault> {
        if !store.is_latch_free() {
            return Ok(None);
        }
        for _ in 0..ATTEMPTS {
            let (number, parent) = match self.look_for_leaf(store, bound) {
                Ok(found) => found,
                Err(Obstacle::Change) => continue,
                Err(Obstacle::Other) => break,
            };
            let leaf = latch(number)?;
            // It cannot be split any more, and was not before if its parent is as it was.
            if leaf.level() == 0 && parent.is_none_or(|it| it.is_current()) {
                return Ok(Some(leaf));
            }
        }
        Ok(None)
    }

    /// The leaf where an entry belongs, latched exclusively.
    fn leaf_to_change<'a>(&self, store: &'a Store, entry: &[u8]) -> Result<PageWrite<'a>, Fault> {
        let latch = |number| self.node_to_change(store, number);
        if let Some(leaf) = self.leaf_by_look(store, entry, latch)? {
            return Ok(leaf);
        }
        loop {
            let root = self.node(store, self.root.number)?;
            if root.level() == 0 {
                drop(root);
                let root = self.node_to_change(store, self.root.number)?;
                if root.level() == 0 {
                    return Ok(root);
                }
                continue;
            }
            let lowest = self.descend(store, root, 1, |node| {
                node::upper_bound(node, self.compared, entry)
            })?;
            let index = node::upper_bound(&lowest, self.compared, entry);
            let leaf = node::child(&lowest, index, self.compared);
            let leaf = self.node_to_change(store, leaf)?;
            self.check_level(&leaf, 0)?;
            return Ok(leaf);
        }
    }

    /// Descends from a node to one of a level, through the children that `choose` returns.
    fn descend<'a>(
        &self,
        store: &'a Store,
        mut node: PageRead<'a>,
        level: u8,
        mut choose: impl FnMut(&PageRead<'a>) -> usize,
    ) -> Result<PageRead<'a>, Fault> {
        while node.level() > level {
            let child = node::child(&node, choose(&node), self.compared);
            let child = self.node(store, child)?;
            self.check_level(&child, node.level() - 1)?;
            node = child;
        }
        Ok(node)
    }
}

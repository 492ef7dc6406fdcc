//! The tree of a key: a B+tree of pages, entered from its root, which stays where it is.
//!
//! Latches are coupled: a page is latched before the one above it or left of it is released, so
//! that nobody sees a node while it is split. A search latches shared. A change latches the leaf
//! alone exclusive; if the leaf is full, it begins again, and latches all nodes exclusive that the
//! split will change ([`split`]). The order is from the root down and from left to right.
//!
//! Nodes are never merged: a leaf without entries stays, and takes entries again.
//!
//! Bayer and Schkolnick, Concurrency of Operations on B-Trees, Acta Informatica 9 (1977).

pub mod check;
mod search;
mod split;

use crate::cache::{PageRead, PageWrite};
use crate::error::{Fault, Stop};
use crate::log::record::Record;
use crate::node;
use crate::page::PageId;
use crate::store::Store;

/// Gives numbers of pages that nobody uses.
pub trait Pages {
    fn new_page(&self) -> u32;
}

/// Where a tree is, and how long its entries are.
#[derive(Debug, Clone, Copy)]
pub struct Tree {
    pub root: PageId,
    /// Length of an entry of a leaf: key value and position.
    pub compared: usize,
}

/// Called with the entry that follows the place where one is put in, `None` at the end, while the
/// leaf is latched exclusive. It may refuse.
pub type Follower<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> Result<(), Stop>;

impl Tree {
    fn page(&self, number: u32) -> PageId {
        PageId {
            file: self.root.file,
            number,
        }
    }

    /// Puts an entry in; nothing happens if it is there already.
    pub fn insert(
        &self,
        store: &Store,
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
            return self.insert_by_split(store, pages, entry, follower);
        }
        self.with_entry_from(store, &leaf, index, &mut *follower)?;
        let record = Record::EntryIn(leaf.id(), index as u16, entry);
        store.change(&mut leaf, &record, 0);
        Ok(())
    }

    /// Takes an entry out; nothing happens if it is not there.
    pub fn remove(&self, store: &Store, entry: &[u8]) -> Result<(), Fault> {
        let mut leaf = self.leaf_to_change(store, entry)?;
        let index = node::lower_bound(&leaf, self.compared, entry);
        if self.is_at(&leaf, index, entry) {
            let record = Record::EntryOut(leaf.id(), index as u16, self.compared as u16);
            store.change(&mut leaf, &record, 0);
        }
        Ok(())
    }

    fn is_at(&self, leaf: &crate::page::Page, index: usize, entry: &[u8]) -> bool {
        index < leaf.count() && node::entry(leaf, index, self.compared) == entry
    }

    /// The leaf where an entry belongs, latched exclusive.
    fn leaf_to_change<'a>(&self, store: &'a Store, entry: &[u8]) -> Result<PageWrite<'a>, Fault> {
        loop {
            let root = store.read(self.root)?;
            if root.level() == 0 {
                drop(root);
                let root = store.write(self.root)?;
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
            return store.write(self.page(leaf));
        }
    }

    /// From a node down to one of a level, by the index of the child that `choose` says.
    fn descend<'a>(
        &self,
        store: &'a Store,
        mut node: PageRead<'a>,
        level: u8,
        mut choose: impl FnMut(&PageRead<'a>) -> usize,
    ) -> Result<PageRead<'a>, Fault> {
        while node.level() > level {
            let child = node::child(&node, choose(&node), self.compared);
            node = store.read(self.page(child))?;
        }
        Ok(node)
    }
}

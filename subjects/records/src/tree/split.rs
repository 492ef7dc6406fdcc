//! Splitting full nodes.
//!
//! A split changes several pages, and is one record of the log: after a crash it is complete or
//! absent. New contents are made in copies; nothing changes before all pages are latched.

use crate::cache::PageWrite;
use crate::error::{Fault, Stop};
use crate::node;
use crate::page::{Page, PageBytes, PageHeader, kind};
use crate::store::Store;
use crate::tree::{Follower, Pages, Tree};

/// Pages with their new contents.
type Changes<'a> = Vec<(PageWrite<'a>, Page)>;

impl Tree {
    /// Inserts an entry into a full leaf.
    pub(super) fn insert_by_split(
        &self,
        store: &Store,
        session: u32,
        pages: &dyn Pages,
        entry: &[u8],
        follower: Follower,
    ) -> Result<(), Stop> {
        let mut path = self.path_to_change(store, entry)?;
        let leaf = path.last_mut().expect("a path has a leaf");
        let index = node::lower_bound(leaf, self.compared, entry);
        if self.is_at(leaf, index, entry) {
            return Ok(());
        }
        leaf.begin_change();
        self.with_entry_from(store, leaf, index, &mut *follower)?;
        let mut changes = Vec::new();
        let mut carried = Some(entry.to_vec());
        while let Some(entry) = carried {
            let node = path
                .pop()
                .expect("the path ends at a node that is not full, or at the root");
            carried = self.add(store, pages, node, &entry, &mut changes)?;
        }
        store.replace(session, &mut changes);
        Ok(())
    }

    /// Nodes latched exclusively, from the lowest that is not full (or the root) down to the leaf.
    fn path_to_change<'a>(
        &self,
        store: &'a Store,
        entry: &[u8],
    ) -> Result<Vec<PageWrite<'a>>, Fault> {
        let mut path = vec![self.node_to_change(store, self.root.number)?];
        loop {
            let node = path.last().expect("it begins with the root");
            if node.level() == 0 {
                return Ok(path);
            }
            let index = node::upper_bound(node, self.compared, entry);
            let child = node::child(node, index, self.compared);
            let child = self.node_to_change(store, child)?;
            self.check_level(&child, node.level() - 1)?;
            if !node::is_full(&child, self.compared) {
                path.clear();
            }
            path.push(child);
        }
    }

    /// Inserts an entry into a node, and splits it if it is full; returns the entry for its parent.
    fn add<'a>(
        &self,
        store: &'a Store,
        pages: &dyn Pages,
        node: PageWrite<'a>,
        entry: &[u8],
        changes: &mut Changes<'a>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let index = node::lower_bound(&node, self.compared, &entry[..self.compared]);
        let mut entries = node::entries(&node, self.compared).to_vec();
        let at = index * entry.len();
        entries.splice(at..at, entry.iter().copied());
        if !node::is_full(&node, self.compared) {
            let mut image = Page::from(&*node);
            node::set_entries(&mut image, self.compared, &entries);
            changes.push((node, image));
            return Ok(None);
        }
        let is_last = index == node.count() && node.right() == 0;
        let split = self.halves(&node, &entries, entry.len(), is_last);
        if node.id() == self.root {
            self.raise_root(store, pages, node, split, changes)?;
            return Ok(None);
        }
        let number = pages.new_page();
        let right = store.create(self.page(number))?;
        let (mut left_image, mut right_image) = (Page::from(&*node), self.image(number, &node));
        right_image.set_right(node.right());
        right_image.set_first_child(split.first_child);
        node::set_entries(&mut right_image, self.compared, split.right);
        if node.level() == 0 {
            left_image.set_right(number);
        }
        node::set_entries(&mut left_image, self.compared, split.left);
        changes.push((node, left_image));
        changes.push((right, right_image));
        Ok(Some(split.entry_above(number)))
    }

    /// The root keeps its page: its entries move to two new children.
    fn raise_root<'a>(
        &self,
        store: &'a Store,
        pages: &dyn Pages,
        root: PageWrite<'a>,
        split: Split,
        changes: &mut Changes<'a>,
    ) -> Result<(), Fault> {
        let (left, right) = (pages.new_page(), pages.new_page());
        let (mut left_image, mut right_image) = (self.image(left, &root), self.image(right, &root));
        left_image.set_first_child(root.first_child());
        node::set_entries(&mut left_image, self.compared, split.left);
        right_image.set_first_child(split.first_child);
        node::set_entries(&mut right_image, self.compared, split.right);
        if root.level() == 0 {
            left_image.set_right(right);
        }
        let mut image = self.image(self.root.number, &root);
        image.set_level(root.level() + 1);
        image.set_first_child(left);
        node::set_entries(&mut image, self.compared, &split.entry_above(right));
        changes.push((store.create(self.page(left))?, left_image));
        changes.push((store.create(self.page(right))?, right_image));
        changes.push((root, image));
        Ok(())
    }

    /// An empty node of the same level as another one.
    fn image(&self, number: u32, like: &PageBytes) -> Page {
        let mut image = Page::formatted(self.page(number), kind::NODE);
        image.set_level(like.level());
        image
    }

    /// Divides the entries between two nodes. At the end of the tree, where ascending numbers are
    /// inserted, the left node stays full.
    fn halves<'e>(
        &self,
        node: &PageBytes,
        entries: &'e [u8],
        bytes: usize,
        is_last: bool,
    ) -> Split<'e> {
        let count = entries.len() / bytes;
        let is_leaf = node.level() == 0;
        let middle = if is_last { count - 1 } else { count / 2 };
        let (left, mut right) = entries.split_at(middle * bytes);
        let (separator, child) = right[..bytes].split_at(self.compared);
        let mut first_child = 0;
        if !is_leaf {
            first_child = u32::from_le_bytes(child.try_into().expect("a child's number"));
            right = &right[bytes..];
        }
        Split {
            left,
            right,
            separator,
            first_child,
        }
    }
}

/// The two parts of a full node.
struct Split<'a> {
    left: &'a [u8],
    right: &'a [u8],
    /// The key that separates them in the parent.
    separator: &'a [u8],
    /// The first child of the right node, if it is an inner one.
    first_child: u32,
}

impl Split<'_> {
    fn entry_above(&self, right: u32) -> Vec<u8> {
        let mut entry = self.separator.to_vec();
        entry.extend(right.to_le_bytes());
        entry
    }
}

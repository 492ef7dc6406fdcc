//! Finding entries without latches.
//!
//! What is read here may be half changed, of another page, or damaged. So every number that was read is
//! checked before it is used, whatever is not as it should be ends the search, and the caller begins
//! again with latches, which tells damage from a change.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::cache::Obstacle;
use crate::node::{self, CHILD_BYTES};
use crate::page::{BODY, PageLook, kind};
use crate::store::Store;
use crate::tree::Tree;

/// A search gives up after so many leaves: there are that many empty ones, or a ring.
const LEAVES_MAX: usize = 16;

/// A node whose entries are all on its page, as far as its header says.
#[derive(Clone, Copy)]
struct Node<'a> {
    page: PageLook<'a>,
    level: u8,
    count: usize,
    compared: usize,
}

/// Leaves that a search has read.
#[derive(Default)]
pub struct Seen<'a> {
    leaves: SmallVec<[PageLook<'a>; 4]>,
    /// Pages that were read on the way.
    pub pages: u64,
}

/// Whether there is an entry that was searched for; it stands in the buffer of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Entry,
    Nothing,
}

impl Seen<'_> {
    /// Whether the leaves are as they were read: then the result of the search was right now.
    ///
    /// # Errors
    /// If one of them has changed.
    pub fn check(&self) -> Result<(), Obstacle> {
        match self.leaves.iter().all(PageLook::is_current) {
            true => Ok(()),
            false => Err(Obstacle::Change),
        }
    }
}

impl<'a> Node<'a> {
    fn entry_at(&self, index: usize) -> usize {
        BODY + index * node::entry_bytes(self.compared, self.level)
    }

    /// The number of entries before a bound, and equal to it if `is_inclusive`.
    fn count_before(&self, bound: &[u8], is_inclusive: bool) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            let is_before = match compare(&self.page, self.entry_at(middle), bound) {
                Ordering::Less => true,
                Ordering::Equal => is_inclusive,
                Ordering::Greater => false,
            };
            if is_before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn child(&self, index: usize) -> u32 {
        let mut bytes = [0; CHILD_BYTES];
        let at = match index {
            0 => 28,
            _ => self.entry_at(index - 1) + self.compared,
        };
        self.page.copy(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn right(&self) -> u32 {
        let mut bytes = [0; 4];
        self.page.copy(24, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Why the search cannot go on from what was read here.
    fn obstacle(&self) -> Obstacle {
        match self.page.is_current() {
            true => Obstacle::Other,
            false => Obstacle::Change,
        }
    }

    fn copy_entry(&self, index: usize, to: &mut Vec<u8>) {
        to.resize(self.compared, 0);
        self.page.copy(self.entry_at(index), to);
    }
}

/// Compares the bytes at a place with others.
fn compare(page: &PageLook, at: usize, bound: &[u8]) -> Ordering {
    let (whole, tail) = bound.as_chunks::<8>();
    for (step, ours) in whole.iter().enumerate() {
        let order = page.number(at + 8 * step).cmp(&u64::from_be_bytes(*ours));
        if order != Ordering::Equal {
            return order;
        }
    }
    if tail.is_empty() {
        return Ordering::Equal;
    }
    let mut ours = [0; 8];
    ours[..tail.len()].copy_from_slice(tail);
    let unused = 64 - 8 * tail.len();
    let theirs = page.number(at + 8 * whole.len()) >> unused << unused;
    theirs.cmp(&u64::from_be_bytes(ours))
}

impl Tree {
    fn look<'a>(&self, store: &'a Store, number: u32) -> Result<Node<'a>, Obstacle> {
        let page = store.look(self.page(number))?;
        let header = page.number(0).to_be_bytes();
        let (level, count) = (header[5], u16::from_le_bytes([header[6], header[7]]));
        let node = Node {
            page,
            level,
            count: usize::from(count),
            compared: self.compared,
        };
        let is_node = header[4] == kind::NODE && node::fits(node.count, self.compared, level);
        if is_node {
            return Ok(node);
        }
        Err(node.obstacle())
    }

    /// Descends to a leaf through the children that `choose` returns, and copies to `fence` the entry
    /// before the last child that is not the first one.
    fn leaf<'a>(
        &self,
        store: &'a Store,
        seen: &mut Seen<'a>,
        choose: impl Fn(&Node) -> usize,
        mut fence: Option<&mut Vec<u8>>,
    ) -> Result<Node<'a>, Obstacle> {
        let mut node = self.look(store, self.root.number)?;
        seen.pages += 1;
        while node.level > 0 {
            let index = choose(&node);
            if let (Some(fence), true) = (&mut fence, index > 0) {
                node.copy_entry(index - 1, fence);
            }
            let child = self.look(store, node.child(index))?;
            seen.pages += 1;
            // The version of the child is older than this check, so it was the right child then.
            if !node.page.is_current() {
                return Err(Obstacle::Change);
            }
            if child.level != node.level - 1 {
                return Err(child.obstacle());
            }
            node = child;
        }
        seen.leaves.push(node.page);
        Ok(node)
    }

    /// The number of the leaf where a bound belongs, and its parent. While the parent has not changed, no
    /// other leaf is the right one. `None` for the parent: the leaf is the root, if that has no children.
    pub(super) fn look_for_leaf<'a>(
        &self,
        store: &'a Store,
        bound: &[u8],
    ) -> Result<(u32, Option<PageLook<'a>>), Obstacle> {
        let mut node = self.look(store, self.root.number)?;
        if node.level == 0 {
            return Ok((self.root.number, None));
        }
        loop {
            let number = node.child(node.count_before(bound, true));
            if !node.page.is_current() {
                return Err(Obstacle::Change);
            }
            if node.level == 1 {
                return Ok((number, Some(node.page)));
            }
            let child = self.look(store, number)?;
            if !node.page.is_current() {
                return Err(Obstacle::Change);
            }
            if child.level != node.level - 1 {
                return Err(child.obstacle());
            }
            node = child;
        }
    }

    /// The first entry that is not less than `bound`, or, with `greater`, that is greater: copied to
    /// `entry`. The result counts if [`Seen::check`] succeeds afterwards.
    ///
    /// # Errors
    /// If that cannot be said without latches now.
    pub fn look_for_first<'a>(
        &self,
        store: &'a Store,
        bound: &[u8],
        greater: bool,
        entry: &mut Vec<u8>,
    ) -> Result<(Found, Seen<'a>), Obstacle> {
        let mut seen = Seen::default();
        let choose = |node: &Node| node.count_before(bound, true);
        let mut leaf = self.leaf(store, &mut seen, choose, None)?;
        let mut index = leaf.count_before(bound, greater);
        while index >= leaf.count {
            let right = leaf.right();
            if right == 0 {
                return Ok((Found::Nothing, seen));
            }
            let next = self.look(store, right)?;
            seen.pages += 1;
            if !leaf.page.is_current() {
                return Err(Obstacle::Change);
            }
            if next.level != 0 || seen.leaves.len() == LEAVES_MAX {
                return Err(next.obstacle());
            }
            if next.count > 0 && compare(&next.page, next.entry_at(0), bound) != Ordering::Greater {
                return Err(next.obstacle());
            }
            seen.leaves.push(next.page);
            (leaf, index) = (next, 0);
        }
        leaf.copy_entry(index, entry);
        Ok((Found::Entry, seen))
    }

    /// The last entry that is less than `bound`, or of all if there is no bound: as
    /// [`Tree::look_for_first`].
    pub fn look_for_last<'a>(
        &self,
        store: &'a Store,
        bound: Option<&[u8]>,
        entry: &mut Vec<u8>,
    ) -> Result<(Found, Seen<'a>), Obstacle> {
        let mut seen = Seen::default();
        // The least entry that the leaf may hold, if it is not the first leaf.
        let (mut fence, mut of_leaf) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let choose = |node: &Node| match of_leaf.as_deref().or(bound) {
                Some(bound) => node.count_before(bound, false),
                None => node.count,
            };
            fence.clear();
            let leaf = self.leaf(store, &mut seen, choose, Some(&mut fence))?;
            let count = choose(&leaf);
            if count > 0 {
                leaf.copy_entry(count - 1, entry);
                return Ok((Found::Entry, seen));
            }
            if fence.is_empty() {
                return Ok((Found::Nothing, seen));
            }
            if seen.leaves.len() == LEAVES_MAX {
                return Err(leaf.obstacle());
            }
            of_leaf = Some(std::mem::take(&mut fence));
        }
    }
}

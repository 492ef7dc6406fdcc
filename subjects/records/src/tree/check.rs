//! Consistency check of a tree.

use crate::error::Fault;
use crate::node;
use crate::page::{Page, PageBytes, PageHeader, kind};
use crate::store::Store;
use crate::tree::Tree;

impl Tree {
    /// Checks every node: its number, its level, its order, its bounds, and the links between
    /// leaves. To be called while no session changes the tree. Returns the number of entries.
    ///
    /// # Errors
    /// If something is inconsistent: what, and on which page.
    pub fn check(&self, store: &Store) -> Result<u64, Fault> {
        let mut walk = Walk {
            tree: self,
            store,
            leaves: Vec::new(),
            entries: 0,
        };
        walk.node(self.root.number, None, None, None)?;
        walk.links()?;
        Ok(walk.entries)
    }
}

struct Walk<'a> {
    tree: &'a Tree,
    store: &'a Store,
    leaves: Vec<(u32, u32)>,
    entries: u64,
}

impl Walk<'_> {
    fn node(
        &mut self,
        number: u32,
        level: Option<u8>,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<(), Fault> {
        let page = Page::from(&*self.store.read(self.tree.page(number))?);
        let compared = self.tree.compared;
        demand(&page, page.kind() == kind::NODE, "is no node")?;
        demand(&page, page.id().number == number, "says it is another page")?;
        let is_level = level.is_none_or(|level| level == page.level());
        demand(&page, is_level, "is not on the level below its parent")?;
        demand(
            &page,
            node::is_node(&page, compared),
            "has more entries than fit",
        )?;
        let entries: Vec<_> = (0..page.count())
            .map(|index| node::entry(&page, index, compared))
            .collect();
        let is_sorted = entries.windows(2).all(|pair| pair[0] < pair[1]);
        demand(&page, is_sorted, "has entries out of order")?;
        let in_bounds = entries.iter().all(|entry| {
            low.is_none_or(|low| *entry >= low) && high.is_none_or(|high| *entry < high)
        });
        demand(&page, in_bounds, "has entries that belong elsewhere")?;
        if page.level() == 0 {
            self.leaves.push((number, page.right()));
            self.entries += entries.len() as u64;
            return Ok(());
        }
        for index in 0..=entries.len() {
            let low = index.checked_sub(1).map(|it| entries[it]).or(low);
            let high = entries.get(index).copied().or(high);
            let child = node::child(&page, index, compared);
            self.node(child, Some(page.level() - 1), low, high)?;
        }
        Ok(())
    }

    fn links(&self) -> Result<(), Fault> {
        let next = self.leaves.iter().skip(1).map(|it| it.0).chain([0]);
        for ((number, right), next) in self.leaves.iter().zip(next) {
            if *right != next {
                let page = self.tree.page(*number);
                let text = format!("{page} has {right} to its right, and not {next}");
                return Err(Fault::Damaged(text));
            }
        }
        Ok(())
    }
}

fn demand(page: &PageBytes, holds: bool, text: &str) -> Result<(), Fault> {
    if holds {
        return Ok(());
    }
    Err(Fault::Damaged(format!("{} {text}", page.id())))
}

//! Reads outside of transactions, without locks and latches.
//!
//! Such a read sees what is committed. It reads the pages without latching them, then looks whether
//! anybody holds the record or the file exclusively, and then whether the pages are still as they were
//! read. If nobody does and they are, the record was committed between the last two steps: its last
//! change was made under an exclusive lock, which has been released since. So the read writes nothing
//! that another session uses, and one that dies leaves nothing behind. Wherever that fails, it is done
//! again with locks, which may wait.

use std::sync::atomic::Ordering::Relaxed;

use crate::cache::Obstacle;
use crate::file::RecordFile;
use crate::locks::LockName;
use crate::options::is_latch_free;
use crate::session::get::{Direction, Search};
use crate::session::{Current, FileHandle, Get, LockBias, Session};
use crate::shared::Shared;
use crate::slots::{self, Position, State};
use crate::status::Status;
use crate::tree::Found;

/// So often is a read begun again because a page changed, before it takes locks.
const ATTEMPTS: usize = 4;

/// A read without locks in a file.
struct Unlocked<'a> {
    shared: &'a Shared,
    file: &'a RecordFile,
    /// The part of the file that the session would lock.
    part: LockName,
    /// Pages that were read.
    pages: u64,
}

impl Session {
    /// Reads a record without locks and latches; `None` if it needs some.
    pub(super) fn get_unlocked(
        &mut self,
        file: FileHandle,
        get: Get,
        bias: LockBias,
    ) -> Option<Result<(), Status>> {
        let (shared, registration) = (&self.shared, &self.registration);
        let is_free = bias == LockBias::None
            && is_latch_free(shared.options.latching)
            && registration.is_at_rest.load(Relaxed);
        if !is_free || shared.check().is_err() {
            return None;
        }
        let open = self.local.files.get_mut(file.0)?;
        let search = Search::new(&open.file, open.current.as_ref(), get).ok()?;
        let mut unlocked = Unlocked {
            shared,
            file: &open.file,
            part: LockName::file(open.file.id, self.local.part),
            pages: 0,
        };
        let done = unlocked.get(&search, &mut self.local.spare);
        registration.counts.cache_hits.add(unlocked.pages);
        let done = done.ok()?;
        if done.is_ok() {
            let current = open.current.get_or_insert_default();
            std::mem::swap(current, &mut self.local.spare);
            current.key = search.key;
        }
        Some(done)
    }
}

impl Unlocked<'_> {
    fn get(
        &mut self,
        search: &Search,
        found: &mut Current,
    ) -> Result<Result<(), Status>, Obstacle> {
        for _ in 0..ATTEMPTS {
            match self.try_to_get(search, found) {
                Err(Obstacle::Change) => std::hint::spin_loop(),
                done => return done,
            }
        }
        Err(Obstacle::Change)
    }

    fn try_to_get(
        &mut self,
        search: &Search,
        found: &mut Current,
    ) -> Result<Result<(), Status>, Obstacle> {
        let (store, tree) = (&self.shared.store, self.file.tree(search.key));
        let (result, leaves) = match &search.direction {
            Direction::Forward { bound, greater } => {
                tree.look_for_first(store, bound, *greater, &mut found.entry)?
            }
            Direction::Backward { bound } => {
                tree.look_for_last(store, bound.as_deref(), &mut found.entry)?
            }
        };
        self.pages += leaves.pages;
        if result == Found::Nothing || !search.wants(&found.entry) {
            self.check_locks(None)?;
            return leaves.check().map(|()| Err(search.nothing()));
        }
        let position = Position::of_entry(&found.entry);
        let page = store.look(self.file.page(position.page))?;
        self.pages += 1;
        let record_bytes = self.file.record_bytes();
        let state = slots::look(&page, position.slot, record_bytes, &mut found.record);
        if state != Some(State::Live)
            || !self.file.has_value(search.key, &found.record, &found.entry)
        {
            // The entry is stale: its transaction has not ended, or has since the entry was read.
            leaves.check()?;
            return Err(Obstacle::Other);
        }
        self.check_locks(Some(position))?;
        if !page.is_current() {
            return Err(Obstacle::Change);
        }
        leaves.check().map(Ok)
    }

    /// Refuses a record, or a file, that a transaction may have changed and not committed.
    fn check_locks(&self, position: Option<Position>) -> Result<(), Obstacle> {
        let locks = &self.shared.locks;
        let is_free = position.is_none_or(|position| {
            locks.is_not_exclusive(&LockName::record(self.file.id, position))
        });
        // Who drops a file has locked all of it before.
        if is_free && locks.is_not_exclusive(&self.part) && !self.file.is_dropped() {
            return Ok(());
        }
        Err(Obstacle::Other)
    }
}

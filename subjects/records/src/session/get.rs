//! Reading records.

use smallvec::smallvec;

use crate::definition::{Entry, Key};
use crate::error::Stop;
use crate::file::RecordFile;
use crate::locks::Mode;
use crate::session::work::Work;
use crate::session::{Current, Get, LockBias};
use crate::slots::{self, POSITION_BYTES, Position, State};
use crate::status::Status;
use crate::tree::Found;

/// Bytes of a position that is less than all others, and of one that is greater.
const LEAST: u8 = 0;
const GREATEST: u8 = 0xff;

/// The start and the direction of a search.
pub(super) struct Search {
    pub key: usize,
    pub direction: Direction,
    /// The record must have the value of the bound.
    is_exact: bool,
}

pub(super) enum Direction {
    /// From a bound on, inclusive, or exclusive if `greater`.
    Forward { bound: Entry, greater: bool },
    /// Before a bound, or from the end.
    Backward { bound: Option<Entry> },
}

impl Work<'_> {
    /// Finds a record, locks it, and makes it the position.
    pub fn get(&mut self, get: Get, bias: LockBias) -> Result<(), Stop> {
        self.enter()?;
        let mut search = Search::new(self.file, self.current.as_ref(), get)?;
        let mode = match bias {
            LockBias::None => Mode::Shared,
            _ => Mode::Exclusive,
        };
        loop {
            let Some(entry) = self.find(&search, mode)? else {
                return Err(search.nothing().into());
            };
            if self.read(search.key, &entry)? {
                return Ok(());
            }
            search.go_on_from(entry);
        }
    }

    /// The next entry of the search, its record locked; the gaps on the way are locked too.
    fn find(&mut self, search: &Search, mode: Mode) -> Result<Option<Entry>, Stop> {
        let store = &self.shared.store;
        let tree = self.file.tree(search.key);
        match &search.direction {
            Direction::Forward { bound, greater } => {
                if let Some(found) = self.find_by_look(search, bound, *greater, mode)? {
                    return Ok(found);
                }
                tree.first_from(store, bound, *greater, |entry| {
                    self.lock_first(search, entry, mode)
                })
            }
            Direction::Backward { bound } => tree.last_before(store, bound.as_deref(), |seen| {
                self.lock_gap_read(search.key, seen.follower)?;
                self.lock_found(seen.found, mode)
            }),
        }
    }

    /// As a forward search that latches the leaf, but without its latch: the locks are taken, and then
    /// the leaf must be as it was read. `None` if it is not found in this way; the locks stay.
    fn find_by_look(
        &mut self,
        search: &Search,
        bound: &[u8],
        greater: bool,
        mode: Mode,
    ) -> Result<Option<Option<Entry>>, Stop> {
        let store = &self.shared.store;
        if !store.is_latch_free() {
            return Ok(None);
        }
        let tree = self.file.tree(search.key);
        let mut entry = std::mem::take(&mut self.spare.entry);
        let looked = tree.look_for_first(store, bound, greater, &mut entry);
        let looked = looked.and_then(|(found, leaves)| leaves.check().map(|()| (found, leaves)));
        let Ok((found, leaves)) = looked else {
            self.spare.entry = entry;
            return Ok(None);
        };
        let found = (found == Found::Entry).then_some(&entry[..]);
        let locked = self.lock_first(search, found, mode);
        self.spare.entry = entry;
        let locked = locked?;
        self.registration.counts.cache_hits.add(leaves.pages);
        Ok(leaves.check().is_ok().then_some(locked))
    }

    /// Locks what a forward search finds first.
    fn lock_first(
        &mut self,
        search: &Search,
        entry: Option<&[u8]>,
        mode: Mode,
    ) -> Result<Option<Entry>, Stop> {
        let wanted = entry.filter(|entry| search.wants(entry));
        // At most one record has a value of a key without duplicates: if the search found it, it has
        // read no gap.
        if wanted.is_none() || !search.is_exact || self.has_duplicates(search.key) {
            self.lock_gap_read(search.key, entry)?;
        }
        self.lock_found(wanted, mode)
    }

    fn has_duplicates(&self, key: usize) -> bool {
        self.file.definition.keys[key].duplicates
    }

    fn lock_found(&mut self, entry: Option<&[u8]>, mode: Mode) -> Result<Option<Entry>, Stop> {
        let Some(entry) = entry else {
            return Ok(None);
        };
        self.lock_record(Position::of_entry(entry), mode)?;
        Ok(Some(Entry::from_slice(entry)))
    }

    /// Makes the record of an entry the position; false if the entry is stale. The record is locked.
    fn read(&mut self, key: usize, entry: &[u8]) -> Result<bool, Stop> {
        let position = Position::of_entry(entry);
        let state = match self.look_at_record(position) {
            Some(state) => state,
            None => {
                let store = &self.shared.store;
                let page = store.read(self.file.page(position.page))?;
                let (state, record) = store.slot(&page, position.slot, self.file.record_bytes())?;
                replace(&mut self.spare.record, record);
                state
            }
        };
        if state != State::Live || !self.file.has_value(key, &self.spare.record, entry) {
            return Ok(false);
        }
        let current = self.current.get_or_insert_default();
        current.key = key;
        replace(&mut current.entry, entry);
        std::mem::swap(&mut current.record, &mut self.spare.record);
        Ok(true)
    }

    /// A record without the latch of its page; `None` if that is not possible now.
    fn look_at_record(&mut self, position: Position) -> Option<State> {
        let store = &self.shared.store;
        if !store.is_latch_free() {
            return None;
        }
        let page = store.look(self.file.page(position.page)).ok()?;
        let (slot, record_bytes) = (position.slot, self.file.record_bytes());
        let state = slots::look(&page, slot, record_bytes, &mut self.spare.record)?;
        self.registration.counts.cache_hits.add(1);
        page.is_current().then_some(state)
    }
}

impl Search {
    /// The search of a read in a file, from a session's position in it.
    pub fn new(file: &RecordFile, current: Option<&Current>, get: Get) -> Result<Self, Status> {
        let search = |key, direction| Search {
            key,
            direction,
            is_exact: false,
        };
        let bound = |key, value, position| bound(file, key, value, position);
        let forward = |bound, greater| Direction::Forward { bound, greater };
        let backward = |bound| Direction::Backward { bound };
        Ok(match get {
            Get::Equal(key, value) => Search {
                is_exact: true,
                ..search(key, forward(bound(key, value, LEAST)?, false))
            },
            Get::AtLeast(key, value) => search(key, forward(bound(key, value, LEAST)?, false)),
            Get::Greater(key, value) => search(key, forward(bound(key, value, GREATEST)?, true)),
            Get::Less(key, value) => search(key, backward(Some(bound(key, value, LEAST)?))),
            Get::AtMost(key, value) => search(key, backward(Some(bound(key, value, GREATEST)?))),
            Get::First(key) => {
                check_key(file, key)?;
                search(key, forward(smallvec![0; file.tree(key).compared], false))
            }
            Get::Last(key) => {
                check_key(file, key)?;
                search(key, backward(None))
            }
            Get::Next | Get::Previous => {
                let current = current.ok_or(Status::InvalidPosition)?;
                let entry = Entry::from_slice(&current.entry);
                let direction = match get {
                    Get::Next => forward(entry, true),
                    _ => backward(Some(entry)),
                };
                search(current.key, direction)
            }
        })
    }

    pub fn wants(&self, entry: &[u8]) -> bool {
        let value = entry.len() - POSITION_BYTES;
        match &self.direction {
            Direction::Forward { bound, .. } if self.is_exact => bound[..value] == entry[..value],
            _ => true,
        }
    }

    fn go_on_from(&mut self, entry: Entry) {
        self.direction = match self.direction {
            Direction::Forward { .. } => Direction::Forward {
                bound: entry,
                greater: true,
            },
            Direction::Backward { .. } => Direction::Backward { bound: Some(entry) },
        };
    }

    /// The status if there is no such entry.
    pub fn nothing(&self) -> Status {
        match self.is_exact {
            true => Status::KeyNotFound,
            false => Status::EndOfFile,
        }
    }
}

fn check_key(file: &RecordFile, key: usize) -> Result<&Key, Status> {
    let keys = &file.definition.keys;
    keys.get(key).ok_or(Status::InvalidKeyNumber)
}

fn bound(file: &RecordFile, key: usize, value: &[u8], position: u8) -> Result<Entry, Status> {
    let definition = check_key(file, key)?;
    if value.len() != definition.bytes() {
        return Err(Status::KeyLength);
    }
    let mut bound = Entry::with_capacity(value.len() + POSITION_BYTES);
    bound.extend_from_slice(value);
    definition.normalise(&mut bound);
    bound.extend_from_slice(&[position; POSITION_BYTES]);
    Ok(bound)
}

fn replace(to: &mut Vec<u8>, from: &[u8]) {
    to.clear();
    to.extend_from_slice(from);
}

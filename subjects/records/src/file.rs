//! A file of records: its definition, its trees, its free space.
//!
//! The first page has the definition, and the next ones are the roots of the trees, in the order of
//! the keys. A new file is written under a temporary name, then renamed. A dropped file keeps its
//! number, and its pages as long as the log refers to them.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use concurve_latch::Mutex;

use crate::classes;
use crate::counted::AtomicU64;
use crate::definition::{Entry, FileDefinition};
use crate::error::Fault;
use crate::extents::Extent;
use crate::free_space::FreeSpace;
use crate::page::{BODY, PAGE_BYTES, Page, PageBytes, PageHeader, PageId, PageMut, kind};
use crate::slots::{self, POSITION_BYTES, Position, State};
use crate::storage::{Disk, Storage};
use crate::tree::Tree;

const PREFIX: &str = "data-";
const NEW_PREFIX: &str = "new-";
const DROPPED_PREFIX: &str = "gone-";

/// An open file.
pub struct RecordFile {
    pub id: u32,
    pub name: String,
    pub definition: FileDefinition,
    pub free_space: FreeSpace,
    /// Latched during an operation on the file, with latching by file.
    pub operation_latch: Mutex<()>,
    /// The end of the log when the file was dropped, or [`NOT_DROPPED`], or [`SHRUNK`].
    dropped_at: AtomicU64,
}

/// The file is not dropped.
const NOT_DROPPED: u64 = u64::MAX;
/// Its pages are freed.
const SHRUNK: u64 = u64::MAX - 1;

impl RecordFile {
    /// Whether it is dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped_at.load(SeqCst) != NOT_DROPPED
    }

    /// Drops the file durably. No session may use it, and the log does not refer to it from `lsn`
    /// on.
    pub fn mark_dropped(&self, storage: &dyn Storage, lsn: u64) -> Result<(), Fault> {
        let what = || format!("drop the file {}", self.name);
        let (from, to) = (
            format!("{PREFIX}{}", self.name),
            format!("{DROPPED_PREFIX}{:08x}", self.id),
        );
        storage.rename(&from, &to).map_err(Fault::io(what))?;
        storage.sync_names().map_err(Fault::io(what))?;
        self.dropped_at.store(lsn, SeqCst);
        Ok(())
    }

    /// Frees the pages of a file that was dropped before the log reached `lsn`, where recovery
    /// begins to read it.
    pub fn shrink_if_dropped(&self, disk: &dyn Disk, lsn: u64) -> Result<(), Fault> {
        if self.dropped_at.load(SeqCst) > lsn {
            return Ok(());
        }
        self.dropped_at.store(SHRUNK, SeqCst);
        let pages = 1 + self.definition.keys.len() as u64;
        let shrunk = disk.set_length(pages * PAGE_BYTES as u64);
        shrunk.map_err(Fault::io(|| format!("shrink the file number {}", self.id)))
    }

    /// The name of its file in the storage.
    pub fn path(&self) -> String {
        match self.is_dropped() {
            true => format!("{DROPPED_PREFIX}{:08x}", self.id),
            false => format!("{PREFIX}{}", self.name),
        }
    }

    pub fn record_bytes(&self) -> usize {
        usize::from(self.definition.record_bytes)
    }

    pub fn page(&self, number: u32) -> PageId {
        let file = self.id;
        PageId { file, number }
    }

    pub fn tree(&self, key: usize) -> Tree {
        Tree {
            root: self.page(1 + key as u32),
            compared: self.definition.keys[key].bytes() + POSITION_BYTES,
        }
    }

    /// Whether a record has the value of an entry of a key's tree.
    pub fn has_value(&self, key: usize, record: &[u8], entry: &[u8]) -> bool {
        let value = &entry[..entry.len() - POSITION_BYTES];
        self.definition.keys[key].has_value(record, value)
    }

    /// The entry of a record in a key's tree.
    pub fn entry(&self, key: usize, record: &[u8], position: Position) -> Entry {
        let mut entry = Entry::with_capacity(self.tree(key).compared);
        self.definition.keys[key].extract(record, &mut entry);
        entry.extend_from_slice(&position.to_bytes());
        entry
    }
}

/// The contents of the first page of a file.
pub struct Header {
    pub id: u32,
    /// Empty if the file is dropped.
    pub name: String,
    pub definition: FileDefinition,
    pub disk: Arc<dyn Disk>,
    /// Its name in the storage.
    pub path: String,
}

/// Makes an empty file, durably.
pub fn create(
    storage: &dyn Storage,
    id: u32,
    name: &str,
    definition: &FileDefinition,
) -> Result<Header, Fault> {
    let what = || format!("make the file {name}");
    let disk = storage
        .open(&format!("{NEW_PREFIX}{name}"))
        .map_err(Fault::io(what))?;
    disk.set_length(0).map_err(Fault::io(what))?;
    for number in 0..=definition.keys.len() as u32 {
        let page = PageId { file: id, number };
        let kind = if number == 0 {
            kind::HEADER
        } else {
            kind::NODE
        };
        let mut page = Page::formatted(page, kind);
        if number == 0 {
            let bytes = definition.encode();
            page.bytes_mut()[BODY..BODY + bytes.len()].copy_from_slice(&bytes);
        }
        page.seal();
        disk.write_at(page.bytes(), u64::from(number) * PAGE_BYTES as u64)
            .map_err(Fault::io(what))?;
    }
    disk.sync().map_err(Fault::io(what))?;
    storage
        .rename(&format!("{NEW_PREFIX}{name}"), &format!("{PREFIX}{name}"))
        .map_err(Fault::io(what))?;
    storage.sync_names().map_err(Fault::io(what))?;
    Ok(Header {
        id,
        name: name.to_owned(),
        definition: definition.clone(),
        disk,
        path: format!("{PREFIX}{name}"),
    })
}

/// All files, sorted by their numbers.
pub fn find(storage: &dyn Storage) -> Result<Vec<Header>, Fault> {
    let names = storage
        .names()
        .map_err(Fault::io(|| "list the files".to_owned()))?;
    let mut headers = Vec::new();
    for name in names {
        if name.starts_with(NEW_PREFIX) {
            let what = || format!("remove {name}, whose making was cut off");
            storage.remove(&name).map_err(Fault::io(what))?;
        } else if let Some(name) = name.strip_prefix(PREFIX) {
            headers.push(read_header(storage, &format!("{PREFIX}{name}"), name)?);
        } else if name.starts_with(DROPPED_PREFIX) {
            headers.push(read_header(storage, &name, "")?);
        }
    }
    headers.sort_by_key(|it| it.id);
    Ok(headers)
}

/// The files whose first pages can be read, sorted by their numbers; notes the others. Removes nothing.
pub fn find_readable(storage: &dyn Storage, notes: &mut Vec<String>) -> Result<Vec<Header>, Fault> {
    let names = storage
        .names()
        .map_err(Fault::io(|| "list the files".to_owned()))?;
    let mut headers = Vec::new();
    for path in names {
        let header = match (path.strip_prefix(PREFIX), path.starts_with(DROPPED_PREFIX)) {
            (Some(name), _) => read_header(storage, &path, name),
            (None, true) => read_header(storage, &path, ""),
            (None, false) => continue,
        };
        match header {
            Ok(header) => headers.push(header),
            Err(Fault::Damaged(text)) => notes.push(format!("{text}: its records are lost")),
            Err(fault) => notes.push(format!("{fault}: its records are lost")),
        }
    }
    headers.sort_by_key(|it| it.id);
    Ok(headers)
}

/// Checks that all files are there once: at least `count`, with these extents.
pub fn check_all(headers: &[Header], count: u64, extents: &[Extent]) -> Result<(), Fault> {
    for number in 0..count.max(headers.len() as u64) {
        let mut with_number = headers.iter().filter(|it| u64::from(it.id) == number);
        let name = extents.iter().find(|it| u64::from(it.file) == number);
        let name = name.map_or_else(String::new, |it| format!(", {},", it.name));
        let text = match (with_number.next(), with_number.next()) {
            (Some(_), None) => continue,
            (None, _) => {
                let anothers = format!("{PREFIX}… or {DROPPED_PREFIX}{number:08x}");
                format!(
                    "the file of records number {number}{name} is missing: no {anothers} has it"
                )
            }
            (Some(one), Some(other)) => format!(
                "the files {} and {} say at byte 16 that they are number {number}: one is a copy",
                one.path, other.path
            ),
        };
        return Err(Fault::Damaged(text));
    }
    Ok(())
}

fn read_header(storage: &dyn Storage, path: &str, name: &str) -> Result<Header, Fault> {
    let what = || format!("read the file {path}");
    let disk = storage.open(path).map_err(Fault::io(what))?;
    let mut page = Page::blank();
    disk.read_at(page.bytes_mut(), 0).map_err(Fault::io(what))?;
    let id = page.id();
    let is_header = page.kind() == kind::HEADER && id.number == 0 && page.is_whole(id);
    let definition = FileDefinition::decode(&page.bytes()[BODY..]);
    let (true, Some(definition)) = (is_header, definition) else {
        let text = format!(
            "the first page of the file {path}, from byte 0 on, is damaged, or does not belong to \
             the record engine"
        );
        return Err(Fault::Damaged(text));
    };
    Ok(Header {
        id: id.file,
        name: name.to_owned(),
        definition,
        disk,
        path: path.to_owned(),
    })
}

impl Header {
    /// The file; its free space is not known yet.
    pub fn into_file(self) -> RecordFile {
        RecordFile {
            id: self.id,
            dropped_at: AtomicU64::new(if self.name.is_empty() { 0 } else { NOT_DROPPED }),
            name: self.name,
            definition: self.definition,
            free_space: FreeSpace::new(),
            operation_latch: classes::operation().mutex(()),
        }
    }
}

impl RecordFile {
    /// Reads all pages from the disk, which must not change during the call: checks them, and finds
    /// the free space. Returns the greatest LSN.
    ///
    /// # Errors
    /// If a page is damaged, or blank though the extent has it.
    pub fn inspect(&self, disk: &dyn Disk, extent: Option<&Extent>) -> Result<u64, Fault> {
        let what = || format!("read the file {}", self.path());
        let length = disk.length().map_err(Fault::io(what))?;
        let pages = u32::try_from(length.div_ceil(PAGE_BYTES as u64)).unwrap_or(u32::MAX);
        if let Some(extent) = extent.filter(|it| it.pages > pages) {
            return Err(Fault::Damaged(format!(
                "the file {} ends at byte {length}, and had {} bytes or more",
                self.path(),
                u64::from(extent.pages) * PAGE_BYTES as u64
            )));
        }
        let (mut blank, mut free) = (Vec::new(), Vec::new());
        let mut lsn = 0;
        let mut page = Page::blank();
        for number in 0..pages {
            let at = u64::from(number) * PAGE_BYTES as u64;
            let read = disk
                .read_at(page.bytes_mut(), at)
                .map_err(Fault::io(what))?;
            page.bytes_mut()[read..].fill(0);
            let is_blank = page.kind() == kind::BLANK;
            let is_lost = is_blank && extent.is_some_and(|it| it.has(number));
            if is_lost || !page.is_whole(self.page(number)) {
                let how = if is_lost { "blank" } else { "damaged" };
                return Err(Fault::Damaged(format!(
                    "page {number} of the file {}, from byte {at} on, is {how}",
                    self.path()
                )));
            }
            lsn = lsn.max(page.lsn());
            match page.kind() {
                kind::BLANK => blank.push(number),
                kind::DATA => free.extend(self.free_slots(&page)),
                _ => {}
            }
        }
        self.free_space.set(pages, blank, free);
        Ok(lsn)
    }

    fn free_slots(&self, page: &PageBytes) -> impl Iterator<Item = Position> {
        let slots = 0..slots::slots_per_page(self.record_bytes()) as u16;
        slots
            .filter(|slot| {
                let found = slots::read(page, *slot, self.record_bytes());
                found.is_some_and(|(state, _)| state == State::Free)
            })
            .map(|slot| Position {
                page: page.id().number,
                slot,
            })
    }
}

/// Refuses names that are not portable as file names.
pub fn check_name(name: &str) -> Result<(), Fault> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Fault::Definition(format!(
        "{name:?} is not a valid name of a file: use 1 to 64 letters, digits, - or _"
    )))
}

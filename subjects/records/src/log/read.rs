//! Reading the log at a start.

use crate::error::Fault;
use crate::log::files::{file_name, file_start};
use crate::log::record::{Record, read};
use crate::storage::Storage;

/// Calls `each` for every complete record from `start` to the torn end of the log, with the
/// record's end; returns where the log ends.
///
/// The first incomplete record is the torn end of the log, unless it is before `durable`: all
/// before that byte was once forced to the disk.
///
/// # Errors
/// If the log is damaged before `durable`, cannot be read, or `each` fails.
pub fn each_record(
    storage: &dyn Storage,
    start: u64,
    durable: u64,
    mut each: impl FnMut(&Record, u64) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let names = storage
        .names()
        .map_err(Fault::io(|| "list the log".to_owned()))?;
    let mut files: Vec<u64> = names.iter().filter_map(|it| file_start(it)).collect();
    files.sort_unstable();
    let mut end = start;
    for (index, first) in files.iter().enumerate() {
        let next = files.get(index + 1);
        // It ends before `start`, or follows a gap.
        if next.is_some_and(|next| *next <= start) || *first > end {
            continue;
        }
        let bytes = read_file(storage, *first)?;
        let mut at = (end - first) as usize;
        while let Some((record, length)) = bytes.get(at..).and_then(|rest| read(rest, end)) {
            at += length;
            end += length as u64;
            each(&record, end)?;
        }
    }
    if end < durable {
        let file = files.iter().rev().find(|first| **first <= end);
        let (name, at) = file.map_or(("log".to_owned(), end), |first| {
            (file_name(*first), end - first)
        });
        return Err(Fault::Damaged(format!(
            "the log is damaged or cut off at byte {at} of the file {name}, and {} bytes that were \
             once durable are lost",
            durable - end
        )));
    }
    Ok(end)
}

fn read_file(storage: &dyn Storage, start: u64) -> Result<Vec<u8>, Fault> {
    let what = || format!("read the file {} of the log", file_name(start));
    let file = storage.open(&file_name(start)).map_err(Fault::io(what))?;
    // These records may be in the kernel only; records appended from now on are of no use without
    // them.
    file.sync().map_err(Fault::io(what))?;
    let length = file.length().map_err(Fault::io(what))?;
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&mut bytes, 0).map_err(Fault::io(what))?;
    bytes.truncate(read);
    Ok(bytes)
}

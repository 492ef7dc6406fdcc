//! Reading the log after a start.

use crate::error::{Fault, While};
use crate::log::record::{Record, read};
use crate::log::{file_name, file_start};
use crate::storage::Storage;

/// Shows every whole record from the first to the last one before the torn end, with its LSN and
/// its end; returns where the log ends.
///
/// Files that begin before `start` are read from there on. What is not whole is the torn end of the
/// log, unless it is before `durable`: all before that byte was once forced to the disk.
///
/// # Errors
/// If the log is damaged before `durable`, cannot be read, or `each` fails.
pub fn each_record(
    storage: &dyn Storage,
    start: u64,
    durable: u64,
    mut each: impl FnMut(&Record, u64) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let names = storage.names().when(|| "list the log".to_owned())?;
    let mut files: Vec<u64> = names.iter().filter_map(|it| file_start(it)).collect();
    files.sort_unstable();
    let mut end = start;
    for (index, first) in files.iter().enumerate() {
        let next = files.get(index + 1);
        // Before what is asked for, or after a gap.
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
    let file = storage.open(&file_name(start)).when(what)?;
    // What is read may have been given to the kernel alone. What is appended from now on is of no use
    // without it.
    file.sync().when(what)?;
    let length = file.length().when(what)?;
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&mut bytes, 0).when(what)?;
    bytes.truncate(read);
    Ok(bytes)
}

//! Reading the log at a start.

use crate::error::Fault;
use crate::log::files::{file_name, file_start};
use crate::log::record::{Record, lsn_of, read};
use crate::storage::{Disk, Storage};

/// What a file has behind this byte is not of the log: its files have a tenth of it at most.
const BYTES_MAX: u64 = 1 << 28;

/// A file of the log, up to where the next one begins.
pub struct Piece {
    pub name: String,
    /// Where it begins in the log.
    pub first: u64,
    pub bytes: Vec<u8>,
    /// Another file begins where it ends.
    has_next: bool,
}

/// Where the log ends, and what follows.
#[derive(Debug, Default)]
pub struct Survey {
    /// The first byte that no whole frame covers.
    pub end: u64,
    /// The file and the byte in it where that is; `None` if there is no file.
    pub place: Option<(String, u64)>,
    /// Whole records that follow somewhere, and the commits among them.
    pub behind: u64,
    pub commits_behind: u64,
    /// What these records know to have been forced to the disk before them.
    pub forced: u64,
    /// No file has the first byte that was wanted.
    pub is_missing: bool,
}

/// Reads the log from a byte on.
pub fn survey(storage: &dyn Storage, start: u64) -> Result<Survey, Fault> {
    let mut survey = Survey {
        end: start,
        is_missing: true,
        ..Survey::default()
    };
    let mut is_over = false;
    each_piece(storage, start, |piece| {
        survey.is_missing &= piece.first > start;
        let mut at = 0;
        // After a gap, all that follows is behind it.
        if !is_over && piece.first <= survey.end {
            at = (survey.end - piece.first) as usize;
            while let Some(frame) = piece.bytes.get(at..).and_then(|it| read(it, survey.end)) {
                at += frame.bytes();
                survey.end += frame.bytes() as u64;
            }
            survey.place = Some((piece.name.clone(), survey.end - piece.first));
            is_over = !(piece.has_next && at == piece.bytes.len());
        }
        if is_over {
            survey.look_behind(piece, at);
        }
        Ok(())
    })?;
    Ok(survey)
}

impl Survey {
    /// Looks for whole records in a piece from a byte on: also for those that stand at another place
    /// than they were written to, because bytes before them are missing or there twice. What a file had
    /// before it was used again is older than its first byte.
    fn look_behind(&mut self, piece: &Piece, from: usize) {
        let mut at = from;
        let newest = piece.first + piece.bytes.len() as u64;
        while let Some(rest) = piece.bytes.get(at..).filter(|it| !it.is_empty()) {
            let lsn = lsn_of(rest).filter(|lsn| (self.end..=newest).contains(lsn));
            let Some(frame) = lsn.and_then(|lsn| read(rest, lsn)) else {
                at += 1;
                continue;
            };
            for (record, _) in frame.records() {
                self.behind += 1;
                match record {
                    Record::Commit { .. } => self.commits_behind += 1,
                    Record::Forced { before } => self.forced = self.forced.max(before),
                    _ => {}
                }
            }
            at += frame.bytes();
        }
    }

    /// Where the log ends, in words.
    pub fn place(&self) -> String {
        match &self.place {
            Some((name, at)) => format!("at byte {at} of the file {name}"),
            None => "at its beginning".to_owned(),
        }
    }
}

/// Calls `each` for every record of the log between two bytes, with the record's end.
pub fn each_record(
    storage: &dyn Storage,
    start: u64,
    end: u64,
    mut each: impl FnMut(&Record, u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut lsn = start;
    each_piece(storage, start, |piece| {
        let Some(mut at) = lsn.checked_sub(piece.first).map(|it| it as usize) else {
            return Ok(());
        };
        while lsn < end
            && let Some(frame) = piece.bytes.get(at..).and_then(|it| read(it, lsn))
        {
            at += frame.bytes();
            lsn += frame.bytes() as u64;
            for (record, end) in frame.records() {
                each(&record, end)?;
            }
        }
        Ok(())
    })
}

/// Writes the log between two bytes once more, and forces it to the disk.
///
/// It may be in the kernel's cache only, and records appended from now on are of no use without it. To
/// force it is not enough: where that failed once, the kernel takes what it shows for written.
pub fn write_again(storage: &dyn Storage, start: u64, end: u64) -> Result<(), Fault> {
    each_piece(storage, start, |piece| {
        let last = piece.first + piece.bytes.len() as u64;
        let (from, to) = (piece.first.max(start), last.min(end));
        if from >= to {
            return Ok(());
        }
        let what = || format!("write the file {} of the log again", piece.name);
        let at = from - piece.first;
        let bytes = &piece.bytes[at as usize..(to - piece.first) as usize];
        let file = storage.open(&piece.name).map_err(Fault::io(what))?;
        file.write_at(bytes, at).map_err(Fault::io(what))?;
        file.sync().map_err(Fault::io(what))
    })
}

/// Erases what follows a byte in its file: whole records that are given up. The file is used again one
/// day, and then they would seem to follow a damage.
pub fn erase_after(storage: &dyn Storage, end: u64) -> Result<(), Fault> {
    let Some(first) = firsts(storage, end)?.first().copied() else {
        return Ok(());
    };
    let name = file_name(first);
    let what = || format!("erase the end of the file {name} of the log");
    let file = storage.open(&name).map_err(Fault::io(what))?;
    let length = length(file.as_ref()).map_err(Fault::io(what))?;
    let at = end.saturating_sub(first);
    let zeros = vec![0; length.saturating_sub(at) as usize];
    file.write_at(&zeros, at).map_err(Fault::io(what))?;
    file.sync().map_err(Fault::io(what))
}

/// Where the files of the log begin that hold it from a byte on.
pub fn firsts(storage: &dyn Storage, start: u64) -> Result<Vec<u64>, Fault> {
    let names = storage
        .names()
        .map_err(Fault::io(|| "list the log".to_owned()))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|it| file_start(it)).collect();
    firsts.sort_unstable();
    let before = firsts.partition_point(|first| *first <= start);
    firsts.drain(..before.saturating_sub(1));
    Ok(firsts)
}

/// Calls `each` for the files of the log from a byte on.
fn each_piece(
    storage: &dyn Storage,
    start: u64,
    mut each: impl FnMut(&Piece) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let firsts = firsts(storage, start)?;
    for (index, first) in firsts.iter().enumerate() {
        let next = firsts.get(index + 1);
        let mut bytes = read_file(storage, *first)?;
        // Where another file begins, an earlier start has found the end of the log.
        let limit = next.map_or(u64::MAX, |next| next - first);
        bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        each(&Piece {
            name: file_name(*first),
            first: *first,
            has_next: next.is_some() && bytes.len() as u64 == limit,
            bytes,
        })?;
    }
    Ok(())
}

/// How much of a file may be of the log: somebody may have made it longer than the memory.
fn length(file: &dyn Disk) -> std::io::Result<u64> {
    Ok(file.length()?.min(BYTES_MAX))
}

fn read_file(storage: &dyn Storage, start: u64) -> Result<Vec<u8>, Fault> {
    let what = || format!("read the file {} of the log", file_name(start));
    let file = storage.open(&file_name(start)).map_err(Fault::io(what))?;
    let length = length(file.as_ref()).map_err(Fault::io(what))?;
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&mut bytes, 0).map_err(Fault::io(what))?;
    bytes.truncate(read);
    Ok(bytes)
}

//! Pages, records of the log and small files with any contents and valid checksums, as no disk makes
//! them: an engine may refuse them or fail operations, but does not panic, does not hang, and allocates
//! no more than its cache and its files need.

use std::collections::BTreeMap;
use std::sync::Arc;

use concurve_fuzz::{Draw, Target};
use concurve_records::page::{PAGE_BYTES, Page, PageHeader, PageMut};
use concurve_records::salvage::salvage;
use concurve_records::storage::Storage;
use concurve_records::{Engine, Get, LockBias, Status, TransactionKind};

use crate::simulated::Simulated;
use crate::small_store::{make, options};

const CASES: u64 = 300;
/// A leaf whose right neighbour has lesser entries, all stale: a search went round between them.
const KNOWN: [u64; 1] = [983_125_731_312];
/// Two caches of 64 pages, the simulated files several times, and as much again.
const MEMORY_MAX: u64 = 64 << 20;
/// More reads than the store has records: a ring of leaves returns the same ones for ever.
const READS_MAX: u32 = 2_000;
/// The control file has two places, each with a checksum.
const PLACE_BYTES: usize = 512;

type Files = BTreeMap<String, Vec<u8>>;

fn killed_store() -> Files {
    let simulated = Simulated::new();
    let storage: Arc<dyn Storage> = Arc::new(simulated.share());
    make(&storage, || ());
    simulated.contents(false)
}

/// Changes some bytes, often in the header, often to the least or the greatest number.
fn garble(bytes: &mut [u8], draw: &mut Draw) {
    for _ in 0..1 + draw.below(4) {
        let end = if draw.once_in(2) { 64 } else { bytes.len() };
        let at = draw.below(end.min(bytes.len()));
        let Some(byte) = bytes.get_mut(at) else {
            return;
        };
        *byte = match draw.below(4) {
            0 => 0,
            1 => 0xff,
            2 => draw.below(4) as u8,
            _ => draw.byte(),
        };
    }
}

fn garble_page(bytes: &mut [u8], draw: &mut Draw) {
    let index = draw.below(bytes.len() / PAGE_BYTES);
    let place = &mut bytes[index * PAGE_BYTES..][..PAGE_BYTES];
    let mut page = Page::blank();
    page.bytes_mut().copy_from_slice(place);
    // The LSN stays, or the page seems to be newer than the log.
    let lsn = page.lsn();
    garble(&mut page.bytes_mut()[4..], draw);
    page.set_lsn(lsn);
    page.seal();
    place.copy_from_slice(page.bytes());
}

/// Changes the body of one of the records that a file of the log begins with.
fn garble_log(bytes: &mut [u8], draw: &mut Draw) {
    let number = |at: usize, bytes: &[u8]| {
        let part = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(part.try_into().ok()?) as usize)
    };
    let mut at = 0;
    for _ in 0..draw.below(80) {
        let next = number(at, bytes).map_or(0, |length| at + 16 + length);
        if next + 16 >= bytes.len() || number(next, bytes) == Some(0) {
            break;
        }
        at = next;
    }
    let length = number(at, bytes).unwrap_or(0);
    let Some(body) = bytes.get_mut(at + 16..at + 16 + length) else {
        return;
    };
    garble(body, draw);
    let checksum = crc32fast::hash(body);
    bytes[at + 4..at + 8].copy_from_slice(&checksum.to_le_bytes());
}

/// Changes what a checksum after it covers, and the checksum.
fn garble_sealed(bytes: &mut [u8], draw: &mut Draw) {
    let is_end = |end: &usize| {
        let checksum = bytes.get(*end..*end + 4);
        checksum == Some(&crc32fast::hash(&bytes[..*end]).to_le_bytes())
    };
    let Some(end) = (16..bytes.len().min(2_000)).find(is_end) else {
        return;
    };
    garble(&mut bytes[..end], draw);
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..end + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn garble_control(bytes: &mut [u8], draw: &mut Draw) {
    for place in bytes.chunks_mut(PLACE_BYTES) {
        if draw.once_in(2) {
            garble_sealed(place, draw);
        }
    }
}

/// Uses all of a store, whatever its operations answer.
fn use_all(engine: &Engine) {
    let mut session = engine.session();
    for (name, definition) in engine.files() {
        let Ok(file) = session.open(&name) else {
            continue;
        };
        let _ = session.each_record(file, |_| Ok::<(), Status>(()));
        for key in 0..definition.keys.len() {
            let ways = [
                (Get::First(key), Get::Next),
                (Get::Last(key), Get::Previous),
            ];
            for (first, next) in ways {
                let mut get = first;
                for _ in 0..READS_MAX {
                    if session.get(file, get, LockBias::None).is_err() {
                        break;
                    }
                    get = next;
                }
            }
        }
        if session.begin(TransactionKind::Concurrent).is_err() {
            continue;
        }
        for byte in [0, b'0', b'1', 0xff] {
            let record = vec![byte; usize::from(definition.record_bytes)];
            for _ in 0..20 {
                let _ = session.insert(file, &record);
            }
        }
        if !definition.keys.is_empty() && session.get(file, Get::First(0), LockBias::None).is_ok() {
            let _ = session.delete(file);
        }
        let _ = session.abort();
    }
    let _ = engine.verify();
}

fn one(files: &Files, draw: &mut Draw) {
    let mut files = files.clone();
    let wanted = *draw.pick(&[
        "data-",
        "data-",
        "log-",
        "log-",
        "control",
        "extents-",
        "forced",
        "pages.double",
    ]);
    let names: Vec<&String> = files.keys().filter(|it| it.starts_with(wanted)).collect();
    let name = (*draw.pick(&names)).clone();
    let bytes = files.get_mut(&name).unwrap();
    match wanted {
        "data-" => garble_page(bytes, draw),
        "log-" => garble_log(bytes, draw),
        "control" => garble_control(bytes, draw),
        // A header of one page, and copies.
        "pages.double" if draw.once_in(2) => garble_page(&mut bytes[PAGE_BYTES..], draw),
        "pages.double" => garble_sealed(&mut bytes[..PAGE_BYTES], draw),
        _ => garble_sealed(bytes, draw),
    }
    let storage = Simulated::of(&files, 1);
    if let Ok((engine, _)) = Engine::open_shared_in(Arc::new(storage.share()), options()) {
        use_all(&engine);
    }
    let saved = Arc::new(Simulated::new());
    let _ = salvage(&Simulated::of(&files, 1), saved, options());
}

#[test]
fn no_contents_with_valid_checksums_make_an_engine_panic() {
    let files = killed_store();
    Target::new(env!("CARGO_PKG_NAME"), "no_contents_with_valid", &[])
        .cases(CASES)
        .known(&KNOWN)
        .memory_max(MEMORY_MAX)
        .run(|_, draw| one(&files, draw));
}

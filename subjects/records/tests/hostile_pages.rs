//! Pages and records of the log with any contents and valid checksums, as no disk makes them: an engine
//! may refuse them or fail operations, but does not panic and does not hang.

mod common;
#[path = "common/power.rs"]
mod power;
#[path = "common/small_store.rs"]
mod small_store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use concurve_records::page::{PAGE_BYTES, Page};
use concurve_records::salvage::salvage;
use concurve_records::storage::Storage;
use concurve_records::{Engine, Get, LockBias, Status, TransactionKind};
use power::Simulated;
use small_store::{make, options};

const CASES: u64 = 300;
const SOAK: Duration = Duration::from_secs(300);
/// More reads than the store has records: a ring of leaves returns the same ones for ever.
const READS_MAX: u32 = 2_000;

type Files = BTreeMap<String, Vec<u8>>;

fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % below.max(1)
    }
}

fn killed_store() -> Files {
    let simulated = Simulated::new();
    let storage: Arc<dyn Storage> = Arc::new(simulated.share());
    make(&storage, || ());
    simulated.contents(false)
}

/// Changes some bytes, often in the header, often to the least or the greatest number.
fn garble(bytes: &mut [u8], draw: &mut impl FnMut(usize) -> usize) {
    for _ in 0..1 + draw(4) {
        let end = if draw(2) == 0 { 64 } else { bytes.len() };
        let at = draw(end.min(bytes.len()));
        bytes[at] = match draw(4) {
            0 => 0,
            1 => 0xff,
            2 => draw(4) as u8,
            _ => draw(256) as u8,
        };
    }
}

fn garble_page(bytes: &mut [u8], draw: &mut impl FnMut(usize) -> usize) {
    let index = draw(bytes.len() / PAGE_BYTES);
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
fn garble_log(bytes: &mut [u8], draw: &mut impl FnMut(usize) -> usize) {
    let number = |at: usize, bytes: &[u8]| {
        let part = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(part.try_into().ok()?) as usize)
    };
    let mut at = 0;
    for _ in 0..draw(80) {
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

fn one(files: &Files, seed: u64) {
    let mut draw = random(seed);
    let mut files = files.clone();
    let wanted = ["data-", "log-"][draw(2)];
    let names: Vec<&String> = files.keys().filter(|it| it.starts_with(wanted)).collect();
    let name = names[draw(names.len())].clone();
    let bytes = files.get_mut(&name).unwrap();
    match wanted {
        "data-" => garble_page(bytes, &mut draw),
        _ => garble_log(bytes, &mut draw),
    }
    let storage = Simulated::of(&files, 1);
    let begin = Instant::now();
    if let Ok((engine, _)) = Engine::open_shared_in(Arc::new(storage.share()), options()) {
        use_all(&engine);
    }
    let saved = Arc::new(Simulated::new());
    let _ = salvage(&Simulated::of(&files, 1), saved, options());
    // Far above what a busy machine makes of some milliseconds.
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(60), "seed {seed} took {took:?}");
}

#[test]
fn no_contents_with_valid_checksums_make_an_engine_panic() {
    let files = killed_store();
    for seed in 0..CASES {
        let tried = std::panic::catch_unwind(|| one(&files, seed));
        assert!(tried.is_ok(), "seed {seed}");
    }
}

#[test]
#[ignore = "five minutes: make soak"]
fn none_for_five_minutes() {
    let files = killed_store();
    let begin = Instant::now();
    let first = begin.elapsed().as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
    for seed in first.. {
        let tried = std::panic::catch_unwind(|| one(&files, seed));
        assert!(tried.is_ok(), "seed {seed}");
        if begin.elapsed() > SOAK {
            return;
        }
    }
}

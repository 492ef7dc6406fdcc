//! The log in memory that is mapped to its file, which a transaction uses that need not survive a loss of
//! power: a killed process loses nothing, and commits do not call the kernel.

use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::common::{balance, balance_file};
use crate::simulated::{Failure, Simulated};
use concurve_fuzz::Draw;
use concurve_records::log::record::read;
use concurve_records::storage::{Disk, Folder, Storage};
use concurve_records::{
    Durability, Engine, EngineOptions, FileDefinition, FileHandle, Get, Key, Latching, LockBias,
    SegmentKind, Session, TransactionKind,
};
use tempfile::TempDir;

const RECORDS: u32 = 50;

fn options(durability: Durability, checkpoint_bytes: u64) -> EngineOptions {
    EngineOptions {
        latching: Latching::Record,
        durability,
        cache_pages: 256,
        checkpoint_bytes,
        checkpoint_stretch: 1,
    }
}

/// What was asked of the files of the log.
#[derive(Default)]
struct Asked {
    /// Writes by a call of the kernel, to files that are not spare ones.
    written: AtomicU64,
    /// Writes through memory.
    put: AtomicU64,
    /// One of so many is refused; 0: none.
    refused: AtomicU64,
    /// How often files of the log, or names, were forced to the disk.
    forced: AtomicU64,
}

/// A folder that counts, and refuses some writes through memory.
struct Counting {
    folder: Folder,
    asked: Arc<Asked>,
}

struct CountingDisk {
    disk: Arc<dyn Disk>,
    asked: Arc<Asked>,
}

impl Counting {
    fn open(path: &Path, asked: &Arc<Asked>) -> Arc<Self> {
        Arc::new(Self {
            folder: Folder::open(path).unwrap(),
            asked: Arc::clone(asked),
        })
    }
}

impl Storage for Counting {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let disk = self.folder.open(name)?;
        let asked = Arc::clone(&self.asked);
        Ok(match name.starts_with("log-") {
            true => Arc::new(CountingDisk { disk, asked }),
            false => disk,
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.folder.names()
    }

    fn sync_names(&self) -> io::Result<()> {
        self.asked.forced.fetch_add(1, Relaxed);
        self.folder.sync_names()
    }

    fn boot(&self) -> u64 {
        self.folder.boot()
    }

    fn now(&self) -> Duration {
        self.folder.now()
    }
}

impl Disk for CountingDisk {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.disk.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.asked.written.fetch_add(1, Relaxed);
        self.disk.write_at(bytes, at)
    }

    fn put(&self, bytes: &[u8], at: u64) -> bool {
        let number = self.asked.put.fetch_add(1, Relaxed);
        let one_in = self.asked.refused.load(Relaxed);
        let is_refused = one_in > 0 && Draw::new(number).once_in(one_in as usize);
        !is_refused && self.disk.put(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.asked.forced.fetch_add(1, Relaxed);
        self.disk.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.disk.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.disk.set_length(length)
    }
}

fn insert(session: &mut Session, file: FileHandle, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let mut record = [7; 100];
        record[..4].copy_from_slice(&number.to_le_bytes());
        record[4..12].fill(0);
        session.insert(file, &record).unwrap();
    }
}

/// An engine with records, and a session. Neither is closed: the engine is killed.
fn with_accounts(
    storage: Arc<dyn Storage>,
    options: &EngineOptions,
) -> (ManuallyDrop<Engine>, ManuallyDrop<Session>, FileHandle) {
    let (engine, _) = Engine::open_shared_in(storage, options.clone()).unwrap();
    let engine = ManuallyDrop::new(engine);
    engine.create_file("accounts", &balance_file()).unwrap();
    let mut session = ManuallyDrop::new(engine.session());
    let file = session.open("accounts").unwrap();
    insert(&mut session, file, 0..RECORDS);
    (engine, session, file)
}

/// Adds to the balance of a record, in a transaction of its own if there is none.
fn add(session: &mut Session, file: FileHandle, number: u32, more: i64) {
    let get = number.to_le_bytes();
    let record = session.get(file, Get::Equal(0, &get), LockBias::None);
    let mut record = record.unwrap().to_vec();
    let sum = balance(&record) + more;
    record[4..12].copy_from_slice(&sum.to_le_bytes());
    session.update(file, &record).unwrap();
}

/// The balances of all records.
fn balances(engine: &Engine) -> Vec<i64> {
    let mut session = engine.session();
    let file = session.open("accounts").unwrap();
    let mut found = Vec::new();
    session
        .each_record(file, |record| {
            found.push((record[..4].to_vec(), balance(record)));
            Ok::<(), concurve_records::Status>(())
        })
        .unwrap();
    found.sort_unstable_by_key(|it| u32::from_le_bytes(it.0[..].try_into().unwrap()));
    found.into_iter().map(|it| it.1).collect()
}

/// What a killed process has left in a folder.
fn after_a_kill(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// What a start finds there.
fn found_after_a_kill(folder: &Path, options: &EngineOptions) -> Vec<i64> {
    let copy = after_a_kill(folder);
    let (engine, _) = Engine::open(copy.path(), options.clone()).unwrap();
    engine.verify().unwrap();
    balances(&engine)
}

#[test]
fn commits_do_not_call_the_kernel_and_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Arc::new(Asked::default());
    let options = options(Durability::None, 4 << 20);
    let storage = Counting::open(folder.path(), &asked);
    let (_engine, mut session, file) = with_accounts(storage, &options);
    let (written, put) = (asked.written.load(Relaxed), asked.put.load(Relaxed));
    let mut expected = vec![0; RECORDS as usize];
    for round in 1..=200_u32 {
        let number = round * 7 % RECORDS;
        add(&mut session, file, number, i64::from(round));
        expected[number as usize] += i64::from(round);
        if round % 50 == 0 {
            assert_eq!(found_after_a_kill(folder.path(), &options), expected);
        }
    }
    assert_eq!(asked.written.load(Relaxed), written);
    assert_eq!(asked.put.load(Relaxed), put + 200);
    // What is not committed is in no file, or undone.
    session.begin(TransactionKind::Concurrent).unwrap();
    add(&mut session, file, 3, 1_000_000);
    assert_eq!(found_after_a_kill(folder.path(), &options), expected);
}

/// How many records each frame of the newest file of the log has.
fn frames(folder: &Path) -> Vec<usize> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    let name = names.filter(|it| it.starts_with("log-")).max().unwrap();
    let bytes = std::fs::read(folder.join(&name)).unwrap();
    let first = u64::from_str_radix(&name[4..], 16).unwrap();
    let (mut at, mut found) = (0, Vec::new());
    while let Some(frame) = read(&bytes[at..], first + at as u64) {
        found.push(frame.records().count());
        at += frame.bytes();
    }
    found
}

/// All changes of a transaction stand in the log with its commit in one frame, where nothing has to be in the
/// log before: no page is written, and no other session changes the same leaf. A transaction that has more
/// than a buffer holds has several.
#[test]
fn a_transaction_is_one_frame_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(Durability::None, 4 << 20);
    let storage = Arc::new(Folder::open(folder.path()).unwrap());
    let (_engine, mut session, file) = with_accounts(storage, &options);
    let before = frames(folder.path());
    let mut transact = |changes: u32| {
        session.begin(TransactionKind::Concurrent).unwrap();
        (0..changes).for_each(|it| add(&mut session, file, it % RECORDS, 1));
        session.end().unwrap();
        frames(folder.path())
    };
    let after = transact(4);
    assert_eq!(after[..before.len()], before);
    assert_eq!(after[before.len()..], [5]);
    let long = transact(2_000);
    let [parts @ .., last] = &long[after.len()..] else {
        panic!("nothing was appended");
    };
    assert!(
        !parts.is_empty() && parts.iter().all(|it| *it > 100),
        "{parts:?}"
    );
    assert_eq!(parts.iter().sum::<usize>() + last, 2_001);
    assert_eq!(found_after_a_kill(folder.path(), &options)[0], 41);
}

/// Who commits waits for no disk, also where the log goes on in another file. The checkpointer names that one
/// on the disk, and from then on a start knows that it is missing.
#[test]
fn no_commit_forces_a_new_file_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Arc::new(Asked::default());
    let options = options(Durability::None, 1 << 16);
    let storage = Counting::open(folder.path(), &asked);
    let (engine, mut session, file) = with_accounts(storage, &options);
    let newest = || {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|it| it.starts_with("log-")).max().unwrap()
    };
    let (first, forced) = (newest(), asked.forced.load(Relaxed));
    let mut sum = 0;
    while newest() == first {
        add(&mut session, file, 3, 1);
        sum += 1;
    }
    assert_eq!(asked.forced.load(Relaxed), forced);
    assert_eq!(found_after_a_kill(folder.path(), &options)[3], sum);
    engine.do_due_work().unwrap();
    assert!(asked.forced.load(Relaxed) > forced);
    let copy = after_a_kill(folder.path());
    std::fs::remove_file(copy.path().join(newest())).unwrap();
    let Err(fault) = Engine::open(copy.path(), options) else {
        panic!("a file of the log is missing");
    };
    assert!(fault.to_string().contains("is missing"), "{fault}");
}

/// A file that cannot be named is a failure each time: the checkpointer ends, and does not try without end.
#[test]
fn a_file_that_cannot_be_named_stops_the_engine() {
    let storage = Simulated::new();
    let options = options(Durability::None, 1 << 16);
    let (engine, mut session, file) = with_accounts(Arc::new(storage.share()), &options);
    let logs = || {
        let names = storage.contents(false).into_keys();
        names.filter(|it| it.starts_with("log-")).count()
    };
    let before = logs();
    while logs() == before {
        add(&mut session, file, 3, 1);
    }
    storage.fail_after(0, Failure::Io);
    for _ in 0..2 {
        assert!(engine.do_due_work().is_err());
    }
    assert!(storage.has_failed());
}

/// The log goes from memory to calls of the kernel and back, and from file to file, without a gap.
#[test]
fn no_part_is_missing_if_memory_is_refused_now_and_then() {
    for one_in in [1, 2, 40, 0] {
        let folder = tempfile::tempdir().unwrap();
        let asked = Arc::new(Asked::default());
        asked.refused.store(one_in, Relaxed);
        // The shortest files of the log.
        let options = options(Durability::None, 1 << 16);
        let storage = Counting::open(folder.path(), &asked);
        let (engine, _) = Engine::open_shared_in(storage, options.clone()).unwrap();
        let engine = ManuallyDrop::new(engine);
        engine.create_file("accounts", &balance_file()).unwrap();
        let mut session = ManuallyDrop::new(engine.session());
        let file = session.open("accounts").unwrap();
        insert(&mut session, file, 0..RECORDS);
        let mut expected = vec![0; RECORDS as usize];
        for round in 0..1_000_u32 {
            session.begin(TransactionKind::Concurrent).unwrap();
            for step in 0..4 {
                let number = (round * 7 + step) % RECORDS;
                add(&mut session, file, number, i64::from(round));
                expected[number as usize] += i64::from(round);
            }
            session.end().unwrap();
            // A purge appends several records after the commit, which nobody waits for.
            let extra = RECORDS + round;
            insert(&mut session, file, extra..extra + 1);
            let key = extra.to_le_bytes();
            session
                .get(file, Get::Equal(0, &key), LockBias::None)
                .unwrap();
            session.delete(file).unwrap();
            if round % 200 == 199 {
                engine.do_due_work().unwrap();
                let found = found_after_a_kill(folder.path(), &options);
                assert_eq!(found, expected, "one in {one_in}, round {round}");
            }
        }
        let (written, put) = (asked.written.load(Relaxed), asked.put.load(Relaxed));
        assert!(
            put > 0 && (written > 0 || one_in == 0),
            "{one_in}: {put}, {written}"
        );
    }
}

/// What a transaction has gathered is in the log before its pages are on the disk, so that it can be undone.
#[test]
fn a_page_is_not_written_before_what_was_gathered_of_it() {
    for durability in [Durability::None, Durability::Group] {
        let options = options(durability, 1 << 20);
        let storage = Simulated::new();
        let (engine, _) =
            Engine::open_shared_in(Arc::new(storage.share()), options.clone()).unwrap();
        let engine = ManuallyDrop::new(engine);
        engine.create_file("accounts", &balance_file()).unwrap();
        let mut session = ManuallyDrop::new(engine.session());
        let file = session.open("accounts").unwrap();
        insert(&mut session, file, 0..RECORDS);
        let mut other = ManuallyDrop::new(engine.session());
        let others = other.open("accounts").unwrap();
        add(&mut other, others, 4, 9);
        session.begin(TransactionKind::Concurrent).unwrap();
        add(&mut session, file, 3, 5);
        add(&mut other, others, 5, 9);
        // Nodes, too: the second session inserts into the leaf after the first one.
        insert(&mut session, file, RECORDS + 1..RECORDS + 2);
        insert(&mut other, others, RECORDS..RECORDS + 1);
        engine.checkpoint().unwrap();
        // More, after the pages were written.
        add(&mut session, file, 6, 5);
        add(&mut other, others, 7, 9);
        engine.checkpoint().unwrap();
        for storage in [storage.after_power_loss(), storage.after_kill()] {
            let (engine, recovered) = Engine::open_in(Arc::new(storage), options.clone()).unwrap();
            engine.verify().unwrap();
            let mut expected = vec![0; RECORDS as usize + 1];
            for number in [4, 5, 7] {
                expected[number] = 9;
            }
            assert_eq!(balances(&engine), expected, "{durability:?}");
            assert_eq!(recovered.undone, 1);
        }
    }
}

/// While the log is redone, pages that leave the cache have less than is in the log.
#[test]
fn a_log_of_more_pages_than_the_cache_has_is_redone_whole() {
    const LARGE: u32 = 800;
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        cache_pages: 64,
        ..options(Durability::None, 64 << 20)
    };
    let (engine, _) = Engine::open_shared(folder.path(), options.clone()).unwrap();
    let definition = FileDefinition {
        record_bytes: 2000,
        keys: vec![Key::unique(0, 4, SegmentKind::Unsigned)],
    };
    engine.create_file("accounts", &definition).unwrap();
    let mut session = engine.session();
    let file = session.open("accounts").unwrap();
    session.begin(TransactionKind::Concurrent).unwrap();
    for number in 0..LARGE {
        let mut record = vec![0; 2000];
        record[..4].copy_from_slice(&number.to_le_bytes());
        session.insert(file, &record).unwrap();
    }
    session.end().unwrap();
    // Each page once more, in another order.
    for number in (0..LARGE).map(|it| it * 7 % LARGE) {
        add(&mut session, file, number, i64::from(number));
    }
    let expected: Vec<i64> = (0..i64::from(LARGE)).collect();
    assert_eq!(found_after_a_kill(folder.path(), &options), expected);
}

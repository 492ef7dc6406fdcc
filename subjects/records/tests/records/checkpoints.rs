//! When checkpoints are made, and what they ask of the disk.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use concurve_records::storage::{DIRECT_BYTES, Disk, Folder, Storage};
use concurve_records::{
    Durability, Engine, EngineOptions, FileDefinition, FileHandle, Latching, Session,
};
use tempfile::TempDir;

const RECORD_BYTES: u16 = 1000;
const CHECKPOINT_BYTES: u64 = 1 << 18;
const DOUBLE: &str = "pages.double";

type Calls = Arc<Mutex<BTreeMap<(&'static str, String), u64>>>;
/// What happens whenever the file of a name is forced to the disk.
type Meanwhile = Arc<Mutex<Option<(&'static str, Box<dyn FnMut() + Send>)>>>;

/// A folder that counts the calls by the names of its files, and in which something happens meanwhile.
struct Watched {
    folder: Folder,
    calls: Calls,
    meanwhile: Meanwhile,
}

struct WatchedDisk {
    disk: Arc<dyn Disk>,
    name: String,
    calls: Calls,
    meanwhile: Meanwhile,
}

fn count(calls: &Calls, call: &'static str, name: &str) {
    let mut calls = calls.lock().unwrap();
    *calls.entry((call, name.to_owned())).or_default() += 1;
}

impl Storage for Watched {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        count(&self.calls, "open", name);
        Ok(Arc::new(WatchedDisk {
            disk: self.folder.open(name)?,
            name: name.to_owned(),
            calls: Arc::clone(&self.calls),
            meanwhile: Arc::clone(&self.meanwhile),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        count(&self.calls, "remove", name);
        self.folder.remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.folder.names()
    }

    fn sync_names(&self) -> io::Result<()> {
        self.folder.sync_names()
    }

    fn boot(&self) -> u64 {
        self.folder.boot()
    }

    fn now(&self) -> Duration {
        self.folder.now()
    }
}

impl Disk for WatchedDisk {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.disk.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        count(&self.calls, "write", &self.name);
        self.disk.write_at(bytes, at)
    }

    fn write_past_cache(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let is_aligned = bytes.as_ptr().align_offset(DIRECT_BYTES) == 0
            && bytes.len().is_multiple_of(DIRECT_BYTES)
            && at.is_multiple_of(DIRECT_BYTES as u64);
        let call = if is_aligned { "write past" } else { "write" };
        count(&self.calls, call, &self.name);
        self.disk.write_past_cache(bytes, at)
    }

    fn put(&self, bytes: &[u8], at: u64) -> bool {
        self.disk.put(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        count(&self.calls, "sync", &self.name);
        // Not held while it happens, which may force another file.
        let at_this_file = |it: &mut (&'static str, _)| it.0 == self.name;
        let meanwhile = self.meanwhile.lock().unwrap().take_if(at_this_file);
        if let Some((name, mut happens)) = meanwhile {
            happens();
            *self.meanwhile.lock().unwrap() = Some((name, happens));
        }
        self.disk.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.disk.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.disk.set_length(length)
    }
}

/// An engine without a thread of checkpoints, in a watched folder.
struct Bench {
    _folder: TempDir,
    engine: Engine,
    calls: Calls,
    meanwhile: Meanwhile,
}

impl Bench {
    fn new(files: &[&str], checkpoint_stretch: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (calls, meanwhile) = (Calls::default(), Meanwhile::default());
        let watched = Watched {
            folder: Folder::open(folder.path()).unwrap(),
            calls: Arc::clone(&calls),
            meanwhile: Arc::clone(&meanwhile),
        };
        let options = EngineOptions {
            latching: Latching::Record,
            durability: Durability::None,
            cache_pages: 4096,
            checkpoint_bytes: CHECKPOINT_BYTES,
            checkpoint_stretch,
        };
        let (engine, _) = Engine::open_shared_in(Arc::new(watched), options).unwrap();
        let definition = FileDefinition {
            record_bytes: RECORD_BYTES,
            keys: Vec::new(),
        };
        for name in files {
            engine.create_file(name, &definition).unwrap();
        }
        Self {
            _folder: folder,
            engine,
            calls,
            meanwhile,
        }
    }

    fn session(&self, file: &str) -> (Session, FileHandle) {
        let mut session = self.engine.session();
        let file = session.open(file).unwrap();
        (session, file)
    }

    /// While the file of a name is forced to the disk, another session inserts so many records.
    fn insert_while_forcing(&self, name: &'static str, records: u64) {
        let (mut other, file) = self.session("f");
        let inserts = Box::new(move || insert(&mut other, file, records));
        *self.meanwhile.lock().unwrap() = Some((name, inserts));
    }

    fn calls(&self, call: &str, is_meant: impl Fn(&str) -> bool) -> u64 {
        let calls = self.calls.lock().unwrap();
        let meant = calls
            .iter()
            .filter(|it| it.0.0 == call && is_meant(&it.0.1));
        meant.map(|it| it.1).sum()
    }

    /// Inserts records until the next checkpoint has been made; returns how large the log was when it began.
    fn until_checkpoint(&self, session: &mut Session, file: FileHandle) -> u64 {
        let now = || self.engine.statistics();
        let before = now().checkpoints;
        loop {
            let log_bytes = now().log_bytes;
            self.engine.do_due_work().unwrap();
            if now().checkpoints > before {
                return log_bytes;
            }
            insert(session, file, 1);
        }
    }
}

fn insert(session: &mut Session, file: FileHandle, records: u64) {
    for _ in 0..records {
        session
            .insert(file, &[b'x'; RECORD_BYTES as usize])
            .unwrap();
    }
}

/// The distance of two checkpoints, if the log grows by some bytes during each.
fn distance_if(during: u64, stretch: u64) -> u64 {
    let bench = Bench::new(&["f"], stretch);
    let (mut session, file) = bench.session("f");
    bench.insert_while_forcing(DOUBLE, during / u64::from(RECORD_BYTES));
    let first = bench.until_checkpoint(&mut session, file);
    let second = bench.until_checkpoint(&mut session, file);
    *bench.meanwhile.lock().unwrap() = None;
    second - first
}

#[test]
fn checkpoints_that_take_long_come_less_often() {
    // The log has more than the bytes of the records, and a whole number of them.
    let is_near = |found, wanted: u64| (wanted..wanted + wanted / 6).contains(&found);
    for (during, stretch, wanted) in [
        (0, 4, CHECKPOINT_BYTES),
        // A sixteenth of the distance.
        (CHECKPOINT_BYTES / 16, 4, CHECKPOINT_BYTES),
        (CHECKPOINT_BYTES / 4, 4, 2 * CHECKPOINT_BYTES),
        // More than they may be apart.
        (CHECKPOINT_BYTES, 4, 4 * CHECKPOINT_BYTES),
        // The distance was chosen.
        (CHECKPOINT_BYTES / 4, 1, CHECKPOINT_BYTES),
        (CHECKPOINT_BYTES / 4, 0, CHECKPOINT_BYTES),
    ] {
        let found = distance_if(during, stretch);
        assert!(
            is_near(found, wanted),
            "{found} instead of {wanted}, with {during} meanwhile and {stretch} times at most"
        );
    }
}

/// Files of the log that a checkpoint frees are used again: to make one takes as long as to write the log.
#[test]
fn no_file_of_the_log_is_made_or_removed_once_there_are_enough() {
    let bench = Bench::new(&["f"], 4);
    let (mut session, file) = bench.session("f");
    bench.insert_while_forcing(DOUBLE, CHECKPOINT_BYTES / u64::from(RECORD_BYTES));
    let made = || bench.calls("open", |it| it == "unfinished-spare");
    for _ in 0..3 {
        bench.until_checkpoint(&mut session, file);
    }
    let before = made();
    assert!(
        before > 4,
        "there is more than one file between checkpoints"
    );
    for _ in 0..3 {
        bench.until_checkpoint(&mut session, file);
    }
    assert_eq!(made(), before);
    assert_eq!(bench.calls("remove", |_| true), 0);
    *bench.meanwhile.lock().unwrap() = None;
}

/// Whatever the disk takes to make a file of the log: it may be as long as the log takes to fill one. So a start after
/// a crash reads no more than it is to.
#[test]
fn a_checkpoint_does_not_wait_until_there_are_enough_files_of_the_log() {
    let bench = Bench::new(&["f"], 1);
    let (mut session, file) = bench.session("f");
    // A file has a quarter of what the log may grow by.
    let of_a_file = CHECKPOINT_BYTES / 4 / u64::from(RECORD_BYTES);
    bench.insert_while_forcing("unfinished-spare", of_a_file + 1);
    let before = bench.engine.statistics();
    let now = loop {
        insert(&mut session, file, 1);
        bench.engine.do_due_work().unwrap();
        let now = bench.engine.statistics();
        let grown = now.log_bytes - before.log_bytes;
        if now.checkpoints > before.checkpoints || grown > 8 * CHECKPOINT_BYTES {
            break now;
        }
    };
    assert!(
        now.checkpoints > before.checkpoints,
        "none, and the log has grown by {} bytes",
        now.log_bytes - before.log_bytes
    );
    *bench.meanwhile.lock().unwrap() = None;
}

/// Pages are written in the order of their files, whatever the order in which they were first used.
#[test]
fn a_checkpoint_forces_few_files_in_each_batch() {
    const FILES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let bench = Bench::new(&FILES, 1);
    let mut sessions = FILES.map(|it| bench.session(it));
    // A page has eight records, and a checkpoint must not be due.
    for _ in 0..200 {
        sessions
            .iter_mut()
            .for_each(|(session, file)| insert(session, *file, 8));
    }
    let others = [
        "control",
        "extents-",
        "forced",
        "log-",
        "pages.",
        "spare-",
        "unfinished-",
    ];
    let is_of_records = |name: &str| others.iter().all(|it| !name.starts_with(it));
    let of_data = |call: &str| bench.calls(call, is_of_records);
    let batches = || bench.calls("sync", |it| it == DOUBLE);
    let before = (of_data("sync"), of_data("write"), batches());
    bench.engine.checkpoint().unwrap();
    let (syncs, writes) = (of_data("sync") - before.0, of_data("write") - before.1);
    let batches = batches() - before.2;
    assert!(batches > 1, "{batches}");
    // Each batch ends in one file, in which the next one begins.
    let files = FILES.len() as u64;
    let expected = files..files + batches;
    assert!(expected.contains(&syncs), "{syncs} in {batches} batches");
    assert!(expected.contains(&writes), "{writes} in {batches} batches");
}

/// What nobody reads but a start after a crash takes no memory of the kernel, and no time to be copied there.
#[test]
fn the_double_write_buffer_is_written_past_the_cache_of_the_kernel() {
    let bench = Bench::new(&["f"], 1);
    let (mut session, file) = bench.session("f");
    let of_double = |call: &str| bench.calls(call, |it| it == DOUBLE);
    for batches in 1..4 {
        insert(&mut session, file, 100);
        bench.engine.checkpoint().unwrap();
        assert_eq!(of_double("write past"), batches);
        assert_eq!(of_double("sync"), batches);
    }
    assert_eq!(of_double("write"), 0);
}

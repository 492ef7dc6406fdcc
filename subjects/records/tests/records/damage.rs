//! Single damages of a small store, as a kill and as a loss of power leave it: all that was
//! acknowledged is there at the next start, or the start is refused, and says in which file and where.
//!
//! A sample here; `make soak` takes every byte.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use concurve_records::page::PAGE_BYTES;
use concurve_records::storage::{Disk, Storage};

use crate::damages::{Damage, Files, Judge, every, last_write, sample};
use crate::simulated::Simulated;
use crate::small_store::{Truth, make, read};

const SAMPLES: usize = 2_400;
/// What the names of a store's files begin with.
const KINDS: [&str; 8] = [
    "log-",
    "data-",
    "gone-",
    "spare-",
    "pages.double",
    "control",
    "extents-",
    "forced",
];

/// The store, an older state of it, and what was acknowledged.
struct Made {
    killed: Files,
    older: Files,
    /// Only what was forced to the disk.
    forced: Files,
    truth: Truth,
}

fn made() -> Made {
    let simulated = Simulated::new();
    let storage: Arc<dyn Storage> = Arc::new(simulated.share());
    let mut older = BTreeMap::new();
    let truth = make(&storage, || older = simulated.contents(false));
    let (killed, forced) = (simulated.contents(false), simulated.contents(true));
    Made {
        killed,
        older,
        forced,
        truth,
    }
}

#[test]
fn a_store_without_damage_is_read_whole() {
    let made = made();
    for files in [&made.killed, &made.forced] {
        assert_eq!(read(Arc::new(Simulated::of(files, 1))).unwrap(), made.truth);
    }
}

#[test]
fn a_store_of_an_older_format_is_read_whole_and_written_on() {
    let truth = made().truth;
    for format in ["format-1", "format-2"] {
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let entries = std::fs::read_dir(golden.join(format)).unwrap();
        let files: Files = entries
            .map(|it| {
                let it = it.unwrap();
                let name = it.file_name().into_string().unwrap();
                (name, std::fs::read(it.path()).unwrap())
            })
            .collect();
        let storage = Simulated::of(&files, 1);
        for _ in 0..2 {
            let found = read(Arc::new(storage.share()));
            assert_eq!(found.unwrap(), truth, "{format}");
        }
        // An earlier version cannot read the log that is written now, and refuses the store by this name.
        let control = &storage.contents(false)["control"];
        assert!(control.windows(16).any(|it| it == b"concurve rec. 3\n"));
    }
}

#[test]
fn a_sample_of_single_damages_loses_nothing_silently() {
    let made = made();
    let judge = Judge::new(&made.killed, &made.truth, 1);
    let damages = sample(&made.killed, &made.older, SAMPLES, 20_261_122);
    let of_a_kind = |kind: &str| {
        damages
            .iter()
            .filter(|it| it.file.starts_with(kind))
            .count()
    };
    for kind in KINDS {
        assert!(of_a_kind(kind) >= 30, "{kind}: {}", of_a_kind(kind));
    }
    assert!(damages.len() >= 2_000);
    judge.all(damages);
}

#[test]
#[ignore = "takes half an hour: make soak"]
fn every_single_damage_loses_nothing_silently() {
    let made = made();
    let judge = Judge::new(&made.killed, &made.truth, 1);
    judge.all(every(&made.killed, &made.older));
}

/// After a loss of power, damage of the last forced write may look as if that was torn, and zeros up to
/// the end as if nothing more was written; all other damage is told.
#[test]
fn a_sample_of_damages_after_a_power_loss_loses_nothing_silently() {
    let made = made();
    let judge = Judge::new(&made.forced, &made.truth, 2);
    let (name, last, end) = last_write(&made.killed);
    let damages = sample(&made.forced, &made.older, SAMPLES / 2, 4_711);
    let looks_torn = |it: &Damage| {
        let (from, to) = it.range(end);
        it.file == name && (from >= last || to >= last && it.leaves_the_length())
    };
    judge.all(damages.into_iter().filter(|it| !looks_torn(it)).collect());
}

/// A store whose files of the log say that they are longer than any memory, as sparse files may be.
struct Grown(Simulated);

struct GrownDisk(Arc<dyn Disk>);

impl Storage for Grown {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let disk = self.0.open(name)?;
        Ok(match name.starts_with("log-") {
            true => Arc::new(GrownDisk(disk)),
            false => disk,
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn sync_names(&self) -> io::Result<()> {
        self.0.sync_names()
    }

    fn boot(&self) -> u64 {
        self.0.boot()
    }

    fn now(&self) -> Duration {
        self.0.now()
    }
}

impl Disk for GrownDisk {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }
}

#[test]
fn a_log_that_has_grown_beyond_the_memory_is_read_whole() {
    let made = made();
    for files in [&made.killed, &made.forced] {
        let grown = Grown(Simulated::of(files, 1));
        assert_eq!(read(Arc::new(grown)).unwrap(), made.truth);
    }
}

/// `pages.double` as earlier versions wrote it: 64 places, and the header behind them or none.
fn in_earlier_format(double: &[u8], with_header: bool) -> Vec<u8> {
    let count = u32::from_le_bytes(double[16..20].try_into().unwrap()) as usize;
    let mut earlier = double[PAGE_BYTES..][..count * PAGE_BYTES].to_vec();
    if with_header {
        earlier.resize(64 * PAGE_BYTES, 0);
        let mut header = double[..20 + 12 * count].to_vec();
        header[..16].copy_from_slice(b"concurve batch1\n");
        header.extend(crc32fast::hash(&header).to_le_bytes());
        earlier.extend(header);
    }
    earlier
}

#[test]
fn a_torn_page_is_mended_from_each_format_of_its_copy() {
    let made = made();
    let double = made.killed["pages.double"].clone();
    let mut torn = made.killed.clone();
    let places = double.chunks_exact(PAGE_BYTES).skip(1).find_map(|copy| {
        torn.iter().find_map(|(name, bytes)| {
            let mut pages = bytes.chunks_exact(PAGE_BYTES);
            let index = pages.position(|page| name.starts_with("data-") && page == copy)?;
            Some((name.clone(), index * PAGE_BYTES))
        })
    });
    let (name, at) = places.expect("a page of the last batch is in its place");
    let page = &mut torn.get_mut(&name).unwrap()[at..][..PAGE_BYTES];
    page[64..].iter_mut().for_each(|byte| *byte ^= 0xff);
    let mut read_with = |double: Vec<u8>| {
        torn.insert("pages.double".to_owned(), double);
        read(Arc::new(Simulated::of(&torn, 1)))
    };
    for copies in [
        double.clone(),
        in_earlier_format(&double, true),
        in_earlier_format(&double, false),
    ] {
        assert_eq!(read_with(copies).unwrap(), made.truth);
    }
    let said = read_with(Vec::new()).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains(&name), "{said}");
}

//! Single damages of a small store, as a kill and as a loss of power leave it: all that was
//! acknowledged is there at the next start, or the start is refused, and says in which file and where.
//!
//! A sample here; `make soak` takes every byte.

mod common;
#[path = "common/damages.rs"]
mod damages;
#[path = "common/simulated.rs"]
mod simulated;
#[path = "common/small_store.rs"]
mod small_store;

use std::collections::BTreeMap;
use std::sync::Arc;

use concurve_records::storage::Storage;
use damages::{Damage, Files, Judge, every, sample};
use simulated::Simulated;
use small_store::{Truth, make, read};

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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1");
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files: Files = entries
        .map(|it| {
            let name = it.file_name().into_string().unwrap();
            (name, std::fs::read(it.path()).unwrap())
        })
        .collect();
    let storage = Simulated::of(&files, 1);
    let truth = made().truth;
    for _ in 0..2 {
        assert_eq!(read(Arc::new(storage.share())).unwrap(), truth);
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
    let (name, last, end) = damages::last_write(&made.killed);
    let damages = sample(&made.forced, &made.older, SAMPLES / 2, 4_711);
    let looks_torn = |it: &Damage| {
        let (from, to) = it.range(end);
        it.file == name && (from >= last || to >= last && it.leaves_the_length())
    };
    judge.all(damages.into_iter().filter(|it| !looks_torn(it)).collect());
}

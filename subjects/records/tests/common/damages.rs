//! Damages of files, and the judgement of what a start makes of them.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use concurve_fuzz::Draw;
use concurve_records::salvage::salvage;

use crate::simulated::Simulated;
use crate::small_store::{Truth, options, read};

pub type Files = BTreeMap<String, Vec<u8>>;

/// A start that takes longer hangs.
const HANGS: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Damage {
    pub file: String,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Flip {
        at: usize,
        mask: u8,
    },
    Cut {
        at: usize,
    },
    Zero {
        at: usize,
        bytes: usize,
    },
    /// A part is there twice, and what follows it stands later.
    Double {
        at: usize,
        bytes: usize,
    },
    /// A part is written once more, over what follows it.
    DoubleOver {
        at: usize,
        bytes: usize,
    },
    /// The whole file is there twice.
    DoubleAll,
    Delete,
    /// The file is replaced by what it was earlier.
    Older(Vec<u8>),
}

impl Damage {
    pub fn of(&self, files: &Files) -> Files {
        let mut files = files.clone();
        let Some(bytes) = files.get_mut(&self.file) else {
            return files;
        };
        match &self.kind {
            Kind::Flip { at, mask } => bytes[*at] ^= mask,
            Kind::Cut { at } => bytes.truncate(*at),
            Kind::Zero { at, bytes: many } => {
                let end = bytes.len().min(at + many);
                bytes[*at..end].fill(0);
            }
            Kind::Double { at, bytes: many } => {
                let part = bytes[*at..bytes.len().min(at + many)].to_vec();
                let after = at + part.len();
                drop(bytes.splice(after..after, part));
            }
            Kind::DoubleOver { at, bytes: many } => {
                let part = bytes[*at..bytes.len().min(at + many)].to_vec();
                let after = bytes.len().min(at + part.len());
                let end = bytes.len().min(after + part.len());
                bytes[after..end].copy_from_slice(&part[..end - after]);
            }
            Kind::DoubleAll => bytes.extend_from_within(..),
            Kind::Delete => drop(files.remove(&self.file)),
            Kind::Older(older) => bytes.clone_from(older),
        }
        files
    }

    /// The bytes that it changes, in a file of this length.
    pub fn range(&self, length: usize) -> (usize, usize) {
        match self.kind {
            Kind::Flip { at, .. } => (at, at + 1),
            Kind::Cut { at } => (at, length),
            Kind::Zero { at, bytes } => (at, at + bytes),
            Kind::Double { at, bytes } => (at + bytes, length),
            Kind::DoubleOver { at, bytes } => (at + bytes, at + 2 * bytes),
            Kind::DoubleAll | Kind::Delete | Kind::Older(_) => (0, length),
        }
    }

    /// Whether bytes are changed, but none are cut off or added.
    pub fn leaves_the_length(&self) -> bool {
        matches!(
            self.kind,
            Kind::Flip { .. } | Kind::Zero { .. } | Kind::DoubleOver { .. } | Kind::Older(_)
        )
    }
}

/// Where in a file of the log the last record begins that is not zero: roughly.
fn used(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|it| *it != 0);
    last.map_or(0, |it| it + 1)
}

/// Damages at random places of random files, the same for the same seed. Half of the places are in
/// the log.
pub fn sample(files: &Files, older: &Files, many: usize, seed: u64) -> Vec<Damage> {
    let mut source = Draw::new(seed);
    let mut draw = |below: usize| source.below(below);
    let names: Vec<&String> = files.keys().collect();
    let logs: Vec<&String> = files.keys().filter(|it| it.starts_with("log-")).collect();
    let lengths = [1, 4, 16, 100, 512, 4096, 8192];
    let mut all = whole(files, older);
    while all.len() < many {
        let from = if draw(2) == 0 { &logs } else { &names };
        let file = from[draw(from.len())].clone();
        let end = used(&files[&file]).max(1);
        let bytes = lengths[draw(lengths.len())];
        // Often where pages, sectors and halves of pages begin.
        let mut at = draw(end);
        if draw(3) == 0 {
            at -= at % bytes;
        }
        let kind = match draw(5) {
            0 | 1 => Kind::Flip {
                at,
                mask: 1 + draw(255) as u8,
            },
            2 => Kind::Cut { at },
            3 => Kind::Zero { at, bytes },
            _ if draw(2) == 0 => Kind::Double { at, bytes },
            _ => Kind::DoubleOver { at, bytes },
        };
        all.push(Damage { file, kind });
    }
    all
}

/// Each file deleted, doubled, emptied; the control file and the log also of an earlier time.
fn whole(files: &Files, older: &Files) -> Vec<Damage> {
    let mut all = Vec::new();
    for (file, bytes) in files {
        let end = bytes.len();
        let mut kinds = vec![Kind::Delete, Kind::DoubleAll, Kind::Cut { at: 0 }];
        kinds.push(Kind::Zero { at: 0, bytes: end });
        kinds.extend([end / 2, end.saturating_sub(1)].map(|at| Kind::Cut { at }));
        let has_age = file.starts_with("log-") || file == "control";
        if let Some(older) = older.get(file).filter(|it| has_age && *it != bytes) {
            kinds.push(Kind::Older(older.clone()));
        }
        let of_file = |kind| Damage {
            file: file.clone(),
            kind,
        };
        all.extend(kinds.into_iter().map(of_file));
    }
    all
}

/// Every byte flipped, cut and zeroed, and every sector and page doubled and zeroed.
pub fn every(files: &Files, older: &Files) -> Vec<Damage> {
    let mut all = whole(files, older);
    for (file, bytes) in files {
        let mut add = |kind| {
            all.push(Damage {
                file: file.clone(),
                kind,
            });
        };
        for (at, byte) in bytes.iter().enumerate().take(used(bytes)) {
            add(Kind::Flip {
                at,
                mask: 1 + (at * 31 % 255) as u8,
            });
            if *byte != 0 {
                add(Kind::Zero { at, bytes: 1 });
            }
            if at % 16 == 0 {
                add(Kind::Cut { at });
                add(Kind::Double { at, bytes: 1 });
            }
        }
        for bytes_of_part in [512, 4096, 8192] {
            for at in (0..used(bytes)).step_by(bytes_of_part) {
                let bytes = bytes_of_part;
                add(Kind::Zero { at, bytes });
                add(Kind::Double { at, bytes });
                add(Kind::DoubleOver { at, bytes });
            }
        }
    }
    all
}

/// The file of the log that was written last, the byte in it from which on that was, at the latest, and
/// where it ends.
pub fn last_write(killed: &Files) -> (String, usize, usize) {
    let name = killed.keys().rfind(|it| it.starts_with("log-")).unwrap();
    let first = u64::from_str_radix(&name[4..], 16).unwrap();
    let end = u64::from_le_bytes(killed["forced"][8..16].try_into().unwrap());
    let end = (end - first) as usize;
    // The last transaction is an insert of a record of 260 bytes with its entries, and its end.
    (name.clone(), end.saturating_sub(1_000), end)
}

/// What a start makes of a damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Whole,
    Refused,
    Loss,
    Panic,
    Hang,
    /// Refused without the file or the place.
    Unclear,
    /// Refused, and what is whole cannot be saved.
    NotSaved,
}

pub struct Judge<'a> {
    files: &'a Files,
    truth: &'a Truth,
    /// 1: the machine has run since the store was made.
    boot: u64,
}

impl<'a> Judge<'a> {
    pub fn new(files: &'a Files, truth: &'a Truth, boot: u64) -> Self {
        Self { files, truth, boot }
    }

    /// Tries all damages, and fails with examples of what must not be.
    pub fn all(&self, damages: Vec<Damage>) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let parts = damages.chunks(damages.len().div_ceil(threads));
        let judged: Vec<(Outcome, String)> = std::thread::scope(|scope| {
            let judge = |part| scope.spawn(move || self.part(part));
            let threads: Vec<_> = parts.map(judge).collect();
            threads
                .into_iter()
                .flat_map(|it| it.join().unwrap())
                .collect()
        });
        let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
        let mut examples = Vec::new();
        for (outcome, text) in judged {
            let count = counts.entry(outcome).or_default();
            *count += 1;
            if !text.is_empty() && *count <= 8 {
                examples.push(format!("{outcome:?}: {text}"));
            }
        }
        println!("{} damages: {counts:?}", damages.len());
        assert!(examples.is_empty(), "{counts:?}\n{}", examples.join("\n"));
    }

    /// The outcomes, and a text of each that must not be.
    fn part(&self, damages: &[Damage]) -> Vec<(Outcome, String)> {
        let each = damages.iter().map(|damage| {
            let (outcome, text) = self.one(damage);
            match outcome {
                Outcome::Whole | Outcome::Refused => (outcome, String::new()),
                _ => (outcome, format!("{damage:?}: {text}")),
            }
        });
        each.collect()
    }

    fn one(&self, damage: &Damage) -> (Outcome, String) {
        let judged = self.start(damage);
        // Once more, because other programs may have had the CPU.
        match judged.0 {
            Outcome::Hang => self.start(damage),
            _ => judged,
        }
    }

    fn start(&self, damage: &Damage) -> (Outcome, String) {
        let storage = Arc::new(Simulated::of(&damage.of(self.files), self.boot));
        let begin = Instant::now();
        let started = catch_unwind(AssertUnwindSafe(|| read(storage)));
        if begin.elapsed() > HANGS {
            return (Outcome::Hang, String::new());
        }
        match started {
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                (Outcome::Panic, text.unwrap_or_default())
            }
            Ok(Ok(truth)) if truth == *self.truth => (Outcome::Whole, String::new()),
            Ok(Ok(truth)) => (Outcome::Loss, lost(self.truth, &truth)),
            Ok(Err(fault)) => {
                let text = fault.to_string();
                match is_clear(&text, &damage.file) {
                    true => self.save(damage, text),
                    false => (Outcome::Unclear, text),
                }
            }
        }
    }
}

impl Judge<'_> {
    /// What is saved of a refused store must be a store, with records that were there once; and the
    /// damaged one must be as it was.
    fn save(&self, damage: &Damage, text: String) -> (Outcome, String) {
        let files = damage.of(self.files);
        let (from, to) = (Simulated::of(&files, self.boot), Simulated::new());
        let saved = catch_unwind(AssertUnwindSafe(|| {
            salvage(&from, Arc::new(to.share()), options()).map(|_| read(Arc::new(to.share())))
        }));
        let found = match saved {
            Ok(Ok(Ok(found))) => found,
            Err(_) => return (Outcome::Panic, text),
            Ok(other) => return (Outcome::NotSaved, format!("{other:?}")),
        };
        let files_after = from.contents(false);
        let is_kept = files
            .iter()
            .all(|(name, bytes)| files_after[name] == *bytes);
        let mut numbers = found.records.iter();
        let is_known = numbers.all(|(name, records)| {
            let known = |it: &u32| *it < 260 || *it == 100_000;
            ["items", "others"].contains(&name.as_str()) && records.keys().all(known)
        });
        match is_kept && is_known {
            true => (Outcome::Refused, text),
            false => (
                Outcome::NotSaved,
                format!("kept {is_kept}: {}", lost(self.truth, &found)),
            ),
        }
    }
}

/// Whether a refusal names the file and the place. A lost end of the log is noticed in the file of it
/// that remains.
fn is_clear(text: &str, file: &str) -> bool {
    let is_named = match file.starts_with("log-") {
        true => text.contains("log-"),
        false => text.contains(file),
    };
    is_named && (text.contains(" byte ") || text.contains("missing"))
}

fn lost(expected: &Truth, found: &Truth) -> String {
    let count = |truth: &Truth| {
        let each = truth.records.iter();
        let counts: Vec<_> = each.map(|it| format!("{} {}", it.0, it.1.len())).collect();
        format!("{}, plain {}", counts.join(", "), truth.plain)
    };
    format!("{} instead of {}", count(found), count(expected))
}

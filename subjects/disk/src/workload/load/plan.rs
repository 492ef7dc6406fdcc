//! What is loaded: the document's figures, what is assumed beside them, and the export files.
//!
//! Tables are of very unequal sizes, as in exports of such systems.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, LogNormal};

use crate::page_cache::PageCacheTunables;
use crate::time::{Time, milliseconds};

/// What the document says.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Bytes in the database in the end, and how many tables in how many files.
    pub bytes: u64,
    pub tables: u32,
    pub files: u32,
    pub loaders: u32,
    /// Data volumes, and their size in bytes; the size of the log volume.
    pub volumes: u32,
    pub volume_bytes: u64,
    pub log_bytes: u64,
    pub seed: u64,
}

impl Load {
    /// That of the document, or a part of it: fewer tables and bytes in the same proportions.
    pub fn of_document(scale: f64, seed: u64) -> Self {
        let gigabytes = |it: f64| (it * 1e9) as u64;
        Self {
            bytes: gigabytes(73.0 * scale),
            tables: ((44_000.0 * scale) as u32).max(34),
            files: 34,
            loaders: 5,
            volumes: 6,
            volume_bytes: gigabytes(15.0),
            log_bytes: gigabytes(2.0),
            seed,
        }
    }
}

/// How savepoints reach the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Writing {
    /// Through the page cache of the host, then `fsync`
    Cached,
    /// Around it, so many requests at a time for each volume
    Direct,
}

/// What the document does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumptions {
    pub writing: Writing,
    /// Requests under way for each volume, when writing directly.
    pub direct_depth: usize,
    /// CPU time of a loader and the database for a megabyte of the database.
    pub cpu_per_megabyte: Time,
    /// Bytes of an export file for one in the database.
    pub export_share: f64,
    /// Pages all over the database that the savepoint after a table writes besides the table's
    /// own: catalogue, allocation maps, indexes.
    pub scattered_pages: u32,
    /// Megabytes between commits, each of which writes the log.
    pub commit_megabytes: f64,
    /// Bytes of log for one in the database.
    pub log_share: f64,
    /// The part of the database that the closing jobs read.
    pub closing_share: f64,
    pub page_cache: PageCacheTunables,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            writing: Writing::Cached,
            direct_depth: 4,
            cpu_per_megabyte: milliseconds(100.0),
            export_share: 0.04,
            scattered_pages: 24,
            commit_megabytes: 1.0,
            log_share: 0.1,
            closing_share: 0.05,
            page_cache: PageCacheTunables::default(),
        }
    }
}

/// The tables of one file, in bytes of the database.
pub type File = Vec<u64>;

/// σ of the logarithms: of 44,000 tables, 1 % then hold about 60 % of the bytes.
const TABLE_SPREAD: f64 = 2.6;
const FILE_SPREAD: f64 = 1.0;

/// A table is a page at least.
const TABLE_MIN: u64 = 8192;

/// The files of a load, the biggest first. Tables fall to files by the files' sizes.
pub fn files(load: &Load) -> Vec<File> {
    let mut random = SmallRng::seed_from_u64(load.seed);
    let weights = draws(load.files, FILE_SPREAD, &mut random);
    let sizes = draws(load.tables, TABLE_SPREAD, &mut random);
    let per_weight = load.bytes as f64 / sizes.iter().sum::<f64>();
    let mut files: Vec<File> = vec![Vec::new(); load.files as usize];
    let total: f64 = weights.iter().sum();
    let mut owed = vec![0.0; weights.len()];
    for size in sizes {
        // The file that lags most behind its share of the tables gets the next one.
        for (owed, weight) in owed.iter_mut().zip(&weights) {
            *owed += weight / total;
        }
        let next = (0..owed.len()).max_by(|&a, &b| owed[a].total_cmp(&owed[b]));
        let next = next.expect("there are files");
        owed[next] -= 1.0;
        files[next].push(((size * per_weight) as u64).max(TABLE_MIN));
    }
    files.sort_by_key(|it| std::cmp::Reverse(it.iter().sum::<u64>()));
    files
}

fn draws(count: u32, spread: f64, random: &mut SmallRng) -> Vec<f64> {
    let sizes = LogNormal::new(0.0, spread).expect("the spread is finite");
    (0..count).map(|_| sizes.sample(random)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_all_tables_and_bytes_and_are_unequal() {
        let load = Load::of_document(0.1, 1);
        let files = files(&load);
        assert_eq!(files.len(), 34);
        assert_eq!(files.iter().map(Vec::len).sum::<usize>(), 4400);
        let sums: Vec<u64> = files.iter().map(|it| it.iter().sum()).collect();
        let total: u64 = sums.iter().sum();
        assert!((total as f64 / load.bytes as f64 - 1.0).abs() < 0.01);
        assert!(sums.is_sorted_by(|a, b| a >= b));
        assert!(sums[0] > 5 * sums[20]);
    }
}

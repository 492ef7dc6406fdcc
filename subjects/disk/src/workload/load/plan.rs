//! The parameters of the load: the document's figures, and the assumptions.

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
    /// With direct I/O, bypassing the page cache, with several requests in flight for each volume
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

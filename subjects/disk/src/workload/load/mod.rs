//! The load of document 003: processes that load tables into a database, a savepoint after each,
//! and two jobs that read what was loaded.
//!
//! The document says what is loaded, by how many, and when savepoints are made. It does not say
//! how the database writes; that is in [`Assumptions`], and how much hangs on each of them is what
//! the study asks.

mod closing;
mod database;
mod loader;
pub mod tables;
mod write_back;
mod writer;

use std::cell::RefCell;
use std::rc::Rc;

use super::Process;
use crate::error::Error;
use crate::page_cache;
use crate::time::{Time, milliseconds};
use database::Database;

/// Shared by the processes of one load.
type Shared = Rc<RefCell<Database>>;

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
    pub page_cache: page_cache::Settings,
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
            page_cache: page_cache::Settings::default(),
        }
    }
}

/// Pages of the database: 8 KiB.
const PAGE_SECTORS: u64 = 16;

/// The processes of a load on a volume of so many sectors: the loaders, the database's writers
/// (one a volume), write-back, and the closing jobs.
///
/// # Errors
/// Usage: the data volumes, the log and the exports do not fit.
pub fn processes(
    load: &Load,
    assumptions: &Assumptions,
    sectors: u64,
) -> Result<Vec<Box<dyn Process>>, Error> {
    let places = Places::of(load);
    let database = Database::new(load, assumptions.clone(), sectors, places.clone())?;
    let shared = Rc::new(RefCell::new(database));
    let mut processes: Vec<Box<dyn Process>> = Vec::new();
    for number in 0..load.loaders as usize {
        processes.push(Box::new(loader::Loader::new(shared.clone(), number)));
    }
    for volume in 0..load.volumes as usize {
        processes.push(Box::new(writer::Writer::new(shared.clone(), volume)));
    }
    processes.push(Box::new(write_back::WriteBack::new(shared.clone())));
    for _ in &places.closing {
        processes.push(Box::new(closing::ClosingJob::new(shared.clone())));
    }
    Ok(processes)
}

/// Who is where among the processes.
#[derive(Debug, Clone)]
struct Places {
    writers: Vec<usize>,
    write_back: usize,
    closing: Vec<usize>,
}

impl Places {
    fn of(load: &Load) -> Self {
        let (loaders, volumes) = (load.loaders as usize, load.volumes as usize);
        let write_back = loaders + volumes;
        Self {
            writers: (loaders..write_back).collect(),
            write_back,
            closing: (write_back + 1..write_back + 3).collect(),
        }
    }
}

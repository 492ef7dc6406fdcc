//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::database::Kind;
use crate::error::Error;
use crate::export::Extent;
use crate::load::{Launch, Loaders};
use crate::streams::Streams;

/// The number of files of an export set.
const FILES: u64 = 34;
const BYTES_MIN: u64 = 1 << 20;
const BYTES_MAX: u64 = 1 << 40;
/// The largest number of threads.
const THREADS_MAX: u64 = 4096;

/// Put load on a volume: load a database, or run streams of requests
#[derive(Debug, Parser)]
#[command(name = "concurve-storage", version, max_term_width = 100)]
#[command(after_help = "Examples:
  concurve-storage export /data/exports --size 50M
  concurve-storage load sqlite /data/database --exports /data/exports
  concurve-storage load postgres 'host=/tmp user=postgres' --exports /data/exports --watch /data
  concurve-storage streams /data --writers 4 --depth 32 --readers 1 --read-rate 1000")]
pub struct Options {
    #[command(subcommand)]
    pub work: Work,
}

#[derive(Debug, Subcommand)]
pub enum Work {
    /// Create an export set: 34 files of tables, in the proportions of document 003
    Export(ExportOptions),
    /// Load an export set into a database, and verify it
    Load(LoadOptions),
    /// Load the files that are named on standard input: a loader process of a load
    #[command(hide = true)]
    Loader(LoaderOptions),
    /// Write and read with O_DIRECT, bypassing the page cache
    Streams(StreamOptions),
}

#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The folder to create
    pub folder: PathBuf,

    /// Total size of the tables: 50M, 73G
    #[arg(long, value_name = "SIZE", default_value = "50M", value_parser = size)]
    pub size: u64,

    /// Number of tables, at least 34 [default: in the document's proportion, 44,000 for 73G]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FILES as i64..=1_000_000))]
    pub tables: Option<u32>,

    /// Seed of the sizes and the contents
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct LoadOptions {
    /// The kind of database
    #[arg(value_enum)]
    pub database: Kind,

    /// A new or empty folder for it; for PostgreSQL its address instead: 'host=/tmp user=postgres'
    #[arg(value_name = "FOLDER|ADDRESS")]
    pub at: String,

    /// The folder of the export set
    #[arg(long, value_name = "FOLDER")]
    pub exports: PathBuf,

    /// Number of concurrent loaders
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub loaders: u16,

    /// Kind of loaders [default: processes; for the record engine threads]
    #[arg(long, value_name = "KIND", value_enum)]
    pub loaders_are: Option<LoadersAre>,

    /// Before the load, drop the whole page cache of the machine, as root
    #[arg(long)]
    pub drop_caches: bool,

    /// The folder whose device is observed [default: that of the database]
    #[arg(long, value_name = "FOLDER")]
    pub watch: Option<PathBuf>,

    /// Write the times of each table to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub times: Option<PathBuf>,
}

/// Whether loaders are processes or threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadersAre {
    /// A process each
    Processes,
    /// A thread each, of one process
    Threads,
}

#[derive(Debug, Args)]
pub struct LoaderOptions {
    #[arg(value_enum)]
    pub database: Kind,
    pub at: String,
    /// Counted from 0
    pub number: usize,
}

#[derive(Debug, Args)]
pub struct StreamOptions {
    /// The folder for the files, which remain
    pub folder: PathBuf,

    /// Number of writers, each of which writes its own file sequentially
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..=THREADS_MAX))]
    pub writers: u64,

    /// Requests in flight of each writer
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    pub depth: u64,

    /// Size of a write
    #[arg(long, value_name = "KIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(4..=16384))]
    pub write_kib: u64,

    /// Number of readers, each of which reads its own file at random positions, one request at a
    /// time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=THREADS_MAX))]
    pub readers: u64,

    /// Reads a second of each reader, at even intervals [default: one after the other]
    #[arg(long, value_name = "N")]
    pub read_rate: Option<f64>,

    /// Size of a read
    #[arg(long, value_name = "KIB", default_value_t = 4, value_parser = clap::value_parser!(u64).range(4..=16384))]
    pub read_kib: u64,

    /// Size of each file
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size)]
    pub file_size: u64,

    /// Duration
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub seconds: f64,

    /// Seed of the positions that are read
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl ExportOptions {
    pub fn extent(&self) -> Extent {
        Extent {
            bytes: self.size,
            tables: self.tables,
            seed: self.seed,
        }
    }
}

impl LoadOptions {
    /// The loaders, if the database supports their kind.
    pub fn loaders(&self) -> Result<Loaders, Error> {
        let kind = self.loaders_are.unwrap_or(match self.database.is_shared() {
            true => LoadersAre::Processes,
            false => LoadersAre::Threads,
        });
        if kind == LoadersAre::Processes && !self.database.is_shared() {
            return Err(Error::Usage(format!(
                "--loaders-are processes: {} lives in one process, so its loaders are threads",
                self.database.name()
            )));
        }
        let processes = match kind {
            LoadersAre::Processes => Some(self.launch()?),
            LoadersAre::Threads => None,
        };
        Ok(Loaders {
            count: self.loaders.into(),
            processes,
        })
    }

    /// Starts this program with [`LoaderOptions`].
    fn launch(&self) -> Result<Launch, Error> {
        let program = std::env::current_exe()
            .map_err(Error::io("find this program", Path::new("/proc/self/exe")))?;
        Ok(Launch {
            program,
            arguments: ["loader", self.database.name(), &self.at]
                .map(OsString::from)
                .to_vec(),
        })
    }
}

impl StreamOptions {
    pub fn streams(&self) -> Result<Streams, Error> {
        let usage = |text: String| Err(Error::Usage(text));
        for (name, kib) in [
            ("--write-kib", self.write_kib),
            ("--read-kib", self.read_kib),
        ] {
            if kib % 4 != 0 {
                return usage(format!("{name} {kib}: give a multiple of 4"));
            }
            if kib << 10 > self.file_size {
                return usage(format!("{name} {kib}: more than a file has (--file-size)"));
            }
        }
        if self.writers * self.depth > THREADS_MAX {
            return usage(format!(
                "--writers {} times --depth {}: {THREADS_MAX} requests at most",
                self.writers, self.depth
            ));
        }
        if self.writers + self.readers == 0 {
            return usage("nothing to do: give --writers or --readers".to_owned());
        }
        between("--seconds", self.seconds, 0.01, 86400.0)?;
        if let Some(rate) = self.read_rate {
            between("--read-rate", rate, 0.01, 1e6)?;
        }
        Ok(Streams {
            writers: self.writers as usize,
            depth: self.depth as usize,
            write_bytes: (self.write_kib << 10) as usize,
            readers: self.readers as usize,
            read_rate: self.read_rate,
            read_bytes: (self.read_kib << 10) as usize,
            file_bytes: self.file_size,
            duration: Duration::from_secs_f64(self.seconds),
            seed: self.seed,
        })
    }
}

/// Refuses a value that is not in the range.
fn between(name: &str, value: f64, low: f64, high: f64) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let text = format!("{name} {value}: give a number from {low} to {high}");
    Err(Error::Usage(text))
}

/// Parses `50M`, `1.5G`: in powers of ten.
fn size(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_suffix(['M', 'G']) {
        Some(number) => number.parse::<f64>().map(|it| {
            let unit = if text.ends_with('G') { 1e9 } else { 1e6 };
            it * unit
        }),
        None => text.parse::<f64>(),
    };
    match parsed {
        Ok(bytes) if (BYTES_MIN as f64..=BYTES_MAX as f64).contains(&bytes) => Ok(bytes as u64),
        _ => Err("give a size such as 50M or 73G, from 1.1M to 1000G".to_owned()),
    }
}

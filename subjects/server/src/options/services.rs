//! The options of each service. A service refuses the options of the others.

use std::path::PathBuf;

use concurve_latch::Spin;
use concurve_statements::PAGE_BYTES;

use super::levels::{Durability, Latching, Service, Spinning, StatementCaching, name_of, refused};
use crate::error::Error;
use crate::lock_table::latched;
use crate::lock_table::mode::Rules;
use crate::locks::service::LockOptions;
use crate::records::{self, RecordOptions};

/// What a lock takes at most, if its names are short (docs/programs/server.md).
pub const LOCK_BYTES: u64 = 128;

/// The lock service on the command line.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Locks")]
#[group(id = "locks")]
pub struct LockArgs {
    /// Maximum number of locks in the table, and of keys of SET [default: 1000000, or as many as the memory
    /// holds]
    #[arg(long, value_name = "LOCKS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    capacity: Option<u64>,

    /// Whether an optimistic lock (O) of another owner excludes E and X [default: true]
    #[arg(long, value_name = "YES", action = clap::ArgAction::Set)]
    optimistic_blocks_exclusive: Option<bool>,

    /// File that keeps locks with BACKUP over a restart of the server
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
}

impl LockArgs {
    /// The first option of this group that was given.
    pub fn given(&self) -> Option<&'static str> {
        let blocks = "--optimistic-blocks-exclusive";
        first_given([
            ("--capacity", self.capacity.is_some()),
            (blocks, self.optimistic_blocks_exclusive.is_some()),
            ("--backup", self.backup.is_some()),
        ])
    }

    /// Checks them together with the options of all services.
    pub fn options(
        &self,
        latching: Latching,
        durability: Durability,
        shared_memory_bytes: u64,
    ) -> Result<LockOptions, Error> {
        let Some(durability) = durability.of_locks() else {
            let text = format!("--durability {}", name_of(durability));
            return Err(refused(&text, "locks: take process or power"));
        };
        Ok(LockOptions {
            latching: match latching {
                Latching::Global => latched::Latching::Global,
                Latching::Record => latched::Latching::Record,
                Latching::File => {
                    return Err(refused("--latching file", "locks: take global or record"));
                }
            },
            capacity: self
                .capacity
                .unwrap_or_else(|| default_capacity(shared_memory_bytes)),
            rules: Rules {
                optimistic_blocks_exclusive: self.optimistic_blocks_exclusive.unwrap_or(true),
            },
            backup: self.backup.clone().map(|file| (file, durability)),
        })
    }
}

fn default_capacity(shared_memory_bytes: u64) -> u64 {
    let machine_bytes = concurve_engines::memory::machine_bytes().unwrap_or(u64::MAX);
    // A third of the shared memory: see `check_capacity`.
    let held = (shared_memory_bytes / 3).min(machine_bytes) / LOCK_BYTES;
    held.clamp(1, 1_000_000)
}

/// The record engine on the command line.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Records and statements")]
#[group(id = "records")]
pub struct RecordArgs {
    /// Folder of the records
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Size of the page cache [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    cache_mib: Option<u32>,

    /// Growth of the write-ahead log after which a checkpoint is made; a start after a crash reads so much
    /// of it, and what was written during a checkpoint [default: 64, and up to 256 while checkpoints would
    /// take more than an eighth of the time]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    checkpoint_mib: Option<u32>,

    /// Save what is whole in a damaged --folder into this new one, say what was saved and what is lost,
    /// and end; the damaged folder stays as it is
    #[arg(long, value_name = "NEW-FOLDER")]
    salvage: Option<PathBuf>,
}

impl RecordArgs {
    /// The first option of this group that was given.
    pub fn given(&self) -> Option<&'static str> {
        first_given([
            ("--folder", self.folder.is_some()),
            ("--cache-mib", self.cache_mib.is_some()),
            ("--checkpoint-mib", self.checkpoint_mib.is_some()),
            ("--salvage", self.salvage.is_some()),
        ])
    }

    /// How far apart checkpoints are: exactly so far as was given, if it was.
    fn distance(&self) -> concurve_records::EngineOptions {
        match self.checkpoint_mib {
            Some(mib) => {
                concurve_records::EngineOptions::with_checkpoint_bytes(u64::from(mib) << 20)
            }
            None => concurve_records::EngineOptions::default(),
        }
    }

    /// Checks them together with the options of all services.
    pub fn options(
        &self,
        service: Service,
        latching: Latching,
        durability: Durability,
    ) -> Result<RecordOptions, Error> {
        let service = name_of(service);
        let Some(durability) = durability.of_records() else {
            let text = format!("--durability {}", name_of(durability));
            return Err(refused(
                &text,
                &format!("{service}: take none, group or each"),
            ));
        };
        let Some(folder) = self.folder.clone() else {
            return Err(Error::Usage(format!(
                "--service {service} needs --folder FOLDER, where records are kept"
            )));
        };
        let cache_mib = self.cache_mib.unwrap_or(64) as usize;
        Ok(RecordOptions {
            folder,
            storage: records::open_folder,
            salvage: self.salvage.clone(),
            engine: concurve_records::EngineOptions {
                latching: match latching {
                    Latching::Global => concurve_records::Latching::Global,
                    Latching::File => concurve_records::Latching::File,
                    Latching::Record => concurve_records::Latching::Record,
                },
                durability,
                cache_pages: cache_mib << 20 >> concurve_records::page::PAGE_BYTES.ilog2(),
                ..self.distance()
            },
        })
    }
}

/// The statement service on the command line.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Statements")]
#[group(id = "statements")]
pub struct StatementArgs {
    /// The statement cache, which maps the text of a statement to its plan [default: striped]
    #[arg(long, value_enum)]
    statement_cache: Option<StatementCaching>,

    /// Size of the procedure cache, which holds the plans: half of it is divided among the engines,
    /// all engines share the rest behind one latch [default: 16384]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(2..=1 << 22))]
    procedure_cache: Option<u32>,

    /// How often a thread checks the latch of the shared part before it sleeps; only: it never
    /// sleeps [default: 1000]
    #[arg(long, value_name = "CHECKS|only")]
    spin: Option<Spinning>,
}

/// The caches of the statement service.
#[derive(Debug, Clone, Copy)]
pub struct StatementOptions {
    pub caching: StatementCaching,
    pub procedure_cache_kib: u32,
    pub spin: Spinning,
}

impl StatementArgs {
    /// The first option of this group that was given.
    pub fn given(&self) -> Option<&'static str> {
        first_given([
            ("--statement-cache", self.statement_cache.is_some()),
            ("--procedure-cache", self.procedure_cache.is_some()),
            ("--spin", self.spin.is_some()),
        ])
    }

    pub fn options(&self) -> StatementOptions {
        StatementOptions {
            caching: self.statement_cache.unwrap_or(StatementCaching::Striped),
            procedure_cache_kib: self.procedure_cache.unwrap_or(16_384),
            spin: self.spin.unwrap_or(Spinning(Spin::Times(1000))),
        }
    }
}

impl StatementOptions {
    /// The caches of `concurve-statements` for so many engines.
    pub fn caches(&self, engines: usize) -> concurve_statements::CacheOptions {
        concurve_statements::CacheOptions {
            caching: match self.caching {
                StatementCaching::Off => concurve_statements::Caching::Off,
                StatementCaching::Single => concurve_statements::Caching::Single,
                StatementCaching::Striped => concurve_statements::Caching::Striped,
            },
            pages: (self.procedure_cache_kib as usize) << 10 >> PAGE_BYTES.ilog2(),
            engines,
            spin: self.spin.0,
        }
    }
}

fn first_given<const N: usize>(options: [(&'static str, bool); N]) -> Option<&'static str> {
    let mut options = options.into_iter();
    options.find_map(|(name, is_given)| is_given.then_some(name))
}

//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::disk::Model;
use crate::disk::seek::{SeekCurve, Shape};
use crate::error::Error;
use crate::machine::{Layout, Machine};
use crate::page_cache::PageCacheTunables;
use crate::request::{Class, SECTOR_BYTES};
use crate::scheduler::cfq2::Order;
use crate::scheduler::kind::{Kind, Tuned};
use crate::time::{Time, milliseconds};
use crate::workload::load::{Assumptions, Writing};

/// Simulate I/O schedulers over rotating disks, and print the time that the load took.
///
/// Everything follows from --seed: two runs of the same command are equal to the nanosecond.
///
/// Example: concurve-disk load --scheduler cfq --scale 0.01
#[derive(Debug, Parser)]
#[command(name = "concurve-disk", version)]
pub struct Options {
    #[command(subcommand)]
    pub workload: Workload,

    /// Write what the disks do to this file: a line of JSON for each event
    #[arg(long, value_name = "FILE", global = true)]
    pub events: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Workload {
    /// Load a database as document 003 did: processes, tables, savepoints, closing jobs
    Load(LoadOptions),
    /// Streams of requests of one kind each
    Streams(StreamOptions),
    /// Replay a recorded trace of a device: requests at their times, as blkparse prints them
    Trace(TraceOptions),
}

/// The hardware, and how it is scheduled.
#[derive(Debug, Args)]
pub struct MachineOptions {
    /// I/O scheduler of every disk
    #[arg(long, value_enum, default_value_t = Kind::Deadline)]
    pub scheduler: Kind,

    /// How long as keeps the disk idle for a process at most; 0 makes it deadline [default: 6.7]
    #[arg(long, value_name = "MS")]
    pub antic_expire_ms: Option<f64>,

    /// In which order cfq2 sends the requests of a dispatch
    #[arg(long, value_enum, default_value_t = Order::Sectors)]
    pub cfq2_order: Order,

    /// Number of disks of 36 GB with 15,000 revolutions a minute
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub disks: u16,

    /// How the disks are combined into one volume
    #[arg(long, value_enum, default_value_t = LayoutName::Linear)]
    pub layout: LayoutName,

    /// Size of the system's partitions, which lie before the volume on the first disk; with stripes
    /// they are elsewhere
    #[arg(long, value_name = "GB", default_value_t = 0.0)]
    pub system_gb: f64,

    /// Mean time of a seek between random cylinders
    #[arg(long, value_name = "MS", default_value_t = 3.5)]
    pub average_seek_ms: f64,

    /// How the time of a seek grows with its distance, with the same mean
    #[arg(long, value_enum, default_value_t = Shape::Root)]
    pub seek_curve: Shape,

    /// Queue depth of a disk: with more than one command it serves the nearest first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub queue_depth: u16,

    /// Size of the write cache of a disk, which holds writes that it has reported as done
    #[arg(long, value_name = "KIB", default_value_t = 0)]
    pub write_cache_kib: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LayoutName {
    /// One disk after the other, as LVM does by default
    Linear,
    /// Striped, in chunks of 64 KiB
    Stripe,
}

#[derive(Debug, Args)]
pub struct LoadOptions {
    #[command(flatten)]
    pub machine: MachineOptions,

    /// Share of the document's 73 GB and 44,000 tables
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub scale: f64,

    /// Number of concurrent loaders
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub loaders: u32,

    /// How savepoints reach the disks
    #[arg(long, value_enum, default_value_t = Writing::Cached)]
    pub writing: Writing,

    /// CPU time for a megabyte of the database
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    pub cpu_ms_per_megabyte: f64,

    /// Random pages of the database that a savepoint writes besides those of the table
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub scattered_pages: u32,

    /// Bytes of an export file for one in the database
    #[arg(long, value_name = "SHARE", default_value_t = 0.04)]
    pub export_share: f64,

    /// Bytes of log for one in the database
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub log_share: f64,

    /// Megabytes between the commits of a loader, each of which writes the log
    #[arg(long, value_name = "MB", default_value_t = 1.0)]
    pub commit_mb: f64,

    /// The part of the database that the closing jobs read
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub closing_share: f64,

    /// Memory of the host that pages may fill; a tenth of it may be changed before write-back begins
    #[arg(long, value_name = "GIB", default_value_t = 4.0)]
    pub page_cache_gib: f64,

    /// Seed of the table sizes and of all other random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl LoadOptions {
    /// What the document does not say.
    pub fn assumptions(&self) -> Result<Assumptions, Error> {
        let cpu = self.cpu_ms_per_megabyte;
        between("--cpu-ms-per-megabyte", cpu, 0.0, 1e5)?;
        between("--export-share", self.export_share, 1e-3, 1.0)?;
        between("--log-share", self.log_share, 0.0, 10.0)?;
        between("--commit-mb", self.commit_mb, 1e-3, 1e4)?;
        between("--closing-share", self.closing_share, 0.0, 1.0)?;
        between("--page-cache-gib", self.page_cache_gib, 1e-3, 1e3)?;
        let sectors_of_gib = (1_u64 << 30) / SECTOR_BYTES;
        Ok(Assumptions {
            writing: self.writing,
            cpu_per_megabyte: milliseconds(cpu),
            scattered_pages: self.scattered_pages,
            export_share: self.export_share,
            log_share: self.log_share,
            commit_megabytes: self.commit_mb,
            closing_share: self.closing_share,
            page_cache: PageCacheTunables {
                sectors: (self.page_cache_gib * sectors_of_gib as f64) as u64,
                ..PageCacheTunables::default()
            },
            ..Assumptions::default()
        })
    }
}

#[derive(Debug, Args)]
pub struct StreamOptions {
    #[command(flatten)]
    pub machine: MachineOptions,

    /// Number of processes that read sequentially, each in a region of its own
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub sequential_readers: u32,

    /// Number of processes that read at random positions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub random_readers: u32,

    /// Number of processes that write sequentially and asynchronously
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub writers: u32,

    /// Think time of a reader between its requests
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub think_ms: f64,

    /// Requests in flight of a writer, or of a reader without think time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub depth: u16,

    /// Size of a request
    #[arg(long, value_name = "KIB", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub request_kib: u32,

    /// Nice level of the readers, from which cfq and bfq take their I/O level
    #[arg(long, value_name = "NICE", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-20..=19))]
    pub reader_nice: i8,

    /// I/O class of the readers, by which cfq serves them
    #[arg(long, value_enum, default_value_t = Class::BestEffort)]
    pub reader_class: Class,

    /// Number of requests of each process
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: u64,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct TraceOptions {
    #[command(flatten)]
    pub machine: MachineOptions,

    /// Text file of: blktrace -d /dev/sda -w 60 -o - | blkparse -i - > FILE
    pub file: PathBuf,
}

impl MachineOptions {
    pub fn machine(&self) -> Result<Machine, Error> {
        let disk = Model::scsi_36gb_15k();
        let settles = disk.seek.settle_ms;
        between("--average-seek-ms", self.average_seek_ms, settles, 100.0)?;
        between("--system-gb", self.system_gb, 0.0, 36.0)?;
        Ok(Machine {
            disk: Model {
                seek: SeekCurve::with_average(self.seek_curve, settles, self.average_seek_ms),
                queue_depth: usize::from(self.queue_depth),
                write_cache: self.write_cache_kib * 1024 / SECTOR_BYTES,
                ..disk
            },
            disks: usize::from(self.disks),
            layout: match self.layout {
                LayoutName::Linear => Layout::Linear,
                LayoutName::Stripe => Layout::Stripe { chunk: 128 },
            },
            scheduler: self.scheduler,
            tuned: Tuned {
                antic_expire: self.antic_expire()?,
                order: self.cfq2_order,
            },
            before: (self.system_gb * 1e9) as u64 / SECTOR_BYTES,
        })
    }

    fn antic_expire(&self) -> Result<Option<Time>, Error> {
        let Some(value) = self.antic_expire_ms else {
            return Ok(None);
        };
        between("--antic-expire-ms", value, 0.0, 1e4)?;
        Ok(Some(milliseconds(value)))
    }
}

/// Refuses a value that is not a number or out of its range.
pub fn between(name: &str, value: f64, low: f64, high: f64) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let text = format!("{name} {value}: give a number from {low} to {high}");
    Err(Error::Usage(text))
}

impl StreamOptions {
    pub fn think(&self) -> Result<u64, Error> {
        between("--think-ms", self.think_ms, 0.0, 1e6)?;
        Ok(milliseconds(self.think_ms))
    }
}

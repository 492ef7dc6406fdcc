//! Writes that must reach the disk.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process;

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::stop::Stop;
use crate::workers::{measure, share, threads};

/// Blocks of each file that are written in turn.
const BLOCKS: u64 = 64;

/// pwrite and fdatasync, each thread in a file of its own
///
/// The files get their full length before measuring begins, so that an operation flushes data
/// and no metadata. The program removes them at its end, also after SIGTERM.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  concurve-targets fsync --threads 4 --operations 2000 --directory /var/tmp"
)]
pub struct Fsync {
    /// Threads that write
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    /// Writes of the whole program, split evenly over its threads
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Folder for the files, on the disk to be measured
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Bytes of a write
    #[arg(long, value_name = "B", default_value_t = 4096,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    bytes: u32,
}

impl Fsync {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let stop = Stop::watch()?;
        let block = vec![0x5a; self.bytes as usize];
        let files: Vec<ScratchFile> = (0..self.threads)
            .map(|index| ScratchFile::create(&self.directory, index, &block))
            .collect::<Result<_, _>>()?;

        let done = measure(&reporter, self.threads, |index| {
            let due = share(self.operations, self.threads, index);
            for done in 0..due {
                if stop.requested() {
                    return Ok(done);
                }
                files[index as usize].write_through(&block, done % BLOCKS)?;
            }
            Ok(due)
        })?;
        if done < self.operations {
            return Err(Error::Stopped {
                done,
                asked: self.operations,
            });
        }
        Ok(())
    }
}

/// A file that is removed when this is dropped.
struct ScratchFile {
    file: File,
    path: PathBuf,
}

impl ScratchFile {
    fn create(directory: &Path, index: u32, block: &[u8]) -> Result<Self, Error> {
        let path = directory.join(format!("concurve-fsync-{}-{index}", process::id()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(Error::io(|| format!("create {}", path.display())))?;
        let scratch = Self { file, path };
        for number in 0..BLOCKS {
            scratch.write(block, number)?;
        }
        let path = &scratch.path;
        let flushed = scratch.file.sync_all();
        flushed.map_err(Error::io(|| format!("flush {}", path.display())))?;
        Ok(scratch)
    }

    fn write(&self, block: &[u8], number: u64) -> Result<(), Error> {
        let written = self.file.write_all_at(block, number * block.len() as u64);
        written.map_err(Error::io(|| format!("write to {}", self.path.display())))
    }

    fn write_through(&self, block: &[u8], number: u64) -> Result<(), Error> {
        self.write(block, number)?;
        let flushed = self.file.sync_data();
        flushed.map_err(Error::io(|| format!("flush {}", self.path.display())))
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            eprintln!(
                "concurve-targets: cannot remove {}: {error}",
                self.path.display()
            );
        }
    }
}

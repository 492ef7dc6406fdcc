//! Starts a command with the library in front of its locks.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::Error;

/// The library, as the build left it.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libconcurve_interposer.so"));
/// Beyond the numbers that programs and shells choose for themselves.
const DESCRIPTOR_MIN: i32 = 200;
const PRELOAD: &str = "LD_PRELOAD";

/// Start a command that holds the locks taken at some places longer
#[derive(Debug, Args)]
pub struct Hold {
    /// A place where the lock is taken: the address of the call in a file. Repeatable
    #[arg(long = "site", value_name = "OFFSET@FILE", required = true)]
    sites: Vec<String>,
    /// How many times as long the locks are held
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    held: f64,
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(held) if (1.0..=1000.0).contains(&held) => Ok(held),
        _ => Err("a number from 1 to 1000".into()),
    }
}

impl Hold {
    /// Becomes the command.
    pub fn start(&self) -> Result<Infallible, Error> {
        let sites = joined(&self.sites)?;
        let library = library()?;
        // By the number of this process, which the command takes over: its children need not inherit
        // the descriptor.
        let path = format!("/proc/{}/fd/{}", std::process::id(), library);
        let preloaded = match std::env::var(PRELOAD) {
            Ok(others) if !others.is_empty() => format!("{path}:{others}"),
            _ => path,
        };
        let source = Command::new(&self.command[0])
            .args(&self.command[1..])
            .env(PRELOAD, preloaded)
            .env("CONCURVE_PERTURB_SITES", sites)
            .env("CONCURVE_PERTURB_HELD", self.held.to_string())
            .exec();
        Err(Error::Start {
            command: self.command[0].to_string_lossy().into_owned(),
            source,
        })
    }
}

/// The places as the library reads them: offsets of one file.
fn joined(sites: &[String]) -> Result<String, Error> {
    let mut file: Option<&str> = None;
    let mut offsets = Vec::new();
    for site in sites {
        let wrong = || Error::Place(site.clone());
        let (offset, in_file) = site.split_once('@').ok_or_else(wrong)?;
        let digits = offset.strip_prefix("0x").ok_or_else(wrong)?;
        u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        if in_file.is_empty() {
            return Err(wrong());
        }
        if *file.get_or_insert(in_file) != in_file {
            return Err(Error::Files(file.unwrap_or("").into(), in_file.into()));
        }
        offsets.push(offset);
    }
    Ok(format!("{}@{}", offsets.join(","), file.unwrap_or("")))
}

/// The library in memory, as the number of a descriptor that stays open: it needs no place on a disk,
/// and goes with the command.
fn library() -> Result<i32, Error> {
    let name = CString::from(c"concurve-interposer");
    let made = memfd_create(name.as_c_str(), MFdFlags::empty()).map_err(Error::Library)?;
    let high = fcntl(&made, FcntlArg::F_DUPFD(DESCRIPTOR_MIN)).map_err(Error::Library)?;
    let mut file = std::fs::File::from(made);
    file.write_all(LIBRARY)
        .map_err(|error| Error::Library(nix::Error::from_raw(error.raw_os_error().unwrap_or(0))))?;
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_one_file_are_joined() {
        let of = |sites: &[&str]| joined(&sites.iter().map(|it| (*it).into()).collect::<Vec<_>>());
        assert_eq!(of(&["0x1@/a b", "0x2f@/a b"]).unwrap(), "0x1,0x2f@/a b");
        for wrong in [
            &["1@/a"][..],
            &["0x1"],
            &["0x@/a"],
            &["0x1@"],
            &["0x1@/a", "0x1@/b"],
        ] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}

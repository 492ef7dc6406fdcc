//! Programs that need memory.

use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::workers;

/// Touch N bytes of memory and keep them for a while
///
/// The program refuses if the machine has less memory available, so that it does not swap.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  concurve-targets memory --bytes 256MiB --ms 100")]
pub struct Memory {
    /// Bytes: a number, or one with KiB, MiB or GiB
    #[arg(long, value_name = "N", value_parser = bytes)]
    bytes: usize,
    /// How long to keep the memory
    #[arg(long, value_name = "M", default_value_t = 0)]
    ms: u64,
}

impl Memory {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        if available_bytes().is_some_and(|available| self.bytes > available) {
            return Err(self.too_much());
        }
        let begin_ns = reporter.begin("measure")?;
        let mut memory = Vec::new();
        memory
            .try_reserve_exact(self.bytes)
            .map_err(|_| self.too_much())?;
        memory.resize(self.bytes, 1u8);
        black_box(&memory);
        thread::sleep(Duration::from_millis(self.ms));
        let end_ns = reporter.end("measure")?;
        workers::report(&reporter, &[self.bytes as u64], end_ns - begin_ns)?;
        Ok(())
    }

    fn too_much(&self) -> Error {
        Error::Broken(format!(
            "{} bytes are not available: see MemAvailable in /proc/meminfo; ask for less",
            self.bytes
        ))
    }
}

fn available_bytes() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn bytes(text: &str) -> Result<usize, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let split = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = split.unwrap_or((text, 1usize));
    let number: Option<usize> = number.trim().parse().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "must be a number of bytes above 0, such as 4096 or 64MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_carry_a_binary_unit() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("3MiB"), Ok(3 << 20));
        for bad in [
            "0",
            "-1",
            "3MB",
            "MiB",
            "99999999999999999999",
            "17179869184GiB",
        ] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}

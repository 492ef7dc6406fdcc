//! Pressure stall information: `/proc/pressure/{cpu,io,memory}`.

use crate::{ProbeError, Result};

/// Total stall time since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some_ns: u64,
    /// All tasks waited; the kernel gives it for io and memory (for cpu it is always 0).
    pub full_ns: Option<u64>,
}

/// Parses the file's text.
pub fn parse(text: &str) -> Result<Pressure> {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        let micros: u64 = line.rsplit_once("total=")?.1.trim().parse().ok()?;
        Some(micros * 1000)
    };
    Ok(Pressure {
        some_ns: total("some ").ok_or_else(|| ProbeError::syntax("pressure", text))?,
        full_ns: total("full "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_lines() {
        let text = "some avg10=0.00 avg60=0.22 avg300=0.33 total=17294301\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=1200\n";
        let expected = Pressure {
            some_ns: 17_294_301_000,
            full_ns: Some(1_200_000),
        };
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn old_kernels_give_no_full_line_for_cpu() {
        let text = "some avg10=0.00 avg60=0.22 avg300=0.33 total=5\n";
        assert_eq!(parse(text).unwrap().full_ns, None);
        assert!(parse("").is_err());
    }
}

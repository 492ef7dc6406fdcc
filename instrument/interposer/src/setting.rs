//! What is asked for, by the environment.

use std::path::PathBuf;

use crate::totals::Channel;

/// The places where a meant lock is taken: `OFFSET,OFFSET…@FILE`, each offset in hexadecimal by the
/// file's own addresses.
pub const SITES_VARIABLE: &str = "CONCURVE_PERTURB_SITES";
/// How many times as long a lock is held, from 1 on.
pub const HELD_VARIABLE: &str = "CONCURVE_PERTURB_HELD";

/// A lock is not held longer by more than this, whatever the factor: in parts of its own time.
const SHARES: u64 = 1 << 16;

/// Which locks are held longer, and by how much.
pub struct Setting {
    pub file: PathBuf,
    pub offsets: Vec<usize>,
    pub report: Channel,
    /// The part of the time of a hold that is added to it, in [`SHARES`].
    added: u64,
}

impl Setting {
    /// What the environment asks for; `None` if that is nothing, or cannot be read.
    pub fn from_environment() -> Option<Self> {
        let sites = std::env::var(SITES_VARIABLE).ok()?;
        let held = std::env::var(HELD_VARIABLE).ok()?;
        Self::parsed(&sites, &held, Channel::from_environment())
    }

    fn parsed(sites: &str, held: &str, report: Channel) -> Option<Self> {
        let (offsets, file) = sites.split_once('@')?;
        let offset = |text: &str| usize::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let offsets: Option<Vec<usize>> = offsets.split(',').map(offset).collect();
        let held: f64 = held.parse().ok()?;
        if !(1.0..=1000.0).contains(&held) {
            return None;
        }
        Some(Self {
            file: std::fs::canonicalize(file).unwrap_or_else(|_| file.into()),
            offsets: offsets?,
            report,
            added: ((held - 1.0) * SHARES as f64) as u64,
        })
    }

    /// By how much a lock is held longer that was held for this time.
    pub fn longer(&self, held: u64) -> u64 {
        let longer = u128::from(held) * u128::from(self.added) / u128::from(SHARES);
        u64::try_from(longer).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(sites: &str, held: &str) -> Option<Setting> {
        Setting::parsed(sites, held, Channel::none())
    }

    #[test]
    fn places_and_factor_are_read() {
        let read = parsed("0x12f,0x30@/nowhere/a@b c", "1.5").unwrap();
        assert_eq!(read.offsets, [0x12f, 0x30]);
        assert_eq!(read.file, PathBuf::from("/nowhere/a@b c"));
        assert_eq!(read.longer(1000), 500);
        assert_eq!(parsed("0x1@/x", "1").unwrap().longer(u64::MAX), 0);
        assert_eq!(parsed("0x1@/x", "1000").unwrap().longer(u64::MAX), u64::MAX);
    }

    #[test]
    fn what_cannot_be_read_asks_for_nothing() {
        for (sites, held) in [
            ("", "1"),
            ("0x1", "1"),
            ("1@/x", "1"),
            ("0xzz@/x", "1"),
            ("0x1@/x", ""),
            ("0x1@/x", "0.5"),
            ("0x1@/x", "nan"),
            ("0x1@/x", "inf"),
        ] {
            assert!(parsed(sites, held).is_none(), "{sites} {held}");
        }
    }
}

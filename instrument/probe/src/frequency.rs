//! The clock frequency of CPUs, where the kernel knows it (cpufreq). A virtual machine mostly does not.

use std::fs;
use std::path::PathBuf;

/// The files of cpufreq.
#[derive(Debug, Clone)]
pub struct Frequencies {
    root: PathBuf,
}

impl Default for Frequencies {
    fn default() -> Self {
        Self::new("/sys/devices/system/cpu")
    }
}

impl Frequencies {
    /// With another root for tests.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The highest present frequency of some CPUs in kHz: that of busy ones, since idle ones are slower.
    /// None if no CPU has one.
    pub fn highest_khz(&self, cpus: impl Iterator<Item = u32>) -> Option<u64> {
        cpus.filter_map(|cpu| {
            let file = self.root.join(format!("cpu{cpu}/cpufreq/scaling_cur_freq"));
            fs::read_to_string(file).ok()?.trim().parse().ok()
        })
        .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_cpus_have_the_highest_frequency() {
        let root = std::env::temp_dir().join(format!("concurve-clock-{}", std::process::id()));
        for (cpu, khz) in [(0, "1200000\n"), (1, "3100000\n"), (2, "<unknown>\n")] {
            let folder = root.join(format!("cpu{cpu}/cpufreq"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("scaling_cur_freq"), khz).unwrap();
        }
        let clock = Frequencies::new(&root);
        assert_eq!(clock.highest_khz(0..4), Some(3_100_000));
        assert_eq!(clock.highest_khz(2..4), None);
        fs::remove_dir_all(&root).unwrap();
    }
}

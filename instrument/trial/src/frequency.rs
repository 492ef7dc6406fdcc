//! The clock frequency during a trial, by samples.

use concurve_probe::frequency::Frequencies;

/// Time between two readings: each asks every CPU.
const INTERVAL_NS: u64 = 100_000_000;
/// CPUs that are asked.
const CPUS_MAX: u32 = 64;

/// The mean of the highest frequencies that samples saw.
#[derive(Debug, Default)]
pub struct FrequencyWatch {
    clock: Frequencies,
    next_ns: u64,
    sum_khz: u64,
    readings: u64,
    is_absent: bool,
}

impl FrequencyWatch {
    /// Takes part in a sample.
    pub fn sample(&mut self, now: u64) {
        if self.is_absent || now < self.next_ns {
            return;
        }
        self.next_ns = now + INTERVAL_NS;
        // Most hosts without cpufreq have it nowhere; asking for many files would cost several samples.
        let cpus = match self.readings {
            0 => self.clock.highest_khz(0..1).map_or(0, |_| CPUS_MAX),
            _ => CPUS_MAX,
        };
        match self.clock.highest_khz(0..cpus) {
            Some(khz) => {
                self.sum_khz += khz;
                self.readings += 1;
            }
            None => self.is_absent = true,
        }
    }

    /// Why there is no mean.
    pub fn why_absent(&self) -> &'static str {
        match self.is_absent {
            true => "no CPU has cpufreq: the hypervisor or the firmware sets the frequency",
            false => "no sample fell into the trial",
        }
    }

    /// The mean in kHz; none where the kernel does not know it, or the trial had no sample.
    pub fn mean_khz(&self) -> Option<u64> {
        self.sum_khz.checked_div(self.readings)
    }
}

//! When the next sample is due, so that samples keep to their share of CPU time.

use concurve_wire::spec::Sampling;

/// CPU time that may be spent ahead of the share, so that short programs are seen at all.
const ALLOWANCE_NS: u64 = 300_000;
const FIRST_INTERVAL_NS: u64 = 1_000_000;

/// The times of samples, and what they took.
#[derive(Debug)]
pub struct Pace {
    limits: Sampling,
    started_ns: u64,
    next_ns: u64,
    interval_ns: u64,
    /// Samples that were completed.
    pub samples: u64,
    pub cpu_ns: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Pace {
    pub fn new(limits: Sampling) -> Self {
        Self {
            limits,
            started_ns: 0,
            next_ns: u64::MAX,
            interval_ns: FIRST_INTERVAL_NS,
            samples: 0,
            cpu_ns: 0,
            first_ns: 0,
            last_ns: 0,
        }
    }

    /// A role was released: the first sample follows soon.
    pub fn start(&mut self, now: u64) {
        if self.started_ns == 0 {
            self.started_ns = now;
        }
        self.interval_ns = FIRST_INTERVAL_NS.min(self.limits.interval_ns_min);
        self.next_ns = now + self.interval_ns;
    }

    /// When the next sample is due.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Mean time between samples, if there were two.
    pub fn mean_interval_ns(&self) -> Option<u64> {
        let intervals = self.samples.checked_sub(1).filter(|count| *count > 0)?;
        Some((self.last_ns - self.first_ns) / intervals)
    }

    /// A sample was completed. The next comes after twice the last interval until the shortest
    /// allowed is reached, and not before the CPU time spent so far is within the share.
    pub fn sampled(&mut self, now: u64) {
        self.samples += 1;
        self.last_ns = now;
        if self.samples == 1 {
            self.first_ns = now;
        }
        self.interval_ns = (self.interval_ns * 2).min(self.limits.interval_ns_min);
        let over_ns = self.cpu_ns.saturating_sub(ALLOWANCE_NS);
        let earned_ns = (over_ns as f64 / self.limits.cpu_share_max) as u64;
        self.next_ns = (now + self.interval_ns).max(self.started_ns + earned_ns);
    }
}

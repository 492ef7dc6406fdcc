//! What the perf counters of an exiting thread say.

use concurve_probe::perf::Counts;

/// An exit account's CPU time is as of the last tick; no tick is this long.
pub const LAG_NS_MAX: u64 = 20_000_000;

/// Counts of an exiting thread, over the CPUs that have told so far.
#[derive(Debug, Clone, Default)]
pub struct Reads {
    counts: Vec<Option<Counts>>,
}

impl Reads {
    /// Puts down one CPU's of so many.
    pub fn note(&mut self, cpu_index: usize, cpus: usize, counts: Counts) {
        self.counts.resize(cpus, None);
        self.counts[cpu_index] = Some(counts);
    }

    pub fn complete(&self) -> bool {
        self.counts.iter().all(Option::is_some)
    }

    pub fn sum(&self) -> Counts {
        let told = self.counts.iter().flatten();
        told.copied().reduce(Counts::plus).unwrap_or_default()
    }

    /// The CPU time, if these are the counts of the thread whose exit account says `account_ns`.
    ///
    /// An exit account's CPU time is as of the last tick, and ticks are at most 10 ms apart:
    /// counts that differ by more are another thread's. One CPU's may be lost; then the account
    /// or what is left, whichever is more, is nearer the truth.
    pub fn refine(&self, account_ns: u64) -> Option<u64> {
        let cpu_ns = self.sum().cpu_ns;
        if cpu_ns > account_ns + LAG_NS_MAX {
            return None;
        }
        match self.complete() {
            true => (cpu_ns + 1_000_000 >= account_ns).then_some(cpu_ns),
            false => Some(cpu_ns.max(account_ns)),
        }
    }
}

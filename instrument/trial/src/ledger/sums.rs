//! What threads used, summed.

use concurve_probe::schedstat::Schedstat;
use concurve_probe::taskstats::ExitAccount;
use concurve_wire::record::Usage;

/// Sums over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    pub threads: u64,
    pub cpu_ns: u64,
    pub run_queue_ns: u64,
    pub slices: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl Sums {
    pub fn add(&mut self, other: Self) {
        self.threads += other.threads;
        self.cpu_ns += other.cpu_ns;
        self.run_queue_ns += other.run_queue_ns;
        self.slices += other.slices;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }

    /// The account of a whole process or of one thread.
    pub fn of(account: &ExitAccount) -> Self {
        Self {
            threads: 1,
            cpu_ns: account.cpu_ns,
            run_queue_ns: account.run_queue_ns,
            slices: account.slices,
            voluntary_switches: account.voluntary_switches,
            involuntary_switches: account.involuntary_switches,
        }
    }
    /// What files of `/proc` say of one thread.
    pub fn read(schedstat: &Schedstat, switches: Option<(u64, u64)>) -> Self {
        let (voluntary_switches, involuntary_switches) = switches.unwrap_or_default();
        Self {
            threads: 1,
            cpu_ns: schedstat.cpu_ns,
            run_queue_ns: schedstat.run_queue_ns,
            slices: schedstat.slices,
            voluntary_switches,
            involuntary_switches,
        }
    }

    /// As a record has them. Where the switches are not known, theirs are 0 here.
    pub fn usage(self, switches_known: bool, migrations: Option<u64>) -> Usage {
        Usage {
            cpu_ns: Some(self.cpu_ns),
            run_queue_ns: Some(self.run_queue_ns),
            slices: Some(self.slices),
            voluntary_switches: switches_known.then_some(self.voluntary_switches),
            involuntary_switches: switches_known.then_some(self.involuntary_switches),
            migrations,
            ..Usage::default()
        }
    }
}

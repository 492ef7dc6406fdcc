//! How busy each CPU was in the course of a trial, in a bounded number of intervals.

use std::collections::{BTreeMap, BTreeSet};

use concurve_clock as clock;
use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::CpuTimeline;

use crate::intervals::{Intervals, Joined};

/// The first intervals are at least so long: ten of the ticks in which the kernel counts.
const INTERVAL_NS: u64 = 100_000_000;
/// There are fewer intervals than this.
const INTERVALS_MAX: usize = 64;
/// A machine with more CPUs has no timeline: its records would become large.
const CPUS_MAX: usize = 64;
/// From one reading to the next passes at least this multiple of the CPU time that the first one took:
/// it grows with the CPUs and the interrupts of the machine.
const TIMES_COST: u64 = 1000;

/// Busy ticks, by CPU.
pub type Busy = BTreeMap<u32, u64>;

impl Joined for Busy {
    /// A CPU that went offline has no account of both.
    fn join(&mut self, next: Self) {
        self.retain(|cpu, _| next.contains_key(cpu));
        for (cpu, ticks) in self {
            *ticks += next[cpu];
        }
    }
}

/// The readings of a trial so far; of one that has not begun there is none.
#[derive(Debug)]
pub struct Timeline {
    /// Since boot, when they were read last.
    last: Busy,
    last_ns: u64,
    due_ns: Option<u64>,
    intervals: Intervals<Busy>,
    failure: Option<String>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            last: Busy::new(),
            last_ns: 0,
            due_ns: None,
            intervals: Intervals::new(INTERVALS_MAX, INTERVAL_NS),
            failure: None,
        }
    }
}

impl Timeline {
    /// The first interval begins, with these counts since boot.
    pub fn begin(&mut self, busy: Busy, now: u64) {
        if busy.len() > CPUS_MAX {
            self.failure = Some(format!("the machine has more than {CPUS_MAX} CPUs"));
            return;
        }
        self.last = busy;
        self.last_ns = now;
        self.due_ns = Some(now + INTERVAL_NS);
    }

    /// Reads the CPUs if it is time to.
    pub fn read_if_due(&mut self, proc_fs: &ProcFs) {
        let now = clock::monotonic_ns();
        if self.due_ns.is_none_or(|due_ns| now < due_ns) {
            return;
        }
        let cpu_before = clock::thread_cpu_ns();
        match proc_fs.cpu_ticks() {
            Ok((_, each)) => {
                let busy = each.into_iter().map(|(cpu, ticks)| (cpu, ticks.busy));
                self.end_interval(busy.collect(), now);
                self.put_off(now, clock::thread_cpu_ns() - cpu_before);
            }
            Err(error) => {
                self.failure = Some(error.to_string());
                self.due_ns = None;
            }
        }
    }

    /// The trial is over: its last interval ends with these counts. One that is shorter than half of
    /// the others becomes part of the one before it.
    pub fn close(&mut self, busy: Busy, now: u64) {
        if self.due_ns.take().is_none() {
            return;
        }
        let is_short = now - self.last_ns < self.intervals.shortest_ns() / 2;
        self.end_interval(busy, now);
        if is_short {
            self.intervals.join_last();
        }
    }

    /// For the record; the error says why there is none. `begin_ns` is the trial's first release.
    pub fn recorded(self, begin_ns: u64) -> Result<CpuTimeline, String> {
        if let Some(reason) = self.failure {
            return Err(reason);
        }
        if self.intervals.len() < 2 {
            let ms = INTERVAL_NS / 1_000_000;
            return Err(format!(
                "the trial was too short for two readings, {ms} ms or more apart"
            ));
        }
        let (ends_ns, busy) = self.intervals.into_parts();
        let busy_ticks = of_cpus(&busy);
        if busy_ticks.is_empty() {
            return Err("/proc/stat counted no CPU from the first reading to the last".into());
        }
        let ends_ns = ends_ns.into_iter();
        Ok(CpuTimeline {
            ends_ns: ends_ns.map(|end| end.saturating_sub(begin_ns)).collect(),
            busy_ticks,
        })
    }

    fn put_off(&mut self, now: u64, cost_ns: u64) {
        let interval_ns = self.intervals.shortest_ns();
        self.due_ns = Some(now + interval_ns.max(cost_ns * TIMES_COST));
    }

    fn end_interval(&mut self, busy: Busy, now: u64) {
        let since = |(cpu, ticks): (&u32, &u64)| {
            let before = self.last.get(cpu)?;
            Some((*cpu, ticks.saturating_sub(*before)))
        };
        let known = busy.iter().filter_map(since).collect();
        self.last = busy;
        self.last_ns = now;
        self.intervals.end(now, known);
    }
}

/// The busy ticks of each interval by CPU, of those CPUs that each interval has.
fn of_cpus(intervals: &[Busy]) -> BTreeMap<u32, Vec<u64>> {
    let cpus = intervals.iter().flat_map(Busy::keys).copied();
    let cpus: BTreeSet<u32> = cpus.collect();
    let ticks = |cpu| -> Option<Vec<u64>> {
        let each = intervals.iter().map(|busy| busy.get(&cpu).copied());
        each.collect()
    };
    cpus.into_iter()
        .filter_map(|cpu| Some((cpu, ticks(cpu)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn busy(first: u64, second: u64) -> Busy {
        [(0, first), (1, second)].into()
    }

    /// Interval by interval: CPU 0 is always busy, CPU 1 in every second one.
    fn of(intervals: u64) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.begin(busy(1000, 2000), 0);
        for number in 1..=intervals {
            let counts = busy(1000 + 10 * number, 2000 + 10 * (number / 2));
            timeline.end_interval(counts, number * 100 * MS);
        }
        timeline
    }

    #[test]
    fn each_interval_has_what_was_busy_in_it() {
        let record = of(4).recorded(0).unwrap();
        assert_eq!(record.ends_ns, [100 * MS, 200 * MS, 300 * MS, 400 * MS]);
        assert_eq!(record.busy_ticks[&0], [10, 10, 10, 10]);
        assert_eq!(record.busy_ticks[&1], [0, 10, 0, 10]);
    }

    #[test]
    fn times_count_from_the_first_release() {
        let record = of(2).recorded(3 * MS).unwrap();
        assert_eq!(record.ends_ns, [97 * MS, 197 * MS]);
    }

    #[test]
    fn a_long_trial_has_longer_intervals_and_loses_no_tick() {
        for intervals in [63, 64, 65, 1000] {
            let timeline = of(intervals);
            assert_eq!(timeline.intervals.shortest_ns() > 100 * MS, intervals >= 64);
            let record = timeline.recorded(0).unwrap();
            assert!(record.ends_ns.len() < INTERVALS_MAX);
            assert!(record.ends_ns.is_sorted_by(|one, next| one < next));
            assert_eq!(*record.ends_ns.last().unwrap(), intervals * 100 * MS);
            for (cpu, sum) in [(0, 10 * intervals), (1, 10 * (intervals / 2))] {
                assert_eq!(record.busy_ticks[&cpu].len(), record.ends_ns.len());
                assert_eq!(record.busy_ticks[&cpu].iter().sum::<u64>(), sum);
            }
        }
    }

    #[test]
    fn a_short_end_is_part_of_the_last_interval() {
        let mut timeline = of(2);
        timeline.close(busy(1023, 2011), 230 * MS);
        let record = timeline.recorded(0).unwrap();
        assert_eq!(record.ends_ns, [100 * MS, 230 * MS]);
        assert_eq!(record.busy_ticks[&0], [10, 13]);
        let mut timeline = of(2);
        timeline.close(busy(1026, 2012), 260 * MS);
        let record = timeline.recorded(0).unwrap();
        assert_eq!(record.ends_ns, [100 * MS, 200 * MS, 260 * MS]);
        assert_eq!(record.busy_ticks[&1], [0, 10, 2]);
    }

    #[test]
    fn what_is_too_short_or_has_too_many_cpus_says_so() {
        let mut short = Timeline::default();
        short.begin(busy(0, 0), 0);
        short.close(busy(10, 10), 120 * MS);
        assert!(short.recorded(0).unwrap_err().contains("too short"));
        let mut wide = Timeline::default();
        wide.begin((0..65).map(|cpu| (cpu, 0)).collect(), 0);
        wide.close((0..65).map(|cpu| (cpu, 9)).collect(), 900 * MS);
        assert!(wide.recorded(0).unwrap_err().contains("more than 64 CPUs"));
    }

    #[test]
    fn a_cpu_that_goes_offline_has_no_timeline() {
        let mut timeline = of(2);
        timeline.end_interval([(0, 1025)].into(), 300 * MS);
        let record = timeline.recorded(0).unwrap();
        assert_eq!(record.busy_ticks.keys().copied().collect::<Vec<_>>(), [0]);
        assert_eq!(record.busy_ticks[&0], [10, 10, 5]);
    }

    #[test]
    fn without_any_cpu_there_is_a_reason() {
        let mut timeline = of(2);
        timeline.close(Busy::new(), 300 * MS);
        assert!(timeline.recorded(0).unwrap_err().contains("no CPU"));
    }

    #[test]
    fn a_slow_reading_puts_the_next_one_off() {
        let mut timeline = of(1);
        timeline.put_off(0, 50_000);
        assert_eq!(timeline.due_ns, Some(100 * MS));
        timeline.put_off(0, MS);
        assert_eq!(timeline.due_ns, Some(1000 * MS));
    }

    #[test]
    fn a_reading_that_fails_is_the_reason() {
        let mut timeline = of(3);
        timeline.due_ns = Some(0);
        timeline.read_if_due(&ProcFs::new("/nowhere"));
        timeline.read_if_due(&ProcFs::new("/elsewhere"));
        assert!(timeline.recorded(0).unwrap_err().contains("/nowhere/stat"));
    }
}

//! How many threads of a role were alive at each time, computed from their births and deaths.

use concurve_probe::perf::{Life, LifeEvent, Lives};

/// Births and deaths kept apart; older ones are folded into a sum when there are more.
const KEPT_MAX: usize = 4_000_000;
/// Longest time from an event until its record is in the ring.
const LATE_NS: u64 = 1_000_000_000;

/// The number of threads and processes of a tree, from its first exec on.
#[derive(Debug)]
pub struct Census {
    /// Events not folded yet, encoded as twice the time, plus one for a birth: they sort by time.
    kept: Vec<u64>,
    folded: Population,
    folded_until_ns: u64,
    births: u64,
    deaths: u64,
    processes: u64,
    lost: u64,
}

/// Whether processes of a tree were born since its children were looked for: to look means to read a file
/// for each of its threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct BirthWatch {
    born: Option<u64>,
    looked_twice: bool,
    unchanged: u32,
}

/// A program that the kernel hides from perf (setuid, or one that the user may not read) has children of
/// which no birth is reported: so often one looks all the same.
const LOOK_ANYWAY: u32 = 16;

impl BirthWatch {
    /// Whether to look now. `born` is how many processes were ever born; none if that is not known.
    pub fn has_news(&mut self, born: Option<u64>) -> bool {
        let news = born.is_none() || born != self.born;
        self.born = born;
        news
    }

    /// The same for who looks again and again: once more after each change, as a child whose parent ends
    /// meanwhile stands in another file than that which is read, and at every so many times.
    pub fn is_to_look(&mut self, born: Option<u64>) -> bool {
        if self.has_news(born) {
            self.looked_twice = false;
            self.unchanged = 0;
            return true;
        }
        self.unchanged += 1;
        let once_more = !std::mem::replace(&mut self.looked_twice, true);
        once_more || self.unchanged.is_multiple_of(LOOK_ANYWAY)
    }
}

/// Threads alive, and at most so far.
#[derive(Debug, Clone, Copy)]
struct Population {
    alive: i64,
    peak: i64,
}

impl Population {
    fn take(&mut self, kept: u64) {
        self.alive += if kept & 1 == 1 { 1 } else { -1 };
        self.peak = self.peak.max(self.alive);
    }
}

impl Default for Census {
    /// The first thread was born before counting began.
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            folded: Population { alive: 1, peak: 1 },
            folded_until_ns: 0,
            births: 1,
            deaths: 0,
            processes: 1,
            lost: 0,
        }
    }
}

impl Census {
    /// Adds births and deaths.
    pub fn add(&mut self, lives: Lives) {
        self.lost += lives.lost;
        for life in lives.lives {
            self.count(&life);
            self.kept
                .push(life.at_ns << 1 | u64::from(life.event == LifeEvent::Birth));
        }
        if self.kept.len() > KEPT_MAX {
            self.fold();
        }
    }

    fn count(&mut self, life: &Life) {
        match life.event {
            LifeEvent::Birth => self.births += 1,
            LifeEvent::Death => self.deaths += 1,
        }
        self.processes += u64::from(life.is_process_birth());
    }

    /// Threads that ever lived.
    pub fn threads(&self) -> u64 {
        self.births
    }

    /// Threads that have ended.
    pub fn deaths(&self) -> u64 {
        self.deaths
    }

    /// Processes that ever lived.
    pub fn processes(&self) -> u64 {
        self.processes
    }

    /// The same while trials run; none if births were lost.
    pub fn processes_so_far(&self) -> Option<u64> {
        (self.lost == 0).then_some(self.processes)
    }

    /// Greatest number of threads alive at once.
    pub fn peak(&mut self) -> u64 {
        self.kept.sort_unstable();
        let mut population = self.folded;
        self.kept.iter().for_each(|kept| population.take(*kept));
        population.peak as u64
    }

    /// The same within an interval; none if its begin is folded already.
    pub fn peak_between(&mut self, begin_ns: u64, end_ns: u64) -> Option<u64> {
        if begin_ns < self.folded_until_ns {
            return None;
        }
        self.kept.sort_unstable();
        let begin = self.kept.partition_point(|kept| kept >> 1 <= begin_ns);
        let end = self.kept.partition_point(|kept| kept >> 1 <= end_ns);
        let mut population = self.folded;
        self.kept[..begin]
            .iter()
            .for_each(|kept| population.take(*kept));
        population.peak = population.alive;
        self.kept[begin..end.max(begin)]
            .iter()
            .for_each(|kept| population.take(*kept));
        Some(population.peak.max(0) as u64)
    }

    /// Why the counts are not exact, if they are not. To be called when all threads are dead.
    pub fn gap(&self) -> Option<String> {
        if self.lost > 0 {
            return Some(format!(
                "{} births and deaths came too fast for the perf rings",
                self.lost
            ));
        }
        (self.births != self.deaths).then(|| {
            format!(
                "{} births and {} deaths were seen in a tree that is dead",
                self.births, self.deaths
            )
        })
    }

    fn fold(&mut self) {
        self.kept.sort_unstable();
        let last_ns = self.kept.last().map_or(0, |kept| kept >> 1);
        self.folded_until_ns = last_ns.saturating_sub(LATE_NS);
        let cut = self
            .kept
            .partition_point(|kept| kept >> 1 < self.folded_until_ns);
        for kept in self.kept.drain(..cut) {
            self.folded.take(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_looked_for_where_processes_were_born_or_may_have_been() {
        let mut births = BirthWatch::default();
        assert!(births.has_news(Some(1)), "nobody has looked yet");
        assert!(!births.has_news(Some(1)));
        assert!(births.has_news(Some(3)));
        assert!(!births.has_news(Some(3)));
        assert!(births.has_news(None) && births.has_news(None), "not known");
        assert!(
            births.has_news(Some(3)),
            "nobody knows what was born meanwhile"
        );

        let mut births = BirthWatch::default();
        let looks = (0..40).filter(|_| births.is_to_look(Some(1))).count();
        assert_eq!(looks, 2 + 39 / LOOK_ANYWAY as usize);
        assert!(births.is_to_look(Some(2)) && births.is_to_look(Some(2)));
        assert!(!births.is_to_look(Some(2)));

        let mut census = Census::default();
        assert_eq!(census.processes_so_far(), Some(1));
        census.add(Lives {
            lost: 1,
            ..Lives::default()
        });
        assert_eq!(
            census.processes_so_far(),
            None,
            "one of those may be a process"
        );
    }

    fn life(at_ns: u64, event: LifeEvent) -> Life {
        Life {
            at_ns,
            pid: 1,
            parent: 1,
            tid: 2,
            event,
        }
    }

    fn births_and_deaths(births: &[u64], deaths: &[u64]) -> Lives {
        let births = births.iter().map(|at_ns| life(*at_ns, LifeEvent::Birth));
        let deaths = deaths.iter().map(|at_ns| life(*at_ns, LifeEvent::Death));
        Lives {
            lives: births.chain(deaths).collect(),
            ..Lives::default()
        }
    }

    #[test]
    fn the_peak_goes_by_time_not_by_arrival() {
        let mut census = Census::default();
        census.add(births_and_deaths(&[10, 30], &[40]));
        census.add(births_and_deaths(&[50], &[20, 60, 70]));
        assert_eq!(
            (census.peak(), census.threads(), census.processes()),
            (2, 4, 1)
        );
        assert_eq!(census.gap(), None);
    }

    #[test]
    fn a_phase_has_a_peak_of_its_own() {
        let mut census = Census::default();
        census.add(births_and_deaths(&[10, 11, 12, 50], &[20, 21, 60]));
        assert_eq!(census.peak(), 4);
        assert_eq!(census.peak_between(0, 5), Some(1));
        assert_eq!(census.peak_between(11, 12), Some(4));
        assert_eq!(census.peak_between(20, 55), Some(3));
        assert_eq!(census.peak_between(25, 30), Some(2));
    }

    #[test]
    fn lost_events_are_reported() {
        let mut census = Census::default();
        assert!(census.gap().unwrap().contains("1 births and 0 deaths"));
        census.add(Lives {
            lost: 3,
            ..births_and_deaths(&[], &[5])
        });
        assert!(census.gap().unwrap().contains("3 births and deaths"));
    }

    #[test]
    fn a_long_history_is_folded() {
        let mut census = Census::default();
        let second = 1_000_000_000;
        let births: Vec<u64> = (0..3).map(|at| at * second / 2).collect();
        census.add(births_and_deaths(&births, &[10 * second]));
        census.fold();
        assert_eq!((census.kept.len(), census.folded.alive), (1, 4));
        assert_eq!((census.peak(), census.threads()), (4, 4));
        assert_eq!(census.peak_between(0, second), None);
        assert_eq!(census.peak_between(9 * second, 11 * second), Some(4));
    }
}

//! In which part of the time it is sampled where the threads of a role run.
//!
//! The clock of these samples is set anew whenever a thread gets a CPU, which costs microseconds in a virtual machine.
//! A program that switches ten thousand times a second would be slowed by a tenth. So the samples are taken in a part
//! of the time that keeps this cost within a share. The part is only ever halved, and what was sampled before is
//! thinned alike ([`concurve_sites::Hot::halve`]): all of the time has the same weight.

use concurve_probe::schedstat::Schedstat;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Binomial, Distribution};

/// What it costs to set the clock at a switch: 6 µs were measured in a virtual machine (docs/method/overhead.md). On
/// other machines it is less.
const SWITCH_NS: f64 = 6_000.0;
/// The cost may be this share of the time of one CPU, or of all CPU time if that is more. Some may be spent in advance,
/// so that short trials have samples, too.
const SHARE: f64 = 0.005;
const ALLOWANCE_NS: f64 = 2e6;
/// Samples are taken, or not, for so long at least.
const WINDOW_NS: u64 = 10_000_000;
/// What it costs to pause or resume the event of a thread on a CPU: the kernel interrupts that CPU, 10 µs. A window is so
/// many times as long, so that this is within the share, too: half of the windows or fewer begin with it.
const PAUSE_NS: u64 = 10_000;
const WINDOW_PAUSES: u64 = 100;
/// With more events windows would be longer than 0.1 s, and too few: then samples are taken all the time.
const EVENTS_MAX: u64 = 100;

/// When samples are taken in a role.
#[derive(Debug)]
pub struct HotPace {
    random: SmallRng,
    switches: u64,
    cpu_ns: u64,
    halved: u32,
    is_paused: bool,
    until_ns: u64,
}

impl HotPace {
    /// With other windows than those of other trials and roles, for which the seed must be another one: else they would
    /// all sample the same parts of a program.
    pub fn new(seed: u64) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            switches: 0,
            cpu_ns: 0,
            halved: 0,
            is_paused: false,
            until_ns: 0,
        }
    }

    /// A thread has run meanwhile, by its accounts.
    pub fn ran(&mut self, before: Schedstat, after: Schedstat) {
        self.switches += after.slices.saturating_sub(before.slices);
        self.cpu_ns += after.cpu_ns.saturating_sub(before.cpu_ns);
    }

    /// Must the part of the time be halved, now that the role has run for so long and has so many events: one for each
    /// thread on each CPU?
    pub fn is_to_halve(&self, elapsed_ns: u64, events: u64) -> bool {
        if events > EVENTS_MAX {
            return false;
        }
        let cost_ns = SWITCH_NS * self.switches as f64 / f64::from(self.halved).exp2();
        cost_ns > ALLOWANCE_NS + SHARE * elapsed_ns.max(self.cpu_ns) as f64
    }

    /// Halves it, and ends the window, which was drawn for a greater part. Returns what draws how many of a number of
    /// samples are kept.
    pub fn halve(&mut self) -> impl FnMut(u64) -> u64 {
        self.halved += 1;
        self.until_ns = 0;
        let random = &mut self.random;
        |samples| match Binomial::new(samples, 0.5) {
            Ok(kept) => kept.sample(random),
            Err(_) => samples,
        }
    }

    /// Whether samples are paused in the next window, if one begins now, and that was not so in the last one.
    pub fn turn(&mut self, now: u64, events: u64) -> Option<bool> {
        if self.halved == 0 || now < self.until_ns {
            return None;
        }
        self.until_ns = now + WINDOW_NS.max(WINDOW_PAUSES * PAUSE_NS * events);
        let part = f64::from(self.halved).exp2().recip();
        let is_paused = !self.random.random_bool(part);
        let is_new = std::mem::replace(&mut self.is_paused, is_paused) != is_paused;
        is_new.then_some(is_paused)
    }

    /// Whether windows follow each other.
    pub fn is_in_part(&self) -> bool {
        self.halved > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A role that has switched so often by then, with all halvings that are due.
    fn after(switches: u64, elapsed_ns: u64, cpu_ns: u64) -> HotPace {
        let mut pace = HotPace::new(1);
        let account = Schedstat {
            cpu_ns,
            run_queue_ns: 0,
            slices: switches,
        };
        pace.ran(Schedstat::default(), account);
        while pace.is_to_halve(elapsed_ns, 8) {
            drop(pace.halve());
        }
        pace
    }

    #[test]
    fn who_hardly_switches_is_always_sampled() {
        // 100 times a second on each of two CPUs; a short trial with many switches.
        let rare = after(2_000, 10_000 * MS, 20_000 * MS);
        let short = after(300, 30 * MS, 40 * MS);
        for mut pace in [rare, short] {
            assert!(!pace.is_in_part());
            assert_eq!(pace.turn(0, 8), None);
        }
    }

    #[test]
    fn the_cost_keeps_to_its_share() {
        for per_second in [1_000, 10_000, 50_000, 500_000] {
            for seconds in [1, 10, 100] {
                let elapsed_ns = seconds * 1000 * MS;
                let pace = after(per_second * seconds, elapsed_ns, elapsed_ns / 2);
                let part = f64::from(pace.halved).exp2().recip();
                let cost = SWITCH_NS * (per_second * seconds) as f64 * part / elapsed_ns as f64;
                assert!(cost <= 0.0071, "{per_second} {seconds}: {cost}");
                // And no fewer samples than that asks for.
                assert!(
                    pace.halved == 0 || cost > 0.0025,
                    "{per_second} {seconds}: {cost}"
                );
            }
        }
    }

    #[test]
    fn other_trials_have_other_windows() {
        let windows = |seed| {
            let mut pace = HotPace::new(seed);
            drop(pace.halve());
            let turn = |window| pace.turn(window * WINDOW_NS, 8).is_some();
            (0..64).map(turn).collect::<Vec<_>>()
        };
        assert_eq!(windows(1), windows(1));
        assert_ne!(windows(1), windows(2));
    }

    #[test]
    fn many_cpus_may_switch_more() {
        let of_one = after(1_000_000, 10_000 * MS, 10_000 * MS);
        let of_many = after(1_000_000, 10_000 * MS, 320_000 * MS);
        assert_eq!((of_one.halved, of_many.halved), (7, 2));
    }

    #[test]
    fn windows_are_that_part_of_the_time() {
        let mut pace = after(200_000, 10_000 * MS, 20_000 * MS);
        assert_eq!(pace.halved, 4);
        let mut is_paused = false;
        let mut sampled = 0;
        let windows = 16_000;
        for window in 0..windows {
            is_paused = pace.turn(window * WINDOW_NS, 8).unwrap_or(is_paused);
            assert_eq!(pace.turn(window * WINDOW_NS + 1, 8), None);
            sampled += u64::from(!is_paused);
        }
        assert!((850..1150).contains(&sampled), "{sampled}");
    }

    #[test]
    fn many_threads_are_not_interrupted_often() {
        // As 512 threads on two CPUs that each work for a slice.
        let mut pace = HotPace {
            switches: 10_000,
            ..HotPace::new(1)
        };
        assert!(!pace.is_to_halve(3_000 * MS, 1024));
        assert!(pace.is_to_halve(3_000 * MS, 12));
        // Where they were few at first.
        drop(pace.halve());
        let turns = (0..1_000).filter(|window| pace.turn(window * WINDOW_NS, 1024).is_some());
        assert!(turns.count() <= 10);
    }

    #[test]
    fn a_window_ends_where_the_part_is_halved() {
        let mut pace = after(200_000, 10_000 * MS, 20_000 * MS);
        pace.turn(0, 8);
        assert_eq!((pace.turn(1, 8), pace.until_ns), (None, WINDOW_NS));
        drop(pace.halve());
        pace.turn(2, 8);
        assert_eq!(pace.until_ns, WINDOW_NS + 2);
    }

    #[test]
    fn half_of_the_samples_are_kept() {
        let mut pace = HotPace::new(1);
        let mut kept = pace.halve();
        assert_eq!(kept(0), 0);
        let of_single: u64 = (0..10_000).map(|_| kept(1)).sum();
        for found in [of_single, kept(10_000)] {
            assert!((4700..5300).contains(&found), "{found}");
        }
    }
}

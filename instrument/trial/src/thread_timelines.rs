//! What each thread did in the course of a trial: ran, waited for a CPU, or was blocked, and at what.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use concurve_probe::schedstat::Schedstat;
use concurve_probe::syscall::Kind;
use concurve_wire::record::{ThreadTimeline, ThreadTimelines};

use crate::intervals::{Intervals, Joined};
use crate::waits::Activity;

/// There are fewer intervals than this, and the first ones are at least so long.
const INTERVALS_MAX: usize = 128;
const INTERVAL_NS: u64 = 10_000_000;
/// Most threads of a role that are followed, those that were seen first, and most of them in its record.
const FOLLOWED_MAX: usize = 256;
const LISTED_MAX: usize = 16;
/// In the record, the letter of each kind of wait, and what stands where no sample saw one.
const LETTERS: [(Kind, char); 11] = [
    (Kind::Futex, 'f'),
    (Kind::Disk, 'd'),
    (Kind::Network, 'n'),
    (Kind::Poll, 'p'),
    (Kind::Pipe, '|'),
    (Kind::Sleep, 's'),
    (Kind::Child, 'h'),
    (Kind::FileLock, 'l'),
    (Kind::Memory, 'm'),
    (Kind::WakeUp, 'w'),
    (Kind::Other, 'o'),
];
const NO_WAIT: char = '-';
const NOWHERE: i64 = -1;

/// What a thread did in an interval.
#[derive(Debug, Clone, Default)]
struct Doing {
    cpu_ns: u64,
    run_queue_ns: u64,
    /// How many samples saw it run or wait for a CPU.
    ready: u32,
    /// How many samples saw it wait for something else, by kind.
    waits: [u32; LETTERS.len()],
    /// How often each sample of its stack was what it waited in, by the numbers of these samples.
    stacks: BTreeMap<u64, u32>,
}

impl Joined for Doing {
    fn join(&mut self, next: Self) {
        self.cpu_ns += next.cpu_ns;
        self.run_queue_ns += next.run_queue_ns;
        self.ready += next.ready;
        for (samples, more) in self.waits.iter_mut().zip(next.waits) {
            *samples += more;
        }
        for (number, more) in next.stacks {
            *self.stacks.entry(number).or_default() += more;
        }
    }
}

/// What the threads did in an interval, by role and thread.
type Threads = HashMap<(usize, u32), Doing>;

impl Joined for Threads {
    fn join(&mut self, next: Self) {
        for (thread, more) in next {
            self.entry(thread).or_default().join(more);
        }
    }
}

/// What is known of the threads of all roles; nothing, where the trial does not ask for it.
#[derive(Debug)]
pub struct Following {
    is_asked: bool,
    intervals: Intervals<Threads>,
    /// What is known of the interval that has not ended, when it began, and when the last sample was.
    open: Threads,
    began_ns: u64,
    sampled_ns: u64,
    /// The threads that are followed, in the order in which they were seen first, and how many others of
    /// each role there are.
    followed: HashMap<(usize, u32), usize>,
    others: HashMap<usize, u64>,
}

impl Following {
    pub fn new(is_asked: bool) -> Self {
        Self {
            is_asked,
            intervals: Intervals::new(INTERVALS_MAX, INTERVAL_NS),
            open: Threads::new(),
            began_ns: 0,
            sampled_ns: 0,
            followed: HashMap::new(),
            others: HashMap::new(),
        }
    }

    /// The trial begins.
    pub fn begin(&mut self, now: u64) {
        if self.began_ns == 0 {
            self.began_ns = now;
            self.sampled_ns = now;
        }
    }

    /// A sample sees a thread for the first time.
    pub fn begins(&mut self, role: usize, tid: u32) {
        if !self.is_asked || self.followed.contains_key(&(role, tid)) {
            return;
        }
        let of_role = self.followed.keys().filter(|(of, _)| *of == role).count();
        if of_role < FOLLOWED_MAX {
            let place = self.followed.len();
            self.followed.insert((role, tid), place);
        } else {
            *self.others.entry(role).or_default() += 1;
        }
    }

    /// A thread ran and waited for a CPU, from one account of it to the next.
    pub fn ran(&mut self, role: usize, tid: u32, before: Schedstat, after: Schedstat) {
        if let Some(doing) = self.of(role, tid) {
            doing.cpu_ns += after.cpu_ns.saturating_sub(before.cpu_ns);
            doing.run_queue_ns += after.run_queue_ns.saturating_sub(before.run_queue_ns);
        }
    }

    /// A sample sees what a thread does.
    pub fn seen(&mut self, role: usize, tid: u32, activity: Activity) {
        let Some(doing) = self.of(role, tid) else {
            return;
        };
        match activity {
            Activity::Running => doing.ready += 1,
            Activity::Futex(_) => doing.waits[Kind::Futex as usize] += 1,
            Activity::Waiting(kind) => doing.waits[kind as usize] += 1,
        }
    }

    /// A thread waits as its stack in the sample of this number says.
    pub fn waits_at(&mut self, role: usize, tid: u32, number: u64) {
        if let Some(doing) = self.of(role, tid) {
            *doing.stacks.entry(number).or_default() += 1;
        }
    }

    /// All threads were sampled. The interval ends, if it is long enough.
    pub fn sampled(&mut self, now: u64) {
        self.sampled_ns = now;
        if self.is_asked && now.saturating_sub(self.began_ns) >= self.intervals.shortest_ns() {
            self.end_interval();
        }
    }

    /// What is known of the threads of each of so many roles, for their records.
    pub fn finish(mut self, roles: usize) -> Vec<OfRole> {
        if !self.open.is_empty() && self.sampled_ns > self.began_ns {
            self.end_interval();
        }
        let (ends_ns, intervals) = self.intervals.into_parts();
        let of_role = |role| OfRole {
            ends_ns: ends_ns.clone(),
            others: self.others.get(&role).copied().unwrap_or_default(),
            threads: Vec::new(),
        };
        let mut of_roles: Vec<_> = (0..roles).map(of_role).collect();
        let mut threads: Vec<_> = self.followed.into_iter().collect();
        threads.sort_by_key(|(_, place)| *place);
        for ((role, tid), _) in threads {
            let each = intervals.iter().map(|it| it.get(&(role, tid)).cloned());
            of_roles[role].threads.push(Followed {
                tid,
                intervals: each.collect(),
            });
        }
        of_roles
    }

    fn end_interval(&mut self) {
        let known = std::mem::take(&mut self.open);
        self.intervals.end(self.sampled_ns, known);
        self.began_ns = self.sampled_ns;
    }

    /// What is known of a thread in the present interval, if it is followed.
    fn of(&mut self, role: usize, tid: u32) -> Option<&mut Doing> {
        let thread = (role, tid);
        let is_followed = self.followed.contains_key(&thread);
        is_followed.then(|| self.open.entry(thread).or_default())
    }
}

/// The threads of a role.
#[derive(Debug)]
pub struct OfRole {
    ends_ns: Vec<u64>,
    threads: Vec<Followed>,
    others: u64,
}

#[derive(Debug)]
struct Followed {
    tid: u32,
    /// None where no sample saw it.
    intervals: Vec<Option<Doing>>,
}

impl OfRole {
    /// The wire form, if there is anything to say; the trial began at `first_ns`. `places` are those of
    /// samples of stacks, by their numbers, in the record of sites.
    pub fn recorded(self, first_ns: u64, places: &HashMap<u64, usize>) -> Option<ThreadTimelines> {
        let threads = self.threads.len() as u64 + self.others;
        let ends_ns = self.ends_ns.iter();
        let ends_ns: Vec<u64> = ends_ns.map(|it| it.saturating_sub(first_ns)).collect();
        let begins_ns = std::iter::once(0).chain(ends_ns.iter().copied());
        let spans_ns: Vec<u64> = ends_ns.iter().zip(begins_ns).map(|(a, b)| a - b).collect();
        let mut busiest: Vec<_> = self.threads.iter().enumerate().collect();
        busiest.sort_by_key(|(_, thread)| Reverse(thread.busy_ns()));
        busiest.truncate(LISTED_MAX);
        busiest.sort_by_key(|(place, _)| *place);
        let listed = busiest.into_iter();
        let listed: Vec<_> = listed
            .filter_map(|(_, thread)| thread.recorded(&spans_ns, places))
            .collect();
        (!listed.is_empty()).then_some(ThreadTimelines {
            ends_ns,
            threads,
            listed,
        })
    }
}

impl Followed {
    fn busy_ns(&self) -> u64 {
        let known = self.intervals.iter().flatten();
        known.map(|it| it.cpu_ns + it.run_queue_ns).sum()
    }

    fn recorded(&self, spans_ns: &[u64], places: &HashMap<u64, usize>) -> Option<ThreadTimeline> {
        let first = self.intervals.iter().position(Option::is_some)?;
        let last = self.intervals.iter().rposition(Option::is_some)?;
        let mut timeline = ThreadTimeline {
            tid: self.tid,
            first: first as u64,
            ..ThreadTimeline::default()
        };
        let nothing = Doing::default();
        for (doing, span_ns) in self.intervals[first..=last].iter().zip(&spans_ns[first..]) {
            let doing = doing.as_ref().unwrap_or(&nothing);
            let (running, runnable) = doing.shares(*span_ns);
            timeline.running.push(running);
            timeline.runnable.push(runnable);
            timeline.waits.push(doing.letter());
            timeline.sites.push(doing.place(places));
        }
        if timeline.sites.iter().all(|place| *place == NOWHERE) {
            timeline.sites.clear();
        }
        Some(timeline)
    }
}

impl Doing {
    /// How much of the interval it ran and waited for a CPU, in percent. The kernel accounts for a wait for a
    /// CPU when it has ended, so what is in no account is divided as samples saw it.
    fn shares(&self, span_ns: u64) -> (u8, u8) {
        let running = percent(self.cpu_ns, span_ns);
        let runnable = percent(self.run_queue_ns, span_ns).min(100 - running);
        let seen = self.ready + self.waits.iter().sum::<u32>();
        let left = f64::from(100 - running - runnable);
        let ready = left * f64::from(self.ready) / f64::from(seen.max(1));
        (running, runnable + ready.round() as u8)
    }

    /// What most samples saw it wait for.
    fn letter(&self) -> char {
        let seen = |(kind, _): &&(Kind, char)| self.waits[*kind as usize];
        let most = LETTERS.iter().rev().max_by_key(seen);
        let found = most.filter(|it| seen(it) > 0);
        found.map_or(NO_WAIT, |(_, letter)| *letter)
    }

    /// Where most samples of its stack saw it wait.
    fn place(&self, places: &HashMap<u64, usize>) -> i64 {
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        for (number, seen) in &self.stacks {
            if let Some(place) = places.get(number) {
                *counts.entry(*place).or_default() += seen;
            }
        }
        let most = counts.iter().rev().max_by_key(|(_, seen)| **seen);
        most.map_or(NOWHERE, |(place, _)| *place as i64)
    }
}

fn percent(part_ns: u64, of_ns: u64) -> u8 {
    let share = (part_ns as f64 / of_ns.max(1) as f64).min(1.0);
    (100.0 * share).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BEGIN: u64 = 500 * MS;

    fn account(cpu_ms: u64, run_queue_ms: u64) -> Schedstat {
        Schedstat {
            cpu_ns: cpu_ms * MS,
            run_queue_ns: run_queue_ms * MS,
            slices: 0,
        }
    }

    fn following() -> Following {
        let mut following = Following::new(true);
        following.begin(BEGIN);
        following
    }

    fn recorded(following: Following, places: &[(u64, usize)]) -> Option<ThreadTimelines> {
        let places = places.iter().copied().collect();
        let [of_role] = <[OfRole; 1]>::try_from(following.finish(1)).unwrap();
        of_role.recorded(BEGIN, &places)
    }

    #[test]
    fn shares_of_each_interval_are_what_accounts_grew_by() {
        let mut following = following();
        following.begins(0, 7);
        following.ran(0, 7, account(0, 0), account(6, 2));
        following.sampled(BEGIN + 10 * MS);
        following.ran(0, 7, account(6, 2), account(6, 2));
        following.seen(0, 7, Activity::Waiting(Kind::Disk));
        following.sampled(BEGIN + 20 * MS);
        following.seen(0, 7, Activity::Running);
        following.sampled(BEGIN + 30 * MS);
        let found = recorded(following, &[]).unwrap();
        assert_eq!(found.ends_ns, [10 * MS, 20 * MS, 30 * MS]);
        let [thread] = &found.listed[..] else {
            panic!("{found:?}");
        };
        assert_eq!((thread.tid, thread.first), (7, 0));
        assert_eq!(
            (&thread.running[..], &thread.runnable[..]),
            (&[60, 0, 0][..], &[20, 0, 100][..])
        );
        assert_eq!((thread.waits.as_str(), thread.sites.len()), ("-d-", 0));
    }

    #[test]
    fn a_thread_is_there_from_its_first_interval_to_its_last() {
        let mut following = following();
        for number in 1..=4 {
            following.begins(0, 1);
            following.ran(0, 1, account(0, 0), account(10, 0));
            if number == 2 {
                following.begins(0, 2);
                following.ran(0, 2, account(0, 0), account(5, 0));
            }
            following.sampled(BEGIN + number * 10 * MS);
        }
        let found = recorded(following, &[]).unwrap();
        let lives: Vec<_> = found
            .listed
            .iter()
            .map(|it| (it.first, it.running.len()))
            .collect();
        assert_eq!((lives, found.threads), (vec![(0, 4), (1, 1)], 2));
    }

    #[test]
    fn the_place_of_most_samples_is_that_of_the_interval() {
        let mut following = following();
        following.begins(0, 1);
        for number in [10, 11, 11, 12, 99] {
            following.seen(0, 1, Activity::Futex(None));
            following.waits_at(0, 1, number);
        }
        following.sampled(BEGIN + 10 * MS);
        following.seen(0, 1, Activity::Futex(None));
        following.waits_at(0, 1, 99);
        following.sampled(BEGIN + 20 * MS);
        let found = recorded(following, &[(10, 0), (11, 3), (12, 0)]).unwrap();
        assert_eq!(found.listed[0].sites, [0, NOWHERE]);
        assert_eq!(found.listed[0].waits, "ff");
    }

    #[test]
    fn long_trials_and_many_threads_are_bounded_and_nothing_is_lost() {
        let mut following = following();
        (0..300).for_each(|tid| following.begins(0, tid));
        for number in 1..=1000 {
            for tid in 0..300 {
                let ran = u64::from(tid == 5) * 10 + u64::from(tid == 299) * 10;
                following.ran(0, tid, account(0, 0), account(ran, 0));
            }
            following.sampled(BEGIN + number * 10 * MS);
        }
        let found = recorded(following, &[]).unwrap();
        assert!(
            found.ends_ns.len() < INTERVALS_MAX,
            "{}",
            found.ends_ns.len()
        );
        assert_eq!(found.ends_ns.last(), Some(&(10_000 * MS)));
        assert_eq!((found.threads, found.listed.len()), (300, LISTED_MAX));
        let busy = found.listed.iter().find(|it| it.tid == 5).unwrap();
        assert!(busy.running.iter().all(|share| *share == 100));
    }

    #[test]
    fn nothing_is_kept_that_nobody_asked_for() {
        let mut following = Following::new(false);
        following.begin(BEGIN);
        following.begins(0, 1);
        following.ran(0, 1, account(0, 0), account(10, 0));
        following.sampled(BEGIN + 10 * MS);
        assert_eq!(recorded(following, &[]), None);
    }
}

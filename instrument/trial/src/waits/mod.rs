//! Samples of what threads were doing, counted by role, by phase and by thread.

mod runtimes;
pub mod sampling;
pub mod thread;

use std::collections::{BTreeSet, HashMap};

use concurve_probe::syscall::Kind;
use concurve_wire::record::{FutexWaits, Waits};

/// Most futex words in the record of a role.
const WORDS_MAX: usize = 8;
/// Values of a futex word up to this one are those of locks and of idle threads: 2 is that of a mutex for
/// which somebody waits.
const LOCK_VALUE_MAX: u32 = 2;
/// Most values of a futex word that are told apart.
const VALUES_MAX: usize = 32;
/// Most pairs of thread and futex word that are counted apart, in each role.
const FUTEX_WAITS_MAX: usize = 100_000;

/// What a thread was doing in one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    Running,
    /// Waiting at a futex word, if it is known.
    Futex(Option<Word>),
    Waiting(Kind),
}

/// A futex word, and the value that a thread expects there if it waits as at a mutex or a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub address: u64,
    pub expected: Option<u32>,
}

/// How many samples saw threads running, and in each kind of wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActivityCounts {
    running: u64,
    /// Of these, in how many nobody else of the role ran, though another thread waited.
    alone: u64,
    kinds: [u64; 11],
}

impl ActivityCounts {
    pub fn add(&mut self, activity: Activity) {
        match activity {
            Activity::Running => self.running += 1,
            Activity::Futex(_) => self.kinds[Kind::Futex as usize] += 1,
            Activity::Waiting(kind) => self.kinds[kind as usize] += 1,
        }
    }

    pub fn add_alone(&mut self) {
        self.alone += 1;
    }

    fn minus(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        difference.running -= earlier.running;
        difference.alone -= earlier.alone;
        for (kind, before) in difference.kinds.iter_mut().zip(earlier.kinds) {
            *kind -= before;
        }
        difference
    }

    /// The wire form, without futex words; none if there was no reading.
    pub fn finish(&self) -> Option<Waits> {
        let of = |kind: Kind| self.kinds[kind as usize];
        let readings = self.running + self.kinds.iter().sum::<u64>();
        (readings > 0).then(|| Waits {
            readings,
            running: self.running,
            alone: Some(self.alone),
            futex: of(Kind::Futex),
            disk: of(Kind::Disk),
            network: of(Kind::Network),
            poll: of(Kind::Poll),
            pipe: of(Kind::Pipe),
            sleep: of(Kind::Sleep),
            child: of(Kind::Child),
            file_lock: Some(of(Kind::FileLock)),
            memory: Some(of(Kind::Memory)),
            wake_up: Some(of(Kind::WakeUp)),
            other: of(Kind::Other),
            ..Waits::default()
        })
    }
}

/// A thread at a futex word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FutexWait {
    pid: u32,
    address: u64,
    tid: u32,
}

/// What the threads of a role were doing, over all samples.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: ActivityCounts,
    futex_waits: HashMap<FutexWait, u64>,
    /// Values beyond those of locks that threads expected, by process and address.
    values: HashMap<(u32, u64), BTreeSet<u32>>,
    /// Readings at further words, beyond the most that are counted apart.
    pub left_out: u64,
}

impl Tally {
    pub fn add(&mut self, pid: u32, tid: u32, activity: Activity) {
        self.counts.add(activity);
        let Activity::Futex(Some(Word { address, expected })) = activity else {
            return;
        };
        let wait = FutexWait { pid, address, tid };
        if let Some(readings) = self.futex_waits.get_mut(&wait) {
            *readings += 1;
        } else if self.futex_waits.len() < FUTEX_WAITS_MAX {
            self.futex_waits.insert(wait, 1);
        } else {
            self.left_out += 1;
        }
        if let Some(expected) = expected
            && self.values.len() < FUTEX_WAITS_MAX
        {
            let values = self.values.entry((pid, address)).or_default();
            if expected > LOCK_VALUE_MAX && values.len() < VALUES_MAX {
                values.insert(expected);
            }
        }
    }

    /// Counts that a thread was the only one of the role that ran.
    pub fn add_alone(&mut self) {
        self.counts.add_alone();
    }

    /// What was added since an earlier copy of this tally.
    pub fn since(&self, earlier: &Self) -> Self {
        let more = self.futex_waits.iter().filter_map(|(wait, readings)| {
            let before = earlier.futex_waits.get(wait).copied().unwrap_or_default();
            (*readings > before).then(|| (*wait, readings - before))
        });
        let values = self.values.iter().map(|(word, values)| {
            let before = earlier.values.get(word);
            let new = values
                .iter()
                .filter(|it| !before.is_some_and(|old| old.contains(it)));
            (*word, new.copied().collect())
        });
        Self {
            counts: self.counts.minus(&earlier.counts),
            futex_waits: more.collect(),
            values: values.collect(),
            left_out: self.left_out - earlier.left_out,
        }
    }

    /// The wire form; none if there was no reading.
    pub fn finish(&self) -> Option<Waits> {
        let mut waits = self.counts.finish()?;
        let mut words: HashMap<(u32, u64), (u64, u64)> = HashMap::new();
        for (wait, readings) in &self.futex_waits {
            let word = words.entry((wait.pid, wait.address)).or_default();
            word.0 += readings;
            word.1 += 1;
        }
        waits.futex_words = words.len() as u64;
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_by_key(|(word, (readings, _))| (std::cmp::Reverse(*readings), *word));
        words.truncate(WORDS_MAX);
        let futex = |((pid, address), (readings, threads))| FutexWaits {
            address: format!("{address:#x}"),
            pid: Some(pid),
            readings,
            threads,
            values: self
                .values
                .get(&(pid, address))
                .map(|values| values.len() as u64),
        };
        waits.futexes = words.into_iter().map(futex).collect();
        Some(waits)
    }

    /// Different futex words of each thread that waited at any.
    pub fn words_of_threads(&self) -> HashMap<u32, u64> {
        let mut words = HashMap::new();
        for wait in self.futex_waits.keys() {
            *words.entry(wait.tid).or_default() += 1;
        }
        words
    }
}

/// Leaves the processes' numbers out, where there is only one.
pub fn of_one_process(waits: &mut Waits) {
    for futex in &mut waits.futexes {
        futex.pid = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(address: u64) -> Activity {
        Activity::Futex(Some(Word {
            address,
            expected: Some(2),
        }))
    }

    const LOCK: Activity = at(0x1000);

    #[test]
    fn readings_are_the_sum_of_all_kinds() {
        let mut tally = Tally::default();
        tally.add(1, 1, Activity::Running);
        tally.add(1, 2, LOCK);
        tally.add(1, 2, Activity::Futex(None));
        tally.add(1, 3, Activity::Waiting(Kind::Disk));
        tally.add(1, 3, Activity::Waiting(Kind::Other));
        let waits = tally.finish().unwrap();
        assert_eq!((waits.readings, waits.running, waits.futex), (5, 1, 2));
        assert_eq!((waits.alone, waits.file_lock), (Some(0), Some(0)));
        tally.add_alone();
        assert_eq!(tally.finish().unwrap().alone, Some(1));
        assert_eq!((waits.disk, waits.other, waits.futex_words), (1, 1, 1));
        assert_eq!(Tally::default().finish(), None);
    }

    #[test]
    fn a_word_knows_its_readings_and_its_threads() {
        let mut tally = Tally::default();
        for (tid, times) in [(1, 3), (2, 2)] {
            (0..times).for_each(|_| tally.add(7, tid, LOCK));
        }
        tally.add(8, 9, LOCK);
        tally.add(7, 1, at(0x2000));
        let waits = tally.finish().unwrap();
        assert_eq!(waits.futex_words, 3);
        let first = &waits.futexes[0];
        assert_eq!((first.address.as_str(), first.pid), ("0x1000", Some(7)));
        assert_eq!((first.readings, first.threads), (5, 2));
        assert_eq!(tally.words_of_threads()[&1], 2);
    }

    #[test]
    fn the_most_seen_words_are_listed_and_all_are_counted() {
        let mut tally = Tally::default();
        for word in 1..=20u64 {
            (0..word).for_each(|_| tally.add(1, 1, at(word)));
        }
        let waits = tally.finish().unwrap();
        assert_eq!((waits.futexes.len(), waits.futex_words), (WORDS_MAX, 20));
        assert_eq!(waits.futexes[0].address, "0x14");
    }

    #[test]
    fn a_barrier_expects_another_value_in_each_round_and_a_lock_none_of_them() {
        let round = |value: u32| {
            Activity::Futex(Some(Word {
                address: 0x3000,
                expected: Some(value),
            }))
        };
        let mut tally = Tally::default();
        (0..5).for_each(|_| tally.add(1, 1, LOCK));
        (0..5).for_each(|it| tally.add(1, 1, round(10 + it)));
        let values = |tally: &Tally| -> Vec<_> {
            let futexes = tally.finish().unwrap().futexes;
            futexes.iter().map(|word| word.values).collect()
        };
        assert_eq!(values(&tally), [Some(0), Some(5)]);
        let begin = tally.clone();
        tally.add(1, 1, round(20));
        assert_eq!(values(&tally.since(&begin)), [Some(1)]);
        (0..100).for_each(|it| tally.add(1, 1, round(10 + it)));
        assert_eq!(values(&tally)[0], Some(VALUES_MAX as u64));
    }

    #[test]
    fn a_difference_holds_what_was_added_only() {
        let mut tally = Tally::default();
        tally.add(1, 1, LOCK);
        tally.add(1, 2, Activity::Running);
        let begin = tally.clone();
        assert_eq!(tally.since(&begin).finish(), None);
        tally.add(1, 2, LOCK);
        let waits = tally.since(&begin).finish().unwrap();
        assert_eq!((waits.readings, waits.running, waits.futex), (1, 0, 1));
        assert_eq!((waits.futex_words, waits.futexes[0].threads), (1, 1));
    }

    #[test]
    fn words_without_room_are_counted_as_waits_still() {
        let mut tally = Tally::default();
        for word in 0..FUTEX_WAITS_MAX as u64 + 5 {
            tally.add(1, 1, at(word));
        }
        let waits = tally.finish().unwrap();
        assert_eq!(waits.futex, FUTEX_WAITS_MAX as u64 + 5);
        assert_eq!(
            (waits.futex_words, tally.left_out),
            (FUTEX_WAITS_MAX as u64, 5)
        );
    }
}

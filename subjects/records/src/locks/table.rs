//! The table of all locks: a word for each name, and stripes for locks that do not fit into their words.

use std::hash::BuildHasher;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use concurve_latch::{Class, Mutex, MutexGuard};
use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use crate::classes;
use crate::counted;
use crate::locks::lock::{Holder, Lock, LockOutcome, Mode, Owner, Waiter};
use crate::locks::name::{FILE_PARTS, LockName};
use crate::locks::stripe::{Key, Stripe};
use crate::locks::word::{Light, Line, OWNERS, State, TAG_BITS, WORDS, Word};
use crate::table::{Hashing, Table};

/// Which sessions have read a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// No session.
    Free,
    /// The asking session only.
    Own,
    /// Another session.
    Read,
}

impl Gap {
    fn of(holders: &[Holder], owner: Owner) -> Self {
        let readers = || holders.iter().filter(|it| it.has(Mode::Shared));
        if readers().any(|it| it.owner != owner) {
            Gap::Read
        } else if readers().any(|it| it.owner == owner) {
            Gap::Own
        } else {
            Gap::Free
        }
    }
}

/// The lock that each waiting owner waits for.
pub(super) type Waits = Table<Owner, LockName>;

/// How many stripes a lock table has: powers of two.
#[derive(Debug, Clone, Copy)]
pub struct Stripes {
    /// For the locks of a file.
    pub of_file: usize,
    /// So many times that, for different files.
    pub files: usize,
    /// Locks that nobody else asks for are light ones. Locks on parts of files have lines of their own, one
    /// for each part. A session takes a part that nobody else has, so it meets no other session there.
    pub is_fine: bool,
}

/// Lines of words for each stripe, but for those of a part of a file, which has one.
const LINES: usize = 8;

/// Where a name stands in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub stripe: usize,
    word: usize,
    /// Tells the names of a word apart.
    tag: u64,
    /// It is a part of a file, whose line is written by the one session that has it.
    is_part: bool,
}

impl Place {
    /// What stands for the name in the overflow of its stripe.
    pub fn key(&self) -> Key {
        self.key_of(self.tag)
    }

    /// What stands for another name of the same word.
    fn key_of(&self, tag: u64) -> Key {
        tag << (Key::BITS - TAG_BITS) | (self.word % (LINES * WORDS)) as Key
    }
}

/// Owners that a lock was granted to and that do not know it yet.
pub(super) type Granted = SmallVec<[Waiter; 1]>;

/// All locks.
pub struct LockTable {
    lines: Box<[Line]>,
    pub(super) stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    layout: Stripes,
    hasher: Hashing,
    /// Locked after stripes.
    pub(super) waits: CachePadded<Mutex<Waits>>,
}

impl LockTable {
    pub fn new(layout: Stripes) -> Self {
        let stripe = |class: Class| CachePadded::new(class.mutex(Stripe::default()));
        let class = classes::locks();
        let named = layout.of_file * layout.files;
        let parts = match layout.is_fine {
            true => layout.files * FILE_PARTS as usize,
            false => 0,
        };
        let of_names = (0..named).map(|_| stripe(class));
        let of_parts = (0..parts).map(|_| stripe(classes::file_locks()));
        Self {
            lines: (0..named * LINES + parts)
                .map(|_| Line::default())
                .collect(),
            stripes: of_names.chain(of_parts).collect(),
            layout,
            hasher: Hashing::default(),
            waits: CachePadded::new(class.mutex(Waits::default())),
        }
    }

    pub(super) fn place(&self, name: &LockName) -> Place {
        let Stripes { of_file, files, .. } = self.layout;
        let number = name.file_number() as usize;
        // Files that are made together are apart.
        let file = number & (files - 1);
        if let Some(part) = name.part().filter(|_| self.layout.is_fine) {
            let (named, part) = (of_file * files, file * FILE_PARTS as usize + part as usize);
            return Place {
                stripe: named + part,
                word: (named * LINES + part) * WORDS + number / files % WORDS,
                tag: number as u64,
                is_part: true,
            };
        }
        let hash = mixed(self.hasher.hash_one(name));
        let stripe = file * of_file + (hash as usize & (of_file - 1));
        let words = LINES * WORDS;
        Place {
            stripe,
            word: stripe * words + (hash >> 10) as usize % words,
            // The bits that are used for nothing else.
            tag: hash >> (u64::BITS - TAG_BITS),
            is_part: false,
        }
    }

    pub(super) fn stripe(&self, place: Place) -> MutexGuard<'_, Stripe> {
        self.stripes[place.stripe].lock()
    }

    fn word(&self, place: Place) -> &Word {
        &self.lines[place.word / WORDS].0[place.word % WORDS]
    }

    /// The word, to write to it.
    fn word_to_change(&self, place: Place) -> &Word {
        if !place.is_part {
            counted::write();
        }
        self.word(place)
    }

    /// Takes a lock if it is available now.
    pub fn try_lock(&self, owner: Owner, name: LockName, mode: Mode) -> LockOutcome {
        let place = self.place(&name);
        if let Some(outcome) = self.try_lock_light(place, owner, mode) {
            return outcome;
        }
        let mut stripe = self.stripe(place);
        self.change(place, &mut stripe, |lock| lock.try_lock(owner, mode))
    }

    /// Takes a light lock, if its word is free or has it already. `None` if the overflow must tell.
    pub(super) fn try_lock_light(
        &self,
        place: Place,
        owner: Owner,
        mode: Mode,
    ) -> Option<LockOutcome> {
        if !self.layout.is_fine || owner >= OWNERS {
            return None;
        }
        let modes = mode as u8;
        let light = Light {
            tag: place.tag,
            holder: Holder { owner, modes },
        };
        let word = self.word_to_change(place);
        loop {
            match word.take(light) {
                Ok(()) => return Some(LockOutcome::New),
                Err(State::Light(held)) if held.is_of(place.tag, owner) => {
                    if held.holder.has(mode) || word.replace(held, Some(held.with(mode))) {
                        return Some(LockOutcome::Held);
                    }
                }
                // It stays light until somebody queues for it.
                Err(State::Light(held)) if held.tag == place.tag && held.holder.excludes(mode) => {
                    return Some(LockOutcome::Busy);
                }
                Err(State::Free) => {}
                Err(State::Light(_) | State::Overflowed) => return None,
            }
        }
    }

    /// Whether another owner has this as a light lock.
    pub(super) fn is_light_of_another(&self, place: Place, owner: Owner) -> bool {
        match self.word(place).state() {
            State::Light(light) => light.tag == place.tag && light.holder.owner != owner,
            State::Free | State::Overflowed => false,
        }
    }

    /// A part of a file that nobody else has locked, the given one rather than others; the given one, if there
    /// is none. Of the parts of a file, any one serves a session, and a part that two of them have is no
    /// light lock.
    pub fn free_part(&self, owner: Owner, file: u32, part: u64) -> u64 {
        if !self.layout.is_fine {
            return part;
        }
        let is_free = |part: &u64| {
            let place = self.place(&LockName::file(file, *part));
            match self.word(place).state() {
                State::Free => true,
                State::Light(light) => light.is_of(place.tag, owner),
                State::Overflowed => false,
            }
        };
        let mut parts = (0..FILE_PARTS).map(|step| (part + step) % FILE_PARTS);
        parts.find(is_free).unwrap_or(part)
    }

    /// Changes a lock in the overflow of its stripe, which is latched. All locks of its word stand there
    /// from now on.
    pub(super) fn change<R>(
        &self,
        place: Place,
        stripe: &mut Stripe,
        change: impl FnOnce(&mut Lock) -> R,
    ) -> R {
        if !self.layout.is_fine {
            return stripe.change(place.key(), change).0;
        }
        let word = self.word_to_change(place);
        if let Some(light) = word.overflow() {
            stripe.add(place.key_of(light.tag), light.holder);
        }
        let (done, before, now) = stripe.change(place.key(), change);
        word.note(before, now);
        done
    }

    /// Whether no session holds a lock exclusively, by one look without a latch. If it says no, the
    /// lock may be free all the same.
    #[inline]
    pub fn is_not_exclusive(&self, name: &LockName) -> bool {
        let place = self.place(name);
        self.word(place).is_not_exclusive(place.tag)
    }

    /// Which sessions have read a gap in which an owner inserts, and may still rely on it.
    ///
    /// The owner has begun to change the leaf. Who reads the gap locks it, has a fence, and then looks
    /// whether the leaf has changed. So one of both sees what the other has done.
    pub fn gap(&self, owner: Owner, name: LockName) -> Gap {
        fence(SeqCst);
        let place = self.place(&name);
        let of_word = || match self.word(place).state() {
            State::Free => Some(Gap::Free),
            State::Light(light) if light.tag != place.tag => Some(Gap::Free),
            State::Light(light) => Some(Gap::of(&[light.holder], owner)),
            State::Overflowed => None,
        };
        if self.layout.is_fine
            && let Some(gap) = of_word()
        {
            return gap;
        }
        let stripe = self.stripe(place);
        // Its locks may have become light ones before it was latched.
        if self.layout.is_fine
            && let Some(gap) = of_word()
        {
            return gap;
        }
        let lock = stripe.get(place.key());
        lock.map_or(Gap::Free, |lock| Gap::of(&lock.holders, owner))
    }

    /// Releases a lock, and grants it to waiters.
    pub fn release(&self, owner: Owner, name: LockName) {
        let place = self.place(&name);
        if self.layout.is_fine && self.release_light(place, owner) {
            return;
        }
        let mut stripe = self.stripe(place);
        // While it is held, nobody takes it out of the overflow.
        if stripe.get(place.key()).is_none() {
            return;
        }
        let granted = self.change(place, &mut stripe, |lock| {
            lock.holders.retain(|it| it.owner != owner);
            serve(lock)
        });
        self.tell(granted);
    }

    /// Releases a light lock, if the owner holds it; false if the locks of its word are in the overflow.
    fn release_light(&self, place: Place, owner: Owner) -> bool {
        loop {
            match self.word(place).state() {
                State::Light(light) if light.is_of(place.tag, owner) => {
                    if self.word_to_change(place).replace(light, None) {
                        return true;
                    }
                }
                State::Free | State::Light(_) => return true,
                State::Overflowed => return false,
            }
        }
    }

    /// Tells owners that they have their lock. To be called while its stripe is latched, and after the lock
    /// was changed: its word must say that it is exclusive before the owner changes anything.
    pub(super) fn tell(&self, granted: Granted) {
        for Waiter { owner, cell, .. } in granted {
            self.waits.lock().remove(&owner);
            cell.grant();
        }
    }

    /// How many owners wait.
    pub fn waiting(&self) -> usize {
        self.waits.lock().len()
    }

    /// How many locks are held or waited for; exact while nobody takes or releases any.
    pub fn count(&self) -> usize {
        let words = self.lines.iter().flat_map(|it| &it.0);
        let light = words.filter(|it| matches!(it.state(), State::Light(_)));
        let overflow = self.stripes.iter().map(|it| it.lock().len());
        light.count() + overflow.sum::<usize>()
    }
}

/// Grants the lock to waiters, in the order of the queue; returns those who have it now.
pub(super) fn serve(lock: &mut Lock) -> Granted {
    let mut granted = Granted::new();
    while let Some(first) = lock.queue.front() {
        if !lock.allows(first.owner, first.mode) {
            break;
        }
        let waiter = lock.queue.pop_front().expect("it has a front");
        lock.grant(waiter.owner, waiter.mode);
        granted.push(waiter);
    }
    granted
}

/// All bits of a hash, of which those of a quick hash function are not equally good.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use concurve_latch::Versioned;
    use proptest::prelude::*;

    use super::*;
    use crate::locks::wait_cell::WaitCell;
    use crate::locks::waiting::Queued;
    use crate::slots::Position;

    const OWNERS: u32 = 3;

    fn table(is_fine: bool) -> LockTable {
        let (of_file, files) = (1, 1);
        LockTable::new(Stripes {
            of_file,
            files,
            is_fine,
        })
    }

    fn record(page: u32) -> LockName {
        LockName::record(1, Position { page, slot: 0 })
    }

    /// Names of records, three of which share a word, and of a part of a file.
    fn names() -> Vec<LockName> {
        let table = table(true);
        let word = |name: &LockName| table.place(name).word;
        let shared = (1..).map(record).filter(|it| word(it) == word(&record(0)));
        let other = (1..).map(record).find(|it| word(it) != word(&record(0)));
        let others = [record(0), other.unwrap(), LockName::file(1, 3)];
        shared.take(2).chain(others).collect()
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Take(Owner, usize, Mode),
        Release(Owner, usize),
        Gap(Owner, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let mode = prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)];
        let step = prop_oneof![
            3 => (0..OWNERS, 0..5_usize, mode).prop_map(|(owner, at, mode)| Step::Take(owner, at, mode)),
            2 => (0..OWNERS, 0..5_usize).prop_map(|(owner, at)| Step::Release(owner, at)),
            1 => (0..OWNERS, 0..5_usize).prop_map(|(owner, at)| Step::Gap(owner, at)),
        ];
        proptest::collection::vec(step, 0..60)
    }

    fn is_free(table: &LockTable) -> bool {
        let mut words = table.lines.iter().flat_map(|it| &it.0);
        table.count() == 0 && words.all(|it| matches!(it.state(), State::Free))
    }

    proptest! {
        /// Locks that are all in the hash table are the model.
        #[test]
        fn light_locks_are_as_the_others(steps in steps()) {
            let (light, plain, names) = (table(true), table(false), names());
            let is_exclusive = |name: &LockName| {
                let stripe = plain.stripe(plain.place(name));
                stripe.get(plain.place(name).key()).is_some_and(Lock::is_exclusive)
            };
            for step in steps {
                match step {
                    Step::Take(owner, at, mode) => prop_assert_eq!(
                        light.try_lock(owner, names[at], mode),
                        plain.try_lock(owner, names[at], mode)
                    ),
                    Step::Release(owner, at) => {
                        light.release(owner, names[at]);
                        plain.release(owner, names[at]);
                    }
                    Step::Gap(owner, at) => prop_assert_eq!(
                        light.gap(owner, names[at]),
                        plain.gap(owner, names[at])
                    ),
                }
                prop_assert_eq!(light.count(), plain.count());
                for name in &names {
                    prop_assert!(!light.is_not_exclusive(name) || !is_exclusive(name));
                }
            }
            for name in &names {
                (0..OWNERS).for_each(|owner| light.release(owner, *name));
            }
            prop_assert!(is_free(&light));
        }
    }

    #[test]
    fn a_lock_is_light_until_somebody_shares_it_or_queues_for_it() {
        let (table, name) = (table(true), record(1));
        let is_light = || matches!(table.word(table.place(&name)).state(), State::Light(_));
        let cell = Arc::new(WaitCell::new(None));
        assert_eq!(table.try_lock(0, name, Mode::Shared), LockOutcome::New);
        assert_eq!(table.try_lock(1, name, Mode::Exclusive), LockOutcome::Busy);
        let looked = table.try_for_a_while(1, name, Mode::Exclusive, 3);
        assert_eq!(looked, LockOutcome::Busy);
        assert!(is_light());
        assert_eq!(table.try_lock(1, name, Mode::Shared), LockOutcome::New);
        assert!(!is_light());
        table.release(1, name);
        // Its last owner has it in the overflow, and the next one has not.
        assert!(!is_light());
        table.release(0, name);
        let looked = table.try_for_a_while(1, name, Mode::Exclusive, 3);
        assert_eq!(looked, LockOutcome::New);
        assert!(is_light());
        let queued = table.queue_up(0, name, Mode::Shared, &cell);
        assert_eq!(queued, Queued::Waits(LockOutcome::New));
        assert!(!is_light() && !cell.is_granted());
        // Nobody overtakes who waits.
        assert_eq!(table.try_lock(2, name, Mode::Shared), LockOutcome::Busy);
        table.release(1, name);
        assert!(cell.is_granted() && table.is_not_exclusive(&name));
        table.release(0, name);
        assert!(is_free(&table));
    }

    #[test]
    fn a_session_has_a_part_of_a_file_for_itself_while_there_is_one() {
        let table = table(true);
        let take = |owner: Owner, part: u64| {
            let part = table.free_part(owner, 1, part);
            table.try_lock(owner, LockName::file(1, part), Mode::Shared);
            part
        };
        // As many sessions as parts, whose numbers differ by a multiple of that.
        let parts = FILE_PARTS as Owner;
        let taken: Vec<u64> = (0..parts).map(|owner| take(owner * parts, 3)).collect();
        assert_eq!(taken[..2], [3, 4]);
        let light = |part: &u64| {
            let place = table.place(&LockName::file(1, *part));
            matches!(table.word(place).state(), State::Light(_))
        };
        assert!((0..FILE_PARTS).all(|it| light(&it)));
        // It has its part already; and one that finds none shares its own.
        assert_eq!(take(0, 3), 3);
        assert!((0..FILE_PARTS).all(|it| light(&it)));
        assert_eq!(take(1, 7), 7);
        assert!(!light(&7));
        // An exclusive transaction has to have all of them.
        let exclusive = |part| table.try_lock(2, LockName::file(1, part), Mode::Exclusive);
        assert!((0..FILE_PARTS).all(|it| exclusive(it) == LockOutcome::Busy));
    }

    #[test]
    fn an_owner_without_light_locks_has_the_others() {
        let table = table(true);
        let owner = crate::locks::word::OWNERS;
        assert_eq!(
            table.try_lock(owner, record(1), Mode::Exclusive),
            LockOutcome::New
        );
        assert!(!table.is_not_exclusive(&record(1)));
        assert_eq!(
            table.try_lock(0, record(1), Mode::Shared),
            LockOutcome::Busy
        );
        table.release(owner, record(1));
        assert!(is_free(&table));
    }

    #[test]
    fn names_of_a_record_file_are_told_apart() {
        let table = LockTable::new(Stripes {
            of_file: 16,
            files: 16,
            is_fine: true,
        });
        let records = (0..3_000).flat_map(|page| (0..80).map(move |slot| Position { page, slot }));
        let names = records.map(|it| LockName::record(7, it));
        let parts =
            (0..40).flat_map(|file| (0..FILE_PARTS).map(move |it| LockName::file(file, it)));
        let mut seen = std::collections::HashSet::new();
        for name in names.chain(parts) {
            let place = table.place(&name);
            assert!(seen.insert((place.stripe, place.key())), "{name:?}");
            assert!(place.word < table.lines.len() * WORDS);
        }
    }

    /// Marsaglia, Xorshift RNGs (2003).
    struct Random(u64);

    impl Random {
        fn below(&mut self, below: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 33) as usize % below
        }
    }

    /// One of several threads that take locks of the same names, and look whether others hold them.
    struct Worker<'a> {
        table: &'a LockTable,
        names: &'a [LockName],
        /// For each name, how many hold it shared, and 1000 for each that holds it exclusively.
        holders: &'a [AtomicU32],
        cell: Arc<WaitCell>,
        owner: Owner,
        random: Random,
    }

    impl Worker<'_> {
        fn work(mut self, rounds: u32) {
            for _ in 0..rounds {
                let at = self.random.below(self.names.len());
                match self.random.below(2) {
                    0 => self.hold(at, Mode::Shared),
                    _ => self.hold(at, Mode::Exclusive),
                }
            }
        }

        fn hold(&mut self, at: usize, mode: Mode) {
            let (owner, name) = (self.owner, self.names[at]);
            if self.table.try_lock(owner, name, mode) == LockOutcome::Busy {
                if self.random.below(8) > 0 {
                    return;
                }
                self.table.wait(owner, name, mode, &self.cell).unwrap();
            }
            let more = match mode {
                Mode::Shared => 1,
                Mode::Exclusive => 1000,
            };
            let others = self.holders[at].fetch_add(more, Relaxed);
            match mode {
                Mode::Shared => assert!(others < 1000, "{others}"),
                Mode::Exclusive => {
                    assert_eq!(others, 0);
                    assert!(!self.table.is_not_exclusive(&name));
                }
            }
            if self.random.below(16) == 0 {
                std::thread::yield_now();
            }
            self.holders[at].fetch_sub(more, Relaxed);
            self.table.release(owner, name);
        }
    }

    #[test]
    fn locks_exclude_each_other_while_words_overflow_and_become_free() {
        let (table, names) = (table(true), names());
        let holders: Vec<AtomicU32> = names.iter().map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for owner in 0..4 {
                let worker = Worker {
                    table: &table,
                    names: &names,
                    holders: &holders,
                    cell: Arc::new(WaitCell::new(None)),
                    owner,
                    random: Random(u64::from(owner + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                };
                scope.spawn(move || worker.work(5_000));
            }
        });
        assert_eq!(table.waiting(), 0);
        assert!(is_free(&table));
    }

    /// Two threads do so at the same time, again and again.
    #[test]
    fn who_reads_a_gap_or_who_inserts_there_sees_the_other() {
        const ROUNDS: usize = 1_500;
        let table = table(true);
        let leaves: Vec<Versioned<64, 8>> = (0..ROUNDS)
            .map(|_| {
                let leaf = Versioned::new(classes::page());
                leaf.write().validate();
                leaf
            })
            .collect();
        let arrived = AtomicU32::new(0);
        // Waits until the other thread is in the same round.
        let meet = |round: usize| {
            arrived.fetch_add(1, SeqCst);
            let mut spins = 0_u32;
            while (arrived.load(SeqCst) as usize) < 2 * (round + 1) {
                spins += 1;
                if spins.is_multiple_of(1024) {
                    std::thread::yield_now();
                }
            }
        };
        let delay = |times: usize| (0..times).for_each(|_| std::hint::spin_loop());
        let name = |round: usize| record(round as u32);
        let (found, read) = std::thread::scope(|scope| {
            let inserts = scope.spawn(|| {
                let insert = |round: usize| {
                    let mut leaf = leaves[round].write();
                    // So that the CPU need not wait for the lock's word, but for the version.
                    table.gap(0, name(round));
                    meet(2 * round);
                    meet(2 * round + 1);
                    delay(round % 16);
                    leaf.begin_change();
                    table.gap(0, name(round))
                };
                (0..ROUNDS).map(insert).collect::<Vec<Gap>>()
            });
            let read = |round: usize| {
                meet(2 * round);
                // Nobody looks at it any more. So the next lock is a light one again.
                if let Some(last) = round.checked_sub(1) {
                    table.release(1, name(last));
                }
                let leaf = leaves[round].snapshot().unwrap();
                meet(2 * round + 1);
                delay(round / 16 % 16);
                let taken = table.try_lock(1, name(round), Mode::Shared);
                fence(SeqCst);
                (taken, leaf.is_current())
            };
            let read: Vec<(LockOutcome, bool)> = (0..ROUNDS).map(read).collect();
            (inserts.join().unwrap(), read)
        });
        assert!(read.iter().all(|it| it.0 == LockOutcome::New));
        let missed = found.iter().zip(&read);
        let missed = missed.filter(|(gap, read)| **gap == Gap::Free && read.1);
        assert_eq!(missed.count(), 0);
    }
}

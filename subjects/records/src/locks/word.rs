//! The words of the lock table: most locks are nowhere else.
//!
//! Each name of a lock has a word, and shares it with other names. While one owner holds a lock, nobody
//! waits for it, and no other lock of the same word is held, the word is that lock: a *light* one. One
//! atomic step takes it, and one gives it back. Otherwise the locks of the word stand in a hash table, its
//! *overflow*, and the word counts them. It changes then only under the latch of its stripe.
//!
//! Why a reader need not write anything: who changes a record holds its lock (or that of the whole file)
//! exclusively from before the first change until the transaction has committed and its log is as durable
//! as promised, or until all is undone. A reader that has read a page, finds that the words say so of
//! nobody, and then finds that the page has not changed since it began to read, has read what is
//! committed.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::locks::lock::{Holder, Mode, Owner};

/// Words of one cache line.
pub(super) const WORDS: usize = 8;

/// Words that CPUs pass on together.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Line(pub [Word; WORDS]);

const _: () = assert!(size_of::<Line>() == 64);

/// 0, or a light lock (its modes in the lowest two bits, then its owner and its tag), or counts (0 in the
/// lowest two bits, then [`OVERFLOWED`], the number of locks and how many of them are exclusive).
///
/// Writes are counted by the table: some words have one session only.
#[derive(Debug, Default)]
pub(super) struct Word(AtomicU64);

const FREE: u64 = 0;
const MODES: u64 = 0b11;
const OVERFLOWED: u64 = 1 << 2;

const OWNER_SHIFT: u32 = 2;
const TAG_SHIFT: u32 = 20;
/// Owners with a greater number have no light locks.
pub(super) const OWNERS: Owner = 1 << (TAG_SHIFT - OWNER_SHIFT);
/// The length of a tag.
pub(super) const TAG_BITS: u32 = u64::BITS - TAG_SHIFT;

const COUNT_BITS: u32 = 30;
const LOCK: u64 = 1 << 3;
const EXCLUSIVE: u64 = LOCK << COUNT_BITS;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// A lock that one owner holds and nobody waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Light {
    /// Tells the names of a word apart.
    pub tag: u64,
    pub holder: Holder,
}

/// What a word says.
#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    Free,
    Light(Light),
    /// Its locks are in the hash table.
    Overflowed,
}

/// Whether a lock is in the hash table, and held exclusively.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Presence {
    pub is_there: bool,
    pub is_exclusive: bool,
}

impl Light {
    fn encode(self) -> u64 {
        let Holder { owner, modes } = self.holder;
        self.tag << TAG_SHIFT | u64::from(owner) << OWNER_SHIFT | u64::from(modes)
    }

    fn decode(value: u64) -> Self {
        Self {
            tag: value >> TAG_SHIFT,
            holder: Holder {
                owner: (value >> OWNER_SHIFT) as Owner % OWNERS,
                modes: (value & MODES) as u8,
            },
        }
    }

    /// Whether it is the lock with a tag, held by an owner.
    pub fn is_of(&self, tag: u64, owner: Owner) -> bool {
        self.tag == tag && self.holder.owner == owner
    }

    /// The same lock, held in one more mode.
    pub fn with(mut self, mode: Mode) -> Self {
        self.holder.modes |= mode as u8;
        self
    }
}

impl State {
    fn of(value: u64) -> Self {
        match value {
            FREE => Self::Free,
            _ if value & MODES != 0 => Self::Light(Light::decode(value)),
            _ => Self::Overflowed,
        }
    }
}

impl Presence {
    fn counts(self) -> u64 {
        u64::from(self.is_there) * LOCK + u64::from(self.is_exclusive) * EXCLUSIVE
    }
}

impl Word {
    #[inline]
    pub fn state(&self) -> State {
        State::of(self.0.load(Acquire))
    }

    /// Whether the lock with a tag is not held exclusively.
    #[inline]
    pub fn is_not_exclusive(&self, tag: u64) -> bool {
        let value = self.0.load(Acquire);
        match State::of(value) {
            State::Free => true,
            State::Light(light) => light.tag != tag || !light.holder.has(Mode::Exclusive),
            State::Overflowed => value < EXCLUSIVE,
        }
    }

    /// Puts a light lock into a free word.
    ///
    /// # Errors
    /// What the word says, if it is not free.
    #[inline]
    pub fn take(&self, light: Light) -> Result<(), State> {
        // Without a look before, which would fetch the line twice.
        let taken = self
            .0
            .compare_exchange(FREE, light.encode(), AcqRel, Acquire);
        taken.map(|_| ()).map_err(State::of)
    }

    /// Replaces a light lock, by nothing or by another one, unless the word has changed.
    #[inline]
    pub fn replace(&self, old: Light, new: Option<Light>) -> bool {
        let new = new.map_or(FREE, Light::encode);
        self.0
            .compare_exchange(old.encode(), new, AcqRel, Relaxed)
            .is_ok()
    }

    /// From now on, the word counts locks of the hash table, and returns the light lock that must be put
    /// there. To be called while the stripe is latched.
    pub fn overflow(&self) -> Option<Light> {
        let mut value = self.0.load(Acquire);
        loop {
            let (light, held) = match State::of(value) {
                State::Overflowed => return None,
                State::Free => (None, Presence::default()),
                State::Light(light) => (
                    Some(light),
                    Presence {
                        is_there: true,
                        is_exclusive: light.holder.has(Mode::Exclusive),
                    },
                ),
            };
            let counts = OVERFLOWED | held.counts();
            match self.0.compare_exchange(value, counts, AcqRel, Acquire) {
                Ok(_) => return light,
                Err(now) => value = now,
            }
        }
    }

    /// Counts a change of one lock in the hash table. To be called while the stripe is latched and the word
    /// has overflowed; if no lock is left, it is free.
    pub fn note(&self, before: Presence, now: Presence) {
        let old = self.0.load(Relaxed);
        debug_assert!(old & (MODES | OVERFLOWED) == OVERFLOWED);
        assert!(
            (old / LOCK) & COUNT_MAX < COUNT_MAX,
            "the locks of a word fill the memory first"
        );
        let counts = old - before.counts() + now.counts();
        let next = if counts == OVERFLOWED { FREE } else { counts };
        if next != old {
            self.0.store(next, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn light(tag: u64, owner: Owner, mode: Mode) -> Light {
        let holder = Holder { owner, modes: 0 };
        Light { tag, holder }.with(mode)
    }

    fn of_light(word: &Word) -> Option<(u64, Owner, u8)> {
        match word.state() {
            State::Light(it) => Some((it.tag, it.holder.owner, it.holder.modes)),
            _ => None,
        }
    }

    #[test]
    fn a_word_keeps_the_greatest_owner_and_tag() {
        let (tag, owner) = ((1 << TAG_BITS) - 1, OWNERS - 1);
        for (tag, owner) in [(0, 0), (tag, owner), (tag, 0), (0, owner)] {
            let word = Word::default();
            let shared = light(tag, owner, Mode::Shared);
            word.take(shared).unwrap();
            assert_eq!(of_light(&word), Some((tag, owner, 1)));
            assert!(word.is_not_exclusive(tag));
            assert!(word.replace(shared, Some(shared.with(Mode::Exclusive))));
            assert_eq!(of_light(&word), Some((tag, owner, 3)));
            assert!(!word.is_not_exclusive(tag) && word.is_not_exclusive(tag ^ 1));
            // What has changed since is not replaced.
            assert!(!word.replace(shared, None));
            assert!(word.take(shared).is_err());
            assert!(word.replace(shared.with(Mode::Exclusive), None));
            assert!(matches!(word.state(), State::Free));
        }
    }

    #[test]
    fn an_overflowed_word_counts_until_no_lock_is_left() {
        let shared = Presence {
            is_there: true,
            is_exclusive: false,
        };
        let exclusive = Presence {
            is_there: true,
            is_exclusive: true,
        };
        let none = Presence::default();
        let word = Word::default();
        word.take(light(7, 3, Mode::Exclusive)).unwrap();
        assert!(word.overflow().is_some_and(|it| it.is_of(7, 3)));
        assert!(word.overflow().is_none());
        // The count does not say which lock is exclusive.
        assert!(!word.is_not_exclusive(7) && !word.is_not_exclusive(8));
        word.note(none, shared);
        word.note(exclusive, none);
        assert!(word.is_not_exclusive(7) && word.is_not_exclusive(8));
        assert!(word.take(light(7, 3, Mode::Shared)).is_err());
        word.note(shared, exclusive);
        assert!(!word.is_not_exclusive(8));
        word.note(exclusive, none);
        assert!(matches!(word.state(), State::Free));
        // A word that overflows for nothing is free again, too.
        assert!(word.overflow().is_none());
        assert!(matches!(word.state(), State::Overflowed));
        word.note(none, none);
        assert!(matches!(word.state(), State::Free));
    }
}

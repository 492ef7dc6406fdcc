//! Names under which latches are counted, and how long who waits for one looks before he sleeps.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::board::{Board, leave_if_failed};
use crate::mutex::{self, Mutex};
use crate::rwlock::{self, RwLock};

/// Classes that a board has room for.
pub const CLASSES: usize = 32;

/// Longest name, in bytes.
const NAME_BYTES: usize = 40;

/// How often who finds a latch taken looks again before he sleeps, unless told otherwise. As in the
/// standard library.
const SPINS: u32 = 100;

/// Latches that are counted together, by a name: all pages of a cache, say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class(u16);

/// What who finds a latch taken does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spin {
    /// Looks so many times, then sleeps.
    Times(u32),
    /// Looks until he has it: a spinlock. For where holders are seldom preempted; readers who keep
    /// coming can keep a writer out for ever.
    Only,
}

impl Class {
    /// The class of latches that were given none: `other`.
    pub const OTHER: Class = Class(0);

    /// The class of this name, in all processes that share the board.
    ///
    /// # Panics
    /// If the name is longer than 40 bytes, or there are more than 31 of them.
    pub fn named(name: &str) -> Self {
        assert!(
            name.len() <= NAME_BYTES,
            "the name of a class of latches is too long: {name}"
        );
        let at = Board::get().names.place_of(name);
        Self(u16::try_from(at).expect("few classes"))
    }

    /// The same class, whose latches are waited for in this way from now on.
    #[must_use]
    pub fn spinning(self, spin: Spin) -> Self {
        let word = match spin {
            // 0 means that nothing was said.
            Spin::Times(times) => times.min(u32::MAX - 2) + 1,
            Spin::Only => u32::MAX,
        };
        Board::get().names.0[usize::from(self.0)]
            .spin
            .store(word, Relaxed);
        self
    }

    /// A mutex of this class.
    pub const fn mutex<T>(self, value: T) -> Mutex<T> {
        Mutex::from_raw(mutex::RawMutex::of(self), value)
    }

    /// A lock for many readers or one writer, of this class.
    pub const fn rwlock<T>(self, value: T) -> RwLock<T> {
        RwLock::from_raw(rwlock::RawRwLock::of(self), value)
    }

    #[inline]
    pub(crate) fn place(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn spin(self) -> Spin {
        let names = &Board::get().names.0;
        let own = names[self.place()].spin.load(Relaxed);
        let word = if own == 0 {
            names[0].spin.load(Relaxed)
        } else {
            own
        };
        match word {
            0 => Spin::Times(SPINS),
            u32::MAX => Spin::Only,
            times => Spin::Times(times - 1),
        }
    }
}

/// How latches are waited for whose class says nothing else.
pub fn spin_by_default(spin: Spin) {
    let _ = Class::OTHER.spinning(spin);
}

/// The names of a board. The first is that of [`Class::OTHER`], and is empty.
#[repr(C)]
pub struct Names([Name; CLASSES]);

#[repr(C)]
struct Name {
    /// See the constants.
    state: AtomicU32,
    /// 0: as `OTHER`; else one more than a number of times, or `u32::MAX`.
    spin: AtomicU32,
    length: AtomicU32,
    words: [AtomicU32; NAME_BYTES / 4],
}

const EMPTY: u32 = 0;
const BEING_WRITTEN: u32 = 1;
const WRITTEN: u32 = 2;

impl Names {
    fn place_of(&self, name: &str) -> usize {
        if name == "other" {
            return 0;
        }
        for (at, place) in self.0.iter().enumerate().skip(1) {
            let claimed = place
                .state
                .compare_exchange(EMPTY, BEING_WRITTEN, AcqRel, Acquire);
            if claimed.is_ok() {
                place.write(name);
                return at;
            }
            // Two processes may give the same name at the same time.
            while place.state.load(Acquire) == BEING_WRITTEN {
                leave_if_failed();
                std::thread::yield_now();
            }
            if place.read() == name {
                return at;
            }
        }
        panic!(
            "no room for the class of latches {name}: there are {} already",
            CLASSES - 1
        );
    }

    /// Places and names of all classes.
    pub fn all(&self) -> impl Iterator<Item = (usize, String)> {
        let written = |place: &Name| place.state.load(Acquire) == WRITTEN;
        let named = self.0.iter().enumerate().skip(1);
        let named = named.filter(move |(_, place)| written(place));
        std::iter::once((0, "other".to_owned())).chain(named.map(|(at, place)| (at, place.read())))
    }
}

impl Name {
    fn write(&self, name: &str) {
        for (word, bytes) in self.words.iter().zip(name.as_bytes().chunks(4)) {
            let mut four = [0; 4];
            four[..bytes.len()].copy_from_slice(bytes);
            word.store(u32::from_ne_bytes(four), Relaxed);
        }
        self.length.store(name.len() as u32, Relaxed);
        self.state.store(WRITTEN, Release);
    }

    fn read(&self) -> String {
        let words = self.words.iter();
        let mut bytes: Vec<u8> = words
            .flat_map(|it| it.load(Relaxed).to_ne_bytes())
            .collect();
        bytes.truncate(self.length.load(Relaxed) as usize);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

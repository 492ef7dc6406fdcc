//! Classes of latches: their names, and how long a thread spins before it sleeps.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// How many classes a board can hold.
pub const CLASSES: usize = 32;

/// Longest name, in bytes.
const NAME_BYTES: usize = 40;

/// Default number of spins before a thread sleeps. As in the standard library.
const SPINS: u32 = 100;

/// Latches that are counted together under one name, for example all pages of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class(u16);

/// What a thread does that finds a latch taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spin {
    /// Checks the latch so many times, then sleeps.
    Times(u32),
    /// Spins until it has the latch: a spinlock. Suitable where holders are seldom preempted; a
    /// steady stream of readers can starve a writer.
    Only,
}

impl Class {
    /// The class of latches that were given none: `other`.
    pub const OTHER: Class = Class(0);

    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The names of a board. The first is that of [`Class::OTHER`], and is empty. All zeros is a table
/// without names.
#[repr(C)]
pub struct Names([Name; CLASSES]);

#[repr(C)]
struct Name {
    /// See the constants.
    state: AtomicU32,
    /// 0: as `OTHER`; otherwise the number of spins plus one, or `u32::MAX` for a spinlock.
    spin: AtomicU32,
    length: AtomicU32,
    words: [AtomicU32; NAME_BYTES / 4],
}

const EMPTY: u32 = 0;
const BEING_WRITTEN: u32 = 1;
const WRITTEN: u32 = 2;

impl Names {
    /// The class of this name; a new one if there is none yet. `check` is called while another
    /// process writes a name.
    pub fn class(&self, name: &str, check: impl Fn()) -> Class {
        assert!(
            name.len() <= NAME_BYTES,
            "the name of a class of latches is too long: {name}"
        );
        if name == "other" {
            return Class::OTHER;
        }
        for (index, entry) in self.0.iter().enumerate().skip(1) {
            let class = Class(index as u16);
            let claimed = entry
                .state
                .compare_exchange(EMPTY, BEING_WRITTEN, AcqRel, Acquire);
            if claimed.is_ok() {
                entry.write(name);
                return class;
            }
            // Two processes may register the same name at the same time.
            while entry.state.load(Acquire) == BEING_WRITTEN {
                check();
                std::thread::yield_now();
            }
            if entry.read() == name {
                return class;
            }
        }
        panic!(
            "cannot add the class of latches {name}: there are {} already",
            CLASSES - 1
        );
    }

    /// All classes and their names.
    pub fn all(&self) -> impl Iterator<Item = (Class, String)> {
        let written = |entry: &Name| entry.state.load(Acquire) == WRITTEN;
        let named = self.0.iter().enumerate().skip(1);
        let named = named.filter(move |(_, entry)| written(entry));
        let named = named.map(|(index, entry)| (Class(index as u16), entry.read()));
        std::iter::once((Class::OTHER, "other".to_owned())).chain(named)
    }

    /// How latches of a class are waited for.
    pub fn spin(&self, class: Class) -> Spin {
        let own = self.0[class.index()].spin.load(Relaxed);
        let word = if own == 0 {
            self.0[0].spin.load(Relaxed)
        } else {
            own
        };
        match word {
            0 => Spin::Times(SPINS),
            u32::MAX => Spin::Only,
            times => Spin::Times(times - 1),
        }
    }

    /// Sets how latches of a class are waited for.
    pub fn set_spin(&self, class: Class, spin: Spin) {
        let word = match spin {
            // 0 means the default.
            Spin::Times(times) => times.min(u32::MAX - 2) + 1,
            Spin::Only => u32::MAX,
        };
        self.0[class.index()].spin.store(word, Relaxed);
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

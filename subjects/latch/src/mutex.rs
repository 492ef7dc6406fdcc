//! Mutual exclusion.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use lock_api::GuardNoSend;

use crate::class::{Class, Spin};
use crate::seat::{Seat, Tally, add};
use crate::thread::mine;
use crate::waiting;

/// A value that one thread may use at a time. Without poisoning: see [`RawMutex`] about panics.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Holds a [`Mutex`] until it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// Eight bytes: the holder and the class.
///
/// The word is 0, or the mark of the holder's seat and flags. If a thread panics while it holds the
/// latch, the latch stays taken and is [`BROKEN`].
#[derive(Debug)]
pub struct RawMutex {
    word: AtomicU32,
    class: Class,
}

const FREE: u32 = 0;
/// A thread may be asleep.
const AWAITED: u32 = 1 << 31;
const BROKEN: u32 = 1 << 30;
/// It was taken while its thread was already panicking: by a destructor, or while the message was
/// formatted.
const IN_PANIC: u32 = 1 << 29;
const HOLDER: u32 = IN_PANIC - 1;

/// The word of a latch that this thread takes.
#[inline]
fn mark_of(seat: &Seat) -> u32 {
    if std::thread::panicking() {
        return mark_in_panic(seat);
    }
    seat.mark()
}

#[cold]
fn mark_in_panic(seat: &Seat) -> u32 {
    seat.mark() | IN_PANIC
}

// SAFETY: the word goes from FREE to taken for one thread at a time, and back only by `unlock`.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self::of(Class::OTHER);

    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        let seat = mine();
        let tally = seat.tally(self.class);
        tally.begin();
        // Releases, too: other threads must see the count no later than the taken latch.
        let taken = self
            .word
            .compare_exchange(FREE, mark_of(seat), AcqRel, Relaxed);
        if taken.is_err() {
            self.wait(seat, tally);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let seat = mine();
        let tally = seat.tally(self.class);
        tally.begin();
        let taken = self
            .word
            .compare_exchange(FREE, mark_of(seat), AcqRel, Relaxed);
        if let Err(word) = taken {
            tally.take_back();
            assert!(word & BROKEN == 0, "{}", waiting::BROKEN);
        }
        taken.is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        if std::thread::panicking() && self.word.load(Relaxed) & IN_PANIC == 0 {
            return self.mark_broken();
        }
        // Acquires, too: other threads must not see the new count before the free latch.
        if self.word.swap(FREE, AcqRel) & AWAITED != 0 {
            waiting::wake_one(&self.word);
        }
        mine().tally(self.class).end();
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
    }
}

impl Class {
    /// A mutex of this class.
    pub const fn mutex<T>(self, value: T) -> Mutex<T> {
        Mutex::from_raw(RawMutex::of(self), value)
    }
}

impl RawMutex {
    pub const fn of(class: Class) -> Self {
        Self {
            word: AtomicU32::new(FREE),
            class,
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, seat: &Seat, tally: &Tally) {
        add(&tally.waits, 1);
        let me = mark_of(seat);
        let is_over = |word: u32| word == FREE || word & BROKEN != 0;
        let others_sleep = |word: u32| word & AWAITED != 0;
        let mut word = waiting::spin(&self.word, self.class, tally, is_over, others_sleep);
        // A thread that has slept cannot know whether others still sleep.
        let mut taken = me;
        loop {
            if word & HOLDER == me & HOLDER || word & BROKEN != 0 {
                tally.take_back();
                assert!(word & BROKEN == 0, "{}", waiting::BROKEN);
                panic!("a thread wants a latch that it holds already");
            }
            if word == FREE {
                match self.word.compare_exchange(FREE, taken, AcqRel, Relaxed) {
                    Ok(_) => return,
                    Err(now) => word = now,
                }
                continue;
            }
            if waiting::spin_of(self.class) == Spin::Only {
                word = waiting::spin(&self.word, self.class, tally, is_over, others_sleep);
                continue;
            }
            if word & AWAITED == 0 {
                let announced = self
                    .word
                    .compare_exchange(word, word | AWAITED, Relaxed, Relaxed);
                if let Err(now) = announced {
                    word = now;
                    continue;
                }
            }
            add(&tally.sleeps, 1);
            waiting::sleep_on(&self.word, word | AWAITED);
            taken = me | AWAITED;
            word = self.word.load(Acquire);
        }
    }

    /// What it protects may be half changed: no thread may take it any more.
    #[cold]
    fn mark_broken(&self) {
        self.word.fetch_or(BROKEN, Release);
        waiting::wake_all(&self.word);
    }
}

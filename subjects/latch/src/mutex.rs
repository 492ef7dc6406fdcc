//! One at a time.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use lock_api::GuardNoSend;

use crate::class::{Class, Spin};
use crate::seat::{Seat, Tally, add, mine};
use crate::{futex, waiting};

/// A value for one at a time. It has no poison: see [`RawMutex`] about panics.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Holds a [`Mutex`] until it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// Eight bytes: who holds it, and what it is counted as.
///
/// The word is 0, or the mark of the holder's seat with what there is to say about it. If a thread
/// panics while it holds it, it stays taken and is [`BROKEN`].
#[derive(Debug)]
pub struct RawMutex {
    word: AtomicU32,
    class: Class,
}

const FREE: u32 = 0;
/// Somebody may be asleep.
const AWAITED: u32 = 1 << 31;
const BROKEN: u32 = 1 << 30;
/// It was taken by a destructor, or by what formats the message, while its thread panicked already.
const IN_PANIC: u32 = 1 << 29;
const HOLDER: u32 = IN_PANIC - 1;

/// What stands in the word of a latch that this thread takes.
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
        // Releases too: that it is held must be seen no later than that it is taken.
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
            return self.break_it();
        }
        // Acquires too: that it is no longer held must not be seen before that it is free.
        if self.word.swap(FREE, AcqRel) & AWAITED != 0 {
            futex::wake_one(&self.word);
        }
        mine().tally(self.class).end();
    }

    fn is_locked(&self) -> bool {
        self.word.load(Relaxed) != FREE
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
        let mut word = waiting::look(&self.word, self.class, tally, is_over, others_sleep);
        // Who has slept cannot know whether others still do.
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
            if self.class.spin() == Spin::Only {
                word = waiting::look(&self.word, self.class, tally, is_over, others_sleep);
                continue;
            }
            if word & AWAITED == 0 {
                let told = self
                    .word
                    .compare_exchange(word, word | AWAITED, Relaxed, Relaxed);
                if let Err(now) = told {
                    word = now;
                    continue;
                }
            }
            add(&tally.sleeps, 1);
            futex::sleep_on(&self.word, word | AWAITED);
            taken = me | AWAITED;
            word = self.word.load(Acquire);
        }
    }

    /// What it protects may be half changed: nobody may have it any more.
    #[cold]
    fn break_it(&self) {
        self.word.fetch_or(BROKEN, Release);
        futex::wake_all(&self.word);
    }
}

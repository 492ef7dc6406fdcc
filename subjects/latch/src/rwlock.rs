//! Shared access for readers, exclusive access for a writer.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use lock_api::GuardNoSend;

use crate::class::{Class, Spin};
use crate::seat::{Seat, Tally, add};
use crate::thread::mine;
use crate::waiting;

/// A value that many threads may read, or one may change.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Holds a [`RwLock`] for reading until it is dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Holds a [`RwLock`] exclusively until it is dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// Sixteen bytes. The algorithm is that of the standard library (`sys/sync/rwlock/futex.rs`):
/// readers sleep on `state` and writers on `writer_wakes`, and a waiting writer keeps new readers
/// out.
///
/// If a thread panics while it holds the latch exclusively, the latch stays taken, and `writer` is
/// [`BROKEN`].
#[derive(Debug)]
pub struct RawRwLock {
    /// The number of readers, or `WRITTEN`; and flags: readers, or writers, may be asleep.
    state: AtomicU32,
    /// Changes whenever a writer is woken.
    writer_wakes: AtomicU32,
    /// The mark of the writer's seat, or `IN_PANIC`.
    writer: AtomicU32,
    class: Class,
}

const READER: u32 = 1;
const WRITTEN: u32 = (1 << 30) - 1;
const READERS_MAX: u32 = WRITTEN - 1;
const READERS_WAIT: u32 = 1 << 30;
const WRITERS_WAIT: u32 = 1 << 31;
const BROKEN: u32 = u32::MAX;
/// Taken by a thread that was already panicking.
const IN_PANIC: u32 = BROKEN - 1;

fn mark_of(seat: &Seat) -> u32 {
    if std::thread::panicking() {
        IN_PANIC
    } else {
        seat.mark()
    }
}

fn holders(state: u32) -> u32 {
    state & WRITTEN
}

fn is_free(state: u32) -> bool {
    holders(state) == 0
}

/// Not if a thread waits: writers would starve.
fn is_open_to_readers(state: u32) -> bool {
    holders(state) < READERS_MAX && state & (READERS_WAIT | WRITERS_WAIT) == 0
}

// SAFETY: `state` counts readers, or is WRITTEN for one thread.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::of(Class::OTHER);

    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        let tally = mine().tally(self.class);
        tally.begin();
        if !self.try_read() {
            self.wait_to_read(tally);
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        let tally = mine().tally(self.class);
        tally.begin();
        loop {
            let state = self.state.load(Relaxed);
            if !is_open_to_readers(state) {
                tally.take_back();
                return false;
            }
            if self.try_read() {
                return true;
            }
        }
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        let state = self.state.fetch_sub(READER, AcqRel) - READER;
        // Readers wait only for writers.
        if is_free(state) && state & WRITERS_WAIT != 0 {
            self.wake(state);
        }
        mine().tally(self.class).end();
    }

    #[inline]
    fn lock_exclusive(&self) {
        let seat = mine();
        let tally = seat.tally(self.class);
        tally.begin();
        let taken = self.state.compare_exchange(0, WRITTEN, AcqRel, Relaxed);
        if taken.is_err() {
            self.wait_to_write(mark_of(seat), tally);
        }
        self.writer.store(mark_of(seat), Relaxed);
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        let seat = mine();
        let tally = seat.tally(self.class);
        tally.begin();
        let taken = self.state.compare_exchange(0, WRITTEN, AcqRel, Relaxed);
        if taken.is_ok() {
            self.writer.store(mark_of(seat), Relaxed);
        } else {
            tally.take_back();
        }
        taken.is_ok()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        if std::thread::panicking() && self.writer.load(Relaxed) != IN_PANIC {
            return self.mark_broken();
        }
        self.writer.store(0, Relaxed);
        let state = self.state.fetch_sub(WRITTEN, AcqRel) - WRITTEN;
        if state != 0 {
            self.wake(state);
        }
        mine().tally(self.class).end();
    }

    fn is_locked(&self) -> bool {
        !is_free(self.state.load(Relaxed))
    }
}

impl Class {
    /// A lock for many readers or one writer, of this class.
    pub const fn rwlock<T>(self, value: T) -> RwLock<T> {
        RwLock::from_raw(RawRwLock::of(self), value)
    }
}

impl RawRwLock {
    pub const fn of(class: Class) -> Self {
        Self {
            state: AtomicU32::new(0),
            writer_wakes: AtomicU32::new(0),
            writer: AtomicU32::new(0),
            class,
        }
    }

    #[inline]
    fn try_read(&self) -> bool {
        let state = self.state.load(Relaxed);
        is_open_to_readers(state)
            && self
                .state
                .compare_exchange_weak(state, state + READER, AcqRel, Relaxed)
                .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait_to_read(&self, tally: &Tally) {
        let spin = || {
            let is_over = |state: u32| holders(state) != WRITTEN;
            let others_sleep = |state: u32| state & (READERS_WAIT | WRITERS_WAIT) != 0;
            waiting::spin(&self.state, self.class, tally, is_over, others_sleep)
        };
        // Another reader may just have changed the count: that is not counted as a wait.
        if !is_open_to_readers(self.state.load(Relaxed)) {
            add(&tally.waits, 1);
        }
        let mut state = spin();
        loop {
            self.refuse_if_broken(tally);
            if is_open_to_readers(state) {
                let next = state + READER;
                match self.state.compare_exchange(state, next, AcqRel, Relaxed) {
                    Ok(_) => return,
                    Err(now) => state = now,
                }
                continue;
            }
            if waiting::spin_of(self.class) == Spin::Only
                && state & (READERS_WAIT | WRITERS_WAIT) == 0
            {
                state = spin();
                continue;
            }
            assert!(holders(state) != READERS_MAX, "too many readers of a latch");
            if state & READERS_WAIT == 0 {
                let next = state | READERS_WAIT;
                if let Err(now) = self.state.compare_exchange(state, next, Relaxed, Relaxed) {
                    state = now;
                    continue;
                }
            }
            add(&tally.sleeps, 1);
            waiting::sleep_on(&self.state, state | READERS_WAIT);
            state = spin();
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_to_write(&self, me: u32, tally: &Tally) {
        let spin = || {
            let others_sleep = |state: u32| state & WRITERS_WAIT != 0;
            waiting::spin(&self.state, self.class, tally, is_free, others_sleep)
        };
        add(&tally.waits, 1);
        let mut state = spin();
        // A writer that has slept cannot know whether others still sleep.
        let mut others = 0;
        loop {
            self.refuse_if_broken(tally);
            if is_free(state) {
                let next = state | WRITTEN | others;
                match self.state.compare_exchange(state, next, AcqRel, Relaxed) {
                    Ok(_) => return,
                    Err(now) => state = now,
                }
                continue;
            }
            if holders(state) == WRITTEN && self.writer.load(Relaxed) == me {
                tally.take_back();
                panic!("a thread wants a latch that it holds already");
            }
            if waiting::spin_of(self.class) == Spin::Only {
                state = spin();
                continue;
            }
            if state & WRITERS_WAIT == 0 {
                let next = state | WRITERS_WAIT;
                if let Err(now) = self.state.compare_exchange(state, next, Relaxed, Relaxed) {
                    state = now;
                    continue;
                }
            }
            others = WRITERS_WAIT;
            let wakes = self.writer_wakes.load(Acquire);
            // It may have been released since: then no thread will change `writer_wakes`.
            state = self.state.load(Relaxed);
            if is_free(state) || state & WRITERS_WAIT == 0 {
                continue;
            }
            add(&tally.sleeps, 1);
            waiting::sleep_on(&self.writer_wakes, wakes);
            state = spin();
        }
    }

    /// Wakes a writer, or else all readers, of a latch that was just released.
    #[cold]
    fn wake(&self, mut state: u32) {
        if state == WRITERS_WAIT {
            match self.state.compare_exchange(state, 0, Relaxed, Relaxed) {
                Ok(_) => {
                    self.wake_writer();
                    return;
                }
                Err(now) => state = now,
            }
        }
        if state == READERS_WAIT | WRITERS_WAIT {
            let readers_left = self
                .state
                .compare_exchange(state, READERS_WAIT, Relaxed, Relaxed);
            // Another thread has taken it, and wakes the others when it releases it.
            if readers_left.is_err() || self.wake_writer() {
                return;
            }
            state = READERS_WAIT;
        }
        if state == READERS_WAIT {
            let none_left = self.state.compare_exchange(state, 0, Relaxed, Relaxed);
            if none_left.is_ok() {
                waiting::wake_all(&self.state);
            }
        }
    }

    fn wake_writer(&self) -> bool {
        self.writer_wakes.fetch_add(1, Release);
        waiting::wake_one(&self.writer_wakes)
    }

    /// What it protects may be half changed: no thread may take it any more.
    #[cold]
    fn mark_broken(&self) {
        self.writer.store(BROKEN, Release);
        self.writer_wakes.fetch_add(1, Release);
        waiting::wake_all(&self.writer_wakes);
        waiting::wake_all(&self.state);
    }

    fn refuse_if_broken(&self, tally: &Tally) {
        if self.writer.load(Acquire) == BROKEN {
            tally.take_back();
            panic!("{}", waiting::BROKEN);
        }
    }
}

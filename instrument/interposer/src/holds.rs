//! The meant locks that a thread has, and since when.

use std::cell::Cell;

/// A thread has seldom more of them at once; those beyond are not held longer.
const HELD_MAX: usize = 8;

#[derive(Clone, Copy)]
struct Hold {
    /// 0 where there is none.
    lock: usize,
    /// Since when the thread has it.
    ticks: u64,
    /// How much of that is in holds of other locks that have ended meanwhile, and in what was added to them.
    covered: u64,
    /// How often it has taken it since then, without giving it back.
    times: u32,
}

impl Hold {
    const NONE: Self = Self {
        lock: 0,
        ticks: 0,
        covered: 0,
        times: 0,
    };
}

thread_local! {
    static HOLDS: [Cell<Hold>; HELD_MAX] = const { [const { Cell::new(Hold::NONE) }; HELD_MAX] };
}

/// A thread has taken a lock. It may have it already.
pub fn begin(lock: usize, ticks: u64) {
    HOLDS.with(|holds| {
        let of = |lock| holds.iter().find(|it| it.get().lock == lock);
        if let Some(again) = of(lock) {
            let hold = again.get();
            again.set(Hold {
                times: hold.times + 1,
                ..hold
            });
        } else if let Some(free) = of(0) {
            free.set(Hold {
                lock,
                ticks,
                covered: 0,
                times: 1,
            });
        }
    });
}

/// A hold that ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    ticks: u64,
    covered: u64,
}

impl Ended {
    /// For how long it was held, beside what is in holds of other locks that ended meanwhile.
    pub fn held(&self, now: u64) -> u64 {
        now.saturating_sub(self.ticks).saturating_sub(self.covered)
    }
}

/// A thread is about to give a lock back. None if it still has it then: what is added to each of two holds, one
/// inside the other, would count twice.
pub fn end(lock: usize) -> Option<Ended> {
    HOLDS.with(|holds| {
        let held = holds.iter().find(|it| it.get().lock == lock)?;
        let hold = held.get();
        let is_last = hold.times == 1;
        held.set(match is_last {
            true => Hold::NONE,
            false => Hold {
                times: hold.times - 1,
                ..hold
            },
        });
        is_last.then_some(Ended {
            ticks: hold.ticks,
            covered: hold.covered,
        })
    })
}

/// The time of a hold, up to now, is no more a part of the others that the thread has: two locks that are held at
/// once, as by one guard, are held longer once.
pub fn cover(ended: &Ended, now: u64) {
    HOLDS.with(|holds| {
        for one in holds.iter().filter(|it| it.get().lock != 0) {
            let hold = one.get();
            let covered = match hold.ticks <= ended.ticks {
                true => hold.covered + ended.held(now),
                false => now.saturating_sub(hold.ticks),
            };
            one.set(Hold { covered, ..hold });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lock_has_its_own_time() {
        begin(16, 100);
        begin(32, 200);
        assert_eq!(end(32).unwrap().held(250), 50);
        assert_eq!(end(16).unwrap().held(300), 200);
        assert_eq!(end(16), None);
    }

    #[test]
    fn a_lock_that_is_taken_twice_is_held_once() {
        begin(16, 100);
        begin(16, 300);
        assert_eq!(end(16), None);
        assert_eq!(end(16).unwrap().held(400), 300);
        assert_eq!(end(16), None);
    }

    #[test]
    fn locks_that_are_held_at_once_are_held_longer_once() {
        // One inside the other, with 50 ticks added to it: 100 … (200 … 300 … 350) … 400.
        begin(16, 100);
        begin(32, 200);
        let inner = end(32).unwrap();
        assert_eq!(inner.held(300), 100);
        cover(&inner, 350);
        assert_eq!(end(16).unwrap().held(400), 150);
        // Given back in the order in which they were taken: 100 … 200 … 300 (350) … 400.
        begin(16, 100);
        begin(32, 200);
        let first = end(16).unwrap();
        assert_eq!(first.held(300), 200);
        cover(&first, 350);
        assert_eq!(end(32).unwrap().held(400), 50);
        // Three, of which the innermost counts once in each.
        for (lock, ticks) in [(16, 100), (32, 200), (48, 300)] {
            begin(lock, ticks);
        }
        for lock in [48, 32] {
            let ended = end(lock).unwrap();
            assert_eq!(ended.held(400), 100);
            cover(&ended, 400);
        }
        assert_eq!(end(16).unwrap().held(400), 100);
    }

    #[test]
    fn locks_beyond_the_most_are_left_alone() {
        for lock in 1..=HELD_MAX + 3 {
            begin(lock, lock as u64);
        }
        let held = (1..=HELD_MAX + 3).filter(|it| end(*it).is_some()).count();
        assert_eq!(held, HELD_MAX);
    }
}

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
    /// How often it has taken it since then, without giving it back.
    times: u32,
}

impl Hold {
    const NONE: Self = Self {
        lock: 0,
        ticks: 0,
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
                times: 1,
            });
        }
    });
}

/// A thread is about to give a lock back: since when it has it. None if it still has it then: what is added to each
/// of two holds, one inside the other, would count twice.
pub fn end(lock: usize) -> Option<u64> {
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
        is_last.then_some(hold.ticks)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lock_has_its_own_time() {
        begin(16, 100);
        begin(32, 200);
        assert_eq!(end(32), Some(200));
        assert_eq!(end(16), Some(100));
        assert_eq!(end(16), None);
    }

    #[test]
    fn a_lock_that_is_taken_twice_is_held_once() {
        begin(16, 100);
        begin(16, 300);
        assert_eq!(end(16), None);
        assert_eq!(end(16), Some(100));
        assert_eq!(end(16), None);
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

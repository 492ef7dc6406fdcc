//! The meant locks that a thread has, and since when.

use std::cell::Cell;

/// A thread has seldom more of them at once; those beyond are not held longer.
const HELD_MAX: usize = 8;

thread_local! {
    /// Lock and time of each; the lock is 0 where there is none.
    static HOLDS: [Cell<(usize, u64)>; HELD_MAX] = const { [const { Cell::new((0, 0)) }; HELD_MAX] };
}

/// A thread has taken a lock.
pub fn begin(lock: usize, ticks: u64) {
    HOLDS.with(|holds| {
        if let Some(free) = holds.iter().find(|it| it.get().0 == 0) {
            free.set((lock, ticks));
        }
    });
}

/// A thread is about to give a lock back: since when it has it. Of a lock that it took several times,
/// the last time.
pub fn end(lock: usize) -> Option<u64> {
    HOLDS.with(|holds| {
        let held = |it: &&Cell<(usize, u64)>| it.get().0 == lock;
        let last = holds.iter().filter(held).max_by_key(|it| it.get().1)?;
        let (_, ticks) = last.replace((0, 0));
        Some(ticks)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lock_has_its_own_time() {
        begin(16, 100);
        begin(32, 200);
        begin(16, 300);
        assert_eq!(end(16), Some(300));
        assert_eq!(end(32), Some(200));
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

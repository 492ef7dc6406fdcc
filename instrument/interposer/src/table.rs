//! Which locks are meant, by address: a table that all threads share, without locks of its own.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const SLOTS: usize = 1 << 14;
/// A lock stands in one of so many slots, from that of its address on.
const PROBES: usize = 16;
/// A lock that was looked at so often without being meant is another one, for the time being.
const LOOKS: u32 = 64;
const MEANT: u32 = u32::MAX;

/// What is known of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Meant,
    Unknown,
    Other,
}

/// The locks that were looked at.
pub struct Table {
    addresses: [AtomicUsize; SLOTS],
    states: [AtomicU32; SLOTS],
}

impl Table {
    pub const fn new() -> Self {
        Self {
            addresses: [const { AtomicUsize::new(0) }; SLOTS],
            states: [const { AtomicU32::new(0) }; SLOTS],
        }
    }

    /// What is known of a lock. One that finds no room is another one.
    pub fn known(&self, lock: usize) -> Known {
        for slot in probes(lock) {
            match self.addresses[slot].load(Ordering::Acquire) {
                0 => return Known::Unknown,
                it if it == lock => {
                    return match self.states[slot].load(Ordering::Acquire) {
                        MEANT => Known::Meant,
                        looks if looks < LOOKS => Known::Unknown,
                        _ => Known::Other,
                    };
                }
                _ => {}
            }
        }
        Known::Other
    }

    /// Remembers that a lock was looked at, and what was seen. A lock that was meant once stays so.
    pub fn looked(&self, lock: usize, is_meant: bool) {
        for slot in probes(lock) {
            let free =
                self.addresses[slot].compare_exchange(0, lock, Ordering::AcqRel, Ordering::Acquire);
            if free.is_ok() || free == Err(lock) {
                let state = &self.states[slot];
                if is_meant {
                    state.store(MEANT, Ordering::Release);
                } else {
                    let _ = state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |looks| {
                        (looks < LOOKS).then(|| looks + 1)
                    });
                }
                return;
            }
        }
    }

    /// Forgets what is known of a lock. Its slot stays its own.
    pub fn forget(&self, lock: usize) {
        for slot in probes(lock) {
            match self.addresses[slot].load(Ordering::Acquire) {
                0 => return,
                it if it == lock => return self.states[slot].store(0, Ordering::Release),
                _ => {}
            }
        }
    }
}

fn probes(lock: usize) -> impl Iterator<Item = usize> {
    // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
    let first = (lock >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - SLOTS.ilog2());
    (0..PROBES).map(move |step| (first + step) % SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_looked_at_until_it_is_known() {
        let table = Box::new(Table::new());
        assert_eq!(table.known(0x1000), Known::Unknown);
        for _ in 0..LOOKS - 1 {
            table.looked(0x1000, false);
            assert_eq!(table.known(0x1000), Known::Unknown);
        }
        table.looked(0x1000, false);
        assert_eq!(table.known(0x1000), Known::Other);
        table.looked(0x1000, true);
        assert_eq!(table.known(0x1000), Known::Meant);
        table.looked(0x1000, false);
        assert_eq!(table.known(0x1000), Known::Meant);
        assert_eq!(table.known(0x1008), Known::Unknown);
    }

    #[test]
    fn a_lock_that_is_gone_is_forgotten() {
        let table = Box::new(Table::new());
        table.looked(0x2000, true);
        table.forget(0x2000);
        table.forget(0x3000);
        assert_eq!(table.known(0x2000), Known::Unknown);
        table.looked(0x2000, true);
        assert_eq!(table.known(0x2000), Known::Meant);
    }

    #[test]
    fn locks_that_find_no_room_are_others() {
        let table = Box::new(Table::new());
        let locks = (1..=4 * SLOTS).map(|it| it * 40);
        for lock in locks.clone() {
            table.looked(lock, true);
        }
        let meant = locks.clone().filter(|it| table.known(*it) == Known::Meant);
        let count = meant.count();
        assert!(count > SLOTS / 2 && count <= SLOTS, "{count}");
        assert!(locks.clone().all(|it| table.known(it) != Known::Unknown));
    }
}

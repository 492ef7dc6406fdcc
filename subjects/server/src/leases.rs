//! Keys with a value and a time to live, which Redlock clients need of a Redis server. They know of
//! no clock: callers pass the time in milliseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;

/// Expired keys are removed when they are used, and in addition so many with each change of a key.
const SWEPT_PER_CHANGE: usize = 2;

/// Longest time to live in ms, some 146 million years: PTTL can return it, and it can be added to any
/// time of the clock.
pub const LIVES_MS_MAX: u64 = i64::MAX as u64 / 2;

#[derive(Debug)]
pub struct Leases {
    capacity: usize,
    held: HashMap<Box<[u8]>, Lease>,
    /// When keys expire, the earliest first. Entries whose lease was changed since are void.
    ends: BinaryHeap<Reverse<End>>,
    changes: u64,
}

/// When a key expires, the number of the change that set this time, and the key.
type End = (u64, u64, Box<[u8]>);

#[derive(Debug)]
struct Lease {
    value: Box<[u8]>,
    ends_ms: Option<u64>,
    change: u64,
}

/// The number of keys has reached the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Leases {
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            held: HashMap::new(),
            ends: BinaryHeap::new(),
            changes: 0,
        }
    }

    /// Number of keys, including expired ones that are not removed yet.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub fn get(&mut self, key: &[u8], now_ms: u64) -> Option<&[u8]> {
        self.end_if_due(key, now_ms);
        self.held.get(key).map(|it| &*it.value)
    }

    pub fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        ends_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<(), Full> {
        self.sweep(now_ms);
        if self.held.len() >= self.capacity && !self.held.contains_key(key) {
            return Err(Full);
        }
        self.changes += 1;
        let lease = Lease {
            value: value.into(),
            ends_ms,
            change: self.changes,
        };
        self.held.insert(key.into(), lease);
        self.remember_end(key, ends_ms);
        Ok(())
    }

    /// False if there was no such key.
    pub fn remove(&mut self, key: &[u8], now_ms: u64) -> bool {
        self.end_if_due(key, now_ms);
        self.sweep(now_ms);
        self.held.remove(key).is_some()
    }

    /// When a key expires: the outer `None` if there is no such key, the inner one if it never
    /// does.
    pub fn ends(&mut self, key: &[u8], now_ms: u64) -> Option<Option<u64>> {
        self.end_if_due(key, now_ms);
        self.held.get(key).map(|it| it.ends_ms)
    }

    /// Changes when a key expires; false if there is no such key.
    pub fn set_end(&mut self, key: &[u8], ends_ms: u64, now_ms: u64) -> bool {
        self.end_if_due(key, now_ms);
        self.changes += 1;
        let Some(lease) = self.held.get_mut(key) else {
            return false;
        };
        (lease.ends_ms, lease.change) = (Some(ends_ms), self.changes);
        self.remember_end(key, Some(ends_ms));
        true
    }

    fn remember_end(&mut self, key: &[u8], ends_ms: Option<u64>) {
        let Some(ends_ms) = ends_ms else {
            return;
        };
        // Limits the number of void entries: a client may change the time of one key again and
        // again.
        if self.ends.len() > 2 * self.held.len() + 64 {
            let held = &self.held;
            self.ends.retain(|Reverse((_, change, key))| {
                held.get(key).is_some_and(|it| it.change == *change)
            });
        }
        self.ends.push(Reverse((ends_ms, self.changes, key.into())));
    }

    fn end_if_due(&mut self, key: &[u8], now_ms: u64) {
        let due = |it: &Lease| it.ends_ms.is_some_and(|ends_ms| ends_ms <= now_ms);
        if self.held.get(key).is_some_and(due) {
            self.held.remove(key);
        }
    }

    fn sweep(&mut self, now_ms: u64) {
        for _ in 0..SWEPT_PER_CHANGE {
            match self.ends.peek() {
                Some(Reverse((ends_ms, _, _))) if *ends_ms <= now_ms => {}
                _ => return,
            }
            if let Some(Reverse((_, change, key))) = self.ends.pop()
                && self.held.get(&key).is_some_and(|it| it.change == change)
            {
                self.held.remove(&key);
            }
        }
    }
}

/// Time to live of a key in ms, as PTTL returns it: -1 if it never expires, -2 if there is none.
pub fn left_ms(leases: &mut Leases, key: &[u8], now_ms: u64) -> i64 {
    match leases.ends(key, now_ms) {
        None => -2,
        Some(None) => -1,
        Some(Some(ends_ms)) => (ends_ms - now_ms) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_when_its_time_is_over_and_is_swept_by_others() {
        let mut leases = Leases::new(2);
        leases.set(b"a", b"1", Some(10), 0).unwrap();
        leases.set(b"b", b"2", None, 0).unwrap();
        assert_eq!(leases.set(b"c", b"3", None, 9), Err(Full));
        assert_eq!(leases.get(b"a", 9), Some(&b"1"[..]));
        assert_eq!(leases.set(b"c", b"3", None, 10), Ok(()));
        assert_eq!(leases.get(b"a", 10), None);
        assert_eq!(
            (leases.ends(b"b", 10), leases.ends(b"a", 10)),
            (Some(None), None)
        );
    }

    #[test]
    fn a_new_end_voids_the_old_one() {
        let mut leases = Leases::new(9);
        leases.set(b"a", b"1", Some(10), 0).unwrap();
        assert!(leases.set_end(b"a", 100, 5));
        leases.set(b"b", b"2", None, 50).unwrap();
        assert_eq!(leases.get(b"a", 50), Some(&b"1"[..]));
        for ends_ms in 0..1000 {
            leases.set_end(b"a", 1000 + ends_ms, 60);
        }
        assert!(leases.ends.len() < 100);
        assert!(leases.remove(b"a", 60));
        assert!(!leases.remove(b"a", 60));
    }
}

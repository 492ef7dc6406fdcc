//! Clients that have not logged in, in the order in which they came.

use std::collections::VecDeque;

/// The newcomers of an I/O thread. A client that logs in or goes stays in the list until it is the
/// first, or voids are many.
#[derive(Debug, Default)]
pub struct Newcomers {
    /// The number of the client, and the place of its connection.
    queue: VecDeque<(u64, u32)>,
    /// Length at which those that are newcomers no more are removed.
    sweep_at: usize,
}

/// Length below which no sweep is worth it.
const SWEEP_MIN: usize = 1024;

impl Newcomers {
    /// Adds a client that has come. `is_one`: whether the client of this number at this place still is
    /// a newcomer.
    pub fn add(&mut self, client: u64, at: u32, is_one: impl Fn(u64, u32) -> bool) {
        if self.queue.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.queue.retain(|(client, at)| is_one(*client, *at));
            self.sweep_at = 2 * self.queue.len();
        }
        self.queue.push_back((client, at));
    }

    /// The client that came first, and the place of its connection.
    pub fn oldest(&mut self, is_one: impl Fn(u64, u32) -> bool) -> Option<(u64, u32)> {
        while let Some((client, at)) = self.queue.front() {
            if is_one(*client, *at) {
                return Some((*client, *at));
            }
            self.queue.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_first_that_still_is_one() {
        let mut newcomers = Newcomers::default();
        for client in 1..=4 {
            newcomers.add(client, client as u32 * 10, |_, _| true);
        }
        assert_eq!(newcomers.oldest(|_, _| true), Some((1, 10)));
        assert_eq!(newcomers.oldest(|client, _| client > 2), Some((3, 30)));
        assert_eq!(newcomers.oldest(|_, _| false), None);
    }

    #[test]
    fn those_that_have_gone_take_no_memory_behind_one_that_stays() {
        let mut newcomers = Newcomers::default();
        for client in 1..=100_000 {
            newcomers.add(client, 0, |client, _| client == 1);
        }
        assert!(newcomers.queue.len() <= SWEEP_MIN);
        assert_eq!(newcomers.oldest(|client, _| client == 1), Some((1, 0)));
    }
}

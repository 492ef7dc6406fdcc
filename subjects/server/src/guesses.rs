//! Passwords by the source that tried them: how long the next one from there must wait. It knows of no
//! clock: callers pass the time.
//!
//! Each source has a token bucket, kept as the time when it will be full again (the generic cell rate
//! algorithm; ITU-T I.371). A password takes a token; the right one gives it back.

use hashbrown::HashMap;

use crate::source::Source;

/// Tokens of a full bucket: so many passwords of a source are tried at once.
const TOKENS: u64 = 10;

/// The last tokens are for connections that have not tried a password yet. Otherwise one client that
/// guesses on and on would keep out all others behind its address.
const TOKENS_FOR_FIRST: u64 = 5;

/// Sources that are remembered one by one. Beyond that, all others share a bucket, so that not even
/// countless addresses guess faster.
const SOURCES_MAX: usize = 4096;

/// The passwords that were tried lately.
#[derive(Debug)]
pub struct Guesses {
    /// Time in which a token comes back.
    token_us: u64,
    /// When the bucket of each source will be full.
    full_us: HashMap<Source, u64>,
    /// The same of all sources that are not remembered.
    others_full_us: u64,
}

impl Guesses {
    /// So many a second come back.
    pub fn new(per_s: u32) -> Self {
        Self {
            token_us: 1_000_000 / u64::from(per_s.max(1)),
            full_us: HashMap::new(),
            others_full_us: 0,
        }
    }

    /// Takes a token, before a password is tried. `is_first`: its connection has not tried one yet.
    ///
    /// # Errors
    /// If there is none: the time in µs after which one may be there.
    pub fn take(&mut self, source: Source, is_first: bool, now_us: u64) -> Result<(), u64> {
        let tokens = match is_first {
            true => TOKENS,
            false => TOKENS - TOKENS_FOR_FIRST,
        };
        let missing_us = self.full_us(source).saturating_sub(now_us) + self.token_us;
        let wait_us = missing_us.saturating_sub(tokens * self.token_us);
        if wait_us > 0 {
            return Err(wait_us);
        }
        let token_us = self.token_us;
        let full_us = self.bucket(source, now_us);
        *full_us = now_us.max(*full_us) + token_us;
        Ok(())
    }

    /// Gives a token back: the password was right.
    pub fn give_back(&mut self, source: Source, now_us: u64) {
        let Some(full_us) = self.full_us.get_mut(&source) else {
            return;
        };
        *full_us = full_us.saturating_sub(self.token_us);
        if *full_us <= now_us {
            self.full_us.remove(&source);
        }
    }

    fn full_us(&self, source: Source) -> u64 {
        match self.full_us.get(&source) {
            Some(full_us) => *full_us,
            None if self.is_full() => self.others_full_us,
            None => 0,
        }
    }

    /// The bucket of a source, which is remembered if there is room.
    fn bucket(&mut self, source: Source, now_us: u64) -> &mut u64 {
        if self.is_full() && !self.full_us.contains_key(&source) {
            self.full_us.retain(|_, full_us| *full_us > now_us);
            if self.is_full() {
                return &mut self.others_full_us;
            }
        }
        self.full_us.entry(source).or_insert(0)
    }

    fn is_full(&self) -> bool {
        self.full_us.len() >= SOURCES_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn source(number: u32) -> Source {
        IpAddr::V4(Ipv4Addr::from_bits(number)).into()
    }

    /// How many passwords are tried until this time if one is sent every ms.
    fn tried(guesses: &mut Guesses, sources: u32, is_first: bool, until_us: u64) -> u64 {
        let mut tried = 0;
        for now_us in (0..until_us).step_by(1000) {
            for number in 0..sources {
                tried += u64::from(guesses.take(source(number), is_first, now_us).is_ok());
            }
        }
        tried
    }

    #[test]
    fn a_source_tries_a_few_at_once_and_then_so_many_a_second() {
        for per_s in [1, 4, 50] {
            let most = |at_once: u64| at_once + 10 * u64::from(per_s);
            let new = || Guesses::new(per_s);
            let first = tried(&mut new(), 1, true, 10 * SECOND_US);
            assert!(
                first <= most(TOKENS) && first + 1 >= most(TOKENS),
                "{first}"
            );
            let again = tried(&mut new(), 1, false, 10 * SECOND_US);
            let tokens = TOKENS - TOKENS_FOR_FIRST;
            assert!(
                again <= most(tokens) && again + 1 >= most(tokens),
                "{again}"
            );
            assert_eq!(tried(&mut new(), 3, true, 10 * SECOND_US), 3 * first);
        }
    }

    #[test]
    fn the_wait_is_as_long_as_it_must_be() {
        let mut guesses = Guesses::new(1);
        while guesses.take(source(1), true, 0).is_ok() {}
        let wait_us = guesses.take(source(1), true, 0).unwrap_err();
        assert_eq!(wait_us, SECOND_US);
        assert_eq!(guesses.take(source(1), true, wait_us - 1), Err(1));
        assert_eq!(guesses.take(source(1), true, wait_us), Ok(()));
        assert!(guesses.take(source(2), true, 0).is_ok(), "another address");
    }

    #[test]
    fn a_guesser_that_stays_connected_leaves_tokens_for_other_connections() {
        let mut guesses = Guesses::new(1);
        for now_us in (0..100 * SECOND_US).step_by(10_000) {
            let _ = guesses.take(source(1), false, now_us);
        }
        assert!(guesses.take(source(1), true, 100 * SECOND_US).is_ok());
    }

    #[test]
    fn right_passwords_cost_nothing() {
        let mut guesses = Guesses::new(1);
        for _ in 0..100 {
            guesses.take(source(1), true, 5).unwrap();
            guesses.give_back(source(1), 5);
        }
        assert!(guesses.full_us.is_empty());
    }

    #[test]
    fn countless_addresses_share_a_bucket_and_are_forgotten() {
        let mut guesses = Guesses::new(1);
        let many = 3 * SOURCES_MAX as u32;
        let at_once = (0..many).filter(|it| guesses.take(source(*it), true, 0).is_ok());
        assert_eq!(at_once.count() as u64, SOURCES_MAX as u64 + TOKENS);
        assert_eq!(guesses.full_us.len(), SOURCES_MAX);
        assert!(guesses.take(source(many), true, TOKENS * SECOND_US).is_ok());
        assert_eq!(guesses.full_us.len(), 1, "the others are full again");
    }
}

//! Numbers that no other transaction has, whoever loads the same data at any time.

/// Bits of the number that tell the time; those above are the session's.
const TIME_BITS: u32 = 48;
const SESSIONS: u64 = 1 << (63 - TIME_BITS);
/// Enough for 89 years from 2020 on; no session does two transactions in less.
const TICK_US: u64 = 10;
/// 2020-01-01, in µs since 1970.
const BEGIN_US: u64 = 1_577_836_800_000_000;

/// The numbers of one session: each greater than the one before.
#[derive(Debug)]
pub struct Rows {
    session: i64,
    /// Of its last number.
    tick: u64,
}

impl Rows {
    /// Two sessions whose numbers differ by 32,768 have the same only if they begin a transaction at
    /// the same time.
    pub fn of(session: u64) -> Self {
        Self {
            session: ((session % SESSIONS) << TIME_BITS) as i64,
            tick: 0,
        }
    }

    pub fn next(&mut self) -> i64 {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let now = (since.as_micros() as u64).saturating_sub(BEGIN_US) / TICK_US;
        self.tick = now.max(self.tick + 1);
        self.session | (self.tick & ((1 << TIME_BITS) - 1)) as i64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_number_is_given_twice_and_those_of_a_session_grow() {
        let mut seen = HashSet::new();
        for session in [0, 1, SESSIONS - 1] {
            let mut rows = Rows::of(session);
            let numbers: Vec<i64> = (0..1000).map(|_| rows.next()).collect();
            assert!(numbers.is_sorted_by(|one, next| one < next));
            assert!(numbers.iter().all(|it| *it > 0 && seen.insert(*it)));
            // Another load, later on.
            let tick = rows.tick;
            rows = Rows::of(session);
            while rows.next() <= (rows.session | tick as i64) {}
            assert!(seen.insert(rows.next()));
        }
    }
}

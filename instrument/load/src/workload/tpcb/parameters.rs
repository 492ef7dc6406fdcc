//! The parameters of a transaction: which account, teller and branch, and how much.

use rand::Rng;
use rand::rngs::SmallRng;

use super::profile::{BankData, Profile, TELLERS};
use crate::workload::Parameters;

/// Slots in [`Parameters`].
pub const AID: usize = 0;
pub const TID: usize = 1;
pub const BID: usize = 2;
pub const DELTA: usize = 3;
/// The balance that was read last, plus the delta.
pub const BALANCE: usize = 4;
/// The branch that the account belongs to.
pub const ACCOUNTS_BID: usize = 5;
/// The branch that the teller belongs to.
pub const TELLERS_BID: usize = 6;
/// µs since 1970.
pub const TIME: usize = 7;
/// A number that no other transaction has.
pub const ROW: usize = 8;
/// Names of the slots in the statements of a dialect.
pub const PLACEHOLDERS: [(&str, usize); 9] = [
    ("aid", AID),
    ("tid", TID),
    ("bid", BID),
    ("delta", DELTA),
    ("balance", BALANCE),
    ("abid", ACCOUNTS_BID),
    ("tbid", TELLERS_BID),
    ("time", TIME),
    ("row", ROW),
];

/// The standard's (clause 5.3.5), and pgbench's.
const DELTA_MAX: i64 = 999_999;
const DELTA_MAX_LIKE: i64 = 5_000;
/// Share of the accounts that belong to another branch than the teller (clause 5.3.5).
const REMOTE_SHARE: f64 = 0.15;

/// The distributions of a profile's parameters.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    profile: Profile,
    branches: i64,
    /// Accounts of each branch.
    accounts: i64,
}

impl Draws {
    pub fn of(data: &BankData) -> Self {
        Self {
            profile: data.profile,
            branches: i64::from(data.scale),
            accounts: i64::from(data.accounts),
        }
    }

    pub fn draw(&self, random: &mut SmallRng) -> Parameters {
        let mut parameters = Parameters::default();
        match self.profile {
            Profile::Rw3 | Profile::Strict | Profile::Loop => self.strict(random, &mut parameters),
            Profile::Like => self.like(random, &mut parameters),
            Profile::Read => parameters[AID] = self.account(random),
            Profile::Update => {
                parameters[AID] = self.account(random);
                // So the sum of the balances counts the updates.
                parameters[DELTA] = 1;
            }
        }
        parameters[ACCOUNTS_BID] = (parameters[AID] - 1) / self.accounts + 1;
        parameters[TELLERS_BID] = (parameters[TID] - 1) / TELLERS + 1;
        parameters
    }

    /// A teller, its branch, and an account mostly of that branch.
    fn strict(&self, random: &mut SmallRng, parameters: &mut Parameters) {
        let teller = random.random_range(0..TELLERS * self.branches);
        let branch = teller / TELLERS;
        let home = match self.branches > 1 && random.random_bool(REMOTE_SHARE) {
            false => branch,
            true => (branch + random.random_range(1..self.branches)) % self.branches,
        };
        parameters[AID] = home * self.accounts + random.random_range(1..=self.accounts);
        parameters[TID] = teller + 1;
        parameters[BID] = branch + 1;
        parameters[DELTA] = random.random_range(-DELTA_MAX..=DELTA_MAX);
    }

    /// Each independent of the others.
    fn like(&self, random: &mut SmallRng, parameters: &mut Parameters) {
        parameters[AID] = self.account(random);
        parameters[BID] = random.random_range(1..=self.branches);
        parameters[TID] = random.random_range(1..=TELLERS * self.branches);
        parameters[DELTA] = random.random_range(-DELTA_MAX_LIKE..=DELTA_MAX_LIKE);
    }

    fn account(&self, random: &mut SmallRng) -> i64 {
        random.random_range(1..=self.accounts * self.branches)
    }
}

/// Low bits of a row number that hold the time; the bits above hold the session.
const TIME_BITS: u32 = 48;
const SESSIONS: u64 = 1 << (63 - TIME_BITS);
/// Resolution of the time: 48 bits last 89 years from 2020 on, and no session does two transactions
/// in less.
const TICK_US: u64 = 10;
/// 2020-01-01, in µs since 1970.
const BEGIN_US: u64 = 1_577_836_800_000_000;

/// The row numbers of one session, unique over all loads of the same data at any time: each is
/// greater than the one before.
#[derive(Debug)]
pub struct Rows {
    session: i64,
    /// Time of its last number, in units of [`TICK_US`] since [`BEGIN_US`].
    tick: u64,
}

impl Rows {
    /// Two sessions whose numbers differ by 32,768 get the same row number only if they begin a
    /// transaction at the same time.
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

    use rand::SeedableRng;

    use super::*;

    const DRAWS: usize = 100_000;
    const ACCOUNTS_EACH: u32 = 2_000;

    fn drawn(profile: Profile, scale: u32) -> Vec<Parameters> {
        let draws = Draws::of(&BankData {
            profile,
            scale,
            accounts: ACCOUNTS_EACH,
            files: 1,
        });
        let mut random = SmallRng::seed_from_u64(1);
        (0..DRAWS).map(|_| draws.draw(&mut random)).collect()
    }

    fn share(of: &[Parameters], is: impl Fn(&Parameters) -> bool) -> f64 {
        of.iter().filter(|it| is(it)).count() as f64 / of.len() as f64
    }

    #[test]
    fn of_the_standard_85_in_100_accounts_are_of_the_tellers_branch() {
        for profile in [Profile::Strict, Profile::Rw3] {
            let drawn = drawn(profile, 10);
            assert!(drawn.iter().all(|it| it[BID] == it[TELLERS_BID]));
            let home = share(&drawn, |it| it[ACCOUNTS_BID] == it[BID]);
            assert!((home - 0.85).abs() < 0.005, "{home}");
            for branch in 1..=10 {
                let remote = share(&drawn, |it| it[ACCOUNTS_BID] == branch && it[BID] != branch);
                assert!((remote - 0.015).abs() < 0.002, "{branch}: {remote}");
            }
            assert!(drawn.iter().all(|it| it[DELTA].abs() <= 999_999));
        }
        let alone = drawn(Profile::Strict, 1);
        assert!(alone.iter().all(|it| it[ACCOUNTS_BID] == 1));
    }

    #[test]
    fn of_pgbench_each_is_independent() {
        let drawn = drawn(Profile::Like, 10);
        let own = share(&drawn, |it| it[BID] == it[TELLERS_BID]);
        assert!((own - 0.1).abs() < 0.005, "{own}");
        assert!(drawn.iter().all(|it| it[DELTA].abs() <= 5_000));
        assert!(drawn.iter().any(|it| it[DELTA] == 5_000));
    }

    #[test]
    fn all_parameters_are_keys_of_existing_rows() {
        for profile in Profile::ALL {
            for scale in [1, 3] {
                let branches = i64::from(scale);
                for it in drawn(profile, scale) {
                    let accounts = i64::from(ACCOUNTS_EACH);
                    assert!((1..=accounts * branches).contains(&it[AID]));
                    if profile.is_transaction() {
                        assert!((1..=TELLERS * branches).contains(&it[TID]));
                        assert!((1..=branches).contains(&it[BID]));
                    }
                }
            }
        }
    }

    #[test]
    fn no_row_number_is_given_twice_and_those_of_a_session_grow() {
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

//! Which account, teller and branch, and how much.

use rand::Rng;
use rand::rngs::SmallRng;

use super::{ACCOUNTS_BID, AID, BID, DELTA, Data, Numbers, Profile, TELLERS, TELLERS_BID, TID};

/// The standard's (clause 5.3.5), and pgbench's.
const DELTA_MAX: i64 = 999_999;
const DELTA_MAX_LIKE: i64 = 5_000;
/// Of accounts that are of another branch than the teller's (clause 5.3.5).
const REMOTE_SHARE: f64 = 0.15;

/// Draws for the transactions of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    profile: Profile,
    branches: i64,
    /// Of each branch.
    accounts: i64,
}

impl Draws {
    pub fn of(data: &Data) -> Self {
        Self {
            profile: data.profile,
            branches: i64::from(data.scale),
            accounts: i64::from(data.accounts),
        }
    }

    pub fn draw(&self, random: &mut SmallRng) -> Numbers {
        let mut numbers = Numbers::default();
        match self.profile {
            Profile::Rw3 | Profile::Strict | Profile::Loop => self.strict(random, &mut numbers),
            Profile::Like => self.like(random, &mut numbers),
            Profile::Read => numbers[AID] = self.account(random),
            Profile::Update => {
                numbers[AID] = self.account(random);
                // So the sum of the balances counts the updates.
                numbers[DELTA] = 1;
            }
        }
        numbers[ACCOUNTS_BID] = (numbers[AID] - 1) / self.accounts + 1;
        numbers[TELLERS_BID] = (numbers[TID] - 1) / TELLERS + 1;
        numbers
    }

    /// A teller, its branch, and an account mostly of that branch.
    fn strict(&self, random: &mut SmallRng, numbers: &mut Numbers) {
        let teller = random.random_range(0..TELLERS * self.branches);
        let branch = teller / TELLERS;
        let home = match self.branches > 1 && random.random_bool(REMOTE_SHARE) {
            false => branch,
            true => (branch + random.random_range(1..self.branches)) % self.branches,
        };
        numbers[AID] = home * self.accounts + random.random_range(1..=self.accounts);
        numbers[TID] = teller + 1;
        numbers[BID] = branch + 1;
        numbers[DELTA] = random.random_range(-DELTA_MAX..=DELTA_MAX);
    }

    /// Each independent of the others.
    fn like(&self, random: &mut SmallRng, numbers: &mut Numbers) {
        numbers[AID] = self.account(random);
        numbers[BID] = random.random_range(1..=self.branches);
        numbers[TID] = random.random_range(1..=TELLERS * self.branches);
        numbers[DELTA] = random.random_range(-DELTA_MAX_LIKE..=DELTA_MAX_LIKE);
    }

    fn account(&self, random: &mut SmallRng) -> i64 {
        random.random_range(1..=self.accounts * self.branches)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const DRAWS: usize = 100_000;
    const ACCOUNTS_EACH: u32 = 2_000;

    fn drawn(profile: Profile, scale: u32) -> Vec<Numbers> {
        let draws = Draws::of(&Data {
            profile,
            scale,
            accounts: ACCOUNTS_EACH,
            files: 1,
        });
        let mut random = SmallRng::seed_from_u64(1);
        (0..DRAWS).map(|_| draws.draw(&mut random)).collect()
    }

    fn share(of: &[Numbers], is: impl Fn(&Numbers) -> bool) -> f64 {
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
    fn all_numbers_are_of_rows_that_there_are() {
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
}

//! The workload in the record language: what Btrieve's clients do. A record is read, with a lock,
//! and goes back whole with its new balance; numbers are text of 12 characters.

use super::dialect::{Check, Dialect, Step, Table};
use super::filling::{TABLES, chunks, records};
use super::sql::FORMAT;
use super::{Data, Profile, TELLERS};

const PREFIX: &str = "concurve_";
const NUMBER_BYTES: usize = 12;

pub const RECORDS: Records = Records;

#[derive(Debug)]
pub struct Records;

/// A file with balances: numbers from the first byte on, the key before the others, and something
/// that makes the record as long as the standard wants it (clause 3.2).
struct Layout {
    file: &'static str,
    /// Names of the numbers before the balance.
    numbers: &'static [&'static str],
    record_bytes: usize,
}

impl Table {
    fn layout(self) -> Layout {
        let (file, numbers): (_, &[_]) = match self {
            Self::Accounts => ("accounts", &["aid", "abid"]),
            Self::Tellers => ("tellers", &["tid", "tbid"]),
            Self::Branches => ("branches", &["bid"]),
        };
        Layout {
            file,
            numbers,
            record_bytes: 100,
        }
    }
}

impl Layout {
    /// Where the balance is.
    fn balance(&self) -> usize {
        NUMBER_BYTES * self.numbers.len()
    }

    fn filler(&self) -> String {
        "x".repeat(self.record_bytes - self.balance() - NUMBER_BYTES)
    }
}

/// Of the history: teller, branch, account, delta, time. It has no key, as in SQL.
const HISTORY_BYTES: usize = 5 * NUMBER_BYTES;
const TID: usize = 0;
const BID: usize = NUMBER_BYTES;
const DELTA: usize = 3 * NUMBER_BYTES;

impl Dialect for Records {
    fn step(&self, step: Step, set: u32) -> Vec<String> {
        match step {
            Step::Begin => vec!["BEGIN".to_owned()],
            Step::Read(table) => vec![read(table, set, "")],
            // What is to be written back was read: updating a balance is reading it, too.
            Step::Update(table) | Step::ReadUpdate(table) => {
                vec![read(table, set, " SINGLE"), update(table, set)]
            }
            Step::Insert => vec![format!(
                "INSERT {} {{tid}}{{bid}}{{aid}}{{delta}}{{time}}",
                name("history", set)
            )],
            Step::End => vec!["END".to_owned()],
        }
    }

    fn place(&self) -> &'static str {
        "files concurve_…"
    }

    fn occupied(&self) -> String {
        format!("FILES {PREFIX}")
    }

    fn marked(&self) -> String {
        format!("FILES {PREFIX}marks")
    }

    fn mark(&self, name: &str) -> String {
        let name = mark_name(name);
        format!("GET EQUAL {PREFIX}marks 0 {name} FIELD {NUMBER_BYTES} {NUMBER_BYTES}")
    }

    fn drop_all(&self) -> Box<dyn Iterator<Item = String> + Send> {
        let files = [
            "history_*",
            "accounts_*",
            "tellers_*",
            "branches_*",
            "marks",
        ];
        Box::new(files.into_iter().map(|it| format!("DROP {PREFIX}{it}")))
    }

    fn make(&self, data: Data) -> Box<dyn Iterator<Item = String> + Send> {
        let mark = |(name, number): (&str, i64)| {
            format!("INSERT {PREFIX}marks {}{number:012}", mark_name(name))
        };
        let bytes = 2 * NUMBER_BYTES;
        let begin = [
            format!("CREATE {PREFIX}marks {bytes} KEY 0:{NUMBER_BYTES}:text"),
            mark(("format", FORMAT)),
        ];
        let end = [
            ("workload", data.profile.code()),
            ("scale", i64::from(data.scale)),
            ("accounts", i64::from(data.accounts)),
            ("files", i64::from(data.files)),
        ];
        let sets = (1..=data.files).flat_map(move |set| make_set(data, set));
        Box::new(begin.into_iter().chain(sets).chain(end.map(mark)))
    }

    fn checks(&self, data: Data) -> Vec<Check> {
        let sets = 1..=data.files;
        sets.flat_map(|set| {
            let mut checks = counts(data, set);
            if data.profile.is_transaction() {
                let changed = data.profile.changes().iter();
                checks.extend(changed.map(|table| sums(*table, set)));
            }
            if matches!(data.profile, Profile::Strict | Profile::Rw3) {
                checks.extend(sums_of_each(set));
            }
            checks
        })
        .collect()
    }

    fn committed(&self, data: Data) -> Vec<String> {
        let question = |set| match data.profile {
            Profile::Read => None,
            Profile::Update => {
                let balance = Table::Accounts.layout().balance();
                let accounts = name("accounts", set);
                Some(format!("SUM {accounts} {balance} {NUMBER_BYTES}"))
            }
            Profile::Rw3 | Profile::Strict | Profile::Like | Profile::Loop => {
                Some(format!("COUNT {}", name("history", set)))
            }
        };
        (1..=data.files).filter_map(question).collect()
    }
}

fn name(file: &str, set: u32) -> String {
    format!("{PREFIX}{file}_{set}")
}

fn mark_name(name: &str) -> String {
    format!("{name:_<NUMBER_BYTES$}")
}

/// With a lock, so that two that will write do not wait for each other.
fn read(table: Table, set: u32, bias: &str) -> String {
    let layout = table.layout();
    let (name, key) = (name(layout.file, set), layout.numbers[0]);
    let balance = layout.balance();
    format!("GET EQUAL {name} 0 {{{key}}}{bias} FIELD {balance} {NUMBER_BYTES}")
}

fn update(table: Table, set: u32) -> String {
    let layout = table.layout();
    let numbers: String = layout
        .numbers
        .iter()
        .map(|it| format!("{{{it}}}"))
        .collect();
    let (name, filler) = (name(layout.file, set), layout.filler());
    format!("UPDATE {name} {numbers}{{balance}}{filler}")
}

/// Makes and fills the four files of a set.
fn make_set(data: Data, set: u32) -> impl Iterator<Item = String> {
    let (branches, accounts) = (i64::from(data.scale), i64::from(data.accounts));
    let made = TABLES.map(|table| {
        let Layout {
            file, record_bytes, ..
        } = table.layout();
        create(
            file,
            set,
            record_bytes,
            &format!(" KEY 0:{NUMBER_BYTES}:text"),
        )
    });
    let history = create("history", set, HISTORY_BYTES, "");
    let zero = 0;
    let filler = Table::Branches.layout().filler();
    let filled = format!(
        "FILL {} 1 {branches} {zero:012}{filler}",
        name("branches", set)
    );
    let of_branches = (1..=branches).flat_map(move |branch| {
        let tellers = fill(Table::Tellers, set, branch, TELLERS);
        tellers.chain(fill(Table::Accounts, set, branch, accounts))
    });
    made.into_iter().chain([history, filled]).chain(of_branches)
}

fn create(file: &str, set: u32, record_bytes: usize, key: &str) -> String {
    format!("CREATE {} {record_bytes}{key}", name(file, set))
}

/// The records of one branch.
fn fill(table: Table, set: u32, branch: i64, each: i64) -> impl Iterator<Item = String> {
    let layout = table.layout();
    let name = name(layout.file, set);
    let rest = format!("{branch:012}{:012}{}", 0, layout.filler());
    chunks(branch, each).map(move |(first, last)| format!("FILL {name} {first} {last} {rest}"))
}

fn counts(data: Data, set: u32) -> Vec<Check> {
    let count = |(table, records): (Table, i64)| {
        let name = name(table.layout().file, set);
        Check {
            says: format!("{name} has {records} records"),
            statement: format!("COUNT {name}"),
            must_be: records,
        }
    };
    records(data).map(count).collect()
}

/// Σ balances = Σ deltas.
fn sums(table: Table, set: u32) -> Check {
    let layout = table.layout();
    let (name, history) = (name(layout.file, set), name("history", set));
    Check {
        says: format!("the balances of {name} add up to the deltas of {history}"),
        statement: compare(&sum(&name, layout.balance()), &sum(&history, DELTA)),
        must_be: 0,
    }
}

/// The same of each branch and each teller, and of each branch with its tellers.
fn sums_of_each(set: u32) -> [Check; 3] {
    let [branches, tellers, history] =
        ["branches", "tellers", "history"].map(|file| name(file, set));
    let by = |sum: String, at: usize| format!("{sum} BY {at} {NUMBER_BYTES}");
    let own = |table: Table, name: &str| by(sum(name, table.layout().balance()), 0);
    let deltas = |at: usize| by(sum(&history, DELTA), at);
    let of_tellers = by(
        sum(&tellers, Table::Tellers.layout().balance()),
        NUMBER_BYTES,
    );
    let check = |says: String, one: String, other: String| Check {
        says,
        statement: compare(&one, &other),
        must_be: 0,
    };
    [
        check(
            format!("each balance of {branches} is the sum of its deltas in {history}"),
            own(Table::Branches, &branches),
            deltas(BID),
        ),
        check(
            format!("each balance of {tellers} is the sum of its deltas in {history}"),
            own(Table::Tellers, &tellers),
            deltas(TID),
        ),
        check(
            format!("each balance of {branches} is the sum of its {tellers}"),
            own(Table::Branches, &branches),
            of_tellers,
        ),
    ]
}

fn sum(file: &str, at: usize) -> String {
    format!("{file} {at} {NUMBER_BYTES}")
}

fn compare(one: &str, other: &str) -> String {
    format!("COMPARE {one} WITH {other}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_read_with_a_lock_and_goes_back_in_its_record() {
        let steps = RECORDS.step(Step::ReadUpdate(Table::Accounts), 3);
        let filler = "x".repeat(64);
        assert_eq!(
            steps,
            [
                "GET EQUAL concurve_accounts_3 0 {aid} SINGLE FIELD 24 12".to_owned(),
                format!("UPDATE concurve_accounts_3 {{aid}}{{abid}}{{balance}}{filler}"),
            ]
        );
        assert_eq!(
            RECORDS.step(Step::Read(Table::Branches), 1),
            ["GET EQUAL concurve_branches_1 0 {bid} FIELD 12 12"]
        );
    }
}

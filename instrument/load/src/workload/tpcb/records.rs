//! The workload in the record language, as clients of Btrieve work: a record is read with a lock, and
//! written back whole with its new balance. Numbers are text of 12 characters.

use super::dialect::{Dialect, FORMAT, PREFIX, fill_ranges};
use super::profile::{BankData, Profile, Step, TABLES, TELLERS, Table};
use crate::dataset::Check;

pub const RECORDS: Records = Records;

#[derive(Debug)]
pub struct Records;

impl Dialect for Records {
    fn step(&self, step: Step, set: u32) -> Vec<String> {
        match step {
            Step::Begin => vec!["BEGIN".to_owned()],
            Step::Read(table) => vec![read(table, set, "")],
            // An update writes the whole record back, so it must read it first.
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

    fn read_metadata(&self, name: &str) -> String {
        let name = metadata_name(name);
        format!("GET EQUAL {PREFIX}marks 0 {name} FIELD {NUMBER_BYTES} {NUMBER_BYTES}")
    }

    fn make(&self, data: BankData) -> Box<dyn Iterator<Item = String> + Send> {
        let insert_metadata = |(name, number): (&str, i64)| {
            format!("INSERT {PREFIX}marks {}{number:012}", metadata_name(name))
        };
        let bytes = 2 * NUMBER_BYTES;
        let begin = [
            format!("CREATE {PREFIX}marks {bytes} KEY 0:{NUMBER_BYTES}:text"),
            insert_metadata(("format", FORMAT)),
        ];
        let end = [
            ("workload", data.profile.code()),
            ("scale", i64::from(data.scale)),
            ("accounts", i64::from(data.accounts)),
            ("files", i64::from(data.files)),
        ];
        let sets = (1..=data.files).flat_map(move |set| make_set(data, set));
        Box::new(
            begin
                .into_iter()
                .chain(sets)
                .chain(end.map(insert_metadata)),
        )
    }

    fn checks(&self, data: BankData) -> Vec<Check> {
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

    fn count_committed(&self, data: BankData) -> Vec<String> {
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

fn metadata_name(name: &str) -> String {
    format!("{name:_<NUMBER_BYTES$}")
}

/// Reads a balance; `bias` ` SINGLE` locks the record, so that two transactions which will both
/// update it do not deadlock.
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

const NUMBER_BYTES: usize = 12;

/// The record of a file with balances: numbers from the first byte on, the key first, and a filler
/// for the record length of the standard (clause 3.2).
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
    /// Offset of the balance.
    fn balance(&self) -> usize {
        NUMBER_BYTES * self.numbers.len()
    }

    /// The bytes after the balance.
    fn filler(&self) -> String {
        "x".repeat(self.record_bytes - self.balance() - NUMBER_BYTES)
    }
}

/// A record of the history: teller, branch, account, delta, time. It has no key, as in SQL.
const HISTORY_BYTES: usize = 5 * NUMBER_BYTES;
const TID: usize = 0;
const BID: usize = NUMBER_BYTES;
const DELTA: usize = 3 * NUMBER_BYTES;

/// The name of a file of a set.
fn name(file: &str, set: u32) -> String {
    format!("{PREFIX}{file}_{set}")
}

/// Makes and fills the four files of a set.
fn make_set(data: BankData, set: u32) -> impl Iterator<Item = String> {
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
    fill_ranges(branch, each).map(move |(first, last)| format!("FILL {name} {first} {last} {rest}"))
}

/// Numbers of records.
fn counts(data: BankData, set: u32) -> Vec<Check> {
    let count = |(table, records): (Table, i64)| {
        let name = name(table.layout().file, set);
        Check {
            claim: format!("{name} has {records} records"),
            statement: format!("COUNT {name}"),
            expected: records,
        }
    };
    data.rows().into_iter().map(count).collect()
}

/// Σ balances = Σ deltas.
fn sums(table: Table, set: u32) -> Check {
    let layout = table.layout();
    let (name, history) = (name(layout.file, set), name("history", set));
    Check {
        claim: format!("the balances of {name} add up to the deltas of {history}"),
        statement: compare(&sum(&name, layout.balance()), &sum(&history, DELTA)),
        expected: 0,
    }
}

/// The same for each branch and each teller, and for each branch and its tellers.
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
    let check = |claim: String, one: String, other: String| Check {
        claim,
        statement: compare(&one, &other),
        expected: 0,
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

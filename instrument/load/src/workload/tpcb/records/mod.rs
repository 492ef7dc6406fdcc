//! The workload in the record language: what Btrieve's clients do. A record is read, with a lock,
//! and goes back whole with its new balance; numbers are text of 12 characters.

mod checks;
mod layout;
mod make;

use super::dialect::{Check, Dialect, Step, Table};
use super::sql::FORMAT;
use super::{Data, Profile};
use checks::{counts, sums, sums_of_each};
use layout::{NUMBER_BYTES, PREFIX, name};
use make::make_set;

pub const RECORDS: Records = Records;

#[derive(Debug)]
pub struct Records;

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

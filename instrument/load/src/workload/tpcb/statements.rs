//! The workload in the statement service's language: files of numbers, changed by adding to them.

use super::dialect::{Dialect, FORMAT, PREFIX, fill_ranges};
use super::profile::{BankData, Profile, Step, TABLES, TELLERS, Table};
use crate::dataset::Check;

/// Length of a row in the standard (clause 3.2).
const ROW_BYTES: usize = 100;
/// The range of all keys.
const ALL_KEYS: &str = "FROM -9223372036854775808 TO 9223372036854775807";
/// Metadata entries; their keys are their positions, from 1.
const METADATA: [&str; 5] = ["format", "workload", "scale", "accounts", "files"];
const HISTORY: &str = "row tid bid aid delta time";

pub const STATEMENTS: Statements = Statements;

#[derive(Debug)]
pub struct Statements;

/// A file with balances.
struct Layout {
    file: &'static str,
    key: &'static str,
    balance: &'static str,
}

impl Table {
    fn fields(self) -> Layout {
        let (file, key, balance) = match self {
            Self::Accounts => ("accounts", "aid", "abalance"),
            Self::Tellers => ("tellers", "tid", "tbalance"),
            Self::Branches => ("branches", "bid", "bbalance"),
        };
        Layout { file, key, balance }
    }
}

impl Dialect for Statements {
    fn step(&self, step: Step, set: u32) -> Vec<String> {
        match step {
            Step::Begin => vec!["BEGIN".to_owned()],
            Step::Read(table) => vec![read(table, set)],
            Step::Update(table) => vec![update(table, set)],
            // Two transactions that read a record and then both update it would deadlock.
            Step::ReadUpdate(table) => {
                vec![read(table, set) + " FOR UPDATE", update(table, set)]
            }
            Step::Insert => vec![format!(
                "INSERT {} {{row}} {{tid}} {{bid}} {{aid}} {{delta}} {{time}}",
                name("history", set)
            )],
            Step::End => vec!["END".to_owned()],
        }
    }

    fn read_metadata(&self, name: &str) -> String {
        format!("GET {PREFIX}marks number KEY {}", metadata_key(name))
    }

    fn make(&self, data: BankData) -> Box<dyn Iterator<Item = String> + Send> {
        let insert_metadata = |(name, number): (&str, i64)| {
            format!("INSERT {PREFIX}marks {} {number}", metadata_key(name))
        };
        let begin = [
            format!("CREATE {PREFIX}marks name number"),
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
        let of_set = |set| {
            let mut checks = counts(data, set);
            if data.profile.is_transaction() {
                let changed = data.profile.changes().iter();
                checks.extend(changed.map(|table| sums(*table, set)));
            }
            if matches!(data.profile, Profile::Strict | Profile::Rw3) {
                checks.extend(sums_of_each(set));
            }
            checks
        };
        (1..=data.files).flat_map(of_set).collect()
    }

    fn count_committed(&self, data: BankData) -> Vec<String> {
        let question = |set| match data.profile {
            Profile::Read => None,
            Profile::Update => Some(format!("SUM {} abalance {ALL_KEYS}", name("accounts", set))),
            Profile::Rw3 | Profile::Strict | Profile::Like | Profile::Loop => {
                Some(format!("COUNT {} {ALL_KEYS}", name("history", set)))
            }
        };
        (1..=data.files).filter_map(question).collect()
    }
}

fn name(file: &str, set: u32) -> String {
    format!("{PREFIX}{file}_{set}")
}

fn metadata_key(name: &str) -> usize {
    let at = METADATA.iter().position(|it| *it == name);
    at.expect("there are no others") + 1
}

fn read(table: Table, set: u32) -> String {
    let Layout { file, key, balance } = table.fields();
    format!("GET {} {balance} KEY {{{key}}}", name(file, set))
}

fn update(table: Table, set: u32) -> String {
    let Layout { file, key, balance } = table.fields();
    format!("ADD {} {balance} {{delta}} KEY {{{key}}}", name(file, set))
}

/// Makes and fills the four files of a set.
fn make_set(data: BankData, set: u32) -> impl Iterator<Item = String> {
    let (branches, accounts) = (i64::from(data.scale), i64::from(data.accounts));
    let made = TABLES.map(|table| {
        let Layout { file, key, balance } = table.fields();
        let branch = match table {
            Table::Branches => "",
            Table::Accounts | Table::Tellers => " bid",
        };
        let name = name(file, set);
        format!("CREATE {name} {key}{branch} {balance} BYTES {ROW_BYTES}")
    });
    let history = format!("CREATE {} {HISTORY}", name("history", set));
    let filled = format!("FILL {} 1 {branches} 0", name("branches", set));
    let of_branches = (1..=branches).flat_map(move |branch| {
        let tellers = fill(Table::Tellers, set, branch, TELLERS);
        tellers.chain(fill(Table::Accounts, set, branch, accounts))
    });
    made.into_iter().chain([history, filled]).chain(of_branches)
}

/// The records of one branch.
fn fill(table: Table, set: u32, branch: i64, each: i64) -> impl Iterator<Item = String> {
    let name = name(table.fields().file, set);
    fill_ranges(branch, each)
        .map(move |(first, last)| format!("FILL {name} {first} {last} {branch} 0"))
}

fn counts(data: BankData, set: u32) -> Vec<Check> {
    let count = |(table, records): (Table, i64)| {
        let name = name(table.fields().file, set);
        Check {
            claim: format!("{name} has {records} records"),
            statement: format!("COUNT {name} {ALL_KEYS}"),
            expected: records,
        }
    };
    data.rows().into_iter().map(count).collect()
}

/// Σ balances = Σ deltas.
fn sums(table: Table, set: u32) -> Check {
    let Layout { file, balance, .. } = table.fields();
    let (name, history) = (name(file, set), name("history", set));
    Check {
        claim: format!("the balances of {name} add up to the deltas of {history}"),
        statement: format!("COMPARE {name} {balance} WITH {history} delta"),
        expected: 0,
    }
}

/// The same for each branch and each teller, and for each branch and its tellers.
fn sums_of_each(set: u32) -> [Check; 3] {
    let [branches, tellers, history] =
        ["branches", "tellers", "history"].map(|file| name(file, set));
    let compare = |claim: String, one: String, other: String| Check {
        claim,
        statement: format!("COMPARE {one} WITH {other}"),
        expected: 0,
    };
    [
        compare(
            format!("each balance of {branches} is the sum of its deltas in {history}"),
            format!("{branches} bbalance BY bid"),
            format!("{history} delta BY bid"),
        ),
        compare(
            format!("each balance of {tellers} is the sum of its deltas in {history}"),
            format!("{tellers} tbalance BY tid"),
            format!("{history} delta BY tid"),
        ),
        compare(
            format!("each balance of {branches} is the sum of its {tellers}"),
            format!("{branches} bbalance BY bid"),
            format!("{tellers} tbalance BY bid"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_transaction_will_update_it_reads_for_update() {
        let steps = Profile::Rw3.steps().into_iter();
        let texts: Vec<String> = steps.flat_map(|it| STATEMENTS.step(it, 1)).collect();
        assert_eq!(
            texts[1],
            "GET concurve_accounts_1 abalance KEY {aid} FOR UPDATE"
        );
        assert_eq!(
            texts[2],
            "ADD concurve_accounts_1 abalance {delta} KEY {aid}"
        );
        let reads = texts.iter().filter(|it| it.starts_with("GET"));
        assert!(reads.clone().count() == 3 && reads.clone().all(|it| it.ends_with("UPDATE")));
    }

    #[test]
    fn a_loop_reads_three_times_then_updates_and_inserts() {
        let steps = Profile::Loop.steps().into_iter();
        let texts: Vec<String> = steps.flat_map(|it| STATEMENTS.step(it, 2)).collect();
        assert_eq!(
            texts,
            [
                "GET concurve_accounts_2 abalance KEY {aid}",
                "GET concurve_tellers_2 tbalance KEY {tid}",
                "GET concurve_branches_2 bbalance KEY {bid}",
                "BEGIN",
                "ADD concurve_accounts_2 abalance {delta} KEY {aid}",
                "INSERT concurve_history_2 {row} {tid} {bid} {aid} {delta} {time}",
                "END",
            ]
        );
    }
}

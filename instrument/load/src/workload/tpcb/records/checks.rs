//! What must hold of the files of a set after a load.

use super::layout::{BID, DELTA, NUMBER_BYTES, TID, name};
use crate::workload::tpcb::Data;
use crate::workload::tpcb::dialect::{Check, Table};
use crate::workload::tpcb::filling::records;

/// Numbers of records.
pub fn counts(data: Data, set: u32) -> Vec<Check> {
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
pub fn sums(table: Table, set: u32) -> Check {
    let layout = table.layout();
    let (name, history) = (name(layout.file, set), name("history", set));
    Check {
        says: format!("the balances of {name} add up to the deltas of {history}"),
        statement: compare(&sum(&name, layout.balance()), &sum(&history, DELTA)),
        must_be: 0,
    }
}

/// The same of each branch and each teller, and of each branch with its tellers.
pub fn sums_of_each(set: u32) -> [Check; 3] {
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

//! Making the files of a set, and filling them.

use super::layout::{HISTORY_BYTES, Layout, NUMBER_BYTES, name};
use crate::workload::tpcb::dialect::Table;
use crate::workload::tpcb::filling::{TABLES, chunks};
use crate::workload::tpcb::{Data, TELLERS};

/// Makes and fills the four files of a set.
pub fn make_set(data: Data, set: u32) -> impl Iterator<Item = String> {
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

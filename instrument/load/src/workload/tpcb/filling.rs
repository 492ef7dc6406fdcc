//! What the files of records hold, whichever language they are filled in.

use super::dialect::Table;
use super::{Data, TELLERS};

/// Records that one statement makes: others wait meanwhile.
const CHUNK: i64 = 10_000;

/// The files with balances.
pub const TABLES: [Table; 3] = [Table::Branches, Table::Tellers, Table::Accounts];

/// First and last number of the records that each statement makes, of a branch that has so many.
pub fn chunks(branch: i64, each: i64) -> impl Iterator<Item = (i64, i64)> {
    let (begin, end) = ((branch - 1) * each, branch * each);
    let firsts = (begin..end).step_by(CHUNK as usize);
    firsts.map(move |before| (before + 1, end.min(before + CHUNK)))
}

/// How many records each file has.
pub fn records(data: Data) -> impl Iterator<Item = (Table, i64)> {
    let branches = i64::from(data.scale);
    let each = [1, TELLERS, i64::from(data.accounts)];
    TABLES.into_iter().zip(each.map(|each| each * branches))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_a_branch_is_made_once() {
        let made: Vec<_> = chunks(3, 12_500).collect();
        assert_eq!(made, [(25_001, 35_000), (35_001, 37_500)]);
        assert_eq!(chunks(2, 10).collect::<Vec<_>>(), [(11, 20)]);
    }
}

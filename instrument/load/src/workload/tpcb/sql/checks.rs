//! What must hold of the tables.

use super::{ALL, Check, Columns, Data, Profile, Sql, TELLERS, Table};

impl Sql {
    pub(super) fn counts(&self, data: Data, set: u32) -> Vec<Check> {
        let branches = i64::from(data.scale);
        let rows = [
            branches,
            TELLERS * branches,
            i64::from(data.accounts) * branches,
        ];
        let count = |(table, rows): (Table, i64)| {
            let name = self.name(table.columns().table, set);
            Check {
                says: format!("{name} has {rows} rows"),
                statement: format!("SELECT count(*) FROM {name}"),
                must_be: rows,
            }
        };
        ALL.into_iter().zip(rows).map(count).collect()
    }

    /// Σ balances = Σ deltas, in each table that is changed.
    pub(super) fn sums(&self, profile: Profile, set: u32) -> Vec<Check> {
        let history = self.name("history", set);
        let sum = |table: &Table| {
            let Columns { table, balance, .. } = table.columns();
            let name = self.name(table, set);
            Check {
                says: format!("the balances of {name} add up to the deltas of {history}"),
                statement: format!(
                    "SELECT (SELECT sum({balance}) FROM {name}) - (SELECT coalesce(sum(delta), 0) FROM {history})"
                ),
                must_be: 0,
            }
        };
        profile.changes().iter().map(sum).collect()
    }

    /// The same of each branch and each teller, and of each branch with its tellers.
    pub(super) fn sums_of_each(&self, set: u32) -> Vec<Check> {
        let [branches, tellers, history] =
            ["branches", "tellers", "history"].map(|it| self.name(it, set));
        let check = |says: String, own: &str, balance: &str, key: &str, sums: String| Check {
            says,
            statement: format!(
                "SELECT count(*) FROM {own} AS own LEFT JOIN ({sums}) AS sums ON sums.k = own.{key} WHERE own.{balance} <> coalesce(sums.s, 0)"
            ),
            must_be: 0,
        };
        let deltas =
            |key: &str| format!("SELECT {key} AS k, sum(delta) AS s FROM {history} GROUP BY {key}");
        vec![
            check(
                format!("each balance of {branches} is the sum of its deltas in {history}"),
                &branches,
                "bbalance",
                "bid",
                deltas("bid"),
            ),
            check(
                format!("each balance of {tellers} is the sum of its deltas in {history}"),
                &tellers,
                "tbalance",
                "tid",
                deltas("tid"),
            ),
            check(
                format!("each balance of {branches} is the sum of its {tellers}"),
                &branches,
                "bbalance",
                "bid",
                format!("SELECT bid AS k, sum(tbalance) AS s FROM {tellers} GROUP BY bid"),
            ),
        ]
    }
}

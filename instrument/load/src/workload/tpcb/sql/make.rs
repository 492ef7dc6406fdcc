//! Tables, and the rows that they begin with.

use super::{ALL, Columns, Data, Sql, TELLERS, Table};

/// Rows that one statement makes.
const CHUNK: i64 = 100_000;
/// Of a row of the history; pgbench's statement does not name it.
const HISTORY_FILLER: usize = 22;

impl Sql {
    /// Makes and fills the four tables of a set.
    pub(super) fn make_set(&self, data: Data, set: u32) -> Vec<String> {
        let (branches, accounts) = (i64::from(data.scale), i64::from(data.accounts));
        let mut statements: Vec<String> = ALL.map(|table| self.create_table(table, set)).into();
        let history = self.name("history", set);
        statements.push(format!(
            "CREATE TABLE {history} (tid int, bid int, aid int, delta bigint, mtime timestamp, filler char({HISTORY_FILLER}) DEFAULT '{}'){}",
            "h".repeat(HISTORY_FILLER),
            self.engine
        ));
        statements.push(self.fill(Table::Branches, set, "i", 1, branches));
        let mut first = 1;
        while first <= branches {
            let last = branches.min(first + CHUNK / TELLERS - 1);
            statements.push(self.fill_tellers(set, first, last));
            first = last + 1;
        }
        for branch in 1..=branches {
            let last = branch * accounts;
            let first = last - accounts + 1;
            statements.push(self.fill(Table::Accounts, set, &branch.to_string(), first, last));
        }
        let filled = ALL.map(|table| self.name(table.columns().table, set));
        statements.extend(filled.map(|name| format!("{}{name}", self.settle)));
        statements
    }

    fn create_table(&self, table: Table, set: u32) -> String {
        let columns = table.columns();
        let Columns { key, balance, .. } = columns;
        let branch = match table {
            Table::Branches => "",
            Table::Accounts | Table::Tellers => "bid int NOT NULL, ",
        };
        format!(
            "CREATE TABLE {} ({key} INTEGER PRIMARY KEY, {branch}{balance} bigint NOT NULL, filler char({})){}",
            self.name(columns.table, set),
            columns.filler,
            self.engine
        )
    }

    /// Rows with the numbers of a range as their keys, `bid` as their branch.
    fn fill(&self, table: Table, set: u32, bid: &str, first: i64, last: i64) -> String {
        let columns = table.columns();
        let branch = match table {
            Table::Branches => String::new(),
            Table::Accounts | Table::Tellers => format!("{bid}, "),
        };
        format!(
            "INSERT INTO {} SELECT i, {branch}0, '{}' FROM {} ORDER BY i",
            self.name(columns.table, set),
            "x".repeat(columns.filler),
            range(first, last)
        )
    }

    /// The tellers of a range of branches.
    fn fill_tellers(&self, set: u32, first: i64, last: i64) -> String {
        let columns = Table::Tellers.columns();
        format!(
            "INSERT INTO {} SELECT (i - 1) * {TELLERS} + t.n + 1, i, 0, '{}' FROM {}, {} AS t ORDER BY 1",
            self.name(columns.table, set),
            "x".repeat(columns.filler),
            range(first, last),
            digits()
        )
    }
}

/// The numbers from `first` to `last`, at most [`CHUNK`], as a table `r` with the column `i`. In
/// words that every SQL server knows.
fn range(first: i64, last: i64) -> String {
    let rows = last - first + 1;
    debug_assert!(rows <= CHUNK);
    let places = (1..=5)
        .find(|places| 10_i64.pow(*places) >= rows)
        .unwrap_or(5);
    let terms: Vec<String> = (0..places)
        .map(|place| format!("d{place}.n * {}", 10_i64.pow(place)))
        .collect();
    let tables: Vec<String> = (0..places)
        .map(|place| format!("{} AS d{place}", digits()))
        .collect();
    format!(
        "(SELECT i FROM (SELECT {first} + {} AS i FROM {}) AS a WHERE i <= {last}) AS r",
        terms.join(" + "),
        tables.join(", ")
    )
}

/// 0 to 9, as a table with the column `n`.
fn digits() -> String {
    let rest: Vec<String> = (1..10)
        .map(|digit| format!(" UNION ALL SELECT {digit}"))
        .collect();
    format!("(SELECT 0 AS n{})", rest.concat())
}

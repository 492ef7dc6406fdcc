//! The workload in SQL: PostgreSQL, MySQL and MariaDB, SQLite.

use super::dialect::{Dialect, FORMAT};
use super::profile::{BankData, FILES_MAX, Profile, Step, TABLES, TELLERS, Table};
use crate::dataset::Check;

/// Rows that one statement makes.
const ROWS_MAX: i64 = 100_000;
/// Bytes of the filler in a row of the history; pgbench's statement does not name it.
const HISTORY_FILLER: usize = 22;

/// What differs between servers.
#[derive(Debug)]
pub struct Sql {
    location: &'static str,
    /// In front of every table's name.
    prefix: &'static str,
    begin: &'static str,
    end: &'static str,
    /// Creates and drops the schema or database that contains the tables.
    create: Option<&'static str>,
    drop: Option<&'static str>,
    count_objects: &'static str,
    count_metadata_tables: &'static str,
    /// After the columns of a table.
    engine: &'static str,
    /// The command that prepares a filled table for the load, before its name.
    after_fill: &'static str,
}

pub const POSTGRES: Sql = Sql {
    location: "schema concurve",
    prefix: "concurve.",
    begin: "BEGIN",
    end: "END",
    create: Some("CREATE SCHEMA concurve"),
    drop: Some("DROP SCHEMA concurve"),
    count_objects: "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'concurve'",
    count_metadata_tables: "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'concurve' AND tablename = 'marks'",
    engine: "",
    after_fill: "VACUUM ANALYZE ",
};

pub const MYSQL: Sql = Sql {
    location: "database concurve",
    prefix: "concurve.",
    begin: "BEGIN",
    end: "COMMIT",
    create: Some("CREATE DATABASE IF NOT EXISTS concurve"),
    // `DROP DATABASE` would also drop tables that this program has not created.
    drop: None,
    count_objects: "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'concurve'",
    count_metadata_tables: "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'concurve' AND table_name = 'marks'",
    engine: " ENGINE = InnoDB",
    after_fill: "ANALYZE TABLE ",
};

pub const SQLITE: Sql = Sql {
    location: "tables concurve_…",
    prefix: "concurve_",
    // A transaction that begins with a read, and finds another one writing when it writes itself,
    // would fail and could not be repeated by waiting.
    begin: "BEGIN IMMEDIATE",
    end: "END",
    create: None,
    drop: None,
    count_objects: "SELECT count(*) FROM sqlite_master WHERE substr(name, 1, 9) = 'concurve_'",
    count_metadata_tables: "SELECT count(*) FROM sqlite_master WHERE name = 'concurve_marks'",
    engine: "",
    after_fill: "ANALYZE ",
};

/// The table of a file with balances.
struct Columns {
    table: &'static str,
    key: &'static str,
    balance: &'static str,
    /// Bytes of the filler, for the row length of the standard (clause 3.2).
    filler: usize,
}

impl Table {
    fn columns(self) -> Columns {
        let (table, key, balance, filler) = match self {
            Self::Accounts => ("accounts", "aid", "abalance", 84),
            Self::Tellers => ("tellers", "tid", "tbalance", 84),
            Self::Branches => ("branches", "bid", "bbalance", 88),
        };
        Columns {
            table,
            key,
            balance,
            filler,
        }
    }
}

impl Dialect for Sql {
    fn step(&self, step: Step, set: u32) -> Vec<String> {
        match step {
            Step::Begin => vec![self.begin.to_owned()],
            Step::Read(table) => vec![self.read(table, set)],
            Step::Update(table) => vec![self.update(table, set)],
            Step::ReadUpdate(table) => vec![self.read(table, set), self.update(table, set)],
            Step::Insert => vec![format!(
                "INSERT INTO {} (tid, bid, aid, delta, mtime) VALUES ({{tid}}, {{bid}}, {{aid}}, {{delta}}, CURRENT_TIMESTAMP)",
                self.name("history", set)
            )],
            Step::End => vec![self.end.to_owned()],
        }
    }

    fn location(&self) -> &'static str {
        self.location
    }

    fn count_objects(&self) -> String {
        self.count_objects.to_owned()
    }

    fn count_metadata_tables(&self) -> String {
        self.count_metadata_tables.to_owned()
    }

    fn read_metadata(&self, name: &str) -> String {
        format!(
            "SELECT number FROM {}marks WHERE name = '{name}'",
            self.prefix
        )
    }

    fn drop_all(&self) -> Box<dyn Iterator<Item = String> + Send> {
        let files = (1..=FILES_MAX).flat_map(|set| {
            let names = ["history", "accounts", "tellers", "branches"];
            names.map(|name| self.name(name, set))
        });
        let mut tables: Vec<String> = files.collect();
        tables.push(format!("{}marks", self.prefix));
        let tables = tables.into_iter();
        let tables = tables.map(|name| format!("DROP TABLE IF EXISTS {name}"));
        Box::new(tables.chain(self.drop.map(str::to_owned)))
    }

    fn make(&self, data: BankData) -> Box<dyn Iterator<Item = String> + Send> {
        let insert_metadata = |rows: &[(&str, i64)]| {
            let rows: Vec<String> = rows.iter().map(|(n, v)| format!("('{n}', {v})")).collect();
            let rows = rows.join(", ");
            format!(
                "INSERT INTO {}marks (name, number) VALUES {rows}",
                self.prefix
            )
        };
        let begin = self.create.map(str::to_owned).into_iter().chain([
            format!(
                "CREATE TABLE {}marks (name varchar(16) PRIMARY KEY, number bigint NOT NULL){}",
                self.prefix, self.engine
            ),
            insert_metadata(&[("format", FORMAT)]),
        ]);
        let end = insert_metadata(&[
            ("workload", data.profile.code()),
            ("scale", i64::from(data.scale)),
            ("accounts", i64::from(data.accounts)),
            ("files", i64::from(data.files)),
        ]);
        let sets: Vec<String> = (1..=data.files)
            .flat_map(|set| self.make_set(data, set))
            .collect();
        Box::new(begin.chain(sets).chain([end]))
    }

    fn checks(&self, data: BankData) -> Vec<Check> {
        let sets = 1..=data.files;
        sets.flat_map(|set| {
            let mut checks = self.counts(data, set);
            if data.profile.is_transaction() {
                checks.extend(self.sums(data.profile, set));
            }
            if matches!(data.profile, Profile::Strict | Profile::Rw3) {
                checks.extend(self.sums_of_each(set));
            }
            checks
        })
        .collect()
    }

    fn count_committed(&self, data: BankData) -> Vec<String> {
        let sets = 1..=data.files;
        let question = |set| match data.profile {
            Profile::Read => None,
            Profile::Update => Some(format!(
                "SELECT sum(abalance) FROM {}",
                self.name("accounts", set)
            )),
            Profile::Rw3 | Profile::Strict | Profile::Like | Profile::Loop => Some(format!(
                "SELECT count(*) FROM {}",
                self.name("history", set)
            )),
        };
        sets.filter_map(question).collect()
    }
}

impl Sql {
    fn name(&self, table: &str, set: u32) -> String {
        format!("{}{table}_{set}", self.prefix)
    }

    fn read(&self, table: Table, set: u32) -> String {
        let Columns {
            table,
            key,
            balance,
            ..
        } = table.columns();
        let name = self.name(table, set);
        format!("SELECT {balance} FROM {name} WHERE {key} = {{{key}}}")
    }

    fn update(&self, table: Table, set: u32) -> String {
        let Columns {
            table,
            key,
            balance,
            ..
        } = table.columns();
        let name = self.name(table, set);
        format!("UPDATE {name} SET {balance} = {balance} + {{delta}} WHERE {key} = {{{key}}}")
    }

    fn counts(&self, data: BankData, set: u32) -> Vec<Check> {
        let count = |(table, rows): (Table, i64)| {
            let name = self.name(table.columns().table, set);
            Check {
                claim: format!("{name} has {rows} rows"),
                statement: format!("SELECT count(*) FROM {name}"),
                expected: rows,
            }
        };
        data.rows().into_iter().map(count).collect()
    }

    /// Σ balances = Σ deltas, in each table that is changed.
    fn sums(&self, profile: Profile, set: u32) -> Vec<Check> {
        let history = self.name("history", set);
        let sum = |table: &Table| {
            let Columns { table, balance, .. } = table.columns();
            let name = self.name(table, set);
            Check {
                claim: format!("the balances of {name} add up to the deltas of {history}"),
                statement: format!(
                    "SELECT (SELECT sum({balance}) FROM {name}) - (SELECT coalesce(sum(delta), 0) FROM {history})"
                ),
                expected: 0,
            }
        };
        profile.changes().iter().map(sum).collect()
    }

    /// The same for each branch and each teller, and for each branch and its tellers.
    fn sums_of_each(&self, set: u32) -> Vec<Check> {
        let [branches, tellers, history] =
            ["branches", "tellers", "history"].map(|it| self.name(it, set));
        let check = |claim: String, own: &str, balance: &str, key: &str, sums: String| Check {
            claim,
            statement: format!(
                "SELECT count(*) FROM {own} AS own LEFT JOIN ({sums}) AS sums ON sums.k = own.{key} WHERE own.{balance} <> coalesce(sums.s, 0)"
            ),
            expected: 0,
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

    /// Makes and fills the four tables of a set.
    fn make_set(&self, data: BankData, set: u32) -> Vec<String> {
        let (branches, accounts) = (i64::from(data.scale), i64::from(data.accounts));
        let mut statements: Vec<String> = TABLES.map(|table| self.create_table(table, set)).into();
        let history = self.name("history", set);
        statements.push(format!(
            "CREATE TABLE {history} (tid int, bid int, aid int, delta bigint, mtime timestamp, filler char({HISTORY_FILLER}) DEFAULT '{}'){}",
            "h".repeat(HISTORY_FILLER),
            self.engine
        ));
        statements.push(self.fill(Table::Branches, set, "i", 1, branches));
        let mut first = 1;
        while first <= branches {
            let last = branches.min(first + ROWS_MAX / TELLERS - 1);
            statements.push(self.fill_tellers(set, first, last));
            first = last + 1;
        }
        for branch in 1..=branches {
            let last = branch * accounts;
            let first = last - accounts + 1;
            statements.push(self.fill(Table::Accounts, set, &branch.to_string(), first, last));
        }
        let filled = TABLES.map(|table| self.name(table.columns().table, set));
        statements.extend(filled.map(|name| format!("{}{name}", self.after_fill)));
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

    /// Inserts rows with the keys `first` to `last` and the branch `bid`.
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

/// The numbers from `first` to `last`, at most [`ROWS_MAX`], as a table `r` with the column `i`, in
/// SQL that every server knows.
fn range(first: i64, last: i64) -> String {
    let rows = last - first + 1;
    debug_assert!(rows <= ROWS_MAX);
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

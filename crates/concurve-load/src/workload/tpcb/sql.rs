//! The workload in SQL: PostgreSQL, MySQL and MariaDB, SQLite.

use super::dialect::{Check, Dialect, Step, Table};
use super::{Data, FILES_MAX, Profile, TELLERS};

/// Of the data's form; another number when tables or columns change.
pub const FORMAT: i64 = 1;
/// Rows that one statement makes.
const CHUNK: i64 = 100_000;

/// What differs between servers.
#[derive(Debug)]
pub struct Sql {
    place: &'static str,
    /// In front of every table's name.
    prefix: &'static str,
    begin: &'static str,
    end: &'static str,
    /// Makes and removes what the tables stand in.
    create: Option<&'static str>,
    drop: Option<&'static str>,
    occupied: &'static str,
    marked: &'static str,
    /// Behind the columns of a table.
    engine: &'static str,
    /// What is done with a table when it is filled, before its name.
    settle: &'static str,
}

pub const POSTGRES: Sql = Sql {
    place: "schema concurve",
    prefix: "concurve.",
    begin: "BEGIN",
    end: "END",
    create: Some("CREATE SCHEMA concurve"),
    drop: Some("DROP SCHEMA concurve"),
    occupied: "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'concurve'",
    marked: "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'concurve' AND tablename = 'marks'",
    engine: "",
    settle: "VACUUM ANALYZE ",
};

pub const MYSQL: Sql = Sql {
    place: "database concurve",
    prefix: "concurve.",
    begin: "BEGIN",
    end: "COMMIT",
    create: Some("CREATE DATABASE concurve"),
    drop: Some("DROP DATABASE concurve"),
    occupied: "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'concurve'",
    marked: "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'concurve' AND table_name = 'marks'",
    engine: " ENGINE = InnoDB",
    settle: "ANALYZE TABLE ",
};

pub const SQLITE: Sql = Sql {
    place: "tables concurve_…",
    prefix: "concurve_",
    // A transaction that reads first and cannot write then would fail for good.
    begin: "BEGIN IMMEDIATE",
    end: "END",
    create: None,
    drop: None,
    occupied: "SELECT count(*) FROM sqlite_master WHERE substr(name, 1, 9) = 'concurve_'",
    marked: "SELECT count(*) FROM sqlite_master WHERE name = 'concurve_marks'",
    engine: "",
    settle: "ANALYZE ",
};

/// A file with balances, as a table.
struct Columns {
    table: &'static str,
    key: &'static str,
    balance: &'static str,
    /// Bytes that make a row as long as the standard wants it (clause 3.2).
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

/// Of a row of the history; pgbench's statement does not name it.
const HISTORY_FILLER: usize = 22;
const ALL: [Table; 3] = [Table::Branches, Table::Tellers, Table::Accounts];

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

    fn place(&self) -> &'static str {
        self.place
    }

    fn occupied(&self) -> String {
        self.occupied.to_owned()
    }

    fn marked(&self) -> String {
        self.marked.to_owned()
    }

    fn mark(&self, name: &str) -> String {
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

    fn make(&self, data: Data) -> Box<dyn Iterator<Item = String> + Send> {
        let marks = |rows: &[(&str, i64)]| {
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
            marks(&[("format", FORMAT)]),
        ]);
        let end = marks(&[
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

    fn checks(&self, data: Data) -> Vec<Check> {
        let sets = 1..=data.files;
        sets.flat_map(|set| {
            let mut checks = self.counts(data, set);
            if data.profile.is_transaction() {
                checks.extend(self.sums(set));
            }
            if matches!(data.profile, Profile::Strict | Profile::Rw3) {
                checks.extend(self.sums_of_each(set));
            }
            checks
        })
        .collect()
    }

    fn committed(&self, data: Data) -> Vec<String> {
        let sets = 1..=data.files;
        let question = |set| match data.profile {
            Profile::Read => None,
            Profile::Update => Some(format!(
                "SELECT sum(abalance) FROM {}",
                self.name("accounts", set)
            )),
            Profile::Rw3 | Profile::Strict | Profile::Like => Some(format!(
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

    /// Makes and fills the four tables of a set.
    fn make_set(&self, data: Data, set: u32) -> Vec<String> {
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

    fn counts(&self, data: Data, set: u32) -> Vec<Check> {
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

    /// Σ balances = Σ deltas, in each of the three.
    fn sums(&self, set: u32) -> Vec<Check> {
        let history = self.name("history", set);
        let sum = |table: Table| {
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
        ALL.map(sum).into()
    }

    /// The same of each branch and each teller, and of each branch with its tellers.
    fn sums_of_each(&self, set: u32) -> Vec<Check> {
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

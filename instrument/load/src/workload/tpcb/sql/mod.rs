//! The workload in SQL: PostgreSQL, MySQL and MariaDB, SQLite.

use super::dialect::{Check, Dialect, Step, Table};
use super::{Data, FILES_MAX, Profile, TELLERS};

/// Of the data's form; another number when tables or columns change.
pub const FORMAT: i64 = 1;

mod checks;
mod make;

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
    create: Some("CREATE DATABASE IF NOT EXISTS concurve"),
    // It would take with it what is not ours.
    drop: None,
    occupied: "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'concurve'",
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
                checks.extend(self.sums(data.profile, set));
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
}

//! Outcomes for people: a table, and the times of tables as CSV.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::error::{At, Error};
use crate::figures::{Fact, Figure};
use crate::load;

/// A fact or a figure a line, for people.
pub fn lines(facts: &[Fact], figures: &[Figure]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:<26}{value}").expect("a string takes all");
    };
    for (name, value) in facts {
        line(name, value);
    }
    for &(name, value, unit) in figures {
        let value = match value {
            value if value.fract() == 0.0 => format!("{value:.0}"),
            value => format!("{value:.4}"),
        };
        line(name, format!("{value} {}", unit.unwrap_or("")).trim_end());
    }
    text
}

/// The times of each table.
pub fn write_times(path: &Path, outcome: &load::Outcome) -> Result<(), Error> {
    let mut text = "table,loader,rows,loading_seconds,savepoint_seconds\n".to_owned();
    for (number, loader) in (1..).zip(&outcome.loaders) {
        for it in &loader.tables {
            let (loading, savepoint) = (it.loading.as_secs_f64(), it.savepoint.as_secs_f64());
            let (table, rows) = (&it.table, it.content.rows);
            let line = format!("{table},{number},{rows},{loading:.6},{savepoint:.6}\n");
            text.push_str(&line);
        }
    }
    fs::write(path, text).at("write the times to", path)
}

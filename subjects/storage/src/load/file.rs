//! A file of tables: each is loaded, and has a savepoint made behind it.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use super::Loaded;
use crate::database::Connection;
use crate::error::Error;
use crate::export::Export;

/// Loads the tables of a file, and tells each; stops where it is told to break.
pub fn load(
    connection: &mut dyn Connection,
    path: &Path,
    tell: &mut dyn FnMut(Loaded) -> Result<ControlFlow<()>, Error>,
) -> Result<ControlFlow<()>, Error> {
    let mut export = Export::open(path)?;
    while let Some(table) = export.next_table()? {
        if tell(load_table(connection, table, &mut export)?)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn load_table(
    connection: &mut dyn Connection,
    table: String,
    export: &mut Export,
) -> Result<Loaded, Error> {
    let begun = Instant::now();
    connection.load(&table, export)?;
    let loading = begun.elapsed();
    connection.savepoint()?;
    Ok(Loaded {
        table,
        content: export.read(),
        loading,
        savepoint: begun.elapsed() - loading,
    })
}

//! A loader: takes a file, loads its tables, has a savepoint made after each.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::{Loaded, Shared};
use crate::database::Connection;
use crate::error::Error;
use crate::export::Export;

/// Until no file is left; returns when that was, and what it loaded.
pub fn load(shared: &Shared, number: usize) -> Result<(Duration, Vec<Loaded>), Error> {
    let begun = Instant::now();
    let mut loaded = Vec::new();
    let done = load_files(shared, number, &mut loaded);
    if done.is_err() {
        shared.has_failed.store(true, Relaxed);
    }
    done?;
    Ok((begun.elapsed(), loaded))
}

fn load_files(shared: &Shared, number: usize, loaded: &mut Vec<Loaded>) -> Result<(), Error> {
    let mut connection = shared.database.connect(number)?;
    loop {
        let next = shared.left.lock().expect("no loader panics").pop();
        let Some(file) = next else {
            return Ok(());
        };
        let mut export = Export::open(&shared.manifest.folder.join(&file.name))?;
        while let Some(table) = export.next_table()? {
            if shared.has_failed.load(Relaxed) {
                return Ok(());
            }
            loaded.push(load_table(&mut *connection, table, number, &mut export)?);
        }
    }
}

fn load_table(
    connection: &mut dyn Connection,
    table: String,
    loader: usize,
    export: &mut Export,
) -> Result<Loaded, Error> {
    let begun = Instant::now();
    connection.load(&table, export)?;
    let loading = begun.elapsed();
    connection.savepoint()?;
    Ok(Loaded {
        table,
        loader,
        content: export.read(),
        loading,
        savepoint: begun.elapsed() - loading,
    })
}

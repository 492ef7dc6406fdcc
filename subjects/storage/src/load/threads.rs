//! A loader as a thread.

use std::ops::ControlFlow;

use super::{Loaded, Shared, file};
use crate::error::Error;

/// Until no file is left, or another loader has failed.
pub fn load(shared: &Shared, number: usize) -> Result<Vec<Loaded>, Error> {
    let mut connection = shared.database.connect(number)?;
    let mut loaded = Vec::new();
    while let Some(next) = shared.next_file() {
        let path = shared.manifest.folder.join(&next.name);
        let _ = file::load(&mut *connection, &path, &mut |table| {
            loaded.push(table);
            Ok(match shared.has_failed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
    }
    Ok(loaded)
}

//! Whether there is room for what will be written.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::error::{At, Error};

/// Refuses what the file system of a path, which need not be there yet, has no room for.
pub fn require(path: &Path, bytes: u64, what: &'static str) -> Result<(), Error> {
    let there = path.ancestors().find(|it| it.exists());
    let folder = there.unwrap_or(Path::new("."));
    let system = statvfs(folder).map_err(Into::into);
    let system = system.at("look at the file system of", folder)?;
    let free = system.blocks_available() * system.fragment_size();
    if free < bytes {
        return Err(Error::Space {
            what,
            path: path.to_owned(),
            bytes,
            free,
        });
    }
    Ok(())
}

//! The picture in a file while it is computed, for a program that shows it.
//!
//! A thread of its own copies the iteration counts now and then: the workers do nothing for it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::image::Image;

/// The picture is copied so often; a copy takes about a millisecond.
const INTERVAL: Duration = Duration::from_millis(200);

/// The first copies come sooner, so that a picture is seen at once.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
const FIRST_COPIES: u32 = 4;

/// A file with the iteration counts of all pixels, line by line, as 32-bit numbers in little-endian
/// order, 0 where a pixel is not computed yet; then the workers that compute them, as 16-bit numbers
/// ([`Owners`](crate::owners::Owners)).
#[derive(Debug)]
pub struct LiveFile {
    path: PathBuf,
    file: File,
}

impl LiveFile {
    /// Opens the file, empty.
    ///
    /// # Errors
    /// The path cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = concurve_files::open(&options, path).map_err(|source| Error::Live {
            path: path.into(),
            source,
        })?;
        Ok(Self {
            path: path.into(),
            file,
        })
    }

    /// Does what computes `image`, and keeps the file up to date meanwhile.
    ///
    /// # Errors
    /// What `compute` returns; or the file cannot be written, once the picture is complete.
    pub fn beside<T>(
        &self,
        image: &Image,
        compute: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let computed = thread::scope(|scope| {
            let (end, ended) = mpsc::channel::<()>();
            let copying = thread::Builder::new().name("live".into());
            copying
                .spawn_scoped(scope, move || self.copy_until(&ended, image))
                .map_err(|source| self.failed(source))?;
            let computed = compute();
            drop(end);
            computed
        })?;
        self.write(image).map_err(|source| self.failed(source))?;
        Ok(computed)
    }

    /// Copies the picture until the other end of the channel is dropped. A copy that fails is no
    /// reason to stop the computation: the last one tells.
    fn copy_until(&self, ended: &mpsc::Receiver<()>, image: &Image) {
        let mut copies = 0;
        loop {
            let interval = if copies < FIRST_COPIES {
                FIRST_INTERVAL
            } else {
                INTERVAL
            };
            match ended.recv_timeout(interval) {
                Err(RecvTimeoutError::Timeout) => drop(self.write(image)),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            copies += 1;
        }
    }

    fn write(&self, image: &Image) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(6 * image.pixels());
        for count in image.counts() {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        if let Some(owners) = image.owners() {
            owners.append_pixels(&mut bytes);
        }
        self.file.write_all_at(&bytes, 0)
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Live {
            path: self.path.clone(),
            source,
        }
    }
}

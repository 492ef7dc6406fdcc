//! The picture in a file while it is computed, for a program that shows it.
//!
//! A thread of its own copies the iteration counts now and then: the workers do nothing for it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::image::Image;

/// The picture is copied so often,
const INTERVAL: Duration = Duration::from_millis(200);

/// and after so many times the time that a copy took, which the workers may lack, but not later than
/// after `INTERVAL_MAX`: a copy may have waited for a CPU.
const TIMES_A_COPY: u32 = 250;

const INTERVAL_MAX: Duration = Duration::from_secs(2);

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
        self.write(image, &mut Vec::new())
            .map_err(|source| self.failed(source))?;
        Ok(computed)
    }

    /// Copies the picture until the other end of the channel is dropped. A copy that fails is no
    /// reason to stop the computation: the last one tells.
    fn copy_until(&self, ended: &mpsc::Receiver<()>, image: &Image) {
        let mut bytes = Vec::new();
        let mut copies = 0;
        let mut interval = FIRST_INTERVAL;
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(interval) {
            let begun = Instant::now();
            drop(self.write(image, &mut bytes));
            copies += 1;
            if copies >= FIRST_COPIES {
                interval = (begun.elapsed() * TIMES_A_COPY).clamp(INTERVAL, INTERVAL_MAX);
            }
        }
    }

    /// Writes the picture, collected in `bytes`, whose memory is used again.
    fn write(&self, image: &Image, bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        bytes.reserve(6 * image.pixels());
        for count in image.counts() {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        if let Some(owners) = image.owners() {
            owners.append_pixels(bytes);
        }
        self.file.write_all_at(bytes, 0)
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Live {
            path: self.path.clone(),
            source,
        }
    }
}

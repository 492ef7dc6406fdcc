//! The iteration counts of all pixels, and the PNG file made of them.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cut::Cut;
use crate::error::Error;
use crate::owners::Owners;

/// Iteration counts, line by line from the top left.
///
/// Threads write disjoint pixels. A relaxed atomic store costs no more than a plain one, so the
/// sharing is safe without a lock and without `unsafe`.
#[derive(Debug)]
pub struct Image {
    width: u32,
    counts: Vec<AtomicU32>,
    owners: Option<Owners>,
}

impl Image {
    #[must_use]
    pub fn new(width: u32, height: u32) -> Self {
        let pixels = width as usize * height as usize;
        let counts = std::iter::repeat_with(AtomicU32::default);
        Self {
            width,
            counts: counts.take(pixels).collect(),
            owners: None,
        }
    }

    /// The same, with a note of which worker computes what, for units of work cut like this.
    #[must_use]
    pub fn with_owners(self, cut: Cut) -> Self {
        let owners = Some(Owners::new(cut));
        Self { owners, ..self }
    }

    /// Which worker computes what, if it is noted.
    #[must_use]
    pub fn owners(&self) -> Option<&Owners> {
        self.owners.as_ref()
    }

    /// Stores the iteration count of a pixel.
    #[inline]
    pub fn set(&self, index: usize, count: u32) {
        self.counts[index].store(count, Ordering::Relaxed);
    }

    /// Number of its pixels.
    #[must_use]
    pub fn pixels(&self) -> usize {
        self.counts.len()
    }

    /// Iteration counts of all pixels.
    pub fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Sum of the iteration counts of all pixels: the same however they were computed.
    #[must_use]
    pub fn pixel_sum(&self) -> u64 {
        self.counts().map(u64::from).sum()
    }
}

/// A PNG file that was opened before the computation, so that a bad path costs no time.
#[derive(Debug)]
pub struct PngFile {
    path: PathBuf,
    file: File,
}

impl PngFile {
    /// Opens the file for writing; its old content stays until [`PngFile::write`].
    ///
    /// # Errors
    /// The path cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = concurve_files::open(&options, path).map_err(|source| Error::Png {
            path: path.into(),
            reason: format!("cannot be opened for writing: {source}"),
        })?;
        Ok(Self {
            path: path.into(),
            file,
        })
    }

    /// Writes the image; pixels that reached `limit` are dark.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(self, image: &Image, limit: u32) -> Result<(), Error> {
        let failed = |reason: String| Error::Png {
            path: self.path.clone(),
            reason: format!("cannot be written: {reason}"),
        };
        let height = image.counts.len() / image.width as usize;
        let pixels: Vec<u8> = image
            .counts()
            .flat_map(|count| colour(count, limit))
            .collect();
        let mut out = BufWriter::new(&self.file);
        let mut encoder = png::Encoder::new(&mut out, image.width, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        self.file.set_len(0).map_err(|e| failed(e.to_string()))?;
        encoder
            .write_header()
            .and_then(|mut writer| {
                writer.write_image_data(&pixels)?;
                writer.finish()
            })
            .map_err(|e| failed(e.to_string()))?;
        out.flush().map_err(|e| failed(e.to_string()))
    }
}

/// Colours at equal distances on the cycle that the iteration counts run through.
const CYCLE: [[f64; 3]; 6] = [
    [8.0, 14.0, 48.0],
    [28.0, 92.0, 168.0],
    [160.0, 214.0, 232.0],
    [250.0, 240.0, 208.0],
    [240.0, 162.0, 40.0],
    [104.0, 34.0, 30.0],
];

/// Doublings of the iteration count between two colours of the cycle.
const DOUBLINGS: f64 = 0.55;

/// Outside pixels by the logarithm of their count, so that every zoom shows all colours.
fn colour(count: u32, limit: u32) -> [u8; 3] {
    if count >= limit {
        return [4, 5, 12];
    }
    let place = f64::from(count.max(1)).log2() / DOUBLINGS;
    let (before, share) = (place.floor(), place.fract());
    let from = CYCLE[before as usize % CYCLE.len()];
    let to = CYCLE[(before as usize + 1) % CYCLE.len()];
    std::array::from_fn(|i| (from[i] + (to[i] - from[i]) * share).round() as u8)
}

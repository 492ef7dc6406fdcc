//! Making an export set: drawn from a seed, and written as it is drawn.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use concurve_disk::workload::load::{Load, tables};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::{ExportFile, HEADING, Manifest, Row, Sum, table_name};
use crate::error::{At, Error};
use crate::{page_cache, space};

/// What the document's database held.
const DOCUMENT_BYTES: f64 = 73e9;
const BUFFER_BYTES: usize = 1 << 20;

/// How much is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub bytes: u64,
    /// The document's number in proportion, if `None`; a table a file at least.
    pub tables: Option<u32>,
    pub seed: u64,
}

/// Writes an export set into a folder, which is made.
///
/// The sizes are those that `concurve-disk` draws for the same seed. The files are on the disk when
/// it returns, and no longer in the page cache.
///
/// # Errors
/// There is no room for it, which is found out first, or it cannot be written.
pub fn write(extent: &Extent, folder: &Path) -> Result<Manifest, Error> {
    space::require(folder, extent.bytes, "the export set")?;
    fs::create_dir_all(folder).at("make", folder)?;
    let mut number = 0;
    let mut files = Vec::new();
    for (index, sizes) in tables::files(&load(extent)).iter().enumerate() {
        let name = format!("export-{:02}", index + 1);
        files.push(write_file(
            &folder.join(&name),
            name,
            sizes,
            extent.seed,
            &mut number,
        )?);
    }
    let manifest = Manifest {
        folder: folder.to_owned(),
        files,
    };
    manifest.write()?;
    Ok(manifest)
}

fn load(extent: &Extent) -> Load {
    let proportional = Load::of_document(extent.bytes as f64 / DOCUMENT_BYTES, extent.seed);
    Load {
        tables: extent.tables.unwrap_or(proportional.tables),
        bytes: extent.bytes,
        ..proportional
    }
}

fn write_file(
    path: &Path,
    name: String,
    sizes: &[u64],
    seed: u64,
    number: &mut u32,
) -> Result<ExportFile, Error> {
    let file = File::create(path).at("make", path)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut rows = 0;
    let mut bytes = HEADING.len() as u64 + 1;
    writeln!(out, "{HEADING}").at("write", path)?;
    for &size in sizes {
        let written = write_table(&mut out, *number, size, seed).at("write", path)?;
        rows += written.0;
        bytes += written.1;
        *number += 1;
    }
    let file = out.into_inner().map_err(|it| it.into_error());
    let file = file.at("write", path)?;
    file.sync_all().at("force to the disk", path)?;
    // Else the load would read what the export left in memory.
    page_cache::forget(path)?;
    Ok(ExportFile {
        name,
        bytes,
        tables: sizes.len() as u64,
        rows,
    })
}

/// Rows until there are so many bytes; returns how many rows, and all bytes.
fn write_table(
    out: &mut impl Write,
    number: u32,
    size: u64,
    seed: u64,
) -> std::io::Result<(u64, u64)> {
    let name = table_name(number);
    // Its own draws, so that a table is the same whatever stands before it.
    let mut random = SmallRng::seed_from_u64(seed ^ ((u64::from(number) + 1) << 32));
    let mut row = Row::default();
    let (mut rows, mut sum, mut bytes) = (0, Sum::default(), 0);
    let begin = format!("table {name}\n");
    out.write_all(begin.as_bytes())?;
    while bytes < size {
        rows += 1;
        let line = row.draw(rows, &mut random);
        sum.add(line);
        out.write_all(line)?;
        out.write_all(b"\n")?;
        bytes += line.len() as u64 + 1;
    }
    let end = format!("end {name} {rows} {}\n", sum.0);
    out.write_all(end.as_bytes())?;
    Ok((rows, bytes + (begin.len() + end.len()) as u64))
}

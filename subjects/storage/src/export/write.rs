//! Creates an export set: random tables from a seed.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use concurve_disk::workload::load::{Load, tables};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::format::{HEADING, Row, Sum, table_name};
use super::manifest::{ExportFile, Manifest};
use crate::error::Error;
use crate::file_system;

/// The size of the document's database.
const DOCUMENT_BYTES: f64 = 73e9;
const BUFFER_BYTES: usize = 1 << 20;

/// The size of an export set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub bytes: u64,
    /// `None`: in proportion to the document's number, and at least one table a file.
    pub tables: Option<u32>,
    pub seed: u64,
}

/// Writes an export set into a new folder.
///
/// The sizes are those that `concurve-disk` draws for the same seed. At the return, the files are
/// on the disk and not in the page cache.
///
/// # Errors
/// If there is too little space, which is checked first, or it cannot be written.
pub fn write(extent: &Extent, folder: &Path) -> Result<Manifest, Error> {
    file_system::require_space(folder, extent.bytes, "the export set")?;
    fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
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
    let file = concurve_files::create(path).map_err(Error::io("make", path))?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut rows = 0;
    let mut bytes = HEADING.len() as u64 + 1;
    writeln!(out, "{HEADING}").map_err(Error::io("write", path))?;
    for &size in sizes {
        let written =
            write_table(&mut out, *number, size, seed).map_err(Error::io("write", path))?;
        rows += written.0;
        bytes += written.1;
        *number += 1;
    }
    let file = out.into_inner().map_err(|it| it.into_error());
    let file = file.map_err(Error::io("write", path))?;
    file.sync_all()
        .map_err(Error::io("force to the disk", path))?;
    // Otherwise the load would read from memory.
    file_system::evict(path)?;
    Ok(ExportFile {
        name,
        bytes,
        tables: sizes.len() as u64,
        rows,
    })
}

/// Writes rows up to so many bytes; returns the number of rows, and of all bytes.
fn write_table(
    out: &mut impl Write,
    number: u32,
    size: u64,
    seed: u64,
) -> std::io::Result<(u64, u64)> {
    let name = table_name(number);
    // A seed for each table, so that a table does not depend on those before it.
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

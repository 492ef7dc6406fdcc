//! The export set: text files of tables, as one database exports them for another one to load.
//!
//! A file has tables one after another, the fields of a row separated by tabs:
//!
//! ```text
//! concurve-export 1
//! table t00042
//! 1<TAB>17<TAB>-523<TAB>qwertz…
//! 2<TAB>9<TAB>88<TAB>uiop…
//! end t00042 2 7349820143
//! ```
//!
//! The fields are `id` (from 1 on), `part` (0 to 99), `amount` (an integer), and `text` (40 to 120
//! letters). `end` repeats the name, with the number of rows and their [`Sum`]. The file
//! `manifest`, written last, has a line for each file, with its bytes, tables and rows.

mod format;
mod manifest;
mod read;
mod write;

pub use format::{Content, Fields, Sum, TEXT_BYTES_MAX, write_row};
pub use manifest::{ExportFile, Manifest};
pub use read::Export;
pub use write::{Extent, write};

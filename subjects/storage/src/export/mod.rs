//! The export set: text files of tables, as a database wrote them for another one to load.
//!
//! A file holds tables one after another, the fields of a row parted by tabs:
//!
//! ```text
//! concurve-export 1
//! table t00042
//! 1<TAB>17<TAB>-523<TAB>qwertz…
//! 2<TAB>9<TAB>88<TAB>uiop…
//! end t00042 2 7349820143
//! ```
//!
//! The fields are `id` (from 1 on), `part` (0 to 99), `amount` (a whole number), and `text` (40 to
//! 120 letters). `end` repeats the name, and tells the number of rows and their [`Sum`]. Beside the
//! files stands `manifest`, written last: a line for each file, with its bytes, tables and rows.

mod manifest;
mod read;
mod row;
mod write;

use serde::{Deserialize, Serialize};

pub use manifest::{ExportFile, Manifest};
pub use read::{Content, Export};
pub use row::{Fields, Row, TEXT_BYTES_MAX, write_row};
pub use write::{Extent, write};

/// The first line of each file.
pub const HEADING: &str = "concurve-export 1";

/// The name of a table by its number.
pub fn table_name(number: u32) -> String {
    format!("t{number:05}")
}

/// The sum of a table's rows: of the CRC-32 of each line without its end, in whatever order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum(pub u64);

impl Sum {
    pub fn add(&mut self, line: &[u8]) {
        self.0 = self.0.wrapping_add(u64::from(crc32fast::hash(line)));
    }
}

//! The text format of tables and rows, and random rows.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore};
use serde::{Deserialize, Serialize};

/// The first line of each file.
pub const HEADING: &str = "concurve-export 1";

/// The name of a table by its number.
pub fn table_name(number: u32) -> String {
    format!("t{number:05}")
}

/// The sum of a table's rows: of the CRC-32 of each line without its end. Independent of their
/// order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum(pub u64);

impl Sum {
    pub fn add(&mut self, line: &[u8]) {
        self.0 = self.0.wrapping_add(u64::from(crc32fast::hash(line)));
    }
}

/// The contents of a table, as its end line states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub rows: u64,
    pub sum: Sum,
}

/// The smallest and largest length of a text.
const TEXT_BYTES_MIN: usize = 40;
pub const TEXT_BYTES_MAX: usize = 120;

/// Five random bits select a letter.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyzABCDEF";

/// The number of parts of a table, to which rows belong.
const PARTS: u32 = 100;

/// The values of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fields<'a> {
    pub id: u64,
    pub part: u32,
    pub amount: i64,
    pub text: &'a str,
}

impl<'a> Fields<'a> {
    /// `None` if the line is no row.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = std::str::from_utf8(line).ok()?.split('\t');
        let parsed = Self {
            id: fields.next()?.parse().ok()?,
            part: fields.next()?.parse().ok()?,
            amount: fields.next()?.parse().ok()?,
            text: fields.next()?,
        };
        fields.next().is_none().then_some(parsed)
    }
}

/// Appends the line of a row, without its end.
pub fn write_row(fields: Fields, line: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    line.extend_from_slice(digits.format(fields.id).as_bytes());
    line.push(b'\t');
    line.extend_from_slice(digits.format(fields.part).as_bytes());
    line.push(b'\t');
    line.extend_from_slice(digits.format(fields.amount).as_bytes());
    line.push(b'\t');
    line.extend_from_slice(fields.text.as_bytes());
}

/// Draws random rows, and reuses the memory.
#[derive(Debug, Default)]
pub struct Row {
    text: String,
    line: Vec<u8>,
}

impl Row {
    /// Draws a row; its line.
    pub fn draw(&mut self, id: u64, random: &mut SmallRng) -> &[u8] {
        let length = random.random_range(TEXT_BYTES_MIN..=TEXT_BYTES_MAX);
        self.text.clear();
        while self.text.len() < length {
            let mut bits = random.next_u64();
            for _ in 0..12.min(length - self.text.len()) {
                self.text.push(char::from(LETTERS[(bits & 31) as usize]));
                bits >>= 5;
            }
        }
        self.line.clear();
        let fields = Fields {
            id,
            part: random.random_range(0..PARTS),
            amount: random.random_range(-1_000_000..=1_000_000),
            text: &self.text,
        };
        write_row(fields, &mut self.line);
        &self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_drawn_row_has_the_values_of_its_fields() {
        let mut random = SmallRng::seed_from_u64(7);
        let mut row = Row::default();
        for id in 1..500 {
            let line = row.draw(id, &mut random).to_vec();
            let fields = Fields::parse(&line).unwrap();
            assert_eq!(fields.id, id);
            assert!((TEXT_BYTES_MIN..=TEXT_BYTES_MAX).contains(&fields.text.len()));
            let mut again = Vec::new();
            write_row(fields, &mut again);
            assert_eq!(again, line);
        }
    }

    #[test]
    fn invalid_rows_are_refused() {
        for line in [
            "",
            "1\t2\t3",
            "1\t2\t3\tabc\t5",
            "x\t2\t3\tabc",
            "1\t-2\t3\tabc",
        ] {
            assert_eq!(Fields::parse(line.as_bytes()), None, "{line}");
        }
    }
}

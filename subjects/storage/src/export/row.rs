//! Rows: how they are drawn, and how they stand in a line.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore};

/// Letters of a text, at least and at most.
const TEXT_BYTES_MIN: usize = 40;
pub const TEXT_BYTES_MAX: usize = 120;

/// Five bits make a letter.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyzABCDEF";

/// The parts of a table that rows fall to.
const PARTS: u32 = 100;

/// A row's values.
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

/// Appends a row's line, without its end.
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

/// A row that is drawn anew, in the same memory.
#[derive(Debug, Default)]
pub struct Row {
    text: String,
    line: Vec<u8>,
}

impl Row {
    /// The line of a random row.
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
    fn a_drawn_row_says_what_its_fields_say() {
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
    fn what_is_no_row_is_none() {
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

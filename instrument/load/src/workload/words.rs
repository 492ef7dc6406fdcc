//! Statements as words, with numbers of a fixed width: for languages that are made of words.

use super::Numbers;
use super::statement::{Piece, Statement};

/// Numbers are written with leading zeros, so that a statement is as long as any other of its kind,
/// and its text is made once.
pub const DIGITS: usize = 12;

/// A word with its numbers: their offsets, and their places in [`Numbers`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub bytes: Vec<u8>,
    pub numbers: Vec<(usize, usize)>,
    begun: bool,
}

impl Word {
    /// Writes the numbers of a transaction to their places.
    pub fn fill(&mut self, numbers: &Numbers) {
        for (at, place) in &self.numbers {
            let digits = &mut self.bytes[*at..][..DIGITS];
            digits.fill(b'0');
            put_digits(numbers[*place], digits);
        }
    }
}

/// Splits the text of a statement at blanks; values and numbers belong to the word they stand in.
pub fn words(statement: &Statement) -> Vec<Word> {
    let (mut words, mut word) = (Vec::new(), Word::default());
    let mut end = |word: &mut Word| {
        if word.begun {
            words.push(std::mem::take(word));
        }
    };
    for piece in &statement.pieces {
        match piece {
            Piece::Text(text) => {
                for character in text.chars() {
                    if character.is_ascii_whitespace() {
                        end(&mut word);
                        continue;
                    }
                    word.begun = true;
                    let bytes = &mut [0; 4];
                    word.bytes
                        .extend_from_slice(character.encode_utf8(bytes).as_bytes());
                }
            }
            Piece::Bytes(bytes) => {
                word.begun = true;
                word.bytes.extend_from_slice(bytes);
            }
            Piece::Number(place) => {
                word.begun = true;
                word.numbers.push((word.bytes.len(), *place));
                word.bytes.resize(word.bytes.len() + DIGITS, b'0');
            }
        }
    }
    end(&mut word);
    words
}

/// A number over zeros, with its sign in front; what does not fit is cut off in front.
pub fn put_digits(number: i64, place: &mut [u8]) {
    let mut rest = number.unsigned_abs();
    for digit in place.iter_mut().rev() {
        if rest == 0 {
            break;
        }
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if number < 0 {
        place[0] = b'-';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_takes_other_numbers_each_time() {
        let places = [("a", vec![Piece::Number(0)]), ("b", vec![Piece::Number(1)])];
        let statement = Statement::parse("UPDATE  f x{a}{b}y", &places).unwrap();
        let mut words = words(&statement);
        assert_eq!(words.len(), 3);
        for (a, b, text) in [
            (-123_456, 7, "x-00000123456000000000007y"),
            (5, -1, "x000000000005-00000000001y"),
        ] {
            words[2].fill(&[a, b, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(words[2].bytes, text.as_bytes());
        }
    }
}

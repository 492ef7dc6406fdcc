//! Statements as tokens separated by white space, with parameters of a fixed width: for RESP and the
//! record language.

use super::statement::{Piece, Statement};
use super::transaction::Parameters;

/// Parameters are written with leading zeros, so that all instances of a statement have the same
/// length, and its bytes are built once.
pub const DIGITS: usize = 12;

/// A number of any length in a token.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Number {
    /// The bytes of the token before it.
    at: usize,
    slot: usize,
    width: usize,
}

impl Number {
    fn len(&self, parameters: &Parameters) -> usize {
        let number = parameters[self.slot];
        let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
        (digits + usize::from(number < 0)).max(self.width)
    }
}

/// A token, with the offset and the slot of each parameter in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Token {
    pub bytes: Vec<u8>,
    pub parameters: Vec<(usize, usize)>,
    /// Numbers without a fixed length, which the bytes leave out.
    numbers: Vec<Number>,
    begun: bool,
}

impl Token {
    /// Writes the parameters of a transaction into the token.
    pub fn fill(&mut self, parameters: &Parameters) {
        for (at, slot) in &self.parameters {
            let digits = &mut self.bytes[*at..][..DIGITS];
            digits.fill(b'0');
            put_digits(parameters[*slot], digits);
        }
    }

    /// Whether it holds the parameter of a slot.
    pub fn has_slot(&self, slot: usize) -> bool {
        let fixed = self.parameters.iter().map(|it| it.1);
        fixed
            .chain(self.numbers.iter().map(|it| it.slot))
            .any(|it| it == slot)
    }

    /// Whether all its instances have the same length.
    pub fn has_fixed_length(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The length of its instance with these parameters.
    pub fn len(&self, parameters: &Parameters) -> usize {
        let numbers = self.numbers.iter().map(|it| it.len(parameters));
        self.bytes.len() + numbers.sum::<usize>()
    }

    /// Writes its instance with these parameters.
    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        let (begin, mut from) = (out.len(), 0);
        for number in &self.numbers {
            out.extend_from_slice(&self.bytes[from..number.at]);
            from = number.at;
            let at = out.len();
            out.resize(at + number.len(parameters), b'0');
            put_digits(parameters[number.slot], &mut out[at..]);
        }
        out.extend_from_slice(&self.bytes[from..]);
        for (at, slot) in &self.parameters {
            let before = self.numbers.iter().filter(|it| it.at <= *at);
            let before: usize = before.map(|it| it.len(parameters)).sum();
            let digits = &mut out[begin + at + before..][..DIGITS];
            put_digits(parameters[*slot], digits);
        }
    }
}

/// Splits the text of a statement at white space; values and parameters are part of the token around
/// them.
pub fn tokens(statement: &Statement) -> Vec<Token> {
    let (mut tokens, mut token) = (Vec::new(), Token::default());
    let mut end = |token: &mut Token| {
        if token.begun {
            tokens.push(std::mem::take(token));
        }
    };
    for piece in &statement.pieces {
        match piece {
            Piece::Text(text) => {
                for character in text.chars() {
                    if character.is_ascii_whitespace() {
                        end(&mut token);
                        continue;
                    }
                    token.begun = true;
                    let bytes = &mut [0; 4];
                    token
                        .bytes
                        .extend_from_slice(character.encode_utf8(bytes).as_bytes());
                }
            }
            Piece::Bytes(bytes) => {
                token.begun = true;
                token.bytes.extend_from_slice(bytes);
            }
            Piece::Parameter(slot) => {
                token.begun = true;
                token.parameters.push((token.bytes.len(), *slot));
                token.bytes.resize(token.bytes.len() + DIGITS, b'0');
            }
            Piece::Digits { slot, width } => {
                token.begun = true;
                token.numbers.push(Number {
                    at: token.bytes.len(),
                    slot: *slot,
                    width: *width,
                });
            }
        }
    }
    end(&mut token);
    tokens
}

/// Writes a number over zeros, right-aligned, with a minus sign as the first byte; leading digits
/// that do not fit are cut off.
pub fn put_digits(number: i64, zeros: &mut [u8]) {
    let mut rest = number.unsigned_abs();
    // Two at a time: a division takes longer than all the rest.
    let (first, pairs) = zeros.as_rchunks_mut::<2>();
    for pair in pairs.iter_mut().rev() {
        if rest == 0 {
            break;
        }
        let two = (rest % 100) as u8;
        *pair = [b'0' + two / 10, b'0' + two % 10];
        rest /= 100;
    }
    if let [first] = first {
        *first = b'0' + (rest % 10) as u8;
    }
    if number < 0 {
        zeros[0] = b'-';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_any_length_stands_at_the_right_end_of_any_width() {
        for width in 1..=14 {
            for number in [0, 7, 10, 99, 100, 123_456_789, -1, -42, i64::MAX, i64::MIN] {
                let mut zeros = vec![b'0'; width];
                put_digits(number, &mut zeros);
                let text = format!("{:0width$}", number.unsigned_abs());
                let mut expected = text.as_bytes()[text.len() - width..].to_vec();
                if number < 0 {
                    expected[0] = b'-';
                }
                assert_eq!(zeros, expected, "{number}, {width}");
            }
        }
    }

    #[test]
    fn a_token_takes_other_parameters_each_time() {
        let placeholders = [
            ("a", vec![Piece::Parameter(0)]),
            ("b", vec![Piece::Parameter(1)]),
        ];
        let statement = Statement::parse("UPDATE  f x{a}{b}y", &placeholders).unwrap();
        let mut tokens = tokens(&statement);
        assert_eq!(tokens.len(), 3);
        for (a, b, text) in [
            (-123_456, 7, "x-00000123456000000000007y"),
            (5, -1, "x000000000005-00000000001y"),
        ] {
            tokens[2].fill(&Parameters::from([a, b]));
            assert_eq!(tokens[2].bytes, text.as_bytes());
        }
    }
}

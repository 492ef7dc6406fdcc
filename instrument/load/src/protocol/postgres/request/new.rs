//! Statements whose text is another one each time.

use postgres_protocol::escape::escape_literal;

use super::message;
use crate::workload::Numbers;
use crate::workload::statement::{Piece, Statement};

/// Parse, Bind and Execute of a text that is another one each time.
#[derive(Debug, PartialEq, Eq)]
pub struct New {
    pieces: Vec<Piece>,
    /// Bind and Execute of the unnamed statement, without parameters.
    execute: Vec<u8>,
}

impl New {
    pub fn of(statement: &Statement) -> Self {
        let mut execute = message(b'B', &[0; 8]);
        execute.extend_from_slice(&message(b'E', &[0; 5]));
        Self {
            pieces: statement.pieces.clone(),
            execute,
        }
    }

    pub fn put(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        out.push(b'P');
        let begin = out.len();
        out.extend_from_slice(&[0; 5]); // its length, and no name
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => out.extend_from_slice(part.as_bytes()),
                Piece::Bytes(bytes) => {
                    let literal = escape_literal(&String::from_utf8_lossy(bytes));
                    out.extend_from_slice(literal.as_bytes());
                }
                Piece::Number(place) => {
                    let mut digits = itoa::Buffer::new();
                    out.extend_from_slice(digits.format(numbers[*place]).as_bytes());
                }
            }
        }
        out.extend_from_slice(&[0; 3]); // the text's end, and no types
        let length = (out.len() - begin) as u32;
        out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.execute);
    }
}

//! Requests: a workload's statement becomes one prepared statement, and a template of what is sent
//! each time it is executed.

mod new;
mod prepared;
#[cfg(test)]
mod tests;

pub use new::New;
pub use prepared::Prepared;

use postgres_protocol::escape::escape_literal;
use postgres_protocol::message::frontend;

use crate::workload::Numbers;
use crate::workload::statement::{Piece, Statement};

/// What ends a trip.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Length of a message's kind and length.
const HEADER: usize = 5;

/// A statement as the server prepares it.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    /// Of the prepared statement on every connection.
    pub name: String,
    pub text: String,
    /// For each parameter its place in [`Numbers`].
    pub places: Vec<usize>,
}

/// What is sent to execute a statement.
#[derive(Debug, PartialEq, Eq)]
pub enum Template {
    Prepared(Prepared),
    New(New),
}

impl Template {
    pub fn put(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        match self {
            Self::Prepared(prepared) => prepared.put(numbers, out),
            Self::New(new) => new.put(numbers, out),
        }
    }
}

impl Query {
    pub fn of(number: usize, statement: &Statement) -> Self {
        let (mut text, mut places) = (String::new(), Vec::new());
        for piece in &statement.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Bytes(bytes) => {
                    text.push_str(&escape_literal(&String::from_utf8_lossy(bytes)));
                }
                Piece::Number(place) => {
                    places.push(*place);
                    text.push_str(&format!("${}", places.len()));
                }
            }
        }
        Self {
            name: format!("s{number}"),
            text,
            places,
        }
    }
}

/// Asks to prepare a statement; `describe` asks for the types of its parameters, too.
pub fn put_parse(query: &Query, describe: bool, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut buffer = bytes::BytesMut::new();
    frontend::parse(&query.name, &query.text, [], &mut buffer)?;
    if describe {
        frontend::describe(b'S', &query.name, &mut buffer)?;
    }
    out.extend_from_slice(&buffer);
    Ok(())
}

/// A statement that is not prepared.
pub fn put_query(text: &str, out: &mut Vec<u8>) {
    let mut body = text.as_bytes().to_vec();
    body.push(0);
    out.extend_from_slice(&message(b'Q', &body));
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

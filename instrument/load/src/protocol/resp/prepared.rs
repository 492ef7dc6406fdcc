//! Requests to the statement service: statements that it knows by a name, or by their text.

use crate::workload::Numbers;
use crate::workload::statement::{Piece, Statement};

use super::request::{put_bulk, put_header};

/// What statements of its language begin with; everything else is a command.
const VERBS: [&str; 6] = ["GET", "ADD", "INSERT", "DELETE", "COUNT", "SUM"];

/// Whether a text is a statement, and not a command.
pub fn is_statement(text: &str) -> bool {
    let verb = text.split_ascii_whitespace().next().unwrap_or_default();
    VERBS.iter().any(|it| it.eq_ignore_ascii_case(verb))
}

/// A statement with values, as it is prepared and executed.
#[derive(Debug)]
pub struct Prepared {
    /// On every connection.
    pub name: String,
    /// With a `?` for each number.
    pub text: String,
    /// The request up to the values.
    begin: Vec<u8>,
    places: Vec<usize>,
}

/// A statement that is sent as its text.
#[derive(Debug)]
pub struct Anew(Vec<Piece>);

impl Prepared {
    pub fn of(number: usize, statement: &Statement) -> Self {
        let name = format!("s{number}");
        let places = statement.pieces.iter().filter_map(|piece| match piece {
            Piece::Number(place) => Some(*place),
            _ => None,
        });
        let places: Vec<usize> = places.collect();
        let mut begin = Vec::new();
        put_header(b'*', 2 + places.len(), &mut begin);
        put_bulk(b"EXECUTE", &mut begin);
        put_bulk(name.as_bytes(), &mut begin);
        Self {
            name,
            text: text(&statement.pieces, |_| "?".to_owned()),
            begin,
            places,
        }
    }

    pub fn put(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.begin);
        let mut digits = itoa::Buffer::new();
        for place in &self.places {
            put_bulk(digits.format(numbers[*place]).as_bytes(), out);
        }
    }
}

impl Anew {
    pub fn of(statement: &Statement) -> Self {
        Self(statement.pieces.clone())
    }

    pub fn put(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        put_run(&text(&self.0, |place| numbers[place].to_string()), out);
    }
}

/// Executes a text that has all its values.
pub fn put_run(text: &str, out: &mut Vec<u8>) {
    put_header(b'*', 2, out);
    put_bulk(b"RUN", out);
    put_bulk(text.as_bytes(), out);
}

fn text(pieces: &[Piece], number: impl Fn(usize) -> String) -> String {
    let part = |piece: &Piece| match piece {
        Piece::Text(part) => part.clone(),
        Piece::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Piece::Number(place) => number(*place),
    };
    pieces.iter().map(part).collect()
}

//! Requests of RESP: arrays of texts, made once and sent with other numbers each time.

use super::prepared::{Anew, Prepared};
use crate::workload::words::{DIGITS, put_digits, words};
use crate::workload::{Numbers, Statement};

/// What is sent for a statement.
#[derive(Debug)]
pub enum Template {
    /// Its words are those of the request.
    Words(Request),
    Prepared(Prepared),
    Anew(Anew),
}

impl Template {
    pub fn put(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        match self {
            Self::Words(request) => request.put(numbers, out),
            Self::Prepared(prepared) => prepared.put(numbers, out),
            Self::Anew(anew) => anew.put(numbers, out),
        }
    }
}

/// A statement as it is sent, and where its numbers go.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
    /// Offset and place in [`Numbers`].
    numbers: Vec<(usize, usize)>,
}

impl Request {
    pub fn of(statement: &Statement) -> Self {
        let words = words(statement);
        let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
        put_header(b'*', words.len(), &mut bytes);
        for word in words {
            put_bulk(&word.bytes, &mut bytes);
            let begin = bytes.len() - word.bytes.len() - 2;
            numbers.extend(word.numbers.iter().map(|(at, place)| (begin + at, *place)));
        }
        Self { bytes, numbers }
    }

    pub fn put(&self, numbers: &Numbers, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        for (at, place) in &self.numbers {
            put_digits(numbers[*place], &mut out[begin + at..][..DIGITS]);
        }
    }
}

/// A command that is not of the workload.
pub fn put_command(words: &[&str], out: &mut Vec<u8>) {
    put_header(b'*', words.len(), out);
    words.iter().for_each(|it| put_bulk(it.as_bytes(), out));
}

pub fn put_bulk(bytes: &[u8], out: &mut Vec<u8>) {
    put_header(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

pub fn put_header(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::statement::Piece;

    fn sent(pieces: Vec<Piece>, numbers: Numbers) -> String {
        let mut out = Vec::new();
        Request::of(&Statement::of(pieces)).put(&numbers, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_not_split_and_may_be_empty() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let bytes = |text: &str| Piece::Bytes(text.as_bytes().to_vec());
        let pieces = vec![text("SET  k "), bytes("a b"), text(" é "), bytes("")];
        let expected = "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\na b\r\n$2\r\né\r\n$0\r\n\r\n";
        assert_eq!(sent(pieces, Numbers::default()), expected);
    }

    #[test]
    fn numbers_go_where_they_belong() {
        let pieces = vec![
            Piece::Text("X ".to_owned()),
            Piece::Number(1),
            Piece::Text(":".to_owned()),
            Piece::Number(0),
        ];
        let expected = "*2\r\n$1\r\nX\r\n$25\r\n-00000000012:000000123456\r\n";
        assert_eq!(sent(pieces, [123_456, -12, 0, 0, 0, 0, 0, 0, 0]), expected);
    }
}

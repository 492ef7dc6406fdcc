//! Requests: arrays of strings, built once and sent with other parameters each time. The statement
//! service gets prepared statements, by name, or texts.

use std::mem;

use super::login::Service;
use crate::workload::{DIGITS, Parameters, Piece, Statement, Token, put_digits, tokens};

/// What is sent for a statement.
#[derive(Debug)]
pub enum Template {
    /// A command: each token is an element of the array.
    Command(CommandTemplate),
    Prepared(Prepared),
    New(NewText),
}

impl Template {
    /// The request for the statement with this index.
    pub fn of(service: Service, index: usize, statement: &Statement) -> Self {
        let is_statement = match statement.pieces.first() {
            Some(Piece::Text(text)) => is_statement(text),
            _ => false,
        };
        match service {
            Service::Statements if statement.is_new => Self::New(NewText::of(statement)),
            Service::Statements if is_statement => Self::Prepared(Prepared::of(index, statement)),
            _ => Self::Command(CommandTemplate::of(statement)),
        }
    }

    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        match self {
            Self::Command(command) => command.put(parameters, out),
            Self::Prepared(prepared) => prepared.put(parameters, out),
            Self::New(text) => text.put(parameters, out),
        }
    }
}

/// The parts of a command, in their order.
#[derive(Debug)]
pub struct CommandTemplate(Vec<Part>);

#[derive(Debug)]
enum Part {
    /// Bytes of the same length each time, with the offset and the slot of each parameter.
    Fixed {
        bytes: Vec<u8>,
        parameters: Vec<(usize, usize)>,
    },
    /// An element whose length depends on its numbers.
    Sized(Token),
}

impl CommandTemplate {
    pub fn of(statement: &Statement) -> Self {
        let tokens = tokens(statement);
        let (mut parts, mut bytes, mut parameters) = (Vec::new(), Vec::new(), Vec::new());
        put_header(b'*', tokens.len(), &mut bytes);
        for token in tokens {
            if !token.has_fixed_length() {
                parts.push(Part::Fixed {
                    bytes: mem::take(&mut bytes),
                    parameters: mem::take(&mut parameters),
                });
                parts.push(Part::Sized(token));
                continue;
            }
            put_bulk(&token.bytes, &mut bytes);
            let begin = bytes.len() - token.bytes.len() - 2;
            let slots = token.parameters.iter();
            parameters.extend(slots.map(|(at, slot)| (begin + at, *slot)));
        }
        parts.push(Part::Fixed { bytes, parameters });
        Self(parts)
    }

    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Fixed {
                    bytes,
                    parameters: slots,
                } => {
                    let begin = out.len();
                    out.extend_from_slice(bytes);
                    for (at, slot) in slots {
                        put_digits(parameters[*slot], &mut out[begin + at..][..DIGITS]);
                    }
                }
                Part::Sized(token) => {
                    put_header(b'$', token.len(parameters), out);
                    token.put(parameters, out);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }
}

/// Writes a command that is not part of the workload.
pub fn put_command(words: &[&str], out: &mut Vec<u8>) {
    put_header(b'*', words.len(), out);
    words.iter().for_each(|it| put_bulk(it.as_bytes(), out));
}

fn put_bulk(bytes: &[u8], out: &mut Vec<u8>) {
    put_header(b'$', bytes.len(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn put_header(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The first words of statements of the statement service; anything else is a command.
const VERBS: [&str; 6] = ["GET", "ADD", "INSERT", "DELETE", "COUNT", "SUM"];

/// Whether a text is a statement, and not a command.
pub fn is_statement(text: &str) -> bool {
    let verb = text.split_ascii_whitespace().next().unwrap_or_default();
    VERBS.iter().any(|it| it.eq_ignore_ascii_case(verb))
}

/// Whether a command of a key-value server begins a transaction.
pub fn begins_transaction(statement: &Statement) -> bool {
    let tokens = tokens(statement);
    let word = tokens.first().map(|it| it.bytes.as_slice());
    word.is_some_and(|it| it.eq_ignore_ascii_case(b"MULTI"))
}

/// A statement of the statement service that is prepared when a connection begins.
#[derive(Debug)]
pub struct Prepared {
    /// Its name, the same on every connection.
    pub name: String,
    /// The text, with a `?` for each parameter.
    pub text: String,
    /// The request up to the parameters.
    begin: Vec<u8>,
    slots: Vec<usize>,
}

/// A statement of the statement service that is sent as a text, which is new each time.
#[derive(Debug)]
pub struct NewText(Vec<Piece>);

impl Prepared {
    fn of(index: usize, statement: &Statement) -> Self {
        let name = format!("s{index}");
        let slots: Vec<usize> = statement.pieces.iter().filter_map(Piece::slot).collect();
        let mut begin = Vec::new();
        put_header(b'*', 2 + slots.len(), &mut begin);
        put_bulk(b"EXECUTE", &mut begin);
        put_bulk(name.as_bytes(), &mut begin);
        Self {
            name,
            text: text(&statement.pieces, |_| "?".to_owned()),
            begin,
            slots,
        }
    }

    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.begin);
        let mut digits = itoa::Buffer::new();
        for slot in &self.slots {
            put_bulk(digits.format(parameters[*slot]).as_bytes(), out);
        }
    }
}

impl NewText {
    pub fn of(statement: &Statement) -> Self {
        Self(statement.pieces.clone())
    }

    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        put_run(&text(&self.0, |slot| parameters[slot].to_string()), out);
    }
}

/// Writes a request that executes a text without parameters.
pub fn put_run(text: &str, out: &mut Vec<u8>) {
    put_header(b'*', 2, out);
    put_bulk(b"RUN", out);
    put_bulk(text.as_bytes(), out);
}

fn text(pieces: &[Piece], parameter: impl Fn(usize) -> String) -> String {
    let part = |piece: &Piece| match piece {
        Piece::Text(part) => part.clone(),
        Piece::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Piece::Parameter(slot) | Piece::Digits { slot, .. } => parameter(*slot),
    };
    pieces.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sent(pieces: Vec<Piece>, parameters: Parameters) -> String {
        let mut out = Vec::new();
        CommandTemplate::of(&Statement::of(pieces)).put(&parameters, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_not_split_and_may_be_empty() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let bytes = |text: &str| Piece::Bytes(text.as_bytes().to_vec());
        let pieces = vec![text("SET  k "), bytes("a b"), text(" é "), bytes("")];
        let expected = "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\na b\r\n$2\r\né\r\n$0\r\n\r\n";
        assert_eq!(sent(pieces, Parameters::default()), expected);
    }

    /// The elements of one array of strings that fills all the bytes.
    fn elements(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let line = |bytes: &mut &[u8], kind: u8| {
            let end = bytes.windows(2).position(|it| it == b"\r\n")?;
            let length = std::str::from_utf8(bytes[..end].strip_prefix(&[kind])?).ok()?;
            *bytes = &bytes[end + 2..];
            length.parse::<usize>().ok()
        };
        let mut rest = bytes;
        let count = line(&mut rest, b'*')?;
        let mut found = Vec::new();
        for _ in 0..count {
            let length = line(&mut rest, b'$')?;
            found.push(rest.get(..length)?.to_vec());
            rest = rest.get(length..)?.strip_prefix(b"\r\n")?;
        }
        rest.is_empty().then_some(found)
    }

    proptest! {
        #[test]
        fn numbers_of_any_length_are_in_strings_of_their_length(
            numbers in prop::array::uniform3(prop_oneof![any::<i64>(), 0..2_000_000i64]),
            pieces in prop::collection::vec((0..5u8, 0..3usize, 1..=20usize), 1..12),
        ) {
            let (mut text, mut statement) = ("SET ".to_owned(), vec![Piece::Text("SET ".to_owned())]);
            for (kind, slot, width) in pieces {
                let number = numbers[slot];
                let zeros = |width: usize| match number < 0 {
                    true => format!("-{:0>1$}", number.unsigned_abs(), width.saturating_sub(1)),
                    false => format!("{number:0width$}"),
                };
                let (piece, shown) = match kind {
                    0 => (Piece::Text(" ".to_owned()), " ".to_owned()),
                    1 => (Piece::Text("a:".to_owned()), "a:".to_owned()),
                    2 => (Piece::Digits { slot, width }, zeros(width)),
                    3 => (Piece::Digits { slot, width: 1 }, number.to_string()),
                    _ if number.unsigned_abs() < 100_000_000_000 => (Piece::Parameter(slot), zeros(DIGITS)),
                    _ => continue,
                };
                statement.push(piece);
                text.push_str(&shown);
            }
            let mut out = b"before".to_vec();
            CommandTemplate::of(&Statement::of(statement)).put(&numbers.into(), &mut out);
            let words = text.split_ascii_whitespace().map(|it| it.as_bytes().to_vec());
            prop_assert_eq!(elements(&out[6..]), Some(words.collect::<Vec<_>>()));
        }
    }

    #[test]
    fn numbers_go_where_they_belong() {
        let pieces = vec![
            Piece::Text("X ".to_owned()),
            Piece::Parameter(1),
            Piece::Text(":".to_owned()),
            Piece::Parameter(0),
        ];
        let expected = "*2\r\n$1\r\nX\r\n$25\r\n-00000000012:000000123456\r\n";
        assert_eq!(sent(pieces, [123_456, -12].into()), expected);
    }
}

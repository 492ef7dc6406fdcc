//! Requests: each statement of a workload becomes a prepared statement, and a template of the bytes
//! that execute it. Statements whose text is new each time are parsed each time.

use postgres_protocol::escape::escape_literal;
use postgres_protocol::message::frontend;

use crate::workload::{Parameters, Piece, Statement};

/// The message that ends a round trip.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Length of a message's kind and length.
const HEADER: usize = 5;

/// A statement as the server prepares it.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    /// Name of the prepared statement, the same on every connection.
    pub name: String,
    pub text: String,
    /// The slot of each parameter.
    pub slots: Vec<usize>,
}

/// The bytes that execute a statement.
#[derive(Debug, PartialEq, Eq)]
pub enum Template {
    Prepared(Prepared),
    New(NewText),
}

impl Template {
    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        match self {
            Self::Prepared(prepared) => prepared.put(parameters, out),
            Self::New(text) => text.put(parameters, out),
        }
    }
}

impl Query {
    pub fn of(index: usize, statement: &Statement) -> Self {
        let (mut text, mut slots) = (String::new(), Vec::new());
        for piece in &statement.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Bytes(bytes) => {
                    text.push_str(&escape_literal(&String::from_utf8_lossy(bytes)));
                }
                Piece::Parameter(slot) | Piece::Digits { slot, .. } => {
                    slots.push(*slot);
                    text.push_str(&format!("${}", slots.len()));
                }
            }
        }
        Self {
            name: format!("s{index}"),
            text,
            slots,
        }
    }
}

/// Prepares a statement; `describe` requests the types of its parameters, too.
pub fn put_parse(query: &Query, describe: bool, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut buffer = bytes::BytesMut::new();
    frontend::parse(&query.name, &query.text, [], &mut buffer)?;
    if describe {
        frontend::describe(b'S', &query.name, &mut buffer)?;
    }
    out.extend_from_slice(&buffer);
    Ok(())
}

/// Executes a statement that is not prepared.
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

/// OIDs of the types that are sent in binary.
const INT2: u32 = 21;
const INT4: u32 = 23;
const INT8: u32 = 20;
/// Digits of a number whose parameter has another type: with leading zeros and the sign.
const DIGITS: usize = 20;

/// Bind and Execute of a prepared statement, and where its parameters are.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared {
    bytes: Vec<u8>,
    parameters: Vec<Place>,
    /// The same with all parameters as digits, for numbers that are too large for their type: the
    /// server reports them in its own words.
    in_digits: Option<Box<Prepared>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: usize,
    slot: usize,
    form: Form,
}

/// How a parameter is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Int2,
    Int4,
    Int8,
    Text,
}

impl Form {
    fn of(oid: u32) -> Self {
        match oid {
            INT2 => Self::Int2,
            INT4 => Self::Int4,
            INT8 => Self::Int8,
            _ => Self::Text,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Int2 => 2,
            Self::Int4 => 4,
            Self::Int8 => 8,
            Self::Text => DIGITS,
        }
    }

    fn holds(self, number: i64) -> bool {
        match self {
            Self::Int2 => i16::try_from(number).is_ok(),
            Self::Int4 => i32::try_from(number).is_ok(),
            Self::Int8 | Self::Text => true,
        }
    }

    fn is_binary(self) -> bool {
        self != Self::Text
    }
}

impl Prepared {
    /// For parameters of these types.
    pub fn of(query: &Query, types: &[u32]) -> Self {
        let forms: Vec<Form> = types.iter().map(|oid| Form::of(*oid)).collect();
        let narrow = forms.iter().any(|it| matches!(it, Form::Int2 | Form::Int4));
        let in_digits = || Box::new(Self::in_forms(query, &vec![Form::Text; forms.len()]));
        Self {
            in_digits: narrow.then(in_digits),
            ..Self::in_forms(query, &forms)
        }
    }

    fn in_forms(query: &Query, forms: &[Form]) -> Self {
        let mut parameters = Vec::new();
        let mut body = vec![0]; // the unnamed portal
        body.extend_from_slice(query.name.as_bytes());
        body.push(0);
        put_count(forms.len(), &mut body);
        for form in forms {
            put_count(usize::from(form.is_binary()), &mut body);
        }
        put_count(forms.len(), &mut body);
        for (form, slot) in forms.iter().zip(&query.slots) {
            body.extend_from_slice(&(form.bytes() as u32).to_be_bytes());
            parameters.push(Place {
                offset: HEADER + body.len(),
                slot: *slot,
                form: *form,
            });
            body.resize(body.len() + form.bytes(), b'0');
        }
        put_count(0, &mut body); // every result in text
        let mut bytes = message(b'B', &body);
        bytes.extend_from_slice(&message(b'E', &[0; 5])); // of that portal, all rows
        Self {
            bytes,
            parameters,
            in_digits: None,
        }
    }

    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
        let holds = |it: &Place| it.form.holds(parameters[it.slot]);
        if let Some(in_digits) = &self.in_digits
            && !self.parameters.iter().all(holds)
        {
            return in_digits.put(parameters, out);
        }
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        for place in &self.parameters {
            let number = parameters[place.slot];
            let at = &mut out[begin + place.offset..][..place.form.bytes()];
            match place.form {
                Form::Int2 => at.copy_from_slice(&(number as i16).to_be_bytes()),
                Form::Int4 => at.copy_from_slice(&(number as i32).to_be_bytes()),
                Form::Int8 => at.copy_from_slice(&number.to_be_bytes()),
                Form::Text => at.copy_from_slice(format!("{number:0DIGITS$}").as_bytes()),
            }
        }
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u16).to_be_bytes());
}

/// Parse, Bind and Execute of a text that is new each time.
#[derive(Debug, PartialEq, Eq)]
pub struct NewText {
    pieces: Vec<Piece>,
    /// Bind and Execute of the unnamed statement, without parameters.
    execute: Vec<u8>,
}

impl NewText {
    pub fn of(statement: &Statement) -> Self {
        let mut execute = message(b'B', &[0; 8]);
        execute.extend_from_slice(&message(b'E', &[0; 5]));
        Self {
            pieces: statement.pieces.clone(),
            execute,
        }
    }

    pub fn put(&self, parameters: &Parameters, out: &mut Vec<u8>) {
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
                Piece::Parameter(slot) | Piece::Digits { slot, .. } => {
                    let mut digits = itoa::Buffer::new();
                    out.extend_from_slice(digits.format(parameters[*slot]).as_bytes());
                }
            }
        }
        out.extend_from_slice(&[0; 3]); // the text's end, and no types
        let length = (out.len() - begin) as u32;
        out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.execute);
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use postgres_protocol::IsNull;

    use super::*;

    fn parameters() -> Parameters {
        [7, -2, 0, 0, 0, 0, 0, 1 << 40].into()
    }

    fn query() -> Query {
        let placeholders = [
            ("a", vec![Piece::Parameter(0)]),
            ("b", vec![Piece::Parameter(1)]),
        ];
        let statement = Statement::parse("UPDATE t SET x = x + {b} WHERE i = {a}", &placeholders);
        Query::of(3, &statement.unwrap())
    }

    #[test]
    fn numbers_become_parameters_and_values_literals() {
        assert_eq!(query().text, "UPDATE t SET x = x + $1 WHERE i = $2");
        let pieces = vec![Piece::Bytes(b"it's".to_vec()), Piece::Parameter(2)];
        let query = Query::of(0, &Statement::of(pieces));
        assert_eq!((&*query.text, &*query.name), ("'it''s'$1", "s0"));
    }

    #[test]
    fn a_template_is_what_the_library_writes() {
        let mut expected = BytesMut::new();
        frontend::bind(
            "",
            "s3",
            [1, 1],
            [&(-2_i64).to_be_bytes()[..], &7_i32.to_be_bytes()[..]],
            |bytes, out: &mut BytesMut| {
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            },
            [],
            &mut expected,
        )
        .unwrap_or_else(|_| panic!("cannot be written"));
        frontend::execute("", 0, &mut expected).unwrap();
        frontend::sync(&mut expected);

        let mut sent = Vec::new();
        Prepared::of(&query(), &[INT8, INT4]).put(&parameters(), &mut sent);
        sent.extend_from_slice(&SYNC);
        assert_eq!(sent, expected);
    }

    #[test]
    fn what_is_too_large_is_left_to_the_server_to_refuse() {
        let parameters = [1 << 40, 1].into();
        let mut sent = Vec::new();
        Prepared::of(&query(), &[INT8, INT4]).put(&parameters, &mut sent);
        let text = b"00000001099511627776";
        assert!(sent.windows(text.len()).any(|it| it == text));
    }

    #[test]
    fn a_new_text_is_what_the_library_writes() {
        let placeholders = [
            ("a", vec![Piece::Parameter(0)]),
            ("b", vec![Piece::Parameter(1)]),
        ];
        let statement = Statement::parse("SELECT {b} + {a}", &placeholders).unwrap();
        let mut expected = BytesMut::new();
        frontend::parse("", "SELECT -2 + 7 /* 1099511627776 */", [], &mut expected).unwrap();
        let no = |_: (), _: &mut BytesMut| Ok(IsNull::No);
        frontend::bind("", "", [], [], no, [], &mut expected)
            .unwrap_or_else(|_| panic!("cannot be written"));
        frontend::execute("", 0, &mut expected).unwrap();
        let mut sent = Vec::new();
        NewText::of(&statement.with_new_text(7)).put(&parameters(), &mut sent);
        assert_eq!(sent, expected);
    }

    #[test]
    fn other_types_get_digits() {
        let mut sent = Vec::new();
        Prepared::of(&query(), &[1700, INT2]).put(&parameters(), &mut sent);
        let text = b"-0000000000000000002";
        assert!(sent.windows(text.len()).any(|it| it == text));
    }
}

//! Commands: built once from the workload's statements, and sent with other parameters each time.

use super::packet::{self, HEADER};
use crate::workload::{Parameters, Piece, Statement};

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
/// The type of every parameter: MYSQL_TYPE_LONGLONG, signed.
const LONGLONG: [u8; 2] = [8, 0];
const NUMBER: usize = 8;

/// A statement in the two ways to send it.
#[derive(Debug)]
pub struct Template {
    pieces: Vec<Piece>,
    /// The text to prepare, with a `?` for each parameter.
    pub text: String,
    /// The packet that executes it, with zeros for the id of the prepared statement and for the
    /// parameters, which are at the end.
    execute: Vec<u8>,
    /// The slot of each parameter.
    slots: Vec<usize>,
    /// It changes rows: if it has changed none, its answer is that nothing was found.
    pub changes: bool,
    /// Its text is new each time, and is sent as a text.
    pub is_new: bool,
}

impl Template {
    pub fn of(statement: &Statement) -> Self {
        let pieces = statement.pieces.clone();
        let mut text = Vec::new();
        put_text(&pieces, &mut text, |_, text| text.push(b'?'));
        let slots: Vec<usize> = pieces.iter().filter_map(Piece::slot).collect();
        let mut execute = Vec::new();
        packet::put(0, &mut execute, |out| put_execute(slots.len(), out));
        let text = String::from_utf8_lossy(&text).into_owned();
        let verb = text.split_ascii_whitespace().next().unwrap_or_default();
        let changes = ["INSERT", "UPDATE", "DELETE", "REPLACE"];
        Self {
            changes: changes.iter().any(|it| verb.eq_ignore_ascii_case(it)),
            is_new: statement.is_new,
            pieces,
            text,
            execute,
            slots,
        }
    }

    /// Number of its parameters.
    pub fn parameters(&self) -> usize {
        self.slots.len()
    }

    /// Prepares it. Like all functions here that write a command, returns the sequence number of the
    /// answer's first packet.
    pub fn put_prepare(&self, out: &mut Vec<u8>) -> u8 {
        packet::put(0, out, |out| {
            out.push(PREPARE);
            out.extend_from_slice(self.text.as_bytes());
        })
    }

    /// Executes it as the prepared statement with this id.
    pub fn put_execute(&self, prepared: u32, parameters: &Parameters, out: &mut Vec<u8>) -> u8 {
        let begin = out.len();
        out.extend_from_slice(&self.execute);
        let id = begin + HEADER + 1;
        out[id..id + 4].copy_from_slice(&prepared.to_le_bytes());
        let values = out.len() - self.slots.len() * NUMBER;
        let values = out[values..].chunks_exact_mut(NUMBER);
        for (value, slot) in values.zip(&self.slots) {
            value.copy_from_slice(&parameters[*slot].to_le_bytes());
        }
        1
    }
}

/// "COM_STMT_EXECUTE", with zeros for the id and the parameters.
fn put_execute(parameters: usize, out: &mut Vec<u8>) {
    out.push(EXECUTE);
    out.extend_from_slice(&[0; 4]); // id of the prepared statement
    out.push(0); // no cursor
    out.extend_from_slice(&1_u32.to_le_bytes()); // once
    if parameters == 0 {
        return;
    }
    out.extend(std::iter::repeat_n(0, parameters.div_ceil(8))); // none is NULL
    out.push(1); // types follow
    for _ in 0..parameters {
        out.extend_from_slice(&LONGLONG);
    }
    out.extend(std::iter::repeat_n(0, parameters * NUMBER));
}

/// Executes statements as one text: the server stops at the first error.
pub fn put_query(templates: &[Template], parameters: &Parameters, out: &mut Vec<u8>) -> u8 {
    packet::put(0, out, |out| {
        out.push(QUERY);
        for (index, template) in templates.iter().enumerate() {
            if index > 0 {
                out.push(b';');
            }
            put_text(&template.pieces, out, |slot, out| {
                out.extend_from_slice(itoa::Buffer::new().format(parameters[slot]).as_bytes());
            });
        }
    })
}

/// Executes a statement that is not the workload's.
pub fn put_command(text: &str, out: &mut Vec<u8>) -> u8 {
    packet::put(0, out, |out| {
        out.push(QUERY);
        out.extend_from_slice(text.as_bytes());
    })
}

/// Transactions rely on these values, whatever the server's defaults are: a statement outside of a
/// transaction commits, and a COMMIT neither begins a new transaction nor ends the connection.
const RELIED_ON: &str = "SET SESSION autocommit = 1, completion_type = 0";

/// Sets variables for the connection.
pub fn put_variables(variables: &[(String, String)], out: &mut Vec<u8>) -> u8 {
    let set = |(name, value): &(String, String)| match value.parse::<f64>() {
        Ok(_) => format!(", {name} = {value}"),
        Err(_) => format!(
            ", {name} = '{}'",
            value.replace('\\', "\\\\").replace('\'', "''")
        ),
    };
    let variables: String = variables.iter().map(set).collect();
    put_command(&format!("{RELIED_ON}{variables}"), out)
}

/// Writes a statement; constant values become hexadecimal literals.
fn put_text(pieces: &[Piece], out: &mut Vec<u8>, parameter: impl Fn(usize, &mut Vec<u8>)) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Bytes(bytes) => {
                out.extend_from_slice(b"x'");
                for byte in bytes {
                    out.push(DIGITS[usize::from(byte >> 4)]);
                    out.push(DIGITS[usize::from(byte & 15)]);
                }
                out.push(b'\'');
            }
            Piece::Parameter(slot) | Piece::Digits { slot, .. } => parameter(*slot, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        Template::of(&Statement::of(vec![
            Piece::Text("UPDATE a SET b = b + ".to_owned()),
            Piece::Parameter(1),
            Piece::Text(", c = ".to_owned()),
            Piece::Bytes(b"x\n".to_vec()),
            Piece::Text(" WHERE d = ".to_owned()),
            Piece::Parameter(0),
        ]))
    }

    fn parameters() -> Parameters {
        [258, -1].into()
    }

    #[test]
    fn a_statement_is_prepared_with_places_for_its_numbers() {
        let text = "UPDATE a SET b = b + ?, c = x'780a' WHERE d = ?";
        assert_eq!(template().text, text);
        assert_eq!(template().parameters(), 2);
        let mut out = Vec::new();
        template().put_prepare(&mut out);
        assert_eq!(out[..5], [text.len() as u8 + 1, 0, 0, 0, PREPARE]);
        assert_eq!(out[5..], *text.as_bytes());
    }

    #[test]
    fn the_numbers_are_sent_as_they_are() {
        let mut out = vec![9];
        template().put_execute(0x0102_0304, &parameters(), &mut out);
        let mut expected = vec![9, 32, 0, 0, 0, EXECUTE, 4, 3, 2, 1, 0, 1, 0, 0, 0];
        expected.extend_from_slice(&[0, 1, 8, 0, 8, 0]);
        expected.extend_from_slice(&(-1_i64).to_le_bytes());
        expected.extend_from_slice(&258_i64.to_le_bytes());
        assert_eq!(out, expected);
    }

    #[test]
    fn several_statements_are_one_text() {
        let mut out = Vec::new();
        put_query(&[template(), template()], &parameters(), &mut out);
        let text = "UPDATE a SET b = b + -1, c = x'780a' WHERE d = 258";
        assert_eq!(out[4], QUERY);
        assert_eq!(out[5..], *format!("{text};{text}").as_bytes());
    }

    #[test]
    fn variables_are_numbers_or_texts() {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let variables = [variable("a", "5"), variable("b", "it's \\")];
        let mut out = Vec::new();
        put_variables(&variables, &mut out);
        assert!(out[5..].ends_with(br"completion_type = 0, a = 5, b = 'it''s \\'"));
    }

    #[test]
    fn a_statement_without_numbers() {
        let begin = Template::of(&Statement::of(vec![Piece::Text("BEGIN".to_owned())]));
        let mut out = Vec::new();
        begin.put_execute(7, &parameters(), &mut out);
        assert_eq!(out, [10, 0, 0, 0, EXECUTE, 7, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
}

//! Messages of a PostgreSQL server (documentation of PostgreSQL, "Message Formats").

use crate::protocol::ProtocolError;

/// A byte for the kind and four for the length, which counts itself.
const HEADER: usize = 5;
/// The server's own limit.
const LENGTH_MAX: usize = 1 << 30;

/// A message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: u8,
    pub body: &'a [u8],
}

/// An error or a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// SQLSTATE.
    pub code: String,
    pub text: String,
    /// `FATAL`, `WARNING` …
    pub severity: String,
}

/// The beginning of the codes by which a server says that it, or an administrator, ends the session.
const SHUT_DOWN: &str = "57P0";

impl ServerError {
    /// Whether the server closes the connection after it. A server that crashes or is shut down at once says
    /// so by a warning.
    pub fn ends_connection(&self) -> bool {
        match &*self.severity {
            "FATAL" | "PANIC" => true,
            "WARNING" => self.code.starts_with(SHUT_DOWN),
            _ => false,
        }
    }
}

impl Frame<'_> {
    /// Bytes of the whole message.
    pub fn length(&self) -> usize {
        HEADER + self.body.len()
    }
}

/// The message at the front of the input; `None` if it is not complete.
///
/// # Errors
/// It is none of PostgreSQL's.
pub fn frame(input: &[u8]) -> Result<Option<Frame<'_>>, ProtocolError> {
    let Some(kind) = input.first() else {
        return Ok(None);
    };
    if !is_kind(*kind) {
        return Err(garbage(input));
    }
    let Some(length) = input.get(1..HEADER) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
    if !(4..=LENGTH_MAX).contains(&length) {
        return Err(garbage(input));
    }
    let body = input.get(HEADER..1 + length);
    Ok(body.map(|body| Frame { kind: *kind, body }))
}

/// Whether it is the first byte of a message of the server.
fn is_kind(byte: u8) -> bool {
    // A pattern is faster than a search in a list, and this runs for each message.
    matches!(
        byte,
        b'1'..=b'3' | b'A' | b'C'..=b'E' | b'G'..=b'I' | b'K' | b'N' | b'R'..=b'T' | b'V' | b'W'
            | b'Z' | b'c' | b'd' | b'n' | b's'..=b't' | b'v'
    )
}

/// The error for input that PostgreSQL does not send.
pub fn garbage(input: &[u8]) -> ProtocolError {
    let shown = &input[..input.len().min(24)];
    ProtocolError::Garbage(String::from_utf8_lossy(shown).into_owned(), "PostgreSQL")
}

/// Reads an error: fields of a byte for the kind and a text, and a zero at the end.
pub fn server_error(body: &[u8]) -> ServerError {
    let mut error = ServerError {
        code: String::new(),
        text: String::new(),
        severity: String::new(),
    };
    for field in body.split(|it| *it == 0) {
        let Some((kind, value)) = field.split_first() else {
            continue;
        };
        let value = String::from_utf8_lossy(value);
        match kind {
            b'C' => error.code = value.into_owned(),
            // It follows the one that is translated, from PostgreSQL 9.6 on.
            b'V' => error.severity = value.into_owned(),
            b'M' => error.text = value.into_owned(),
            b'D' | b'H' => error.text = format!("{} ({value})", error.text),
            _ => {}
        }
    }
    error
}

/// The number in the first column of a row, if it is an integer, as text.
pub fn first_number(row: &[u8]) -> Option<i64> {
    let length = i32::from_be_bytes(row.get(2..6)?.try_into().ok()?);
    let text = row.get(6..)?.get(..usize::try_from(length).ok()?)?;
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        let digit = i64::from(digit - b'0');
        number = number.checked_mul(10)?.checked_sub(digit)?;
    }
    match negative {
        true => Some(number),
        false => number.checked_neg(),
    }
}

/// Whether a command tag says that no row was found: `UPDATE 0`, `SELECT 0`.
pub fn found_nothing(tag: &[u8]) -> bool {
    tag.ends_with(b" 0\0")
}

/// The types of a statement's parameters, by their OID.
pub fn parameter_types(body: &[u8]) -> Option<Vec<u32>> {
    let count = u16::from_be_bytes(body.get(..2)?.try_into().ok()?);
    let types = body.get(2..2 + 4 * usize::from(count))?.chunks_exact(4);
    Some(
        types
            .map(|it| u32::from_be_bytes(it.try_into().expect("four bytes")))
            .collect(),
    )
}

/// Names of the conditions that a load may cause (documentation of PostgreSQL, appendix A).
const NAMES: [(&str, &str); 14] = [
    ("22003", "numeric value out of range"),
    ("23505", "unique violation"),
    ("25006", "read-only transaction"),
    ("25P02", "in failed transaction"),
    ("40001", "serialization failure"),
    ("40P01", "deadlock detected"),
    ("42501", "insufficient privilege"),
    ("42P01", "undefined table"),
    ("53100", "disk full"),
    ("53200", "out of memory"),
    ("55P03", "lock not available"),
    ("57014", "query cancelled"),
    ("58030", "I/O error"),
    ("XX000", "internal error"),
];

/// The kind of an error: its SQLSTATE, with the name if it is listed.
pub fn error_kind(code: &str) -> String {
    match NAMES.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => format!("{code} {name}"),
        None => code.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Vec<u8> {
        let mut row = vec![0, 1];
        row.extend_from_slice(&(text.len() as i32).to_be_bytes());
        row.extend_from_slice(text.as_bytes());
        row
    }

    #[test]
    fn numbers_are_read_from_rows() {
        for number in [0, 7, -7, 123_456, i64::MAX, i64::MIN] {
            assert_eq!(first_number(&row(&number.to_string())), Some(number));
        }
        for text in ["", "-", "1.5", "x", "9223372036854775808"] {
            assert_eq!(first_number(&row(text)), None, "{text}");
        }
        let null = [0, 1, 255, 255, 255, 255];
        assert_eq!(first_number(&null), None);
        assert_eq!(first_number(&[0, 1, 0, 0, 0, 9, b'1']), None);
    }

    #[test]
    fn an_error_has_its_code_and_its_words() {
        let body = b"SFEHLER\0VFATAL\0C28P01\0Mno\0Dreally\0Hgo\0\0";
        let expected = ServerError {
            code: "28P01".to_owned(),
            text: "no (really) (go)".to_owned(),
            severity: "FATAL".to_owned(),
        };
        assert_eq!(server_error(body), expected);
    }

    #[test]
    fn input_of_another_protocol_is_refused() {
        for input in [
            "HTTP/1.1 400 Bad Request",
            "-ERR unknown command\r\n",
            "J\0",
        ] {
            let error = frame(input.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("not PostgreSQL"), "{error}");
        }
        assert_eq!(frame(b"Z\0\0\0\x05"), Ok(None));
        let whole = Frame {
            kind: b'Z',
            body: b"I",
        };
        assert_eq!(frame(b"Z\0\0\0\x05IZ"), Ok(Some(whole)));
    }
}

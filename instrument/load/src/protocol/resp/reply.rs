//! Replies of RESP 2 and 3, as far as a load needs them.

use crate::protocol::{ProtocolError, TEXT_BYTES_MAX};

/// A whole reply may have so many bytes before it ends.
const REPLY_BYTES_MAX: usize = TEXT_BYTES_MAX + 64;
/// Arrays inside arrays, at most.
const DEPTH_MAX: usize = 16;

/// A reply, without the contents that a load does not need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Ok,
    Number(i64),
    Nil,
    /// A text or a list of length 0.
    Empty,
    /// Also of an array with an error in it, as of a transaction: its first one.
    Error(String),
    Push,
}

impl Reply {
    /// As messages show it.
    pub fn shown(self) -> String {
        match self {
            Self::Error(text) => text,
            Self::Number(number) => number.to_string(),
            Self::Nil => "nil".to_owned(),
            Self::Empty => "an empty text or list".to_owned(),
            Self::Ok | Self::Push => "a text or a list".to_owned(),
        }
    }
}

/// The first word of an error, which programs may rely on; the rest is for people.
pub fn error_code(text: &str) -> &str {
    text.split_ascii_whitespace().next().unwrap_or_default()
}

/// Reads replies that come in pieces: the elements of an array that have come are not read again.
#[derive(Debug, Default)]
pub struct ReplyReader {
    /// The arrays whose elements are still to come, the outermost first.
    open: Vec<OpenArray>,
    /// Bytes of the reply that were taken already.
    taken: usize,
}

/// An array, or what is sent like one.
#[derive(Debug)]
struct OpenArray {
    kind: u8,
    /// Elements that are still to come.
    left: usize,
    /// The number in its last element.
    number: Option<i64>,
    error: Option<String>,
    is_empty: bool,
}

/// What stands next in the input.
enum Next {
    Whole(Reply),
    Array(OpenArray),
}

impl ReplyReader {
    /// Reads on from the front of `input`: the bytes that it took, and the reply if that is whole now.
    pub fn read(&mut self, input: &[u8]) -> Result<(usize, Option<Reply>), ProtocolError> {
        let mut at = 0;
        loop {
            let Some((next, length)) = next(&input[at..])? else {
                return match self.taken + input.len() > REPLY_BYTES_MAX {
                    true => Err(ProtocolError::TooLong),
                    false => {
                        self.taken += at;
                        Ok((at, None))
                    }
                };
            };
            let begin = at;
            at += length;
            let whole = match next {
                Next::Whole(reply) => Some(reply),
                // Attributes come before the reply that they belong to.
                Next::Array(array) if array.left == 0 => array.close(),
                Next::Array(_) if self.open.len() == DEPTH_MAX => {
                    return Err(garbage(&input[begin..]));
                }
                Next::Array(array) => {
                    self.open.push(array);
                    None
                }
            };
            if let Some(reply) = whole.and_then(|it| self.closed_by(it)) {
                self.taken = 0;
                return Ok((at, Some(reply)));
            }
        }
    }

    /// Closes all arrays that have this reply as their last element; `None` if more is to come.
    fn closed_by(&mut self, mut reply: Reply) -> Option<Reply> {
        while let Some(array) = self.open.last_mut() {
            array.add(reply);
            if array.left > 0 {
                return None;
            }
            reply = self.open.pop()?.close()?;
        }
        Some(reply)
    }
}

impl OpenArray {
    fn of(kind: u8, length: usize) -> Self {
        let left = match kind {
            b'%' | b'|' => 2 * length,
            _ => length,
        };
        Self {
            kind,
            left,
            number: None,
            error: None,
            is_empty: length == 0,
        }
    }

    fn add(&mut self, element: Reply) {
        self.left -= 1;
        self.number = None;
        match element {
            Reply::Number(number) => self.number = Some(number),
            Reply::Error(text) => {
                self.error.get_or_insert(text);
            }
            Reply::Ok | Reply::Nil | Reply::Empty | Reply::Push => {}
        }
    }

    /// The reply that it is; `None` for attributes, which are none.
    fn close(self) -> Option<Reply> {
        match (self.kind, self.error, self.number) {
            (b'|', ..) => None,
            (b'>', ..) => Some(Reply::Push),
            (_, Some(text), _) => Some(Reply::Error(text)),
            // A record, and the number in it.
            (b'*', None, Some(number)) => Some(Reply::Number(number)),
            _ if self.is_empty => Some(Reply::Empty),
            _ => Some(Reply::Ok),
        }
    }
}

/// What stands at the front of `input`, and its length; `None` if it is not whole.
fn next(input: &[u8]) -> Result<Option<(Next, usize)>, ProtocolError> {
    let Some(kind) = input.first() else {
        return Ok(None);
    };
    if !b"+-:$*_#,(!=%~>|".contains(kind) {
        return Err(garbage(input));
    }
    let Some(end) = line_end(input)? else {
        return Ok(None);
    };
    let (line, consumed) = (&input[1..end], end + 2);
    let whole = |reply| Ok(Some((Next::Whole(reply), consumed)));
    match kind {
        b'+' | b'#' | b',' | b'(' => whole(Reply::Ok),
        b':' => {
            let number = std::str::from_utf8(line)
                .ok()
                .and_then(|it| it.parse().ok());
            whole(Reply::Number(number.ok_or_else(|| garbage(input))?))
        }
        b'_' => whole(Reply::Nil),
        b'-' => match std::str::from_utf8(line) {
            Ok(text) => whole(Reply::Error(text.to_owned())),
            Err(_) => Err(garbage(input)),
        },
        b'$' | b'=' | b'!' => {
            let Some(length) = length_of(line, input)? else {
                return whole(Reply::Nil);
            };
            let end = consumed + length + 2;
            if input.len() < end {
                return Ok(None);
            }
            if &input[end - 2..end] != b"\r\n" {
                return Err(garbage(&input[consumed..]));
            }
            let text = || std::str::from_utf8(&input[consumed..end - 2]).unwrap_or("ERR");
            let reply = match kind {
                b'!' => Reply::Error(text().to_owned()),
                _ if length == 0 => Reply::Empty,
                _ => Reply::Ok,
            };
            Ok(Some((Next::Whole(reply), end)))
        }
        _ => {
            let Some(length) = length_of(line, input)? else {
                return whole(Reply::Nil);
            };
            Ok(Some((Next::Array(OpenArray::of(*kind, length)), consumed)))
        }
    }
}

/// The offset of the CRLF that ends the first line.
fn line_end(input: &[u8]) -> Result<Option<usize>, ProtocolError> {
    match input.iter().position(|byte| *byte == b'\r') {
        Some(end) if end + 1 == input.len() => Ok(None),
        Some(end) if input[end + 1] == b'\n' => Ok(Some(end)),
        None if input.len() < TEXT_BYTES_MAX => Ok(None),
        _ => Err(garbage(input)),
    }
}

/// The length that the first line of `input` contains; `None` for −1.
fn length_of(line: &[u8], input: &[u8]) -> Result<Option<usize>, ProtocolError> {
    if line == b"-1" {
        return Ok(None);
    }
    let length = std::str::from_utf8(line).ok();
    match length.and_then(|it| it.parse().ok()) {
        None => Err(garbage(input)),
        Some(length @ ..=TEXT_BYTES_MAX) => Ok(Some(length)),
        Some(_) => Err(ProtocolError::TooLong),
    }
}

fn garbage(input: &[u8]) -> ProtocolError {
    let shown = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
    ProtocolError::Garbage(shown, "RESP")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The first reply in an input and its length; `None` if it is not whole.
    fn parse(input: &[u8]) -> Result<Option<(Reply, usize)>, ProtocolError> {
        let (taken, reply) = ReplyReader::default().read(input)?;
        Ok(reply.map(|it| (it, taken)))
    }

    /// Reads an input in two pieces.
    fn in_pieces(input: &[u8], cut: usize) -> Option<(Reply, usize)> {
        let mut reader = ReplyReader::default();
        let (taken, reply) = reader.read(&input[..cut]).unwrap();
        assert_eq!(reply, None, "{input:?} at {cut}");
        let (rest, reply) = reader.read(&input[taken..]).unwrap();
        reply.map(|it| (it, taken + rest))
    }

    const REPLIES: [&str; 14] = [
        "+OK\r\n",
        ":-12\r\n",
        "$5\r\na\r\nb\r\r\n",
        "$0\r\n\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
        "-ERR no\r\n",
        "_\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "%1\r\n+a\r\n:1\r\n",
        "!5\r\nERR x\r\n",
        "|1\r\n+ttl\r\n:5\r\n$1\r\na\r\n",
    ];

    #[test]
    fn a_reply_that_is_not_whole_waits_at_every_byte() {
        for reply in REPLIES {
            let whole = parse(reply.as_bytes()).unwrap();
            assert_eq!(whole.as_ref().map(|it| it.1), Some(reply.len()));
            for cut in 0..reply.len() {
                let pieces = in_pieces(reply.as_bytes(), cut);
                assert_eq!(pieces, whole, "{reply:?} at {cut}");
            }
        }
    }

    #[test]
    fn a_text_or_a_list_of_length_0_is_empty() {
        for input in ["$0\r\n\r\n", "*0\r\n", "%0\r\n", "~0\r\n", "=0\r\n\r\n"] {
            let found = parse(input.as_bytes()).unwrap();
            assert_eq!(found, Some((Reply::Empty, input.len())), "{input:?}");
        }
        let listed = parse(b"*1\r\n$0\r\n\r\n").unwrap();
        assert_eq!(listed, Some((Reply::Ok, 10)), "a list of an empty text");
    }

    #[test]
    fn the_elements_of_an_array_that_have_come_are_not_read_again() {
        let (mut reader, mut unread) = (ReplyReader::default(), Vec::new());
        unread.extend_from_slice(b"*1000\r\n");
        for number in 0..1000 {
            let (taken, reply) = reader.read(&unread).unwrap();
            assert_eq!((taken, reply), (unread.len(), None), "{number}");
            unread = format!(":{number}\r\n").into_bytes();
        }
        let last = Some(Reply::Number(999));
        assert_eq!(reader.read(&unread), Ok((unread.len(), last)));
        assert_eq!(reader.read(b"+OK\r\n"), Ok((5, Some(Reply::Ok))));
    }

    #[test]
    fn the_first_error_in_an_array_is_its_reply() {
        let error = |text: &str| Some(Reply::Error(text.to_owned()));
        for (input, reply) in [
            ("*3\r\n+OK\r\n-WRONGTYPE a\r\n:1\r\n", error("WRONGTYPE a")),
            ("*2\r\n*2\r\n:1\r\n-ERR b\r\n-OOM\r\n", error("ERR b")),
            ("%1\r\n+a\r\n!5\r\nERR c\r\n", error("ERR c")),
            // What belongs to no request, or is only said of a reply.
            (">2\r\n+a\r\n-ERR d\r\n", Some(Reply::Push)),
            ("|1\r\n+a\r\n-ERR e\r\n:7\r\n", Some(Reply::Number(7))),
            (
                "*2\r\n+a\r\n|1\r\n+b\r\n-ERR f\r\n:8\r\n",
                Some(Reply::Number(8)),
            ),
            ("|0\r\n*0\r\n", Some(Reply::Empty)),
        ] {
            let found = parse(input.as_bytes()).unwrap();
            assert_eq!(found, reply.map(|it| (it, input.len())), "{input:?}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for text in [
            "HTTP/1.1 400\r\n",
            "$x\r\n",
            "+a\rb\r\n",
            "$1\r\nabc\r\n",
            ":x\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        let nested = "*1\r\n".repeat(100);
        assert!(parse(nested.as_bytes()).is_err());
    }

    #[test]
    fn a_reply_that_says_that_it_is_too_long_is_refused_at_once() {
        let most = TEXT_BYTES_MAX.to_string();
        assert_eq!(parse(format!("${most}\r\n").as_bytes()), Ok(None));
        for kind in ["$", "*", "!", "%"] {
            let reply = format!("{kind}{}\r\n", TEXT_BYTES_MAX + 1);
            let error = parse(reply.as_bytes()).unwrap_err();
            assert_eq!(error, ProtocolError::TooLong, "{kind}");
            assert!(error.to_string().contains("more than 64 MiB"), "{error}");
        }
    }

    #[test]
    fn a_reply_without_end_is_refused() {
        let mut endless = b"*60000000\r\n".to_vec();
        let element = [b"$1000\r\n".as_slice(), &[b'x'; 1000], b"\r\n"].concat();
        while endless.len() <= REPLY_BYTES_MAX {
            endless.extend_from_slice(&element);
        }
        assert_eq!(parse(&endless), Err(ProtocolError::TooLong));
        endless.truncate(endless.len() - element.len());
        assert_eq!(parse(&endless), Ok(None));
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&input);
        }

        #[test]
        fn nearly_resp_neither(input in "[-+:$*_#,!%>|0-9a\r\n]{0,60}") {
            let _ = parse(input.as_bytes());
        }
    }
}

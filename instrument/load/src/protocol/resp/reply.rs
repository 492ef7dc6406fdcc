//! Replies of RESP 2 and 3, as far as a load needs them.

use crate::protocol::ProtocolError;

/// No reply to the requests of a load has a longer line or string.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// A whole reply may have so many bytes before it ends.
const REPLY_BYTES_MAX: usize = TEXT_BYTES_MAX + 64;
/// Arrays inside arrays, at most.
const DEPTH_MAX: usize = 16;

/// A reply, without the contents that a load does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    Ok,
    Number(i64),
    Nil,
    Error(&'a str),
    Push,
}

/// The first reply in `input` and its length; `None` if it is not whole.
pub fn parse(input: &[u8]) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
    match parse_at(input, DEPTH_MAX)? {
        None if input.len() > REPLY_BYTES_MAX => Err(garbage(input)),
        parsed => Ok(parsed),
    }
}

fn parse_at(input: &[u8], depth: usize) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
    let Some(kind) = input.first() else {
        return Ok(None);
    };
    if !b"+-:$*_#,(!=%~>|".contains(kind) || depth == 0 {
        return Err(garbage(input));
    }
    let Some(end) = line_end(input)? else {
        return Ok(None);
    };
    let (line, consumed) = (&input[1..end], end + 2);
    match kind {
        b'+' | b'#' | b',' | b'(' => Ok(Some((Reply::Ok, consumed))),
        b':' => {
            let number = std::str::from_utf8(line)
                .ok()
                .and_then(|it| it.parse().ok());
            let number = number.ok_or_else(|| garbage(input))?;
            Ok(Some((Reply::Number(number), consumed)))
        }
        b'_' => Ok(Some((Reply::Nil, consumed))),
        b'-' => match std::str::from_utf8(line) {
            Ok(text) => Ok(Some((Reply::Error(text), consumed))),
            Err(_) => Err(garbage(input)),
        },
        b'$' | b'=' | b'!' => {
            let Some(length) = length_of(line).ok_or_else(|| garbage(input))? else {
                return Ok(Some((Reply::Nil, consumed)));
            };
            let whole = consumed + length + 2;
            if input.len() < whole {
                return Ok(None);
            }
            if &input[whole - 2..whole] != b"\r\n" {
                return Err(garbage(&input[consumed..]));
            }
            let reply = match kind {
                b'!' => {
                    Reply::Error(std::str::from_utf8(&input[consumed..whole - 2]).unwrap_or("ERR"))
                }
                _ => Reply::Ok,
            };
            Ok(Some((reply, whole)))
        }
        _ => {
            let Some(length) = length_of(line).ok_or_else(|| garbage(input))? else {
                return Ok(Some((Reply::Nil, consumed)));
            };
            let parts = if matches!(kind, b'%' | b'|') {
                2 * length
            } else {
                length
            };
            let (mut at, mut last) = (consumed, Reply::Ok);
            for _ in 0..parts {
                match parse_at(&input[at..], depth - 1)? {
                    None => return Ok(None),
                    Some((reply, consumed)) => {
                        at += consumed;
                        last = reply;
                    }
                }
            }
            match kind {
                b'>' => Ok(Some((Reply::Push, at))),
                // Attributes come before the reply that they belong to.
                b'|' => {
                    let reply = parse_at(&input[at..], depth - 1)?;
                    Ok(reply.map(|(reply, consumed)| (reply, at + consumed)))
                }
                // A record, and the number in it.
                b'*' if matches!(last, Reply::Number(_)) => Ok(Some((last, at))),
                _ => Ok(Some((Reply::Ok, at))),
            }
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

/// The length that a line contains: outer `None` if it is not a length, inner `None` for −1.
fn length_of(line: &[u8]) -> Option<Option<usize>> {
    if line == b"-1" {
        return Some(None);
    }
    let length: usize = std::str::from_utf8(line).ok()?.parse().ok()?;
    (length <= TEXT_BYTES_MAX).then_some(Some(length))
}

fn garbage(input: &[u8]) -> ProtocolError {
    let shown = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
    ProtocolError::Garbage(shown, "RESP")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            for cut in 0..reply.len() {
                assert_eq!(
                    parse(&reply.as_bytes()[..cut]),
                    Ok(None),
                    "{reply:?} at {cut}"
                );
            }
            let (_, consumed) = parse(reply.as_bytes()).unwrap().unwrap();
            assert_eq!(consumed, reply.len());
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for text in [
            "HTTP/1.1 400\r\n",
            "$x\r\n",
            "$99999999999\r\n",
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
    fn a_reply_without_end_is_refused() {
        let mut endless = b"*60000000\r\n".to_vec();
        let element = [b"$1000\r\n".as_slice(), &[b'x'; 1000], b"\r\n"].concat();
        while endless.len() <= REPLY_BYTES_MAX {
            endless.extend_from_slice(&element);
        }
        assert!(parse(&endless).is_err());
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

//! The parser of requests in a stream of bytes, which may be cut anywhere.

use thiserror::Error;

/// How large a request may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub arguments_max: usize,
    /// Maximum length of a request, with its framing.
    pub bytes_max: usize,
}

/// A malformed request. The connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    #[error("expected '*' or a command in plain text, not byte {0:#04x}")]
    Start(u8),
    #[error("expected '$' before argument {0}")]
    Bulk(usize),
    #[error("a length is not an unsigned decimal number, or lacks its CR LF")]
    Length,
    #[error("an argument is not followed by CR LF")]
    Terminator,
    #[error("the request has {0} arguments, and {1} are allowed")]
    TooManyArguments(usize, usize),
    #[error("the request has more than {0} bytes")]
    TooLong(usize),
}

impl ProtocolError {
    /// Whether the request may be well-formed, and only is too large.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooManyArguments(..) | Self::TooLong(_))
    }
}

/// Start and end of an argument in the buffer.
pub type Span = (u32, u32);

/// Parses requests in a growing buffer; never reads a byte of an argument twice.
///
/// Positions count from the start of the request: the caller removes the bytes of each complete
/// request from the front.
#[derive(Debug, Default)]
pub struct Parser {
    spans: Vec<Span>,
    /// Bytes parsed so far.
    at: usize,
    /// Arguments that the array announced.
    announced: Option<usize>,
}

/// Longest line with a length: its sign, the digits, CR LF.
const LENGTH_LINE_MAX: usize = 1 + 10 + 2;

impl Parser {
    /// The arguments of the request that [`Parser::parse`] has completed.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Looks for a complete request at the start of `buffer`, which may only have grown since the
    /// last call unless that one found a request. Returns its length in bytes.
    pub fn parse(&mut self, buffer: &[u8], limits: Limits) -> Result<Option<usize>, ProtocolError> {
        if self.at == 0 {
            self.spans.clear();
            self.announced = None;
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {}
                Some(byte) if byte.is_ascii_alphabetic() || byte.is_ascii_whitespace() => {
                    return self.parse_line(buffer, limits);
                }
                Some(byte) => return Err(ProtocolError::Start(*byte)),
            }
        }
        let done = self.parse_array(buffer, limits)?;
        if self.at > limits.bytes_max || (!done && buffer.len() > limits.bytes_max) {
            return Err(ProtocolError::TooLong(limits.bytes_max));
        }
        Ok(done.then(|| std::mem::take(&mut self.at)))
    }

    /// Parses `*2\r\n$4\r\nPING\r\n$1\r\nx\r\n`; returns whether it is complete.
    fn parse_array(&mut self, buffer: &[u8], limits: Limits) -> Result<bool, ProtocolError> {
        let announced = match self.announced {
            Some(announced) => announced,
            None => {
                let Some((announced, next)) = length(buffer, 1)? else {
                    return Ok(false);
                };
                if announced > limits.arguments_max {
                    let max = limits.arguments_max;
                    return Err(ProtocolError::TooManyArguments(announced, max));
                }
                self.at = next;
                self.announced = Some(announced);
                announced
            }
        };
        while self.spans.len() < announced {
            match buffer.get(self.at) {
                None => return Ok(false),
                Some(b'$') => {}
                Some(_) => return Err(ProtocolError::Bulk(self.spans.len() + 1)),
            }
            let Some((size, start)) = length(buffer, self.at + 1)? else {
                return Ok(false);
            };
            let end = start + size;
            if end + 2 > limits.bytes_max {
                return Err(ProtocolError::TooLong(limits.bytes_max));
            }
            match buffer.get(end..end + 2) {
                None => return Ok(false),
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::Terminator),
            }
            self.spans.push((start as u32, end as u32));
            self.at = end + 2;
        }
        Ok(true)
    }

    /// An inline command: words up to the end of the line.
    fn parse_line(
        &mut self,
        buffer: &[u8],
        limits: Limits,
    ) -> Result<Option<usize>, ProtocolError> {
        let window = &buffer[..buffer.len().min(limits.bytes_max)];
        let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
            return match buffer.len() > limits.bytes_max {
                true => Err(ProtocolError::TooLong(limits.bytes_max)),
                false => Ok(None),
            };
        };
        let mut start = None;
        for (at, byte) in buffer[..=end].iter().enumerate() {
            match (byte.is_ascii_whitespace(), start) {
                (false, None) => start = Some(at),
                (true, Some(from)) => {
                    self.spans.push((from as u32, at as u32));
                    start = None;
                }
                _ => {}
            }
        }
        if self.spans.len() > limits.arguments_max {
            let (found, max) = (self.spans.len(), limits.arguments_max);
            return Err(ProtocolError::TooManyArguments(found, max));
        }
        Ok(Some(end + 1))
    }
}

/// The decimal number with its CR LF from `at` on, and where it ends; `None` if some of it is
/// missing.
fn length(buffer: &[u8], at: usize) -> Result<Option<(usize, usize)>, ProtocolError> {
    let rest = &buffer[at.min(buffer.len())..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits..) {
        _ if digits > LENGTH_LINE_MAX - 3 => Err(ProtocolError::Length),
        Some([] | [b'\r']) => Ok(None),
        Some([b'\r', b'\n', ..]) if digits > 0 => {
            let value = rest[..digits]
                .iter()
                .fold(0, |value, digit| value * 10 + usize::from(digit - b'0'));
            Ok(Some((value, at + digits + 2)))
        }
        _ => Err(ProtocolError::Length),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        arguments_max: 8,
        bytes_max: 256,
    };

    type Requests = Vec<Vec<Vec<u8>>>;

    /// Feeds pieces as a connection does; ends at the first error.
    fn feed(pieces: &[&[u8]]) -> (Requests, Option<ProtocolError>) {
        let (mut parser, mut buffer, mut found) = (Parser::default(), Vec::new(), Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            loop {
                match parser.parse(&buffer, LIMITS) {
                    Err(error) => return (found, Some(error)),
                    Ok(None) => break,
                    Ok(Some(length)) => {
                        let spans = parser.spans().iter();
                        let argument = |&(a, b): &Span| buffer[a as usize..b as usize].to_vec();
                        found.push(spans.map(argument).collect());
                        buffer.drain(..length);
                    }
                }
            }
        }
        (found, None)
    }

    fn encode(request: &[Vec<u8>]) -> Vec<u8> {
        let mut text = format!("*{}\r\n", request.len()).into_bytes();
        for argument in request {
            text.extend(format!("${}\r\n", argument.len()).bytes());
            text.extend(argument);
            text.extend(b"\r\n");
        }
        text
    }

    #[test]
    fn what_redis_cli_and_a_hand_send_is_understood() {
        let (found, error) =
            feed(&[b"*2\r\n$4\r\nPING\r\n$2\r\nhi\r\nSET  key value\r\n\r\n*0\r\n"]);
        assert_eq!(error, None);
        let words = |words: &[&str]| words.iter().map(|it| it.as_bytes().to_vec()).collect();
        let expected: Requests = vec![
            words(&["PING", "hi"]),
            words(&["SET", "key", "value"]),
            vec![],
            vec![],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_too_much_or_malformed_is_refused_before_it_is_stored() {
        let error = |text: &[u8]| feed(&[text]).1.expect("an error");
        assert_eq!(error(b"*9\r\n"), ProtocolError::TooManyArguments(9, 8));
        assert_eq!(error(b"*1\r\n$4294967295\r\n"), ProtocolError::TooLong(256));
        assert_eq!(error(b"*99999999999"), ProtocolError::Length);
        assert_eq!(error(b"*1\r\n$-1\r\n"), ProtocolError::Length);
        assert_eq!(error(b"*-1\r\n"), ProtocolError::Length);
        assert_eq!(error(b"*1\r\n$1\r\nabc"), ProtocolError::Terminator);
        assert_eq!(error(b"*1\r\n+OK\r\n"), ProtocolError::Bulk(1));
        assert_eq!(error(b"$4\r\nPING\r\n"), ProtocolError::Start(b'$'));
        assert_eq!(error(&[b'a'; 300]), ProtocolError::TooLong(256));
    }

    fn pieces<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
        let mut cuts: Vec<usize> = cuts.iter().map(|it| it % (text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.windows(2)
            .map(|pair| &text[pair[0]..pair[1]])
            .collect()
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_requests(
            requests in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 0..6), 0..6),
            cuts in proptest::collection::vec(any::<usize>(), 0..12),
        ) {
            let text: Vec<u8> = requests.iter().flat_map(|it| encode(it)).collect();
            prop_assert_eq!(feed(&pieces(&text, &cuts)), (requests, None));
        }

        #[test]
        fn any_cut_of_garbage_is_understood_alike(
            text in proptest::collection::vec(
                proptest::sample::select(&b"*$0129-\r\r\r\n\n\nPa \x00\xff"[..]), 0..80),
            cuts in proptest::collection::vec(any::<usize>(), 0..8),
        ) {
            prop_assert_eq!(feed(&pieces(&text, &cuts)), feed(&[&text]));
        }
    }
}

//! RESP 2 and 3: Redis, Valkey and the reference server.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::rngs::SmallRng;

use super::{Conversation, Ending, Order, ProtocolError, Received, Step};
use crate::keys::Picker;
use crate::script::{Command, Piece, Script};

const NAME: &str = "RESP";
/// A line or a text longer than this is no answer to what is asked here.
const TEXT_MAX: usize = 64 << 20;
/// Arrays inside arrays, at most.
const DEPTH_MAX: usize = 16;

/// Numbers are written with leading zeros, so that every request of a command is as long as any
/// other, and its text is made once.
const KEY_DIGITS: usize = 12;
const SESSION_DIGITS: usize = 6;

// -- the conversation ------------------------------------------------------------------------

/// What all connections of a run share.
#[derive(Debug)]
pub struct RespPlan {
    kinds: Vec<Kind>,
    password: Option<String>,
}

#[derive(Debug)]
struct Kind {
    commands: Vec<Template>,
    ends_at_nil: bool,
}

impl RespPlan {
    pub fn new(scripts: &[Script], value_bytes: usize, password: Option<String>) -> Self {
        let value = vec![b'x'; value_bytes];
        let kind = |script: &Script| Kind {
            commands: script
                .commands
                .iter()
                .map(|command| Template::of(command, &value))
                .collect(),
            ends_at_nil: script.ends_at_nil,
        };
        Self {
            kinds: scripts.iter().map(kind).collect(),
            password,
        }
    }
}

/// A connection to a server that speaks RESP.
#[derive(Debug)]
pub struct Resp {
    plan: Arc<RespPlan>,
    picker: Picker,
    session: u64,
    count: u64,
    greeting: bool,
    /// In the order in which their next answers come.
    under_way: VecDeque<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    order: Order,
    /// Command that was sent last.
    at: usize,
    numbers: Numbers,
}

impl Resp {
    pub fn new(plan: Arc<RespPlan>, picker: Picker, session: u64) -> Self {
        Self {
            plan,
            picker,
            session,
            count: 0,
            greeting: false,
            under_way: VecDeque::new(),
        }
    }

    fn answered(&mut self, reply: Reply, out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        if self.greeting {
            self.greeting = false;
            return match reply {
                Reply::Error(text) => Err(ProtocolError::Login(text.to_owned())),
                _ => Ok(Step::Greeted),
            };
        }
        let Some(mut doing) = self.under_way.pop_front() else {
            return Err(ProtocolError::Unasked(format!("{reply:?}")));
        };
        let kind = &self.plan.kinds[doing.order.kind];
        let ending = match reply {
            Reply::Error(text) => Ending::Error(error_kind(text)),
            Reply::Nil if kind.ends_at_nil => Ending::Refused,
            _ => {
                doing.at += 1;
                match kind.commands.get(doing.at) {
                    None => Ending::Ok,
                    Some(command) => {
                        command.put(doing.numbers, out);
                        self.under_way.push_back(doing);
                        return Ok(Step::Continue);
                    }
                }
            }
        };
        Ok(Step::Done(doing.order, ending))
    }
}

impl Conversation for Resp {
    fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(password) = &self.plan.password else {
            return false;
        };
        put_array(out, 2);
        put_bulk(out, b"AUTH");
        put_bulk(out, password.as_bytes());
        self.greeting = true;
        true
    }

    fn begin(&mut self, order: Order, random: &mut SmallRng, out: &mut Vec<u8>) {
        let numbers = Numbers {
            key: self.picker.pick(random),
            session: self.session,
            count: self.count,
        };
        self.count += 1;
        self.plan.kinds[order.kind].commands[0].put(numbers, out);
        self.under_way.push_back(UnderWay {
            order,
            at: 0,
            numbers,
        });
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let Some((reply, consumed)) = parse(input)? else {
            return Ok(Received {
                consumed: 0,
                step: Step::NeedMore,
            });
        };
        let step = match reply {
            // Out of band: an answer to nothing.
            Reply::Push => Step::Continue,
            _ => self.answered(reply, out)?,
        };
        Ok(Received { consumed, step })
    }
}

/// The first word of an error says its kind.
fn error_kind(text: &str) -> String {
    let word = text.split_ascii_whitespace().next().unwrap_or("ERR");
    word.chars().take(32).collect()
}

// -- requests --------------------------------------------------------------------------------

/// What differs from one request of a command to the next.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    key: u64,
    session: u64,
    count: u64,
}

/// A command as it is sent, and where its numbers go.
#[derive(Debug)]
struct Template {
    bytes: Vec<u8>,
    slots: Vec<(usize, Slot)>,
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Key,
    Session,
    Count,
}

impl Template {
    fn of(command: &Command, value: &[u8]) -> Self {
        let (mut bytes, mut slots) = (Vec::new(), Vec::new());
        put_array(&mut bytes, command.words.len());
        for word in &command.words {
            let (mut text, mut inside) = (Vec::new(), Vec::new());
            for piece in &word.pieces {
                let (slot, digits) = match piece {
                    Piece::Text(part) => {
                        text.extend_from_slice(part);
                        continue;
                    }
                    Piece::Value => {
                        text.extend_from_slice(value);
                        continue;
                    }
                    Piece::Key => {
                        text.extend_from_slice(b"key:");
                        (Slot::Key, KEY_DIGITS)
                    }
                    Piece::Session => (Slot::Session, SESSION_DIGITS),
                    Piece::Count => (Slot::Count, KEY_DIGITS),
                };
                inside.push((text.len(), slot));
                text.resize(text.len() + digits, b'0');
            }
            put_bulk(&mut bytes, &text);
            let begin = bytes.len() - text.len() - 2;
            slots.extend(inside.into_iter().map(|(at, slot)| (begin + at, slot)));
        }
        Self { bytes, slots }
    }

    fn put(&self, numbers: Numbers, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        for (at, slot) in &self.slots {
            let (number, digits) = match slot {
                Slot::Key => (numbers.key, KEY_DIGITS),
                Slot::Session => (numbers.session, SESSION_DIGITS),
                Slot::Count => (numbers.count, KEY_DIGITS),
            };
            put_digits(number, &mut out[begin + at..][..digits]);
        }
    }
}

/// A number with leading zeros; what does not fit is cut off in front.
fn put_digits(mut number: u64, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        if number == 0 {
            break;
        }
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn put_array(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(format!("*{length}\r\n").as_bytes());
}

fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

// -- replies ---------------------------------------------------------------------------------

/// What matters of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply<'a> {
    Ok,
    Nil,
    Error(&'a str),
    Push,
}

/// The first reply in `input` and its length; `None` if it is not whole.
fn parse(input: &[u8]) -> Result<Option<(Reply<'_>, usize)>, ProtocolError> {
    parse_at(input, DEPTH_MAX)
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
        b'+' | b':' | b'#' | b',' | b'(' => Ok(Some((Reply::Ok, consumed))),
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
            let mut at = consumed;
            for _ in 0..parts {
                match parse_at(&input[at..], depth - 1)? {
                    None => return Ok(None),
                    Some((_, consumed)) => at += consumed,
                }
            }
            match kind {
                b'>' => Ok(Some((Reply::Push, at))),
                // Attributes stand before the reply that they are about.
                b'|' => {
                    let reply = parse_at(&input[at..], depth - 1)?;
                    Ok(reply.map(|(reply, consumed)| (reply, at + consumed)))
                }
                _ => Ok(Some((Reply::Ok, at))),
            }
        }
    }
}

/// Where the first line ends, without its two last characters.
fn line_end(input: &[u8]) -> Result<Option<usize>, ProtocolError> {
    match input.iter().position(|byte| *byte == b'\r') {
        Some(end) if end + 1 == input.len() => Ok(None),
        Some(end) if input[end + 1] == b'\n' => Ok(Some(end)),
        None if input.len() < TEXT_MAX => Ok(None),
        _ => Err(garbage(input)),
    }
}

/// The length in a line: outer `None` if it is none, inner for −1.
fn length_of(line: &[u8]) -> Option<Option<usize>> {
    if line == b"-1" {
        return Some(None);
    }
    let length: usize = std::str::from_utf8(line).ok()?.parse().ok()?;
    (length <= TEXT_MAX).then_some(Some(length))
}

fn garbage(input: &[u8]) -> ProtocolError {
    let shown = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
    ProtocolError::Garbage(shown, NAME)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;
    use crate::keys::Keys;

    fn session(scripts: &[Script], password: Option<&str>) -> Resp {
        let plan = RespPlan::new(scripts, 3, password.map(str::to_owned));
        Resp::new(Arc::new(plan), Picker::new(Keys::Session, 42), 42)
    }

    fn order(due_ns: u64) -> Order {
        Order { kind: 0, due_ns }
    }

    fn said(session: &mut Resp, order: Order) -> String {
        let mut out = Vec::new();
        session.begin(order, &mut SmallRng::seed_from_u64(1), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_request_as_it_is_sent() {
        let mut session = session(
            &[Script::of("set", 1, &["SET a{key} {value} {session}:{count}"]).unwrap()],
            None,
        );
        let expected = "*4\r\n$3\r\nSET\r\n$17\r\nakey:000000000042\r\n$3\r\nxxx\r\n\
            $19\r\n000042:000000000000\r\n";
        assert_eq!(said(&mut session, order(1)), expected);
        assert!(said(&mut session, order(1)).ends_with("000042:000000000001\r\n"));
    }

    #[test]
    fn a_transaction_of_two_commands() {
        let mut session = session(&[Script::named("set-nx-del", 1).unwrap()], None);
        said(&mut session, order(5));
        let mut out = Vec::new();
        let received = session.receive(b"+OK\r\n", &mut out).unwrap();
        assert_eq!((received.consumed, received.step), (5, Step::Continue));
        assert_eq!(out, b"*2\r\n$3\r\nDEL\r\n$16\r\nkey:000000000042\r\n");
        let received = session.receive(b":1\r\nrest", &mut out).unwrap();
        assert_eq!(received.step, Step::Done(order(5), Ending::Ok));
        assert_eq!(received.consumed, 4);
    }

    #[test]
    fn a_lock_that_is_taken_is_refused_and_not_released() {
        let mut session = session(&[Script::named("set-nx-del", 1).unwrap()], None);
        for nil in ["$-1\r\n", "_\r\n"] {
            said(&mut session, order(5));
            let mut out = Vec::new();
            let received = session.receive(nil.as_bytes(), &mut out).unwrap();
            assert_eq!(received.step, Step::Done(order(5), Ending::Refused));
            assert!(out.is_empty());
        }
    }

    #[test]
    fn errors_are_told_by_kind() {
        let mut session = session(&[Script::named("get", 1).unwrap()], None);
        said(&mut session, order(1));
        let reply = b"-WRONGTYPE Operation against a key\r\n";
        let received = session.receive(reply, &mut Vec::new()).unwrap();
        let ending = Ending::Error("WRONGTYPE".to_owned());
        assert_eq!(received.step, Step::Done(order(1), ending));
    }

    #[test]
    fn logging_in() {
        let mut out = Vec::new();
        let mut session = session(&[Script::named("get", 1).unwrap()], Some("secret"));
        assert!(session.greet(&mut out));
        assert_eq!(out, b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n");
        let refused = session.receive(b"-WRONGPASS no\r\n", &mut Vec::new());
        assert_eq!(
            refused,
            Err(ProtocolError::Login("WRONGPASS no".to_owned()))
        );
    }

    #[test]
    fn an_answer_to_nothing_is_an_error() {
        let mut session = session(&[Script::named("get", 1).unwrap()], None);
        assert!(session.receive(b"+OK\r\n", &mut Vec::new()).is_err());
        let push = session.receive(b">2\r\n+a\r\n+b\r\n", &mut Vec::new());
        assert_eq!(push.unwrap().step, Step::Continue);
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
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        let nested = "*1\r\n".repeat(100);
        assert!(parse(nested.as_bytes()).is_err());
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

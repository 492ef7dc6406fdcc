//! One connection's conversation: its greeting, and then trips.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::Shared;
use super::greeting::Service;
use super::prepared::{is_statement, put_run};
use super::reply::{self, Reply};
use super::request::put_command;
use crate::protocol::{Conversation, Message, ProtocolError, Received};
use crate::workload::{Answer, Numbers};

const LOGIN_REMEDY: &str = "--password-from VARIABLE names the environment variable with the password, and a user is \
     named in redis://USER@HOST:PORT";

/// What the record service says of a record that is not there.
const NO_RECORD: [&str; 2] = ["KEYNOTFOUND ", "ENDOFFILE "];

/// A connection to a server that speaks RESP.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    /// Answers to the greeting that are still to come.
    greetings: usize,
    /// In the order in which their answers come.
    trips: VecDeque<Trip>,
}

#[derive(Debug)]
struct Trip {
    /// Replies that are still to come.
    awaited: usize,
    error: Option<String>,
    of: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Workload,
    /// Not of the workload: its error is told in full.
    Once,
    /// The end of a transaction that failed: nobody waits for it.
    Abort,
}

impl Connection {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            greetings: 0,
            trips: VecDeque::new(),
        }
    }

    fn await_replies(&mut self, awaited: usize, of: Of) {
        self.trips.push_back(Trip {
            awaited,
            error: None,
            of,
        });
    }

    fn heard(&mut self, mut reply: Reply, out: &mut Vec<u8>) -> Result<Message, ProtocolError> {
        if self.greetings > 0 {
            self.greetings -= 1;
            return match (reply, self.shared.prepared_by(self.greetings)) {
                (Reply::Error(text), None) => {
                    Err(ProtocolError::Login(text.to_owned(), LOGIN_REMEDY))
                }
                (Reply::Error(text), Some(prepared)) => {
                    let statement = prepared.text.clone();
                    Err(ProtocolError::Statement(statement, text.to_owned()))
                }
                _ if self.greetings > 0 => Ok(Message::Aside),
                _ => Ok(Message::Greeted),
            };
        }
        let Some(trip) = self.trips.front_mut() else {
            return Err(ProtocolError::Unasked(format!("{reply:?}")));
        };
        let is_no_record = |text: &str| NO_RECORD.iter().any(|it| text.starts_with(it));
        if let Reply::Error(text) = reply
            && self.shared.greeting.service == Service::Records
            && is_no_record(text)
        {
            reply = Reply::Nil;
        }
        if let Reply::Error(text) = reply {
            if text.starts_with("NOAUTH") {
                return Err(ProtocolError::Login(text.to_owned(), LOGIN_REMEDY));
            }
            trip.error.get_or_insert_with(|| match trip.of {
                Of::Once => text.to_owned(),
                _ => error_kind(text),
            });
        }
        trip.awaited -= 1;
        if trip.awaited > 0 {
            return Ok(Message::Aside);
        }
        let of = trip.of;
        let error = self.trips.pop_front().and_then(|it| it.error);
        if of == Of::Abort {
            return Ok(Message::Aside);
        }
        if of == Of::Workload && error.is_some() && self.shared.has_transactions() {
            self.abort(out);
        }
        Ok(Message::Answer(match (error, reply) {
            (Some(kind), _) => Answer::Error(kind),
            (None, Reply::Nil) => Answer::Nothing,
            (None, Reply::Number(number)) => Answer::Done(Some(number)),
            (None, _) => Answer::Done(None),
        }))
    }

    fn abort(&mut self, out: &mut Vec<u8>) {
        self.await_replies(1, Of::Abort);
        put_command(&["ABORT"], out);
    }
}

impl Conversation for Connection {
    fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        let shared = self.shared.clone();
        let database = shared.greeting.database.to_string();
        let mut commands = shared.greeting.commands();
        if shared.greeting.database != 0 {
            commands.push(vec!["SELECT", &database]);
        }
        for prepared in shared.prepared() {
            commands.push(vec!["PREPARE", &prepared.name, &prepared.text]);
        }
        for command in &commands {
            put_command(command, out);
        }
        self.greetings = commands.len();
        self.greetings > 0
    }

    fn ask(&mut self, statements: Range<usize>, numbers: &Numbers, out: &mut Vec<u8>) {
        self.await_replies(statements.len(), Of::Workload);
        for template in &self.shared.templates[statements] {
            template.put(numbers, out);
        }
    }

    fn ask_once(&mut self, statement: &str, out: &mut Vec<u8>) {
        self.await_replies(1, Of::Once);
        if self.shared.greeting.service == Service::Statements && is_statement(statement) {
            return put_run(statement, out);
        }
        let words: Vec<&str> = statement.split_ascii_whitespace().collect();
        put_command(&words, out);
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let Some((reply, consumed)) = reply::parse(input)? else {
            return Ok(Received {
                consumed: 0,
                message: Message::Partial,
            });
        };
        let message = match reply {
            // Out of band: an answer to nothing.
            Reply::Push => Message::Aside,
            _ => self.heard(reply, out)?,
        };
        Ok(Received { consumed, message })
    }
}

/// The first word of an error says its kind. `ERR` says none: there the plain words behind it do,
/// up to the first that may be a name or a number.
fn error_kind(text: &str) -> String {
    let mut words = text.split_ascii_whitespace();
    let mut kind = words.next().unwrap_or("ERR").to_owned();
    if kind == "ERR" {
        let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
        for word in words.take_while(is_plain) {
            kind.push(' ');
            kind.push_str(word);
        }
    }
    kind.chars().take(48).collect()
}

//! The conversation on one connection: the log-in, then requests.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::login::{Login, Service};
use super::refusal::{self, Command};
use super::reply::{Reply, ReplyReader, error_code};
use super::request::{Prepared, Template, is_statement, put_command, put_run};
use crate::protocol::{Conversation, Message, ProtocolError, Received};
use crate::workload::{Answer, Parameters};

/// How the record service answers that a record does not exist.
const NO_RECORD: [&str; 2] = ["KEYNOTFOUND", "ENDOFFILE"];

/// The conversation on one connection.
#[derive(Debug)]
pub struct RespConversation {
    shared: Arc<Shared>,
    /// Replies to the log-in that are still to come.
    login_replies: usize,
    reader: ReplyReader,
    /// In the order in which their answers come.
    pending: VecDeque<PendingRequest>,
}

#[derive(Debug)]
struct PendingRequest {
    /// Replies that are still to come.
    replies: usize,
    error: Option<String>,
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Workload,
    /// A statement that is not the workload's: its error is reported in full.
    Once,
    /// The abort of a transaction that failed: its answer is not passed on.
    Abort,
}

/// What all connections of a run share.
#[derive(Debug)]
pub struct Shared {
    pub templates: Vec<Template>,
    pub login: Login,
    /// The command that ends a transaction which failed, if the workload may have one open then. Where none
    /// is, it is refused, and nobody is told.
    pub abort: Option<&'static str>,
}

impl Shared {
    /// The statements that a connection prepares, at the end of the log-in.
    fn prepared(&self) -> impl DoubleEndedIterator<Item = &Prepared> {
        self.templates.iter().filter_map(|it| match it {
            Template::Prepared(prepared) => Some(prepared),
            _ => None,
        })
    }

    /// The statement that a reply to the log-in is about, if so many more replies are to come.
    fn prepared_by(&self, replies_left: usize) -> Option<&Prepared> {
        self.prepared().rev().nth(replies_left)
    }

    /// Why a command of the log-in is refused, if so many more replies are to come.
    fn refusal(&self, replies_left: usize, why: String) -> ProtocolError {
        if let Some(prepared) = self.prepared_by(replies_left) {
            return ProtocolError::Statement(prepared.text.clone(), why);
        }
        // It stands behind the first command, before what is prepared.
        let selects = self.login.database != 0 && replies_left == self.prepared().count();
        let command = match selects {
            true => Command::Select,
            false => Command::First,
        };
        refusal::of_login(&self.login, command, why)
    }
}

impl RespConversation {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            login_replies: 0,
            reader: ReplyReader::default(),
            pending: VecDeque::new(),
        }
    }

    fn expect_replies(&mut self, replies: usize, purpose: Purpose) {
        self.pending.push_back(PendingRequest {
            replies,
            error: None,
            purpose,
        });
    }

    fn receive_reply(
        &mut self,
        mut reply: Reply,
        out: &mut Vec<u8>,
    ) -> Result<Message, ProtocolError> {
        if self.login_replies > 0 {
            self.login_replies -= 1;
            return match reply {
                Reply::Error(why) => Err(self.shared.refusal(self.login_replies, why)),
                _ if self.login_replies > 0 => Ok(Message::Intermediate),
                _ => Ok(Message::Ready),
            };
        }
        if let Reply::Error(text) = &reply
            && let Some(refused) = refusal::of_connection(text)
        {
            return Err(refused);
        }
        let Some(request) = self.pending.front_mut() else {
            return Err(ProtocolError::Unasked(reply.shown()));
        };
        if let Reply::Error(text) = &reply
            && self.shared.login.service == Service::Records
            && NO_RECORD.contains(&error_code(text))
        {
            reply = Reply::Nil;
        }
        if let Reply::Error(text) = &reply {
            if error_code(text) == "NOAUTH" {
                return Err(refusal::of_user(text.clone()));
            }
            request.error.get_or_insert_with(|| match request.purpose {
                Purpose::Once => text.clone(),
                _ => error_kind(text),
            });
        }
        request.replies -= 1;
        if request.replies > 0 {
            return Ok(Message::Intermediate);
        }
        let purpose = request.purpose;
        let error = self.pending.pop_front().and_then(|it| it.error);
        if purpose == Purpose::Abort {
            return Ok(Message::Intermediate);
        }
        if purpose == Purpose::Workload
            && error.is_some()
            && let Some(abort) = self.shared.abort
        {
            self.expect_replies(1, Purpose::Abort);
            put_command(&[abort], out);
        }
        Ok(Message::Answer(match (error, reply) {
            (Some(kind), _) => Answer::Error(kind),
            (None, Reply::Nil | Reply::Empty) => Answer::Nothing,
            (None, Reply::Number(number)) => Answer::Done(Some(number)),
            (None, _) => Answer::Done(None),
        }))
    }
}

impl Conversation for RespConversation {
    fn begin(&mut self, out: &mut Vec<u8>) -> bool {
        let shared = self.shared.clone();
        let database = shared.login.database.to_string();
        let mut commands = shared.login.commands();
        if shared.login.database != 0 {
            commands.push(vec!["SELECT", &database]);
        }
        for prepared in shared.prepared() {
            commands.push(vec!["PREPARE", &prepared.name, &prepared.text]);
        }
        for command in &commands {
            put_command(command, out);
        }
        self.login_replies = commands.len();
        self.login_replies > 0
    }

    fn request(&mut self, statements: Range<usize>, parameters: &Parameters, out: &mut Vec<u8>) {
        self.expect_replies(statements.len(), Purpose::Workload);
        for template in &self.shared.templates[statements] {
            template.put(parameters, out);
        }
    }

    fn request_once(&mut self, statement: &str, out: &mut Vec<u8>) {
        self.expect_replies(1, Purpose::Once);
        if self.shared.login.service == Service::Statements && is_statement(statement) {
            return put_run(statement, out);
        }
        let words: Vec<&str> = statement.split_ascii_whitespace().collect();
        put_command(&words, out);
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let (consumed, reply) = self.reader.read(input)?;
        let message = match reply {
            None => Message::Partial,
            // Sent by the server without a request.
            Some(Reply::Push) => Message::Intermediate,
            Some(reply) => self.receive_reply(reply, out)?,
        };
        Ok(Received { consumed, message })
    }
}

/// The kind of an error is its first word. `ERR` stands for many kinds: there the words after it are
/// added, up to the first that may be a name or a number.
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
    kind
}

//! The conversation on one connection: the log-in, preparing all statements, then requests.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::login::{Authentication, Login};
use super::message::{
    self, Frame, ServerError, error_kind, first_number, found_nothing, frame, parameter_types,
    server_error,
};
use super::request::{NewText, Prepared, Query, SYNC, Template, put_parse, put_query};
use crate::protocol::{Conversation, Message, ProtocolError, Received};
use crate::workload::{Answer, Parameters, Statement};

/// The transaction status in ReadyForQuery: in a failed transaction.
const FAILED: &[u8] = b"E";

/// What all connections of a run share.
#[derive(Debug)]
pub struct Shared {
    pub login: Login,
    pub statements: Vec<Statement>,
    /// The prepared ones among them.
    pub queries: Vec<Query>,
    /// Set when the first connection knows the types of the parameters; the same for all.
    pub templates: OnceLock<Vec<Template>>,
}

impl Shared {
    /// The templates of all statements; `types` are those of the parameters of each query.
    fn templates_of(&self, types: &[Vec<u32>]) -> Result<Vec<Template>, ProtocolError> {
        let mut prepared = self.queries.iter().enumerate();
        let mut next = || {
            let (number, query) = prepared
                .next()
                .expect("there is one for each statement that is not new");
            match types.get(number) {
                Some(types) if types.len() == query.slots.len() => Ok(Prepared::of(query, types)),
                _ => Err(refused(query, "it has parameters beside its numbers")),
            }
        };
        let template = |statement: &Statement| match statement.is_new {
            true => Ok(Template::New(NewText::of(statement))),
            false => next().map(Template::Prepared),
        };
        self.statements.iter().map(template).collect()
    }
}

/// The conversation on one connection.
#[derive(Debug)]
pub struct PostgresConversation {
    shared: Arc<Shared>,
    stage: Stage,
    /// In the order of their ReadyForQuery messages.
    pending: VecDeque<Pending>,
    /// What the server has sent for the first of them.
    results: Results,
    /// The code of the error after which the server closes the connection.
    farewell: Option<String>,
}

#[derive(Debug)]
enum Stage {
    Authentication(Authentication),
    Preparing(Preparing),
    Ready,
}

/// What the server has said of the statements that are being prepared.
#[derive(Debug, Default)]
struct Preparing {
    parsed: usize,
    /// Types of the parameters, by statement, if they were requested.
    types: Vec<Vec<u32>>,
}

#[derive(Debug)]
enum Pending {
    /// Statements of the workload.
    Request,
    /// A statement that is not the workload's: its error is reported in full.
    Once,
    /// A rollback that this client has added, and the answer that made it necessary, if that is
    /// passed on only after the rollback.
    Rollback(Option<Answer>),
}

/// What a request has returned so far.
#[derive(Debug, Default)]
struct Results {
    number: Option<i64>,
    nothing: bool,
    error: Option<String>,
}

impl PostgresConversation {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            stage: Stage::Authentication(Authentication::default()),
            pending: VecDeque::new(),
            results: Results::default(),
            farewell: None,
        }
    }

    fn log_in(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Result<Message, ProtocolError> {
        let shared = &*self.shared;
        match (&mut self.stage, frame.kind) {
            (Stage::Authentication(_), b'Z') if shared.queries.is_empty() => {
                let templates = shared.templates_of(&[])?;
                shared.templates.get_or_init(|| templates);
                return Ok(self.ready());
            }
            (Stage::Authentication(_), b'Z') => {
                let describe = shared.templates.get().is_none();
                for query in &shared.queries {
                    put_parse(query, describe, out)
                        .map_err(|error| refused(query, &error.to_string()))?;
                }
                out.extend_from_slice(&SYNC);
                self.stage = Stage::Preparing(Preparing::default());
            }
            (Stage::Authentication(authentication), _) => {
                authentication.receive(frame, &shared.login, out)?
            }
            (Stage::Preparing(preparing), b'1') => preparing.parsed += 1,
            (Stage::Preparing(preparing), b't') => {
                let types = parameter_types(frame.body);
                let types = types.ok_or_else(|| message::garbage(frame.body))?;
                preparing.types.push(types);
            }
            (Stage::Preparing(preparing), b'E') => {
                // After an error the server ignores all messages up to Sync.
                let query = shared.queries.get(preparing.parsed);
                let error = server_error(frame.body);
                let text = format!("{} ({})", error.text, error.code);
                return Err(refused(query.unwrap_or(&shared.queries[0]), &text));
            }
            (Stage::Preparing(preparing), b'Z') => {
                if shared.templates.get().is_none() {
                    let templates = shared.templates_of(&preparing.types)?;
                    // Another connection may have set the same value in the meantime.
                    shared.templates.get_or_init(|| templates);
                }
                return Ok(self.ready());
            }
            // NoData, RowDescription, ParameterStatus, NoticeResponse.
            (Stage::Preparing(_), _) | (Stage::Ready, _) => {}
        }
        Ok(Message::Intermediate)
    }

    fn ready(&mut self) -> Message {
        self.stage = Stage::Ready;
        Message::Ready
    }

    /// Takes a message after the log-in; `Some` if it completes an answer.
    fn receive_frame(
        &mut self,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Message>, ProtocolError> {
        match frame.kind {
            b'D' => self.results.number = first_number(frame.body),
            b'C' => self.results.nothing = found_nothing(frame.body),
            b'Z' => return self.ready_for_query(frame.body, out),
            b'E' => self.failed(frame.body),
            b'N' => self.take_farewell(&server_error(frame.body)),
            // CopyInResponse: this client has no data to copy, so it sends CopyFail.
            b'G' => out.extend_from_slice(b"f\0\0\0\x05\0"),
            // BindComplete, EmptyQueryResponse, RowDescription, ParameterStatus, …
            _ => {}
        }
        Ok(None)
    }

    /// Keeps an error until ReadyForQuery. After an error that ends the session there is no
    /// ReadyForQuery: the request stays unanswered, and its transaction is in doubt.
    fn failed(&mut self, body: &[u8]) {
        let error = server_error(body);
        self.take_farewell(&error);
        let text = match self.pending.front() {
            Some(Pending::Once) => format!("{} ({})", error.text, error.code),
            _ => error_kind(&error.code),
        };
        self.results.error.get_or_insert(text);
    }

    /// Keeps the code of an error or a notice after which the server closes the connection.
    fn take_farewell(&mut self, error: &ServerError) {
        if error.ends_connection() {
            self.farewell = Some(error.code.clone());
        }
    }

    /// Takes ReadyForQuery, which ends the answer to a request.
    fn ready_for_query(
        &mut self,
        status: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Message>, ProtocolError> {
        let results = std::mem::take(&mut self.results);
        let answer = match self.pending.pop_front() {
            Some(Pending::Request | Pending::Once) => results.answer(),
            Some(Pending::Rollback(answer)) => return Ok(answer.map(Message::Answer)),
            None => return Err(ProtocolError::Unasked("ready".to_owned())),
        };
        if status != FAILED {
            return Ok(Some(Message::Answer(answer)));
        }
        let is_rollback = |it: &Pending| matches!(it, Pending::Rollback(_));
        if self.pending.iter().any(is_rollback) {
            return Ok(Some(Message::Answer(answer)));
        }
        put_query("ROLLBACK", out);
        // Answers keep their order: if other requests are pending, this answer cannot wait for the
        // rollback.
        let (held, passed_on) = match self.pending.is_empty() {
            true => (Some(answer), None),
            false => (None, Some(Message::Answer(answer))),
        };
        self.pending.push_back(Pending::Rollback(held));
        Ok(passed_on)
    }
}

impl Results {
    fn answer(self) -> Answer {
        match (self.error, self.nothing) {
            (Some(kind), _) => Answer::Error(kind),
            (None, true) => Answer::Nothing,
            (None, false) => Answer::Done(self.number),
        }
    }
}

impl Conversation for PostgresConversation {
    fn begin(&mut self, out: &mut Vec<u8>) -> bool {
        self.shared.login.put(out);
        true
    }

    fn request(&mut self, statements: Range<usize>, parameters: &Parameters, out: &mut Vec<u8>) {
        self.pending.push_back(Pending::Request);
        let templates = self.shared.templates.get().expect("made by the log-in");
        for template in &templates[statements] {
            template.put(parameters, out);
        }
        out.extend_from_slice(&SYNC);
    }

    fn request_once(&mut self, statement: &str, out: &mut Vec<u8>) {
        self.pending.push_back(Pending::Once);
        put_query(statement, out);
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let mut consumed = 0;
        while let Some(frame) = frame(&input[consumed..])? {
            consumed += frame.length();
            let message = match self.stage {
                Stage::Ready => self.receive_frame(frame, out)?,
                _ => Some(self.log_in(frame, out)?).filter(|it| *it != Message::Intermediate),
            };
            if let Some(message) = message {
                return Ok(Received { consumed, message });
            }
        }
        let message = match consumed {
            0 => Message::Partial,
            _ => Message::Intermediate,
        };
        Ok(Received { consumed, message })
    }

    fn farewell(&self) -> Option<&str> {
        self.farewell.as_deref()
    }
}

fn refused(query: &Query, text: &str) -> ProtocolError {
    ProtocolError::Statement(query.text.clone(), text.to_owned())
}

//! RESP 2 and 3: Redis, Valkey and the reference server.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::{Conversation, Message, Protocol, ProtocolError, Received};
use crate::workload::statement::Piece;
use crate::workload::{Answer, Numbers, Statement};

mod prepared;
mod reply;
mod request;
mod url;

pub use url::{
    FORMS, RECORDS_FORMS, STATEMENTS_FORMS, parse as parse_url, parse_bare, parse_service,
};

use prepared::{Anew, Prepared, is_statement, put_run};
use reply::Reply;
use request::{Request, Template, put_command};

const NAME: &str = "RESP";
const LOGIN_REMEDY: &str = "--password-from VARIABLE names the environment variable with the password, and a user is \
     named in redis://USER@HOST:PORT";

/// How connections begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    /// RESP 3 instead of 2.
    pub resp3: bool,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    pub service: Service,
}

/// What is at the other end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Service {
    /// Keys and values: each command is for itself.
    #[default]
    Keys,
    /// The reference server's records. As with the next one there are transactions, which must be
    /// aborted after an error.
    Records,
    /// The reference server's statements, which are prepared.
    Statements,
}

/// What all connections of a run share.
#[derive(Debug)]
pub struct Resp {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    templates: Vec<Template>,
    greeting: Greeting,
}

impl Resp {
    pub fn new(statements: &[Statement], greeting: Greeting) -> Self {
        let template =
            |(number, statement): (usize, &Statement)| greeting.template(number, statement);
        let templates = statements.iter().enumerate().map(template).collect();
        Self {
            shared: Arc::new(Shared {
                templates,
                greeting,
            }),
        }
    }
}

impl Shared {
    fn has_transactions(&self) -> bool {
        self.greeting.service != Service::Keys
    }

    /// What connections prepare, last of all when they begin.
    fn prepared(&self) -> impl DoubleEndedIterator<Item = &Prepared> {
        self.templates.iter().filter_map(|it| match it {
            Template::Prepared(prepared) => Some(prepared),
            _ => None,
        })
    }

    /// Which statement an answer is about when so many are still to come of the greeting.
    fn prepared_by(&self, awaited: usize) -> Option<&Prepared> {
        self.prepared().rev().nth(awaited)
    }
}

impl Protocol for Resp {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(Connection {
            shared: self.shared.clone(),
            greetings: 0,
            trips: VecDeque::new(),
        })
    }
}

impl Greeting {
    fn template(&self, number: usize, statement: &Statement) -> Template {
        let is_statement = match statement.pieces.first() {
            Some(Piece::Text(text)) => is_statement(text),
            _ => false,
        };
        match self.service {
            Service::Statements if statement.is_new => Template::Anew(Anew::of(statement)),
            Service::Statements if is_statement => {
                Template::Prepared(Prepared::of(number, statement))
            }
            _ => Template::Words(Request::of(statement)),
        }
    }

    /// The commands that a connection begins with.
    fn commands(&self) -> Vec<Vec<&str>> {
        let login = self.password.as_deref().map(|password| {
            let user = self.user.as_deref();
            (user, password)
        });
        let mut commands = Vec::new();
        match (self.resp3, login) {
            (false, None) => {}
            (false, Some((None, password))) => commands.push(vec!["AUTH", password]),
            (false, Some((Some(user), password))) => commands.push(vec!["AUTH", user, password]),
            (true, None) => commands.push(vec!["HELLO", "3"]),
            (true, Some((user, password))) => {
                let user = user.unwrap_or("default");
                commands.push(vec!["HELLO", "3", "AUTH", user, password]);
            }
        }
        if self.service != Service::Keys && commands.is_empty() {
            // Its data are asked for next, however long that takes: is it there at all?
            commands.push(vec!["PING"]);
        }
        commands
    }
}

/// A connection to a server that speaks RESP.
#[derive(Debug)]
struct Connection {
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

/// What the record service says of a record that is not there.
const NO_RECORD: [&str; 2] = ["KEYNOTFOUND ", "ENDOFFILE "];

impl Connection {
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
}

impl Connection {
    fn abort(&mut self, out: &mut Vec<u8>) {
        self.trips.push_back(Trip {
            awaited: 1,
            error: None,
            of: Of::Abort,
        });
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
        self.trips.push_back(Trip {
            awaited: statements.len(),
            error: None,
            of: Of::Workload,
        });
        for template in &self.shared.templates[statements] {
            template.put(numbers, out);
        }
    }

    fn ask_once(&mut self, statement: &str, out: &mut Vec<u8>) {
        self.trips.push_back(Trip {
            awaited: 1,
            error: None,
            of: Of::Once,
        });
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

/// The first word of an error says its kind.
fn error_kind(text: &str) -> String {
    let word = text.split_ascii_whitespace().next().unwrap_or("ERR");
    word.chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;
    use crate::workload::keys::Keys;
    use crate::workload::script::Scripts;

    const NUMBERS: Numbers = [42, 7, 0, 0, 0, 0, 0, 0, 0];

    fn connection(commands: &[&str], greeting: Greeting) -> Box<dyn Conversation> {
        let scripts = Scripts::new(Keys::Session, 3).with("custom", 1, commands);
        Resp::new(scripts.unwrap().statements(0), greeting).conversation()
    }

    fn asked(connection: &mut dyn Conversation, statements: Range<usize>) -> String {
        let mut out = Vec::new();
        connection.ask(statements, &NUMBERS, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn heard(connection: &mut dyn Conversation, input: &str) -> Message {
        let received = connection.receive(input.as_bytes(), &mut Vec::new());
        received.unwrap().message
    }

    #[test]
    fn a_request_as_it_is_sent() {
        let mut connection = connection(
            &["SET a{key} {value} {session}:{count}"],
            Greeting::default(),
        );
        let expected = "*4\r\n$3\r\nSET\r\n$17\r\nakey:000000000042\r\n$3\r\nxxx\r\n\
            $25\r\n000000000007:000000000000\r\n";
        assert_eq!(asked(&mut *connection, 0..1), expected);
    }

    #[test]
    fn a_trip_of_several_statements_has_one_answer() {
        let mut connection = connection(&["INCR {key}", "GET {key}"], Greeting::default());
        let text = asked(&mut *connection, 0..2);
        assert!(text.contains("INCR") && text.contains("GET"));
        assert_eq!(heard(&mut *connection, ":1\r\n"), Message::Aside);
        let answer = Message::Answer(Answer::Done(Some(-5)));
        assert_eq!(heard(&mut *connection, ":-5\r\n"), answer);

        asked(&mut *connection, 0..2);
        let error = "-WRONGTYPE Operation against a key\r\n";
        assert_eq!(heard(&mut *connection, error), Message::Aside);
        let answer = Message::Answer(Answer::Error("WRONGTYPE".to_owned()));
        assert_eq!(heard(&mut *connection, "+OK\r\n"), answer);
    }

    #[test]
    fn a_command_of_its_own_tells_its_error_in_full() {
        let mut connection = connection(&["GET {key}"], Greeting::default());
        let mut out = Vec::new();
        connection.ask_once("CONFIG  GET x", &mut out);
        assert_eq!(out, b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$1\r\nx\r\n");
        let answer = Message::Answer(Answer::Error("ERR no such thing".to_owned()));
        assert_eq!(heard(&mut *connection, "-ERR no such thing\r\n"), answer);
    }

    #[test]
    fn nil_is_nothing_in_both_versions() {
        let mut connection = connection(&["GET {key}"], Greeting::default());
        for nil in ["$-1\r\n", "_\r\n"] {
            asked(&mut *connection, 0..1);
            let answer = Message::Answer(Answer::Nothing);
            assert_eq!(heard(&mut *connection, nil), answer);
        }
    }

    #[test]
    fn a_transaction_of_the_record_service_is_aborted_after_an_error() {
        let greeting = Greeting {
            service: Service::Records,
            ..Greeting::default()
        };
        let commands = ["BEGIN", "GET EQUAL f 0 {key} SINGLE FIELD 12 12", "END"];
        let mut connection = connection(&commands, greeting);
        let mut hear = |asked: usize, input: &str| {
            let mut out = Vec::new();
            connection.ask(asked..asked + 1, &NUMBERS, &mut Vec::new());
            let received = connection.receive(input.as_bytes(), &mut out);
            (received.unwrap().message, String::from_utf8(out).unwrap())
        };
        let answer = |answer| Message::Answer(answer);
        let nothing = String::new;
        assert_eq!(hear(0, "+OK\r\n"), (answer(Answer::Done(None)), nothing()));
        let record = "*2\r\n$4\r\nabcd\r\n:-7\r\n";
        assert_eq!(hear(1, record), (answer(Answer::Done(Some(-7))), nothing()));
        let none = "-KEYNOTFOUND 4: no record has this key value\r\n";
        assert_eq!(hear(1, none), (answer(Answer::Nothing), nothing()));
        let deadlock = "-DEADLOCK 78: the session and others wait for one another\r\n";
        let abort = "*1\r\n$5\r\nABORT\r\n".to_owned();
        let told = answer(Answer::Error("DEADLOCK".to_owned()));
        assert_eq!(hear(1, deadlock), (told, abort));
        // Whatever it is answered with, the next trip's answer comes after it.
        assert_eq!(hear(0, "-NOTRANSACTION 39\r\n").0, Message::Aside);
        assert_eq!(
            heard(&mut *connection, "+OK\r\n"),
            answer(Answer::Done(None))
        );
    }

    fn statements(texts: &[&str]) -> Box<dyn Conversation> {
        let greeting = Greeting {
            service: Service::Statements,
            ..Greeting::default()
        };
        let places = [
            ("key", vec![Piece::Number(0)]),
            ("by", vec![Piece::Number(1)]),
        ];
        let parse = |text: &&str| Statement::parse(text, &places).unwrap();
        let mut statements: Vec<Statement> = texts.iter().map(parse).collect();
        statements.push(parse(&"get f x KEY {key}").anew(1));
        Resp::new(&statements, greeting).conversation()
    }

    #[test]
    fn statements_are_prepared_when_a_connection_begins_and_executed_by_name() {
        let mut connection = statements(&["BEGIN", "ADD f x {by} KEY {key}", "GET f x KEY 1"]);
        let mut out = Vec::new();
        assert!(connection.greet(&mut out));
        let mut wanted = Vec::new();
        for words in [
            &["PING"][..],
            &["PREPARE", "s1", "ADD f x ? KEY ?"],
            &["PREPARE", "s2", "GET f x KEY 1"],
        ] {
            put_command(words, &mut wanted);
        }
        assert_eq!(out, wanted);
        for (reply, said) in [
            ("+PONG\r\n", Message::Aside),
            (":2\r\n", Message::Aside),
            (":0\r\n", Message::Greeted),
        ] {
            assert_eq!(heard(&mut *connection, reply), said);
        }
        let mut wanted = Vec::new();
        for words in [
            &["BEGIN"][..],
            &["EXECUTE", "s1", "7", "42"],
            &["EXECUTE", "s2"],
            &["RUN", "get f x KEY 42 /* 7 */"],
        ] {
            put_command(words, &mut wanted);
        }
        assert_eq!(asked(&mut *connection, 0..4).as_bytes(), wanted);
        let mut out = Vec::new();
        connection.ask_once("count f FROM 1 TO 2", &mut out);
        connection.ask_once("FILL f 1 2", &mut out);
        let mut wanted = Vec::new();
        put_command(&["RUN", "count f FROM 1 TO 2"], &mut wanted);
        put_command(&["FILL", "f", "1", "2"], &mut wanted);
        assert_eq!(out, wanted);
    }

    #[test]
    fn a_statement_that_is_refused_is_told() {
        for (texts, replies, why) in [
            (
                &["GET f x KEY 1", "GET g x KEY 1"][..],
                &["+PONG\r\n", ":0\r\n"][..],
                "GET g",
            ),
            (&["GET f x KEY 1"], &["+PONG\r\n"], "GET f"),
            (&["GET f x KEY 1"], &[], "log-in"),
        ] {
            let mut connection = statements(texts);
            connection.greet(&mut Vec::new());
            for reply in replies {
                assert_eq!(heard(&mut *connection, reply), Message::Aside);
            }
            let refused = connection.receive(b"-FILENOTFOUND 12\r\n", &mut Vec::new());
            let text = refused.unwrap_err().to_string();
            assert!(
                text.contains(why) && text.contains("FILENOTFOUND 12"),
                "{text}"
            );
        }
    }

    #[test]
    fn how_connections_begin() {
        let some = |text: &str| Some(text.to_owned());
        for (resp3, user, password, database, service, expected) in [
            (
                false,
                None,
                some("secret"),
                0,
                Service::Keys,
                vec!["AUTH secret"],
            ),
            (
                false,
                some("me"),
                some("secret"),
                0,
                Service::Statements,
                vec!["AUTH me secret"],
            ),
            (true, None, None, 0, Service::Keys, vec!["HELLO 3"]),
            (false, None, None, 0, Service::Records, vec!["PING"]),
            (
                true,
                None,
                some("secret"),
                3,
                Service::Keys,
                vec!["HELLO 3 AUTH default secret", "SELECT 3"],
            ),
        ] {
            let greeting = Greeting {
                resp3,
                user,
                password,
                database,
                service,
            };
            let mut connection = connection(&["PING"], greeting);
            let mut out = Vec::new();
            assert!(connection.greet(&mut out));
            let mut wanted = Vec::new();
            for command in &expected {
                put_command(&command.split(' ').collect::<Vec<_>>(), &mut wanted);
            }
            assert_eq!(out, wanted);
            for _ in 1..expected.len() {
                assert_eq!(heard(&mut *connection, "+OK\r\n"), Message::Aside);
            }
            assert_eq!(heard(&mut *connection, "+OK\r\n"), Message::Greeted);
        }
        assert!(!connection(&["PING"], Greeting::default()).greet(&mut Vec::new()));
    }

    #[test]
    fn a_password_that_is_wrong_or_missing_ends_the_conversation() {
        let greeting = Greeting {
            password: Some("secret".to_owned()),
            ..Greeting::default()
        };
        let mut wrong = connection(&["PING"], greeting);
        wrong.greet(&mut Vec::new());
        let refused = wrong.receive(b"-WRONGPASS no\r\n", &mut Vec::new());
        assert!(refused.unwrap_err().to_string().contains("WRONGPASS no"));

        let mut missing = connection(&["PING"], Greeting::default());
        asked(&mut *missing, 0..1);
        let refused = missing.receive(b"-NOAUTH Authentication required.\r\n", &mut Vec::new());
        assert!(refused.unwrap_err().to_string().contains("--password-from"));
    }

    #[test]
    fn an_answer_to_nothing_is_an_error() {
        let mut connection = connection(&["GET {key}"], Greeting::default());
        assert!(connection.receive(b"+OK\r\n", &mut Vec::new()).is_err());
        let push = ">2\r\n+a\r\n+b\r\n";
        assert_eq!(heard(&mut *connection, push), Message::Aside);
    }
}

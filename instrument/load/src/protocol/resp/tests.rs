//! Conversations, as bytes.

use std::ops::Range;

use super::request::put_command;
use super::{Greeting, Resp, Service};
use crate::protocol::{Conversation, Message, Protocol};
use crate::workload::keys::Keys;
use crate::workload::script::Scripts;
use crate::workload::statement::Piece;
use crate::workload::{Answer, Numbers, Statement, Workload};

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
fn errors_without_a_kind_are_told_by_their_plain_words() {
    let mut connection = connection(&["GET {key}"], Greeting::default());
    for (error, kind) in [
        (
            "-ERR unknown command 'FOO', with args\r\n",
            "ERR unknown command",
        ),
        ("-ERR 'x' is no number\r\n", "ERR"),
        ("-OOM command not allowed\r\n", "OOM"),
    ] {
        asked(&mut *connection, 0..1);
        let answer = Message::Answer(Answer::Error(kind.to_owned()));
        assert_eq!(heard(&mut *connection, error), answer);
    }
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

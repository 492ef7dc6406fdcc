//! Conversations, as bytes.

use std::ops::Range;

use concurve_fuzz::Target;

use super::request::put_command;
use super::{Login, Resp, Service};
use crate::protocol::fuzz::{MEMORY_MAX, converse};
use crate::protocol::{Conversation, Message, Password, Protocol};
use crate::workload::{Answer, Parameters, Piece, Statement};

fn parameters() -> Parameters {
    [42, 7].into()
}

fn conversation(commands: &[&str], login: Login) -> Box<dyn Conversation> {
    let placeholders = [
        (
            "key",
            vec![Piece::Text("key:".to_owned()), Piece::Parameter(0)],
        ),
        ("value", vec![Piece::Bytes(b"xxx".to_vec())]),
        ("session", vec![Piece::Parameter(1)]),
        ("count", vec![Piece::Parameter(2)]),
    ];
    let parse = |text: &&str| Statement::parse(text, &placeholders).unwrap();
    let statements: Vec<Statement> = commands.iter().map(parse).collect();
    Resp::new(&statements, login).conversation()
}

fn requested(conversation: &mut dyn Conversation, statements: Range<usize>) -> String {
    let mut out = Vec::new();
    conversation.request(statements, &parameters(), &mut out);
    String::from_utf8(out).unwrap()
}

fn received(conversation: &mut dyn Conversation, input: &str) -> Message {
    let received = conversation.receive(input.as_bytes(), &mut Vec::new());
    received.unwrap().message
}

#[test]
fn a_request_as_it_is_sent() {
    let mut conversation =
        conversation(&["SET a{key} {value} {session}:{count}"], Login::default());
    let expected = "*4\r\n$3\r\nSET\r\n$17\r\nakey:000000000042\r\n$3\r\nxxx\r\n\
        $25\r\n000000000007:000000000000\r\n";
    assert_eq!(requested(&mut *conversation, 0..1), expected);
}

#[test]
fn a_round_trip_of_several_statements_has_one_answer() {
    let mut conversation = conversation(&["INCR {key}", "GET {key}"], Login::default());
    let text = requested(&mut *conversation, 0..2);
    assert!(text.contains("INCR") && text.contains("GET"));
    assert_eq!(
        received(&mut *conversation, ":1\r\n"),
        Message::Intermediate
    );
    let answer = Message::Answer(Answer::Done(Some(-5)));
    assert_eq!(received(&mut *conversation, ":-5\r\n"), answer);

    requested(&mut *conversation, 0..2);
    let error = "-WRONGTYPE Operation against a key\r\n";
    assert_eq!(received(&mut *conversation, error), Message::Intermediate);
    let answer = Message::Answer(Answer::Error("WRONGTYPE".to_owned()));
    assert_eq!(received(&mut *conversation, "+OK\r\n"), answer);
}

#[test]
fn errors_without_a_kind_are_named_by_their_plain_words() {
    let mut conversation = conversation(&["GET {key}"], Login::default());
    for (error, kind) in [
        (
            "-ERR unknown command 'FOO', with args\r\n",
            "ERR unknown command",
        ),
        ("-ERR 'x' is no number\r\n", "ERR"),
        ("-OOM command not allowed\r\n", "OOM"),
    ] {
        requested(&mut *conversation, 0..1);
        let answer = Message::Answer(Answer::Error(kind.to_owned()));
        assert_eq!(received(&mut *conversation, error), answer);
    }
}

#[test]
fn the_error_of_a_command_outside_of_the_workload_is_reported_in_full() {
    let mut conversation = conversation(&["GET {key}"], Login::default());
    let mut out = Vec::new();
    conversation.request_once("CONFIG  GET x", &mut out);
    assert_eq!(out, b"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$1\r\nx\r\n");
    let answer = Message::Answer(Answer::Error("ERR no such thing".to_owned()));
    assert_eq!(
        received(&mut *conversation, "-ERR no such thing\r\n"),
        answer
    );
}

#[test]
fn nil_is_nothing_in_both_versions() {
    let mut conversation = conversation(&["GET {key}"], Login::default());
    for nil in ["$-1\r\n", "_\r\n"] {
        requested(&mut *conversation, 0..1);
        let answer = Message::Answer(Answer::Nothing);
        assert_eq!(received(&mut *conversation, nil), answer);
    }
}

#[test]
fn a_transaction_of_the_record_service_is_aborted_after_an_error() {
    let login = Login {
        service: Service::Records,
        ..Login::default()
    };
    let commands = ["BEGIN", "GET EQUAL f 0 {key} SINGLE FIELD 12 12", "END"];
    let mut conversation = conversation(&commands, login);
    let mut answer_to = |statement: usize, input: &str| {
        let mut out = Vec::new();
        conversation.request(statement..statement + 1, &parameters(), &mut Vec::new());
        let received = conversation.receive(input.as_bytes(), &mut out);
        (received.unwrap().message, String::from_utf8(out).unwrap())
    };
    let answer = |answer| Message::Answer(answer);
    let nothing = String::new;
    assert_eq!(
        answer_to(0, "+OK\r\n"),
        (answer(Answer::Done(None)), nothing())
    );
    let record = "*2\r\n$4\r\nabcd\r\n:-7\r\n";
    assert_eq!(
        answer_to(1, record),
        (answer(Answer::Done(Some(-7))), nothing())
    );
    let none = "-KEYNOTFOUND 4: no record has this key value\r\n";
    assert_eq!(answer_to(1, none), (answer(Answer::Nothing), nothing()));
    let deadlock = "-DEADLOCK 78: the session and others wait for one another\r\n";
    let abort = "*1\r\n$5\r\nABORT\r\n".to_owned();
    let reported = answer(Answer::Error("DEADLOCK".to_owned()));
    assert_eq!(answer_to(1, deadlock), (reported, abort));
    // The answer to the abort is ignored; the next answer belongs to the next request.
    assert_eq!(
        answer_to(0, "-NOTRANSACTION 39\r\n").0,
        Message::Intermediate
    );
    assert_eq!(
        received(&mut *conversation, "+OK\r\n"),
        answer(Answer::Done(None))
    );
}

#[test]
fn a_transaction_of_a_key_value_server_is_discarded_after_an_error() {
    let commands = ["multi", "INCR {key}", "EXEC"];
    let mut conversation = conversation(&commands, Login::default());
    let mut answer_to = |statement: usize, input: &str| {
        let mut out = Vec::new();
        conversation.request(statement..statement + 1, &parameters(), &mut Vec::new());
        let received = conversation.receive(input.as_bytes(), &mut out);
        (received.unwrap().message, String::from_utf8(out).unwrap())
    };
    let failed = |kind: &str| Message::Answer(Answer::Error(kind.to_owned()));
    let discard = "*1\r\n$7\r\nDISCARD\r\n";
    let refused = "-OOM command not allowed\r\n";
    assert_eq!(answer_to(1, refused), (failed("OOM"), discard.to_owned()));
    // The answer to it comes before that of the next request.
    assert_eq!(answer_to(2, "+OK\r\n").0, Message::Intermediate);
    let executed = "*2\r\n:1\r\n-WRONGTYPE Operation\r\n";
    let received = conversation.receive(executed.as_bytes(), &mut Vec::new());
    assert_eq!(received.unwrap().message, failed("WRONGTYPE"));
}

fn statements(texts: &[&str]) -> Box<dyn Conversation> {
    let login = Login {
        service: Service::Statements,
        ..Login::default()
    };
    let placeholders = [
        ("key", vec![Piece::Parameter(0)]),
        ("by", vec![Piece::Parameter(1)]),
    ];
    let parse = |text: &&str| Statement::parse(text, &placeholders).unwrap();
    let mut statements: Vec<Statement> = texts.iter().map(parse).collect();
    statements.push(parse(&"get f x KEY {key}").with_new_text(1));
    Resp::new(&statements, login).conversation()
}

#[test]
fn statements_are_prepared_when_a_connection_begins_and_executed_by_name() {
    let mut conversation = statements(&["BEGIN", "ADD f x {by} KEY {key}", "GET f x KEY 1"]);
    let mut out = Vec::new();
    assert!(conversation.begin(&mut out));
    let mut expected = Vec::new();
    for words in [
        &["PING"][..],
        &["PREPARE", "s1", "ADD f x ? KEY ?"],
        &["PREPARE", "s2", "GET f x KEY 1"],
    ] {
        put_command(words, &mut expected);
    }
    assert_eq!(out, expected);
    for (reply, message) in [
        ("+PONG\r\n", Message::Intermediate),
        (":2\r\n", Message::Intermediate),
        (":0\r\n", Message::Ready),
    ] {
        assert_eq!(received(&mut *conversation, reply), message);
    }
    let mut expected = Vec::new();
    for words in [
        &["BEGIN"][..],
        &["EXECUTE", "s1", "7", "42"],
        &["EXECUTE", "s2"],
        &["RUN", "get f x KEY 42 /* 7 */"],
    ] {
        put_command(words, &mut expected);
    }
    assert_eq!(requested(&mut *conversation, 0..4).as_bytes(), expected);
    let mut out = Vec::new();
    conversation.request_once("count f FROM 1 TO 2", &mut out);
    conversation.request_once("FILL f 1 2", &mut out);
    let mut expected = Vec::new();
    put_command(&["RUN", "count f FROM 1 TO 2"], &mut expected);
    put_command(&["FILL", "f", "1", "2"], &mut expected);
    assert_eq!(out, expected);
}

#[test]
fn a_statement_that_is_refused_is_reported() {
    for (texts, replies, why) in [
        (
            &["GET f x KEY 1", "GET g x KEY 1"][..],
            &["+PONG\r\n", ":0\r\n"][..],
            "GET g",
        ),
        (&["GET f x KEY 1"], &["+PONG\r\n"], "GET f"),
        (&["GET f x KEY 1"], &[], "log-in"),
    ] {
        let mut conversation = statements(texts);
        conversation.begin(&mut Vec::new());
        for reply in replies {
            assert_eq!(received(&mut *conversation, reply), Message::Intermediate);
        }
        let refused = conversation.receive(b"-FILENOTFOUND 12\r\n", &mut Vec::new());
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
    for (resp3, user, password, database, service, commands) in [
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
        let login = Login {
            resp3,
            user,
            password: password.map(Password::new),
            database,
            service,
        };
        let mut conversation = conversation(&["PING"], login);
        let mut out = Vec::new();
        assert!(conversation.begin(&mut out));
        let mut expected = Vec::new();
        for command in &commands {
            put_command(&command.split(' ').collect::<Vec<_>>(), &mut expected);
        }
        assert_eq!(out, expected);
        for _ in 1..commands.len() {
            assert_eq!(
                received(&mut *conversation, "+OK\r\n"),
                Message::Intermediate
            );
        }
        assert_eq!(received(&mut *conversation, "+OK\r\n"), Message::Ready);
    }
    assert!(!conversation(&["PING"], Login::default()).begin(&mut Vec::new()));
}

#[test]
fn a_password_that_is_wrong_or_missing_ends_the_conversation() {
    let login = Login {
        password: Some(Password::new("secret".to_owned())),
        ..Login::default()
    };
    let mut wrong = conversation(&["PING"], login);
    wrong.begin(&mut Vec::new());
    let refused = wrong.receive(b"-WRONGPASS no\r\n", &mut Vec::new());
    assert!(refused.unwrap_err().to_string().contains("WRONGPASS no"));

    let mut missing = conversation(&["PING"], Login::default());
    requested(&mut *missing, 0..1);
    let refused = missing.receive(b"-NOAUTH Authentication required.\r\n", &mut Vec::new());
    assert!(refused.unwrap_err().to_string().contains("--password-from"));
}

/// What is said of the reply to a log-in, behind so many that are fine.
fn refused_log_in(login: &Login, fine: usize, reply: &str) -> String {
    let mut conversation = conversation(&["PING"], login.clone());
    conversation.begin(&mut Vec::new());
    for _ in 0..fine {
        received(&mut *conversation, "+OK\r\n");
    }
    let refused = conversation.receive(reply.as_bytes(), &mut Vec::new());
    refused.unwrap_err().to_string()
}

#[test]
fn a_command_of_the_log_in_that_is_refused_has_its_own_remedy() {
    let password = || Some(Password::new("secret".to_owned()));
    let login = |resp3, password, database| Login {
        resp3,
        password,
        database,
        ..Login::default()
    };
    let index = "-ERR DB index is out of range\r\n";
    let hello = "-ERR unknown command 'HELLO', with args\r\n";
    let full = "-ERR max number of clients reached\r\n";
    let denied = "-DENIED Redis is running in protected mode\r\n";
    for (login, fine, reply, words) in [
        (
            login(false, None, 99),
            0,
            index,
            ["SELECT 99: ERR DB index is", "another number"],
        ),
        (
            login(true, password(), 99),
            1,
            index,
            ["SELECT 99", "another number"],
        ),
        (
            login(false, None, 1),
            0,
            "-NOAUTH no\r\n",
            ["log-in: NOAUTH", "--password-from"],
        ),
        (
            login(true, None, 0),
            0,
            hello,
            ["HELLO 3: ERR unknown", "?protocol=2"],
        ),
        (
            login(true, None, 0),
            0,
            "-NOAUTH no\r\n",
            ["log-in: NOAUTH", "--password-from"],
        ),
        (
            login(true, password(), 0),
            0,
            "-WRONGPASS no\r\n",
            ["WRONGPASS", "--password-from"],
        ),
        (
            login(false, password(), 0),
            0,
            "-ERR invalid\r\n",
            ["ERR invalid", "--password-from"],
        ),
        (
            login(false, password(), 0),
            0,
            full,
            ["ERR max number of", "fewer --sessions"],
        ),
        (
            login(true, None, 3),
            0,
            full,
            ["the connection: ERR max", "maxclients"],
        ),
        (
            login(false, None, 3),
            0,
            denied,
            ["the connection: DENIED Redis", "protected-mode no"],
        ),
        (
            login(true, None, 0),
            0,
            denied,
            ["the connection: DENIED Redis", "--password-from"],
        ),
    ] {
        let said = refused_log_in(&login, fine, reply);
        assert!(words.iter().all(|it| said.contains(it)), "{said}");
    }
}

#[test]
fn a_server_that_does_not_take_a_connection_is_quoted_before_and_behind_the_first_request() {
    for (reply, remedy) in [
        ("ERR max number of clients reached", "fewer --sessions"),
        (
            "ERR max number of clients reached (--clients-max)",
            "(--clients-max of concurve-server)",
        ),
        (
            "ERR max number of clients + cluster connections reached",
            "maxclients",
        ),
        (
            "DENIED Redis is running in protected mode",
            "protected-mode no",
        ),
    ] {
        for requests in [0, 1] {
            let mut conversation = conversation(&["GET {key}"], Login::default());
            for _ in 0..requests {
                requested(&mut *conversation, 0..1);
            }
            let line = format!("-{reply}\r\n");
            let refused = conversation.receive(line.as_bytes(), &mut Vec::new());
            let said = refused.unwrap_err().to_string();
            let quoted = format!("the server refused the connection: {reply}; ");
            assert!(said.starts_with(&quoted), "{said}");
            assert!(said.contains(remedy), "{said}");
        }
    }
}

#[test]
fn an_answer_to_nothing_is_an_error() {
    let mut conversation = conversation(&["GET {key}"], Login::default());
    assert!(conversation.receive(b"+OK\r\n", &mut Vec::new()).is_err());
    let refused = conversation.receive(b"-LOADING the data\r\n", &mut Vec::new());
    let said = refused.unwrap_err().to_string();
    assert!(said.ends_with("request: \"LOADING the data\""), "{said}");
    let push = ">2\r\n+a\r\n+b\r\n";
    assert_eq!(received(&mut *conversation, push), Message::Intermediate);
}

#[test]
fn hostile_servers_do_no_harm() {
    let said = [
        "+OK\r\n:-12\r\n$5\r\na\r\nb\r\r\n$-1\r\n*-1\r\n_\r\n#t\r\n,1.5\r\n",
        "*2\r\n$1\r\na\r\n*1\r\n:1\r\n%1\r\n+a\r\n:1\r\n!5\r\nERR x\r\n",
        "-ERR no\r\n-NOAUTH x\r\n-KEYNOTFOUND\r\n-WRONGTYPE y\r\n",
        "|1\r\n+ttl\r\n:5\r\n$1\r\na\r\n>2\r\n+a\r\n+b\r\n~1\r\n:7\r\n(99999999999999999999\r\n",
    ];
    let corpus = said.map(|it| it.as_bytes().to_vec());
    let words: [&[u8]; 9] = [
        b"\r\n", b"*", b"$", b"*1\r\n", b"|1\r\n", b"$-1\r\n", b">", b"-", b":",
    ];
    let services = [Service::Keys, Service::Records, Service::Statements];
    Target::new(env!("CARGO_PKG_NAME"), "resp::tests::hostile", &corpus)
        .words(&words)
        .memory_max(MEMORY_MAX)
        .run(|input, draw| {
            let login = Login {
                service: *draw.pick(&services),
                database: draw.below(2) as u32,
                ..Login::default()
            };
            let mut conversation = conversation(&["INCR {key}", "GET {key}"], login);
            let mut out = Vec::new();
            conversation.begin(&mut out);
            for _ in 0..draw.below(4) {
                conversation.request(0..2, &parameters(), &mut out);
            }
            if draw.once_in(3) {
                conversation.request_once("PING", &mut out);
            }
            converse(&mut *conversation, input, draw);
        });
}

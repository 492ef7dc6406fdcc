//! The conversation, with bytes that a server sent, cut at every place, and with random ones.

use concurve_fuzz::{Draw, Target};
use proptest::prelude::*;

use super::request::SYNC;
use super::*;
use crate::protocol::fuzz::{MEMORY_MAX, converse};
use crate::protocol::{Message, Password, ProtocolError};
use crate::workload::{Answer, Parameters, Piece};

fn parameters() -> Parameters {
    [42, 7].into()
}

fn statements(texts: &[&str]) -> Vec<Statement> {
    let placeholders = [
        ("a", vec![Piece::Parameter(0)]),
        ("b", vec![Piece::Parameter(1)]),
    ];
    let parse = |text: &&str| Statement::parse(text, &placeholders).unwrap();
    texts.iter().map(parse).collect()
}

fn login(password: Option<&str>) -> Login {
    Login {
        user: "md5_user".to_owned(),
        password: password.map(|it| Password::new(it.to_owned())),
        database: "bank".to_owned(),
        settings: Vec::new(),
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn error(fields: &str) -> Vec<u8> {
    message(b'E', format!("{fields}\0\0").replace('|', "\0").as_bytes())
}

fn ready(state: u8) -> Vec<u8> {
    message(b'Z', &[state])
}

fn done(tag: &str) -> Vec<u8> {
    let tag = format!("{tag}\0");
    [message(b'2', b""), message(b'C', tag.as_bytes())].concat()
}

fn row(text: &str) -> Vec<u8> {
    let length = (text.len() as u32).to_be_bytes();
    message(b'D', &[&[0, 1], &length[..], text.as_bytes()].concat())
}

/// The messages of a login by trust, with two statements of one int4 each.
fn welcome() -> Vec<u8> {
    let types = message(b't', &[0, 1, 0, 0, 0, 23]);
    [
        message(b'R', &[0; 4]),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'K', &[0; 8]),
        ready(b'I'),
        message(b'1', b""),
        types.clone(),
        message(b'n', b""),
        message(b'1', b""),
        types,
        message(b'T', &[0, 0]),
        ready(b'I'),
    ]
    .concat()
}

/// All messages in these bytes but the intermediate ones, and the number of bytes that were used.
fn received(
    conversation: &mut dyn Conversation,
    mut input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(Vec<Message>, usize), ProtocolError> {
    let (mut messages, mut used) = (Vec::new(), 0);
    while !input.is_empty() {
        let received = conversation.receive(input, out)?;
        (input, used) = (&input[received.consumed..], used + received.consumed);
        match received.message {
            Message::Partial => break,
            Message::Intermediate => {}
            other => messages.push(other),
        }
    }
    Ok((messages, used))
}

fn connected() -> Box<dyn Conversation> {
    let statements = statements(&["SELECT x FROM t WHERE i = {a}", "UPDATE t SET x = {b}"]);
    let mut conversation = Postgres::new(&statements, login(None)).conversation();
    let mut out = Vec::new();
    assert!(conversation.begin(&mut out));
    let (messages, _) = received(&mut *conversation, &welcome(), &mut out).unwrap();
    assert_eq!(messages, [Message::Ready]);
    conversation
}

fn answers(conversation: &mut dyn Conversation, input: &[u8]) -> (Vec<Message>, Vec<u8>) {
    let mut out = Vec::new();
    let (messages, used) = received(conversation, input, &mut out).unwrap();
    assert_eq!(used, input.len());
    (messages, out)
}

fn answer(answer: Answer) -> Vec<Message> {
    vec![Message::Answer(answer)]
}

#[test]
fn a_trip_is_answered_when_the_server_is_ready() {
    let mut conversation = connected();
    let mut out = Vec::new();
    conversation.request(0..2, &parameters(), &mut out);
    assert_eq!(out.iter().filter(|it| **it == b'S').count(), 1);
    assert!(out.ends_with(&SYNC));
    let notice = message(b'N', b"VNOTICE\0C00000\0Mhm\0\0");
    let input = [
        message(b'2', b""),
        row("-5"),
        notice,
        done("SELECT 1"),
        done("UPDATE 1"),
        ready(b'I'),
    ];
    let (messages, out) = answers(&mut *conversation, &input.concat());
    assert_eq!(messages, answer(Answer::Done(Some(-5))));
    assert!(out.is_empty());

    conversation.request(1..2, &parameters(), &mut Vec::new());
    let (messages, _) = answers(
        &mut *conversation,
        &[done("UPDATE 0"), ready(b'T')].concat(),
    );
    assert_eq!(messages, answer(Answer::Nothing));
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let welcome = welcome();
    for cut in 0..welcome.len() {
        let statements = statements(&["SELECT {a}", "UPDATE t SET x = {b}"]);
        let mut conversation = Postgres::new(&statements, login(None)).conversation();
        let mut out = Vec::new();
        conversation.begin(&mut out);
        let (first, used) = received(&mut *conversation, &welcome[..cut], &mut out).unwrap();
        assert_eq!(first, []);
        let (second, _) = received(&mut *conversation, &welcome[used..], &mut out).unwrap();
        assert_eq!(second, [Message::Ready], "cut at {cut}");
    }
    let trip = [row("12"), done("SELECT 1"), ready(b'T')].concat();
    for cut in 0..trip.len() {
        let mut conversation = connected();
        conversation.request(0..1, &parameters(), &mut Vec::new());
        let mut out = Vec::new();
        let (first, used) = received(&mut *conversation, &trip[..cut], &mut out).unwrap();
        assert_eq!(first, []);
        let (second, _) = received(&mut *conversation, &trip[used..], &mut out).unwrap();
        assert_eq!(second, answer(Answer::Done(Some(12))), "cut at {cut}");
    }
}

#[test]
fn a_failed_transaction_is_rolled_back_before_its_error_is_reported() {
    let mut conversation = connected();
    conversation.request(0..2, &parameters(), &mut Vec::new());
    let failed = [error("SERROR|VERROR|C40P01|Mdeadlock"), ready(b'E')].concat();
    let (messages, out) = answers(&mut *conversation, &failed);
    assert_eq!(messages, []);
    assert_eq!(out, message(b'Q', b"ROLLBACK\0"));
    let (messages, _) = answers(
        &mut *conversation,
        &[done("ROLLBACK"), ready(b'I')].concat(),
    );
    let expected = Answer::Error("40P01 deadlock detected".to_owned());
    assert_eq!(messages, answer(expected));
}

#[test]
fn several_trips_under_way_are_answered_in_their_order() {
    let mut conversation = connected();
    for _ in 0..3 {
        conversation.request(0..1, &parameters(), &mut Vec::new());
    }
    let failed = [error("VERROR|C42P01|Mno"), ready(b'E')].concat();
    let next = [error("VERROR|C25P02|Mno"), ready(b'E')].concat();
    let (messages, out) = answers(&mut *conversation, &[failed, next.clone(), next].concat());
    assert_eq!(messages.len(), 3);
    assert_eq!(out, message(b'Q', b"ROLLBACK\0"), "rolled back once");
    conversation.request(0..1, &parameters(), &mut Vec::new());
    let rest = [
        done("ROLLBACK"),
        ready(b'I'),
        row("1"),
        done("SELECT 1"),
        ready(b'I'),
    ]
    .concat();
    let (messages, _) = answers(&mut *conversation, &rest);
    assert_eq!(messages, answer(Answer::Done(Some(1))));
}

#[test]
fn requests_in_flight_are_in_doubt_when_the_server_dies() {
    let mut conversation = connected();
    conversation.request(0..1, &parameters(), &mut Vec::new());
    let input = error("SFATAL|VFATAL|C57P01|Mterminating connection");
    assert_eq!(answers(&mut *conversation, &input).0, []);
    assert_eq!(conversation.farewell(), Some("57P01"));
}

#[test]
fn what_the_server_says_when_it_closes_the_connection_is_kept() {
    for (kind, fields, farewell) in [
        (b'E', "SFATAL|VFATAL|C25P03|Mtimeout", Some("25P03")),
        (b'N', "SWARNUNG|VWARNING|C57P02|Mcrash", Some("57P02")),
        (b'E', "SERROR|VERROR|C57P01|Ma parallel worker", None),
        (b'N', "SNOTICE|VNOTICE|C00000|Mhm", None),
    ] {
        let mut conversation = connected();
        conversation.request(0..1, &parameters(), &mut Vec::new());
        let fields = format!("{fields}\0\0").replace('|', "\0");
        answers(&mut *conversation, &message(kind, fields.as_bytes()));
        assert_eq!(conversation.farewell(), farewell, "{fields}");
    }
}

#[test]
fn the_error_of_a_single_statement_is_reported_in_full() {
    let mut conversation = connected();
    let mut out = Vec::new();
    conversation.request_once("SELECT 1", &mut out);
    assert_eq!(out, message(b'Q', b"SELECT 1\0"));
    let input = [error("VERROR|C42501|Mpermission denied"), ready(b'I')].concat();
    let expected = Answer::Error("permission denied (42501)".to_owned());
    assert_eq!(answers(&mut *conversation, &input).0, answer(expected));

    conversation.request_once("COPY t FROM STDIN", &mut Vec::new());
    let (_, out) = answers(&mut *conversation, &message(b'G', &[0, 0, 0]));
    assert_eq!(out, message(b'f', b"\0"), "nothing is copied");
}

#[test]
fn the_second_connection_does_not_ask_for_types() {
    let statements = statements(&["SELECT x FROM t WHERE i = {a}"]);
    let postgres = Postgres::new(&statements, login(None));
    let welcome = welcome();
    let login = [message(b'R', &[0; 4]), ready(b'I')].concat();
    let mut lengths = Vec::new();
    for described in [true, false] {
        let mut conversation = postgres.conversation();
        let mut out = Vec::new();
        conversation.begin(&mut out);
        out.clear();
        received(&mut *conversation, &login, &mut out).unwrap();
        lengths.push(out.len());
        let types = message(b't', &[0, 1, 0, 0, 0, 23]);
        let types = if described { types } else { Vec::new() };
        let rest = [message(b'1', b""), types, ready(b'I')].concat();
        let (messages, _) = received(&mut *conversation, &rest, &mut out).unwrap();
        assert_eq!(messages, [Message::Ready]);
    }
    assert!(lengths[1] < lengths[0] && welcome.len() > login.len());
}

#[test]
fn passwords_are_given_as_asked_for() {
    let mut conversation = Postgres::new(&[], login(Some("password"))).conversation();
    let mut out = Vec::new();
    conversation.begin(&mut out);
    out.clear();
    let md5 = message(b'R', &[0, 0, 0, 5, 0x2a, 0x3d, 0x8f, 0xe0]);
    received(&mut *conversation, &md5, &mut out).unwrap();
    assert_eq!(out, message(b'p', b"md562af4dd09bbb41884907a838a3233294\0"));

    out.clear();
    let mut conversation = Postgres::new(&[], login(Some("password"))).conversation();
    let sasl = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    received(&mut *conversation, &sasl, &mut out).unwrap();
    assert!(out.starts_with(b"p") && out.windows(13).any(|it| it == b"SCRAM-SHA-256"));
}

#[test]
fn a_log_in_that_fails_has_a_remedy() {
    let tls = "VFATAL|C28000|Mno pg_hba.conf entry for host \"::1\", user \"me\", no encryption";
    for (input, why) in [
        (message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]), "--password-from"),
        (
            error("VFATAL|C28P01|Mwrong"),
            "wrong (28P01); --password-from",
        ),
        (
            error("VFATAL|C3D000|Mno database"),
            "a database is named in",
        ),
        (error("VFATAL|C53300|Mtoo many"), "fewer --sessions"),
        (error(tls), "without TLS, which is not supported"),
    ] {
        let mut conversation = Postgres::new(&[], login(None)).conversation();
        let error = received(&mut *conversation, &input, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    let mut conversation = Postgres::new(&[], login(Some("x"))).conversation();
    let gss = message(b'R', &[0, 0, 0, 7]);
    let error = received(&mut *conversation, &gss, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("GSSAPI"), "{error}");
}

#[test]
fn a_statement_that_is_refused_is_named() {
    let statements = statements(&["SELECT 1", "SELECT nothing"]);
    let mut conversation = Postgres::new(&statements, login(None)).conversation();
    let types = message(b't', &[0, 0]);
    let input = [
        message(b'R', &[0; 4]),
        ready(b'I'),
        message(b'1', b""),
        types,
        error("VERROR|C42703|Mno such column"),
    ];
    let error = received(&mut *conversation, &input.concat(), &mut Vec::new()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("SELECT nothing") && text.contains("no such column"),
        "{text}"
    );
}

#[test]
fn parameters_that_are_not_numbers_of_the_workload_are_refused() {
    let statements = statements(&["SELECT $1 + {a}"]);
    let mut conversation = Postgres::new(&statements, login(None)).conversation();
    let two = message(b't', &[0, 2, 0, 0, 0, 23, 0, 0, 0, 23]);
    let input = [
        message(b'R', &[0; 4]),
        ready(b'I'),
        message(b'1', b""),
        two,
        ready(b'I'),
    ];
    let error = received(&mut *conversation, &input.concat(), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("parameters beside"), "{error}");
}

proptest! {
    #[test]
    fn random_bytes_are_refused_or_waited_for(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut conversation = connected();
        conversation.request(0..2, &parameters(), &mut Vec::new());
        let _ = received(&mut *conversation, &bytes, &mut Vec::new());
        let mut conversation = Postgres::new(&[], login(Some("x"))).conversation();
        let _ = received(&mut *conversation, &bytes, &mut Vec::new());
    }

    #[test]
    fn random_messages_do_no_harm(
        messages in proptest::collection::vec(
            (prop::sample::select(&b"123ACDEGHIKNRSTVWZcdnstv"[..]), proptest::collection::vec(any::<u8>(), 0..20)),
            0..20,
        )
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|(kind, body)| message(*kind, body)).collect();
        let mut conversation = connected();
        conversation.request(0..2, &parameters(), &mut Vec::new());
        let _ = received(&mut *conversation, &bytes, &mut Vec::new());
        let statements = statements(&["SELECT {a}"]);
        let mut conversation = Postgres::new(&statements, login(Some("x"))).conversation();
        let _ = received(&mut *conversation, &bytes, &mut Vec::new());
    }
}

/// The server's first message in SCRAM, whose nonce begins with that of the client.
fn scram_first(out: &[u8], rounds: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(out);
    let nonce = text.split("r=").nth(1).unwrap_or_default();
    message(
        b'R',
        format!("\0\0\0\x0br={nonce}x,s=c2FsdA==,i={rounds}").as_bytes(),
    )
}

const SASL: &[u8] = b"\0\0\0\x0aSCRAM-SHA-256\0\0";

#[test]
fn a_server_that_asks_for_endless_hashing_is_refused() {
    for (rounds, why) in [
        ("4096", None),
        ("1000001", Some("1000001 rounds")),
        ("4294967295", Some("rounds")),
    ] {
        let mut conversation = Postgres::new(&[], login(Some("x"))).conversation();
        let mut out = Vec::new();
        received(&mut *conversation, &message(b'R', SASL), &mut out).unwrap();
        let answered = received(
            &mut *conversation,
            &scram_first(&out, rounds),
            &mut Vec::new(),
        );
        match why {
            None => assert!(answered.is_ok(), "{answered:?}"),
            Some(why) => assert!(answered.unwrap_err().to_string().contains(why)),
        }
    }
}

/// A conversation in one of its stages, and what the server says next.
fn at_any_stage(input: &[u8], draw: &mut Draw) {
    let statements = statements(&["SELECT x FROM t WHERE i = {a}", "UPDATE t SET x = {b}"]);
    let mut conversation = Postgres::new(&statements, login(Some("x"))).conversation();
    match draw.below(4) {
        0 => {
            conversation.begin(&mut Vec::new());
        }
        1 => {
            let mut out = Vec::new();
            received(&mut *conversation, &message(b'R', SASL), &mut out).unwrap();
            let rounds = ["0", "1", "2", "99999999999", "-1", "x"][draw.below(6)];
            let first = scram_first(&out, rounds);
            if received(&mut *conversation, &first, &mut Vec::new()).is_err() {
                return;
            }
        }
        _ => {
            conversation = connected();
            for _ in 0..draw.below(4) {
                conversation.request(0..2, &parameters(), &mut Vec::new());
            }
            if draw.once_in(3) {
                conversation.request_once("SELECT 1", &mut Vec::new());
            }
        }
    }
    converse(&mut *conversation, input, draw);
}

#[test]
fn hostile_servers_do_no_harm() {
    let deadlock = error("SERROR|VERROR|C40P01|Mdeadlock");
    let corpus = [
        welcome(),
        [
            message(b'2', b""),
            row("12"),
            done("SELECT 1"),
            done("UPDATE 0"),
            ready(b'T'),
        ]
        .concat(),
        [deadlock, ready(b'E'), done("ROLLBACK"), ready(b'I')].concat(),
        [
            message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]),
            message(b'R', &[0; 4]),
            ready(b'I'),
        ]
        .concat(),
        [message(b'R', SASL), message(b'R', b"\0\0\0\x0cv=c2FsdA==")].concat(),
        [
            message(b'G', &[0, 0, 0]),
            message(b'N', b"VNOTICE\0C00000\0Mhm\0\0"),
        ]
        .concat(),
    ];
    let words: [&[u8]; 8] = [
        b"R",
        b"E",
        b"Z\0\0\0\x05I",
        b"Z\0\0\0\x05E",
        b"t\0\0\0\x06",
        b"\0\0\0\x04",
        b"1",
        b"D",
    ];
    Target::new(env!("CARGO_PKG_NAME"), "postgres::tests::hostile", &corpus)
        .words(&words)
        .memory_max(MEMORY_MAX)
        .run(at_any_stage);
}

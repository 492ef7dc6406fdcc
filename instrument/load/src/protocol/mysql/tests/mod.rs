//! Conversations, with what a server says in them.

mod answers;
mod cuts;
mod login;

use std::ops::Range;

use super::*;
use crate::protocol::{Message, Password, ProtocolError};
use crate::workload::{Answer, Parameters, Piece};

const BEGIN: usize = 0;
const UPDATE: usize = 1;
const SELECT: usize = 2;
const COMMIT: usize = 3;

fn parameters() -> Parameters {
    [42, -7].into()
}

const SCRAMBLE: &[u8; 20] = b"0123456789abcdefghij";
/// A deadlock, in which the server has rolled back everything.
const DEADLOCK: &[u8] = b"\xff\xbd\x04#40001Deadlock found";
const SYNTAX: &[u8] = b"\xff\x28\x04#42000You have an error";
const KILLED: &[u8] = b"\xff\x87\x07#70100Connection was killed";

fn statements() -> Vec<Statement> {
    let text = |text: &str| Piece::Text(text.to_owned());
    let parameter = Piece::Parameter;
    [
        vec![text("BEGIN")],
        vec![
            text("UPDATE a SET b = "),
            parameter(1),
            text(" WHERE c = "),
            parameter(0),
        ],
        vec![text("SELECT b FROM a WHERE c = "), parameter(0)],
        vec![text("COMMIT")],
    ]
    .map(Statement::of)
    .to_vec()
}

fn login(password: &str) -> Login {
    Login {
        user: "me".to_owned(),
        password: Some(Password::new(password.to_owned())),
        database: Some("bank".to_owned()),
        ..Login::default()
    }
}

/// A packet of a server.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    packet::put(sequence, &mut out, |out| out.extend_from_slice(payload));
    out
}

/// Packets that follow each other, from a number on.
fn packets(first: u8, payloads: &[&[u8]]) -> Vec<u8> {
    let numbered = payloads.iter().zip(first..);
    numbered
        .flat_map(|(payload, number)| packet(number, payload))
        .collect()
}

fn ok(status: u8) -> Vec<u8> {
    vec![0, 1, 0, status, 0, 0, 0]
}

fn end(status: u8) -> Vec<u8> {
    vec![0xfe, 0, 0, status, 0]
}

/// A handshake as MariaDB 10.11 sent it.
fn mariadb() -> Vec<u8> {
    b"\x64\0\0\0\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x04\0\0\0>%;:Qi;*\0\xfe\xf7\x08\x02\0\xff\
      \x81\x15\0\0\0\0\0\0\x1d\0\0\0`&<9ICT[LKt)\0mysql_native_password\0"
        .to_vec()
}

/// A handshake as MySQL 8 sends it.
fn mysql() -> Vec<u8> {
    let mut payload = b"\x0a8.0.36\0\x09\0\0\0".to_vec();
    payload.extend_from_slice(&SCRAMBLE[..8]);
    payload.extend_from_slice(b"\0\xff\xff\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0");
    payload.extend_from_slice(&SCRAMBLE[8..]);
    payload.extend_from_slice(b"\0caching_sha2_password\0");
    packet(0, &payload)
}

/// A list of parameters or columns, which are whole numbers of eight bytes, and its end.
fn columns(count: usize) -> Vec<Vec<u8>> {
    let column = b"\x03def\x04bank\x01a\x01a\x01b\x01b\x0c\x3f\0\x14\0\0\0\x08\0\0\0\0\0".to_vec();
    let mut list = vec![column; count];
    if count > 0 {
        list.push(end(2));
    }
    list
}

/// What the server says when variables are set and the four statements are prepared.
fn prepared() -> Vec<u8> {
    let mut out = packet(1, &ok(2));
    for (id, columns_count, parameters) in [(1, 0, 0), (2, 0, 2), (3, 1, 1), (4, 0, 0)] {
        let mut said = vec![vec![
            0,
            id,
            0,
            0,
            0,
            columns_count,
            0,
            parameters,
            0,
            0,
            0,
            0,
        ]];
        said.extend(columns(usize::from(parameters)));
        said.extend(columns(usize::from(columns_count)));
        let said: Vec<&[u8]> = said.iter().map(Vec::as_slice).collect();
        out.extend(packets(1, &said));
    }
    out
}

/// Says it in pieces of `step` bytes; what was understood, and what was written.
fn say_in_steps(
    conversation: &mut dyn Conversation,
    said: &[u8],
    step: usize,
) -> Result<(Vec<Message>, Vec<u8>), ProtocolError> {
    let (mut messages, mut out, mut used) = (Vec::new(), Vec::new(), 0);
    for come in (0..said.len())
        .map(|it| it + 1)
        .filter(|it| it % step == 0 || *it == said.len())
    {
        loop {
            let received = conversation.receive(&said[used..come], &mut out)?;
            used += received.consumed;
            match received.message {
                Message::Partial => break,
                Message::Intermediate => {}
                message => messages.push(message),
            }
        }
    }
    Ok((messages, out))
}

fn say(conversation: &mut dyn Conversation, said: &[u8]) -> (Vec<Message>, Vec<u8>) {
    say_in_steps(conversation, said, usize::MAX).unwrap()
}

fn conversation(login: Login) -> Box<dyn Conversation> {
    let mut conversation = MySql::new(&statements(), login).conversation();
    assert!(conversation.begin(&mut Vec::new()));
    conversation
}

/// A connection that is ready.
fn ready() -> Box<dyn Conversation> {
    let mut conversation = conversation(login(""));
    say(&mut *conversation, &mariadb());
    say(&mut *conversation, &packet(2, &ok(2)));
    let (messages, _) = say(&mut *conversation, &prepared());
    assert_eq!(messages, [Message::Ready]);
    conversation
}

fn request(conversation: &mut dyn Conversation, statements: Range<usize>) -> Vec<u8> {
    let mut out = Vec::new();
    conversation.request(statements, &parameters(), &mut out);
    out
}

/// The answer to a statement, and what was written while it came.
fn answer_to(
    conversation: &mut dyn Conversation,
    statement: usize,
    said: &[&[u8]],
) -> (Vec<Message>, Vec<u8>) {
    request(conversation, statement..statement + 1);
    say(conversation, &packets(1, said))
}

fn error(kind: &str) -> Message {
    Message::Answer(Answer::Error(kind.to_owned()))
}

fn done(number: Option<i64>) -> Message {
    Message::Answer(Answer::Done(number))
}

/// Rows of one column: its number in binary, or none.
fn selected(rows: &[Option<i64>]) -> Vec<u8> {
    let mut said = vec![vec![1]];
    said.extend(columns(1));
    for row in rows {
        let null = u8::from(row.is_none()) << 2;
        let value = row.map_or(vec![], |it| it.to_le_bytes().to_vec());
        said.push([vec![0, null], value].concat());
    }
    said.push(end(2));
    let said: Vec<&[u8]> = said.iter().map(Vec::as_slice).collect();
    packets(1, &said)
}

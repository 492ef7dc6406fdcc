//! Bytes as they come: cut anywhere, or wrong.

use concurve_fuzz::Target;
use proptest::prelude::*;

use super::*;
use crate::protocol::fuzz::{MEMORY_MAX, converse};

/// Everything that a server says in a log-in and in a transaction, in one piece.
fn all_said() -> Vec<Vec<u8>> {
    let columns = columns(1);
    vec![
        mariadb(),
        packet(
            2,
            &[b"\xfemysql_native_password\0".as_slice(), SCRAMBLE, b"\0"].concat(),
        ),
        packet(4, &ok(2)),
        prepared(),
        packet(1, &ok(3)),
        selected(&[Some(7)]),
        packets(
            1,
            &[&ok(11), &[1], &columns[0], &columns[1], b"\xfb", &end(3)],
        ),
        packet(1, DEADLOCK),
        packet(1, &ok(2)),
    ]
}

fn play(step: usize) -> (Vec<Message>, Vec<u8>) {
    let mut conversation = conversation(login("secret"));
    let asked = [
        (4, BEGIN..BEGIN + 1),
        (5, SELECT..COMMIT),
        (6, UPDATE..COMMIT),
        (7, COMMIT..4),
    ];
    let (mut messages, mut out) = (Vec::new(), Vec::new());
    for (turn, said) in all_said().iter().enumerate() {
        if let Some((_, statements)) = asked.iter().find(|(at, _)| *at == turn) {
            out.extend(request(&mut *conversation, statements.clone()));
        }
        let (received, written) = say_in_steps(&mut *conversation, said, step).unwrap();
        messages.extend(received);
        out.extend(written);
    }
    (messages, out)
}

#[test]
fn it_does_not_matter_where_the_bytes_are_cut() {
    let whole = play(usize::MAX);
    let answers = [
        Message::Ready,
        done(None),
        done(Some(7)),
        done(None),
        error("1213 deadlock"),
    ];
    assert_eq!(whole.0, answers);
    for step in 1..40 {
        assert_eq!(play(step), whole, "{step}");
    }
}

proptest! {
    #[test]
    fn no_input_makes_it_panic(
        turn in 0_usize..9,
        at in 0_usize..200,
        noise in proptest::collection::vec(any::<u8>(), 1..60),
    ) {
        let mut conversation = conversation(login("secret"));
        let said = all_said();
        for said in &said[..turn.min(4)] {
            say(&mut *conversation, said);
        }
        if turn >= 4 {
            request(&mut *conversation, SELECT..SELECT + 1);
        }
        let mut said = said[turn].clone();
        let at = at % said.len();
        said.splice(at.., noise);
        let _ = say_in_steps(&mut *conversation, &said, 7);
    }
}

#[test]
fn hostile_servers_do_no_harm() {
    let mut corpus = all_said();
    corpus.push(mysql());
    corpus.push(packet(1, SYNTAX));
    corpus.push(packet(0, KILLED));
    corpus.push(all_said().concat());
    let words: [&[u8]; 8] = [
        b"\xfe",
        b"\xfe\0\0\x02\0",
        b"\xff\xbd\x04#40001",
        b"\0\0\0\x01",
        b"\xff\xff\xff",
        b"\xfc\xff\xff",
        b"\xfd\xff\xff\xff",
        b"mysql_native_password\0",
    ];
    Target::new(
        env!("CARGO_PKG_NAME"),
        "mysql::tests::cuts::hostile",
        &corpus,
    )
    .words(&words)
    .memory_max(MEMORY_MAX)
    .run(|input, draw| {
        let mut conversation = conversation(login("secret"));
        let is_ready = draw.once_in(2);
        if is_ready {
            conversation = ready();
            for _ in 0..draw.below(4) {
                request(
                    &mut *conversation,
                    [BEGIN..COMMIT, SELECT..SELECT + 1][draw.below(2)].clone(),
                );
            }
            if draw.once_in(3) {
                conversation.request_once("SELECT 1", &mut Vec::new());
            }
        }
        // Up to some point, the server keeps to the protocol.
        let said = all_said();
        let kept = if is_ready { 0 } else { draw.below(4) };
        for said in &said[..kept] {
            say(&mut *conversation, said);
        }
        converse(&mut *conversation, input, draw);
    });
}

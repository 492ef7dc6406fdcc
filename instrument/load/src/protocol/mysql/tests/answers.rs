//! What comes back to a trip.

use super::*;

#[test]
fn an_answer_is_done_or_a_number_or_nothing() {
    let mut conversation = ready();
    let out = request(&mut *conversation, UPDATE..UPDATE + 1);
    assert_eq!(out[4..9], [0x17, 2, 0, 0, 0]);
    assert_eq!(say(&mut *conversation, &packet(1, &ok(2))).0, [done(None)]);
    let no_row: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
    let nothing = || Message::Answer(Answer::Nothing);
    let answered = answer_to(&mut *conversation, UPDATE, &[no_row]).0;
    assert_eq!(answered, [nothing()]);
    assert_eq!(
        answer_to(&mut *conversation, BEGIN, &[no_row]).0,
        [done(None)]
    );
    for (rows, answer) in [
        (&[Some(-12)][..], done(Some(-12))),
        (&[Some(3), Some(4)], done(Some(3))),
        (&[None], done(None)),
        (&[], nothing()),
    ] {
        request(&mut *conversation, SELECT..SELECT + 1);
        assert_eq!(say(&mut *conversation, &selected(rows)).0, [answer]);
    }
}

#[test]
fn a_single_statement_is_a_text_and_its_error_is_reported_in_full() {
    let mut conversation = ready();
    let mut out = Vec::new();
    conversation.request_once("SELECT 1", &mut out);
    assert_eq!(out, packet(0, b"\x03SELECT 1"));
    let columns = columns(1);
    let said: [&[u8]; 5] = [&[1], &columns[0], &columns[1], b"\x011", &end(2)];
    assert_eq!(
        say(&mut *conversation, &packets(1, &said)).0,
        [done(Some(1))]
    );
    conversation.request_once("SELEC 1", &mut out);
    assert_eq!(
        say(&mut *conversation, &packet(1, SYNTAX)).0,
        [error("1064 You have an error")]
    );
}

#[test]
fn several_statements_have_one_answer() {
    let mut conversation = ready();
    let out = request(&mut *conversation, BEGIN..COMMIT + 1);
    let text = b"\x03BEGIN;UPDATE a SET b = -7 WHERE c = 42;SELECT b FROM a WHERE c = 42;COMMIT";
    assert_eq!(out, packet(0, text));
    let (columns, row) = (columns(1), b"\x0212");
    let said: [&[u8]; 7] = [&ok(9), &ok(9), &[1], &columns[0], &columns[1], row, &end(9)];
    let said = [packets(1, &said), packet(8, &ok(2))].concat();
    assert_eq!(say(&mut *conversation, &said).0, [done(None)]);
    // The conversation goes on.
    request(&mut *conversation, SELECT..SELECT + 1);
    assert_eq!(
        say(&mut *conversation, &selected(&[Some(1)])).0,
        [done(Some(1))]
    );
}

#[test]
fn an_error_in_a_transaction_is_rolled_back_before_it_is_reported() {
    let mut conversation = ready();
    assert_eq!(
        answer_to(&mut *conversation, BEGIN, &[&ok(3)]).0,
        [done(None)]
    );
    let (messages, out) = answer_to(&mut *conversation, UPDATE, &[DEADLOCK]);
    assert_eq!((messages, out), (vec![], packet(0, b"\x03ROLLBACK")));
    let (messages, _) = say(&mut *conversation, &packet(1, &ok(2)));
    assert_eq!(messages, [error("1213 deadlock")]);
    // Outside of one there is nothing to roll back.
    let (messages, out) = answer_to(&mut *conversation, UPDATE, &[SYNTAX]);
    assert_eq!((messages, out), (vec![error("1064 42000")], vec![]));
}

#[test]
fn an_error_among_several_statements_is_rolled_back_too() {
    let mut conversation = ready();
    request(&mut *conversation, BEGIN..COMMIT + 1);
    let (messages, out) = say(&mut *conversation, &packets(1, &[&ok(9), DEADLOCK]));
    assert_eq!((messages, out), (vec![], packet(0, b"\x03ROLLBACK")));
    let (messages, _) = say(&mut *conversation, &packet(1, &ok(2)));
    assert_eq!(messages, [error("1213 deadlock")]);
}

#[test]
fn pipelined_round_trips_are_answered_in_order() {
    let mut conversation = ready();
    request(&mut *conversation, SELECT..SELECT + 1);
    request(&mut *conversation, UPDATE..SELECT + 1);
    request(&mut *conversation, UPDATE..UPDATE + 1);
    let columns = columns(1);
    let texts: [&[u8]; 6] = [&ok(10), &[1], &columns[0], &columns[1], b"\x0288", &end(2)];
    let said = [selected(&[Some(5)]), packets(1, &texts), packet(1, SYNTAX)].concat();
    let expected = [done(Some(5)), done(Some(88)), error("1064 42000")];
    assert_eq!(say(&mut *conversation, &said).0, expected);
}

#[test]
fn transactions_in_flight_are_in_doubt_when_the_server_closes_the_connection() {
    let mut conversation = ready();
    request(&mut *conversation, COMMIT..COMMIT + 1);
    assert_eq!(conversation.farewell(), None);
    assert_eq!(say(&mut *conversation, &packet(1, KILLED)).0, []);
    assert_eq!(conversation.farewell(), Some("1927"));
    let mut idle = ready();
    assert_eq!(say(&mut *idle, &packet(0, KILLED)).0, []);
    assert_eq!(idle.farewell(), Some("1927"));
    for said in [packet(0, SYNTAX), packet(0, &ok(2)), packet(1, &ok(2))] {
        assert!(ready().receive(&said, &mut Vec::new()).is_err());
    }
}

#[test]
fn the_answer_to_a_long_statement_goes_on_with_its_count_of_packets() {
    let long = format!("SELECT '{}'", "x".repeat(40_000_000));
    let mut conversation = ready();
    let mut out = Vec::new();
    conversation.request_once(&long, &mut out);
    let columns = columns(1);
    let said: [&[u8]; 5] = [&[1], &columns[0], &columns[1], b"\x011", &end(2)];
    assert_eq!(
        say(&mut *conversation, &packets(3, &said)).0,
        [done(Some(1))]
    );
}

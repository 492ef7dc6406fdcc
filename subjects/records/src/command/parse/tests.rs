//! Parsing of statements, and messages for invalid ones.

use crate::command::{AnswerForm, Command, Field, Refusal, Wanted};
use crate::definition::{Key, Segment, SegmentKind};
use crate::session::LockBias;

fn parse(text: &str) -> Result<Command, Refusal> {
    let words: Vec<&[u8]> = text.split_ascii_whitespace().map(str::as_bytes).collect();
    Command::parse(&words[..])
}

#[test]
fn reads_and_their_options() {
    let get = |text: &str| match parse(text).unwrap() {
        Command::Get {
            file: 2,
            wanted,
            bias,
            answer,
        } => (wanted, bias, answer),
        other => panic!("{text}: {other:?}"),
    };
    let record = AnswerForm::Record;
    let field = AnswerForm::Field(Field {
        offset: 24,
        bytes: 12,
    });
    for (text, expected) in [
        (
            "GET EQUAL f 0 v",
            (Wanted::Equal(0, 4), LockBias::None, record),
        ),
        (
            "get atmost f 3 v single",
            (Wanted::AtMost(3, 4), LockBias::SingleWait, record),
        ),
        (
            "GET GREATER f 0 v SINGLE NOWAIT FIELD 24 12",
            (Wanted::Greater(0, 4), LockBias::SingleNoWait, field),
        ),
        (
            "GET FIRST f 1 MULTIPLE",
            (Wanted::First(1), LockBias::MultipleWait, record),
        ),
        (
            "GET LAST f 1 MULTIPLE NOWAIT",
            (Wanted::Last(1), LockBias::MultipleNoWait, record),
        ),
        (
            "GET NEXT f COUNT 7",
            (Wanted::Next, LockBias::None, AnswerForm::Many(7)),
        ),
        (
            "GET PREVIOUS f FIELD 24 12",
            (Wanted::Previous, LockBias::None, field),
        ),
    ] {
        assert_eq!(get(text), expected, "{text}");
    }
}

#[test]
fn files_are_defined_by_words() {
    let command = parse("CREATE f 36 KEY 0:12:text KEY 12:4:unsigned,16:8:integer DUPLICATES");
    let Command::Create { file, definition } = command.unwrap() else {
        panic!("no file");
    };
    assert_eq!((file, definition.record_bytes), (1, 36));
    let first = Key::unique(0, 12, SegmentKind::Bytes);
    let second = Key {
        segments: vec![
            Segment {
                offset: 12,
                bytes: 4,
                kind: SegmentKind::Unsigned,
            },
            Segment {
                offset: 16,
                bytes: 8,
                kind: SegmentKind::Integer,
            },
        ],
        duplicates: true,
    };
    assert_eq!(definition.keys, [first, second]);
}

#[test]
fn messages_say_what_is_wrong() {
    for (text, why) in [
        ("", "ends where an operation is expected"),
        ("FETCH f", "'FETCH' is not an operation"),
        ("GET SAME f", "GET 'SAME': it is one of EQUAL"),
        ("GET EQUAL f x v", "'x' is not the number of a key"),
        ("GET EQUAL f 0", "ends where a key value is expected"),
        (
            "GET EQUAL f 0 v COUNT 3",
            "unexpected 'COUNT' after the end",
        ),
        ("GET NEXT f COUNT 0", "'0' is not a number of records"),
        ("GET NEXT f FIELD 0 21", "'21' is not the length of a field"),
        ("INSERT f", "ends where a record is expected"),
        ("END now", "unexpected 'now' after the end"),
        (
            "CREATE f 9 KEY 0:4",
            "'0:4' is not a key: write offset:bytes:kind",
        ),
        (
            "CREATE f 99999999",
            "'99999999' is not the length of a record",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.word(), "ERR");
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}

//! Requests, against what the library writes.

use bytes::BytesMut;
use postgres_protocol::IsNull;

use super::prepared::{INT2, INT4, INT8};
use super::*;

const NUMBERS: Numbers = [7, -2, 0, 0, 0, 0, 0, 1 << 40, 0];

fn query() -> Query {
    let places = [("a", vec![Piece::Number(0)]), ("b", vec![Piece::Number(1)])];
    let statement = Statement::parse("UPDATE t SET x = x + {b} WHERE i = {a}", &places);
    Query::of(3, &statement.unwrap())
}

#[test]
fn numbers_become_parameters_and_values_literals() {
    assert_eq!(query().text, "UPDATE t SET x = x + $1 WHERE i = $2");
    let pieces = vec![Piece::Bytes(b"it's".to_vec()), Piece::Number(2)];
    let query = Query::of(0, &Statement::of(pieces));
    assert_eq!((&*query.text, &*query.name), ("'it''s'$1", "s0"));
}

#[test]
fn a_template_is_what_the_library_writes() {
    let mut expected = BytesMut::new();
    frontend::bind(
        "",
        "s3",
        [1, 1],
        [&(-2_i64).to_be_bytes()[..], &7_i32.to_be_bytes()[..]],
        |bytes, out: &mut BytesMut| {
            out.extend_from_slice(bytes);
            Ok(IsNull::No)
        },
        [],
        &mut expected,
    )
    .unwrap_or_else(|_| panic!("cannot be written"));
    frontend::execute("", 0, &mut expected).unwrap();
    frontend::sync(&mut expected);

    let mut sent = Vec::new();
    Prepared::of(&query(), &[INT8, INT4]).put(&NUMBERS, &mut sent);
    sent.extend_from_slice(&SYNC);
    assert_eq!(sent, expected);
}

#[test]
fn what_is_too_large_is_left_to_the_server_to_refuse() {
    let numbers = [1 << 40, 1, 0, 0, 0, 0, 0, 0, 0];
    let mut sent = Vec::new();
    Prepared::of(&query(), &[INT8, INT4]).put(&numbers, &mut sent);
    let text = b"00000001099511627776";
    assert!(sent.windows(text.len()).any(|it| it == text));
}

#[test]
fn a_new_text_is_what_the_library_writes() {
    let places = [("a", vec![Piece::Number(0)]), ("b", vec![Piece::Number(1)])];
    let statement = Statement::parse("SELECT {b} + {a}", &places).unwrap();
    let mut expected = BytesMut::new();
    frontend::parse("", "SELECT -2 + 7 /* 1099511627776 */", [], &mut expected).unwrap();
    let no = |_: (), _: &mut BytesMut| Ok(IsNull::No);
    frontend::bind("", "", [], [], no, [], &mut expected)
        .unwrap_or_else(|_| panic!("cannot be written"));
    frontend::execute("", 0, &mut expected).unwrap();
    let mut sent = Vec::new();
    New::of(&statement.anew(7)).put(&NUMBERS, &mut sent);
    assert_eq!(sent, expected);
}

#[test]
fn other_types_get_digits() {
    let mut sent = Vec::new();
    Prepared::of(&query(), &[1700, INT2]).put(&NUMBERS, &mut sent);
    let text = b"-0000000000000000002";
    assert!(sent.windows(text.len()).any(|it| it == text));
}

//! `--slo` against servers that give no rate at all: the sentence names the cause and what to try, and
//! the exit code is that of no answer. What they do depends on no speed.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{PROGRAM, Server, request};

/// Reads, and answers nothing.
fn is_silent(stream: &TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(1..) = (&mut &*stream).read(&mut buffer) {}
}

fn answers_errors(mut stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    while request(&mut reader).is_some() && stream.write_all(b"-ERR always\r\n").is_ok() {
        // Slow, so that a search does not take all CPUs.
        thread::sleep(Duration::from_millis(1));
    }
}

/// Closes each connection at its first request.
fn closes(stream: &TcpStream) {
    let _ = request(&mut BufReader::new(stream));
}

/// Answers the first request of each connection, and no other.
fn answers_once(mut stream: &TcpStream) {
    let _ = request(&mut BufReader::new(stream));
    let _ = stream.write_all(b"+OK\r\n");
    is_silent(stream);
}

/// The exit code of a run by hand, what it says, and what it prints as JSON.
fn sought(serve: fn(&TcpStream), more: &str) -> (Option<i32>, String, Value) {
    let server = Server::start_with(move |stream, _| serve(stream));
    let arguments = format!("--slo p99=10ms --sessions 4 --duration 4s --json {more}");
    let done = Command::new(PROGRAM)
        .arg(&server.address)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {errors}"));
    let said = format!("{} {errors}", json["verdict"].as_str().unwrap());
    (done.status.code(), said, json)
}

/// No rate, for this reason, in these words.
fn assert_no_rate(serve: fn(&TcpStream), code: i32, reason: &str, words: &[&str]) {
    let (found, said, json) = sought(serve, "");
    assert_eq!(found, Some(code), "{said}");
    assert_eq!(json["outcome"], "undecided", "{json}");
    assert_eq!(json["reason"], reason, "{json}");
    assert!(json["slo_rate_per_second"].is_null(), "{json}");
    for words in ["it cannot be said what rate keeps p99=10ms"]
        .iter()
        .chain(words)
    {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_server_that_never_answers_is_said_to() {
    let words = [
        "the server never answered",
        "see its log, and whether the address",
    ];
    assert_no_rate(is_silent, 11, "never_answered", &words);
}

#[test]
fn a_server_that_stops_answering_is_said_to() {
    let words = [
        "nothing was answered after",
        "look at the server and its log",
    ];
    assert_no_rate(answers_once, 11, "server_changed", &words);
}

#[test]
fn a_server_that_answers_errors_is_said_to() {
    let words = [
        "100 % of the answers were errors",
        "ERR",
        "correct the requests or the server, or count errors with errors=1% in --slo",
    ];
    assert_no_rate(answers_errors, 11, "mostly_errors", &words);
}

#[test]
fn a_server_that_closes_connections_is_said_to() {
    let words = [
        "the server closed connections before it answered anything",
        "see its log, and whether the address",
        "no session is left",
    ];
    assert_no_rate(closes, 1, "sessions_lost", &words);
}

/// A rate that was asked for is not met, whatever the reason is, and the reason is named.
#[test]
fn a_rate_that_a_silent_server_was_to_keep_is_not_met() {
    let (code, said, json) = sought(is_silent, "--rate 50");
    assert_eq!(code, Some(10), "{said}");
    assert_eq!(json["outcome"], "not_met", "{json}");
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("the server never answered"), "{warnings}");
}
